//! Whatever a plan says, the kernel takes it: random clusters and random changes, loaded for real in a network namespace. No
//! program is refused, none differs afterwards from what it should be, and the tools of the system can read them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

use fairlead_kernel::iptables::{Iptables, Variant, Version};
use fairlead_kernel::netns::Namespace;
use fairlead_kernel::nft::{Batch, Connection, Family as Nfproto, Table};
use fairlead_plan::random::{Dice, change, node};
use fairlead_plan::{Family, Plan, PlanChange, Planner};
use fairlead_program::iptables::{Op, Options, render, restore};
use fairlead_proxy::{Dataplane, Mode, Settings, dataplane};
use fairlead_testkit::{full, need};

/// Generated programs: each load and each change is one.
struct Extent {
    /// How many plans are loaded.
    plans: u64,
    /// How many changes each of them then takes.
    changes: usize,
}

#[test]
fn every_program_of_mode_nftables_loads() {
    let extent = if full() { Extent { plans: 200, changes: 10 } } else { Extent { plans: 20, changes: 10 } };
    check("every_program_of_mode_nftables_loads", Mode::Nftables, &extent, &["nft"]);
}

#[test]
fn every_program_of_mode_userspace_loads() {
    let extent = if full() { Extent { plans: 200, changes: 10 } } else { Extent { plans: 20, changes: 10 } };
    check("every_program_of_mode_userspace_loads", Mode::Userspace, &extent, &["nft"]);
}

#[test]
fn every_program_of_mode_iptables_loads() {
    let extent = if full() { Extent { plans: 400, changes: 5 } } else { Extent { plans: 40, changes: 5 } };
    check("every_program_of_mode_iptables_loads", Mode::Iptables, &extent, &["iptables"]);
}

#[test]
fn both_variants_of_iptables_take_every_program() {
    let test = "both_variants_of_iptables_take_every_program";
    if !["root", "iptables-legacy-restore", "iptables-nft-restore"].iter().all(|what| need(test, what)) {
        return;
    }
    for seed in 0..if full() { 300 } else { 30 } {
        for variant in [Variant::Legacy, Variant::Nft] {
            Namespace::unnamed().unwrap().run(|| restore_all(variant, seed)).unwrap();
        }
    }
}

/// Writes the program of a random plan where there was none.
fn restore_all(variant: Variant, seed: u64) {
    let plan = random(&mut Dice::new(seed + 1));
    let program = render(plan.plan(), &Options::default());
    let chains = program.tables.iter().flat_map(|(place, table)| table.iter().map(move |chain| (place, chain)));
    let ops: Vec<Op> = chains.map(|(place, (name, rules))| Op::Write(*place, name.clone(), rules.clone())).collect();
    for (family, text) in restore(&ops) {
        let version = if family == Family::V4 { Version::V4 } else { Version::V6 };
        let done = Iptables { variant, version }.restore(&text);
        assert!(done.is_ok(), "{variant:?} {seed}: {done:?}\n{text}");
    }
}

/// A Node with some Services.
fn random(dice: &mut Dice) -> Planner {
    let mut planner = Planner::new(node(dice));
    let changes: Vec<_> = (0..20).map(|_| change(dice)).collect();
    planner.apply(changes);
    planner
}

fn check(test: &str, mode: Mode, extent: &Extent, tools: &[&str]) {
    if !["root", "ip"].iter().chain(tools).all(|what| need(test, what)) {
        return;
    }
    let namespace = Namespace::unnamed().unwrap();
    namespace.run(|| in_namespace(mode, extent)).unwrap();
}

fn in_namespace(mode: Mode, extent: &Extent) {
    tool("ip", &["link", "set", "lo", "up"]);
    // Mode userspace listens there.
    node(&mut Dice::new(0)).addresses.into_iter().for_each(add_address);
    // All of it is looked at each time.
    let settings = Settings { sync_period: Duration::ZERO, ..Settings::default() };
    let mut dataplane = dataplane(mode, &settings).unwrap();
    for seed in 0..extent.plans {
        let mut dice = Dice::new(seed + 1);
        let mut planner = random(&mut dice);
        let step = Step { mode, seed, at: 0 };
        step.check(&mut *dataplane, planner.plan(), None);
        for at in 1..=extent.changes {
            let count = 1 + dice.below(4);
            let changes: Vec<_> = (0..count).map(|_| change(&mut dice)).collect();
            let change = planner.apply(changes);
            Step { at, ..step }.check(&mut *dataplane, planner.plan(), Some(&change));
        }
        read_back(mode);
    }
}

/// Which one of all: what is needed to see it again.
#[derive(Clone, Copy)]
struct Step {
    mode: Mode,
    seed: u64,
    at: usize,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "mode {}, plan {}, change {}", self.mode, self.seed, self.at)
    }
}

impl Step {
    /// Loads a plan, or a change of it; afterwards the kernel must have exactly that.
    fn check(self, dataplane: &mut dyn Dataplane, plan: &Plan, change: Option<&PlanChange>) {
        let done = match change {
            Some(change) => dataplane.apply(plan, change),
            None => dataplane.load(plan),
        };
        assert!(done.is_ok(), "{self}: {done:?}\n{change:?}");
        disturb();
        let drift = dataplane.drift(plan);
        assert!(matches!(drift, Ok(None)), "{self}: {drift:?}\n{change:?}");
        let counters = dataplane.counters(plan);
        assert!(counters.is_ok(), "{self}: {counters:?}");
    }
}

fn add_address(ip: IpAddr) {
    let length = if ip.is_ipv4() { 32 } else { 128 };
    tool("ip", &["address", "replace", &format!("{ip}/{length}"), "dev", "lo"]);
}

/// Somebody does something in a table of theirs: only then is everything counted.
fn disturb() {
    let (mut batch, table) = (Batch::new(), Table::new(Nfproto::Ip, "others"));
    batch.add_table(&table);
    batch.delete_table(&table);
    Connection::open().unwrap().commit(batch, None).unwrap();
}

/// The tools of the system can show what is there.
fn read_back(mode: Mode) {
    match mode {
        Mode::Iptables => {
            // A Node may be without IPv6.
            assert!(tool("iptables-save", &[]).contains("FAIRLEAD-"));
            tool("ip6tables-save", &[]);
        }
        _ => assert!(tool("nft", &["list", "ruleset"]).contains("table ip fairlead")),
    }
}

/// Runs a program in the namespace of this thread.
fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
