//! From Endpoints that users make by hand to EndpointSlices, so that those who read only slices see them: one slice for each
//! subset and family.

use std::collections::BTreeMap;

use fairlead_api::ip;
use fairlead_api::view::{
    AddressType, Endpoint, EndpointAddress, EndpointConditions, EndpointPort, EndpointSlice, Endpoints, Meta, Service,
    SubsetPort,
};

use crate::legacy::{entries, repack};
use crate::slices::owner;
use crate::{Changes, LeftOut, Notice, Reason, names, order};

/// The name mirrored slices give for who keeps them.
pub const CONTROLLER: &str = "endpointslicemirroring-controller.k8s.io";

/// The most addresses of a subset that are mirrored, unless the administrator says otherwise.
pub const MAX_ADDRESSES: usize = 1000;

/// What the mirrored slices of a name depend on.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The Endpoints of that name.
    pub endpoints: Option<&'a Endpoints>,
    /// The Service of that name.
    pub service: Option<&'a Service>,
    /// Slices that name the Service; those kept by others are left alone.
    pub slices: &'a [&'a EndpointSlice],
    /// The most addresses of a subset that are mirrored.
    pub max_addresses: usize,
}

/// What to write so that slices say what hand-made Endpoints say.
pub fn reconcile(input: &Input<'_>) -> Changes<EndpointSlice> {
    let mut ours: Vec<_> = input.slices.iter().copied().filter(|slice| is_mirrored(slice)).collect();
    ours.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let endpoints = match to_mirror(input) {
        Ok(endpoints) => endpoints,
        Err(reason) => {
            let delete = ours.iter().map(|slice| slice.metadata.name.clone()).collect();
            return Changes { delete, ..Changes::nothing(reason) };
        }
    };
    let mut changes = Changes::default();
    let wanted = wanted(endpoints, input.max_addresses, &mut changes);
    replace(endpoints, wanted, ours, &mut changes);
    if endpoints.metadata.deletion_timestamp.is_some() {
        changes.create.clear();
    }
    changes
}

/// Whether a slice is this controller's. One on its way out does not count any more.
pub fn is_mirrored(slice: &EndpointSlice) -> bool {
    let managed_by = slice.metadata.labels.get(names::MANAGED_BY);
    managed_by.is_some_and(|name| name == CONTROLLER) && slice.metadata.deletion_timestamp.is_none()
}

/// The Endpoints, or why they are not mirrored.
fn to_mirror<'a>(input: &Input<'a>) -> Result<&'a Endpoints, Reason> {
    let endpoints = input.endpoints.ok_or(Reason::NoEndpoints)?;
    if endpoints.metadata.labels.get(names::SKIP_MIRROR).is_some_and(|skip| skip == "true") {
        return Err(Reason::SkipMirror);
    }
    if endpoints.metadata.annotations.contains_key(names::LEADER) {
        return Err(Reason::LeaderElection);
    }
    let service = input.service.ok_or(Reason::NoService)?;
    if !service.spec.selector.is_empty() {
        return Err(Reason::HasSelector);
    }
    Ok(endpoints)
}

type Ports = Vec<EndpointPort>;
/// What makes one endpoint another: the address, its name, and the object it stands for.
type Identity = (String, Option<String>, Option<(String, String)>);
type Wanted = BTreeMap<(AddressType, Ports), BTreeMap<Identity, Endpoint>>;

/// The endpoints of each slice.
fn wanted(endpoints: &Endpoints, max: usize, changes: &mut Changes<EndpointSlice>) -> Wanted {
    let mut wanted = Wanted::new();
    let (mut invalid, mut skipped) = (0, 0);
    for subset in repack(entries(&endpoints.subsets)) {
        let ports = slice_ports(&subset.ports);
        let ready = subset.addresses.iter().map(|address| (address, true));
        let mut left = max;
        for (address, ready) in ready.chain(subset.not_ready_addresses.iter().map(|address| (address, false))) {
            let mut leave = |reason| changes.left_out.push(LeftOut { name: address.ip.clone(), family: None, reason });
            if left == 0 {
                skipped += 1;
                leave(Reason::TooManyAddresses { max });
                continue;
            }
            let Some((kind, identity, endpoint)) = endpoint(address, ready) else {
                invalid += 1;
                leave(Reason::InvalidAddress { address: address.ip.clone() });
                continue;
            };
            left -= 1;
            wanted.entry((kind, ports.clone())).or_default().insert(identity, endpoint);
        }
    }
    report(changes, invalid, skipped, max);
    wanted
}

fn report(changes: &mut Changes<EndpointSlice>, invalid: usize, skipped: usize, max: usize) {
    if invalid > 0 {
        let message = format!("Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices");
        changes.notices.push(Notice::warning("InvalidIPAddress", message));
    }
    if skipped > 0 {
        let all = skipped + invalid;
        let message = format!(
            "A max of {max} addresses can be mirrored to EndpointSlices per Endpoints subset. {all} addresses were skipped"
        );
        changes.notices.push(Notice::warning("TooManyAddressesToMirror", message));
    }
}

