//! From the Pods of a Service to its EndpointSlices: as few writes as will do, and no slice above its maximum.

use std::collections::BTreeMap;

use fairlead_api::view::{AddressType, EndpointPort, EndpointSlice, Family, Meta, Owner, Pod, Service};

use crate::hints::{self, Hinted, Zones};
use crate::members::{self, Nodes};
use crate::weights::{self, Weights};
use crate::{Changes, Notice, Reason, names, order};

mod pack;

/// The name slices give for who keeps them.
pub const CONTROLLER: &str = "endpointslice-controller.k8s.io";

/// The most endpoints in a slice, unless the administrator says otherwise. More would make every change of one endpoint
/// dear to send to all Nodes.
pub const MAX_ENDPOINTS: usize = 100;

/// What the slices of a Service depend on.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The Service.
    pub service: &'a Service,
    /// The Pods it selects.
    pub pods: &'a [&'a Pod],
    /// The Nodes.
    pub nodes: Nodes<'a>,
    /// Slices of its namespace that name it; those kept by others are left alone.
    pub slices: &'a [&'a EndpointSlice],
    /// The most endpoints in a slice.
    pub max_endpoints: usize,
    /// What [`crate::TriggerTimes`] says.
    pub trigger_time: Option<&'a str>,
    /// The capacity of the zones, for topology hints.
    pub zones: &'a Zones,
    /// The topology hints the Service was given before.
    pub hinted: &'a Hinted,
}

/// What follows for the slices of a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What to write.
    pub changes: Changes<EndpointSlice>,
    /// What to remember for the next time.
    pub hinted: Hinted,
    /// Whether to try again later although nothing may change in between that is watched for: a Node is missing.
    pub retry: bool,
}

/// What to write so that the slices of a Service say which endpoints it has.
pub fn reconcile(input: &Input<'_>) -> Outcome {
    let service = input.service;
    if let Some(reason) = members::refusal(service) {
        return Outcome { changes: Changes::nothing(reason), hinted: input.hinted.clone(), retry: false };
    }
    let mut ours: Vec<_> = input.slices.iter().copied().filter(|slice| is_kept_for(slice, service)).collect();
    ours.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));

    let mut outcome = Outcome { hinted: input.hinted.clone(), ..Outcome::default() };
    let families = members::families(service);
    let (weights, notices) = Weights::of(service, input.pods);
    outcome.changes.notices.extend(notices);
    let shape = Shape::of(service, weights);
    let mut found = 0;
    for family in &families {
        let of_family: Vec<_> = ours.iter().copied().filter(|slice| slice.address_type == (*family).into()).collect();
        found += reconcile_family(input, &shape, *family, &of_family, &mut outcome);
    }
    for slice in ours.iter().filter(|slice| !families.iter().any(|family| slice.address_type == (*family).into())) {
        outcome.changes.delete.push(slice.metadata.name.clone());
        outcome.hinted.forget(slice.address_type);
    }
    outcome.changes.left_out.sort();
    outcome.changes.left_out.dedup();
    outcome.changes.empty = why_none(service, input.pods, found);
    outcome.retry = report_missing_nodes(service, &mut outcome.changes);
    outcome
}

/// Whether a slice is this controller's for a Service of that name. One on its way out does not count any more.
pub fn is_kept_for(slice: &EndpointSlice, service: &Service) -> bool {
    let label = |key| slice.metadata.labels.get(key).map_or("", String::as_str);
    label(names::MANAGED_BY) == CONTROLLER
        && label(names::SERVICE_NAME) == service.metadata.name
        && slice.metadata.namespace == service.metadata.namespace
        && slice.metadata.deletion_timestamp.is_none()
}

/// Slices on their way to the API.
#[derive(Debug, Default)]
struct Plan<'a> {
    create: Vec<EndpointSlice>,
    update: Vec<EndpointSlice>,
    delete: Vec<&'a EndpointSlice>,
    unchanged: Vec<&'a EndpointSlice>,
}

