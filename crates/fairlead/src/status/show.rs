//! A status in words, on one screen.

use std::fmt::Write;

use super::Status;
use super::look::{NodeState, Trouble};
use crate::pods::list::aligned;

/// So many Services with something wrong are named; `fairlead explain` has the rest.
const NAMED: usize = 10;

/// All of it.
pub(super) fn text(status: &Status) -> String {
    let mut text = format!("API server {} answers.\n", status.server);
    services(&mut text, status);
    let _ = writeln!(text);
    nodes(&mut text, &status.nodes);
    if !status.leaders.is_empty() {
        let _ = writeln!(text, "\nControllers");
        for leader in &status.leaders {
            let _ = writeln!(text, "  ✓ {}: {}", leader.lease, leader.holder);
        }
    }
    let _ = writeln!(text, "\nThis machine");
    for part in &status.here {
        let _ = writeln!(text, "  {} {}: {}", if part.runs { '✓' } else { '·' }, part.name, part.says);
    }
    text
}

fn services(text: &mut String, status: &Status) {
    let tally = &status.services;
    let all = tally.well + tally.warnings.len() + tally.broken.len();
    let _ = writeln!(
        text,
        "\nServices: {all}, of which {} broken and {} with a warning",
        tally.broken.len(),
        tally.warnings.len()
    );
    let marked = |mark: char| move |trouble| (mark, trouble);
    let troubles: Vec<(char, &Trouble)> =
        tally.broken.iter().map(marked('✗')).chain(tally.warnings.iter().map(marked('!'))).collect();
    for (mark, trouble) in troubles.iter().take(NAMED) {
        let _ = writeln!(text, "  {mark} {}: {}", trouble.service, trouble.message);
    }
    if troubles.len() > NAMED {
        let _ = writeln!(text, "  … and {} more", troubles.len() - NAMED);
    }
    if let Some((_, first)) = troubles.first() {
        let (namespace, name) = first.service.split_once('/').unwrap_or(("default", &first.service));
        let _ = writeln!(text, "  fairlead explain svc/{name} -n {namespace}    # says why, and what to do");
    }
}

fn nodes(text: &mut String, nodes: &[NodeState]) {
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
    text.push_str(&aligned(&rows));
    for node in nodes {
        if let Some(trouble) = &node.trouble {
            let _ = writeln!(text, "  ✗ {}: {trouble}", node.name);
        }
    }
}
