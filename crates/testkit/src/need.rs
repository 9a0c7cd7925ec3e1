//! What happens to a test that needs something the machine lacks: it says so and counts as skipped, or it fails where
//! `FAIRLEAD_REQUIRE` names what is missing.

use std::env;
use std::path::PathBuf;

/// Whether `test` can have the program `what`, or be run by `root`. If not, prints `skipped: TEST needs WHAT`; the test then
/// returns.
///
/// # Panics
/// If `FAIRLEAD_REQUIRE` lists `what`: then a skip is a failure.
pub fn need(test: &str, what: &str) -> bool {
    let found = if what == "root" { root() } else { program(what).is_some() };
    if !found {
        skip(test, what);
    }
    found
}

/// Whether this process may do everything.
fn root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = |line: &str| line.strip_prefix("Uid:")?.split_whitespace().nth(1).map(|id| id == "0");
    status.lines().find_map(effective).unwrap_or(false)
}

/// Whether the long form of tests is asked for, with `./test --full`.
pub fn full() -> bool {
    env::var_os("FAIRLEAD_FULL").is_some_and(|value| value == "1")
}

/// Where a program is: in the variable of its name (`KUBECTL`, `ETCD`, ...), else in `PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    let variable = name.to_uppercase().replace('-', "_");
    let named = env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    let mut paths = env::var_os("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    match named {
        Some(path) if path.components().count() > 1 => path.is_file().then_some(path),
        Some(other) => find(&mut paths, &other.to_string_lossy()),
        None => find(&mut paths, name),
    }
}

/// Says that `test` is skipped for want of `what`.
///
/// # Panics
/// If `FAIRLEAD_REQUIRE` lists `what`.
#[allow(clippy::print_stdout, reason = "a test's own output is where skips are counted")]
pub fn skip(test: &str, what: &str) {
    let required = env::var("FAIRLEAD_REQUIRE").unwrap_or_default();
    assert!(!lists(&required, what), "{test} needs {what}, which FAIRLEAD_REQUIRE lists");
    println!("skipped: {test} needs {what}");
}

/// Whether a list names this. Who asks for `kubectl` has not asked for `kubectl-1.36`: any version will do.
fn lists(required: &str, what: &str) -> bool {
    required.split([',', ' ']).any(|name| name == what)
}

fn find(paths: &mut Vec<PathBuf>, name: &str) -> Option<PathBuf> {
    paths.drain(..).map(|dir| dir.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_and_what_is_not_is_not() {
        assert!(program("sh").is_some_and(|path| path.ends_with("sh")));
        assert_eq!(program("no-such-program"), None);
    }

    #[test]
    fn a_requirement_names_programs_with_commas_or_blanks_between() {
        let cases = [
            ("etcd,kubectl", "etcd", true),
            ("etcd kubectl", "kubectl", true),
            ("kubectl-1.36", "kubectl-1.36", true),
            ("kubectl", "kubectl-1.36", false),
            ("etcd", "kubectl", false),
            ("etcd", "etcdctl", false),
            ("", "etcd", false),
        ];
        for (required, what, expected) in cases {
            assert_eq!(lists(required, what), expected, "{required:?} {what:?}");
        }
    }
}
