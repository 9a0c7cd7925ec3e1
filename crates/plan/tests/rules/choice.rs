//! Which endpoints are chosen.

use std::collections::BTreeMap;

use fairlead_plan::{Change, Node};
use serde_json::json;

use crate::lab::{Lab, lab, node, slice, slice_object, web};

fn cluster(endpoints: &str, expected: &str) {
    web(json!({}), endpoints).check(&[("pod 10.96.0.1:80", expected)]);
}

fn local(endpoints: &str, expected: &str) {
    web(json!({"internalTrafficPolicy": "Local"}), endpoints).check(&[("pod 10.96.0.1:80", expected)]);
}

#[test]
fn row_94_endpoints_on_their_way_out_serve_when_none_is_ready() {
    cluster("10.50.1.11, 10.50.2.11 leaving", "10.50.1.11:8080");
    cluster("10.50.1.11 unready, 10.50.2.11 leaving, 10.50.3.11 gone", "10.50.2.11:8080");
    cluster("10.50.1.11 unready, 10.50.3.11 gone", "reject");
    cluster("10.50.1.11 serving", "reject");
}

#[test]
fn row_94_the_fallback_is_decided_for_each_policy_alone() {
    local("10.50.1.11 @n1 leaving, 10.50.2.11 @n2", "10.50.1.11:8080");
    local("10.50.1.11 @n1 leaving, 10.50.1.12 @n1", "10.50.1.12:8080");
    cluster("10.50.1.11 @n1 leaving, 10.50.2.11 @n2", "10.50.2.11:8080");
    local("10.50.1.11 @n1 gone, 10.50.2.11 @n2 leaving", "drop");
}

#[test]
fn row_95_hints_for_zones_are_followed_when_all_have_one_and_one_is_for_us() {
    cluster("10.50.1.11 hz:za, 10.50.2.11 hz:zb", "10.50.1.11:8080");
    cluster("10.50.1.11 hz:za, 10.50.2.11", "10.50.1.11:8080 10.50.2.11:8080");
    cluster("10.50.1.11 hz:zc, 10.50.2.11 hz:zb", "10.50.1.11:8080 10.50.2.11:8080");
    cluster("10.50.1.11 hz:za, 10.50.2.11 hz:zb, 10.50.3.11 unready", "10.50.1.11:8080");
    cluster("10.50.1.11 hz:za unready, 10.50.2.11 hz:zb", "10.50.2.11:8080");
    cluster("10.50.1.11 hz:za leaving, 10.50.2.11 hz:zb leaving", "10.50.1.11:8080 10.50.2.11:8080");
    let nowhere = Node { labels: BTreeMap::new(), ..node() };
    lab(nowhere, json!({}), "10.50.1.11 hz:za, 10.50.2.11 hz:zb")
        .check(&[("pod 10.96.0.1:80", "10.50.1.11:8080 10.50.2.11:8080")]);
}

#[test]
fn row_95_hints_for_nodes_come_before_those_for_zones() {
    cluster("10.50.1.11 hz:za hn:n1, 10.50.2.11 hz:za hn:n2, 10.50.3.11 hz:zb hn:n3", "10.50.1.11:8080");
    cluster(
        "10.50.1.11 hz:za hn:n4, 10.50.2.11 hz:za hn:n2, 10.50.3.11 hz:zb hn:n3",
        "10.50.1.11:8080 10.50.2.11:8080",
    );
    cluster("10.50.1.11 hz:za, 10.50.2.11 hz:za hn:n1, 10.50.3.11 hz:zb hn:n3", "10.50.1.11:8080 10.50.2.11:8080");
}

#[test]
fn row_95_hints_do_not_touch_policy_local_and_do_touch_node_ports() {
    local("10.50.1.11 @n1 hz:zb, 10.50.2.11 @n2 hz:za", "10.50.1.11:8080");
    web(json!({"externalIPs": ["192.0.2.7"]}), "10.50.1.11 hz:za, 10.50.2.11 hz:zb")
        .check(&[("outside 192.0.2.7:80", "10.50.1.11:8080!")]);
}

