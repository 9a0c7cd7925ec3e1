//! The controller scenarios: objects in, Endpoints and EndpointSlices out, with the controllers in the server's process and in
//! one of their own.

use std::collections::BTreeSet;

use fairlead_testkit::declined::{declined, mismatches};
use fairlead_testkit::{Component, Server, need, project};

use super::{output, runner, server_with};

#[test]
fn controllers_in_the_servers_process_make_what_was_recorded() {
    let test = "controllers_in_the_servers_process_make_what_was_recorded";
    if need(test, "python3") {
        play(&server_with(&["--controllers=*"]), None);
    }
}

#[test]
fn controllers_in_a_process_of_their_own_make_what_was_recorded() {
    let test = "controllers_in_a_process_of_their_own_make_what_was_recorded";
    if need(test, "python3") {
        let server = server_with(&[]);
        let kubeconfig = server.kubeconfig().display().to_string();
        let control = Component::start(env!("CARGO_BIN_EXE_fairlead"), &["control", "--kubeconfig", &kubeconfig]);
        play(&server, Some(&control));
    }
}

#[track_caller]
#[allow(clippy::print_stdout, reason = "how close we are is worth reading")]
fn play(server: &Server, control: Option<&Component>) {
    let mut run = runner("controllers/run.py");
    run.args(["--server", &server.url(), "--token", fairlead_testkit::ADMIN_TOKEN, "--insecure", "--quirks", "-v"]);
    run.arg(project().join("tests/conformance/controllers/dev"));
    let (_, printed) = output(run);
    let named = |mark: &str| -> BTreeSet<String> {
        let lines = printed.lines().filter_map(|line| line.strip_prefix(mark));
        lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    };
    let (passed, failed) = (named("ok   "), named("FAIL "));
    let wrong = mismatches(&declined("Controller scenarios"), &passed, &failed);
    println!("controllers: {}", printed.lines().last().unwrap_or_default());
    let log = control.map(Component::log).unwrap_or_default();
    assert!(!passed.is_empty() && wrong.is_empty(), "{}\n\n{printed}\n{}\n{log}", wrong.join("\n"), server.log());
}
