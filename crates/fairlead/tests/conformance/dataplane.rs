//! The packet scenarios: what real packets do in a cluster of network namespaces in which `fairlead proxy` runs on each Node,
//! against what they did with kube-proxy.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;

use fairlead_testkit::declined::{declined, mismatches};
use fairlead_testkit::{ADMIN_TOKEN, Server, full, need, project};
use serde_json::Value;

use super::{output, runner};

/// Scenarios in which time counts: two clusters at once would get into each other's way on a small machine.
static ALONE: Mutex<()> = Mutex::new(());

/// kube-proxy gathers changes for so long unless told otherwise. We need not, and are then too quick for a probe that wants to
/// see many requests while something changes.
const KUBE_PROXYS_PACE: &str = "--iptables-min-sync-period=1s";

/// What a mode is held to.
struct Mode {
    name: &'static str,
    /// Which recorded outcomes count: those of the mode of the same name, or `any`.
    expect: &'static str,
    /// A short name for what is made on the machine.
    prefix: &'static str,
    /// What to play; the empty pattern is everything.
    scenarios: String,
}

#[test]
fn packets_go_where_kube_proxy_sends_them_in_mode_nftables() {
    let mode = Mode { name: "nftables", expect: "nftables", prefix: "flnf", scenarios: String::new() };
    check("packets_go_where_kube_proxy_sends_them_in_mode_nftables", &mode);
}

#[test]
fn packets_go_where_kube_proxy_sends_them_in_mode_iptables() {
    let mode = Mode { name: "iptables", expect: "iptables", prefix: "flip", scenarios: some_unless_full() };
    check("packets_go_where_kube_proxy_sends_them_in_mode_iptables", &mode);
}

#[test]
fn packets_go_where_kube_proxy_sends_them_in_mode_userspace() {
    let mode = Mode { name: "userspace", expect: "any", prefix: "flus", scenarios: some_unless_full() };
    check("packets_go_where_kube_proxy_sends_them_in_mode_userspace", &mode);
}

/// One of each kind, and those that have found mistakes.
const SOME: [&str; 26] = [
    "affinity-clusterip-from-pods",
    "affinity-endpoint-removed",
    "affinity-is-per-port",
    "affinity-over-proxy-restart",
    "affinity-timeout-one-second",
    "change-service-deleted",
    "change-target-port",
    "clusterip-nine-endpoints",
    "clusterip-tcp-and-udp-same-port",
    "clusterip-undefined-port",
    "clusterip-zero-endpoints",
    "etp-local-from-inside",
    "etp-local-nodeport",
    "externalip-basic",
    "hairpin-tcp-own-vip",
    "hc-basic",
    "itp-local-to-cluster",
    "lb-source-ranges",
    "nodeport-on-secondary-addresses",
    "nodeport-udp",
    "proxy-cleans-what-changed-while-down",
    "proxy-restart-keeps-everything",
    "tcp-terminating-endpoint-drains",
    "topology-zone-hints",
    "udp-endpoint-replaced",
    "v6-clusterip",
];

fn some_unless_full() -> String {
    if full() { String::new() } else { exactly(SOME) }
}

/// A pattern for these and no others.
fn exactly<'a>(scenarios: impl IntoIterator<Item = &'a str>) -> String {
    format!("^({})$", scenarios.into_iter().collect::<Vec<_>>().join("|"))
}

#[track_caller]
#[allow(clippy::print_stdout, reason = "how close we are is worth reading")]
fn check(test: &str, mode: &Mode) {
    if !["root", "python3", "ip", "nft", "conntrack", "iptables-restore"].iter().all(|what| need(test, what)) {
        return;
    }
    // A test that failed in there has said so itself.
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let server = server();
    let played = play(&server, mode, mode.expect, &mode.scenarios, "");
    let listed = declined(&format!("Packets in mode {}", mode.name));
    let listed: BTreeMap<_, _> = listed.into_iter().filter(|(probe, _)| played.is_of(probe)).collect();
    let wrong = mismatches(&listed, &played.passed, &played.failed);
    println!("mode {}: {}", mode.name, played.printed.lines().rev().take(2).collect::<Vec<_>>().join("; "));
    let report = || format!("{}\n\n{}\n{}", wrong.join("\n"), played.printed, server.log());
    assert!(!played.passed.is_empty() && wrong.is_empty(), "{}", report());
    excuses(&server, mode, &listed);
}

