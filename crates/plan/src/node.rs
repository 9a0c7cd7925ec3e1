//! What is known of the Node the plan is for, and what follows from it alone: where a packet comes from, and which of the
//! Node's addresses serve node ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use fairlead_api::ip;
use fairlead_api::view::{self, Family};
use ipnet::{IpNet, Ipv4Net};

use crate::key::family_of;

/// The label with a Node's zone.
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
/// The label with a Node's host name.
pub(crate) const HOSTNAME: &str = "kubernetes.io/hostname";

/// The Node the plan is for, and how its proxy is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name: endpoints that name it are local.
    pub name: String,
    /// Its labels: the zone for hints, others for `topologyKeys`.
    pub labels: BTreeMap<String, String>,
    /// Its primary addresses, at most one of a family.
    pub ips: Vec<IpAddr>,
    /// Every address an interface of it has, but for those the proxy put there itself. Packets from them come from the Node,
    /// and node ports are served on them.
    pub addresses: BTreeSet<IpAddr>,
    /// Ranges in which the Pods of this Node are and no others; empty when that is not known. With them a Pod of another
    /// Node is told from one of this Node where [`LocalDetection::Ranges`] covers both.
    pub pod_ranges: Vec<IpNet>,
    /// How packets of Pods are known (`--detect-local-mode`).
    pub detection: LocalDetection,
    /// Where node ports are served (`--nodeport-addresses`).
    pub node_port_addresses: NodePortAddresses,
    /// Whether node ports are served on 127.0.0.0/8 too. IPv6 has no such thing: the kernel does not let ::1 out.
    pub localhost_node_ports: bool,
    /// Whether everything sent to a cluster IP gets the Node's address (`--masquerade-all`).
    pub masquerade_all: bool,
    /// Families that are proxied.
    pub families: BTreeSet<Family>,
    /// Ranges cluster IPs come from. With [`Node::guard_cluster_ips`] what nobody has there is dropped.
    pub service_ranges: Vec<IpNet>,
    /// Whether ports of a cluster IP that no Service has are refused (and see [`Node::service_ranges`]). Modes that do not
    /// say so let such packets go their way.
    pub guard_cluster_ips: bool,
    /// The gate ServiceTopology: whether `topologyKeys` count.
    pub topology_keys: bool,
}

/// Everything off, both families, detection by no means.
impl Default for Node {
    fn default() -> Node {
        Node {
            name: String::new(),
            labels: BTreeMap::new(),
            ips: Vec::new(),
            addresses: BTreeSet::new(),
            pod_ranges: Vec::new(),
            detection: LocalDetection::None,
            node_port_addresses: NodePortAddresses::Ranges(Vec::new()),
            localhost_node_ports: false,
            masquerade_all: false,
            families: BTreeSet::from([Family::V4, Family::V6]),
            service_ranges: Vec::new(),
            guard_cluster_ips: false,
            topology_keys: false,
        }
    }
}

/// How packets of Pods are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalDetection {
    /// Not at all: nothing is masqueraded for coming from elsewhere.
    None,
    /// By the address they come from: `ClusterCIDR` and `NodeCIDR`. A family without a range is not detected.
    Ranges(Vec<IpNet>),
    /// By the bridge they come in on: `BridgeInterface`.
    Bridge(String),
    /// By the beginning of the name of the interface they come in on: `InterfaceNamePrefix`.
    InterfacePrefix(String),
}

/// Where node ports are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodePortAddresses {
    /// On the primary addresses.
    Primary,
    /// On addresses in these ranges; a family without a range is served on all.
    Ranges(Vec<IpNet>),
}

/// Where node ports of a family are served on this Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodePorts {
    /// On every address of the Node.
    All {
        /// Loopback addresses too.
        loopback: bool,
    },
    /// On these. Each is one address of the Node, but for loopback, which is a range.
    Only(Vec<IpNet>),
}

/// How a packet reaches the Node's network stack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ingress {
    /// A process of the Node sends it.
    Output,
    /// It comes in on the interface of that name.
    Interface(String),
}

/// Where a packet comes from, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A Pod, as far as is known one of this Node.
    Pod,
    /// A Pod, but not of this Node. Only with [`LocalDetection::Ranges`] and [`Node::pod_ranges`].
    OtherPod,
    /// This Node itself.
    Node,
    /// Elsewhere.
    Outside,
}

impl Source {
    /// All of them, in the order in which [`crate::Actions`] keeps them.
    pub const ALL: [Source; 4] = [Source::Pod, Source::OtherPod, Source::Node, Source::Outside];
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Source::Pod => "a Pod",
            Source::OtherPod => "a Pod of another Node",
            Source::Node => "this Node",
            Source::Outside => "outside",
        })
    }
}

impl Node {
    /// What the Node object says. How the proxy is set up, and the addresses of interfaces, are still to be filled in.
    pub fn of(node: &view::Node) -> Node {
        let ips = primary_ips(node);
        Node {
            name: node.metadata.name.clone(),
            labels: node.metadata.labels.clone(),
            addresses: ips.iter().copied().collect(),
            ips,
            pod_ranges: node.spec.pod_cidrs.iter().filter_map(|range| ip::cidr::parse(range)).collect(),
            ..Node::default()
        }
    }

