//! Whether a command printed what the page shows, where some things differ from run to run by their nature.
//!
//! | in the page | in a run |
//! |---|---|
//! | a line `...` | any lines, or none |
//! | `...` or `…` in a line | any text |
//! | blanks | as many blanks as there are |
//! | a duration, a date | another one |
//! | `deleted`, of kubectl | `deleted from NAME namespace`, which newer ones say |
//! | an address, port, name or number that was given out | another one, but from then on the same, also in commands |

use std::collections::BTreeMap;

use regex::Regex;

/// What differs, most special first. What is named `free` may differ each time.
const CLASSES: &[(&str, &str)] = &[
    ("free", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"),
    ("free", r"\b\d{4}-\d\d-\d\d\b"),
    ("free", r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b"),
    ("free", r"\b(?:\d+d)?(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)? ?(?:us|µs|ms|s|m|h|d)\b"),
    ("uid", r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    ("token", r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b"),
    ("cluster", r"\b10\.96\.\d{1,3}\.\d{1,3}\b"),
    ("cluster6", r"\bfd00:96::[0-9a-f:]+\b"),
    ("pod", r"\b10\.244\.\d{1,3}\.\d{1,3}\b"),
    ("pod6", r"\bfd00:244:[0-9a-f:]+\b"),
    ("number", r"\b[0-9a-f]{8,}\b"),
    ("port", r"\b[3-6]\d{4}\b"),
    ("name", r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b"),
];

/// What stood for what so far on a page.
#[derive(Debug, Default)]
pub(crate) struct Bindings(BTreeMap<String, String>);

impl Bindings {
    /// A command of the page, with what was given out in this run.
    pub(crate) fn command(&self, text: &str) -> String {
        let classes = classes();
        let own = |found: &regex::Captures<'_>| self.0.get(&found[0]).unwrap_or(&found[0].to_owned()).clone();
        classes.replace_all(text, own).into_owned()
    }

    /// Whether this is what the page shows; remembers what was given out if so.
    pub(crate) fn take(&mut self, expected: &[String], printed: &str) -> bool {
        let printed = newer().replace_all(printed.trim_end(), "deleted");
        let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
        let expected: Vec<_> = expected.iter().map(|line| newer().replace_all(line, "deleted")).collect();
        let expected: Vec<&str> = expected.iter().map(AsRef::as_ref).collect();
        let end = expected.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        match lines(&self.0, &expected[..end], &printed) {
            Some(bound) => {
                self.0 = bound;
                true
            }
            None => false,
        }
    }
}

/// What kubectl says from 1.33 on.
fn newer() -> Regex {
    Regex::new(r"deleted from \S+ namespace").expect("it is one")
}

/// What stands for what once these lines are found to be those; `None`: they are not.
fn lines(bound: &BTreeMap<String, String>, expected: &[&str], printed: &[&str]) -> Option<BTreeMap<String, String>> {
    let Some((first, rest)) = expected.split_first() else {
        return printed.is_empty().then(|| bound.clone());
    };
    if first.trim() == "..." {
        return (0..=printed.len()).find_map(|skip| lines(bound, rest, &printed[skip..]));
    }
    let (now, later) = printed.split_first()?;
    lines(&line(bound, first, now)?, rest, later)
}

fn line(bound: &BTreeMap<String, String>, expected: &str, printed: &str) -> Option<BTreeMap<String, String>> {
    let (mut pattern, mut names, mut at) = ("^".to_owned(), Vec::new(), 0);
    for found in classes().captures_iter(expected) {
        let whole = found.get(0).expect("group 0 is the whole");
        pattern += &literal(&expected[at..whole.start()]);
        at = whole.end();
        let class = CLASSES.iter().enumerate().find(|(index, _)| found.name(&format!("c{index}")).is_some());
        let (_, (kind, form)) = class.expect("one alternative has matched");
        match bound.get(whole.as_str()) {
            Some(value) => pattern += &regex::escape(value),
            None if *kind == "free" => pattern += form,
            None => {
                pattern += &format!("({form})");
                names.push(whole.as_str());
            }
        }
    }
    pattern += &literal(&expected[at..]);
    let found = Regex::new(&(pattern + "$")).expect("it is made of escaped pieces").captures(printed)?;
    let mut bound = bound.clone();
    for (index, name) in names.iter().enumerate() {
        let value = found[index + 1].to_owned();
        // Twice on one line.
        if bound.get(*name).is_some_and(|before| *before != value) {
            return None;
        }
        bound.insert((*name).to_owned(), value);
    }
    Some(bound)
}

/// Text that must be there as it is, but for blanks and what is left out.
fn literal(text: &str) -> String {
    let text = regex::escape(text).replace(r"\.\.\.", ".*").replace('…', ".*");
    Regex::new(" +").expect("a fixed pattern").replace_all(&text, r"\s+").into_owned()
}

fn classes() -> Regex {
    let named = CLASSES.iter().enumerate().map(|(index, (_, form))| format!("(?P<c{index}>{form})"));
    Regex::new(&named.collect::<Vec<_>>().join("|")).expect("fixed patterns")
}

#[cfg(test)]
mod tests;
