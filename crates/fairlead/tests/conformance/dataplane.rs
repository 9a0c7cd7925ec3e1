//! The packet scenarios: what real packets do in a cluster of network namespaces in which `fairlead proxy` runs on each Node,
//! against what they did with kube-proxy.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use fairlead_testkit::declined::{declined, mismatches};
use fairlead_testkit::{ADMIN_TOKEN, Server, full, need, project};
use serde_json::Value;

use super::{output, runner};

/// Where scenarios are.
const SCENARIOS: &str = "tests/conformance/dataplane/scenarios/dev";

/// Scenarios that want to see many requests while something changes. We are too quick for that unless told to gather changes
/// for as long as kube-proxy does.
const PACED: [&str; 1] = ["change-port-added-and-removed"];
const KUBE_PROXYS_PACE: &str = "--iptables-min-sync-period=1s";
/// Probes that are as recorded after all when they are quicker than what we do better: that comes a moment after the change. Both
/// outcomes are good ones.
const EITHER: [&str; 1] = ["udp-service-deleted/held"];
/// The reason in `docs/conformance.md` that is checked: all but the source address is as recorded.
const SOURCE_ADDRESS: &str = "source address";

/// What a mode is held to.
struct Mode {
    name: &'static str,
    /// Which recorded outcomes count: those of the mode of the same name, or `any`.
    expect: &'static str,
    /// A short name for what is made on the machine.
    prefix: &'static str,
    /// How long a probe may take to come out as recorded, in seconds.
    settle: &'static str,
    scenarios: Vec<String>,
}

const NFTABLES: Mode =
    Mode { name: "nftables", expect: "nftables", prefix: "flnf", settle: "6", scenarios: Vec::new() };
const IPTABLES: Mode =
    Mode { name: "iptables", expect: "iptables", prefix: "flip", settle: "6", scenarios: Vec::new() };
// Most probes look at the source address, and would wait in vain.
const USERSPACE: Mode = Mode { name: "userspace", expect: "any", prefix: "flus", settle: "2", scenarios: Vec::new() };

// Packets mostly wait: in halves, the longest of these takes half as long.
#[test]
fn packets_go_where_kube_proxy_sends_them_in_mode_nftables() {
    let mode = Mode { scenarios: half(0), ..NFTABLES };
    check("packets_go_where_kube_proxy_sends_them_in_mode_nftables", &mode);
}

#[test]
fn packets_of_the_other_half_go_where_kube_proxy_sends_them_in_mode_nftables() {
    let mode = Mode { scenarios: half(1), prefix: "flng", ..NFTABLES };
    check("packets_of_the_other_half_go_where_kube_proxy_sends_them_in_mode_nftables", &mode);
}

#[test]
fn packets_go_where_kube_proxy_sends_them_in_mode_iptables() {
    let mode = Mode { scenarios: some_unless_full(), ..IPTABLES };
    check("packets_go_where_kube_proxy_sends_them_in_mode_iptables", &mode);
}

#[test]
fn packets_go_where_kube_proxy_sends_them_in_mode_userspace() {
    let mode = Mode { scenarios: some_unless_full(), ..USERSPACE };
    check("packets_go_where_kube_proxy_sends_them_in_mode_userspace", &mode);
}

/// One of each kind, and those that have found mistakes.
const SOME: [&str; 27] = [
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
    "udp-first-endpoint-appears",
    "v6-clusterip",
];

fn some_unless_full() -> Vec<String> {
    if full() { all() } else { SOME.map(str::to_owned).to_vec() }
}

/// Every scenario there is.
fn all() -> Vec<String> {
    let files = fs::read_dir(project().join(SCENARIOS)).expect("scenarios").flatten();
    let names = files.map(|file| file.path().file_stem().unwrap_or_default().to_string_lossy().into_owned());
    names.collect()
}

/// Every second scenario.
fn half(which: usize) -> Vec<String> {
    let mut scenarios = all();
    scenarios.sort();
    scenarios.into_iter().skip(which).step_by(2).collect()
}