/// Returns how many endpoints there are.
fn reconcile_family<'a>(
    input: &Input<'a>,
    shape: &Shape<'_>,
    family: Family,
    slices: &[&'a EndpointSlice],
    outcome: &mut Outcome,
) -> usize {
    let members = members::members(input.service, input.pods, input.nodes, family);
    let found = members.groups.iter().map(|group| group.members.len()).sum();
    outcome.changes.left_out.extend(members.left_out);
    let mut plan = Plan::default();
    // Slices of an earlier Service of the same name go with it.
    let (owned, foreign): (Vec<_>, Vec<_>) = slices.iter().copied().partition(|slice| shape.owns(slice));
    plan.delete.extend(foreign);

    let (ports, wanted): (Vec<_>, Vec<_>) =
        members.groups.into_iter().map(|group| (group.ports, group.members)).unzip();
    let mut by_ports = BTreeMap::<Vec<&EndpointPort>, Vec<&EndpointSlice>>::new();
    for slice in owned {
        by_ports.entry(sorted(&slice.ports)).or_default().push(slice);
    }
    for (ports, wanted) in ports.iter().zip(wanted) {
        let existing = by_ports.remove(&sorted(ports)).unwrap_or_default();
        let frame = pack::Frame { shape, family, ports, max: input.max_endpoints };
        pack::pack(&frame, wanted, &existing, &mut plan);
    }
    plan.delete.extend(by_ports.into_values().flatten());

    if plan.delete.len() == slices.len() && plan.create.is_empty() {
        keep_placeholder(shape, family, &mut plan);
    }
    let Plan { create, update, unchanged, .. } = &mut plan;
    let mut placed = hints::Slices { create, update, unchanged };
    outcome.changes.notices.extend(hints::place(input, family, &mut placed, &mut outcome.hinted));
    weights::place(&shape.weights, &mut placed);
    // Hints that were given anew may come out as they were.
    plan.update.retain(|slice| !slices.contains(&slice));
    reuse(shape, &mut plan);
    finish(input, plan, &mut outcome.changes);
    found
}

fn sorted(ports: &[EndpointPort]) -> Vec<&EndpointPort> {
    let mut sorted: Vec<_> = ports.iter().collect();
    sorted.sort();
    sorted
}

/// A Service without endpoints has one empty slice, so that those who watch know that there are none.
fn keep_placeholder<'a>(shape: &Shape<'_>, family: Family, plan: &mut Plan<'a>) {
    let is_placeholder = |slice: &EndpointSlice| {
        slice.endpoints.is_empty()
            && slice.ports.is_empty()
            && slice.metadata.labels == shape.labels
            && shape.owns(slice)
    };
    match plan.delete.as_slice() {
        [only] if is_placeholder(only) => plan.unchanged.append(&mut plan.delete),
        _ => plan.create.push(shape.slice(family, &[])),
    }
}

/// Makes slices that would go into those that would come: one write instead of two, and one object instead of another.
fn reuse<'a>(shape: &Shape<'_>, plan: &mut Plan<'a>) {
    let (reusable, gone): (Vec<_>, Vec<_>) = plan.delete.drain(..).partition(|slice| shape.owns(slice));
    plan.delete = gone;
    for old in reusable {
        let Some(mut new) = plan.create.pop() else {
            plan.delete.push(old);
            continue;
        };
        new.metadata.name.clone_from(&old.metadata.name);
        new.metadata.uid.clone_from(&old.metadata.uid);
        new.metadata.resource_version.clone_from(&old.metadata.resource_version);
        new.metadata.finalizers.clone_from(&old.metadata.finalizers);
        plan.update.push(new);
    }
}

