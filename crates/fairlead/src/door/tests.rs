use fairlead_api::Failure;

use super::*;

#[test]
fn wrapped_errors_are_told_in_one_line() {
    let check = |text: &str, expected: &str| assert_eq!(last_cause(text), expected);
    check("failed to read kubeconfig from '\"/x\"': No such file or directory", "No such file or directory");
    check(
        "failed to infer config: in-cluster: (no variable), kubeconfig: (failed to read kubeconfig from '\"/x\"': No such file)",
        "No such file",
    );
    check(
        "failed to parse kubeconfig YAML: error: line 1 column 1: expected mapping start\n --> x",
        "line 1 column 1: expected mapping start",
    );
}

#[test]
fn failures_come_with_what_to_do() {
    let check = |error: Error, expected: Option<&str>| {
        let advice = advice(&anyhow::Error::from(error).context("somewhere"));
        assert_eq!(advice.is_some(), expected.is_some(), "{advice:?}");
        assert!(advice.unwrap_or_default().contains(expected.unwrap_or_default()));
    };
    let unavailable = |message: &str| Error::Unavailable { message: message.to_owned(), retry_after: None };
    let failure = |code, reason, message: &str| Error::from(Failure::new(code, reason, message));
    check(
        unavailable("https://127.0.0.1:6443 does not answer: Connection refused (os error 111)"),
        Some("`fairlead up`"),
    );
    check(unavailable("x does not answer: invalid peer certificate: UnknownIssuer"), Some("data directory"));
    check(unavailable("the server did not answer in time"), Some("reachable"));
    check(failure(401, "Unauthorized", "Unauthorized"), Some("--kubeconfig"));
    check(failure(403, "Forbidden", "services is forbidden: User \"x\" cannot list resource"), Some("role"));
    check(failure(403, "Forbidden", "namespaces \"default\" is forbidden: this namespace may not be deleted"), None);
    check(failure(422, "Invalid", "bad"), None);
}

#[test]
fn what_only_root_may_do_is_said_to_take_root() {
    let check =
        |error: &str, root: bool, expected: bool| assert_eq!(needs_root(error, root).is_some(), expected, "{error}");
    check("cleaning up: Operation not permitted (os error 1)", false, true);
    check("cleaning up: Operation not permitted (os error 1)", true, false);
    check("this machine cannot be a Node; run it as root: Operation not permitted", false, false);
    check("no such file", false, false);
}
