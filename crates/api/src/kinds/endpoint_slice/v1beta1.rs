//! EndpointSlice as `discovery.k8s.io/v1beta1` writes it: where an endpoint is stands in one map, `topology`, which the
//! stored form takes apart into `zone`, `nodeName` and `deprecatedTopology`.

use crate::value::{Map, Value};

use super::{HOSTNAME, RULES, ZONE};
use crate::decode::decode;
use crate::kinds::Rules;
use crate::schema::{Struct, discovery};
use crate::{Look, names};

/// The rules: those of `v1`, but topology may be written.
pub static V1BETA1_RULES: Rules = Rules { prepare_create: |_, _| {}, prepare_update: |_, _, _| {}, ..RULES };

/// From `v1beta1` to the stored form.
pub fn store(slice: &Value) -> Value {
    convert(slice, "discovery.k8s.io/v1", &discovery::ENDPOINT_SLICE, |endpoint| {
        let Some(Value::Object(mut topology)) = endpoint.unset("topology") else {
            return;
        };
        if let Some(zone) = topology.shift_remove(ZONE) {
            endpoint.set("zone", zone);
        }
        // Clients that know only the map name the node there; everything else reads the field.
        let host = topology.get(HOSTNAME).and_then(Value::as_str).unwrap_or_default();
        if endpoint.at("nodeName").is_null() && !host.is_empty() && names::subdomain(host).is_empty() {
            endpoint.set("nodeName", host);
        }
        // A hostname that differs from the node's name is kept: the two may differ in this version.
        if topology.get(HOSTNAME).is_some_and(|host| host == endpoint.at("nodeName")) {
            topology.shift_remove(HOSTNAME);
        }
        endpoint.set("deprecatedTopology", topology);
    })
}

/// From the stored form to `v1beta1`.
pub fn load(slice: &Value) -> Value {
    convert(slice, "discovery.k8s.io/v1beta1", &discovery::ENDPOINT_SLICE_V1BETA1, |endpoint| {
        let mut topology = match endpoint.unset("deprecatedTopology") {
            Some(Value::Object(topology)) => topology,
            _ => Map::new(),
        };
        if let Some(zone) = endpoint.unset("zone") {
            topology.insert(ZONE.to_owned(), zone);
        }
        let node = endpoint.at("nodeName");
        if !node.is_null() && topology.get(HOSTNAME).is_none_or(|host| host == "") {
            topology.insert(HOSTNAME.to_owned(), node.clone());
        }
        endpoint.set("topology", topology);
    })
}

fn convert(slice: &Value, api_version: &str, to: &'static Struct, change: impl Fn(&mut Value)) -> Value {
    let mut slice = slice.clone();
    slice.set("kind", "EndpointSlice");
    slice.set("apiVersion", api_version);
    slice.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten().for_each(change);
    // Brings the fields into the order of the type and drops an empty map.
    decode(to, slice.clone()).map_or(slice, |decoded| decoded.value)
}