#[test]
fn row_95_a_node_that_changes_its_zone_follows_other_hints() {
    let mut lab = web(json!({}), "10.50.1.11 hz:za, 10.50.2.11 hz:zb");
    let mut moved = node();
    moved.labels.insert("topology.kubernetes.io/zone".to_owned(), "zb".to_owned());
    let change = lab.planner.apply([Change::Node(Box::new(moved))]);
    assert_eq!((change.pools.len(), change.frontends.len()), (1, 0));
    lab.check(&[("pod 10.96.0.1:80", "10.50.2.11:8080")]);
}

fn keys(keys: &[&str], endpoints: &str) -> Lab {
    let mut node = Node { topology_keys: true, ..node() };
    node.labels.insert("topology.kubernetes.io/region".to_owned(), "r1".to_owned());
    let mut lab = lab(node, json!({"topologyKeys": keys}), endpoints);
    let region = |region: &str| Some(BTreeMap::from([("topology.kubernetes.io/region".to_owned(), region.to_owned())]));
    lab.planner.apply([Change::Labels("n2".to_owned(), region("r1")), Change::Labels("n3".to_owned(), region("r2"))]);
    lab
}

#[test]
fn row_32_the_first_topology_key_with_an_endpoint_decides() {
    const ALL: &str = "10.50.1.11 @n1 zone:za, 10.50.2.11 @n2 zone:za, 10.50.3.11 @n3 zone:zb";
    const AWAY: &str = "10.50.2.11 @n2 zone:za, 10.50.3.11 @n3 zone:zb";
    const FAR: &str = "10.50.3.11 @n3 zone:zb";
    let (host, zone, region) =
        ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region");
    let table: [(&[&str], &str, &str); 9] = [
        (&[], ALL, "10.50.1.11:8080 10.50.2.11:8080 10.50.3.11:8080"),
        (&[host], ALL, "10.50.1.11:8080"),
        (&[host], AWAY, "reject"),
        (&[host, zone], AWAY, "10.50.2.11:8080"),
        (&[zone, "*"], FAR, "10.50.3.11:8080"),
        (&[host, region], AWAY, "10.50.2.11:8080"),
        (&[host, zone, region], FAR, "reject"),
        (&["rack"], ALL, "reject"),
        (&[zone], "10.50.2.11 @n2 zone:za leaving, 10.50.3.11 @n3 zone:zb leaving", "10.50.2.11:8080"),
    ];
    for (given, endpoints, expected) in table {
        keys(given, endpoints).check(&[("pod 10.96.0.1:80", expected)]);
    }
}

#[test]
fn row_32_topology_keys_count_only_with_the_gate_and_instead_of_hints() {
    let endpoints = "10.50.1.11 @n1 zone:za hz:zb, 10.50.2.11 @n2 zone:zb hz:za";
    keys(&["topology.kubernetes.io/zone"], endpoints).check(&[("pod 10.96.0.1:80", "10.50.1.11:8080")]);
    web(json!({"topologyKeys": ["topology.kubernetes.io/zone"]}), endpoints)
        .check(&[("pod 10.96.0.1:80", "10.50.2.11:8080")]);
}

#[test]
fn row_32_labels_of_nodes_that_change_are_followed() {
    let mut lab = keys(&["rack", "*"], "10.50.2.11 @n2, 10.50.3.11 @n3");
    let rack = |rack: &str| BTreeMap::from([("rack".to_owned(), rack.to_owned())]);
    let mut here = lab.plan().node().clone();
    here.labels.extend(rack("a"));
    lab.planner.apply([Change::Node(Box::new(here))]);
    lab.check(&[("pod 10.96.0.1:80", "10.50.2.11:8080 10.50.3.11:8080")]);
    lab.planner.apply([Change::Labels("n3".to_owned(), Some(rack("a")))]);
    lab.check(&[("pod 10.96.0.1:80", "10.50.3.11:8080")]);
    lab.planner.apply([Change::Labels("n3".to_owned(), None)]);
    lab.check(&[("pod 10.96.0.1:80", "10.50.2.11:8080 10.50.3.11:8080")]);
}

