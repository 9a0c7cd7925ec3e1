//! What is left out or falls back says why.

use fairlead_api::source::Key;
use fairlead_plan::Node;
use serde_json::{Value, json};

use crate::lab::{Lab, lab, node, web};

fn check(lab: &Lab, expected: &[&str]) {
    let notes: Vec<String> = lab.plan().notes(&Key::new("default", "web")).iter().map(ToString::to_string).collect();
    assert_eq!(notes, expected);
}

fn port(text: &str) -> String {
    format!("port default/web:http/TCP/IPv4: {text}")
}

#[test]
fn a_service_that_is_passed_over_says_why() {
    let table: [(Value, &str); 5] = [
        (json!({"type": "ExternalName"}), "Service: it is of type ExternalName: there is nothing to proxy"),
        (json!({"clusterIP": "None"}), "Service: it is headless (clusterIP None): there is nothing to proxy"),
        (json!({"clusterIP": ""}), "Service: it has no cluster IP"),
        (
            json!({"labels": {"service.kubernetes.io/service-proxy-name": "mine"}}),
            "Service: its label service.kubernetes.io/service-proxy-name gives it to \"mine\"",
        ),
        (
            json!({"labels": {"service.kubernetes.io/headless": ""}}),
            "Service: it has the label service.kubernetes.io/headless",
        ),
    ];
    for (spec, expected) in table {
        check(&web(spec, "10.50.1.11"), &[expected]);
    }
}

#[test]
fn a_service_that_works_has_nothing_to_say() {
    check(&web(json!({}), "10.50.1.11 @n1, 10.50.2.11 @n2"), &[]);
    check(&web(json!({"internalTrafficPolicy": "Local"}), "10.50.1.11 @n1"), &[]);
}

#[test]
fn addresses_that_are_not_served_are_told() {
    let spec = json!({
        "externalIPs": ["nonsense", "fd00::7"], "loadBalancerSourceRanges": ["10/8"],
        "loadBalancer": {"ingress": [{"ip": "203.0.113.1", "ipMode": "Proxy"}]},
        "ports": [{"name": "http", "port": 80}, {"name": "bad", "port": 70000}],
    });
    check(
        &web(spec, "10.50.1.11"),
        &[
            "Service: fd00::7 is not served: the Service has no IPv6 cluster IP",
            "Service: \"nonsense\" in externalIPs is not an IP address",
            "Service: \"10/8\" in loadBalancerSourceRanges is not a range of addresses",
            "Service: port 70000 is not a port number",
            "Service: traffic to 203.0.113.1 is left to the load balancer (ipMode Proxy)",
        ],
    );
}

#[test]
fn missing_endpoints_are_told() {
    let none = |known: usize| port(&format!("it has no usable endpoint: {known} known, 0 of them with weight 0"));
    check(&web(json!({}), ""), &[&none(0)]);
    check(&web(json!({}), "10.50.1.11 unready, 10.50.2.11 gone"), &[&none(2)]);
    let both =
        json!({"internalTrafficPolicy": "Local", "externalTrafficPolicy": "Local", "externalIPs": ["192.0.2.7"]});
    check(
        &web(both, "10.50.2.11 @n2"),
        &[
            &port("internal traffic policy is Local and no usable endpoint is on this Node"),
            &port("external traffic policy is Local and no usable endpoint is on this Node"),
        ],
    );
}

#[test]
fn fallbacks_of_the_choice_are_told() {
    let table = [
        ("10.50.1.11 leaving", "no endpoint is ready: 1 that are on their way out but still serve are used"),
        ("10.50.1.11 hz:za, 10.50.2.11", "hints for zones are ignored: 1 of 2 ready endpoints have none"),
        ("10.50.1.11 hz:zb", "hints for zones are ignored: none names \"za\""),
        ("10.50.1.11 hn:n2", "hints for Nodes are ignored: none names \"n1\""),
        ("10.50.1.11 hn:n1, 10.50.2.11 hn:n2", "hints for Nodes are followed: 1 of 2 ready endpoints are for \"n1\""),
    ];
    for (endpoints, expected) in table {
        check(&web(json!({}), endpoints), &[&port(expected)]);
    }
    let nowhere = Node { labels: Default::default(), ..node() };
    let told = port("hints for zones are ignored: this Node has no label topology.kubernetes.io/zone");
    check(&lab(nowhere, json!({}), "10.50.1.11 hz:za"), &[&told]);
    let local = web(json!({"internalTrafficPolicy": "Local"}), "10.50.1.11 @n1 leaving, 10.50.2.11 @n2");
    check(&local, &[&port("no endpoint on this Node is ready: 1 that are on their way out but still serve are used")]);
}

#[test]
fn topology_keys_are_told() {
    let gate = Node { topology_keys: true, ..node() };
    let spec = json!({"topologyKeys": ["kubernetes.io/hostname"]});
    let follow = |endpoints| lab(gate.clone(), spec.clone(), endpoints);
    check(
        &follow("10.50.1.11 @n1, 10.50.2.11 @n2"),
        &[&port("topologyKeys: 1 of 2 endpoints match \"kubernetes.io/hostname\"")],
    );
    check(
        &follow("10.50.2.11 @n2"),
        &[&port("topologyKeys: none of 1 endpoints matches any of [\"kubernetes.io/hostname\"]")],
    );
    check(&web(spec, "10.50.1.11"), &["Service: topologyKeys are ignored: the gate ServiceTopology is off"]);
}

#[test]
fn parts_of_slices_that_cannot_be_used_are_told() {
    let lab = web(json!({}), "10.50.1.11, nonsense, 127.0.0.1");
    check(
        &lab,
        &[
            "EndpointSlice web-1: \"127.0.0.1\" cannot be an endpoint of this slice",
            "EndpointSlice web-1: \"nonsense\" cannot be an endpoint of this slice",
        ],
    );
}
