use super::*;

#[test]
fn names_are_known_whatever_their_case() {
    let cases = [
        ("Host", Name::Host),
        ("hOST", Name::Host),
        ("Transfer-Encoding", Name::TransferEncoding),
        ("transfer_encoding", Name::Dropped),
        ("X_Forwarded-For", Name::Dropped),
        ("content_length", Name::Dropped),
        ("x_custom_header", Name::Other),
        ("X-Real-IP", Name::Vouched),
        ("x_real_ip", Name::Dropped),
        ("X-Forwarded-Host", Name::Vouched),
        ("X-Forward", Name::Other),
        ("Fastly-Client", Name::Other),
        ("X-Requested-With", Name::Other),
        ("user_agent", Name::Other),
        ("Proxy", Name::Dropped),
        ("Keep-Alive", Name::Dropped),
        ("HTTP2-Settings", Name::Dropped),
        ("Content-Lengths", Name::Other),
        ("", Name::Other),
    ];
    for (name, expected) in cases {
        assert_eq!(Name::of(name.as_bytes()), expected, "{name:?}");
    }
}

#[test]
fn a_length_is_digits_and_nothing_else() {
    let cases = [
        ("0", Some(0)),
        ("42", Some(42)),
        ("007", Some(7)),
        ("9999999999999999999", Some(9_999_999_999_999_999_999)),
        ("18446744073709551616", None),
        ("", None),
        ("+1", None),
        ("-1", None),
        ("1 ", None),
        ("1,1", None),
        ("0x10", None),
    ];
    for (value, expected) in cases {
        assert_eq!(length(value.as_bytes()), expected, "{value:?}");
    }
}

#[test]
fn words_of_a_list_are_trimmed_and_empty_ones_skipped() {
    let found: Vec<_> = words(b" close ,, X-A\t, ").collect();
    assert_eq!(found, [&b"close"[..], b"X-A"]);
}
