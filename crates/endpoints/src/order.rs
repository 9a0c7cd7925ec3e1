//! The order in which the reference controllers write ports and subsets: by FNV-1a hash of the value as Go's `spew`
//! prints it. It has no meaning, but objects that agree to the byte are not rewritten when one controller takes over
//! from another, and `kubectl` shows ports in that order.

use std::fmt::Write;

use fairlead_api::view::{EndpointAddress, EndpointPort, EndpointSubset, ObjectReference, SubsetPort};

/// Sorts the ports of a slice.
pub(crate) fn sort_slice_ports(ports: &mut [EndpointPort]) {
    sort_by_hash(ports, |port, text| {
        text.push_str("(v1.EndpointPort){");
        pointer(text, "Name", "string", port.name.as_deref());
        pointer(text, " Protocol", "v1.Protocol", port.protocol.map(|protocol| protocol.as_str()));
        pointer(text, " Port", "int32", port.port.map(|port| port.to_string()).as_deref());
        pointer(text, " AppProtocol", "string", port.app_protocol.as_deref());
        text.push('}');
    });
}

/// Sorts the ports of every subset, then the subsets. Addresses are in order already.
pub(crate) fn sort_subsets(subsets: &mut [EndpointSubset]) {
    for subset in &mut *subsets {
        sort_by_hash(&mut subset.ports, |port, text| {
            text.push_str("(v1.EndpointPort)");
            subset_port(text, port);
        });
    }
    sort_by_hash(subsets, |subset, text| {
        text.push_str("(v1.EndpointSubset){");
        list(text, "Addresses", "v1.EndpointAddress", &subset.addresses, address);
        list(text, " NotReadyAddresses", "v1.EndpointAddress", &subset.not_ready_addresses, address);
        list(text, " Ports", "v1.EndpointPort", &subset.ports, subset_port);
        text.push('}');
    });
}

fn sort_by_hash<T>(items: &mut [T], print: impl Fn(&T, &mut String)) {
    // Printing a subset of a thousand addresses is dear, and one alone is in order.
    if items.len() < 2 {
        return;
    }
    items.sort_by_cached_key(|item| {
        let mut text = String::new();
        print(item, &mut text);
        fnv1a(text.as_bytes())
    });
}

fn fnv1a(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

fn subset_port(text: &mut String, port: &SubsetPort) {
    let number = port.port;
    let _ = write!(text, "{{Name:(string){} Port:(int32){number} Protocol:(v1.Protocol){}", port.name, port.protocol);
    pointer(text, " AppProtocol", "string", port.app_protocol.as_deref());
    text.push('}');
}

fn address(text: &mut String, address: &EndpointAddress) {
    let _ = write!(text, "{{IP:(string){} Hostname:(string){}", address.ip, address.hostname);
    pointer(text, " NodeName", "string", address.node_name.as_deref());
    text.push_str(" TargetRef:(*v1.ObjectReference)");
    match &address.target_ref {
        Some(target) => reference(text, target),
        None => text.push_str("<nil>"),
    }
    text.push('}');
}

fn reference(text: &mut String, target: &ObjectReference) {
    let ObjectReference { kind, namespace, name, uid, api_version, resource_version, field_path } = target;
    let _ = write!(
        text,
        "{{Kind:(string){kind} Namespace:(string){namespace} Name:(string){name} UID:(types.UID){uid} \
         APIVersion:(string){api_version} ResourceVersion:(string){resource_version} FieldPath:(string){field_path}}}"
    );
}

fn pointer(text: &mut String, field: &str, kind: &str, value: Option<&str>) {
    let _ = write!(text, "{field}:(*{kind}){}", value.unwrap_or("<nil>"));
}

fn list<T>(text: &mut String, field: &str, kind: &str, items: &[T], print: fn(&mut String, &T)) {
    let _ = write!(text, "{field}:([]{kind})");
    if items.is_empty() {
        text.push_str("<nil>");
        return;
    }
    text.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        print(text, item);
    }
    text.push(']');
}

#[cfg(test)]
mod tests;
