//! Which Pods are endpoints of a Service, with which addresses and ports, and in which state.

use std::borrow::Cow;
use std::collections::BTreeMap;

use fairlead_api::ip;
use fairlead_api::view::{
    Endpoint, EndpointConditions, EndpointPort, Family, Node, ObjectReference, Pod, Service, ServicePort, ServiceType,
    TargetPort,
};
use fairlead_api::weights::WEIGHT;

use crate::{LeftOut, Reason};

/// Finds a Node by name.
pub type Nodes<'a> = &'a dyn Fn(&str) -> Option<&'a Node>;

/// The endpoints a Service should have in one family, by the ports they have.
#[derive(Debug, Default)]
pub struct Members<'a> {
    /// Endpoints with the same ports together; no group is empty.
    pub groups: Vec<Group<'a>>,
    /// Pods that are not endpoints in this family, and endpoints that lack a port.
    pub left_out: Vec<LeftOut>,
}

/// Endpoints with the same ports.
#[derive(Debug)]
pub struct Group<'a> {
    /// Their ports.
    pub ports: Vec<EndpointPort>,
    /// By the name of the Pod.
    pub members: BTreeMap<&'a str, Member<'a>>,
}

/// A Pod as an endpoint of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member<'a> {
    /// The Pod.
    pub pod: &'a Pod,
    /// Its addresses in the family, in canonical form.
    pub addresses: Vec<Cow<'a, str>>,
    /// Its state.
    pub conditions: EndpointConditions,
    /// Its own name under the Service's.
    pub hostname: Option<&'a str>,
    /// The zone of its Node.
    pub zone: Option<&'a str>,
}

/// Why a Service is none whose endpoints are made from Pods; they are then left as they are.
pub fn refusal(service: &Service) -> Option<Reason> {
    if service.spec.kind == ServiceType::ExternalName {
        return Some(Reason::ExternalName);
    }
    service.spec.selector.is_empty().then_some(Reason::NoSelector)
}

/// The families a Service has endpoints in. Old Services do not say: then it is the family of the cluster IP, or both.
pub fn families(service: &Service) -> Vec<Family> {
    if !service.spec.ip_families.is_empty() {
        return service.spec.ip_families.clone();
    }
    match Family::of(&service.spec.cluster_ip) {
        Some(family) => vec![family],
        None if service.has_cluster_ip() => vec![Family::V4],
        None => vec![Family::V4, Family::V6],
    }
}

/// The endpoints that the Pods a Service selects make in one family.
pub fn members<'a>(service: &'a Service, pods: &[&'a Pod], nodes: Nodes<'a>, family: Family) -> Members<'a> {
    let mut groups = BTreeMap::new();
    let mut left_out = Vec::new();
    for pod in pods {
        let mut leave = |reason, family| left_out.push(LeftOut { name: pod.metadata.name.clone(), family, reason });
        if let Err(reason) = is_candidate(pod) {
            leave(reason, None);
            continue;
        }
        let numbers = service.spec.ports.iter().map(|port| find_port(pod, port)).collect::<Vec<_>>();
        for (port, _) in service.spec.ports.iter().zip(&numbers).filter(|(_, number)| number.is_none()) {
            leave(port_missing(port), Some(family));
        }
        match member(service, pod, nodes, family) {
            Ok(member) => {
                groups.entry(numbers).or_insert_with(BTreeMap::new).insert(pod.metadata.name.as_str(), member);
            }
            Err(reason) => leave(reason, Some(family)),
        }
    }
    let group = |(numbers, members): (Vec<_>, _)| Group { ports: slice_ports(service, &numbers), members };
    Members { groups: groups.into_iter().map(group).collect(), left_out }
}

/// Whether a Pod can be an endpoint of any Service, whatever the family.
pub(crate) fn is_candidate(pod: &Pod) -> Result<(), Reason> {
    if pod.is_terminal() {
        return Err(Reason::Terminal { phase: pod.status.phase.clone() });
    }
    if pod.addresses().next().is_none() {
        return Err(Reason::NoAddress);
    }
    Ok(())
}

/// Whether what makes an endpoint of a Pod differs between two versions of it; other changes concern no Service.
pub fn differs(old: &Pod, new: &Pod) -> bool {
    let said = |pod: &Pod| (pod.is_terminal(), pod.is_terminating(), pod.is_ready());
    let weight = |pod: &Pod| pod.metadata.annotations.get(WEIGHT).cloned();
    old.metadata.uid != new.metadata.uid
        || said(old) != said(new)
        || old.metadata.labels != new.metadata.labels
        || weight(old) != weight(new)
        || old.status.pod_ip != new.status.pod_ip
        || old.status.pod_ips != new.status.pod_ips
        || old.spec != new.spec
}

fn member<'a>(service: &Service, pod: &'a Pod, nodes: Nodes<'a>, family: Family) -> Result<Member<'a>, Reason> {
    let node = nodes(&pod.spec.node_name);
    // Without its Node nobody knows the zone. Who publishes even what is not ready wants the address all the same.
    if node.is_none() && !service.spec.publish_not_ready_addresses {
        return Err(Reason::NodeMissing { node: pod.spec.node_name.clone() });
    }
    let addresses: Vec<_> = pod.addresses().filter_map(|address| in_family(address, family)).collect();
    if addresses.is_empty() {
        return Err(Reason::NoAddressOfFamily { family });
    }
    Ok(Member {
        pod,
        addresses,
        conditions: conditions(service, pod),
        hostname: hostname(service, pod),
        zone: node.and_then(Node::zone),
    })
}

