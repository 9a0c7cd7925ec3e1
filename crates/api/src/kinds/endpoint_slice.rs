//! EndpointSlice: some of the endpoints behind a Service. Its rules; the older version of the API is in [`v1beta1`].

use std::collections::HashSet;

use crate::value::Value;

use super::{Rules, columns};
use crate::field::Path;
use crate::meta::{Check, Checks};
use crate::schema::discovery::{ENDPOINT, ENDPOINT_PORT};
use crate::{Look, Settings, ip, names};

pub mod v1beta1;
mod validate;

/// The rules.
pub static RULES: Rules = Rules {
    metadata: Checks { update: &[Check::Whole], ..Checks::USUAL },
    default,
    prepare_create: |object, _| drop_topology(object, None),
    prepare_update: |object, old, _| drop_topology(object, Some(old)),
    validate: validate::whole,
    validate_update: validate::change,
    warnings,
    columns: &[
        columns::NAME,
        columns::text("AddressType", "The type of its addresses."),
        columns::text("Ports", "The first ports."),
        columns::text("Endpoints", "The first addresses."),
        columns::AGE,
    ],
    row,
    ..Rules::PLAIN
};

/// The topology key of the node's name.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// The topology key of the zone.
const ZONE: &str = "topology.kubernetes.io/zone";

fn default(object: &mut Value, _: &Settings) {
    for port in object.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        for (field, value) in [("name", ""), ("protocol", "TCP")] {
            if port.at(field).is_null() {
                ENDPOINT_PORT.place(port, field, value);
            }
        }
    }
}

/// `deprecatedTopology` can be read but not written. A node name that only stood there before moves to its own field,
/// so that a client that knows the old field alone does not lose it.
fn drop_topology(object: &mut Value, old: Option<&Value>) {
    if old.is_some_and(|old| old.at("endpoints") == object.at("endpoints")) {
        return;
    }
    let known: HashSet<&str> = old
        .map_or(&[][..], |old| old.list("endpoints"))
        .iter()
        .map(|endpoint| endpoint.at("deprecatedTopology").text(HOSTNAME))
        .collect();
    for endpoint in object.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten() {
        let topology = endpoint.unset("deprecatedTopology").unwrap_or_default();
        let node = topology.text(HOSTNAME);
        if endpoint.at("nodeName").is_null()
            && !node.is_empty()
            && known.contains(node)
            && names::subdomain(node).is_empty()
        {
            ENDPOINT.place(endpoint, "nodeName", node);
        }
    }
}

fn warnings(object: &Value, old: Option<&Value>, _: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    if old.is_none() && object.text("addressType") == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    // The controllers write addresses as they should be; large objects need not be searched.
    let manager = object.at("metadata").at("labels").text("endpointslice.kubernetes.io/managed-by");
    if ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"].contains(&manager) {
        return warnings;
    }
    for (i, endpoint) in object.list("endpoints").iter().enumerate() {
        let path = Path::new("endpoints").index(i).child("addresses");
        for (j, address) in endpoint.texts("addresses").into_iter().enumerate() {
            warnings.extend(ip::warnings(&path.index(j), address));
        }
    }
    warnings
}

fn row(object: &Value, now: i64) -> Vec<Value> {
    let port = |port: &Value| match (port.int_opt("port"), port.text_opt("name")) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    };
    let ports: Vec<String> = object.list("ports").iter().map(port).collect();
    let addresses: Vec<&str> = object.list("endpoints").iter().flat_map(|e| e.texts("addresses")).collect();
    let or_unset = |cell: String| if cell.is_empty() { "<unset>".to_owned() } else { cell };
    vec![
        columns::name(object),
        object.text("addressType").into(),
        or_unset(columns::first_few(&ports)).into(),
        or_unset(columns::first_few(&addresses)).into(),
        columns::age_of(object, now),
    ]
}

#[cfg(test)]
mod tests;
