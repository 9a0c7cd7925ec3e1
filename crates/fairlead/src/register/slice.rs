//! The objects of a registration: its EndpointSlice, and the Lease that says whether anybody still keeps it.

use std::collections::BTreeMap;

use fairlead_api::view::{
    self, AddressType, Endpoint, EndpointConditions, EndpointPort, EndpointSlice, Family, Meta, Owner,
};
use fairlead_api::weights::WEIGHT;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::flags::Wanted;

/// Whose slices and Leases these are.
pub(super) const MANAGER: &str = "fairlead-register";
/// The label that says so.
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The label with the Service.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The name of both objects: the same for the same endpoint, so that whoever comes after a crash takes them over.
pub(super) fn name(wanted: &Wanted) -> String {
    let mut ports: Vec<String> = wanted.ports.iter().map(|port| format!("{}/{}", port.number, port.protocol)).collect();
    ports.sort();
    let endpoint = format!("{} {}", wanted.address, ports.join(" "));
    format!("{}-{:08x}", wanted.name, fnv(&endpoint))
}

/// FNV-1a: short, and the same for ever.
fn fnv(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The slice, owned by its Service, so that it goes with it.
pub(super) fn slice(wanted: &Wanted, service_uid: &str, ports: &[EndpointPort], state: EndpointConditions) -> Value {
    let family = if wanted.address.is_ipv4() { Family::V4 } else { Family::V6 };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let endpoint = Endpoint {
        addresses: vec![wanted.address.to_string()],
        conditions: state,
        hostname: wanted.hostname.clone(),
        ..Endpoint::default()
    };
    let owner = Owner {
        api_version: "v1".to_owned(),
        kind: "Service".to_owned(),
        name: wanted.name.clone(),
        uid: service_uid.to_owned(),
        ..Owner::default()
    };
    let metadata = Meta {
        name: name(wanted),
        namespace: wanted.namespace.clone(),
        labels: BTreeMap::from([pair(MANAGED_BY, MANAGER), pair(SERVICE_NAME, &wanted.name)]),
        annotations: wanted.weight.map(|weight| pair(WEIGHT, &weight.to_string())).into_iter().collect(),
        owner_references: vec![owner],
        ..Meta::default()
    };
    let address_type = AddressType::from(family);
    view::to_json(&EndpointSlice { metadata, address_type, endpoints: vec![endpoint], ports: ports.to_vec() })
}

/// The Lease, renewed now. A Lease and not an annotation of the slice: every node hears of every change of a slice.
pub(super) fn lease(wanted: &Wanted, identity: &str, now: Timestamp) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name(wanted),
            "namespace": wanted.namespace,
            "labels": {MANAGED_BY: MANAGER, SERVICE_NAME: wanted.name},
        },
        "spec": {
            "holderIdentity": identity,
            "leaseDurationSeconds": wanted.expires_after.as_secs().max(1),
            "renewTime": format!("{now:.6}"),
        },
    })
}
