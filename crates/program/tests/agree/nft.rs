//! Mode nftables.

use std::collections::BTreeMap;

use fairlead_api::source::Key as Name;
use fairlead_api::view;
use fairlead_plan::{Change, Ingress, Packet, Planner, Protocol, decide};
use fairlead_program::agree;
use fairlead_program::nft::{
    Element, Fate, Key, Known, Memory, Nft, Options, Program, Table, Value, clear, outcome, render, trace,
};

use crate::{CHANGES, CLUSTERS, Cluster, PACKETS, kind};

const MARK: u32 = 0xa5a5_1234;

#[test]
fn packets_meet_what_the_plan_says_after_every_change() {
    let mut met: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 0..CLUSTERS {
        let mut cluster = Cluster::new(seed);
        let (mut nft, ops) = Nft::new(cluster.planner.plan(), Options::default());
        let mut program = Program::default();
        program.take(&ops).expect("a program from nothing");
        for turn in 0..CHANGES {
            let change = cluster.change();
            let ops = nft.apply(cluster.planner.plan(), &change);
            program.take(&ops).unwrap_or_else(|error| panic!("seed {seed} turn {turn}: {error}\n{ops:#?}"));
            for _ in 0..PACKETS {
                check(&mut cluster, &program, seed, &mut met);
            }
            let anew = render(cluster.planner.plan(), Options::default());
            assert_eq!(nameless(&program), nameless(&anew), "seed {seed} turn {turn}");
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
        let traced = trace(program, plan.node(), &packet, 0, &mut Memory::default(), &mut |_| 0);
        let steps: Vec<String> = traced.steps.iter().map(ToString::to_string).collect();
        panic!("seed {seed}: {packet:?}\n{decision}\n{error}\n{}\n{:?}", steps.join("\n"), plan.node());
    }
    let kind = kind(&decision);
    *met.entry(kind).or_default() += 1;
    // Foreign marks survive, and clients stay where they were whatever is drawn.
    let mut memory = Memory::default();
    let mut go = |drawn: u32| trace(program, plan.node(), &packet, MARK, &mut memory, &mut |end| drawn.min(end - 1));
    let (first, second) = (go(u32::MAX), go(0));
    assert_eq!(((first.mark ^ MARK) & !(1 << 14), (second.mark ^ MARK) & !(1 << 14)), (0, 0), "{packet:?}");
    if let (Fate::Passes { snat: true, .. }, 0) = (first.fate, MARK & (1 << 14)) {
        assert_eq!(first.mark, MARK, "{packet:?}");
    }
    if kind == "stays" {
        assert_eq!(first.fate, second.fate, "{packet:?}");
    }
}

/// What the tables say without the numbers given to ports and members, and without the order of slots.
fn nameless(program: &Program) -> BTreeMap<fairlead_plan::Family, Nameless<'_>> {
    program.tables.iter().map(|(family, table)| (*family, Nameless::of(table))).collect()
}

#[derive(Debug, PartialEq)]
struct Nameless<'a> {
    chains: Vec<&'a fairlead_program::nft::Chain>,
    /// By frontend: flags, and for both scopes the spread and the sorted endpoints.
    frontends: Vec<(Key, u32, [Option<Content>; 2])>,
    others: Vec<(&'static str, Vec<Element>)>,
    counts: Vec<(&'static str, usize)>,
}

const NUMBERED: [&str; 7] = ["frontends", "nodeports", "pools", "draws", "endpoints", "choices", "members"];
/// There are as many chains as the largest pool ever needed.
fn is_size(name: &str) -> bool {
    name.starts_with("balance") || name.starts_with("draw")
}
const PORT: u32 = (1 << 23) - 1;

impl Nameless<'_> {
    fn of(table: &Table) -> Nameless<'_> {
        let elements = |set: &str| table.sets[set].1.values();
        let frontends = ["frontends", "nodeports"].into_iter().flat_map(elements).map(|element| {
            let number = data(&element.value).as_number().expect("a number");
            let pools = [number & PORT, number & PORT | 1 << 23].map(|pool| content(table, pool));
            (element.key, number & !PORT, pools)
        });
        let others = table.sets.iter().filter(|(name, _)| !NUMBERED.contains(name) && !is_size(name));
        let listed = others.map(|(name, (_, elements))| (*name, elements.values().cloned().collect()));
        let counts = NUMBERED.map(|name| (name, table.sets[name].1.len()));
        let fixed = |name: &str| !name.starts_with("lb-") && !name.starts_with("draw-");
        Nameless {
            chains: table.chains.values().filter(|chain| fixed(&chain.name)).collect(),
            frontends: frontends.collect(),
            others: listed.collect(),
            counts: counts.into(),
        }
    }
}

fn data(value: &Option<Value>) -> Key {
    match value {
        Some(Value::Data(data)) => *data,
        other => panic!("{other:?} is no data"),
    }
}

/// A pool: how it is spread, and its endpoints.
type Content = (u32, Vec<Key>);

