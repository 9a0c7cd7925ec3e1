//! Clusters and packets at random, for tests of those who render plans: so small that things get in each other's way, and
//! the same again from the same number.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{
    AddressType, Endpoint, EndpointHints, EndpointPort, EndpointSlice, Family, Hint, Ingress as LoadBalancer, Protocol,
    Service, ServicePort, ServiceType, SessionAffinity, TrafficPolicy,
};
use ipnet::IpNet;

use crate::change::Change;
use crate::decide::Packet;
use crate::key::FrontendKey;
use crate::node::{Ingress, LocalDetection, Node, NodePortAddresses};
use crate::plan::Plan;

const NODES: [&str; 3] = ["n1", "n2", "n3"];
const ZONES: [&str; 2] = ["za", "zb"];
const EXTERNAL: [&str; 6] = ["192.0.2.7", "192.0.2.8", "192.0.2.9", "10.96.0.1", "fd00:7::7", "fd00:7::8"];
const ADDRESSES: [&str; 6] = ["172.30.0.11", "172.30.1.11", "10.50.1.1", "fd30::11", "fd31::11", "fd50:0:0:1::1"];
const PROTOCOLS: [Protocol; 3] = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp];

/// Where chance comes from.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Chance that is the same for the same number.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A number below another, which is not 0. (The generator is splitmix64.)
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) as usize % end.max(1)
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn some(&mut self, of: &[&str], once_in: usize) -> Vec<String> {
        of.iter().filter(|_| self.once_in(once_in)).map(|text| (*text).to_owned()).collect()
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address written here")
}

fn range(text: &str) -> IpNet {
    text.parse().expect("a range written here")
}

/// Node `n1`, set up at random.
pub fn node(dice: &mut Dice) -> Node {
    let pods = || vec![range("10.50.0.0/16"), range("fd50::/48")];
    let detection = match dice.below(6) {
        0 => LocalDetection::None,
        1 => LocalDetection::Bridge("cni0".to_owned()),
        2 => LocalDetection::InterfacePrefix("cn".to_owned()),
        3 => LocalDetection::Ranges(vec![range("10.50.1.0/24")]),
        _ => LocalDetection::Ranges(pods()),
    };
    let node_port_addresses = match dice.below(4) {
        0 => NodePortAddresses::Primary,
        1 => NodePortAddresses::Ranges(vec![range("172.30.1.0/24"), range("127.0.0.0/8")]),
        _ => NodePortAddresses::Ranges(Vec::new()),
    };
    let zone = dice.pick(&ZONES);
    let labels = [("kubernetes.io/hostname", "n1"), ("topology.kubernetes.io/zone", zone)];
    Node {
        name: "n1".to_owned(),
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ips: vec![ip("172.30.0.11"), ip("fd30::11")],
        addresses: ADDRESSES.map(ip).into(),
        pod_ranges: if dice.once_in(2) { vec![range("10.50.1.0/24"), range("fd50:0:0:1::/64")] } else { Vec::new() },
        detection,
        node_port_addresses,
        localhost_node_ports: dice.once_in(3),
        masquerade_all: dice.once_in(5),
        families: if dice.once_in(6) { [Family::V4].into() } else { [Family::V4, Family::V6].into() },
        service_ranges: vec![range("10.96.0.0/16"), range("fd00:96::/108")],
        guard_cluster_ips: !dice.once_in(3),
        topology_keys: dice.once_in(4),
    }
}

/// Something that changes: a Service comes or goes, a slice of one does.
pub fn change(dice: &mut Dice) -> Change {
    match dice.below(16) {
        0 => Change::Service(service_key(dice), None),
        1 => Change::Slice(slice_key(dice), None),
        2 => Change::Labels(dice.pick(&NODES).to_owned(), Some(BTreeMap::from([("rack".to_owned(), "a".to_owned())]))),
        3..8 => Change::Service(service_key(dice), Some(Arc::new(service(dice)))),
        _ => Change::Slice(slice_key(dice), Some(Arc::new(slice(dice)))),
    }
}

fn service_key(dice: &mut Dice) -> Key {
    Key::new("default", dice.pick(&["a", "b", "c", "d"]))
}

