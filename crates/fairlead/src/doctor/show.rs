//! What a machine has, in words: an area after the other, what is wrong with its remedy below it.

use std::fmt::Write;

use super::{Check, State};

/// All checks as text.
pub(super) fn text(checks: &[Check]) -> String {
    let mut text = String::new();
    let mut area = "";
    for check in checks {
        if check.area != area {
            area = check.area;
            let _ = writeln!(text, "{area}");
        }
        let _ = writeln!(text, "  {} {}", mark(check.state), check.finding);
        for line in &check.remedy {
            let _ = writeln!(text, "      {line}");
        }
    }
    let _ = writeln!(text, "\n{}", summary(checks));
    text
}

fn mark(state: State) -> char {
    match state {
        State::Ok => '✓',
        State::Note => '·',
        State::Unknown => '?',
        State::Warn => '!',
        State::Bad => '✗',
    }
}

fn summary(checks: &[Check]) -> String {
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let some = |number: usize, word: &str| match number {
        0 => None,
        1 => Some(format!("1 {word}")),
        number => Some(format!("{number} {word}s")),
    };
    let parts = [
        some(count(State::Bad), "problem"),
        some(count(State::Warn), "warning"),
        some(count(State::Unknown), "thing").map(|things| format!("{things} could not be looked at")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "Nothing stands in the way.".to_owned() } else { format!("{}.", parts.join(", ")) }
}