#[test]
fn row_112_weights_are_for_a_slice_or_an_address_and_0_takes_no_new_connections() {
    let weighted = |weight: &str, endpoints: &[&str]| {
        let mut lab = web(json!({}), "");
        let endpoints: Vec<_> = endpoints.iter().map(|ip| json!({"addresses": [ip]})).collect();
        let object = json!({"endpoints": endpoints, "annotations": {"fairlead.dev/weight": weight}});
        lab.planner.apply([slice_object("web-1", "web", object)]);
        lab
    };
    let two = ["10.50.1.11", "10.50.2.11"];
    let table = [
        ("3", "10.50.1.11:8080*3 10.50.2.11:8080*3"),
        ("10.50.1.11=5", "10.50.1.11:8080*5 10.50.2.11:8080"),
        ("2, 10.50.1.11=0", "10.50.2.11:8080*2"),
        ("0", "reject"),
        ("101,-1,x,10.50.1.11=y", "10.50.1.11:8080 10.50.2.11:8080"),
        ("", "10.50.1.11:8080 10.50.2.11:8080"),
    ];
    for (weight, expected) in table {
        weighted(weight, &two).check(&[("pod 10.96.0.1:80", expected)]);
    }
    assert_eq!(weighted("101,-1,x", &two).plan().notes(&fairlead_api::source::Key::new("default", "web")).len(), 3);
}

#[test]
fn endpoints_come_from_all_slices_and_from_none_twice() {
    let mut lab = web(json!({}), "10.50.1.11 leaving, 10.50.2.11");
    lab.planner.apply([slice("web-2", "web", "10.50.1.11, 10.50.3.11"), slice("other-1", "other", "10.50.4.11")]);
    lab.check(&[("pod 10.96.0.1:80", "10.50.1.11:8080 10.50.2.11:8080 10.50.3.11:8080")]);
    lab.planner.apply([slice("web-2", "other", "10.50.1.11, 10.50.3.11")]);
    lab.check(&[("pod 10.96.0.1:80", "10.50.2.11:8080")]);
}

#[test]
fn ports_are_matched_by_name_and_protocol() {
    let mut lab = web(json!({"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}, {"port": 82}]}), "");
    let ports = json!([{"name": "a", "port": 8080}, {"name": "b", "port": 8081, "protocol": "UDP"}, {"port": 8082}, {"name": "c"}]);
    lab.planner.apply([slice_object(
        "web-1",
        "web",
        json!({"endpoints": [{"addresses": ["10.50.1.11"]}], "ports": ports}),
    )]);
    lab.check(&[
        ("pod 10.96.0.1:80", "10.50.1.11:8080"),
        ("pod 10.96.0.1:81", "reject"),
        ("pod 10.96.0.1:82", "10.50.1.11:8082"),
    ]);
}

#[test]
fn slices_may_come_before_their_service_and_stay_after_it() {
    let mut lab = web(json!({"clusterIP": "10.96.0.9"}), "");
    lab.slice("late-1", "late", "10.50.1.11");
    lab.check(&[("pod 10.96.0.1:80", "drop")]);
    lab.service("late", json!({}));
    lab.check(&[("pod 10.96.0.1:80", "10.50.1.11:8080")]);
    lab.planner.apply([Change::Service(fairlead_api::source::Key::new("default", "late"), None)]);
    lab.check(&[("pod 10.96.0.1:80", "drop")]);
    lab.service("late", json!({}));
    lab.check(&[("pod 10.96.0.1:80", "10.50.1.11:8080")]);
}

#[test]
fn addresses_that_cannot_be_endpoints_are_left_out() {
    cluster("127.0.0.1, 0.0.0.0, 224.0.0.1, nonsense, 10.50.1.11", "10.50.1.11:8080");
    let mut lab = web(json!({}), "");
    lab.planner.apply([slice_object(
        "web-1",
        "web",
        json!({"addressType": "IPv4", "endpoints": [{"addresses": ["fd50::1"]}]}),
    )]);
    lab.check(&[("pod 10.96.0.1:80", "reject")]);
    lab.planner.apply([slice_object(
        "web-1",
        "web",
        json!({"addressType": "FQDN", "endpoints": [{"addresses": ["a.b"]}]}),
    )]);
    lab.check(&[("pod 10.96.0.1:80", "reject")]);
}
