use std::net::IpAddr;

use super::*;
use crate::corefile::{self, Outside};

struct Nothing;

impl Outside for Nothing {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn files(&self, _: &str, _: &str) -> Result<Vec<(String, String)>, String> {
        Err("there is none".to_owned())
    }
}

fn rules(lines: &str) -> Vec<Rewrite> {
    let text = format!(". {{\n{lines}\n}}");
    let mut settings = corefile::parse("Corefile", &text, &Nothing).unwrap_or_else(|why| panic!("{why:?}"));
    settings.servers.remove(0).plugins.rewrite
}

/// What a name becomes, and the name a record of that name has in the answer.
fn check(lines: &str, name: &str, asked: &str, told: &str) {
    let mut ask = Ask::sample(name, words::A);
    let undos = rewrite(&rules(lines), &mut ask).expect("a name comes of it");
    assert_eq!(ask.name.to_string(), asked, "{lines}");
    let record = Record::address(ask.name.clone(), 60, IpAddr::from([192, 0, 2, 1]));
    let mut reply = Reply { answer: vec![record], ..Reply::default() };
    undo(&mut reply, &undos);
    assert_eq!(reply.answer[0].name.to_string(), told, "{lines}");
}

#[test]
fn names_are_rewritten_by_each_kind_of_rule() {
    check("rewrite name a.example b.example", "A.example", "b.example.", "A.example.");
    check("rewrite name exact a.example. b.example.", "c.example", "c.example.", "c.example.");
    check("rewrite name prefix a- b-", "a-x.example", "b-x.example.", "b-x.example.");
    check("rewrite name suffix .one .two", "x.one", "x.two.", "x.two.");
    check("rewrite name suffix .one .two answer auto", "x.one", "x.two.", "x.one.");
    check("rewrite name substring one two", "x.one.example", "x.two.example.", "x.two.example.");
    check(
        r"rewrite name regex (.*)-(west)\.example {1}.service.{2}.test",
        "ftp-west.example",
        "ftp.service.west.test.",
        "ftp.service.west.test.",
    );
}

#[test]
fn answers_are_told_under_the_name_that_was_asked() {
    let lines = "rewrite stop {\n  name regex (.*)\\.one {1}.two\n  answer name (.*)\\.two {1}.one\n}";
    check(lines, "x.one", "x.two.", "x.one.");
    check("rewrite name regex (.*)\\.one {1}.two answer auto", "x.one", "x.two.", "x.one.");
}

#[test]
fn a_rule_that_stops_is_the_last_one() {
    check(
        "rewrite name a.example b.example\nrewrite name b.example c.example",
        "a.example",
        "b.example.",
        "a.example.",
    );
    let lines = "rewrite continue name a.example b.example\nrewrite name b.example c.example";
    check(lines, "a.example", "c.example.", "a.example.");
}
