//! `fairlead ps`: which Pods there are.

use std::io::Write;

use anyhow::Context;
use clap::Args;
use fairlead_api::{Look, kinds};
use serde_json::Value;

use super::Place;
use crate::objects::table::one_line;

/// How many of the columns the API server offers are shown: up to the Node.
const COLUMNS: usize = 7;

/// The options of `fairlead ps`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PsFlags {
    #[command(flatten)]
    place: Place,
    /// Those of all namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,
}

/// Prints Pods.
pub(crate) async fn run(flags: PsFlags) -> anyhow::Result<()> {
    let namespace = if flags.all_namespaces { "" } else { flags.place.namespace.as_str() };
    let table = flags.place.cluster().await?.table(&kinds::POD, namespace).await?;
    let mut rows = vec![head(&table, flags.all_namespaces)];
    rows.extend(table.list("rows").iter().map(|row| cells(row, flags.all_namespaces)));
    if rows.len() == 1 {
        writeln!(std::io::stdout(), "No Pods.")?;
        return Ok(());
    }
    std::io::stdout().write_all(aligned(&rows).as_bytes()).context("printing")
}

fn head(table: &Value, namespaces: bool) -> Vec<String> {
    let names = table.list("columnDefinitions").iter().take(COLUMNS);
    let names = names.map(|column| column.text("name").to_uppercase());
    namespaces.then(|| "NAMESPACE".to_owned()).into_iter().chain(names).collect()
}

fn cells(row: &Value, namespaces: bool) -> Vec<String> {
    let namespace = row.at("object").at("metadata").text("namespace").to_owned();
    let text = |cell: &Value| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned);
    let cells = row.list("cells").iter().take(COLUMNS).map(text);
    namespaces.then_some(namespace).into_iter().chain(cells).collect()
}

/// Rows as lines, each column as wide as its widest cell.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("   ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::aligned;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["NAME", "IP"], ["web-1", "10.244.0.5"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(aligned(&rows), "NAME    IP\nweb-1   10.244.0.5\n");
    }

    #[test]
    fn cells_move_neither_the_terminal_nor_other_lines() {
        assert_eq!(aligned(&[vec!["a\u{1b}]0;x\u{7}\nb".to_owned()]]), "a^[]0;x\\u{7} b\n");
    }
}
