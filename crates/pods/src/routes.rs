//! How packets find Pods on other machines: a route for the range of every other Node, through that Node's address where it is in
//! a network of this machine, and through a network inside the network (VXLAN) where it is not.
//!
//! The routes have a number in the kernel that says they are ours: those of Nodes that have gone are found and removed, and
//! nobody else's is touched.

use std::net::IpAddr;
use std::time::Duration;

use fairlead_api::view::Node;
use fairlead_cluster::{Cluster, Mirror};
use fairlead_kernel::Error;
use fairlead_kernel::link::{Links, Prefix, Route};
use ipnet::IpNet;
use tokio_util::sync::CancellationToken;

#[cfg(test)]
mod tests;
mod tunnel;

/// Who made a route, as `ip route` shows it: `proto 207`.
const OWNER: u8 = 207;
/// How often routes are looked at although no Node changed: whoever takes a link down takes its routes with it.
const LOOK: Duration = Duration::from_secs(15);

/// Keeps routes to the Pods of all Nodes but `own`, within the ranges of the cluster, until told to stop. They stay then.
pub async fn run(cluster: Cluster, own: String, ranges: Vec<IpNet>, stop: CancellationToken) {
    let mut mirror = Mirror::builder(&cluster).with::<Node>().build();
    stop.run_until_cancelled(mirror.sync()).await;
    let mut said = Vec::new();
    while !stop.is_cancelled() {
        let nodes = mirror.all::<Node>().map(|node| Peer::read(node, &ranges));
        let (here, others): (Vec<Peer>, Vec<Peer>) = nodes.partition(|node| node.name == own);
        let here = here.into_iter().next().and_then(|node| node.addresses.first().copied());
        let done = tokio::task::spawn_blocking(move || keep(here, &others)).await;
        let problems = match done {
            Ok(Ok(problems)) => problems,
            Ok(Err(error)) => vec![format!("routes to other Nodes cannot be kept: {error}")],
            Err(_) => Vec::new(),
        };
        problems.iter().filter(|problem| !said.contains(*problem)).for_each(|problem| tracing::warn!("{problem}"));
        said = problems;
        tokio::select! {
            () = stop.cancelled() => {}
            _ = mirror.next() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Removes all routes of ours, and says which they were.
pub fn remove() -> Result<Vec<String>, Error> {
    let mut links = Links::open()?;
    let mut removed = Vec::new();
    for like in FAMILIES {
        for route in links.owned_routes(OWNER, like)? {
            links.delete_owned_route(OWNER, &route)?;
            removed.push(format!("route to {}/{}", route.destination.address, route.destination.length));
        }
    }
    removed.extend(tunnel::remove(&mut links)?);
    Ok(removed)
}

/// An address of each family.
const FAMILIES: [IpAddr; 2] =
    [IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED)];

/// Another Node: where it is, and which ranges its Pods have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Peer {
    name: String,
    addresses: Vec<IpAddr>,
    ranges: Vec<IpNet>,
}

impl Peer {
    /// What is not in the cluster's ranges is nobody's to route.
    fn read(node: &Node, cluster: &[IpNet]) -> Peer {
        let internal = node.status.addresses.iter().filter(|address| address.kind == "InternalIP");
        let ranges = node.spec.pod_cidrs.iter().filter_map(|text| text.parse::<IpNet>().ok());
        Peer {
            name: node.metadata.name.clone(),
            addresses: internal.filter_map(|address| address.address.parse().ok()).collect(),
            ranges: ranges.filter(|range| cluster.iter().any(|all| all.contains(range))).collect(),
        }
    }
}

/// Makes routes as they should be, and says what cannot be reached and why. `here` is the address other Nodes know us by.
fn keep(here: Option<IpAddr>, nodes: &[Peer]) -> Result<Vec<String>, Error> {
    let mut links = Links::open()?;
    let near = links.all_addresses()?;
    let ways = plan(nodes, &near);
    let mut problems = Vec::new();
    let tunnel = match here.filter(|_| ways.iter().any(|way| way.link.is_none())) {
        Some(here) => tunnel::prepare(&mut links, here).map_err(|error| problems.push(error.to_string())).ok(),
        None => None,
    };
    let (mut wanted, mut wrapped) = (Vec::new(), Vec::new());
    for way in ways {
        match (way.link, tunnel) {
            (Some(link), _) => wanted.push(way.route(way.through, link)),
            (None, Some(link)) => match tunnel::connect(&mut links, link, &way) {
                Ok(gateway) => wrapped.push(way.route(gateway, link)),
                Err(error) => problems.push(format!("Pods of Node {} cannot be reached: {error}", way.node)),
            },
            // Why there is no tunnel was said; without an address of our own there is none yet.
            (None, None) => {}
        }
    }
    for like in FAMILIES {
        let there = links.owned_routes(OWNER, like)?;
        for old in there.iter().filter(|route| !wanted.contains(route) && !wrapped.contains(route)) {
            links.delete_owned_route(OWNER, old)?;
        }
        let missing = |route: &&Route| route.destination.address.is_ipv4() == like.is_ipv4() && !there.contains(route);
        let plain = wanted.iter().filter(missing).map(|route| links.add_owned_route(OWNER, route));
        let failed: Vec<Error> = plain.filter_map(Result::err).collect();
        let inner = wrapped.iter().filter(missing).map(|route| links.add_owned_route_on_link(OWNER, route));
        let failed = failed.into_iter().chain(inner.filter_map(Result::err));
        problems.extend(failed.map(|error| match error.is_exists() {
            true => format!("a route to Pods of another Node is there that is not ours, and is left alone: {error}"),
            false => format!("Pods of another Node cannot be reached: {error}"),
        }));
    }
    Ok(problems)
}

/// How the Pods of a range are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Way {
    node: String,
    range: IpNet,
    /// An address of the Node.
    through: IpAddr,
    /// The link the Node is at; `None`: it is no neighbour.
    link: Option<u32>,
}

impl Way {
    fn route(&self, gateway: IpAddr, link: u32) -> Route {
        let destination = Prefix { address: self.range.network(), length: self.range.prefix_len() };
        Route { destination, gateway: Some(gateway), link: Some(link), source: None }
    }
}

/// How the Pods of Nodes are reached, given the addresses of this machine's links. A Node without addresses is not there yet.
fn plan(nodes: &[Peer], near: &[(u32, Prefix)]) -> Vec<Way> {
    let way = |node: &Peer, range: &IpNet| {
        let same = |ip: &&IpAddr| ip.is_ipv4() == range.addr().is_ipv4();
        let direct = node.addresses.iter().filter(same).find_map(|ip| Some((*ip, Some(link_to(*ip, near)?))));
        let (through, link) = direct.or_else(|| Some((*node.addresses.first()?, None)))?;
        Some(Way { node: node.name.clone(), range: *range, through, link })
    };
    nodes.iter().flat_map(|node| node.ranges.iter().filter_map(move |range| way(node, range))).collect()
}

/// The link whose network has an address. That of the longest prefix, as a route would be chosen.
fn link_to(ip: IpAddr, near: &[(u32, Prefix)]) -> Option<u32> {
    let network = |prefix: &Prefix| IpNet::new(prefix.address, prefix.length).ok();
    let whole = |prefix: &Prefix| prefix.length == if prefix.address.is_ipv4() { 32 } else { 128 };
    let holds = near.iter().filter(|(_, prefix)| !whole(prefix) && prefix.address != ip);
    let holds = holds.filter(|(_, prefix)| network(prefix).is_some_and(|network| network.contains(&ip)));
    holds.max_by_key(|(_, prefix)| prefix.length).map(|(link, _)| *link)
}
