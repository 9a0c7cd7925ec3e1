//! Mode userspace: packets reach the endpoints the plan says, though all of them see the Node's address.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use fairlead_plan::{Ingress, Packet, Plan, Protocol, RejectWith, Verdict, decide, family_of};
use fairlead_program::nft::{Nft, Options, Portals, Program};
use fairlead_program::userspace::{outcome, serves};
use fairlead_program::{Outcome, agree};

use crate::{CHANGES, CLUSTERS, Cluster, PACKETS, kind};

/// A process that listens on a port for each pool.
fn listen(plan: &Plan, portals: &mut Portals) {
    portals.retain(|key, _| plan.pool(key).is_some());
    for pool in plan.pools().filter(|pool| serves(&pool.key)) {
        let ip = match pool.endpoints[0].ip.is_ipv4() {
            true => "172.30.0.11".parse(),
            false => "fd30::11".parse(),
        };
        let ip = ip.expect("an address of the Node");
        let mut free = (40_000..).map(|port| SocketAddr::new(ip, port));
        if !portals.contains_key(&pool.key) {
            let free = free.find(|at| !portals.values().any(|taken| taken == at)).expect("there are enough");
            portals.insert(pool.key.clone(), free);
        }
    }
}

#[test]
fn packets_meet_what_the_plan_says_after_every_change() {
    let mut met: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..CLUSTERS {
        let mut cluster = Cluster::new(seed);
        let mut portals = Portals::default();
        listen(cluster.planner.plan(), &mut portals);
        let (mut nft, ops) = Nft::with_portals(cluster.planner.plan(), Options::default(), portals);
        let mut program = Program::default();
        program.take(&ops).expect("a program from nothing");
        for turn in 0..CHANGES {
            let change = cluster.change();
            listen(cluster.planner.plan(), nft.portals().expect("it has portals"));
            let ops = nft.apply(cluster.planner.plan(), &change);
            program.take(&ops).unwrap_or_else(|error| panic!("seed {seed} turn {turn}: {error}"));
            for _ in 0..PACKETS {
                let packet = cluster.packet();
                let portals = nft.portals().expect("it has portals");
                check(cluster.planner.plan(), &program, portals, &packet, &mut met);
            }
            for (key, at) in nft.portals().expect("it has portals") {
                check_guarded(cluster.planner.plan(), &program, key.port.protocol, *at);
            }
        }
    }
    let pairs: usize = met.values().sum();
    assert!(pairs >= 20_000 && met.values().all(|count| *count >= 500) && met.len() == 5, "{met:?}");
}

fn check(plan: &Plan, program: &Program, portals: &Portals, packet: &Packet, met: &mut BTreeMap<&'static str, usize>) {
    let mut decision = decide(plan, packet);
    let done = outcome(program, portals, |key| plan.pool(key).cloned(), plan.node(), packet);
    *met.entry(kind(&decision)).or_default() += 1;
    match &mut decision.verdict {
        Verdict::Dnat(_) if packet.protocol == Protocol::Sctp => {
            let refused = Outcome::Rejects(RejectWith::PortUnreachable);
            return assert_eq!(done, refused, "{packet:?}: there is no SCTP here");
        }
        Verdict::Dnat(dnat) => dnat.candidates.iter_mut().for_each(|candidate| candidate.snat = true),
        _ => {}
    }
    agree(&decision, &done).unwrap_or_else(|error| panic!("{packet:?}\n{decision}\n{error}"));
}

/// Who was not led to a portal is refused there, wherever it is.
fn check_guarded(plan: &Plan, program: &Program, protocol: Protocol, at: SocketAddr) {
    if !plan.node().families.contains(&family_of(at.ip())) {
        return;
    }
    let (outside, node) = match at.is_ipv4() {
        true => ("198.51.100.10", "172.30.0.11"),
        false => ("fd98::10", "fd30::11"),
    };
    for (src, from) in [(outside, Ingress::Interface("eth0".to_owned())), (node, Ingress::Output)] {
        let src = src.parse().expect("an address");
        let packet = Packet { src, dst: at.ip(), port: at.port(), protocol, from };
        let done = outcome(program, &Portals::default(), |_| None, plan.node(), &packet);
        assert!(matches!(done, Outcome::Rejects(_)), "{packet:?}: {done:?}");
    }
}