fn slice_key(dice: &mut Dice) -> Key {
    Key::new("default", format!("slice-{}", dice.below(8)))
}

fn policy(dice: &mut Dice) -> TrafficPolicy {
    if dice.once_in(3) { TrafficPolicy::Local } else { TrafficPolicy::Cluster }
}

/// A Service of no name.
pub fn service(dice: &mut Dice) -> Service {
    let mut service = Service::default();
    let spec = &mut service.spec;
    let kinds = [ServiceType::ClusterIp, ServiceType::NodePort, ServiceType::LoadBalancer, ServiceType::LoadBalancer];
    spec.kind = dice.pick(&kinds);
    let number = dice.below(5);
    spec.cluster_ips = match dice.below(3) {
        0 => vec![format!("fd00:96::{number}")],
        1 => vec![format!("10.96.0.{number}"), format!("fd00:96::{number}")],
        _ => vec![format!("10.96.0.{number}")],
    };
    spec.cluster_ip = spec.cluster_ips[0].clone();
    (spec.internal_traffic_policy, spec.external_traffic_policy) = (policy(dice), policy(dice));
    spec.external_ips = dice.some(&EXTERNAL, 4);
    spec.load_balancer_source_ranges = dice.some(&["198.51.100.0/25", "172.30.0.0/24", "10.50.0.0/16", "fd98::/65"], 6);
    spec.health_check_node_port = 32000;
    if dice.once_in(3) {
        spec.session_affinity = SessionAffinity::ClientIp;
        spec.session_affinity_config.client_ip.timeout_seconds = Some(dice.pick(&[1, 30, 10_800]));
    }
    if dice.once_in(4) {
        spec.topology_keys = dice.some(&["kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack", "*"], 2);
    }
    spec.ports = (0..1 + dice.below(3)).map(|at| port(at, spec.kind, dice)).collect();
    let ingress = dice.some(&EXTERNAL, 4).into_iter();
    let mode = |dice: &mut Dice| dice.once_in(4).then(|| "Proxy".to_owned());
    service.status.load_balancer.ingress =
        ingress.map(|ip| LoadBalancer { ip, ip_mode: mode(dice), ..LoadBalancer::default() }).collect();
    service
}

fn port(at: usize, kind: ServiceType, dice: &mut Dice) -> ServicePort {
    let number = 80 + dice.below(3) as i32;
    let node_port = if kind == ServiceType::ClusterIp { 0 } else { 30_000 + dice.below(4) as i32 };
    let protocol = dice.pick(&PROTOCOLS);
    ServicePort { name: format!("p{at}"), protocol, port: number, node_port, ..ServicePort::default() }
}

/// A slice of no name that belongs to some Service.
pub fn slice(dice: &mut Dice) -> EndpointSlice {
    let mut slice = EndpointSlice::default();
    let owner = service_key(dice).name.to_string();
    slice.metadata.labels.insert("kubernetes.io/service-name".to_owned(), owner);
    let v6 = dice.once_in(3);
    slice.address_type = if v6 { AddressType::V6 } else { AddressType::V4 };
    for (at, protocol) in (0..3).flat_map(|at| PROTOCOLS.map(|protocol| (at, protocol))) {
        let (name, number) = (Some(format!("p{at}")), Some(8080 + at));
        slice.ports.push(EndpointPort { name, protocol: Some(protocol), port: number, app_protocol: None });
    }
    slice.endpoints = (0..dice.below(6)).map(|_| endpoint(v6, dice)).collect();
    if dice.once_in(3) {
        let text = weights(&slice.endpoints, dice);
        slice.metadata.annotations.insert("fairlead.dev/weight".to_owned(), text);
    }
    slice
}

/// One for all, or some for some.
fn weights(endpoints: &[Endpoint], dice: &mut Dice) -> String {
    let mut parts = vec![dice.pick(&["0", "1", "3", "7", "100"]).to_owned()];
    for address in endpoints.iter().filter_map(|endpoint| endpoint.addresses.first()) {
        if dice.once_in(2) {
            parts.push(format!("{address}={}", dice.pick(&["0", "1", "2", "19", "100"])));
        }
    }
    parts.join(",")
}

