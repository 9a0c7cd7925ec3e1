//! The difference of two texts, line by line, as `diff -u` shows it.

/// Lines around a difference that are shown.
const CONTEXT: usize = 3;
/// Texts whose lines multiply to more are not compared line by line in their middle: it would take too long.
const MOST: usize = 4_000_000;

/// A line of the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'t> {
    /// Both have it.
    Same(&'t str),
    /// Only the first has it.
    Gone(&'t str),
    /// Only the second has it.
    New(&'t str),
}

impl Line<'_> {
    /// As it is printed.
    pub(super) fn text(self) -> String {
        match self {
            Line::Same(line) => format!(" {line}"),
            Line::Gone(line) => format!("-{line}"),
            Line::New(line) => format!("+{line}"),
        }
    }
}

/// Every line of both, in order.
pub(super) fn compare<'t>(before: &'t str, after: &'t str) -> Vec<Line<'t>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(old, new)| old == new).count();
    let (middle_old, middle_new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut lines: Vec<Line<'_>> = old[..head].iter().map(|line| Line::Same(line)).collect();
    lines.extend(middle(middle_old, middle_new));
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    lines
}

/// By the longest common sequence of lines.
fn middle<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let all_different =
        || old.iter().map(|line| Line::Gone(line)).chain(new.iter().map(|line| Line::New(line))).collect();
    let width = new.len() + 1;
    if old.len().saturating_mul(new.len()) > MOST {
        return all_different();
    }
    // longest[i * width + j]: how many lines old[i..] and new[j..] have in common.
    let mut longest = vec![0u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i * width + j] = match old[i] == new[j] {
                true => longest[(i + 1) * width + j + 1] + 1,
                false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
            lines.push(Line::Gone(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
    lines
}

/// The differences with what stands around them, each under a line that says where it is.
pub(super) fn hunks<'l, 't>(lines: &'l [Line<'t>]) -> Vec<(String, &'l [Line<'t>])> {
    let changed: Vec<usize> =
        lines.iter().enumerate().filter(|(_, line)| !matches!(line, Line::Same(_))).map(|(at, _)| at).collect();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for at in changed {
        let (from, to) = (at.saturating_sub(CONTEXT), (at + CONTEXT + 1).min(lines.len()));
        match ranges.last_mut() {
            Some((_, end)) if from <= *end => *end = to,
            _ => ranges.push((from, to)),
        }
    }
    let count = |lines: &[Line<'_>], gone: bool| {
        lines.iter().filter(|line| !matches!((line, gone), (Line::New(_), true) | (Line::Gone(_), false))).count()
    };
    let place = |from: usize, to: usize, old: bool| {
        let (before, inside) = (count(&lines[..from], old), count(&lines[from..to], old));
        if inside == 0 { format!("{before},0") } else { format!("{},{inside}", before + 1) }
    };
    let hunk = |(from, to): (usize, usize)| {
        (format!("@@ -{} +{} @@", place(from, to, true), place(from, to, false)), &lines[from..to])
    };
    ranges.into_iter().map(hunk).collect()
}
