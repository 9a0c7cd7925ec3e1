use std::cmp::Ordering;

use super::{Error, Quantity, canonical};

#[test]
fn amounts_are_written_in_one_form() {
    let check = |given: &str, expected: &str| assert_eq!(canonical(given).as_deref(), Ok(expected), "{given}");
    check("100m", "100m");
    check("1000m", "1");
    check("0.5", "500m");
    check(".5", "500m");
    check("1.5Gi", "1536Mi");
    check("1.5", "1500m");
    check("1024Mi", "1Gi");
    check("1k", "1k");
    check("1000", "1k");
    check("1024", "1024");
    check("0", "0");
    check("000", "0");
    check("0m", "0");
    check("-0", "0");
    check("2e3", "2e3");
    check("20e3", "20e3");
    check("2000e3", "2e6");
    check("4", "4");
    check("110", "110");
    check("0.0000000001", "1n");
    check("-0.0000000001", "-1n");
    check("-500m", "-500m");
    check("12Ki", "12Ki");
    check("1Ki", "1Ki");
    check("0.5Ki", "512");
    check("100Ei", "9223372036854775807");
    check("1e1000000000", "10e999999999");
    check(" 5 ", "5");
}

#[test]
fn a_text_that_needs_no_change_of_unit_stays_as_given() {
    let check = |given: &str| assert_eq!(canonical(given).as_deref(), Ok(given), "{given}");
    check("007");
    check("+5");
    check("1E3");
    check("1.500");
}

#[test]
fn what_is_not_an_amount_is_refused() {
    let check = |text: &str, error: Error| assert_eq!(canonical(text), Err(error), "{text}");
    check("", Error::Format);
    check("x", Error::Format);
    check("1x", Error::Format);
    check("1.2.3", Error::Format);
    check("1Kii", Error::Suffix);
    check("1mm", Error::Suffix);
    check("1e", Error::Suffix);
    check("1e99999999999999999999", Error::Suffix);
}

#[test]
fn amounts_compare_across_units() {
    let check = |a: &str, b: &str, expected: Ordering| {
        let (left, right) = (Quantity::parse(a).expect(a), Quantity::parse(b).expect(b));
        assert_eq!(left.cmp(&right), expected, "{a} {b}");
        assert_eq!(right.cmp(&left), expected.reverse(), "{b} {a}");
    };
    check("1", "1000m", Ordering::Equal);
    check("1Ki", "1k", Ordering::Greater);
    check("999m", "1", Ordering::Less);
    check("-1", "1n", Ordering::Less);
    check("-2", "-1", Ordering::Less);
    check("1e300000000", "1Ei", Ordering::Greater);
    check("0", "0Ki", Ordering::Equal);
}

#[test]
fn resource_lists_hold_thousandths() {
    let check = |given: &str, expected: &str| {
        assert_eq!(Quantity::parse(given).map(|q| q.to_milli().to_string()).as_deref(), Ok(expected), "{given}");
    };
    check("1n", "1m");
    check("0.0015", "2m");
    check("-0.0015", "-2m");
    check("100m", "100m");
    check("1Gi", "1Gi");
}

#[test]
fn amounts_are_counted_in_thousandths() {
    let check = |given: &str, expected| {
        assert_eq!(Quantity::parse(given).map(|amount| amount.milli()), Ok(expected), "{given}")
    };
    check("4", 4_000);
    check("3920m", 3_920);
    check("0.5", 500);
    check("1k", 1_000_000);
    check("1Ki", 1_024_000);
    check("100u", 1);
    check("0", 0);
    check("-2", -2_000);
}

#[test]
fn no_text_makes_it_panic() {
    let long = "9".repeat(100_000);
    for text in [long.as_str(), "1e-2147483648", "9999999999999999999999Ei", "1e2147483647", "0e2147483647", "-9e-20"] {
        let quantity = Quantity::parse(text).expect("it is an amount");
        let _ = (quantity.to_string(), quantity.plus(&quantity), quantity.is_whole(), quantity.clone().to_milli());
    }
}
