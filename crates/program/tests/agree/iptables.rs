//! Mode iptables.

use std::collections::BTreeMap;

use fairlead_plan::decide;
use fairlead_program::agree;
use fairlead_program::iptables::{Fate, Memory, Options, Program, diff, outcome, render, trace};

use crate::{CHANGES, CLUSTERS, Cluster, PACKETS, kind};

const MARK: u32 = 0xa5a5_1234;

#[test]
fn packets_meet_what_the_plan_says_after_every_change() {
    let mut met: BTreeMap<&str, usize> = BTreeMap::new();
    let options = Options::default();
    for seed in 0..CLUSTERS {
        let mut cluster = Cluster::new(seed);
        cluster.unguard();
        let mut program = render(cluster.planner.plan(), &options);
        for turn in 0..CHANGES {
            let change = cluster.change();
            let ops = diff(cluster.planner.plan(), &change, &options);
            program.take(&ops).unwrap_or_else(|error| panic!("seed {seed} turn {turn}: {error}"));
            for _ in 0..PACKETS {
                check(&mut cluster, &program, seed, &mut met);
            }
            let anew = render(cluster.planner.plan(), &options);
            assert_eq!(unordered(&program), unordered(&anew), "seed {seed} turn {turn}");
        }
    }
    let pairs: usize = met.values().sum();
    assert!(pairs >= 20_000 && met.values().all(|count| *count >= 500) && met.len() == 5, "{met:?}");
}

fn check(cluster: &mut Cluster, program: &Program, seed: u64, met: &mut BTreeMap<&'static str, usize>) {
    let packet = cluster.packet();
    let plan = cluster.planner.plan();
    let decision = decide(plan, &packet);
    let done = outcome(program, plan.node(), &packet);
    if let Err(error) = agree(&decision, &done) {
        let traced = trace(program, plan.node(), &packet, 0, &mut Memory::default(), 0);
        panic!("seed {seed}: {packet:?}\n{decision}\n{error}\n{}\n{:?}", traced.steps.join("\n"), plan.node());
    }
    *met.entry(kind(&decision)).or_default() += 1;
    let mut memory = Memory::default();
    let first = trace(program, plan.node(), &packet, MARK, &mut memory, usize::MAX);
    let second = trace(program, plan.node(), &packet, MARK, &mut memory, 0);
    assert_eq!((first.mark ^ MARK) & !(1 << 14), 0, "{packet:?}");
    if let Fate::Passes { snat: true, .. } = first.fate {
        assert_eq!(first.mark, MARK, "{packet:?}");
    }
    assert!(kind(&decision) != "stays" || first.fate == second.fate, "{packet:?}");
}

/// What is there, but for the order in which frontends are looked for, of which at most one matches.
fn unordered(program: &Program) -> Program {
    let mut program = program.clone();
    for table in program.tables.values_mut() {
        for (name, rules) in table.iter_mut() {
            if ["FAIRLEAD-SERVICES", "FAIRLEAD-NODEPORTS", "FAIRLEAD-FILTER-SERVICES", "FAIRLEAD-FILTER-NODEPORTS"]
                .contains(&&**name)
            {
                rules.sort();
            }
        }
    }
    program.tables.retain(|_, table| !table.is_empty());
    program
}
