//! With the Services that are included and no others, the answer is the same: clusters and packets at random.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Service};
use fairlead_plan::random::{self, Dice};
use fairlead_plan::{Change, Node, Packet, Planner, decide};

use super::Concern;
use crate::trace::{To, way};
use crate::{Mode, Settings};

/// So many clusters, with so many packets each.
const CLUSTERS: u64 = 60;
const PACKETS: usize = 8;

#[derive(Default)]
struct Cluster {
    services: BTreeMap<Key, Arc<Service>>,
    slices: BTreeMap<Key, Arc<EndpointSlice>>,
}

impl Cluster {
    fn random(dice: &mut Dice) -> Cluster {
        let mut cluster = Cluster::default();
        for _ in 0..10 + dice.below(30) {
            match random::change(dice) {
                Change::Service(key, Some(service)) => drop(cluster.services.insert(key, service)),
                Change::Slice(key, Some(slice)) => drop(cluster.slices.insert(key, slice)),
                _ => (),
            }
        }
        cluster
    }

    /// A plan with the Services that pass.
    fn plan(&self, node: &Node, passes: impl Fn(&Service) -> bool) -> Planner {
        let services: Vec<_> = self.services.iter().filter(|(_, service)| passes(service)).collect();
        let belongs = |slice: &EndpointSlice| {
            let name = slice.metadata.labels.get("kubernetes.io/service-name");
            services.iter().any(|(key, _)| name.is_some_and(|name| **name == *key.name))
        };
        let slices = self.slices.iter().filter(|(_, slice)| belongs(slice));
        let mut planner = Planner::new(node.clone());
        planner.apply(services.iter().map(|(key, one)| Change::Service((*key).clone(), Some((*one).clone()))));
        planner.apply(slices.map(|(key, one)| Change::Slice(key.clone(), Some(one.clone()))));
        planner
    }
}

#[test]
fn services_that_are_not_included_change_nothing() {
    let (mut left_out, mut found) = (0, 0);
    for seed in 0..CLUSTERS {
        let mut dice = Dice::new(seed);
        let (node, cluster) = (random::node(&mut dice), Cluster::random(&mut dice));
        let whole = cluster.plan(&node, |_| true);
        for _ in 0..PACKETS {
            let packet = random::packet(&mut dice, whole.plan());
            let concern = Concern::of(&[To::Address(packet.dst, packet.port, packet.protocol)], |_| None);
            let part = cluster.plan(&node, |service| concern.includes(service));
            check(&whole, &part, &packet, seed);
            let included = cluster.services.values().filter(|service| concern.includes(service)).count();
            left_out += cluster.services.len() - included;
            found += included;
        }
    }
    assert!(left_out > 100 && found > 100, "{left_out} left out, {found} not");
}

fn check(whole: &Planner, part: &Planner, packet: &Packet, seed: u64) {
    let (whole, part) = (whole.plan(), part.plan());
    assert_eq!(decide(part, packet), decide(whole, packet), "cluster {seed}, {packet:?}");
    for mode in [Mode::Nftables, Mode::Iptables, Mode::Ipvs] {
        let way =
            |plan| way(plan, &Settings::default(), mode, packet).iter().map(|step| nameless(step)).collect::<Vec<_>>();
        assert_eq!(way(part), way(whole), "cluster {seed}, {mode:?}, {packet:?}");
    }
}

/// A step without the numbers that nftables knows frontends and pools by: they are given in the order of what is there, and on
/// a Node that has lived for a while they are others anyway.
fn nameless(step: &str) -> String {
    let mut parts = step.split("0x");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "0x" + part.trim_start_matches(|digit: char| digit.is_ascii_hexdigit()))
}

#[test]
fn a_service_that_is_named_includes_itself_and_who_has_its_addresses() {
    let service = |text: &str| serde_json::from_str::<Service>(text).expect("a Service");
    let web = service(
        r#"{"metadata": {"namespace": "default", "name": "web"}, "spec": {"clusterIP": "10.96.0.10", "ports": [{"port": 80}]}}"#,
    );
    let concern = Concern::of(&[To::Service(Key::new("default", "web"), None, None)], |_| Some(&web));
    let check = |text: &str, expected: bool| assert_eq!(concern.includes(&service(text)), expected, "{text}");
    check(r#"{"metadata": {"namespace": "default", "name": "web"}}"#, true);
    check(r#"{"metadata": {"namespace": "other", "name": "web"}}"#, false);
    check(r#"{"spec": {"clusterIP": "10.96.0.10"}}"#, true);
    check(r#"{"spec": {"clusterIP": "10.96.0.11"}}"#, false);
    check(r#"{"spec": {"clusterIP": "10.96.0.11", "externalIPs": ["10.96.0.10"]}}"#, true);
    check(r#"{"status": {"loadBalancer": {"ingress": [{"ip": "10.96.0.10"}]}}}"#, true);
    check(r#"{"spec": {"clusterIP": "10.96.0.11", "ports": [{"port": 8080, "nodePort": 80}]}}"#, true);
    check(r#"{"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}"#, false);
}
