use super::*;

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn row(text: &'static str) -> Option<Made> {
    judged(text, Verdict::Ok)
}

fn judged(text: &'static str, verdict: Verdict) -> Option<Made> {
    Some(Made { json: Bytes::from_static(text.as_bytes()), verdict })
}

#[track_caller]
fn check(rows: &Rows, since: u64, expected: &str, reached: u64) {
    let (lines, at) = rows.since(since, 100).expect("it is known");
    let lines: Vec<String> = String::from_utf8_lossy(&lines).lines().map(short).collect();
    assert_eq!((lines.join(" ").as_str(), at), (expected, reached), "since {since}");
}

/// `+1` for a row that is 1, `-a` for one that is gone.
fn short(line: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    match value["type"].as_str().unwrap() {
        "PUT" => format!("+{}", value["row"]),
        _ => format!("-{}", value["name"].as_str().unwrap()),
    }
}

#[test]
fn who_has_seen_a_revision_gets_each_later_change_once() {
    let mut rows = Rows::new(10);
    check(&rows, 10, "", 10);
    rows.put(&key("a"), row("1"));
    rows.put(&key("b"), row("2"));
    rows.put(&key("a"), row("3"));
    rows.put(&key("a"), row("3"));
    check(&rows, 10, "+2 +3", 13);
    check(&rows, 12, "+3", 13);
    check(&rows, 13, "", 13);
    rows.put(&key("b"), None);
    rows.put(&key("b"), None);
    check(&rows, 10, "+3 -b", 14);
    rows.put(&key("b"), row("4"));
    check(&rows, 13, "-b +4", 15);
    assert_eq!(String::from_utf8_lossy(&rows.list()), r#"{"revision":"15","items":[3,4]}"#);
    let (lines, reached) = rows.since(10, 1).unwrap();
    assert_eq!((short(std::str::from_utf8(&lines).unwrap().trim()), reached), ("+3".to_owned(), 13));
}

#[test]
fn verdicts_are_counted_as_rows_come_change_and_go() {
    let mut rows = Rows::new(10);
    let counts = |rows: &Rows| [Verdict::Ok, Verdict::Warn, Verdict::Broken].map(|verdict| rows.count(verdict));
    assert_eq!(counts(&rows), [0, 0, 0]);
    rows.put(&key("a"), judged("1", Verdict::Broken));
    rows.put(&key("b"), judged("2", Verdict::Broken));
    rows.put(&key("b"), judged("2", Verdict::Broken));
    assert_eq!(counts(&rows), [0, 0, 2]);
    rows.put(&key("a"), judged("3", Verdict::Ok));
    rows.put(&key("a"), judged("4", Verdict::Ok));
    assert_eq!(counts(&rows), [1, 0, 1]);
    rows.put(&key("b"), None);
    rows.put(&key("b"), None);
    assert_eq!(counts(&rows), [1, 0, 0]);
}

#[test]
fn revisions_of_another_run_are_too_old_or_not_there_yet() {
    let mut rows = Rows::new(10);
    rows.put(&key("a"), row("1"));
    assert_eq!(rows.since(9, 1), Err(TooOld));
    assert_eq!(rows.since(12, 1), Err(TooOld));
}

#[test]
fn rows_that_are_gone_are_forgotten_when_there_are_too_many() {
    let mut rows = Rows::new(10);
    rows.put(&key("stays"), row("7"));
    for number in 0..=MOST_GONE {
        let key = key(&number.to_string());
        rows.put(&key, row("1"));
        rows.put(&key, None);
    }
    assert_eq!(rows.gone.len(), MOST_GONE);
    assert!(rows.order.len() <= MOST_GONE + 1);
    assert_eq!(rows.since(12, 1), Err(TooOld));
    assert!(rows.since(13, 1).is_ok());
    let (all, reached) = rows.since(0, 1).unwrap();
    assert_eq!(short(std::str::from_utf8(&all).unwrap().lines().next().unwrap()), "+7");
    assert_eq!(reached, rows.revision());
}
