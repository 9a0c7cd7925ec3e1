//! Names as texts and as bytes.

use super::{Name, NameError};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

#[test]
fn texts_are_read_and_written() {
    let check = |text: &str, shown: &str| assert_eq!(name(text).to_string(), shown, "{text}");
    check("", ".");
    check(".", ".");
    check("a", "a.");
    check("Web.Default.svc.", "Web.Default.svc.");
    check(r"a\.b.c", r"a\.b.c.");
    check(r"\065\255\000.c", r"A\255\000.c.");
    check("_http._tcp.web", "_http._tcp.web.");
}

#[test]
fn what_is_no_name_says_why() {
    let check = |text: &str, error| assert_eq!(text.parse::<Name>(), Err(error), "{text}");
    check("a..b", NameError::EmptyLabel);
    check(".a", NameError::EmptyLabel);
    check(&"a".repeat(64), NameError::LongLabel);
    check(&"abcdefg.".repeat(32), NameError::LongName);
    check(r"a\", NameError::Escape);
    check(r"a\25", NameError::Escape);
    check(r"a\256", NameError::Escape);
    assert_eq!(name(&"abcdefg.".repeat(31)).wire().len(), 249);
    assert_eq!(name(&("abcdefg.".repeat(31) + "abcde")).wire().len(), 255);
    assert_eq!(("abcdefg.".repeat(31) + "abcdef").parse::<Name>(), Err(NameError::LongName));
}

#[test]
fn case_does_not_count() {
    use std::hash::{BuildHasher, RandomState};
    let (low, high) = (name("web.default.svc."), name("WEB.Default.svc"));
    let state = RandomState::new();
    assert_eq!(low, high);
    assert_eq!(state.hash_one(&low), state.hash_one(&high));
    assert_eq!(low.cmp(&high), std::cmp::Ordering::Equal);
    assert_ne!(name("a"), name("b"));
}

#[test]
fn a_name_is_under_itself_and_its_parents_only() {
    let check = |under: bool, below: &str, zone: &str| {
        assert_eq!(name(below).is_under(&name(zone)), under, "{below} under {zone}");
    };
    check(true, "a.b", "b");
    check(true, "a.B", "b.");
    check(true, "b", "b");
    check(true, "b", ".");
    check(false, "ab", "b");
    check(false, "b", "a.b");
    // The bytes of a label may look like the end of a name.
    check(false, r"x\001b", "b");
    assert_eq!(name("a.b.c").prefix_before(&name("c")), Some(&b"\x01a\x01b"[..]));
    assert_eq!(name("a.b").parent(), Some(name("b")));
    assert_eq!(name(".").parent(), None);
    assert_eq!(name("a.b").join(&name("c.d")), Ok(name("a.b.c.d")));
}

#[test]
fn pointers_lead_backward_only() {
    let check = |message: &[u8], at, expect: Result<(&str, usize), NameError>| {
        let expect = expect.map(|(text, end)| (name(text), end));
        assert_eq!(Name::read(message, at), expect, "{message:?}");
    };
    check(b"\x01a\x00\x01b\xc0\x00!", 3, Ok(("b.a", 7)));
    check(b"\x01a\xc0\x00", 0, Err(NameError::Pointer));
    check(b"\xc0\x00", 0, Err(NameError::Pointer));
    check(b"\xc0\x05", 0, Err(NameError::Pointer));
    check(b"\xc0", 0, Err(NameError::Cut));
    check(b"\x01", 0, Err(NameError::Cut));
    check(b"\x01a", 0, Err(NameError::Cut));
    check(b"", 0, Err(NameError::Cut));
    check(b"\x40a", 0, Err(NameError::LongLabel));
    check(b"\x80a", 0, Err(NameError::LongLabel));
}
