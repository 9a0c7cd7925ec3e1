use super::*;

fn check(log: &[&str], expected: &str) {
    let lines = log.iter().map(|line| format!("2026-01-02T03:04:05.678901234Z stdout {line}\n"));
    assert_eq!(message(&lines.collect::<String>()), expected, "{log:?}");
}

#[test]
fn a_message_from_the_log_has_the_line_ends_of_the_container() {
    check(&[], "");
    check(&["F one", "F two"], "one\ntwo\n");
    check(&["F one", "P two"], "one\ntwo");
    check(&["P a long ", "F line", "F "], "a long line\n\n");
}

#[test]
fn a_message_from_the_log_is_bounded() {
    let lines: Vec<String> = (0..100).map(|number| format!("F {number}")).collect();
    let expected: String = (20..100).map(|number| format!("{number}\n")).collect();
    check(&lines.iter().map(String::as_str).collect::<Vec<_>>(), &expected);
    let long = "x".repeat(MESSAGE_OF_LOG + 100);
    check(&["F before", &format!("P {long}")], &long[100..]);
    // A character of two bytes is left out whole.
    let umlauts = "\u{fc}".repeat(MESSAGE_OF_LOG / 2);
    check(&[&format!("F {umlauts}")], &format!("{}\n", &umlauts[2..]));
}
