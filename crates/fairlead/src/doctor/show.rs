//! What a machine has, in words: an area after the other, what is wrong with its remedy below it.

use std::fmt::Write;

use super::{Check, State, worst};
use crate::objects::table::one_line;
use crate::paint::{Paint, Tone};

/// All checks as text. Programs choose what they are called, so their names are not trusted.
pub(super) fn text(checks: &[Check], paint: Paint) -> String {
    let mut text = String::new();
    let mut area = "";
    for check in checks {
        if check.area != area {
            area = check.area;
            let _ = writeln!(text, "{}", paint.tone(Tone::Strong, area));
        }
        let (mark, tone) = mark(check.state);
        let _ = writeln!(text, "  {} {}", paint.tone(tone, mark), one_line(&check.finding));
        for line in &check.remedy {
            let _ = writeln!(text, "      {}", one_line(line));
        }
    }
    let tone = if worst(checks) <= State::Note { Tone::Good } else { mark(worst(checks)).1 };
    let _ = writeln!(text, "\n{}", paint.tone(tone, &summary(checks)));
    text
}

fn mark(state: State) -> (&'static str, Tone) {
    match state {
        State::Ok => ("✓", Tone::Good),
        State::Note => ("·", Tone::Faint),
        State::Unknown => ("?", Tone::Fair),
        State::Warn => ("!", Tone::Fair),
        State::Bad => ("✗", Tone::Bad),
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