fn slice_ports(ports: &[SubsetPort]) -> Ports {
    let mut ports: Vec<_> = ports
        .iter()
        .map(|port| EndpointPort {
            name: Some(port.name.clone()),
            protocol: Some(port.protocol),
            port: Some(port.port),
            app_protocol: port.app_protocol.clone(),
        })
        .collect();
    order::sort_slice_ports(&mut ports);
    ports
}

fn endpoint(address: &EndpointAddress, ready: bool) -> Option<(AddressType, Identity, Endpoint)> {
    let ip = ip::parse(&address.ip)?;
    let kind = if ip.is_ipv4() { AddressType::V4 } else { AddressType::V6 };
    let endpoint = Endpoint {
        addresses: vec![ip::canonical(ip)],
        conditions: EndpointConditions { ready: Some(ready), ..EndpointConditions::default() },
        hostname: Some(address.hostname.clone()).filter(|hostname| !hostname.is_empty()),
        target_ref: address.target_ref.clone(),
        node_name: address.node_name.clone(),
        ..Endpoint::default()
    };
    Some((kind, identity(&endpoint), endpoint))
}

fn identity(endpoint: &Endpoint) -> Identity {
    let target = endpoint.target_ref.as_ref().map(|target| (target.namespace.clone(), target.name.clone()));
    (endpoint.addresses.join(","), endpoint.hostname.clone(), target)
}

/// Decides what becomes of the slices there are, and which ones are new. Slices that would go become those that would come.
fn replace(endpoints: &Endpoints, wanted: Wanted, ours: Vec<&EndpointSlice>, changes: &mut Changes<EndpointSlice>) {
    let mut by_key = BTreeMap::<(AddressType, Ports), Vec<&EndpointSlice>>::new();
    for slice in ours {
        let mut ports = slice.ports.clone();
        order::sort_slice_ports(&mut ports);
        by_key.entry((slice.address_type, ports)).or_default().push(slice);
    }
    let (mut new, mut gone) = (Vec::new(), Vec::new());
    for (key, content) in wanted {
        let mut existing = by_key.remove(&key).unwrap_or_default().into_iter();
        let slice = mirrored(endpoints, key, &content);
        match existing.next() {
            Some(old) if is_right(old, &slice, &content) => {}
            Some(old) => changes.update.push(in_place_of(old, slice)),
            None => new.push(slice),
        }
        gone.extend(existing);
    }
    gone.extend(by_key.into_values().flatten());
    for slice in new {
        match gone.iter().position(|old| old.address_type == slice.address_type) {
            Some(at) => changes.update.push(in_place_of(gone.remove(at), slice)),
            None => changes.create.push(slice),
        }
    }
    changes.delete.extend(gone.iter().map(|slice| slice.metadata.name.clone()));
}

fn mirrored(
    endpoints: &Endpoints,
    (address_type, ports): (AddressType, Ports),
    content: &BTreeMap<Identity, Endpoint>,
) -> EndpointSlice {
    let of = &endpoints.metadata;
    let mut labels = of.labels.clone();
    labels.insert(names::SERVICE_NAME.to_owned(), of.name.clone());
    labels.insert(names::MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    let mut annotations = of.annotations.clone();
    annotations.retain(|key, _| key != names::TRIGGER_TIME && key != names::LAST_APPLIED);
    EndpointSlice {
        metadata: Meta {
            generate_name: format!("{}-", of.name),
            namespace: of.namespace.clone(),
            labels,
            annotations,
            owner_references: vec![owner("Endpoints", of)],
            ..Meta::default()
        },
        address_type,
        endpoints: content.values().cloned().collect(),
        ports,
    }
}

fn in_place_of(old: &EndpointSlice, mut slice: EndpointSlice) -> EndpointSlice {
    slice.metadata.generate_name.clone_from(&old.metadata.generate_name);
    slice.metadata.name.clone_from(&old.metadata.name);
    slice.metadata.uid.clone_from(&old.metadata.uid);
    slice.metadata.resource_version.clone_from(&old.metadata.resource_version);
    slice.metadata.finalizers.clone_from(&old.metadata.finalizers);
    slice
}

/// The order of endpoints does not matter, nor the version of what they stand for.
fn is_right(old: &EndpointSlice, new: &EndpointSlice, content: &BTreeMap<Identity, Endpoint>) -> bool {
    let same =
        |endpoint: &Endpoint| content.get(&identity(endpoint)).is_some_and(|wanted| says_the_same(wanted, endpoint));
    old.metadata.labels == new.metadata.labels
        && old.metadata.annotations == new.metadata.annotations
        && old.metadata.owner_references.iter().any(|owner| new.metadata.owner_references.contains(owner))
        && old.endpoints.len() == content.len()
        && old.endpoints.iter().all(same)
}

fn says_the_same(a: &Endpoint, b: &Endpoint) -> bool {
    let target = |endpoint: &Endpoint| {
        let mut target = endpoint.target_ref.clone().unwrap_or_default();
        target.resource_version.clear();
        target
    };
    a.conditions == b.conditions && a.node_name == b.node_name && a.zone == b.zone && target(a) == target(b)
}

#[cfg(test)]
mod tests;
