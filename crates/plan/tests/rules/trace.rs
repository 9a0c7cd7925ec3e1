//! Decisions say why, and flows that lead nowhere are found.

use fairlead_api::view::Protocol;
use fairlead_plan::{Flow, Judgement, judge};
use serde_json::json;

use crate::lab::{Lab, ip, read_packet, web};

fn check(lab: &Lab, packet: &str, expected: &[&str]) {
    let steps: Vec<String> = lab.decide(packet).steps.iter().map(ToString::to_string).collect();
    assert_eq!(steps, expected, "{packet}");
}

#[test]
fn a_decision_tells_its_way() {
    let spec = json!({
        "type": "LoadBalancer", "externalTrafficPolicy": "Local", "loadBalancerSourceRanges": ["10.0.0.0/8"],
        "loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}, "sessionAffinity": "ClientIP", "healthCheckNodePort": 32000,
    });
    let lab = web(spec, "10.50.1.11 @n1, 10.50.2.11 @n2 leaving");
    let found = "203.0.113.1:80/TCP is a load balancer IP of default/web:http/TCP/IPv4";
    check(
        &lab,
        "10.50.1.11 203.0.113.1:80",
        &[
            "it comes from a Pod (10.50.1.11)",
            found,
            "the source is in loadBalancerSourceRanges (10.0.0.0/8)",
            "policy Local is for clients outside: all endpoints may serve it",
            "endpoints see the client's address",
            "10.50.1.11:8080 would be its own client: it sees the Node's address",
            "one of 1 endpoints, the same again within 10800 s",
        ],
    );
    check(
        &lab,
        "outside 203.0.113.1:80",
        &["it comes from outside (198.51.100.10)", found, "the source is not in loadBalancerSourceRanges (10.0.0.0/8)"],
    );
    check(
        &lab,
        "node 10.96.0.1:80",
        &[
            "it comes from this Node (172.30.0.11)",
            "10.96.0.1:80/TCP is a cluster IP of default/web:http/TCP/IPv4",
            "policy Cluster",
            "endpoints see the Node's address: a cluster IP is used from this Node",
            "one of 1 endpoints, the same again within 10800 s",
        ],
    );
}

#[test]
fn a_refusal_tells_what_is_missing() {
    let lab = web(json!({"internalTrafficPolicy": "Local"}), "10.50.2.11 @n2");
    check(
        &lab,
        "pod 10.96.0.1:80",
        &[
            "it comes from a Pod (10.50.1.99)",
            "10.96.0.1:80/TCP is a cluster IP of default/web:http/TCP/IPv4",
            "internal traffic policy is Local and no usable endpoint is on this Node",
            "policy Local: other Nodes have endpoints, this one has none",
        ],
    );
    let no_service = |at: &str| format!("no Service is at {at}/TCP");
    let from = "it comes from a Pod (10.50.1.99)";
    check(
        &lab,
        "pod 10.96.0.1:81",
        &[from, &no_service("10.96.0.1:81"), "the address is a cluster IP, but has no such port"],
    );
    check(
        &lab,
        "pod 10.96.0.2:81",
        &[from, &no_service("10.96.0.2:81"), "the address is in a range for cluster IPs, but nobody has it"],
    );
}

#[test]
fn a_decision_ends_with_what_happens() {
    let lab = web(json!({"externalIPs": ["192.0.2.7"]}), "10.50.1.11 @n1, 10.50.2.11 @n2");
    let table = [
        ("10.50.1.11 10.96.0.1:80", "it goes to 10.50.1.11:8080 from this Node or 10.50.2.11:8080"),
        ("pod 10.96.0.1:81", "it is refused (TCP reset)"),
        ("pod 10.96.0.1:81/SCTP", "it is refused (ICMP port unreachable)"),
        ("pod 10.96.0.2:80", "it is dropped"),
        ("pod 192.0.2.8:80", "it goes its way"),
    ];
    for (packet, expected) in table {
        let text = lab.decide(packet).to_string();
        assert_eq!(text.lines().last(), Some(expected), "{text}");
        assert!(text.lines().count() > 1, "{text}");
    }
}

#[test]
fn row_101_flows_past_the_plan_are_found() {
    let spec = json!({
        "type": "NodePort", "externalIPs": ["192.0.2.7"], "internalTrafficPolicy": "Local",
        "ports": [{"name": "http", "port": 53, "protocol": "UDP", "nodePort": 30053}],
    });
    let lab = web(spec.clone(), "10.50.1.11 @n1, 10.50.2.11 @n2 leaving, 10.50.2.12 @n2 gone");
    let judged = |lab: &Lab, to: &str, backend: &str, backend_port| {
        let packet = read_packet(&format!("pod {to}/UDP"));
        let flow =
            Flow { protocol: Protocol::Udp, dst: packet.dst, port: packet.port, backend: ip(backend), backend_port };
        match judge(lab.plan(), &flow) {
            Judgement::NotOurs => "not ours",
            Judgement::Stays(_) => "stays",
            Judgement::Bypasses(_) => "bypasses",
            Judgement::EndpointGone(_) => "gone",
        }
    };
    for to in ["10.96.0.1:53", "192.0.2.7:53", "172.30.0.11:30053"] {
        assert_eq!(judged(&lab, to, "10.50.1.11", 8080), "stays");
        // Neither a policy nor the end of an endpoint cuts what is there.
        assert_eq!(judged(&lab, to, "10.50.2.11", 8080), "stays");
        assert_eq!(judged(&lab, to, "10.50.2.12", 8080), "gone");
        assert_eq!(judged(&lab, to, "10.50.1.11", 8081), "gone");
        assert_eq!(judged(&web(spec.clone(), ""), to, "10.50.1.11", 8080), "gone");
    }
    assert_eq!(judged(&lab, "192.0.2.7:53", "192.0.2.7", 53), "bypasses");
    assert_eq!(judged(&lab, "192.0.2.8:53", "10.50.1.11", 8080), "not ours");
    assert_eq!(judged(&lab, "192.0.2.8:30053", "192.0.2.8", 30053), "not ours");
}
