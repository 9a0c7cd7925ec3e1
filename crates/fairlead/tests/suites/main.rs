//! Test suites of other projects against the API server. docs/suites.md has their versions, results
//! and what is expected to fail, with the reason.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use fairlead_testkit::suites::{self, h2spec, need_long, slowhttptest, sslscan, sslscan_findings};
use fairlead_testkit::{ADMIN_TOKEN, Server, need};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairlead");

/// Messages of answers with code 500 that kube-apiserver gives, too, with the same code
/// (conformance vectors).
const SERVER_ERRORS_OF_KUBERNETES: [&str; 2] =
    ["resourceVersion should not be set on objects to be created", "strconv.ParseUint: parsing"];

/// Codes of schemathesis that Kubernetes' own OpenAPI documents cause, whatever the server does.
const EXPECTED_FINDINGS: [(&str, &str); 3] = [
    ("ST103", "the documents list 200, 201, 202 and 401; 400, 403, 404, 409, 415, 422 are answered and not listed"),
    ("ST202", "rules that a schema cannot state: names, selectors, continue tokens, combinations of options"),
    ("ST201", "booleans in a query are read as kube-apiserver reads them: any text but 0 and false means true"),
];

#[test]
#[allow(clippy::print_stdout, reason = "the score is worth knowing")]
fn h2spec_passes_at_the_api() {
    if !need("h2spec_passes_at_the_api", "h2spec") {
        return;
    }
    let server = Server::start(PROGRAM, &[]);
    let report = h2spec(address(&server), true, "/readyz");
    println!("{}", report.summary);
    assert!(report.summary.ends_with(" 0 failed"), "{}", report.output);
}

#[test]
fn sslscan_finds_no_weak_offer_at_the_api() {
    if !need("sslscan_finds_no_weak_offer_at_the_api", "sslscan") {
        return;
    }
    let server = Server::start(PROGRAM, &[]);
    let report = sslscan(address(&server), "localhost");
    assert!(report.contains("TLSv1.3   enabled"), "{report}");
    assert!(report.contains("TLSv1.2   enabled"), "{report}");
    assert_eq!(sslscan_findings(&report), Vec::<String>::new(), "{report}");
}

#[test]
fn a_polite_client_is_answered_beside_slow_ones_of_slowhttptest() {
    if !need_long("a_polite_client_is_answered_beside_slow_ones_of_slowhttptest", "slowhttptest") {
        return;
    }
    let server = Server::start(PROGRAM, &[]);
    for mode in ["-H", "-B", "-X"] {
        let over = AtomicBool::new(false);
        let answered = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let answer = server.client().get("/api/v1/services").unwrap();
                    assert_eq!(answer.status, 200, "{mode}: {}", answer.body);
                    answered.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            let url = format!("{}/api/v1/services", server.url());
            let output = slowhttptest(mode, 1000, Duration::from_secs(30), &url);
            over.store(true, Ordering::Relaxed);
            assert!(output.contains("connected"), "{output}");
        });
        assert!(answered.load(Ordering::Relaxed) > 0, "{mode}: no request was answered");
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the findings are worth knowing")]
fn schemathesis_finds_nothing_but_what_is_listed() {
    if !need_long("schemathesis_finds_nothing_but_what_is_listed", "schemathesis") {
        return;
    }
    let server = Server::start(PROGRAM, &[]);
    // schemathesis keeps a database of its examples in the current directory.
    let folder = tempfile::tempdir().unwrap();
    let mut unexpected = Vec::new();
    for group in ["api/v1", "apis/discovery.k8s.io/v1", "apis/networking.k8s.io/v1", "apis/coordination.k8s.io/v1"] {
        let mut command = suites::suite("schemathesis");
        command.current_dir(folder.path());
        command.args(["run", &format!("{}/openapi/v3/{group}", server.url()), "--url", &server.url()]);
        command.args(["--tls-verify", "false", "-H", &format!("Authorization: Bearer {ADMIN_TOKEN}")]);
        command.args(["--checks", "all", "--phases", "coverage,fuzzing", "-n", "5", "--seed", "1", "--no-color"]);
        command.args(["--continue-on-failure", "--request-timeout", "10", "--max-time", "120"]);
        // A watch lasts until its client has enough, which schemathesis takes for a server that
        // hangs.
        command.args(["--exclude-path-regex", "/watch/|/(log|exec|attach|portforward|proxy)"]);
        let output = suites::run(&mut command).output;
        let summary = output.split("= SUMMARY =").nth(1).unwrap_or_else(|| panic!("no summary:\n{output}"));
        println!("{group}:{summary}");
        let new_server_error = output.split("- ST101 Server error").skip(1).any(|finding| {
            let answer = finding.split("Reproduce with").next().unwrap_or_default();
            !SERVER_ERRORS_OF_KUBERNETES.iter().any(|message| answer.contains(message))
        });
        for line in summary.lines().filter(|line| line.contains("❌ ST")) {
            let listed = EXPECTED_FINDINGS.iter().any(|(code, _)| line.contains(code))
                || (line.contains("ST101") && !new_server_error);
            if !listed {
                unexpected.push(format!("{group}: {line}\n{output}"));
            }
        }
        let alive = server.client().get("/readyz").unwrap();
        assert_eq!(alive.status, 200, "{}", alive.body);
    }
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
}

fn address(server: &Server) -> SocketAddr {
    server.url().trim_start_matches("https://").parse().unwrap()
}
