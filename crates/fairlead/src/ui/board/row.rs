//! A Service at a glance: a row of the board.

use std::collections::BTreeMap;

use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Service, ServicePort, ServiceType, TargetPort};
use fairlead_explain::{Objects, Report};
use serde::Serialize;

use super::rows::Made;
use crate::ui::written;

#[cfg(test)]
mod tests;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    namespace: &'a str,
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    headless: bool,
    addresses: Vec<&'a str>,
    external: Vec<&'a str>,
    ports: Vec<Port<'a>>,
    ready: usize,
    total: usize,
    verdict: &'static str,
    why: &'a str,
    created: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Port<'a> {
    name: &'a str,
    port: i32,
    protocol: &'static str,
    target_port: Target<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_port: Option<i32>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Target<'a> {
    Number(i32),
    Name(&'a str),
}

/// The row of a Service; `None`: there is none of that name.
pub(super) fn row(key: &Key, objects: &Objects, report: &Report) -> Option<Made> {
    let service = objects.service(key)?;
    let (ready, total) = endpoints(objects.slices_of(key).map(|slice| &**slice));
    let json = written(&Row {
        namespace: &service.metadata.namespace,
        name: &service.metadata.name,
        kind: kind(service.spec.kind),
        headless: service.is_headless(),
        addresses: service.spec.cluster_ips.iter().map(String::as_str).filter(|ip| *ip != "None").collect(),
        external: external(service),
        ports: service.spec.ports.iter().map(port).collect(),
        ready,
        total,
        verdict: report.verdict.as_str(),
        why: report.why(),
        created: service.metadata.creation_timestamp.as_deref(),
    });
    Some(Made { json, verdict: report.verdict })
}

fn kind(kind: ServiceType) -> &'static str {
    match kind {
        ServiceType::ClusterIp => "ClusterIP",
        ServiceType::NodePort => "NodePort",
        ServiceType::LoadBalancer => "LoadBalancer",
        ServiceType::ExternalName => "ExternalName",
    }
}

/// Where it is reached from outside, or what it stands for.
fn external(service: &Service) -> Vec<&str> {
    let named = service.status.load_balancer.ingress.iter();
    let balanced = named.map(|one| if one.ip.is_empty() { one.hostname.as_str() } else { one.ip.as_str() });
    let alias = (service.spec.kind == ServiceType::ExternalName).then_some(service.spec.external_name.as_str());
    balanced.chain(service.spec.external_ips.iter().map(String::as_str)).chain(alias).collect()
}

fn port(port: &ServicePort) -> Port<'_> {
    let target_port = match &port.target_port {
        TargetPort::Number(0) => Target::Number(port.port),
        TargetPort::Number(number) => Target::Number(*number),
        TargetPort::Name(name) => Target::Name(name),
    };
    let node_port = Some(port.node_port).filter(|port| *port > 0);
    Port { name: &port.name, port: port.port, protocol: port.protocol.as_str(), target_port, node_port }
}

/// How many backends are ready, and how many there are. One with an address of each family, or with several ports in slices
/// of their own, is one backend.
fn endpoints<'a>(slices: impl Iterator<Item = &'a EndpointSlice>) -> (usize, usize) {
    let mut backends: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for endpoint in slices.flat_map(|slice| &slice.endpoints) {
        let address = endpoint.addresses.first().map_or("", String::as_str);
        let known = endpoint.target_ref.as_ref().map(|target| (target.kind.as_str(), target.name.as_str()));
        // Silence means yes to those who read slices.
        *backends.entry(known.unwrap_or(("", address))).or_default() |= endpoint.conditions.ready.unwrap_or(true);
    }
    (backends.values().filter(|ready| **ready).count(), backends.len())
}
