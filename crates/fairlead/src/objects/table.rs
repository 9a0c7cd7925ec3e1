//! Tables as kubectl prints them: what the server says of each object, columns as wide as they must be.

use fairlead_api::{Look, age};
use serde_json::{Value, json};

use crate::paint::{Paint, Tone};

#[cfg(test)]
mod tests;

/// No column is narrower.
const NARROWEST: usize = 6;
/// Blanks between columns.
const GAP: usize = 3;

/// How a table is to look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Design {
    /// Columns that are left out as a rule, too.
    pub(super) wide: bool,
    /// With the namespace of each object.
    pub(super) namespaces: bool,
    /// With all labels of each object.
    pub(super) labels: bool,
    /// Labels with a column of their own.
    pub(super) label_columns: Vec<String>,
    /// What stands before each name: `service/`.
    pub(super) prefix: String,
}

/// Rows of text under a head, each cell where its column is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// Names of columns.
    pub(super) head: Vec<String>,
    /// Cells.
    pub(super) rows: Vec<Row>,
}

/// A row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Whose it is: namespace and name.
    pub(super) key: (String, String),
    /// When the object was made.
    pub(super) created: String,
    /// Its resourceVersion.
    pub(super) revision: String,
    /// The cells.
    pub(super) cells: Vec<String>,
}

impl Table {
    /// The table the server made; of objects it made none of, name and age.
    pub(super) fn read(answer: &Value, design: &Design, now: i64) -> Table {
        if answer.text("kind") == "Table" {
            return Table::designed(answer, design);
        }
        Table::designed(&plain(answer, now), design)
    }

    fn designed(table: &Value, design: &Design) -> Table {
        let columns: Vec<&Value> = table.list("columnDefinitions").iter().collect();
        let shown = |column: &Value| design.wide || column.int("priority") == 0;
        let namespace = design.namespaces.then(|| "NAMESPACE".to_owned());
        let names = columns.iter().filter(|column| shown(column)).map(|column| column.text("name").to_uppercase());
        let labels = design.label_columns.iter().map(|label| last_part(label).to_uppercase());
        let all = design.labels.then(|| "LABELS".to_owned());
        let head = namespace.into_iter().chain(names).chain(labels).chain(all).collect();
        let name = columns.iter().position(|column| column.text("format") == "name" && column.text("type") == "string");
        let rows = table.list("rows").iter().map(|row| {
            let metadata = row.at("object").at("metadata");
            let named = |at: usize, cell: &Value| match Some(at) == name {
                true => format!("{}{}", design.prefix, text(cell)),
                false => text(cell),
            };
            let cells = row.list("cells").iter().zip(&columns).enumerate();
            let cells = cells.filter(|(_, (_, column))| shown(column)).map(|(at, (cell, _))| named(at, cell));
            let namespace = design.namespaces.then(|| metadata.text("namespace").to_owned());
            let cells = namespace.into_iter().chain(cells).chain(labels_of(metadata, design)).collect();
            Row {
                key: (metadata.text("namespace").to_owned(), metadata.text("name").to_owned()),
                created: metadata.text("creationTimestamp").to_owned(),
                revision: metadata.text("resourceVersion").to_owned(),
                cells,
            }
        });
        Table { rows: rows.collect(), head }
    }
}

/// The columns of the last table. In a watch, only the first table has them.
#[derive(Debug, Default)]
pub(super) struct Columns(Option<Value>);

impl Columns {
    /// Gives a table without columns those of the one before.
    pub(super) fn complete(&mut self, answer: &mut Value) {
        if answer.text("kind") != "Table" {
            return;
        }
        match &self.0 {
            Some(last) if answer.list("columnDefinitions").is_empty() => answer.set("columnDefinitions", last.clone()),
            _ => self.0 = answer.get("columnDefinitions").cloned(),
        }
    }
}

/// How wide columns are. They never get narrower, so that rows that come later stand below the earlier ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Widths(Vec<usize>);

