//! Ranges as reverse zones.

use super::{pointer_name, reverse_zones};

#[test]
fn ranges_end_between_labels() {
    let check = |range: &str, expect: &[&str]| {
        let zones = reverse_zones(&range.parse().unwrap());
        assert_eq!(zones.iter().map(ToString::to_string).collect::<Vec<_>>(), expect, "{range}");
    };
    check("10.0.0.0/16", &["0.10.in-addr.arpa."]);
    check("10.0.7.9/16", &["0.10.in-addr.arpa."]);
    check("10.2.0.0/15", &["2.10.in-addr.arpa.", "3.10.in-addr.arpa."]);
    check("0.0.0.0/0", &["in-addr.arpa."]);
    check("10.0.0.1/32", &["1.0.0.10.in-addr.arpa."]);
    check("::/0", &["ip6.arpa."]);
    let zeros = "0.".repeat(20);
    check("fd00:10::/108", &[&(zeros + "1.0.0.0.0.d.f.ip6.arpa.")]);
    assert_eq!(reverse_zones(&"10.0.0.0/9".parse().unwrap()).len(), 128);
}

#[test]
fn addresses_have_a_name() {
    let check = |ip: &str, name: &str| assert_eq!(pointer_name(ip.parse().unwrap()).to_string(), name);
    check("10.1.2.3", "3.2.1.10.in-addr.arpa.");
    check("::1", &("1.".to_owned() + &"0.".repeat(31) + "ip6.arpa."));
}
