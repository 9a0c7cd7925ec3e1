//! Figures of several load balancers side by side, and how many times theirs ours are.

use std::fmt::Write;

use crate::measure::{Column, Figures};

/// A block for each kind of traffic. `us/NAME` is ours divided by theirs.
pub(crate) fn render(columns: &[Column]) -> String {
    let mut text = String::new();
    if columns.len() == 1 {
        text.push_str("peer absent\n");
    }
    header(columns, &mut text);
    let kinds = columns.first().map(|column| column.figures.iter().map(|(kind, _)| *kind)).into_iter().flatten();
    for (at, kind) in kinds.enumerate() {
        let (title, unit) = kind.title();
        let _ = writeln!(text, "{title}");
        let rows: [(String, fn(&Figures) -> f64); 4] = [
            (format!("  CPU a {unit}, us"), |figures| figures.cpu),
            (format!("  {unit}s a second"), |figures| figures.rate),
            ("  p50, us".to_owned(), |figures| figures.p50),
            ("  p99, us".to_owned(), |figures| figures.p99),
        ];
        let of = |figure: fn(&Figures) -> f64| {
            columns.iter().map(|column| column.figures[at].1.as_ref().map(figure)).collect::<Vec<_>>()
        };
        rows.iter().for_each(|(what, figure)| row(what, &of(*figure), &mut text));
        let failed = of(|figures| figures.failed);
        if failed.iter().flatten().any(|failed| *failed > 0.0) {
            row("  failed", &failed, &mut text);
        }
    }
    row("memory before, MiB", &columns.iter().map(|column| Some(column.memory.0)).collect::<Vec<_>>(), &mut text);
    row("memory after, MiB", &columns.iter().map(|column| Some(column.memory.1)).collect::<Vec<_>>(), &mut text);
    text
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
