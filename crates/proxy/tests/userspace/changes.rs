//! What happens when the plan changes, and when somebody else changes the rules.

use std::io::{ErrorKind, Read, Write};

use fairlead_api::source::Key;
use fairlead_plan::{Change, Node};
use fairlead_proxy::Dataplane;
use fairlead_proxy::userspace;
use serde_json::json;

use crate::lab::{ENDPOINTS, Lab, VIP, connect, lab, run, serve, who};

fn drift(lab: &mut Lab) -> Option<String> {
    let (mode, plan) = (&mut lab.mode, lab.planner.plan());
    lab.node.run(|| mode.drift(plan)).unwrap().unwrap()
}

fn portals(lab: &Lab) -> usize {
    run(&lab.node, "ss", "-Htuln").lines().count()
}

#[test]
fn connections_outlive_their_endpoint_and_their_service() {
    let Some(mut lab) = lab("connections_outlive_their_endpoint_and_their_service") else { return };
    serve(&lab, &ENDPOINTS);
    lab.web(json!({}), &ENDPOINTS);
    let mut stream = lab.connect(VIP);
    let mut heard = [0; 1];
    stream.read_exact(&mut heard).unwrap();
    lab.endpoints(&[12]);
    assert_eq!(lab.who(VIP, 2), [12, 12]);
    lab.change([Change::Service(Key::new("default", "web"), None)]);
    stream.write_all(b"!").unwrap();
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(heard, *b"!");
}

#[test]
fn portals_come_and_go_with_their_pools() {
    let Some(mut lab) = lab("portals_come_and_go_with_their_pools") else { return };
    serve(&lab, &ENDPOINTS);
    assert_eq!(portals(&lab), 0);
    lab.web(json!({}), &ENDPOINTS);
    assert_eq!(portals(&lab), 4);
    lab.endpoints(&[11]);
    assert_eq!(portals(&lab), 4);
    lab.endpoints(&[]);
    lab.wait("portals close", |_| portals(&lab) == 0);
    assert_eq!(connect(&lab.client, VIP).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    lab.endpoints(&[13]);
    assert_eq!(lab.who(VIP, 1), [13]);
}

#[test]
fn a_policy_has_portals_of_its_own() {
    let Some(mut lab) = lab("a_policy_has_portals_of_its_own") else { return };
    serve(&lab, &ENDPOINTS);
    lab.web(json!({"externalTrafficPolicy": "Local"}), &[11]);
    assert_eq!(portals(&lab), 8);
    assert_eq!(who(connect(&lab.outside, "172.30.0.11:30080").unwrap()), 11);
    assert_eq!(lab.who(VIP, 1), [11]);
}

#[test]
fn what_somebody_removes_is_noticed_and_loaded_again() {
    let Some(mut lab) = lab("what_somebody_removes_is_noticed_and_loaded_again") else { return };
    if !fairlead_testkit::need("what_somebody_removes_is_noticed_and_loaded_again", "nft") {
        return;
    }
    serve(&lab, &[11]);
    lab.web(json!({}), &[11]);
    assert_eq!(drift(&mut lab), None);
    let mut stream = lab.connect(VIP);
    let mut heard = [0];
    stream.read_exact(&mut heard).unwrap();
    run(&lab.node, "nft", "flush ruleset");
    assert!(drift(&mut lab).is_some());
    lab.load();
    assert_eq!(drift(&mut lab), None);
    assert_eq!(lab.who(VIP, 1), [11]);
    stream.write_all(b"!").unwrap();
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(heard, *b"!");
}

#[test]
fn the_node_may_get_another_address() {
    let Some(mut lab) = lab("the_node_may_get_another_address") else { return };
    serve(&lab, &[11]);
    lab.web(json!({}), &[11]);
    crate::lab::ip(&lab.node, "address add 172.30.0.12/24 dev eth0");
    let mut node: Node = lab.planner.plan().node().clone();
    let new = "172.30.0.12".parse().unwrap();
    node.ips[0] = new;
    node.addresses.insert(new);
    lab.change([Change::Node(Box::new(node))]);
    assert_eq!(lab.who(VIP, 1), [11]);
    lab.wait("old portals close", |_| !run(&lab.node, "ss", "-Htuln").contains("172.30.0.11:"));
}

#[test]
fn a_service_may_take_the_place_of_a_portal() {
    let Some(mut lab) = lab("a_service_may_take_the_place_of_a_portal") else { return };
    serve(&lab, &[11]);
    lab.web(json!({}), &[11]);
    let found = run(&lab.node, "ss", "-Htln4");
    let at = found.split_whitespace().nth(3).unwrap().to_owned();
    let port: u16 = at.rsplit(':').next().unwrap().parse().unwrap();
    lab.web(json!({"ports": [{"name": "http", "port": 80, "nodePort": port}]}), &[11]);
    assert_eq!(who(connect(&lab.outside, &at).unwrap()), 11);
    assert_eq!(lab.who(VIP, 1), [11]);
}

#[test]
fn sctp_is_refused_and_the_rest_is_served() {
    let Some(mut lab) = lab("sctp_is_refused_and_the_rest_is_served") else { return };
    serve(&lab, &[11]);
    let ports = json!([{"name": "http", "port": 80}, {"name": "assoc", "port": 99, "protocol": "SCTP"}]);
    lab.web(json!({"ports": ports}), &[11]);
    assert_eq!(lab.who(VIP, 1), [11]);
    assert_eq!(portals(&lab), 2);
}

#[test]
fn nothing_is_left_when_it_is_removed() {
    let Some(mut lab) = lab("nothing_is_left_when_it_is_removed") else { return };
    if !fairlead_testkit::need("nothing_is_left_when_it_is_removed", "nft") {
        return;
    }
    serve(&lab, &[11]);
    lab.web(json!({}), &[11]);
    let removed = lab.node.run(userspace::remove).unwrap().unwrap();
    assert_eq!(removed.len(), 2, "{removed:?}");
    assert_eq!(run(&lab.node, "nft", "list ruleset"), "");
    drop(lab.mode);
    assert_eq!(run(&lab.node, "ss", "-Htuln"), "");
}
