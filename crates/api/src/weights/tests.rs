//! What the annotations about weights may say.

use super::*;

fn shares(text: &str) -> Result<Vec<u8>, String> {
    Shares::parse(text).map(|shares| shares.of_groups()).map_err(|error| error.to_string())
}

#[test]
fn weights_are_numbers_from_0_to_100() {
    for (text, expected) in [("0", Some(0)), ("1", Some(1)), ("100", Some(100)), ("007", Some(7))] {
        assert_eq!(weight(text), expected, "{text:?}");
    }
    for text in ["", "101", "256", "-1", "+1", "1.5", "x", " 1", "99999999999999999999"] {
        assert_eq!(weight(text), None, "{text:?}");
    }
}

#[test]
fn what_is_written_for_a_slice_is_read_again() {
    type Row = (&'static [(&'static str, u8)], Option<&'static str>);
    let table: [Row; 7] = [
        (&[], None),
        (&[("10.0.0.1", 1), ("10.0.0.2", 1)], None),
        (&[("10.0.0.1", 3), ("10.0.0.2", 3)], Some("3")),
        (&[("10.0.0.1", 0)], Some("0")),
        (&[("10.0.0.1", 1), ("10.0.0.2", 5), ("10.0.0.3", 1)], Some("10.0.0.2=5")),
        (&[("10.0.0.1", 9), ("10.0.0.2", 0), ("10.0.0.3", 9), ("10.0.0.4", 1)], Some("9,10.0.0.2=0,10.0.0.4=1")),
        (&[("fd00::1", 2), ("fd00::2", 1)], Some("fd00::1=2")),
    ];
    for (endpoints, expected) in table {
        let text = write(endpoints.iter().copied());
        assert_eq!(text.as_deref(), expected);
        let weights = SliceWeights::read(&text.unwrap_or_default(), |part| panic!("{part} cannot be read"));
        for (address, weight) in endpoints {
            assert_eq!(weights.of(address.parse().expect("an address")), *weight, "{address}");
        }
    }
}

#[test]
fn parts_that_cannot_be_read_are_told() {
    let mut bad = Vec::new();
    let weights = SliceWeights::read("101, 2, x=3,10.0.0.1=y,10.0.0.2=4,", |part| bad.push(part.to_owned()));
    assert_eq!(bad, ["101", "x=3", "10.0.0.1=y"]);
    assert_eq!(weights.of([10, 0, 0, 1].into()), 2);
    assert_eq!(weights.of([10, 0, 0, 2].into()), 4);
}

#[test]
fn shares_are_of_a_hundred_and_others_have_the_rest() {
    assert_eq!(shares("track=canary:5"), Ok(vec![5, 95]));
    assert_eq!(shares("track=canary:5,track=stable:95"), Ok(vec![5, 95, 0]));
    assert_eq!(shares(" track = canary : 5 ,\n track in (a, b):10, !track:0 "), Ok(vec![5, 10, 0, 85]));
    assert_eq!(shares("track=canary,arch=arm64:100"), Ok(vec![100, 0]));
}

#[test]
fn the_first_selector_that_fits_counts() {
    let shares = Shares::parse("track=canary,arch in (arm64,riscv64):5,track=canary:10,track:20").expect("shares");
    let group = |labels: &[(&str, &str)]| {
        shares.group(&labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    };
    assert_eq!(group(&[("track", "canary"), ("arch", "arm64")]), 0);
    assert_eq!(group(&[("track", "canary"), ("arch", "amd64")]), 1);
    assert_eq!(group(&[("track", "stable")]), 2);
    assert_eq!(group(&[("app", "web")]), 3);
    assert_eq!(shares.of_groups(), [5, 10, 20, 65]);
}

#[test]
fn shares_that_make_no_sense_are_refused() {
    let no_share =
        |text: &str| Err(format!("{text:?} is to end with a colon and a number from 0 to 100, as in track=canary:5"));
    assert_eq!(shares(""), no_share(""));
    assert_eq!(shares("track=canary"), no_share("track=canary"));
    assert_eq!(shares("track=canary:5,track=stable"), no_share("track=stable"));
    assert_eq!(shares("track=canary:101"), no_share("track=canary:101"));
    assert_eq!(shares("track=canary:-5"), no_share("track=canary:-5"));
    assert_eq!(shares("a=b:60,c=d:41"), Err("the shares are 101 together, and there are 100".to_owned()));
    let many: Vec<_> = (0..17).map(|at| format!("a=v{at}:1")).collect();
    assert_eq!(shares(&many.join(",")), Err("only 16 selectors may have a share".to_owned()));
    for text in [":5", "=:5", "a==b=c:5", "a in (b:5", "a b:5", "-x=y:5"] {
        let refused = shares(text).expect_err(text);
        assert!(refused.contains("is not a label selector") || refused.contains("is to end"), "{text}: {refused}");
    }
}
