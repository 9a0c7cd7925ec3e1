//! Figures of several load balancers side by side, and how many times theirs ours are.

use std::fmt::Write;

use fairlead_bench_kit::table::Figure as Row;

use crate::kinds::Kind;
use crate::measure::{Column, Figures};

/// Which of the figures.
type Figure = fn(&Figures) -> f64;

/// A block for each kind of traffic. `us/NAME` is ours divided by theirs.
pub(crate) fn render(columns: &[Column]) -> String {
    let mut text = String::new();
    if columns.len() == 1 {
        text.push_str("peer absent\n");
    }
    header(columns, &mut text);
    let kinds = columns.first().map(|column| column.figures.iter().map(|(kind, _)| *kind)).into_iter().flatten();
    for (at, kind) in kinds.enumerate() {
        let _ = writeln!(text, "{}", kind.title().0);
        let of =
            |figure: Figure| columns.iter().map(|column| column.figures[at].1.as_ref().map(figure)).collect::<Vec<_>>();
        for (what, unit, figure) in rows(kind) {
            let values = of(figure);
            // A stream has no answers to wait for.
            if values.iter().flatten().any(|value| *value > 0.0) {
                row(&format!("  {what}, {unit}"), &values, &mut text);
            }
        }
        let failed = of(|figures| figures.failed);
        if failed.iter().flatten().any(|failed| *failed > 0.0) {
            row("  failed", &failed, &mut text);
        }
    }
    row("memory before, MiB", &columns.iter().map(|column| Some(column.memory.0)).collect::<Vec<_>>(), &mut text);
    row("memory after, MiB", &columns.iter().map(|column| Some(column.memory.1)).collect::<Vec<_>>(), &mut text);
    text
}

/// Name, unit and value of each row of a kind of traffic.
fn rows(kind: Kind) -> [(String, &'static str, Figure); 4] {
    let (_, unit) = kind.title();
    [
        (format!("CPU a {unit}"), "us", |figures| figures.cpu),
        (format!("{unit}s"), "/s", |figures| figures.rate),
        ("p50".to_owned(), "us", |figures| figures.p50),
        ("p99".to_owned(), "us", |figures| figures.p99),
    ]
}

/// All rows of one load balancer, each with the name of its kind of traffic in front.
pub(crate) fn figures(column: &Column) -> Vec<Row> {
    let mut all = Vec::new();
    for (kind, figures) in &column.figures {
        let Some(figures) = figures else { continue };
        let title = kind.title().0;
        for (what, unit, value) in rows(*kind) {
            // A stream has no answers to wait for.
            if value(figures) > 0.0 {
                all.push(Row { what: format!("{title}: {what}"), value: value(figures), unit });
            }
        }
        all.push(Row { what: format!("{title}: failed"), value: figures.failed, unit: "" });
    }
    for (what, value) in [("memory before", column.memory.0), ("memory after", column.memory.1)] {
        all.push(Row { what: what.to_owned(), value, unit: "MiB" });
    }
    all
}

fn header(columns: &[Column], text: &mut String) {
    let _ = write!(text, "{:<36}", "");
    for column in columns {
        let _ = write!(text, " {:>10}", column.name);
    }
    for column in columns.iter().skip(1) {
        let _ = write!(text, " {:>10}", format!("us/{}", column.name));
    }
    text.push('\n');
}

fn row(what: &str, values: &[Option<f64>], text: &mut String) {
    let _ = write!(text, "{what:<36}");
    for value in values {
        let shown = value.map_or("-".to_owned(), number);
        let _ = write!(text, " {shown:>10}");
    }
    for other in values.iter().skip(1) {
        let ratio = match (values[0], *other) {
            (Some(ours), Some(theirs)) if theirs > 0.0 => format!("{:.2}", ours / theirs),
            _ => "-".to_owned(),
        };
        let _ = write!(text, " {ratio:>10}");
    }
    text.push('\n');
}

/// Three digits that say something.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