fn endpoint(v6: bool, dice: &mut Dice) -> Endpoint {
    let (node, host) = (1 + dice.below(3), 11 + dice.below(3));
    let address = match (v6, dice.once_in(10)) {
        // A process of the Node itself.
        (false, true) => format!("172.30.0.1{node}"),
        (true, true) => format!("fd30::1{node}"),
        (false, false) => format!("10.50.{node}.{host}"),
        (true, false) => format!("fd50:0:0:{node}::{host}"),
    };
    let mut endpoint =
        Endpoint { addresses: vec![address], node_name: Some(format!("n{node}")), ..Endpoint::default() };
    let (ready, terminating) = (!dice.once_in(4), dice.once_in(2));
    endpoint.conditions.ready = Some(ready);
    endpoint.conditions.serving = Some(ready || dice.once_in(2));
    endpoint.conditions.terminating = Some(!ready && terminating);
    let hint = |name: &str| vec![Hint { name: name.to_owned() }];
    endpoint.hints = match dice.below(6) {
        0 => Some(EndpointHints { for_nodes: hint(dice.pick(&NODES)), ..EndpointHints::default() }),
        1..3 => Some(EndpointHints { for_zones: hint(dice.pick(&ZONES)), ..EndpointHints::default() }),
        _ => None,
    };
    endpoint
}

/// A packet, mostly to something the plan knows, from anywhere.
pub fn packet(dice: &mut Dice, plan: &Plan) -> Packet {
    let keys: Vec<FrontendKey> = plan.frontends().map(|frontend| frontend.key).collect();
    let (dst, port, protocol) = match keys.len() {
        known if known > 0 && !dice.once_in(5) => {
            let key = keys[dice.below(known)];
            aimed(dice, key)
        }
        _ => (nowhere(dice), dice.pick(&[80, 81, 8080, 30_001, 7]), dice.pick(&PROTOCOLS)),
    };
    let (src, from) = sender(dice, dst);
    Packet { src, dst, port, protocol, from }
}

fn aimed(dice: &mut Dice, key: FrontendKey) -> (IpAddr, u16, Protocol) {
    match key {
        FrontendKey::Address { ip, protocol, port } => (ip, port, protocol),
        FrontendKey::NodePort { family: Family::V4, protocol, port } => {
            (ip(dice.pick(&["172.30.0.11", "172.30.1.11", "10.50.1.1", "127.0.0.1", "172.30.0.12"])), port, protocol)
        }
        FrontendKey::NodePort { protocol, port, .. } => {
            (ip(dice.pick(&["fd30::11", "fd31::11", "::1"])), port, protocol)
        }
    }
}

fn nowhere(dice: &mut Dice) -> IpAddr {
    let likely = ["10.96.0.1", "10.96.7.7", "fd00:96::1", "fd00:96::77", "172.30.0.11", "10.50.2.11", "192.0.2.99"];
    ip(dice.pick(&likely))
}

/// Someone who can send there, and how that reaches the Node.
fn sender(dice: &mut Dice, dst: IpAddr) -> (IpAddr, Ingress) {
    let on = |name: &str| Ingress::Interface(name.to_owned());
    let at = dice.below(if dst.is_loopback() { 1 } else { 7 });
    let [v4, v6] = match at {
        0 if dst.is_loopback() => ["127.0.0.1", "::1"],
        0 => ["172.30.0.11", "fd30::11"],
        1 => ["10.50.1.11", "fd50:0:0:1::11"],
        2 => ["10.50.1.12", "fd50:0:0:1::12"],
        3 => ["10.50.2.11", "fd50:0:0:2::11"],
        4 => ["172.30.0.12", "fd30::12"],
        5 => ["198.51.100.10", "fd98::10"],
        _ => ["198.51.100.200", "fd98:0:0:0:8000::10"],
    };
    let from = match at {
        0 => Ingress::Output,
        1 | 2 => on("cni0"),
        _ => on("eth0"),
    };
    (ip(if dst.is_ipv4() { v4 } else { v6 }), from)
}
