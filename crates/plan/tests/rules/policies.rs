//! Traffic policies, health checks and session affinity.

use std::collections::BTreeMap;

use fairlead_api::view::Family;
use fairlead_plan::{Node, Verdict};
use serde_json::{Value, json};

use crate::lab::{lab, node, web};

const TWO: &str = "10.50.1.11 @n1, 10.50.2.11 @n2";
const REMOTE: &str = "10.50.2.11 @n2, 10.50.2.12 @n2";

/// With everything that follows the external policy.
fn external(policy: &str) -> Value {
    json!({
        "type": "LoadBalancer", "externalTrafficPolicy": policy, "externalIPs": ["192.0.2.7"], "healthCheckNodePort": 32000,
        "loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}, "ports": [{"name": "http", "port": 80, "nodePort": 30080}],
    })
}

const EXTERNAL: [&str; 3] = ["192.0.2.7:80", "203.0.113.1:80", "172.30.0.11:30080"];

fn check_external(spec: &Value, endpoints: &str, table: &[(&str, &str)]) {
    let lab = web(spec.clone(), endpoints);
    for to in EXTERNAL {
        for (who, verdict) in table {
            lab.check(&[(&format!("{who} {to}"), verdict)]);
        }
    }
}

#[test]
fn row_20_policy_cluster_reaches_all_and_hides_everyone() {
    let hidden = "10.50.1.11:8080! 10.50.2.11:8080!";
    let all = ["pod", "otherpod", "node", "outside"].map(|who| (who, hidden));
    check_external(&external("Cluster"), TWO, &all);
}

#[test]
fn row_20_the_external_policy_means_nothing_to_a_service_that_is_not_for_the_outside() {
    // What a load balancer once said may still stand there.
    let spec = json!({"externalTrafficPolicy": "Local", "loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}});
    let hidden = "10.50.2.11:8080! 10.50.2.12:8080!";
    web(spec, REMOTE).check(&[("outside 10.96.0.1:80", hidden), ("outside 203.0.113.1:80", hidden)]);
}

#[test]
fn row_91_policy_local_keeps_the_client_and_drops_where_there_is_no_local_endpoint() {
    check_external(&external("Local"), TWO, &[("outside", "10.50.1.11:8080")]);
    check_external(&external("Local"), REMOTE, &[("outside", "drop")]);
    check_external(&external("Local"), "", &[("outside", "reject"), ("pod", "reject"), ("node", "reject")]);
}

#[test]
fn row_92_for_pods_and_the_node_policy_local_is_short_circuited() {
    check_external(
        &external("Local"),
        TWO,
        &[
            ("pod", "10.50.1.11:8080 10.50.2.11:8080"),
            ("node", "10.50.1.11:8080! 10.50.2.11:8080!"),
            // Its answers would go straight to it, past this Node.
            ("otherpod", "10.50.1.11:8080! 10.50.2.11:8080!"),
        ],
    );
    check_external(&external("Local"), REMOTE, &[("pod", "10.50.2.11:8080 10.50.2.12:8080")]);
    // Without knowing which Pods are its own it takes every Pod for one.
    let unknown = Node { pod_ranges: Vec::new(), ..node() };
    lab(unknown, external("Local"), TWO).check(&[("otherpod 192.0.2.7:80", "10.50.1.11:8080 10.50.2.11:8080")]);
}

#[test]
fn row_93_internal_policy_local_reaches_local_endpoints_or_drops() {
    let spec = json!({"internalTrafficPolicy": "Local"});
    web(spec.clone(), TWO).check(&[
        ("pod 10.96.0.1:80", "10.50.1.11:8080"),
        ("node 10.96.0.1:80", "10.50.1.11:8080!"),
        ("outside 10.96.0.1:80", "10.50.1.11:8080!"),
    ]);
    web(spec.clone(), REMOTE).check(&[("pod 10.96.0.1:80", "drop"), ("node 10.96.0.1:80", "drop")]);
    web(spec, "10.50.2.11 @n2 unready").check(&[("pod 10.96.0.1:80", "reject")]);
}

#[test]
fn row_93_the_two_policies_are_independent() {
    let mut spec = external("Cluster");
    spec["internalTrafficPolicy"] = json!("Local");
    check_external(&spec, REMOTE, &[("outside", "10.50.2.11:8080! 10.50.2.12:8080!")]);
    web(spec, REMOTE).check(&[("pod 10.96.0.1:80", "drop")]);
    let mut spec = external("Local");
    spec["internalTrafficPolicy"] = json!("Cluster");
    web(spec, REMOTE)
        .check(&[("pod 10.96.0.1:80", "10.50.2.11:8080 10.50.2.12:8080"), ("outside 192.0.2.7:80", "drop")]);
}

#[test]
fn row_96_affinity_is_of_the_port_with_its_time() {
    let affinity = |spec: Value| {
        let Verdict::Dnat(dnat) = web(spec, TWO).decide("pod 10.96.0.1:80").verdict else { panic!("no endpoint") };
        dnat.affinity
    };
    let config = |seconds| json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}}});
    assert_eq!(affinity(json!({})), None);
    assert_eq!(affinity(json!({"sessionAffinity": "None"})), None);
    assert_eq!(affinity(json!({"sessionAffinity": "ClientIP"})), Some(10800));
    assert_eq!(affinity(config(3)), Some(3));
    assert_eq!(affinity(config(-3)), Some(10800));
}

#[test]
fn row_109_health_checks_count_ready_local_endpoints_of_each_family() {
    let count = |spec: &Value, endpoints: &str| {
        let lab = web(spec.clone(), endpoints);
        let mut checks = lab.plan().health_checks().map(|check| (check.port, check.local_endpoints.clone()));
        let first = checks.next();
        assert!(checks.next().is_none());
        first
    };
    let v4 = |count| Some((32000, BTreeMap::from([(Family::V4, count)])));
    assert_eq!(count(&external("Local"), TWO), v4(1));
    assert_eq!(count(&external("Local"), "10.50.1.11 @n1, 10.50.1.12 @n1, 10.50.1.13 @n1 leaving"), v4(2));
    assert_eq!(count(&external("Local"), "10.50.1.11 @n1 leaving"), v4(0));
    assert_eq!(count(&external("Local"), ""), v4(0));
    assert_eq!(count(&external("Cluster"), TWO), None);
    let mut dual = external("Local");
    dual["clusterIPs"] = json!(["10.96.0.1", "fd00:96::1"]);
    assert_eq!(count(&dual, TWO), Some((32000, BTreeMap::from([(Family::V4, 1), (Family::V6, 0)]))));
    let mut without = external("Local");
    without["healthCheckNodePort"] = json!(0);
    assert_eq!(count(&without, TWO), None);
}
