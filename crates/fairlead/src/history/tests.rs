use jiff::Zoned;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::{difference, show, times, unified, whose};
use crate::paint::Paint;

#[test]
fn times_are_read_as_people_say_them() {
    let now: Zoned = "2026-03-10T12:00:00+01:00[Europe/Berlin]".parse().expect("a time");
    let check = |text: &str, want: &str| {
        assert_eq!(times::read(text, &now).map(|time| time.to_string()).as_deref(), Ok(want), "{text}");
    };
    check("10m", "2026-03-10T10:50:00Z");
    check("1h30m", "2026-03-10T09:30:00Z");
    check("1d", "2026-03-09T11:00:00Z");
    check("11:03:07", "2026-03-10T10:03:07Z");
    check("11:03", "2026-03-10T10:03:00Z");
    check("13:00", "2026-03-09T12:00:00Z");
    check("2026-03-01 08:00:00", "2026-03-01T07:00:00Z");
    check("2026-03-01T08:00:00Z", "2026-03-01T08:00:00Z");
    check("now", "2026-03-10T11:00:00Z");
    for wrong in ["", "soon", "25:00", "-10m", "10", "99999999999d"] {
        assert!(times::read(wrong, &now).is_err(), "{wrong}");
    }
}

#[test]
fn who_is_meant_is_said_whole() {
    let check = |words: &[&str], want: Result<&str, ()>| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let said = whose(&words, "shop");
        assert_eq!(said.as_deref().map_err(|_| ()), want, "{words:?}");
    };
    check(&["svc/web"], Ok("svc/shop/web"));
    check(&["web"], Ok("svc/shop/web"));
    check(&["svc", "web"], Ok("svc/shop/web"));
    check(&["service/other/web"], Ok("svc/other/web"));
    check(&["po/web-1"], Ok("pod/shop/web-1"));
    check(&["node/n1"], Ok("node/n1"));
    check(&["secret/s"], Err(()));
}

#[test]
fn differences_read_like_those_of_diff() {
    let check = |before: &str, after: &str, want: &str| {
        let lines = unified::compare(before, after);
        let hunks = unified::hunks(&lines);
        let text: Vec<String> = hunks
            .iter()
            .flat_map(|(head, lines)| std::iter::once(head.clone()).chain(lines.iter().map(|line| line.text())))
            .collect();
        assert_eq!(text.join("\n"), want);
    };
    check("a\nb\n", "a\nb\n", "");
    check("a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c");
    check("", "a\n", "@@ -0,0 +1,1 @@\n+a");
    check("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n5\n6\n7\n8\n", "@@ -6,4 +6,3 @@\n 6\n 7\n 8\n-9");
    let long: String = (0..20).map(|at| format!("{at}\n")).collect();
    let other = long.replace("2\n", "two\n").replace("17\n", "");
    let lines = unified::compare(&long, &other);
    assert_eq!(unified::hunks(&lines).len(), 2, "what is far apart stands apart");
}

#[test]
fn texts_too_long_to_compare_are_still_told_apart() {
    let (old, new): (String, String) =
        ((0..3000).map(|n| format!("a{n}\n")).collect(), (0..3000).map(|n| format!("b{n}\n")).collect());
    assert_eq!(unified::compare(&old, &new).len(), 6000);
}

#[test]
fn only_what_differs_is_shown() {
    let answer = |port: i64, why: &str| -> Value {
        let endpoint = json!({"address": "10.0.0.1", "ports": [{"port": 80}], "target": "Pod web-1", "why": why});
        json!({"object": {"spec": {"port": port}}, "endpoints": [endpoint], "pods": []})
    };
    let what = |then: Value, now: Value| -> Vec<&str> {
        difference::parts(&then, &now).into_iter().map(|(what, ..)| what).collect()
    };
    assert_eq!(what(answer(80, "ready"), answer(80, "ready")), Vec::<&str>::new());
    assert_eq!(what(answer(80, "ready"), answer(81, "ready")), [""]);
    assert_eq!(what(answer(80, "ready"), answer(80, "not ready")), ["endpoints"]);
    assert_eq!(what(json!({"object": null}), answer(80, "ready")), ["", "endpoints"]);
}

/// What somebody may write into an Event or a condition.
const THEIRS: &str = "\u{1b}]0;mine\u{7}\r\n12:00:00.000  Service default/web deleted";

#[test]
fn what_others_wrote_neither_moves_the_terminal_nor_looks_like_a_change() {
    let check = |text: String, times: usize| {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{text:?}");
        assert_eq!(text.matches("^[]0;mine\\u{7}\\r ").count(), times, "{text}");
        assert!(!text.lines().any(|line| line.starts_with("12:00")), "{text}");
    };
    let at = "2026-03-10T11:00:00.000000Z";
    let event = |change: &str| json!({"at": at, "kind": "Event", "name": THEIRS, "by": THEIRS, "change": change, "lines": [THEIRS]});
    check(show::timeline(&json!({"items": [event("event")]}), None, &TimeZone::UTC, Paint::NEVER), 3);
    check(show::timeline(&json!({"items": [event("gap")]}), None, &TimeZone::UTC, Paint::NEVER), 1);

    let answer = |why: &str| {
        let endpoint = json!({"address": "10.0.0.1", "why": why, "target": why});
        let pod = json!({"name": "web-1", "why": why, "phase": "Running"});
        let object = json!({"metadata": {"name": "web"}});
        json!({"at": at, "subject": "svc/default/web", "gap": why, "object": object, "endpoints": [endpoint], "pods": [pod]})
    };
    check(show::moment(&answer(THEIRS), &TimeZone::UTC, Paint::NEVER), 4);
    let parts = difference::parts(&answer(THEIRS), &answer("ready"));
    check(difference::printed(&parts, "svc/default/web", "then", Paint::NEVER), 3);
    // YAML has escapes of its own.
    let noted = json!({"object": {"metadata": {"annotations": {"note": THEIRS}}}});
    let parts = difference::parts(&noted, &json!({"object": null}));
    check(difference::printed(&parts, "svc/default/web", "then", Paint::NEVER), 0);
}
