//! What a view makes of an object, and what an object looks like when it is written again.

use serde_json::{Value, json};

use super::*;

fn read<T: View>(object: Value) -> T {
    serde_json::from_value(object).expect("the object can be viewed")
}

#[test]
fn null_reads_as_absent() {
    let slice: EndpointSlice = read(json!({"addressType": "IPv6", "endpoints": null, "ports": null}));
    assert_eq!(slice, EndpointSlice { address_type: AddressType::V6, ..EndpointSlice::default() });
    let pod: Pod = read(json!({"metadata": {"labels": null, "creationTimestamp": null}, "status": {"podIPs": null}}));
    assert_eq!(pod, Pod::default());
}

#[test]
fn slices_and_endpoints_are_written_as_they_were_read() {
    let slice = json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": "web-1", "generateName": "web-", "namespace": "default", "uid": "u", "resourceVersion": "7",
            "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["f/g"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "s", "controller": true, "blockOwnerDeletion": true}]},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"ready": true, "serving": true, "terminating": false},
            "hostname": "h", "targetRef": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u"},
            "deprecatedTopology": {"k": "v"}, "nodeName": "n", "zone": "z",
            "hints": {"forZones": [{"name": "z"}], "forNodes": [{"name": "n"}]}}],
        "ports": [{"name": "", "protocol": "TCP", "port": 80, "appProtocol": "http"}],
    });
    assert_eq!(to_json(&read::<EndpointSlice>(slice.clone())), slice);
    let endpoints = json!({
        "kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": "web"},
        "subsets": [{"addresses": [{"ip": "10.1.0.1", "hostname": "h", "nodeName": "n", "targetRef": {"kind": "Pod", "name": "p"}}],
            "notReadyAddresses": [{"ip": "10.1.0.2"}],
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "http"}]}],
    });
    assert_eq!(to_json(&read::<Endpoints>(endpoints.clone())), endpoints);
}

#[test]
fn a_target_port_is_a_number_or_a_name() {
    let service: Service = read(
        json!({"spec": {"ports": [{"port": 80, "targetPort": 8080}, {"port": 81, "targetPort": "web"}, {"port": 82}]}}),
    );
    let targets: Vec<_> = service.spec.ports.into_iter().map(|port| port.target_port).collect();
    assert_eq!(targets, [TargetPort::Number(8080), TargetPort::Name("web".to_owned()), TargetPort::Number(0)]);
}

#[test]
fn a_service_selects_pods_that_have_every_label() {
    let service: Service = read(json!({"spec": {"selector": {"app": "web", "tier": "front"}}}));
    let labels = |value: Value| serde_json::from_value(value).expect("labels");
    assert!(service.selects(&labels(json!({"app": "web", "tier": "front", "x": "y"}))));
    assert!(!service.selects(&labels(json!({"app": "web"}))));
    assert!(!Service::default().selects(&labels(json!({"app": "web"}))));
}

#[test]
fn a_pod_with_one_address_in_the_old_field_has_an_address() {
    let pod: Pod = read(json!({"status": {"podIP": "10.1.0.1"}}));
    assert_eq!(pod.addresses().collect::<Vec<_>>(), ["10.1.0.1"]);
    let pod: Pod = read(json!({"status": {"podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}]}}));
    assert_eq!(pod.addresses().collect::<Vec<_>>(), ["10.1.0.1", "fd00::1"]);
}

#[test]
fn a_selector_of_an_object_selects_labels_that_meet_all_requirements() {
    let labels: BTreeMap<String, String> =
        [("app", "web"), ("tier", "front")].map(|(k, v)| (k.into(), v.into())).into();
    for (selector, selects) in [
        (r#"{"matchLabels": {"app": "web"}}"#, true),
        (r#"{"matchLabels": {"app": "web", "tier": "back"}}"#, false),
        (r#"{"matchExpressions": [{"key": "tier", "operator": "In", "values": ["back", "front"]}]}"#, true),
        (r#"{"matchExpressions": [{"key": "other", "operator": "NotIn", "values": ["x"]}]}"#, true),
        (r#"{"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}"#, false),
        (r#"{"matchExpressions": [{"key": "app", "operator": "Exists"}], "matchLabels": {"app": "db"}}"#, false),
        // Nothing is asked for, or nothing that can be understood: a controller that acts on it
        // would take all Pods.
        ("{}", false),
        (r#"{"matchLabels": null}"#, false),
        (r#"{"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}"#, false),
    ] {
        let parsed: ObjectSelector = serde_json::from_str(selector).expect("a selector");
        assert_eq!(parsed.matches(&labels), selects, "{selector}");
    }
}
