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
    let (mut passed, mut failed) = outcome(&printed);
    for file in racing(&failed) {
        println!("once more, because a command there races with what it started itself: {file}");
        let (_, again) = play("kubectl/run.py", &kubectl, &server, &["-v"], &transcripts.join(format!("{file}.kt")));
        replace(&mut passed, &mut failed, &file, outcome(&again));
    }
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

/// Files in which nothing has failed but commands that start a process beside themselves and read what it writes at once: on a busy
/// machine the recorded line can be quicker than what it started, whatever the server does.
fn racing(failed: &BTreeSet<String>) -> BTreeSet<String> {
    let parts = || failed.iter().filter_map(|line| line.split_once(": "));
    let files: BTreeSet<String> = parts().map(|(file, _)| file.to_owned()).collect();
    let races = |file: &String| parts().filter(|(of, _)| of == file).all(|(_, command)| command.contains(" & "));
    files.into_iter().filter(races).collect()
}

/// What a second look at a file says instead of the first.
fn replace(
    passed: &mut BTreeSet<String>,
    failed: &mut BTreeSet<String>,
    file: &str,
    (now_passed, now_failed): (BTreeSet<String>, BTreeSet<String>),
) {
    let elsewhere = |line: &String| !line.starts_with(&format!("{file}: "));
    passed.retain(elsewhere);
    failed.retain(elsewhere);
    passed.extend(now_passed);
    failed.extend(now_failed);
}