fn finish(input: &Input<'_>, mut plan: Plan<'_>, changes: &mut Changes<EndpointSlice>) {
    // The garbage collector is after the slices of a Service that goes: it must not meet new ones.
    if input.service.metadata.deletion_timestamp.is_some() {
        plan.create.clear();
    }
    for slice in plan.create.iter_mut().chain(&mut plan.update) {
        set_trigger_time(&mut slice.metadata, input.trigger_time);
    }
    changes.create.append(&mut plan.create);
    changes.update.append(&mut plan.update);
    changes.delete.extend(plan.delete.iter().map(|slice| slice.metadata.name.clone()));
}

/// Says when the change happened that leads to this write, or that nobody knows.
pub(crate) fn set_trigger_time(metadata: &mut Meta, time: Option<&str>) {
    match time {
        Some(time) => metadata.annotations.insert(names::TRIGGER_TIME.to_owned(), time.to_owned()),
        None => metadata.annotations.remove(names::TRIGGER_TIME),
    };
}

/// Why a Service has no endpoints, when none was found.
pub(crate) fn why_none(service: &Service, pods: &[&Pod], found: usize) -> Option<Reason> {
    if found > 0 {
        return None;
    }
    if !pods.is_empty() {
        return Some(Reason::AllLeftOut { pods: pods.len() });
    }
    let pairs = service.spec.selector.iter().map(|(key, value)| format!("{key}={value}"));
    Some(Reason::NoPods { selector: pairs.collect() })
}

/// The Event about Pods whose Node is missing, in the words of the reference controller, once for all families.
fn report_missing_nodes(service: &Service, changes: &mut Changes<EndpointSlice>) -> bool {
    let Meta { namespace, name, .. } = &service.metadata;
    let mut messages: Vec<String> = Vec::new();
    for left in &changes.left_out {
        if let Reason::NodeMissing { node } = &left.reason {
            let pod = &left.name;
            messages.push(format!("skipping Pod {pod} for Service {namespace}/{name}: Node {node} Not Found"));
        }
    }
    messages.sort();
    messages.dedup();
    let all = match messages.as_slice() {
        [] => return false,
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let message = format!("Error updating Endpoint Slices for Service {namespace}/{name}: {all}");
    changes.notices.push(Notice::warning("FailedToUpdateEndpointSlices", message));
    true
}

/// What all slices of a Service have in common.
struct Shape<'a> {
    service: &'a Service,
    labels: BTreeMap<String, String>,
    weights: Weights<'a>,
}

impl<'a> Shape<'a> {
    fn of(service: &'a Service, weights: Weights<'a>) -> Shape<'a> {
        let mut labels = service.metadata.labels.clone();
        labels.remove(names::HEADLESS);
        if !service.has_cluster_ip() {
            labels.insert(names::HEADLESS.to_owned(), String::new());
        }
        labels.insert(names::SERVICE_NAME.to_owned(), service.metadata.name.clone());
        labels.insert(names::MANAGED_BY.to_owned(), CONTROLLER.to_owned());
        Shape { service, labels, weights }
    }

    /// A new slice without endpoints.
    fn slice(&self, family: Family, ports: &[EndpointPort]) -> EndpointSlice {
        let service = &self.service.metadata;
        let mut ports = ports.to_vec();
        order::sort_slice_ports(&mut ports);
        EndpointSlice {
            metadata: Meta {
                generate_name: format!("{}-", service.name),
                namespace: service.namespace.clone(),
                labels: self.labels.clone(),
                owner_references: vec![owner("Service", service)],
                ..Meta::default()
            },
            address_type: AddressType::from(family),
            endpoints: Vec::new(),
            ports,
        }
    }

    fn owns(&self, slice: &EndpointSlice) -> bool {
        let mut owners = slice.metadata.owner_references.iter();
        owners
            .any(|owner| owner.uid == self.service.metadata.uid && owner.kind == "Service" && owner.api_version == "v1")
    }
}

/// Says that a core object keeps another.
pub(crate) fn owner(kind: &str, metadata: &Meta) -> Owner {
    Owner {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        controller: true,
        block_owner_deletion: true,
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
