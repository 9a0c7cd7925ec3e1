//! Does the program answer as the reference server does? Plays the recorded vectors of `tests/conformance` against the built
//! program, and holds `docs/conformance.md` to be the exact list of what differs. Suites run side by side.

mod api;
mod controllers;
mod dataplane;
mod env;
mod kubectl;

use std::process::Command;

use fairlead_testkit::Server;

/// The server the vectors were recorded against, as `tests/conformance/README.md` writes its command line.
fn server() -> Server {
    server_with(&[])
}

/// The same with further flags.
fn server_with(more: &[&str]) -> Server {
    let flags = [
        "--service-cluster-ip-range",
        "10.0.0.0/16,fd00:10::/108",
        "--service-node-port-range",
        "30000-32767",
        "--authorization-mode",
        "AlwaysAllow",
        "--anonymous-auth=true",
    ];
    Server::start(env!("CARGO_BIN_EXE_fairlead"), &[&flags, more].concat())
}

/// A runner of `tests/conformance`, to be given its arguments.
fn runner(script: &str) -> Command {
    let mut command = Command::new(fairlead_testkit::need::program("python3").expect("the test asked for python3"));
    // No compiled copies of the runners in the source tree.
    command.arg("-B").arg(fairlead_testkit::project().join("tests/conformance").join(script));
    command
}

/// Runs it to its end and gives what it printed.
fn output(mut command: Command) -> (bool, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}
