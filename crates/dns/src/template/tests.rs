use super::*;
use crate::settings::{Fallthrough, Pattern};

fn check(pattern: &str, text: &str, name: &str, expected: Option<&str>) {
    let template = Template {
        zones: vec!["example".parse().expect("a name")],
        class: Some(1),
        rtype: Some(1),
        matches: vec![Pattern::new(pattern).expect("a pattern")],
        answer: vec![Text::parse(text).expect("a text")],
        additional: Vec::new(),
        authority: Vec::new(),
        rcode: 0,
        fallthrough: Fallthrough::Zones(vec!["example".parse().expect("a name")]),
    };
    let ask = Ask::sample(name, 1);
    let found = match answer(&template, &ask) {
        Made::Reply(reply) => reply.answer.first().map(|record| format!("{} {:?}", record.name, record.rdata)),
        Made::Pass => Some("pass".to_owned()),
    };
    assert_eq!(found.as_deref(), expected, "{pattern} {text} {name}");
}

#[test]
fn places_are_filled_in_from_the_question() {
    let pattern = r"^ip-(?P<a>[0-9]*)-(?P<b>[0-9]*)[.]example[.]$";
    check(
        pattern,
        "{{ .Name }} 60 IN A 10.0.{{ .Group.a }}.{{ .Group.b }}",
        "IP-1-2.example",
        Some("ip-1-2.example. [10, 0, 1, 2]"),
    );
    check(
        pattern,
        "{{.Name}} 60 {{ .Class }} {{ .Type }} 10.0.{{ index .Match 1 }}.9",
        "ip-1-2.example",
        Some("ip-1-2.example. [10, 0, 1, 9]"),
    );
    check(
        pattern,
        "x.{{ .Zone }} A 10.0.0.{{ parseInt .Group.b 16 8 }}",
        "ip-1-20.example",
        Some("x.example. [10, 0, 0, 32]"),
    );
    check(pattern, "x. A 10.0.0.{{ .Group.b }}", "ip-1-999.example", None);
    check(pattern, "x. A 10.0.0.1", "other.example", Some("pass"));
    check(pattern, "x. A 10.0.0.1", "ip-1-2.test", Some("pass"));
}

#[test]
fn what_cannot_be_filled_in_is_refused() {
    for text in ["{{ .Meta \"x\" }}", "{{ .Name", "{{ if .Name }}", "{{ parseInt .Group.a 99 8 }}", "{{ $x }}"] {
        assert!(Text::parse(text).is_err(), "{text}");
    }
}
