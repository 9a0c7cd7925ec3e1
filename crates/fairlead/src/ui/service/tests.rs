use super::*;

fn slice() -> EndpointSlice {
    let slice = json!({
        "metadata": {"name": "web-1", "namespace": "default", "annotations": {"fairlead.dev/weight": "10.0.0.1=3"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "all"}],
        "endpoints": [
            {"addresses": ["10.0.0.1"], "conditions": {"ready": true}, "nodeName": "n", "zone": "a",
             "targetRef": {"kind": "Pod", "name": "web-1"}},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": false, "serving": true, "terminating": true}},
        ],
    });
    serde_json::from_value(slice).unwrap()
}

#[test]
fn every_endpoint_is_told_with_each_port_and_with_nulls_where_nobody_counts() {
    let found = endpoints(&slice(), &Arc::new(Key::new("default", "web")), &Counted::default());
    assert_eq!(found.len(), 4);
    let first = json!({
        "address": "10.0.0.1", "port": 8080, "portName": "http", "protocol": "TCP", "ready": true, "serving": true,
        "terminating": false, "node": "n", "zone": "a", "target": "pod/web-1", "weight": 3,
        "connections": null, "bytesIn": null, "bytesOut": null, "packetsIn": null, "packetsOut": null,
    });
    assert_eq!(found[0], first);
    assert_eq!((&found[1]["port"], &found[1]["portName"]), (&Value::Null, &json!("all")));
    let last = &found[2];
    let conditions = [&last["ready"], &last["serving"], &last["terminating"], &last["weight"], &last["target"]];
    assert_eq!(conditions, [&json!(false), &json!(true), &json!(true), &json!(1), &Value::Null]);
}

#[test]
fn a_service_is_reached_at_all_its_addresses_and_its_node_port() {
    let service = json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "clusterIPs": ["10.96.0.1", "fd00::1"], "externalIPs": ["192.0.2.1"],
            "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30080}],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.65"}, {"hostname": "lb.example.org"}]}},
    });
    let found = frontends(&serde_json::from_value(service).unwrap(), &Counted::default());
    let places: Vec<String> =
        found.iter().map(|one| format!("{} {} {}", one.text("kind"), one.text("address"), one["port"])).collect();
    let expected = [
        "clusterIP 10.96.0.1 80",
        "clusterIP fd00::1 80",
        "externalIP 192.0.2.1 80",
        "loadBalancerIP 192.0.2.65 80",
        "nodePort * 30080",
    ];
    assert_eq!(places, expected);
    let headless = json!({"spec": {"clusterIPs": ["None"], "ports": [{"port": 80, "protocol": "TCP"}]}});
    assert_eq!(frontends(&serde_json::from_value(headless).unwrap(), &Counted::default()), Vec::<Value>::new());
}

#[test]
fn an_event_tells_when_it_was_last_so_in_either_form() {
    let old =
        json!({"type": "Warning", "reason": "R", "message": "m", "count": 3, "lastTimestamp": "2026-01-01T00:00:00Z"});
    assert_eq!(said(&old)["last"], "2026-01-01T00:00:00Z");
    let new = json!({"type": "Normal", "eventTime": "2026-01-02T00:00:00.000001Z", "lastTimestamp": null});
    assert_eq!((&said(&new)["last"], &said(&new)["count"]), (&json!("2026-01-02T00:00:00.000001Z"), &json!(1)));
}
