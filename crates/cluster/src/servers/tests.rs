use serde_json::{Value, json};

use super::urls;

#[test]
fn servers_are_the_ready_endpoints_at_the_port_https() {
    let check = |slice: Value, expect: &[&str]| assert_eq!(urls(&slice), expect, "{slice}");
    let ports = json!([{"name": "other", "port": 1}, {"name": "https", "port": 6443}]);
    let endpoints = json!([
        {"addresses": ["192.0.2.1"], "conditions": {"ready": true}},
        {"addresses": ["192.0.2.2"], "conditions": {"ready": false}},
        {"addresses": ["2001:db8::3"]},
    ]);
    check(json!({"ports": ports, "endpoints": endpoints}), &["https://192.0.2.1:6443", "https://[2001:db8::3]:6443"]);
    check(json!({"ports": ports}), &[]);
    check(json!({"ports": [{"name": "http", "port": 80}], "endpoints": endpoints}), &[]);
    check(Value::Null, &[]);
}
