use super::*;

fn annotations(all: &[(&str, &str)]) -> Annotations {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn what_is_written_is_read_and_nothing_else() {
    let all = annotations(&[(SSL_CERT, "a"), ("fairlead.dev/balance", "\"least\"")]);
    assert_eq!(read(&write(&all).expect("a text")), Some(all));
    assert_eq!(write(&Annotations::new()), None);
    assert_eq!(write(&annotations(&[("a", &"x".repeat(LONGEST))])), None);
    for text in ["", "[]", "{\"a\": 1}", "{\"a\": {}}", "nonsense", &format!("{{}}{}", " ".repeat(LONGEST))] {
        assert_eq!(read(text), None, "{text:.20}");
    }
}

#[test]
fn certificates_are_those_of_now_and_of_when_it_last_made_sense() {
    let check = |all: &[(&str, &str)], expected: &[&str]| {
        let all = annotations(all);
        let found = certificates(|name| all.get(name).map(String::as_str));
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{all:?}");
    };
    let good = write(&annotations(&[(SSL_CERT, "old, b")])).expect("a text");
    check(&[], &[]);
    check(&[(SSL_CERT, "b, a ,,")], &["a", "b"]);
    check(&[(SSL_CERT, "new"), (LAST_GOOD, &good)], &["b", "new", "old"]);
    check(&[(LAST_GOOD, &good)], &["b", "old"]);
    check(&[(SSL_CERT, "new"), (LAST_GOOD, "nonsense")], &["new"]);
}
