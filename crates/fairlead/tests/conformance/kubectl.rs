//! The kubectl transcripts: what a real kubectl prints, command by command.

use std::collections::BTreeSet;
use std::path::PathBuf;

use fairlead_testkit::declined::{declined, mismatches};
use fairlead_testkit::{Kubectl, Server, need, project};

use super::{output, runner, server_with};

#[test]
fn kubectl_prints_what_was_recorded_but_for_what_is_declined() {
    let test = "kubectl_prints_what_was_recorded_but_for_what_is_declined";
    let Some((kubectl, transcripts)) = wanted(test) else { return };
    let server = server_with(&["--controllers=*"]);
    let (_, printed) = play("kubectl/run.py", &kubectl, &server, &["-v"], &transcripts);
    let (passed, failed) = outcome(&printed);
    let wrong = mismatches(&declined("kubectl transcripts"), &passed, &failed);
    println!("kubectl 1.{}: {}", kubectl.minor, printed.lines().last().unwrap_or_default());
    assert!(!passed.is_empty() && wrong.is_empty(), "{}\n\n{printed}\n{}", wrong.join("\n"), server.log());
}

/// kubectl and the transcripts recorded with its version, or nothing after saying what is missing.
fn wanted(test: &str) -> Option<(Kubectl, PathBuf)> {
    if !need(test, "python3") || !need(test, "kubectl") {
        return None;
    }
    let kubectl = Kubectl::find().expect("a kubectl that tells its version");
    let folder = match kubectl.minor {
        32 => "dev-1.32",
        36 => "dev",
        _ => {
            fairlead_testkit::need::skip(test, "kubectl 1.32 or 1.36");
            return None;
        }
    };
    Some((kubectl, project().join("tests/conformance/kubectl").join(folder)))
}

fn play(script: &str, kubectl: &Kubectl, server: &Server, options: &[&str], transcripts: &PathBuf) -> (bool, String) {
    let mut run = runner(script);
    run.arg("--kubectl").arg(&kubectl.path).arg("--kubeconfig").arg(server.kubeconfig());
    run.args(options).arg(transcripts);
    output(run)
}

/// What passed and what failed, as `file: command`. A command that both passes and fails in one file counts as failed.
fn outcome(printed: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let with = |mark: &str| -> BTreeSet<String> {
        printed.lines().filter_map(|line| line.strip_prefix(mark)).map(str::to_owned).collect()
    };
    let failed = with("FAIL ");
    let passed = with("ok   ").difference(&failed).cloned().collect();
    (passed, failed)
}
