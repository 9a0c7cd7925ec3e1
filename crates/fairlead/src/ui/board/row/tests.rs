use std::sync::Arc;

use fairlead_explain::{Change, check};
use serde_json::{Value, json};

use super::*;

/// The row of Service `default/web` in a cluster of these objects.
fn row_of(service: Value, slices: &[Value]) -> Value {
    let key = Key::new("default", "web");
    let mut objects = Objects::default();
    objects.apply([Change::Service(key.clone(), Some(Arc::new(serde_json::from_value(service).unwrap())))]);
    objects.apply(slices.iter().enumerate().map(|(number, slice)| {
        let mut slice: EndpointSlice = serde_json::from_value(slice.clone()).unwrap();
        slice.metadata.namespace = "default".to_owned();
        slice.metadata.labels.insert("kubernetes.io/service-name".to_owned(), "web".to_owned());
        Change::EndpointSlice(Key::new("default", format!("web-{number}")), Some(Arc::new(slice)))
    }));
    let row = row(&key, &objects, &check(&key, &objects)).expect("it is there");
    serde_json::from_slice(&row.json).unwrap()
}

fn service(spec: Value) -> Value {
    json!({"metadata": {"name": "web", "namespace": "default", "creationTimestamp": "2026-01-02T03:04:05Z"}, "spec": spec})
}

#[track_caller]
fn check_row(service: Value, slices: &[Value], expected: Value) {
    let found = row_of(service, slices);
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(found[field], *value, "{field} of {found}");
    }
}

#[test]
fn a_row_says_what_a_service_is_and_how_many_endpoints_are_ready() {
    let spec = json!({
        "type": "NodePort", "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "fd00::7"],
        "externalIPs": ["192.0.2.1"],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "web", "nodePort": 30080},
                  {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 5353}],
    });
    let pod = |name: &str, ip: &str, ready: bool| json!({"addresses": [ip], "conditions": {"ready": ready}, "targetRef": {"kind": "Pod", "name": name}});
    let slices = [
        json!({"addressType": "IPv4", "endpoints": [pod("a", "10.0.0.1", true), pod("b", "10.0.0.2", false)]}),
        json!({"addressType": "IPv6", "endpoints": [pod("a", "fd00::1", true), {"addresses": ["fd00::9"]}]}),
    ];
    let expected = json!({
        "namespace": "default", "name": "web", "type": "NodePort", "headless": false,
        "addresses": ["10.96.0.7", "fd00::7"], "external": ["192.0.2.1"], "ready": 2, "total": 3,
        "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "web", "nodePort": 30080},
                  {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 5353}],
        "created": "2026-01-02T03:04:05Z",
    });
    check_row(service(spec), &slices, expected);
}

#[test]
fn headless_and_external_services_have_no_cluster_address() {
    let headless = json!({"clusterIP": "None", "clusterIPs": ["None"], "ports": [{"port": 80, "protocol": "TCP"}]});
    let expected = json!({"type": "ClusterIP", "headless": true, "addresses": [], "ready": 0, "total": 0});
    check_row(service(headless), &[], expected);
    let alias = json!({"type": "ExternalName", "externalName": "db.example.org"});
    check_row(service(alias), &[], json!({"type": "ExternalName", "headless": false, "external": ["db.example.org"]}));
}
