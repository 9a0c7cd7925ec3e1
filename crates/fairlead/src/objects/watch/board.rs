//! The table of a watch: what is there, what has just changed, what has just gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::super::table::{Row, Widths};
use crate::paint::{Paint, Tone};

#[cfg(test)]
mod tests;

/// A change is marked so long.
const FRESH: Duration = Duration::from_secs(5);

/// What happened to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Same,
    New,
    Changed,
    Gone,
}

impl Mark {
    fn sign(self) -> &'static str {
        match self {
            Mark::Same => " ",
            Mark::New => "+",
            Mark::Changed => "~",
            Mark::Gone => "-",
        }
    }

    fn tone(self) -> Option<Tone> {
        match self {
            Mark::Same => None,
            Mark::New => Some(Tone::Good),
            Mark::Changed => Some(Tone::Fair),
            Mark::Gone => Some(Tone::Bad),
        }
    }
}

#[derive(Debug)]
struct Entry {
    row: Row,
    mark: Mark,
    since: Instant,
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Board {
    head: Vec<String>,
    entries: BTreeMap<(String, String), Entry>,
    widths: Widths,
    /// Whether there was a list before: then what is new is marked.
    listed: bool,
    headed: bool,
}

impl Board {
    /// The names of columns; later answers may leave them out.
    pub(super) fn head(&mut self, head: Vec<String>) {
        if !head.is_empty() {
            self.head = head;
        }
    }

    /// Everything that is there.
    pub(super) fn replace(&mut self, rows: Vec<Row>, now: Instant) -> Vec<(Mark, Vec<String>)> {
        let there: BTreeSet<&(String, String)> = rows.iter().map(|row| &row.key).collect();
        let gone = self.entries.values().filter(|entry| !there.contains(&entry.row.key));
        let gone: Vec<Row> = gone.map(|entry| entry.row.clone()).collect();
        let mut changes: Vec<_> = gone.into_iter().filter_map(|row| self.remove(row, now)).collect();
        changes.extend(rows.into_iter().filter_map(|row| self.put(row, now)));
        self.listed = true;
        changes
    }

    /// An object as it is now.
    pub(super) fn put(&mut self, row: Row, now: Instant) -> Option<(Mark, Vec<String>)> {
        let before = self.entries.get(&row.key).filter(|entry| entry.mark != Mark::Gone);
        let mark = match before {
            Some(entry) if self.same(&entry.row, &row) => return None,
            Some(_) => Mark::Changed,
            None if self.listed => Mark::New,
            None => Mark::Same,
        };
        let cells = row.cells.clone();
        self.entries.insert(row.key.clone(), Entry { row, mark, since: now });
        Some((mark, cells))
    }

    /// An object that is gone.
    pub(super) fn remove(&mut self, row: Row, now: Instant) -> Option<(Mark, Vec<String>)> {
        let cells = row.cells.clone();
        self.entries.insert(row.key.clone(), Entry { row, mark: Mark::Gone, since: now });
        Some((Mark::Gone, cells))
    }

    /// Whether rows differ in nothing but how old they are.
    fn same(&self, a: &Row, b: &Row) -> bool {
        let age = self.age_column();
        let others = |row: &Row| {
            let cells = row.cells.iter().enumerate().filter(|(at, _)| Some(*at) != age);
            cells.map(|(_, cell)| cell.clone()).collect::<Vec<_>>()
        };
        others(a) == others(b)
    }

    fn age_column(&self) -> Option<usize> {
        self.head.iter().position(|name| name == "AGE")
    }

    /// Lets time pass: ages grow, marks fade, what is gone disappears.
    pub(super) fn age(&mut self, now: Instant, age: impl Fn(&str) -> String) {
        let column = self.age_column();
        self.entries.retain(|_, entry| entry.mark != Mark::Gone || now < entry.since + FRESH);
        for entry in self.entries.values_mut() {
            if now >= entry.since + FRESH {
                entry.mark = Mark::Same;
            }
            let created = !entry.row.created.is_empty() && entry.mark != Mark::Gone;
            if let Some(cell) = column.filter(|_| created).and_then(|at| entry.row.cells.get_mut(at)) {
                *cell = age(&entry.row.created);
            }
        }
    }

    /// The whole table, as it fits a terminal.
    pub(super) fn render(&mut self, columns: usize, rows: usize) -> String {
        if self.entries.is_empty() {
            return "  (nothing yet)\n".to_owned();
        }
        let cells = self.entries.values().map(|entry| entry.row.cells.as_slice());
        self.widths.fit(std::iter::once(self.head.as_slice()).chain(cells));
        let paint = Paint::stdout();
        let room = rows.saturating_sub(3).max(1);
        let mut text = format!("  {}\n", paint.tone(Tone::Strong, &self.cut(&self.head, columns)));
        for entry in self.entries.values().take(room) {
            let line = self.cut(&entry.row.cells, columns);
            let line = format!("{} {line}", entry.mark.sign());
            let line = entry.mark.tone().map_or_else(|| line.clone(), |tone| paint.tone(tone, &line));
            text.push_str(&format!("{line}\n"));
        }
        if self.entries.len() > room {
            text.push_str(&format!("  and {} more\n", self.entries.len() - room));
        }
        text
    }

    /// A row, cut where the terminal ends.
    fn cut(&self, row: &[String], columns: usize) -> String {
        let line = self.widths.line(row, |_, cell| cell.to_owned());
        line.trim_end().chars().take(columns.saturating_sub(3)).collect()
    }

    /// Changes as lines, for who reads them one by one.
    pub(super) fn lines(&mut self, changes: &[(Mark, Vec<String>)]) -> String {
        let head = (!self.headed && !changes.is_empty()).then(|| self.head.clone());
        self.headed |= head.is_some();
        let marked = |mark: Mark, cells: &[String]| {
            let mut cells = cells.to_vec();
            if let Some(first) = cells.first_mut() {
                *first = format!("{} {first}", mark.sign());
            }
            cells
        };
        let rows: Vec<Vec<String>> = head
            .iter()
            .map(|head| marked(Mark::Same, head))
            .chain(changes.iter().map(|(mark, cells)| marked(*mark, cells)))
            .collect();
        self.widths.fit(rows.iter().map(Vec::as_slice));
        rows.iter().map(|row| self.widths.line(row, |_, cell| cell.to_owned())).collect()
    }
}