    /// The zone, if it has one.
    pub fn zone(&self) -> Option<&str> {
        self.labels.get(ZONE).map(String::as_str).filter(|zone| !zone.is_empty())
    }

    /// Whether Pods of that family are told from others at all.
    pub fn detects(&self, family: Family) -> bool {
        match &self.detection {
            LocalDetection::None => false,
            LocalDetection::Ranges(ranges) => of_family(ranges, family).next().is_some(),
            LocalDetection::Bridge(_) | LocalDetection::InterfacePrefix(_) => true,
        }
    }

    /// Where a packet with that source address comes from.
    pub fn source(&self, from: &Ingress, address: IpAddr) -> Source {
        if self.is_pod(from, address) {
            return if self.is_other_pod(address) { Source::OtherPod } else { Source::Pod };
        }
        if self.has(address) { Source::Node } else { Source::Outside }
    }

    fn is_pod(&self, from: &Ingress, address: IpAddr) -> bool {
        match (&self.detection, from) {
            (LocalDetection::Ranges(ranges), _) => contains(ranges, address),
            (LocalDetection::Bridge(bridge), Ingress::Interface(name)) => name == bridge,
            (LocalDetection::InterfacePrefix(prefix), Ingress::Interface(name)) => name.starts_with(prefix),
            _ => false,
        }
    }

    fn is_other_pod(&self, address: IpAddr) -> bool {
        let known = of_family(&self.pod_ranges, family_of(address)).next().is_some();
        let by_address = matches!(self.detection, LocalDetection::Ranges(_));
        by_address && known && !contains(&self.pod_ranges, address) && !self.has(address)
    }

    /// Whether it is an address of this Node.
    pub fn has(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.addresses.contains(&address)
    }

    /// Where node ports of a family are served.
    pub fn node_ports(&self, family: Family) -> NodePorts {
        let loopback = self.localhost_node_ports && family == Family::V4;
        let ranges = match &self.node_port_addresses {
            NodePortAddresses::Primary => {
                let primary = self.ips.iter().filter(|ip| family_of(**ip) == family);
                return NodePorts::Only(primary.map(|ip| IpNet::from(*ip)).collect());
            }
            NodePortAddresses::Ranges(ranges) => of_family(ranges, family).collect::<Vec<_>>(),
        };
        if ranges.is_empty() || ranges.iter().any(|range| range.prefix_len() == 0) {
            return NodePorts::All { loopback };
        }
        let chosen = |ip: &&IpAddr| !ip.is_loopback() && ranges.iter().any(|range| range.contains(*ip));
        let mut only: Vec<IpNet> = self.addresses.iter().filter(chosen).map(|ip| IpNet::from(*ip)).collect();
        if loopback {
            only.extend(ranges.iter().filter_map(loopback_part));
        }
        NodePorts::Only(only)
    }

    /// Whether a packet to that address may be for a node port.
    pub fn serves_node_ports_on(&self, address: IpAddr) -> bool {
        match self.node_ports(family_of(address)) {
            NodePorts::All { loopback } => self.has(address) && (loopback || !address.is_loopback()),
            NodePorts::Only(only) => only.iter().any(|net| net.contains(&address)),
        }
    }

    /// Whether Services come out the same on both: only what is looked up packet by packet differs.
    pub(crate) fn plans_like(&self, other: &Node) -> bool {
        let detects = |node: &Node| [Family::V4, Family::V6].map(|family| node.detects(family));
        let flags = |node: &Node| (node.masquerade_all, node.topology_keys, detects(node));
        let labels = self.labels == other.labels || !self.topology_keys && self.zone() == other.zone();
        let named = self.name == other.name && self.ips == other.ips && self.families == other.families;
        named && labels && flags(self) == flags(other)
    }
}

/// The first internal address of each family, or else the first external one.
fn primary_ips(node: &view::Node) -> Vec<IpAddr> {
    let mut ips: Vec<IpAddr> = Vec::new();
    for kind in ["InternalIP", "ExternalIP"] {
        let addresses = node.status.addresses.iter().filter(|address| address.kind == kind);
        for ip in addresses.filter_map(|address| ip::parse(&address.address)) {
            if !ips.iter().any(|known| family_of(*known) == family_of(ip)) {
                ips.push(ip);
            }
        }
    }
    ips
}

/// What of a range is loopback.
fn loopback_part(range: &IpNet) -> Option<IpNet> {
    let loopback = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8));
    match range {
        _ if loopback.contains(range) => Some(*range),
        _ if range.contains(&loopback) => Some(loopback),
        _ => None,
    }
}

fn of_family(ranges: &[IpNet], family: Family) -> impl Iterator<Item = IpNet> + '_ {
    ranges.iter().copied().filter(move |range| family_of(range.addr()) == family)
}

/// Whether an address is in one of the ranges.
pub(crate) fn contains(ranges: &[IpNet], address: IpAddr) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

#[cfg(test)]
mod tests;
