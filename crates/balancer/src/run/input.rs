//! What the announcer has to know: which addresses somebody must answer for, and what may reach them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::ip;
use fairlead_api::view::{Node, TrafficPolicy};
use fairlead_cluster::Reference;
use fairlead_plan::Planner;
use ipnet::IpNet;

use super::balancer::Balancer;
use super::members;
use crate::announce::Input;
use crate::config::Config;
use crate::guard::{Frontend, Guard, Rule, Target};
use crate::metallb::Found;
use crate::owner::{Advertisement, Wanted};
use crate::pools::Pool;
use crate::spec::{self, Carries};

/// Where addresses may be announced.
#[derive(Debug, Default)]
pub(super) struct Advertised {
    pub(super) found: Arc<Found>,
    pub(super) interfaces: Vec<String>,
}

impl Advertised {
    /// As MetalLB's objects say for their own pools; others everywhere.
    fn of(&self, address: IpAddr) -> Vec<Advertisement> {
        let has = |pool: &&Pool| pool.ranges.iter().any(|range| range.contains(address));
        let Some(pool) = self.found.pools.iter().find(has) else {
            return vec![Advertisement { nodes: Vec::new(), interfaces: self.interfaces.clone() }];
        };
        let ours = self.found.advertisements.iter().filter(|one| one.pools.contains(&pool.name));
        ours.map(|one| Advertisement { nodes: one.nodes.clone(), interfaces: one.interfaces.clone() }).collect()
    }
}

/// Everything the announcer has to know.
pub(super) fn input<'a>(
    balancers: impl Iterator<Item = &'a Balancer>,
    planner: &Planner,
    nodes: Vec<Arc<Node>>,
    advertised: &Advertised,
    config: &Config,
) -> Input {
    let (mut wanted, mut guard): (BTreeMap<IpAddr, Wanted>, Guard) = Default::default();
    guard.pods = nodes.iter().flat_map(|node| &node.spec.pod_cidrs).filter_map(|text| ip::cidr::parse(text)).collect();
    // Always in the same order, so that the same is not taken for something else.
    let mut balancers: Vec<&Balancer> = balancers.filter(|balancer| !balancer.addresses.is_empty()).collect();
    balancers.sort_by(|one, other| one.key.cmp(&other.key));
    for balancer in balancers {
        let (local, about) = (local(balancer, planner), Reference::of(&*balancer.service));
        for address in &balancer.addresses {
            let shared = wanted.remove(address);
            let advertisements = if shared.is_some() { Vec::new() } else { advertised.of(*address) };
            let one = Wanted { address: *address, advertisements, local: local.clone(), services: vec![about.clone()] };
            wanted.insert(
                *address,
                match shared {
                    Some(shared) => shared.and(one),
                    None => one,
                },
            );
        }
        protect(balancer, config, &mut guard);
    }
    Input { wanted: wanted.into_values().collect(), nodes, guard }
}

/// Whether anything the announcer has to know of a load balancer depends on its endpoints, which change all the time.
pub(super) fn depends_on_endpoints(balancer: &Balancer) -> bool {
    balancer.service.spec.external_traffic_policy == TrafficPolicy::Local
}

/// The Nodes with a ready endpoint, if only those may answer.
fn local(balancer: &Balancer, planner: &Planner) -> Option<BTreeSet<String>> {
    depends_on_endpoints(balancer).then(|| {
        members::nodes(planner, &balancer.key, &members::ports(&balancer.key, &balancer.service, &balancer.addresses))
    })
}

/// What is served at the addresses of a load balancer, and who may use it.
fn protect(balancer: &Balancer, config: &Config, guard: &mut Guard) {
    guard.addresses.extend(&balancer.addresses);
    // A port that is not served is refused at the address, whatever rules of a node proxy would do
    // with it: kube-proxy serves all ports of a Service at an address of mode VIP.
    let ports: Vec<_> = balancer.open_ports().into_iter().map(|port| (port.protocol, port.number)).collect();
    let allowed = balancer.spec.as_ref().and_then(|spec| super::balancer::sources(spec, config));
    for (address, (protocol, port)) in
        balancer.addresses.iter().flat_map(|ip| ports.iter().map(move |port| (*ip, *port)))
    {
        let frontend = Frontend { address, protocol, port };
        guard.listeners.insert(frontend);
        if let Some(ranges) = &allowed {
            let from = ranges.iter().copied().filter(|range| range.addr().is_ipv4() == address.is_ipv4()).collect();
            guard.rules.push(Rule {
                to: Target::Frontend(frontend),
                from,
                description: format!("sources of {}", balancer.key),
            });
        }
    }
    if let Some(spec) = &balancer.spec {
        let node_ports: Vec<u16> = spec.listeners.iter().filter_map(|listener| listener.node_port).collect();
        for rule in spec.rules(&config.vpc_ranges, &spec.name) {
            guard.rules.extend(rules(&rule, &node_ports, config));
        }
    }
}

/// A rule of a network load balancer as the kernel is told it.
fn rules(rule: &spec::Rule, node_ports: &[u16], config: &Config) -> Vec<Rule> {
    let groups = rule.groups.iter().filter_map(|name| config.security_groups.get(name)).flatten();
    let from: Vec<IpNet> = rule.ranges.iter().chain(groups).copied().collect();
    let make = |to: Target| Rule { to, from: from.clone(), description: rule.description.clone() };
    match &rule.carries {
        Carries::Ports(protocol, ports) => ports.iter().map(|port| make(Target::NodePort(*protocol, *port))).collect(),
        Carries::Icmp(..) | Carries::Icmpv6(..) => node_ports.iter().map(|port| make(Target::TooLong(*port))).collect(),
    }
}
