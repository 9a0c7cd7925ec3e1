//! Figures of several servers side by side.

use std::fmt::Write;

use fairlead_bench_kit::table::Figure;

use crate::measure::Row;

/// What the figures are, and of what.
const FIGURES: [(&str, &str); 9] = [
    ("CPU of an answer, fixed rate", "us"),
    ("answer, fixed rate, p50", "us"),
    ("answer, fixed rate, p99", "us"),
    ("CPU of an answer, flat out", "us"),
    ("answers, flat out", "/s"),
    ("answer, flat out, p50", "us"),
    ("answer, flat out, p99", "us"),
    ("memory", "MiB"),
    ("lost", ""),
];

/// A column for each server, and behind them how many times ours is theirs.
pub(crate) fn render(title: &str, rows: &[Row]) -> String {
    let mut text = format!("{title:<32}");
    rows.iter().for_each(|row| {
        let _ = write!(text, " {:>10}", row.name);
    });
    rows.iter().skip(1).for_each(|row| {
        let _ = write!(text, " {:>10}", format!("us/{}", row.name));
    });
    text.push('\n');
    for (at, (what, unit)) in FIGURES.iter().enumerate() {
        let _ = write!(text, "{:<32}", format!("{what}, {unit}").trim_end_matches(", "));
        let values: Vec<f64> = rows.iter().map(|row| row.figures[at]).collect();
        values.iter().for_each(|value| text.push_str(&format!(" {:>10}", number(*value))));
        values.iter().skip(1).for_each(|value| text.push_str(&format!(" {:>10}", ratio(values[0], *value))));
        text.push('\n');
    }
    text
}

/// The figures of one server, each with `title` in front.
pub(crate) fn figures(title: &str, row: Option<&Row>) -> Vec<Figure> {
    let values = row.map(|row| row.figures.as_slice()).unwrap_or_default();
    let figure = |((what, unit), value): (&(&str, &'static str), &f64)| Figure {
        what: format!("{title}: {what}"),
        value: *value,
        unit,
    };
    FIGURES.iter().zip(values).map(figure).collect()
}

/// How many times the first the last is, for each server.
pub(crate) fn growth(title: &str, first: &[Row], last: &[Row]) -> String {
    let mut text = format!("{title}\n");
    for at in [0, 3] {
        let _ = write!(text, "{:<32}", FIGURES[at].0);
        for (first, last) in first.iter().zip(last) {
            let _ = write!(text, " {:>10}", ratio(last.figures[at], first.figures[at]));
        }
        text.push('\n');
    }
    text
}

fn ratio(value: f64, of: f64) -> String {
    if of > 0.0 { format!("{:.2}", value / of) } else { "-".to_owned() }
}

fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests;
