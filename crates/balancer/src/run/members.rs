//! Which backends does a listener have? Those that the plan of this Node gives its packets, so that the kernel's path and ours
//! always agree; and those that only keep what they have.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use fairlead_api::source::Key;
use fairlead_api::view::{Ingress, Service};
use fairlead_plan::{Action, Endpoint, FrontendKey, Planner, PortKey, Scope, Source, family_of};

use crate::backends::{Backend, Stage};
use crate::spec::Listener;

/// A Service as the plan is to see it: everything at its addresses leads to its endpoints, though threads of ours carry it.
pub(super) fn planned(service: &Service, addresses: &[IpAddr]) -> Service {
    let mut service = service.clone();
    let ingress = |ip: &IpAddr| Ingress { ip: ip.to_string(), ip_mode: Some("VIP".to_owned()), ..Ingress::default() };
    service.status.load_balancer.ingress = addresses.iter().map(ingress).collect();
    service
}

/// The backends of a listener at these addresses. Of two families the first that has any: both lead to the same Pods.
pub(super) fn backends(planner: &Planner, listener: &Listener, addresses: &[IpAddr]) -> Vec<Backend> {
    let of = |ip: &IpAddr| at(planner, listener, *ip);
    let mut all = addresses.iter().map(of);
    let usable = |backends: &Vec<Backend>| backends.iter().any(|backend| backend.stage == Stage::Ready);
    let first = all.next().unwrap_or_default();
    if usable(&first) {
        return first;
    }
    all.find(usable).unwrap_or(first)
}

/// The Nodes that have a ready endpoint of a Service.
pub(super) fn nodes(planner: &Planner, service: &Key, ports: &[PortKey]) -> BTreeSet<String> {
    let ready = ports.iter().flat_map(|port| planner.plan().backends(port)).filter(|endpoint| endpoint.ready);
    ready.filter_map(|endpoint| planner.place(service, endpoint.ip).0).map(|name| name.to_string()).collect()
}

fn at(planner: &Planner, listener: &Listener, ip: IpAddr) -> Vec<Backend> {
    let key = FrontendKey::Address { ip, protocol: listener.protocol, port: listener.port };
    let Some(frontend) = planner.plan().frontend(&key) else { return Vec::new() };
    let chosen = match frontend.actions[Source::Outside] {
        Action::Forward { scope, .. } => planner.plan().pool_of(frontend, scope).map(|pool| pool.endpoints.clone()),
        Action::Reject | Action::Drop => None,
    };
    let chosen = chosen.unwrap_or_default();
    let local = frontend.actions.uses(Scope::Local);
    // What is on its way out, or gets nothing new, keeps the connections it has.
    let leaving = |endpoint: &&Endpoint| {
        let stays = endpoint.serving && (endpoint.terminating || endpoint.weight == 0);
        stays
            && (endpoint.local || !local)
            && !chosen.iter().any(|one| (one.ip, one.port) == (endpoint.ip, endpoint.port))
    };
    let others = planner.plan().backends(&frontend.port).iter().filter(leaving);
    chosen.iter().chain(others).map(|endpoint| backend(planner, &frontend.port.service, endpoint)).collect()
}

fn backend(planner: &Planner, service: &Key, endpoint: &Endpoint) -> Backend {
    let (node, zone) = planner.place(service, endpoint.ip);
    Backend {
        address: SocketAddr::new(endpoint.ip, endpoint.port),
        weight: u32::from(endpoint.weight),
        node: node.map(|name| name.to_string()),
        zone: zone.map(|name| name.to_string()),
        stage: if endpoint.terminating { Stage::Draining } else { Stage::Ready },
    }
}

/// The ports of a Service in the plan.
pub(super) fn ports(service: &std::sync::Arc<Key>, listeners: &[Listener], addresses: &[IpAddr]) -> Vec<PortKey> {
    let families: BTreeSet<_> = addresses.iter().map(|ip| family_of(*ip)).collect();
    let port = |listener: &Listener, family| PortKey {
        service: service.clone(),
        name: listener.name.as_str().into(),
        protocol: listener.protocol,
        family,
    };
    listeners.iter().flat_map(|listener| families.iter().map(move |family| port(listener, *family))).collect()
}