#[track_caller]
#[allow(clippy::print_stdout, reason = "how close we are is worth reading")]
fn check(test: &str, mode: &Mode) {
    if !["root", "python3", "ip", "nft", "conntrack", "iptables"].iter().all(|what| need(test, what)) {
        return;
    }
    let server = server();
    let listed = declined(&format!("Packets in mode {}", mode.name));
    let played = play_all(&server, mode, &listed);
    let listed: BTreeMap<_, _> = listed.into_iter().filter(|(probe, _)| played.is_of(probe)).collect();
    let as_recorded = |probe: &str| EITHER.contains(&probe) && played.passed.contains(probe);
    let listed: BTreeMap<_, _> = listed.into_iter().filter(|(probe, _)| !as_recorded(probe)).collect();
    let mut wrong = mismatches(&listed, &played.passed, &played.failed);
    let by_address = listed.iter().filter(|(_, reason)| *reason == SOURCE_ADDRESS).map(|(probe, _)| probe);
    let more = by_address.filter(|probe| !played.by_address.contains(*probe));
    wrong.extend(more.map(|probe| format!("differs in more than the source address: {probe}")));
    println!("mode {}: {} probes as recorded, {} declined", mode.name, played.passed.len(), played.failed.len());
    let report = || format!("{}\n\n{}\n{}", wrong.join("\n"), played.printed, server.log());
    assert!(!played.passed.is_empty() && wrong.is_empty(), "{}", report());
    check_excuses(&server, mode, &listed);
}

/// Plays what a mode is held to. What fails without being declined is played once more, and said: on a busy machine a packet may
/// be late.
#[allow(clippy::print_stdout, reason = "a second attempt is worth knowing")]
fn play_all(server: &Server, mode: &Mode, listed: &BTreeMap<String, String>) -> Played {
    let (paced, others): (Vec<_>, Vec<_>) =
        mode.scenarios.iter().map(String::as_str).partition(|name| PACED.contains(name));
    let mut played = play(server, mode, mode.expect, &others, "");
    played.add(play(server, mode, mode.expect, &paced, KUBE_PROXYS_PACE));
    let late =
        played.failed.iter().filter(|probe| !listed.contains_key(*probe)).map(|probe| scenario(probe).to_owned());
    let late: BTreeSet<String> = late.collect();
    if !late.is_empty() && late.len() < 5 {
        println!("mode {}: played once more: {late:?}\n{}", mode.name, played.printed);
        let pace = if late.iter().any(|name| PACED.contains(&name.as_str())) { KUBE_PROXYS_PACE } else { "" };
        let again = play(server, mode, mode.expect, &late.iter().map(String::as_str).collect::<Vec<_>>(), pace);
        played.passed.retain(|probe| !late.contains(scenario(probe)));
        played.failed.retain(|probe| !late.contains(scenario(probe)));
        played.add(again);
    }
    played
}

/// Whoever declines what was recorded in a mode must do better: what is listed is judged again by whatever outcome is good.
fn check_excuses(server: &Server, mode: &Mode, listed: &BTreeMap<String, String>) {
    if mode.expect == "any" {
        return;
    }
    let scenarios: BTreeSet<&str> = listed.keys().map(|probe| scenario(probe)).collect();
    let again = play(server, mode, "any", &scenarios.into_iter().collect::<Vec<_>>(), "");
    assert!(again.failed.is_empty(), "worse than recorded: {:?}\n\n{}\n{}", again.failed, again.printed, server.log());
}

/// The server as `tests/conformance/README.md` has it for these. Objects are made by hand, so no controller runs.
fn server() -> Server {
    let ranges = ["--service-cluster-ip-range", "10.96.0.0/16,fd00:96::/108"];
    let access = ["--authorization-mode", "AlwaysAllow", "--anonymous-auth=true", "--store", "memory"];
    Server::start(env!("CARGO_BIN_EXE_fairlead"), &[&ranges[..], &access[..]].concat())
}

