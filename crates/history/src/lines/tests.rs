use serde_json::{Value, json};

use super::lines;
use crate::Followed::{self, EndpointSlice, Endpoints, Event, Node, Pod, Service, ServiceCidr};

fn check(kind: Followed, before: Option<Value>, after: Option<Value>, want: &[&str]) {
    assert_eq!(lines(kind, "it", before.as_ref(), after.as_ref()), want);
}

fn service(spec: Value) -> Option<Value> {
    Some(json!({"metadata": {"name": "web"}, "spec": spec}))
}

#[test]
fn fields_of_a_service_are_told_with_their_path() {
    let before = || service(json!({"ports": [{"port": 80, "targetPort": 9376}], "selector": {"app": "web"}}));
    let cases: &[(Value, &[&str])] = &[
        (
            json!({"ports": [{"port": 80, "targetPort": "http"}], "selector": {"app": "web"}}),
            &["spec.ports[0].targetPort: 9376 -> http"],
        ),
        (
            json!({"ports": [{"port": 80, "targetPort": 9376}], "selector": {"app": "web", "a.b/c": "d"}}),
            &["spec.selector[\"a.b/c\"]: set to d"],
        ),
        (json!({"ports": [{"port": 80, "targetPort": 9376}]}), &["spec.selector: removed, was {\"app\":\"web\"}"]),
        (
            json!({"ports": [{"port": 80, "targetPort": 9376}, {"port": 81}], "selector": {"app": "web"}}),
            &["spec.ports[1]: set to {\"port\":81}"],
        ),
    ];
    for (after, want) in cases {
        check(Service, before(), service(after.clone()), want);
    }
    let ips = |list: Value| service(json!({"externalIPs": list}));
    check(Service, ips(json!([])), ips(json!(["192.0.2.1"])), &["spec.externalIPs: none -> 192.0.2.1"]);
}

#[test]
fn a_service_that_comes_or_goes_is_described() {
    let web = || {
        service(json!({"type": "NodePort", "clusterIPs": ["10.96.0.7"], "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": 9376, "nodePort": 30080, "protocol": "TCP"}]}))
    };
    let lines = ["type NodePort, 10.96.0.7", "port http 80/TCP -> 9376, node port 30080", "selector app=web"];
    check(Service, None, web(), &lines);
    check(Service, web(), None, &lines.map(|line| format!("was: {line}")).each_ref().map(String::as_str));
    check(Service, None, service(json!({"clusterIP": "None"})), &["type ClusterIP, headless"]);
    let name = json!({"type": "ExternalName", "externalName": "a.example"});
    check(Service, None, service(name), &["type ExternalName, a.example"]);
}