/// A terminating endpoint is never ready, for those who know no other condition, unless all are published.
pub(crate) fn conditions(service: &Service, pod: &Pod) -> EndpointConditions {
    let (serving, terminating) = (pod.is_ready(), pod.is_terminating());
    let ready = service.spec.publish_not_ready_addresses || (serving && !terminating);
    EndpointConditions { ready: Some(ready), serving: Some(serving), terminating: Some(terminating) }
}

/// The name of a Pod under that of a Service: it must ask for it by naming the Service as its subdomain.
pub(crate) fn hostname<'a>(service: &Service, pod: &'a Pod) -> Option<&'a str> {
    let asked = pod.spec.subdomain == service.metadata.name && pod.metadata.namespace == service.metadata.namespace;
    Some(pod.spec.hostname.as_str()).filter(|hostname| asked && !hostname.is_empty())
}

/// The canonical form of an address, if it is one of the family.
pub(crate) fn in_family(address: &str, family: Family) -> Option<Cow<'_, str>> {
    // Most addresses are IPv4 and canonical; the strict reading is the cheap one.
    if address.parse::<std::net::Ipv4Addr>().is_ok() {
        return (family == Family::V4).then_some(Cow::Borrowed(address));
    }
    let ip = ip::parse(address).filter(|ip| ip.is_ipv4() == (family == Family::V4))?;
    let canonical = ip::canonical(ip);
    Some(if canonical == address { Cow::Borrowed(address) } else { Cow::Owned(canonical) })
}

/// The number a port of a Service leads to in a Pod. Names are looked up in containers, then in sidecars, with the protocol.
pub(crate) fn find_port(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match &port.target_port {
        TargetPort::Number(number) => return Some(*number),
        TargetPort::Name(name) => name,
    };
    let sidecars = pod.spec.init_containers.iter().filter(|init| init.restart_policy.as_deref() == Some("Always"));
    let mut ports = pod.spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
    ports.find(|found| found.name == *name && found.protocol == port.protocol).map(|found| found.container_port)
}

pub(crate) fn port_missing(port: &ServicePort) -> Reason {
    let target = match &port.target_port {
        TargetPort::Number(number) => number.to_string(),
        TargetPort::Name(name) => name.clone(),
    };
    Reason::PortMissing { port: port.name.clone(), target, protocol: port.protocol.as_str() }
}

/// Ports without a number are those the Pods do not have.
fn slice_ports(service: &Service, numbers: &[Option<i32>]) -> Vec<EndpointPort> {
    let with_number = service.spec.ports.iter().zip(numbers).filter_map(|(port, number)| Some((port, (*number)?)));
    with_number
        .map(|(port, number)| EndpointPort {
            name: Some(port.name.clone()),
            protocol: Some(port.protocol),
            port: Some(number),
            app_protocol: port.app_protocol.clone(),
        })
        .collect()
}

impl Member<'_> {
    /// Whether an endpoint of a slice stands for this one, even if it says something else about it.
    pub(crate) fn is(&self, endpoint: &Endpoint) -> bool {
        let target = endpoint.target_ref.as_ref();
        let (namespace, name) = target.map_or(("", ""), |target| (&target.namespace, &target.name));
        namespace == self.pod.metadata.namespace
            && name == self.pod.metadata.name
            && endpoint.hostname.as_deref().unwrap_or_default() == self.hostname.unwrap_or_default()
            && same_addresses(&self.addresses, &endpoint.addresses)
    }

    /// Whether an endpoint that stands for this one says all that is so. Hints are a matter of their own.
    pub(crate) fn equals(&self, endpoint: &Endpoint) -> bool {
        let target = endpoint.target_ref.as_ref();
        endpoint.conditions == self.conditions
            && endpoint.node_name.as_deref() == self.node_name()
            && endpoint.zone.as_deref() == self.zone
            && target.is_some_and(|target| self.is_target(target))
    }

    /// As an endpoint of a slice, without hints.
    pub fn to_endpoint(&self) -> Endpoint {
        Endpoint {
            addresses: self.addresses.iter().map(|address| address.clone().into_owned()).collect(),
            conditions: self.conditions,
            hostname: self.hostname.map(str::to_owned),
            target_ref: Some(pod_reference(self.pod)),
            node_name: self.node_name().map(str::to_owned),
            zone: self.zone.map(str::to_owned),
            ..Endpoint::default()
        }
    }

    /// The version a reference was made at does not matter.
    fn is_target(&self, target: &ObjectReference) -> bool {
        target.kind == "Pod"
            && target.uid == self.pod.metadata.uid
            && target.api_version.is_empty()
            && target.field_path.is_empty()
    }

    fn node_name(&self) -> Option<&str> {
        Some(self.pod.spec.node_name.as_str()).filter(|name| !name.is_empty())
    }
}

pub(crate) fn pod_reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: "Pod".to_owned(),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

fn same_addresses(wanted: &[Cow<'_, str>], written: &[String]) -> bool {
    wanted.len() == written.len() && wanted.iter().all(|address| written.iter().any(|other| other == address))
}

#[cfg(test)]
mod tests;
