use super::*;

fn check(text: &str, reason: Option<&str>, warning: Option<&str>) {
    let reasons = strict_reasons(text);
    assert_eq!(reasons.first().map(String::as_str), reason, "{text}");
    let warnings = warnings(&Path::new("f"), text);
    assert_eq!(warnings.first().map(String::as_str), warning, "{text}");
}

#[test]
fn addresses_are_read_strictly_and_warned_about() {
    check("10.0.0.1", None, None);
    check("fd00::1", None, None);
    check("10.0.0", Some(INVALID), None);
    check("10.0.0.256", Some(INVALID), None);
    check("", Some(INVALID), None);
    check("fe80::1%eth0", Some(INVALID), None);
    check("1::2::3", Some(INVALID), None);
    check(
        "10.0.00.1",
        Some("must not have leading 0s"),
        Some("f: non-standard IP address \"10.0.00.1\" is invalid: use \"10.0.0.1\""),
    );
    check(
        "::00001",
        Some("must not have leading 0s"),
        Some("f: non-standard IP address \"::00001\" is invalid: use \"::1\""),
    );
    check(
        "::ffff:10.0.0.1",
        Some("must not be an IPv4-mapped IPv6 address"),
        Some("f: non-standard IP address \"::ffff:10.0.0.1\" is invalid: use \"10.0.0.1\""),
    );
    check("FD00::1", None, Some("f: IPv6 address \"FD00::1\" should be in RFC 5952 canonical format (\"fd00::1\")"));
    check(
        "fd00:0:0::1",
        None,
        Some("f: IPv6 address \"fd00:0:0::1\" should be in RFC 5952 canonical format (\"fd00::1\")"),
    );
}

fn check_range(text: &str, reason: Option<&str>, warning: Option<&str>) {
    assert_eq!(cidr::strict_reasons(text).first().map(String::as_str), reason, "{text}");
    assert_eq!(cidr::warnings(&Path::new("f"), text).first().map(String::as_str), warning, "{text}");
}

#[test]
fn ranges_are_read_strictly_and_warned_about() {
    let invalid = Some("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    check_range("10.0.0.0/8", None, None);
    check_range("0.0.0.0/0", None, None);
    check_range("10.0.0.0", invalid, None);
    check_range("10.0.0.0/33", invalid, None);
    check_range("10.0.0.0/+8", invalid, None);
    check_range(
        "10.0.0.0/08",
        Some("must not have leading 0s in IP or prefix length"),
        Some("f: non-standard CIDR value \"10.0.0.0/08\" is invalid: use \"10.0.0.0/8\""),
    );
    check_range(
        "10.0.0.1/8",
        Some("must not have bits set beyond the prefix length"),
        Some(
            "f: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)",
        ),
    );
    check_range(
        "::ffff:10.0.0.0/104",
        Some("must not have an IPv4-mapped IPv6 address"),
        Some("f: non-standard CIDR value \"::ffff:10.0.0.0/104\" is invalid: use \"10.0.0.0/8\""),
    );
    check_range(
        "FD00::/64",
        None,
        Some("f: IPv6 CIDR value \"FD00::/64\" should be in RFC 5952 canonical format (\"fd00::/64\")"),
    );
}

#[test]
fn endpoints_must_be_reachable_from_other_nodes() {
    for (text, refused) in [
        ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
        ("::", "may not be unspecified (::)"),
        ("127.8.8.8", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("::1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("169.254.1.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        ("febf::1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        ("224.0.0.9", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        ("ff12::1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        ("web", "must be a valid IP address"),
    ] {
        assert_eq!(endpoint_reasons(text), [refused], "{text}");
    }
    for text in ["239.1.1.1", "ff05::1", "255.255.255.255", "240.0.0.1", "10.0.0.1", "224.0.1.1"] {
        assert!(endpoint_reasons(text).is_empty(), "{text}");
    }
}
