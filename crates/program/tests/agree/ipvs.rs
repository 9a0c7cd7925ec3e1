//! Mode IPVS.

use std::collections::BTreeMap;

use fairlead_plan::{Change, Decision, Family, Node, Packet, Plan, Protocol, RejectWith, Step, Verdict, decide};
use fairlead_program::agree;
use fairlead_program::ipvs::{At, Ipvs, Marks, Options, Program, Server, outcome, render, trace};
use fairlead_program::nft::{Element, Fate, Value};

use crate::{CHANGES, CLUSTERS, Cluster, PACKETS, kind};

const MARK: u32 = 0xa5a5_1234;

#[test]
fn packets_meet_what_the_plan_says_after_every_change() {
    let mut met: BTreeMap<&str, usize> = BTreeMap::new();
    let options = Options::default();
    for seed in 0..CLUSTERS {
        let mut cluster = Cluster::new(seed);
        keep_to_itself(&mut cluster);
        let (mut ipvs, ops) = Ipvs::new(cluster.planner.plan(), options.clone());
        let mut program = Program::default();
        program.take(&ops).expect("a program from nothing");
        for turn in 0..CHANGES {
            let mut change = cluster.change();
            if change.node.is_some() {
                ipvs_takes(&mut ipvs, &mut program, cluster.planner.plan(), &change, seed);
                change = keep_to_itself(&mut cluster);
            }
            ipvs_takes(&mut ipvs, &mut program, cluster.planner.plan(), &change, seed);
            for _ in 0..PACKETS {
                check(&mut cluster, &program, seed, &mut met);
            }
            let anew = render(cluster.planner.plan(), &options);
            assert_eq!(nameless(&program), nameless(&anew), "seed {seed} turn {turn}");
            assert_eq!(ipvs.servers(), program.servers, "seed {seed} turn {turn}");
        }
    }
    let pairs: usize = met.values().sum();
    assert!(pairs >= 20_000 && met.values().all(|count| *count >= 500) && met.len() == 6, "{met:?}");
}

fn ipvs_takes(ipvs: &mut Ipvs, program: &mut Program, plan: &Plan, change: &fairlead_plan::PlanChange, seed: u64) {
    let ops = ipvs.apply(plan, change);
    program.take(&ops).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{ops:#?}"));
}

/// IPVS sends nothing on that is from a loopback address.
fn keep_to_itself(cluster: &mut Cluster) -> fairlead_plan::PlanChange {
    let node = Node { localhost_node_ports: false, ..cluster.planner.plan().node().clone() };
    cluster.planner.apply([Change::Node(Box::new(node))])
}

fn check(cluster: &mut Cluster, program: &Program, seed: u64, met: &mut BTreeMap<&'static str, usize>) {
    let packet = cluster.packet();
    let plan = cluster.planner.plan();
    let mut decision = decide(plan, &packet);
    let mut kind = kind(&decision);
    if is_nobodys_port(program, &packet, &decision) {
        kind = "refused here";
        let health = packet.protocol == Protocol::Tcp && plan.health_checks().any(|check| check.port == packet.port);
        let refused = Verdict::Reject(RejectWith::of(packet.protocol));
        decision.verdict = if health { Verdict::NotOurs } else { refused };
    }
    let done = outcome(program, plan.node(), &packet);
    if let Err(error) = agree(&decision, &done) {
        let traced = trace(program, plan.node(), &packet, 0, 0);
        let steps: Vec<String> = traced.filter.steps.iter().map(ToString::to_string).collect();
        panic!("seed {seed}: {packet:?}\n{decision}\n{error}\n{}\n{:?}\n{program}", steps.join("\n"), plan.node());
    }
    *met.entry(kind).or_default() += 1;
    // Foreign marks survive where IPVS does not need the mark, and ours never show.
    let marked = trace(program, plan.node(), &packet, MARK, 0);
    let by_mark = matches!(marked.server, Some(At::Mark { .. }));
    let went_out = matches!(marked.filter.fate, Fate::Passes { dnat: Some(to), .. } if !plan.node().has(to.ip()));
    match (by_mark, marked.filter.fate) {
        (true, _) if went_out => assert_eq!(marked.filter.mark & !(1 << 14), 0, "{packet:?}"),
        (true, _) => assert!(Marks::new(1 << 14).is_ours(marked.filter.mark) || marked.filter.mark == 0, "{packet:?}"),
        (false, Fate::Passes { snat: true, .. }) => assert_eq!(marked.filter.mark, MARK, "{packet:?}"),
        (false, _) => assert_eq!((marked.filter.mark ^ MARK) & !(1 << 14), 0, "{packet:?}"),
    }
}

/// The Node has the addresses of Services: where in other modes a packet to another port would go its way, it is refused.
fn is_nobodys_port(program: &Program, packet: &Packet, decision: &Decision) -> bool {
    let nobodys = decision.steps.iter().any(|step| matches!(step, Step::NoFrontend(..)));
    nobodys && program.addresses.contains(&packet.dst)
}

/// What is there without the numbers given to ports.
#[derive(Debug, PartialEq)]
struct Nameless<'a> {
    addresses: &'a std::collections::BTreeSet<std::net::IpAddr>,
    by_address: Vec<(&'a At, &'a Server)>,
    by_mark: Vec<(Family, &'a Server)>,
    chains: Vec<&'a fairlead_program::nft::Chain>,
    elements: Vec<(&'static str, Vec<&'a Element>)>,
    /// Where marks lead.
    marks: Vec<(&'a [u8], Vec<&'a Server>)>,
}

fn nameless(program: &Program) -> Nameless<'_> {
    let tables = || program.filter.tables.iter();
    let (marks, elements) = tables()
        .flat_map(|(family, table)| table.sets.iter().map(move |(name, (_, elements))| (*family, *name, elements)))
        .partition::<Vec<_>, _>(|(_, name, _)| name.ends_with("marks"));
    let mut by_mark: Vec<(Family, &Server)> = Vec::new();
    for (at, server) in &program.servers {
        if let At::Mark { family, .. } = at {
            by_mark.push((*family, server));
        }
    }
    by_mark.sort();
    let leads = |element: &Element| {
        let Some(Value::Data(data)) = &element.value else { panic!("{element:?} is no data") };
        let mark = data.as_number().expect("a mark");
        let all = [0, 1 << 14, 1 << 24, 1 << 24 | 1 << 14]
            .into_iter()
            .flat_map(move |bits| [Family::V4, Family::V6].map(|family| At::Mark { family, mark: mark | bits }));
        all.filter_map(|at| program.servers.get(&at)).collect::<Vec<_>>()
    };
    let marks = marks.into_iter().flat_map(|(_, _, elements)| elements.values());
    Nameless {
        addresses: &program.addresses,
        by_address: program.servers.iter().filter(|(at, _)| matches!(at, At::Address { .. })).collect(),
        by_mark,
        chains: tables().flat_map(|(_, table)| table.chains.values()).collect(),
        elements: elements.into_iter().map(|(_, name, elements)| (name, elements.values().collect())).collect(),
        marks: marks.map(|element| (element.key.as_bytes(), leads(element))).collect(),
    }
}
