use crate::value::{Value, json};

use super::v1beta1::{load, store};
use super::*;
use crate::decode::decode;
use crate::schema::discovery;

fn settings() -> Settings {
    Settings { service_ranges: Vec::new(), node_ports: 30000..=32767, service_topology: false }
}

/// A slice of one endpoint, in canonical form.
fn slice(endpoint: Value) -> Value {
    let slice = json!({"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": [endpoint]});
    decode(&discovery::ENDPOINT_SLICE, slice).expect("a slice").value
}

#[test]
fn topology_is_not_written_but_a_known_node_is_kept() {
    let old = slice(json!({"addresses": ["10.1.0.1"], "deprecatedTopology": {HOSTNAME: "n1"}}));
    let check = |endpoint: Value, node: Value| {
        let mut new = slice(endpoint.clone());
        drop_topology(&mut new, Some(&old));
        assert_eq!(new["endpoints"][0].at("deprecatedTopology"), &Value::Null, "{endpoint}");
        assert_eq!(new["endpoints"][0].at("nodeName"), &node, "{endpoint}");
    };
    check(json!({"addresses": ["10.1.0.2"], "deprecatedTopology": {HOSTNAME: "n1"}}), json!("n1"));
    check(json!({"addresses": ["10.1.0.2"], "deprecatedTopology": {HOSTNAME: "n2"}}), json!(null));
    check(json!({"addresses": ["10.1.0.2"], "deprecatedTopology": {"a": "b"}}), json!(null));
    let mut same = old.clone();
    drop_topology(&mut same, Some(&old));
    assert_eq!(same, old);
}

#[test]
fn ports_get_a_name_and_a_protocol() {
    let mut object = json!({"ports": [{"port": 80}, {"name": "a", "protocol": "UDP"}]});
    default(&mut object, &settings());
    assert_eq!(object["ports"], json!([{"name": "", "protocol": "TCP", "port": 80}, {"name": "a", "protocol": "UDP"}]));
}

#[test]
fn cells_show_the_first_few() {
    let check = |ports: Value, endpoints: Value, cells: [&str; 2]| {
        let object = json!({"metadata": {"name": "e"}, "addressType": "IPv4", "ports": ports, "endpoints": endpoints});
        assert_eq!(
            row(&object, 0),
            json!(["e", "IPv4", cells[0], cells[1], "<unknown>"]).as_array().cloned().expect("cells")
        );
    };
    check(json!(null), json!(null), ["<unset>", "<unset>"]);
    let five: Vec<Value> = (0..5).map(|i| json!({"addresses": [format!("10.1.2.{i}")]})).collect();
    check(json!([{"port": 80}, {"port": 81}]), json!(five), ["80,81", "10.1.2.0,10.1.2.1,10.1.2.2 + 2 more..."]);
    check(json!([{"name": "a"}, {}]), json!(five[..3]), ["a,*", "10.1.2.0,10.1.2.1,10.1.2.2"]);
}

fn check_conversion(beta: Value, stored: Value) {
    let of = |schema, endpoint: &Value| {
        let slice = json!({"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": [endpoint], "ports": null});
        decode(schema, slice).expect("a slice").value
    };
    let old = of(&discovery::ENDPOINT_SLICE_V1BETA1, &beta);
    assert_eq!(store(&old)["endpoints"], of(&discovery::ENDPOINT_SLICE, &stored)["endpoints"], "{beta}");
}

#[test]
fn the_topology_map_is_taken_apart() {
    check_conversion(
        json!({"addresses": ["10.1.0.1"], "topology": {HOSTNAME: "n1", ZONE: "z1", "rack": "r1"}}),
        json!({"addresses": ["10.1.0.1"], "nodeName": "n1", "zone": "z1", "deprecatedTopology": {"rack": "r1"}}),
    );
    check_conversion(
        json!({"addresses": ["10.1.0.1"], "nodeName": "n1", "topology": {HOSTNAME: "other"}}),
        json!({"addresses": ["10.1.0.1"], "nodeName": "n1", "deprecatedTopology": {HOSTNAME: "other"}}),
    );
    check_conversion(json!({"addresses": ["10.1.0.1"]}), json!({"addresses": ["10.1.0.1"]}));
}

#[test]
fn the_topology_map_is_put_together_again() {
    let stored =
        slice(json!({"addresses": ["10.1.0.1"], "nodeName": "n1", "zone": "z1", "deprecatedTopology": {"rack": "r1"}}));
    let beta = load(&stored);
    assert_eq!(beta["apiVersion"], "discovery.k8s.io/v1beta1");
    assert_eq!(beta["endpoints"][0]["topology"], json!({HOSTNAME: "n1", "rack": "r1", ZONE: "z1"}));
    assert_eq!(store(&beta)["endpoints"], stored["endpoints"]);
}