impl Widths {
    /// Makes room for more rows.
    pub(super) fn fit<'a>(&mut self, rows: impl IntoIterator<Item = &'a [String]>) {
        for row in rows {
            // What stands at the end of a line needs no room.
            for (at, cell) in row.iter().enumerate().take(row.len().saturating_sub(1)) {
                if self.0.len() <= at {
                    self.0.push(NARROWEST);
                }
                self.0[at] = self.0[at].max(cell.chars().count() + GAP);
            }
        }
    }

    /// A row as a line; `paint` is told each cell with its column, and may add what takes no room.
    pub(super) fn line(&self, row: &[String], paint: impl Fn(usize, &str) -> String) -> String {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            line.push_str(&paint(at, cell));
            if at + 1 < row.len() {
                let width = self.0.get(at).copied().unwrap_or_default();
                line.push_str(&" ".repeat(width.saturating_sub(cell.chars().count())));
            }
        }
        line.push('\n');
        line
    }
}

/// Name and age of objects, as a table.
fn plain(answer: &Value, now: i64) -> Value {
    let objects = match answer.get("items") {
        Some(_) => answer.list("items"),
        None => std::slice::from_ref(answer),
    };
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let metadata = object.at("metadata");
            let cells = [metadata.text("name").to_owned(), age::age(metadata.text("creationTimestamp"), now)];
            json!({"cells": cells, "object": {"metadata": metadata}})
        })
        .collect();
    let name = json!({"name": "Name", "type": "string", "format": "name"});
    json!({"columnDefinitions": [name, {"name": "Age", "type": "string"}], "rows": rows})
}

fn labels_of<'a>(metadata: &'a Value, design: &'a Design) -> impl Iterator<Item = String> + 'a {
    let labels = metadata.at("labels");
    let own = design.label_columns.iter().map(|label| labels.text(label).to_owned());
    own.chain(design.labels.then(|| {
        let mut all: Vec<String> = metadata.map("labels").into_iter().flatten().map(pair).collect();
        all.sort();
        if all.is_empty() { "<none>".to_owned() } else { all.join(",") }
    }))
}

fn pair((key, value): (&String, &Value)) -> String {
    format!("{key}={}", value.as_str().unwrap_or_default())
}

/// What people read of a cell: one line, and nothing a terminal would obey.
fn text(cell: &Value) -> String {
    let whole = match cell {
        Value::Null => return String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let line = whole.split(['\n', '\r', '\u{c}']).next().unwrap_or_default();
    let cut = if line.len() < whole.len() { "..." } else { "" };
    format!("{}{cut}", harmless(line))
}

/// A text without what a terminal would obey: what others wrote may not change a title, a colour or the lines above. Escapes and
/// carriage returns look as kubectl shows them.
pub(crate) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\u{1b}' => out.push_str("^["),
            '\r' => out.push_str("\\r"),
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() => out.extend(letter.escape_default()),
            letter => out.push(letter),
        }
    }
    out
}

/// The same on one line.
pub(crate) fn one_line(text: &str) -> String {
    harmless(text).replace('\n', " ")
}

/// Rows as a table, the first of which names the columns; `cell` paints those of the others, told with their column.
pub(crate) fn lines(rows: &[Vec<String>], paint: Paint, cell: impl Fn(usize, &str) -> String) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
    let mut widths = Widths::default();
    widths.fit(rows.iter().map(Vec::as_slice));
    let line = |(at, row): (usize, &Vec<String>)| match at {
        0 => widths.line(row, |_, name| paint.tone(Tone::Strong, name)),
        _ => widths.line(row, &cell),
    };
    // Columns at the end may be empty.
    rows.iter().enumerate().map(|row| line(row).trim_end().to_owned() + "\n").collect()
}

/// `name` of `app.kubernetes.io/name`.
fn last_part(label: &str) -> &str {
    label.rsplit('/').next().unwrap_or(label)
}
