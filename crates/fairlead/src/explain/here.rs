//! What is this machine in the cluster, and where on it is a Pod?

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use fairlead_api::ip;
use fairlead_api::view::{Node, View};
use fairlead_cluster::{Cluster, Selection};
use fairlead_explain::Pod;
use fairlead_kernel::link::Links;
use fairlead_kernel::netns::Namespace;
use fairlead_proxy::{Detection, Settings};
use ipnet::IpNet;

use crate::config::Config;

#[cfg(test)]
mod tests;

/// A Node that this machine is, on which everything may be looked at.
#[derive(Debug, Clone)]
pub(crate) struct Here {
    /// The name of the Node.
    pub(crate) node: String,
    /// What its proxy was told, as far as that is known.
    pub(crate) proxy: Settings,
}

impl Here {
    /// The machine on which a server runs that is a Node, too.
    pub(crate) fn of(config: &Config) -> Option<Here> {
        let node = config.node.as_ref()?;
        let proxy = config.proxy.clone().unwrap_or_else(|| settings(&node.name));
        Some(Here { node: node.name.clone(), proxy: Settings { node: node.name.clone(), ..proxy } })
    }

    /// This machine, if it is a Node of the cluster. Otherwise, why it cannot look.
    pub(crate) async fn find(cluster: &Cluster) -> Result<Here, String> {
        let list = cluster.list(&Selection::all(Node::KIND)).await.map_err(|error| format!("Nodes: {error}"))?;
        let nodes: Vec<Node> =
            list.objects.iter().filter_map(|object| serde_json::from_slice(&object.json).ok()).collect();
        if !is_root() {
            return Err("sockets and rules are seen only by root: run it with sudo on the Node".to_owned());
        }
        let own = addresses().map_err(|error| error.to_string())?;
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let Some(node) = nodes.iter().find(|node| is_machine(node, &own, name.trim())) else {
            let names: Vec<&str> = nodes.iter().map(|node| node.metadata.name.as_str()).collect();
            return Err(match names[..] {
                [] => "the cluster has no Nodes".to_owned(),
                _ => format!("this machine is no Node of the cluster: run it on {}", names.join(" or ")),
            });
        };
        let name = node.metadata.name.as_str();
        Ok(Here { node: name.to_owned(), proxy: settings(name) })
    }
}

/// Whether a Node is the machine with these addresses: one of them is the Node's. Without any network a Node has none but its name.
fn is_machine(node: &Node, own: &[IpAddr], name: &str) -> bool {
    let told = &node.status.addresses;
    let ips: Vec<IpAddr> = told.iter().filter_map(|address| ip::parse(&address.address)).collect();
    match ips[..] {
        [] => told.iter().any(|address| address.kind == "Hostname" && address.address.eq_ignore_ascii_case(name)),
        _ => ips.iter().any(|ip| own.contains(ip)),
    }
}

/// What a proxy is told by default.
pub(super) fn settings(node: &str) -> Settings {
    Settings { node: node.to_owned(), detection: Detection::NodeCidr, ..Settings::default() }
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = |line: &str| line.strip_prefix("Uid:")?.split_whitespace().nth(1).map(|id| id == "0");
    status.lines().find_map(effective).unwrap_or(false)
}

/// The addresses of this machine that others may use.
fn addresses() -> Result<Vec<IpAddr>, fairlead_kernel::Error> {
    let all = Links::open()?.all_addresses()?;
    Ok(all.into_iter().map(|(_, prefix)| prefix.address).filter(|ip| !ip.is_loopback()).collect())
}

/// The file of a Pod's network namespace on this machine.
pub(super) fn namespace(pod: &Pod) -> Option<PathBuf> {
    if pod.view.spec.host_network {
        return Some(PathBuf::from("/proc/self/ns/net"));
    }
    let addresses: Vec<IpAddr> = pod.view.addresses().filter_map(ip::parse).collect();
    let ours = addresses.iter().find_map(|ip| fairlead_pods::namespace_of(*ip).ok().flatten());
    ours.or_else(|| of_others(&addresses.into_iter().filter(|ip| is_beside(*ip)).collect::<Vec<_>>()))
}

/// Whether this machine reaches an address by a link of its own, without a router.
fn is_beside(ip: IpAddr) -> bool {
    let routes = Links::open().and_then(|mut links| links.routes(ip)).unwrap_or_default();
    routes.iter().any(|route| {
        let range = IpNet::new(route.destination.address, route.destination.length);
        route.gateway.is_none() && route.destination.length > 0 && range.is_ok_and(|range| range.contains(&ip))
    })
}

/// The only namespace of this machine with such an address, as other runtimes make them.
fn of_others(addresses: &[IpAddr]) -> Option<PathBuf> {
    if addresses.is_empty() {
        return None;
    }
    let own = std::fs::read_link("/proc/self/ns/net").ok()?;
    let mut seen = vec![own];
    let mut found = None;
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let file = entry.path().join("ns/net");
        let Ok(identity) = std::fs::read_link(&file) else { continue };
        if seen.contains(&identity) {
            continue;
        }
        seen.push(identity);
        if !has(&entry.path(), addresses) {
            continue;
        }
        if found.is_some() {
            // Two clusters on one machine: nobody knows which is meant.
            return None;
        }
        found = Some(file);
    }
    found
}

/// Whether the network of a process has one of the addresses.
fn has(process: &Path, addresses: &[IpAddr]) -> bool {
    let Ok(namespace) = Namespace::at(&process.join("ns/net")) else { return false };
    let own = namespace.run(self::addresses);
    own.is_ok_and(|own| own.is_ok_and(|own| own.iter().any(|ip| addresses.contains(ip))))
}
