//! A status in words, on one screen.

use std::fmt::Write;

use super::Status;
use super::look::{NodeState, Trouble};
use crate::objects::table::{self, one_line};
use crate::paint::{Paint, Tone};

#[cfg(test)]
mod tests;

/// So many Services with something wrong are named; `fairlead explain` has the rest.
const NAMED: usize = 10;
/// The column of Nodes that says how they are.
const STATE: usize = 1;

/// All of it.
pub(super) fn text(status: &Status, paint: Paint) -> String {
    let mut text = format!("API server {} answers.\n", one_line(&status.server));
    services(&mut text, status, paint);
    let _ = writeln!(text);
    nodes(&mut text, &status.nodes, paint);
    if !status.leaders.is_empty() {
        let _ = writeln!(text, "\n{}", paint.tone(Tone::Strong, "Controllers"));
        for leader in &status.leaders {
            line(&mut text, Mark::Good, &format!("{}: {}", leader.lease, leader.holder), paint);
        }
    }
    let _ = writeln!(text, "\n{}", paint.tone(Tone::Strong, "This machine"));
    for part in &status.here {
        let mark = if part.runs { Mark::Good } else { Mark::Absent };
        line(&mut text, mark, &format!("{}: {}", part.name, part.says), paint);
    }
    text
}

/// What stands before a line.
#[derive(Debug, Clone, Copy)]
enum Mark {
    Good,
    Fair,
    Bad,
    Absent,
}

/// A line with its mark. Others may have written a part of it.
fn line(text: &mut String, mark: Mark, words: &str, paint: Paint) {
    let (mark, tone) = match mark {
        Mark::Good => ("✓", Tone::Good),
        Mark::Fair => ("!", Tone::Fair),
        Mark::Bad => ("✗", Tone::Bad),
        Mark::Absent => ("·", Tone::Faint),
    };
    let _ = writeln!(text, "  {} {}", paint.tone(tone, mark), one_line(words));
}

fn services(text: &mut String, status: &Status, paint: Paint) {
    let tally = &status.services;
    let all = tally.well + tally.warnings.len() + tally.broken.len();
    let _ = writeln!(
        text,
        "\n{}: {all}, of which {} broken and {} with a warning",
        paint.tone(Tone::Strong, "Services"),
        tally.broken.len(),
        tally.warnings.len()
    );
    let marked = |mark: Mark| move |trouble| (mark, trouble);
    let troubles: Vec<(Mark, &Trouble)> =
        tally.broken.iter().map(marked(Mark::Bad)).chain(tally.warnings.iter().map(marked(Mark::Fair))).collect();
    for (mark, trouble) in troubles.iter().take(NAMED) {
        line(text, *mark, &format!("{}: {}", trouble.service, trouble.message), paint);
    }
    if troubles.len() > NAMED {
        let _ = writeln!(text, "  … and {} more", troubles.len() - NAMED);
    }
    if let Some((_, first)) = troubles.first() {
        let (namespace, name) = first.service.split_once('/').unwrap_or(("default", &first.service));
        let _ = writeln!(text, "  fairlead explain svc/{name} -n {namespace}    # says why, and what to do");
    }
}

fn nodes(text: &mut String, nodes: &[NodeState], paint: Paint) {
    if nodes.is_empty() {
        let _ = writeln!(text, "No Nodes.");
        return;
    }
    let head = ["NODE", "STATE", "PROXY", "PODS", "ADDRESSES"].map(str::to_owned).to_vec();
    let row = |node: &NodeState| {
        vec![
            node.name.clone(),
            if node.ready { "ready" } else { "not ready" }.to_owned(),
            node.proxy.clone().unwrap_or_else(|| "-".to_owned()),
            node.pods.to_string(),
            node.addresses.join(","),
        ]
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(nodes.iter().map(row)).collect();
    text.push_str(&table::lines(&rows, paint, |column, cell| match (column, cell) {
        (STATE, "ready") => paint.tone(Tone::Good, cell),
        (STATE, _) => paint.tone(Tone::Bad, cell),
        _ => cell.to_owned(),
    }));
    for node in nodes {
        if let Some(trouble) = &node.trouble {
            line(text, Mark::Bad, &format!("{}: {trouble}", node.name), paint);
        }
    }
}
