//! The DNS vectors: what CoreDNS answered to 667 questions in 14 configurations, asked of `fairlead dns` over real sockets.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use fairlead_testkit::declined::{declined, mismatches};
use fairlead_testkit::{need, project};
use serde_json::Value;

use super::output;

/// Where the vectors are.
const VECTORS: &str = "tests/conformance/dns/dev";
/// Cases that may not be declined, by their level.
const MUST_PASS: [&str; 2] = ["spec", "coredns"];

#[test]
#[allow(clippy::print_stdout, reason = "how close we are is worth reading")]
fn names_are_answered_as_coredns_answers_them_but_for_quirks_declined() {
    let test = "names_are_answered_as_coredns_answers_them_but_for_quirks_declined";
    if !["root", "python3", "ip", "unshare"].iter().all(|what| need(test, what)) {
        return;
    }
    // A network of its own: the addresses of each configuration are put on its loopback interface.
    let mut run = Command::new("unshare");
    run.current_dir(project()).env("FAIRLEAD", env!("CARGO_BIN_EXE_fairlead"));
    let play = format!("python3 -B tests/conformance/dns/run.py {VECTORS} --exec tests/conformance/dns/adapter.py");
    run.args(["-n", "sh", "-c", &format!("ip link set lo up && {play}")]);
    let (_, printed) = output(run);
    let failed: BTreeSet<String> = printed.lines().filter_map(failed_case).collect();
    let (must, all) = cases();
    let passed: BTreeSet<String> = all.difference(&failed).cloned().collect();
    let end = format!("{} passed, {} failed", passed.len(), failed.len());
    println!("{end}");
    assert!(printed.lines().any(|line| line == end), "not every case was played:\n{printed}");
    let wrong = mismatches(&declined("DNS"), &passed, &failed);
    assert!(wrong.is_empty(), "{}\n\n{printed}", wrong.join("\n"));
    let broken: Vec<&String> = must.intersection(&failed).collect();
    assert!(broken.is_empty(), "these may not be declined: {broken:?}");
}

/// `FAIL default/ptr/025 [quirk] ...`
fn failed_case(line: &str) -> Option<String> {
    let case = line.strip_prefix("FAIL ")?.split(' ').next()?;
    case.contains('/').then(|| case.to_owned())
}

/// The cases that must pass, and all there are.
fn cases() -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut must, mut all) = (BTreeSet::new(), BTreeSet::new());
    for file in fs::read_dir(project().join(VECTORS).join("cases")).expect("cases").flatten() {
        let text = fs::read(file.path()).expect("a file of cases");
        let group: Value = serde_json::from_slice(&text).expect("cases are JSON");
        for case in group["cases"].as_array().into_iter().flatten() {
            let id = case["id"].as_str().expect("a case has an id").to_owned();
            if MUST_PASS.contains(&case["level"].as_str().unwrap_or_default()) {
                must.insert(id.clone());
            }
            all.insert(id);
        }
    }
    assert!(must.len() > 500, "{}", must.len());
    (must, all)
}
