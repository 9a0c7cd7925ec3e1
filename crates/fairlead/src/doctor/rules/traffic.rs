//! Does somebody else on this machine do what Fairlead does, or drop what it sends on?

use super::super::facts::{Facts, Table};
use super::super::{Check, State};

const AREA: &str = "Others";

/// What shows that somebody works on Services here: a name of a table, or what names of chains begin with.
struct Trace {
    who: &'static str,
    table: Option<&'static str>,
    chains: &'static str,
    state: State,
    remedy: &'static str,
}

const TRACES: &[Trace] = &[
    Trace {
        who: "kube-proxy",
        table: Some("kube-proxy"),
        chains: "KUBE-SVC-",
        state: State::Warn,
        remedy: "stop kube-proxy, then `kube-proxy --cleanup`: two proxies answer for the same addresses",
    },
    Trace {
        who: "Cilium",
        table: None,
        chains: "CILIUM_",
        state: State::Warn,
        remedy: "run Cilium without kubeProxyReplacement, or Fairlead without its proxy",
    },
    Trace { who: "Docker", table: None, chains: "DOCKER", state: State::Note, remedy: "" },
    Trace { who: "firewalld", table: Some("firewalld"), chains: "", state: State::Note, remedy: "" },
    Trace { who: "ufw", table: None, chains: "ufw-", state: State::Note, remedy: "" },
];

/// Programs that do the same as a part of ours.
const PROGRAMS: &[(&str, &str)] = &[
    ("kube-proxy", "it serves the same Services: stop one of the two"),
    ("cilium-agent", "it may serve the same Services: see kubeProxyReplacement"),
    ("coredns", "it answers for the same names, if it runs for this cluster"),
    ("speaker", "MetalLB announces addresses, too: give each its own pool or stop one"),
];

pub(super) fn check(facts: &Facts) -> Vec<Check> {
    if !facts.root {
        let finding = "rules of others can be seen by root only";
        return vec![Check::of(AREA, State::Unknown, finding, &["sudo fairlead doctor"])];
    }
    let mut checks: Vec<Check> = TRACES.iter().filter_map(|trace| found(trace, &facts.tables)).collect();
    checks.extend(programs(facts));
    checks.extend(facts.tables.iter().flat_map(closed));
    checks.extend(legacy(facts));
    if checks.is_empty() {
        checks.push(Check::ok(AREA, "nobody else has rules that matter to Services"));
    }
    checks
}

fn found(trace: &Trace, tables: &[Table]) -> Option<Check> {
    let named = |table: &&Table| trace.table.is_some_and(|name| table.name == name);
    let prefixed = |table: &&Table| {
        !trace.chains.is_empty() && table.chains.iter().any(|chain| chain.name.starts_with(trace.chains))
    };
    let table = tables.iter().find(|table| named(table) || prefixed(table))?;
    let finding = format!("rules of {} are here (table {} {})", trace.who, table.family, table.name);
    let remedy: &[&str] = if trace.remedy.is_empty() { &[] } else { &[trace.remedy] };
    Some(Check::of(AREA, trace.state, finding, remedy))
}

fn programs(facts: &Facts) -> impl Iterator<Item = Check> {
    PROGRAMS.iter().filter_map(|(name, remedy)| {
        let (pid, _) = facts.programs.iter().find(|(_, program)| program == name)?;
        Some(Check::of(AREA, State::Warn, format!("{name} runs here (pid {pid})"), &[remedy]))
    })
}

/// Chains that drop what nobody allowed. Packets to endpoints elsewhere are forwarded, those to processes here come in.
fn closed(table: &Table) -> Vec<Check> {
    let drops = table.chains.iter().filter(|chain| chain.drops);
    let check = |chain: &super::super::facts::Chain| {
        let place = format!("{} {} {}", table.family, table.name, chain.name);
        let (lost, rule) = match chain.hook? {
            "forward" => ("packets to Pods and endpoints on other machines", "nft add rule"),
            "input" => ("packets to load balancers that run as a process, to DNS and to the API", "nft add rule"),
            "output" => ("packets of this machine to Services", "nft add rule"),
            _ => return None,
        };
        let finding = format!("the chain {place} drops what its rules do not allow: {lost} need a rule there");
        let look =
            format!("nft list chain {place}    # then, for each kind of packet to allow: {rule} {place} ... accept");
        Some(Check::of(AREA, State::Warn, finding, &[&look, "fairlead trace --live    # says whether it drops one"]))
    };
    drops.filter_map(check).collect()
}

fn legacy(facts: &Facts) -> Option<Check> {
    if facts.legacy.is_empty() {
        return None;
    }
    let names: Vec<String> = facts.legacy.iter().map(|(family, name)| format!("{family} {name}")).collect();
    let finding = format!(
        "tables of the old interface of iptables are here ({}): they decide beside nftables, and `nft` does not show them",
        names.join(", ")
    );
    let shows = [("ip", "iptables-legacy-save    # shows them"), ("ip6", "ip6tables-legacy-save    # shows them")];
    let has = |wanted: &str| facts.legacy.iter().any(|(family, _)| *family == wanted);
    let remedy: Vec<&str> = shows.iter().filter(|(family, _)| has(family)).map(|(_, command)| *command).collect();
    Some(Check::of(AREA, State::Warn, finding, &remedy))
}
