//! The cluster the packets were recorded in: who has which address, who listens where, and how packets are routed.

use std::net::IpAddr;

/// Its Nodes; each has Pods `n1p1`, `n1p2`, `n1p3`.
pub(crate) const NODES: [&str; 3] = ["n1", "n2", "n3"];
/// The zones of the Nodes.
pub(crate) const ZONES: [&str; 3] = ["za", "za", "zb"];

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// The number in the name of a Node.
fn number(node: &str) -> usize {
    node[1..].parse().expect("the number of a Node")
}

/// Primary address, second address and that of the bridge.
pub(crate) fn node_ips(node: &str, v6: bool) -> [IpAddr; 3] {
    let i = number(node);
    if v6 {
        [ip(&format!("fd30::1{i}")), ip(&format!("fd31::1{i}")), ip(&format!("fd50:0:0:{i}::1"))]
    } else {
        [ip(&format!("172.30.0.1{i}")), ip(&format!("172.30.1.1{i}")), ip(&format!("10.50.{i}.1"))]
    }
}

pub(crate) fn pod_ranges(node: &str) -> [String; 2] {
    let i = number(node);
    [format!("10.50.{i}.0/24"), format!("fd50:0:0:{i}::/64")]
}

pub(crate) fn pod_ip(pod: &str, v6: bool) -> IpAddr {
    let (node, place) = pod.split_once('p').expect("a Pod is named after its Node");
    let (i, host) = (number(node), 10 + number(&format!("p{place}")));
    if v6 { ip(&format!("fd50:0:0:{i}::{host}")) } else { ip(&format!("10.50.{i}.{host}")) }
}

/// Who has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A Pod and its Node.
    Pod(String, &'static str),
    Node(&'static str),
    Outside,
}

pub(crate) fn owner(address: IpAddr) -> Option<Owner> {
    for node in NODES {
        for v6 in [false, true] {
            if node_ips(node, v6).contains(&address) {
                return Some(Owner::Node(node));
            }
            let pods = (1..=3).map(|place| format!("{node}p{place}"));
            if let Some(pod) = pods.into_iter().find(|pod| pod_ip(pod, v6) == address) {
                return Some(Owner::Pod(pod, node));
            }
        }
    }
    let outside: [ipnet::IpNet; 2] = ["198.51.100.0/24", "fd98::/64"].map(|range| range.parse().expect("a range"));
    outside.iter().any(|range| range.contains(&address)).then_some(Owner::Outside)
}