#[test]
fn a_service_that_waits_for_finalizers_says_so() {
    let before = json!({"metadata": {"finalizers": ["lb/cleanup"]}});
    let after = json!({"metadata": {"finalizers": ["lb/cleanup"], "deletionTimestamp": "t"}});
    check(Service, Some(before), Some(after), &["is being deleted; waits for lb/cleanup"]);
    let status = |ip: &str| Some(json!({"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}}));
    let lines = ["load balancer has 192.0.2.2", "load balancer lost 192.0.2.1"];
    check(Service, status("192.0.2.1"), status("192.0.2.2"), &lines);
}

fn slice(endpoints: Value) -> Option<Value> {
    Some(json!({"metadata": {"name": "web-x"}, "ports": [{"name": "http", "port": 9376}], "endpoints": endpoints}))
}

fn endpoint(address: &str, pod: &str, conditions: Value) -> Value {
    json!({"addresses": [address], "conditions": conditions, "targetRef": {"kind": "Pod", "name": pod}})
}

#[test]
fn endpoints_join_and_leave() {
    let ready = || json!({"ready": true, "serving": true, "terminating": false});
    let one = || endpoint("10.244.0.7", "web-2", ready());
    check(EndpointSlice, slice(json!([])), slice(json!([one()])), &["endpoint 10.244.0.7:9376 (Pod web-2) joined"]);
    check(EndpointSlice, slice(json!([one()])), slice(json!([])), &["endpoint 10.244.0.7:9376 (Pod web-2) left"]);
    check(EndpointSlice, slice(json!([one()])), None, &["endpoint 10.244.0.7:9376 (Pod web-2) left"]);
    check(EndpointSlice, None, slice(json!([])), &["no endpoints yet"]);
    let six = json!([{"addresses": ["fd00::7"], "conditions": {"ready": false}}]);
    check(EndpointSlice, None, slice(six), &["endpoint [fd00::7]:9376 joined, not ready"]);
}

#[test]
fn endpoints_change_their_state() {
    let with = |ready: bool, serving: bool, terminating: bool| {
        let conditions = json!({"ready": ready, "serving": serving, "terminating": terminating});
        slice(json!([endpoint("10.244.0.7", "web-2", conditions)]))
    };
    let said = |before, after, want: &str| {
        check(EndpointSlice, before, after, &[&format!("endpoint 10.244.0.7:9376 (Pod web-2) {want}")]);
    };
    said(with(false, false, false), with(true, true, false), "became ready");
    said(with(true, true, false), with(false, false, false), "is no longer ready");
    said(with(true, true, false), with(false, true, true), "is terminating, still serving");
    said(with(false, true, true), with(false, false, true), "no longer serves");
    let hint = |zone: &str| slice(json!([{"addresses": ["10.0.0.1"], "hints": {"forZones": [{"name": zone}]}}]));
    check(EndpointSlice, hint("a"), hint("b"), &["endpoints[0].hints.forZones[0].name: a -> b"]);
}

#[test]
fn a_slice_of_a_thousand_endpoints_is_told_in_few_lines() {
    let many: Vec<Value> =
        (0..1000).map(|at| json!({"addresses": [format!("10.0.{}.{}", at / 250, at % 250)]})).collect();
    let told = lines(EndpointSlice, "it", None, slice(many.into()).as_ref());
    assert_eq!(told.len(), 40);
    assert_eq!(told.last().map(String::as_str), Some("and 961 more"));
}

#[test]
fn hand_made_endpoints_read_like_slices() {
    let subsets = |ready: &str, other: &str| {
        let ports = json!([{"port": 5432}]);
        Some(json!({"subsets": [{"addresses": [{"ip": ready}], "notReadyAddresses": [{"ip": other}], "ports": ports}]}))
    };
    let lines = ["endpoint 10.0.0.1:5432 is no longer ready", "endpoint 10.0.0.2:5432 became ready"];
    check(Endpoints, subsets("10.0.0.1", "10.0.0.2"), subsets("10.0.0.2", "10.0.0.1"), &lines);
}

#[test]
fn pods_become_ready_and_go() {
    let pod = |ready: &str, reason: &str| {
        let conditions = json!([{"type": "Ready", "status": ready, "reason": reason}]);
        Some(json!({"spec": {"nodeName": "n1"}, "status": {"phase": "Running", "conditions": conditions}}))
    };
    check(Pod, pod("False", "ContainersNotReady"), pod("True", ""), &["Pod it became ready"]);
    check(Pod, pod("True", ""), pod("False", "ProbeFailed"), &["Pod it is no longer ready: ProbeFailed"]);
    check(Pod, pod("False", "A"), pod("False", "B"), &["Pod it is not ready: B"]);
    check(Pod, None, pod("False", "ContainersNotReady"), &["Pod it is new, on Node n1"]);
    check(Pod, pod("True", ""), None, &["Pod it is gone"]);
    let with = |status: Value| Some(json!({"status": status}));
    check(Pod, with(json!({})), with(json!({"podIP": "10.1.1.1"})), &["Pod it has address 10.1.1.1"]);
    let restarts = |count: i64| with(json!({"containerStatuses": [{"name": "c", "restartCount": count}]}));
    check(Pod, restarts(1), restarts(2), &["Pod it: container c was started again, 2 times so far"]);
    let labelled = |value: &str| Some(json!({"metadata": {"labels": {"app": value}}}));
    check(Pod, labelled("web"), labelled("old"), &["metadata.labels.app: web -> old"]);
    let dying = Some(json!({"metadata": {"labels": {"app": "web"}, "deletionTimestamp": "t"}}));
    check(Pod, labelled("web"), dying, &["Pod it is being deleted"]);
}

#[test]
fn nodes_ranges_and_events_have_words_too() {
    let node =
        |ready: &str| Some(json!({"status": {"conditions": [{"type": "Ready", "status": ready, "reason": "R"}]}}));
    check(Node, node("True"), node("Unknown"), &["Node it is no longer ready: R"]);
    check(Node, None, node("True"), &["Node it is new", "Node it became ready"]);
    let range = Some(json!({"spec": {"cidrs": ["10.96.0.0/16", "fd00:96::/108"]}}));
    check(ServiceCidr, None, range, &["range of cluster IPs: 10.96.0.0/16, fd00:96::/108"]);
    let event = json!({"type": "Warning", "reason": "Unhealthy", "message": "it\nfailed ", "count": 3});
    check(Event, None, Some(event), &["Warning Unhealthy: it failed (seen 3 times)"]);
}
