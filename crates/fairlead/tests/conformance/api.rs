//! The API vectors: 1,573 recorded conversations.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use fairlead_testkit::declined::{declined, mismatches};
use fairlead_testkit::server::ADMIN_TOKEN;
use fairlead_testkit::{full, need, project};
use serde_json::Value;

use super::{output, runner, server};

/// Of the cases where the recorded server does not itself fail, this share must pass.
const MUST_PASS: f64 = 0.99;
/// Of the messages, this share must be exact.
const MUST_BE_EXACT: f64 = 0.95;

#[test]
fn the_api_vectors_pass_but_for_those_declined() {
    if !need("the_api_vectors_pass_but_for_those_declined", "python3") {
        return;
    }
    let server = server();
    let results = tempfile::NamedTempFile::new().expect("a temporary file");
    let mut run = runner("api/run.py");
    run.args(["--server", &server.url(), "--token", ADMIN_TOKEN, "--insecure", "--json"]);
    run.arg(results.path()).args(vectors());
    let (_, printed) = output(run);
    let results = fs::read(results.path()).expect("the results");
    let results: Value = serde_json::from_slice(&results).unwrap_or_else(|error| panic!("{error}:\n{printed}"));

    let (passed, failed) = outcome(&results);
    let wrong = mismatches(&declined("API vectors"), &passed, &failed);
    println!("{}", summary(&printed));
    assert_eq!(passed.len() + failed.len(), tags().len(), "not every case was played:\n{printed}");
    assert!(wrong.is_empty(), "{}\n\n{printed}\n{}", wrong.join("\n"), server.log());
    check_shares(&passed, &results);
}

#[test]
fn the_api_runner_sees_wrong_answers() {
    if !need("the_api_runner_sees_wrong_answers", "python3") {
        return;
    }
    let server = server();
    let mut run = runner("api/selftest.py");
    run.args(["--server", &server.url(), "--token", ADMIN_TOKEN]);
    run.args(["--sample", if full() { "0" } else { "150" }]).args(vectors());
    let (fine, printed) = output(run);
    println!("{printed}");
    assert!(fine, "{printed}");
}

#[allow(clippy::print_stdout, reason = "how close we are is worth reading")]
fn check_shares(passed: &BTreeSet<String>, results: &Value) {
    let tags = tags();
    let fair = tags.iter().filter(|(_, tags)| !tags.iter().any(|tag| tag.starts_with("oracle-")));
    let fair: Vec<&String> = fair.map(|(id, _)| id).collect();
    let good = fair.iter().filter(|id| passed.contains(**id)).count();
    println!("{good} of {} cases pass in which the recorded server does not itself fail", fair.len());
    assert!(share(good, fair.len()) >= MUST_PASS, "{good} of {}", fair.len());

    let exact = number(results, "/messages/0");
    let all = number(results, "/messages/1");
    println!("{exact} of {all} messages are exact");
    assert!(share(exact, all) >= MUST_BE_EXACT, "{exact} of {all} messages");
}

fn share(part: usize, whole: usize) -> f64 {
    assert!(whole > 0, "nothing was counted");
    part as f64 / whole as f64
}

fn number(results: &Value, pointer: &str) -> usize {
    let number = results.pointer(pointer).and_then(Value::as_u64).expect("a number");
    usize::try_from(number).expect("a small number")
}

/// The ids of what passed and of what failed.
fn outcome(results: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
    let cases = results["cases"].as_array().expect("cases");
    let (passed, failed): (Vec<&Value>, Vec<&Value>) = cases.iter().partition(|case| case["ok"] == true);
    let ids = |cases: Vec<&Value>| cases.iter().map(|case| case["id"].as_str().expect("an id").to_owned()).collect();
    (ids(passed), ids(failed))
}

/// The lines of a run that count.
fn summary(printed: &str) -> String {
    let counts = |line: &&str| !line.starts_with("FAIL") && !line.starts_with("     ");
    printed.lines().filter(counts).collect::<Vec<_>>().join("\n")
}

/// Every case and its tags.
fn tags() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for file in vectors() {
        let text = fs::read_to_string(&file).expect("vectors");
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let case: Value = serde_json::from_str(line).expect("a case");
            let tags = case["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
            found.insert(case["id"].as_str().expect("an id").to_owned(), tags.map(str::to_owned).collect());
        }
    }
    found
}

fn vectors() -> Vec<PathBuf> {
    let files = fs::read_dir(project().join("tests/conformance/api/dev")).expect("vectors");
    let mut files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    files
}
