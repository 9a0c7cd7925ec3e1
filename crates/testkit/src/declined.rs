//! What we knowingly do otherwise than the reference server, as `docs/conformance.md` lists it, and the check that the list
//! is exactly what fails: a case that fails unlisted is a bug, and one that is listed but passes is a stale excuse.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::project;

/// The rows of the table under a heading of `docs/conformance.md`: case and reason.
///
/// # Panics
/// If the heading is missing, a row has no reason, or a case is listed twice.
pub fn declined(heading: &str) -> BTreeMap<String, String> {
    let text = fs::read_to_string(project().join("docs/conformance.md")).expect("docs/conformance.md");
    rows(&text, heading)
}

/// What is wrong, if anything, about what failed and passed, given what is declined.
pub fn mismatches(
    declined: &BTreeMap<String, String>,
    passed: &BTreeSet<String>,
    failed: &BTreeSet<String>,
) -> Vec<String> {
    let unlisted = failed.iter().filter(|case| !declined.contains_key(*case));
    let stale = declined.keys().filter(|case| passed.contains(*case) && !failed.contains(*case));
    let unknown = declined.keys().filter(|case| !passed.contains(*case) && !failed.contains(*case));
    let unlisted = unlisted.map(|case| format!("fails, but docs/conformance.md does not decline it: {case}"));
    let stale = stale.map(|case| format!("passes, but docs/conformance.md declines it: {case}"));
    let unknown = unknown.map(|case| format!("docs/conformance.md declines what does not exist: {case}"));
    unlisted.chain(stale).chain(unknown).collect()
}

fn rows(text: &str, heading: &str) -> BTreeMap<String, String> {
    let mut section = text.lines().skip_while(|line| line.trim_start_matches('#').trim() != heading).skip(1).peekable();
    assert!(section.peek().is_some(), "no heading {heading:?}");
    let lines = section.take_while(|line| !line.starts_with('#')).filter(|line| line.starts_with('|'));
    let mut found = BTreeMap::new();
    // The first two lines of a table are its head.
    for line in lines.skip(2) {
        let cells = cells(line);
        let [case, reason] = cells.as_slice() else { panic!("not `| case | reason |`: {line}") };
        let case = case.trim_matches('`').to_owned();
        assert!(!case.is_empty() && !reason.is_empty(), "a case without a reason: {line}");
        assert!(found.insert(case, reason.clone()).is_none(), "listed twice: {line}");
    }
    found
}

/// The cells of a row; `\|` is a bar that separates nothing.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|').replace("\\|", "\u{0}");
    inner.split('|').map(|cell| cell.replace('\u{0}', "|").trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Top\n## Declined\nwhy\n\n| case | reason |\n|---|---|\n| `a/1` | by design |\n| `b: x \\| y` | later |\n## Other\n| case | reason |\n|---|---|\n| `c` | no |\n";

    fn set(cases: &[&str]) -> BTreeSet<String> {
        cases.iter().map(|&case| case.to_owned()).collect()
    }

    #[test]
    fn the_table_under_a_heading_is_read_and_no_other() {
        let found = rows(TEXT, "Declined");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a/1", "b: x | y"]);
        assert_eq!(found["a/1"], "by design");
    }

    #[test]
    fn the_list_must_be_exactly_what_fails() {
        let list = rows(TEXT, "Other");
        assert_eq!(mismatches(&list, &set(&["a"]), &set(&["c"])), Vec::<String>::new());
        let check = |passed: &[&str], failed: &[&str], word: &str| {
            let wrong = mismatches(&list, &set(passed), &set(failed));
            assert!(wrong.len() == 1 && wrong[0].starts_with(word), "{wrong:?}");
        };
        check(&[], &["c", "d"], "fails");
        check(&["c"], &[], "passes");
        check(&["a"], &[], "docs/conformance.md declines what does not exist");
    }
}
