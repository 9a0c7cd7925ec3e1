//! Node ports: each that a Service has is marked as used in the map, and no other is.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::addresses::about_service;
use super::problem::About;
use super::record::Service;
use super::seen::{Leak, Leaks};
use super::{Finding, Mend, PortMap, Problem};
use crate::alloc::NodePorts;

/// `services` come in the order of their rights.
pub(super) fn examine(
    map: &PortMap,
    range: &RangeInclusive<u16>,
    services: &[&Service<'_>],
    leaks: &mut Leaks<'_>,
) -> Vec<Finding> {
    let mut list = Vec::new();
    let stored = match map {
        PortMap::Read(ports) => ports.clone(),
        PortMap::Absent => NodePorts::new(range.clone()),
        PortMap::Damaged => {
            let about = About::port_map();
            list.push(Finding { about, problem: Problem::PortMapDamaged, mend: Mend::NewMap });
            NodePorts::new(range.clone())
        }
    };
    let mut used = HashSet::new();
    for service in services {
        for port in node_ports(service) {
            let found = port_of(port, range, &stored, &mut used);
            list.extend(found.map(|(problem, mend)| about_service(service, problem, mend)));
        }
    }
    for port in stored.in_use().filter(|port| !used.contains(port)) {
        if leaks.ripe(Leak::Port(port)) {
            let about = About::port_map();
            list.push(Finding { about, problem: Problem::PortLeaked(port), mend: Mend::ClearPort(port) });
        }
    }
    list
}

fn port_of(
    number: i64,
    range: &RangeInclusive<u16>,
    stored: &NodePorts,
    used: &mut HashSet<u16>,
) -> Option<(Problem, Mend)> {
    let Some(port) = u16::try_from(number).ok().filter(|port| range.contains(port)) else {
        return Some((Problem::PortOutOfRange(number, range.clone()), Mend::Nothing));
    };
    if !used.insert(port) {
        return Some((Problem::PortAlreadyAllocated(port), Mend::Nothing));
    }
    (!stored.is_used(port)).then_some((Problem::PortNotAllocated(port), Mend::SetPort(port)))
}

/// The node ports a Service was given. One that several of its ports share, under different protocols, is one.
fn node_ports(service: &Service<'_>) -> Vec<i64> {
    let spec = &service.spec;
    // Other types may name node ports without having been given them.
    if !["NodePort", "LoadBalancer"].contains(&&*spec.kind) {
        return Vec::new();
    }
    let mut ports: Vec<i64> = Vec::new();
    let mut seen: Vec<(i64, &str)> = Vec::new();
    for port in spec.ports.iter().flatten().filter(|port| port.node_port != 0) {
        let pair = (port.node_port, &*port.protocol);
        if !ports.contains(&port.node_port) || seen.contains(&pair) {
            ports.push(port.node_port);
        }
        seen.push(pair);
    }
    let checks_health = &*spec.kind == "LoadBalancer" && &*spec.external_traffic_policy == "Local";
    if checks_health && spec.health_check_node_port != 0 {
        ports.push(spec.health_check_node_port);
    }
    ports
}
