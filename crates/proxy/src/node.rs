//! What is known of this Node: from its object, from the settings, and from the interfaces the machine has.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairlead_api::view;
use fairlead_kernel::link::Links;
use fairlead_plan::{Change, LocalDetection, Node, family_of};
use ipnet::IpNet;

use crate::{Detection, Error, Mode, Settings};

// The addresses of Services that mode IPVS has on this link are not the Node's.
use fairlead_program::ipvs::LINK as IPVS_LINK;

/// The Node a plan is for. Without an object what the settings say must do.
pub(crate) fn node(settings: &Settings, mode: Mode, object: Option<&view::Node>, service_ranges: &[IpNet]) -> Node {
    let mut node = object.map(Node::of).unwrap_or_default();
    node.name = settings.node.clone();
    for ip in &settings.node_ips {
        node.ips.retain(|known| family_of(*known) != family_of(*ip));
        node.ips.push(*ip);
    }
    Node {
        detection: detection(settings, object),
        node_port_addresses: settings.node_ports_in(mode),
        localhost_node_ports: settings.localhost_in(mode),
        masquerade_all: settings.masquerade_all,
        service_ranges: service_ranges.to_vec(),
        guard_cluster_ips: mode == Mode::Nftables,
        topology_keys: settings.topology_keys,
        ..node
    }
}

fn detection(settings: &Settings, object: Option<&view::Node>) -> LocalDetection {
    match &settings.detection {
        Detection::ClusterCidr(ranges) if ranges.is_empty() => LocalDetection::None,
        Detection::ClusterCidr(ranges) => LocalDetection::Ranges(ranges.clone()),
        Detection::NodeCidr => match object.map(Node::of).unwrap_or_default().pod_ranges {
            ranges if ranges.is_empty() => LocalDetection::None,
            ranges => LocalDetection::Ranges(ranges),
        },
        Detection::Bridge(name) => LocalDetection::Bridge(name.clone()),
        Detection::InterfacePrefix(prefix) => LocalDetection::InterfacePrefix(prefix.clone()),
    }
}

/// The addresses of the machine's interfaces.
pub(crate) struct Addresses {
    links: Links,
    last: BTreeSet<IpAddr>,
}

impl Addresses {
    /// Opens the way to the interfaces of this thread's network namespace, and reads their addresses.
    pub(crate) fn open() -> Result<Addresses, Error> {
        let mut addresses = Addresses { links: Links::open()?, last: BTreeSet::new() };
        addresses.last = addresses.read()?;
        Ok(addresses)
    }

    fn read(&mut self) -> Result<BTreeSet<IpAddr>, Error> {
        let ipvs = self.links.find(IPVS_LINK)?.map(|link| link.index);
        let all = self.links.all_addresses()?.into_iter().filter(|(link, _)| Some(*link) != ipvs);
        Ok(all.map(|(_, prefix)| prefix.address).collect())
    }

    /// The Node with the addresses there are now, if they are others.
    pub(crate) fn changed(&mut self, node: &Node) -> Option<Node> {
        self.last = self.read().ok()?;
        (self.last != node.addresses).then(|| self.complete(node.clone()))
    }

    /// A change of the Node with the addresses last seen; others as they are.
    pub(crate) fn fill(&self, change: Change) -> Change {
        match change {
            Change::Node(node) => Change::Node(Box::new(self.complete(*node))),
            other => other,
        }
    }

    /// A Node with the addresses last seen.
    pub(crate) fn complete(&self, node: Node) -> Node {
        complete(node, self.last.clone())
    }
}

/// Puts addresses of interfaces into a Node. If nothing else says what its own addresses are, the first of each family are.
fn complete(mut node: Node, addresses: BTreeSet<IpAddr>) -> Node {
    if node.ips.is_empty() {
        let usable = || addresses.iter().copied().filter(is_usable);
        node.ips.extend(usable().find(IpAddr::is_ipv4).into_iter().chain(usable().find(IpAddr::is_ipv6)));
    }
    node.addresses = addresses;
    node
}

fn is_usable(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local(),
    }
}