fn content(table: &Table, pool: u32) -> Option<Content> {
    let find = |set: &str, key: Key| table.sets[set].1.get(&key).map(|element| data(&element.value));
    let spread = find("pools", Key::new().number(pool))?.as_number().expect("a number");
    let key = |number: u32| Key::new().number(pool).number(number);
    let endpoint = |slot| match spread >> 15 {
        0 => find("endpoints", key(slot)),
        _ => find("members", key(find("choices", key(slot))?.as_number()?)),
    };
    let mut endpoints: Vec<Key> = (0..).map_while(endpoint).collect();
    endpoints.sort_unstable();
    Some((spread, endpoints))
}

#[test]
fn pools_of_any_size_are_spread_evenly_and_a_gone_endpoint_is_forgotten() {
    for affinity in [None, Some(7)] {
        let mut pool = Pool::new(affinity);
        for count in [1, 2, 16, 17, 23, 24, 64, 65, 100, 300, 299, 12, 0, 5] {
            pool.resize(count);
            let done = outcome(&pool.program, pool.planner.plan().node(), &pool.packet);
            agree(&decide(pool.planner.plan(), &pool.packet), &done).unwrap_or_else(|error| panic!("{count}: {error}"));
            if count > 0 {
                // Whatever is drawn leads somewhere, and what the client had last time is no obstacle.
                for drawn in [0, count as u32 - 1, count as u32, u32::MAX] {
                    let fate = pool.send(drawn);
                    assert!(matches!(fate, Fate::Passes { dnat: Some(_), .. }), "{count} {drawn}: {fate:?}");
                    assert!(affinity.is_none() || pool.send(drawn / 2) == fate, "{count} {drawn}");
                }
                // The next time this endpoint may be gone.
                pool.memory = Memory::default();
                pool.send(count as u32 - 1);
            }
        }
    }
}

fn slice(service: &str, count: usize) -> view::EndpointSlice {
    let mut slice = view::EndpointSlice::default();
    slice.metadata.labels.insert("kubernetes.io/service-name".to_owned(), service.to_owned());
    slice.ports = vec![view::EndpointPort { port: Some(8080), protocol: Some(Protocol::Tcp), ..Default::default() }];
    let address = |at: usize| vec![format!("10.244.{}.{}", at / 200, at % 200)];
    slice.endpoints = (0..count).map(|at| view::Endpoint { addresses: address(at), ..Default::default() }).collect();
    slice
}

/// One Service, its pool and one client.
struct Pool {
    planner: Planner,
    nft: Nft,
    program: Program,
    memory: Memory,
    packet: Packet,
}

impl Pool {
    fn new(affinity: Option<i32>) -> Pool {
        let mut service = view::Service::default();
        service.spec.cluster_ip = "10.96.0.1".to_owned();
        service.spec.ports = vec![view::ServicePort { port: 80, ..Default::default() }];
        if affinity.is_some() {
            service.spec.session_affinity = view::SessionAffinity::ClientIp;
            service.spec.session_affinity_config.client_ip.timeout_seconds = affinity;
        }
        let mut planner = Planner::default();
        planner.apply([Change::Service(Name::new("default", "web"), Some(service.into()))]);
        let (nft, ops) = Nft::new(planner.plan(), Options::default());
        let mut program = Program::default();
        program.take(&ops).expect("a program from nothing");
        let from = Ingress::Interface("cni0".to_owned());
        let (src, dst) = ([10, 244, 1, 9].into(), [10, 96, 0, 1].into());
        let packet = Packet { src, dst, port: 80, protocol: Protocol::Tcp, from };
        Pool { planner, nft, program, memory: Memory::default(), packet }
    }

    fn resize(&mut self, count: usize) {
        let slice = slice("web", count);
        let change = self.planner.apply([Change::Slice(Name::new("default", "web-1"), Some(slice.into()))]);
        let ops = self.nft.apply(self.planner.plan(), &change);
        self.program.take(&ops).unwrap_or_else(|error| panic!("{count}: {error}"));
    }

    fn send(&mut self, drawn: u32) -> Fate {
        let node = self.planner.plan().node();
        trace(&self.program, node, &self.packet, 0, &mut self.memory, &mut |end| drawn.min(end - 1)).fate
    }
}

#[test]
fn after_a_restart_clients_stay_where_they_were() {
    let mut pool = Pool::new(Some(7));
    pool.resize(9);
    pool.resize(5);
    let before = pool.send(3);
    let mut known: BTreeMap<_, Known> = BTreeMap::new();
    for (family, table) in &pool.program.tables {
        for (name, (_, elements)) in &table.sets {
            for element in elements.values() {
                if let Some(Value::Data(value)) = &element.value {
                    known.entry(*family).or_default().read(name, element.key.as_bytes(), value.as_bytes());
                }
            }
        }
    }
    // Another Service comes first and would get the first number.
    let mut first = view::Service::default();
    first.spec.cluster_ip = "10.96.0.0".to_owned();
    first.spec.ports = vec![view::ServicePort { port: 80, ..Default::default() }];
    pool.planner.apply([
        Change::Service(Name::new("default", "first"), Some(first.into())),
        Change::Slice(Name::new("default", "first-1"), Some(slice("first", 3).into())),
    ]);
    let (nft, mut ops) = Nft::resume(pool.planner.plan(), Options::default(), &known);
    ops.splice(0..0, clear());
    pool.program.take(&ops).expect("in the place of what is there");
    pool.nft = nft;
    assert_eq!(pool.send(0), before);
    pool.resize(6);
    assert_eq!(pool.send(1), before);
}