/// Whoever declines what was recorded must do better, or as well at another pace: what is listed is judged again by whatever
/// outcome was recorded as good, with changes gathered as kube-proxy gathers them. Only mode userspace has what it cannot do.
fn excuses(server: &Server, mode: &Mode, listed: &BTreeMap<String, String>) {
    let cannot = declined("What mode userspace cannot do");
    let others: BTreeSet<&str> =
        listed.keys().filter(|probe| !cannot.contains_key(*probe)).map(|it| scenario(it)).collect();
    if others.is_empty() {
        return;
    }
    let again = play(server, mode, "any", &exactly(others), KUBE_PROXYS_PACE);
    let wrong: Vec<_> = again.failed.iter().filter(|probe| !cannot.contains_key(*probe)).collect();
    assert!(wrong.is_empty(), "{wrong:?}\n\n{}\n{}", again.printed, server.log());
}

/// The server as `tests/conformance/README.md` has it for these. Objects are made by hand, so no controller runs.
fn server() -> Server {
    let ranges = ["--service-cluster-ip-range", "10.96.0.0/16,fd00:96::/108"];
    let access = ["--authorization-mode", "AlwaysAllow", "--anonymous-auth=true", "--store", "memory"];
    Server::start(env!("CARGO_BIN_EXE_fairlead"), &[&ranges[..], &access[..]].concat())
}

/// What came out, as `scenario/probe`.
struct Played {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
    printed: String,
}

impl Played {
    /// Whether the scenario of a probe was played.
    fn is_of(&self, probe: &str) -> bool {
        let same = |other: &String| scenario(other) == scenario(probe);
        self.passed.iter().chain(&self.failed).any(same)
    }
}

fn scenario(probe: &str) -> &str {
    probe.split_once('/').map_or(probe, |(scenario, _)| scenario)
}

fn play(server: &Server, mode: &Mode, expect: &str, scenarios: &str, more: &str) -> Played {
    let results = tempfile::NamedTempFile::new().expect("a temporary file");
    // Tests of other builds may run beside this one.
    let prefix = format!("{}{}", mode.prefix, std::process::id() % 10_000);
    let command = format!(
        "{} proxy --proxy-mode={} --kubeconfig={{kubeconfig}} --hostname-override={{node}} --bind-address={{nodeip}} \
         --healthz-bind-address=0.0.0.0:{{healthz_port}} --metrics-bind-address=0.0.0.0:{{metrics_port}} {{extra}} {more}",
        env!("CARGO_BIN_EXE_fairlead"),
        mode.name,
    );
    let mut run = runner("dataplane/run.py");
    run.args(["--server", &server.url(), "--token", ADMIN_TOKEN, "--prefix", &prefix, "--expect", expect]);
    run.args(["--filter", scenarios, "--proxy-cmd", &command, "--json"]).arg(results.path());
    let (_, printed) = output(run);
    let text = fs::read(results.path()).expect("the results");
    let results: Value = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{error}:\n{printed}"));
    let (passed, failed) = outcome(&results);
    assert_eq!(left_behind(&prefix), Vec::<String>::new(), "network namespaces stay behind");
    Played { passed, failed, printed }
}

/// What passed and what failed. A failure of a scenario as a whole is named after it, with `-` for the probe.
fn outcome(results: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut all, mut failed) = (BTreeSet::new(), BTreeSet::new());
    for played in results["scenarios"].as_array().expect("scenarios") {
        let name = played["scenario"].as_str().expect("a name");
        all.extend(probes(name).into_iter().map(|probe| format!("{name}/{probe}")));
        let wrong = played["fail"].as_array().expect("failures").iter();
        failed.extend(wrong.map(|one| format!("{name}/{}", one["probe"].as_str().unwrap_or("-"))));
    }
    (all.difference(&failed).cloned().collect(), failed)
}

/// The probes of a scenario.
fn probes(scenario: &str) -> Vec<String> {
    let file = project().join(format!("tests/conformance/dataplane/scenarios/dev/{scenario}.json"));
    let text = fs::read(file).expect("a scenario");
    let scenario: Value = serde_json::from_slice(&text).expect("a scenario");
    let steps = scenario["steps"].as_array().expect("steps").iter();
    steps.filter_map(|step| step["probe"].as_str()).map(str::to_owned).collect()
}

/// Network namespaces of a run that are still there.
fn left_behind(prefix: &str) -> Vec<String> {
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("{prefix}-"))).collect()
}
