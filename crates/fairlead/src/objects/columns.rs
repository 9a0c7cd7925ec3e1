//! Text with tabs in it, aligned as kubectl aligns what it describes: the cells of a column are as wide as the widest of their
//! neighbours above and below.

#[cfg(test)]
mod tests;

/// Blanks between columns.
const GAP: usize = 2;

/// The text, with blanks for tabs.
pub(super) fn align(text: &str) -> String {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let mut page = Page { lines: &lines, widths: Vec::new(), out: String::new() };
    page.format(0, lines.len());
    page.out
}

struct Page<'a> {
    lines: &'a [Vec<&'a str>],
    /// Of the columns on the left.
    widths: Vec<usize>,
    out: String,
}

impl Page<'_> {
    /// Writes some lines whose columns on the left are known. A line has no more columns than a bounded text has tabs.
    fn format(&mut self, mut from: usize, to: usize) {
        let column = self.widths.len();
        // What stands behind the last tab belongs to no column.
        let has_cell = |line: &Vec<&str>| column + 1 < line.len();
        let mut at = from;
        while at < to {
            if !has_cell(&self.lines[at]) {
                at += 1;
                continue;
            }
            self.write(from, at);
            from = at;
            while at < to && has_cell(&self.lines[at]) {
                at += 1;
            }
            let widest = self.lines[from..at].iter().map(|line| line[column].chars().count()).max();
            self.widths.push(widest.unwrap_or_default() + GAP);
            self.format(from, at);
            self.widths.pop();
            from = at;
        }
        self.write(from, to);
    }

    fn write(&mut self, from: usize, to: usize) {
        for line in &self.lines[from..to] {
            for (at, cell) in line.iter().enumerate() {
                self.out.push_str(cell);
                if let Some(width) = self.widths.get(at) {
                    self.out.push_str(&" ".repeat(width.saturating_sub(cell.chars().count())));
                }
            }
            self.out.push('\n');
        }
    }
}
