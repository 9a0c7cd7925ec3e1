//! From the Pods of a Service to its Endpoints object, which older clients read: one object a Service, one family, at most a
//! thousand addresses.

use std::collections::BTreeMap;

use fairlead_api::view::{EndpointAddress, EndpointSubset, Endpoints, Family, Meta, Pod, Service, SubsetPort};

use crate::slices::{set_trigger_time, why_none};
use crate::{Changes, LeftOut, Reason, members, names};

mod subsets;
mod truncate;

pub(crate) use subsets::{entries, repack};
pub use truncate::MAX_ADDRESSES;

/// The name Endpoints objects give for who keeps them.
pub const CONTROLLER: &str = "endpoint-controller";

/// What the Endpoints of a Service depend on.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The Service.
    pub service: &'a Service,
    /// The Pods it selects.
    pub pods: &'a [&'a Pod],
    /// The Endpoints of its name, if there are any.
    pub existing: Option<&'a Endpoints>,
    /// What [`crate::TriggerTimes`] says.
    pub trigger_time: Option<&'a str>,
}

/// What to write so that the Endpoints of a Service say which addresses it has.
pub fn reconcile(input: &Input<'_>) -> Changes<Endpoints> {
    let service = input.service;
    if let Some(reason) = members::refusal(service) {
        return Changes::nothing(reason);
    }
    let mut changes = Changes::default();
    let addresses = addresses(input, &mut changes.left_out);
    let mut subsets = repack(with_ports(service, &addresses, &mut changes.left_out));
    let cut = truncate::truncate(&mut subsets);
    if let Some(left_out) = cut {
        let reason = Reason::OverCapacity { max: MAX_ADDRESSES, left_out };
        changes.left_out.push(LeftOut { name: String::new(), family: None, reason });
    }
    changes.empty = why_none(service, input.pods, subsets.len());
    if input.existing.is_some_and(|existing| is_right(existing, service, &subsets, cut.is_some())) {
        return changes;
    }
    let endpoints = write(input, subsets, cut.is_some());
    if input.existing.is_some() {
        changes.update.push(endpoints)
    } else {
        changes.create.push(endpoints)
    }
    changes
}

/// A Pod with its address.
struct Found<'a> {
    pod: &'a Pod,
    address: EndpointAddress,
}

fn addresses<'a>(input: &Input<'a>, left_out: &mut Vec<LeftOut>) -> Vec<Found<'a>> {
    let mut found = Vec::with_capacity(input.pods.len());
    for pod in input.pods {
        match address(input.service, pod) {
            Ok(address) => found.push(Found { pod, address }),
            Err((reason, family)) => left_out.push(LeftOut { name: pod.metadata.name.clone(), family, reason }),
        }
    }
    found
}

fn address(service: &Service, pod: &Pod) -> Result<EndpointAddress, (Reason, Option<Family>)> {
    members::is_candidate(pod).map_err(|reason| (reason, None))?;
    // Endpoints cannot say that an address is on its way out, so it leaves at once.
    if let Some(since) = pod.metadata.deletion_timestamp.clone().filter(|_| !service.spec.publish_not_ready_addresses) {
        return Err((Reason::Terminating { since }, None));
    }
    let family = first_family(service, pod);
    let address = pod.addresses().find_map(|address| members::in_family(address, family));
    let ip = address.ok_or((Reason::NoAddressOfFamily { family }, Some(family)))?;
    Ok(EndpointAddress {
        ip: ip.into_owned(),
        hostname: members::hostname(service, pod).unwrap_or_default().to_owned(),
        node_name: Some(pod.spec.node_name.clone()).filter(|name| !name.is_empty()),
        target_ref: Some(members::pod_reference(pod)),
    })
}

/// The one family Endpoints hold. A Service that does not say is of its cluster IP's family, or of the Pod's.
fn first_family(service: &Service, pod: &Pod) -> Family {
    let spec = &service.spec;
    let said = spec.ip_families.first().copied().or_else(|| Family::of(&spec.cluster_ip));
    said.or_else(|| Family::of(pod.addresses().next()?)).unwrap_or(Family::V4)
}

/// Every port of every address; a headless Service without ports has addresses without.
fn with_ports<'f>(
    service: &Service,
    found: &'f [Found<'_>],
    left_out: &mut Vec<LeftOut>,
) -> Vec<(Option<SubsetPort>, &'f EndpointAddress, bool)> {
    let mut entries = Vec::with_capacity(found.len());
    for Found { pod, address } in found {
        let ready = service.spec.publish_not_ready_addresses || pod.is_ready();
        if service.spec.ports.is_empty() && service.is_headless() {
            entries.push((None, address, ready));
        }
        for port in &service.spec.ports {
            let Some(number) = members::find_port(pod, port) else {
                let reason = members::port_missing(port);
                left_out.push(LeftOut { name: pod.metadata.name.clone(), family: None, reason });
                continue;
            };
            let (name, app_protocol) = (port.name.clone(), port.app_protocol.clone());
            let port = SubsetPort { name, port: number, protocol: port.protocol, app_protocol };
            entries.push((Some(port), address, ready));
        }
    }
    entries
}

/// Annotations are the user's, save those this controller sets.
fn is_right(existing: &Endpoints, service: &Service, subsets: &[EndpointSubset], cut: bool) -> bool {
    let annotation = existing.metadata.annotations.get(names::OVER_CAPACITY);
    annotation.map(String::as_str) == cut.then_some(truncate::TRUNCATED)
        && existing.metadata.labels == labels(service)
        && (same(&existing.subsets, subsets) || same(&repack(entries(&existing.subsets)), subsets))
}

/// Whether subsets say the same, whatever version of the Pods they refer to.
fn same(a: &[EndpointSubset], b: &[EndpointSubset]) -> bool {
    let same_address = |(a, b): (&EndpointAddress, &EndpointAddress)| {
        let targets = match (&a.target_ref, &b.target_ref) {
            (Some(a), Some(b)) => {
                (&a.kind, &a.namespace, &a.name, &a.uid, &a.api_version, &a.field_path)
                    == (&b.kind, &b.namespace, &b.name, &b.uid, &b.api_version, &b.field_path)
            }
            (a, b) => a.is_none() && b.is_none(),
        };
        targets && a.ip == b.ip && a.hostname == b.hostname && a.node_name == b.node_name
    };
    let same_list =
        |a: &[EndpointAddress], b: &[EndpointAddress]| a.len() == b.len() && a.iter().zip(b).all(same_address);
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| {
            a.ports == b.ports
                && same_list(&a.addresses, &b.addresses)
                && same_list(&a.not_ready_addresses, &b.not_ready_addresses)
        })
}

fn write(input: &Input<'_>, subsets: Vec<EndpointSubset>, cut: bool) -> Endpoints {
    let service = &input.service.metadata;
    let new = || Meta { name: service.name.clone(), namespace: service.namespace.clone(), ..Meta::default() };
    let mut metadata = input.existing.map_or_else(new, |existing| existing.metadata.clone());
    metadata.labels = labels(input.service);
    metadata.annotations.remove(names::OVER_CAPACITY);
    if cut {
        metadata.annotations.insert(names::OVER_CAPACITY.to_owned(), truncate::TRUNCATED.to_owned());
    }
    set_trigger_time(&mut metadata, input.trigger_time);
    Endpoints { metadata, subsets }
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone();
    labels.remove(names::HEADLESS);
    if !service.has_cluster_ip() {
        labels.insert(names::HEADLESS.to_owned(), String::new());
    }
    labels.insert(names::ENDPOINTS_MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    labels
}

#[cfg(test)]
mod tests;
