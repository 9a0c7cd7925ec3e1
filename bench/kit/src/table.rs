//! Figures as a table.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

/// One number.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What it is.
    pub what: String,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
}

/// Ours, and beside it the peer's and how many times more it is, if it was measured.
pub fn render(ours: &[Figure], peer: Option<&[Figure]>) -> String {
    let mut text = String::new();
    let _ = match peer {
        Some(_) => writeln!(text, "{:<44} {:>12} {:>12} {:>8}  unit", "", "fairlead", "peer", "peer/us"),
        None => writeln!(text, "peer absent\n{:<44} {:>12}  unit", "", "fairlead"),
    };
    for figure in ours {
        let _ = write!(text, "{:<44} {:>12}", figure.what, number(figure.value));
        if let Some(other) = peer.and_then(|peer| peer.iter().find(|other| other.what == figure.what)) {
            let ratio = other.value / figure.value;
            let _ = write!(text, " {:>12} {:>8}", number(other.value), number(ratio));
        }
        let _ = writeln!(text, "  {}", figure.unit);
    }
    text
}

/// Writes figures to a file for `bench/compare`: a line for each, its fields (row, value, unit)
/// separated by tabs.
pub fn write(path: &Path, figures: &[Figure]) -> io::Result<()> {
    let line = |figure: &Figure| format!("{}\t{}\t{}\n", figure.what, figure.value, figure.unit);
    fs::write(path, figures.iter().map(line).collect::<String>())
}

/// Three digits that say something.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests;