/// What came out, as `scenario/probe`.
#[derive(Default)]
struct Played {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// Those of the failed that differ from what was recorded in the source address alone.
    by_address: BTreeSet<String>,
    printed: String,
}

impl Played {
    fn add(&mut self, other: Played) {
        self.passed.extend(other.passed);
        self.failed.extend(other.failed);
        self.by_address.extend(other.by_address);
        self.printed += &other.printed;
    }

    /// Whether the scenario of a probe was played.
    fn is_of(&self, probe: &str) -> bool {
        let same = |other: &String| scenario(other) == scenario(probe);
        self.passed.iter().chain(&self.failed).any(same)
    }
}

fn scenario(probe: &str) -> &str {
    probe.split_once('/').map_or(probe, |(scenario, _)| scenario)
}

fn play(server: &Server, mode: &Mode, expect: &str, scenarios: &[&str], more: &str) -> Played {
    if scenarios.is_empty() {
        return Played::default();
    }
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
    run.args(["--settle", mode.settle, "--filter", &format!("^({})$", scenarios.join("|"))]);
    run.args(["--proxy-cmd", &command, "--json"]).arg(results.path());
    let (_, printed) = output(run);
    let printed = printed + &tidy(&prefix);
    let text = fs::read(results.path()).expect("the results");
    let results: Value = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{error}:\n{printed}"));
    assert_eq!(left_behind(&prefix), Vec::<String>::new(), "network namespaces stay behind");
    Played { printed, ..outcome(&results) }
}

/// What passed and what failed. A failure of a scenario as a whole is named after it, with `-` for the probe.
fn outcome(results: &Value) -> Played {
    let mut played = Played::default();
    for result in results["scenarios"].as_array().expect("scenarios") {
        let name = result["scenario"].as_str().expect("a name");
        played.passed.extend(probes(name).into_iter().map(|probe| format!("{name}/{probe}")));
        for failure in result["fail"].as_array().expect("failures") {
            let probe = format!("{name}/{}", failure["probe"].as_str().unwrap_or("-"));
            played.passed.remove(&probe);
            if differs_by_address(failure) {
                played.by_address.insert(probe.clone());
            }
            played.failed.insert(probe);
        }
    }
    played
}

/// Whether what was seen would be as recorded if nobody looked at source addresses.
fn differs_by_address(failure: &Value) -> bool {
    let without = |outcome: &Value| {
        let mut outcome = outcome.clone();
        if let Some(backends) = outcome.get("backends").and_then(Value::as_object) {
            outcome["backends"] = backends.keys().map(String::as_str).collect::<Vec<_>>().into();
        }
        outcome
    };
    let seen = without(&failure["seen"]);
    failure["expected"].as_array().is_some_and(|all| all.iter().any(|recorded| without(recorded) == seen))
}

/// The probes of a scenario.
fn probes(scenario: &str) -> Vec<String> {
    let file = project().join(SCENARIOS).join(format!("{scenario}.json"));
    let text = fs::read(file).expect("a scenario");
    let scenario: Value = serde_json::from_slice(&text).expect("a scenario");
    let steps = scenario["steps"].as_array().expect("steps").iter();
    steps.filter_map(|step| step["probe"].as_str()).map(str::to_owned).collect()
}

/// Removes the files of a run, and returns the last of what the proxies said.
fn tidy(prefix: &str) -> String {
    let state = Path::new("/tmp").join(format!("{prefix}-state"));
    let mut said = String::new();
    for entry in fs::read_dir(state.join("logs")).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(20).collect();
        let lines: Vec<&str> = lines.into_iter().rev().collect();
        said += &format!("\n{}:\n{}\n", entry.path().display(), lines.join("\n"));
    }
    // A run that made nothing left nothing.
    let _ = fs::remove_dir_all(state);
    let _ = fs::remove_file(Path::new("/tmp").join(format!("{prefix}.lock")));
    said
}

/// Network namespaces of a run that are still there.
fn left_behind(prefix: &str) -> Vec<String> {
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("{prefix}-"))).collect()
}
