use proptest::prelude::*;

use super::{apply, between};

/// Checks that the difference makes the one of the other, in so many bytes at most.
fn check(before: &str, after: &str, most: usize) {
    let delta = between(before.as_bytes(), after.as_bytes());
    assert_eq!(apply(before.as_bytes(), &delta).as_deref(), Some(after.as_bytes()));
    assert!(delta.len() <= most, "{} bytes for {} -> {}", delta.len(), before.len(), after.len());
}

#[test]
fn a_difference_says_only_what_changed() {
    check("", "", 0);
    check("", "all of it", 12 + 9);
    check("all of it", "", 0);
    check(r#"{"a":1,"b":{"c":2}}"#, r#"{"a":1,"b":{"c":3}}"#, 24 + 1);
    check(r#"{"a":1,"b":2}"#, r#"{"b":2}"#, 24);
    check("aaaa", "aaaaaaaa", 24 + 4);
}

#[test]
fn changes_far_apart_do_not_take_what_lies_between() {
    let list = |third: u32, last: u32| -> String {
        let number = |at: u32| if at == 3 { third } else { at + 1000 };
        (0..200).map(number).chain([last]).map(|number| format!("{{\"address\":\"10.0.0.{number}\"}},")).collect()
    };
    check(&list(1, 1), &list(999, 999), 120);
}

#[test]
fn what_moves_is_not_written_again() {
    let (one, other) = ("one ".repeat(50), "other".repeat(50));
    check(&format!("<{one}{other}>"), &format!("({other}{one})"), 8 * 12 + 60);
}

#[test]
fn a_difference_to_another_text_is_refused() {
    let delta = between(b"0123456789", b"012345678x");
    for text in ["", "01234567"] {
        assert_eq!(apply(text.as_bytes(), &delta), None, "{text}");
    }
    assert_eq!(apply(b"0123456789", &delta[..delta.len() - 1]), None, "cut off");
}

#[test]
fn a_difference_that_would_fill_the_memory_is_refused() {
    let text = vec![b'x'; 1 << 20];
    let piece = [0u32, 1 << 20, 0].map(u32::to_le_bytes).concat();
    assert_eq!(apply(&text, &piece.repeat(5)), None);
    assert!(apply(&text, &piece.repeat(3)).is_some());
}

proptest! {
    #[test]
    fn any_text_becomes_any_other(before in "[ab]{0,90}", after in "[ab]{0,90}", middle in "[a-d]{0,90}") {
        let texts = [before.clone(), after.clone(), format!("{before}{middle}{after}"), format!("{after}{middle}{before}")];
        for (one, other) in texts.iter().flat_map(|one| texts.iter().map(move |other| (one, other))) {
            let delta = between(one.as_bytes(), other.as_bytes());
            prop_assert_eq!(apply(one.as_bytes(), &delta), Some(other.clone().into_bytes()));
        }
    }

    #[test]
    fn no_bytes_panic(before in prop::collection::vec(any::<u8>(), 0..50), delta in prop::collection::vec(0..4u8, 0..80)) {
        let _ = apply(&before, &delta);
    }
}
