//! What packets may be addressed to, and whom endpoints see.

use fairlead_plan::{LocalDetection, Node, NodePortAddresses, RejectWith, Verdict};
use serde_json::json;

use crate::lab::{lab, node, web};

const TWO: &str = "10.50.1.11 @n1, 10.50.2.11 @n2";
const BOTH: &str = "10.50.1.11:8080 10.50.2.11:8080";
/// Both see the Node's address.
const BOTH_HIDDEN: &str = "10.50.1.11:8080! 10.50.2.11:8080!";

fn load_balancer(ingress: serde_json::Value) -> serde_json::Value {
    json!({"type": "LoadBalancer", "loadBalancer": {"ingress": ingress}})
}

#[test]
fn row_85_a_cluster_ip_is_reached_from_pods_and_from_the_node() {
    web(json!({}), TWO).check(&[
        ("pod 10.96.0.1:80", BOTH),
        ("otherpod 10.96.0.1:80", BOTH),
        ("node 10.96.0.1:80", BOTH_HIDDEN),
        ("pod 10.96.0.1:80/UDP", "reject"),
        ("pod 10.97.0.1:80", "-"),
    ]);
}

#[test]
fn row_86_node_ports_are_served_on_all_addresses_or_those_chosen() {
    let spec = json!({"type": "NodePort", "ports": [{"name": "http", "port": 80, "nodePort": 30080}]});
    let on = |node_port_addresses| lab(Node { node_port_addresses, ..node() }, spec.clone(), TWO);
    on(NodePortAddresses::Ranges(Vec::new())).check(&[
        ("outside 172.30.0.11:30080", BOTH_HIDDEN),
        ("outside 172.30.1.11:30080", BOTH_HIDDEN),
        ("pod 10.50.1.1:30080", BOTH_HIDDEN),
        ("node 127.0.0.1:30080", "-"),
        ("outside 172.30.0.12:30080", "-"),
        ("outside 172.30.0.11:30080/UDP", "-"),
        ("pod 10.96.0.1:30080", "reject"),
    ]);
    on(NodePortAddresses::Primary).check(&[
        ("outside 172.30.0.11:30080", BOTH_HIDDEN),
        ("outside 172.30.1.11:30080", "-"),
        ("pod 10.50.1.1:30080", "-"),
    ]);
    let range = |text: &str| text.parse().expect("a range");
    on(NodePortAddresses::Ranges(vec![range("172.30.1.0/24")]))
        .check(&[("outside 172.30.0.11:30080", "-"), ("outside 172.30.1.11:30080", BOTH_HIDDEN)]);
    on(NodePortAddresses::Ranges(vec![range("172.30.1.0/24"), range("0.0.0.0/0")]))
        .check(&[("outside 172.30.0.11:30080", BOTH_HIDDEN)]);
}

#[test]
fn row_87_localhost_node_ports_serve_the_node_and_nobody_else() {
    let spec = json!({"type": "NodePort", "ports": [{"name": "http", "port": 80, "nodePort": 30080}]});
    let localhost = |addresses: &[&str]| {
        let ranges = addresses.iter().map(|range| range.parse().expect("a range")).collect();
        let node =
            Node { localhost_node_ports: true, node_port_addresses: NodePortAddresses::Ranges(ranges), ..node() };
        lab(node, spec.clone(), TWO)
    };
    localhost(&[]).check(&[
        ("node 127.0.0.1:30080", BOTH_HIDDEN),
        ("node 127.1.2.3:30080", BOTH_HIDDEN),
        ("outside 127.0.0.1:30080", "drop"),
        ("pod 127.0.0.1:8080", "drop"),
        ("node [::1]:30080", "-"),
    ]);
    localhost(&["127.0.0.0/8"]).check(&[
        ("node 127.0.0.1:30080", BOTH_HIDDEN),
        ("outside 172.30.0.11:30080", "-"),
        ("outside 127.0.0.1:30080", "drop"),
    ]);
    localhost(&["172.30.0.0/24"]).check(&[("node 127.0.0.1:30080", "-"), ("outside 127.0.0.1:30080", "-")]);
}

#[test]
fn row_88_external_ips_are_captured_on_the_port_of_the_service() {
    web(json!({"externalIPs": ["192.0.2.7", "192.0.2.8", "not an address"]}), TWO).check(&[
        ("outside 192.0.2.7:80", BOTH_HIDDEN),
        ("pod 192.0.2.8:80", BOTH_HIDDEN),
        ("outside 192.0.2.7:8080", "-"),
        ("outside 192.0.2.9:80", "-"),
    ]);
}

#[test]
fn row_89_a_load_balancer_ip_is_captured_unless_the_load_balancer_wants_the_traffic() {
    let ingress = json!([
        {"ip": "203.0.113.1"}, {"ip": "203.0.113.2", "ipMode": "VIP"}, {"ip": "203.0.113.3", "ipMode": "Proxy"},
        {"hostname": "lb.example"},
    ]);
    web(load_balancer(ingress), TWO).check(&[
        ("pod 203.0.113.1:80", BOTH_HIDDEN),
        ("outside 203.0.113.2:80", BOTH_HIDDEN),
        ("pod 203.0.113.3:80", "-"),
    ]);
}

#[test]
fn row_90_source_ranges_guard_load_balancer_ips_and_nothing_else() {
    let guarded = |ranges: &[&str]| {
        let mut spec = load_balancer(json!([{"ip": "203.0.113.1"}]));
        spec["loadBalancerSourceRanges"] = json!(ranges);
        spec["externalIPs"] = json!(["192.0.2.7"]);
        spec["ports"] = json!([{"name": "http", "port": 80, "nodePort": 30080}]);
        web(spec, TWO)
    };
    guarded(&[" 198.51.100.0/25 "]).check(&[
        ("outside 203.0.113.1:80", BOTH_HIDDEN),
        ("198.51.100.200 203.0.113.1:80", "drop"),
        ("pod 203.0.113.1:80", "drop"),
        ("node 203.0.113.1:80", "drop"),
        ("198.51.100.200 192.0.2.7:80", BOTH_HIDDEN),
        ("198.51.100.200 172.30.0.11:30080", BOTH_HIDDEN),
        ("198.51.100.200 10.96.0.1:80", BOTH_HIDDEN),
    ]);
    // Where the Node may, it may also with the load balancer's own address, which some put on the Node.
    guarded(&["172.30.0.0/24"]).check(&[
        ("node 203.0.113.1:80", BOTH_HIDDEN),
        ("203.0.113.1 203.0.113.1:80", BOTH_HIDDEN),
        ("outside 203.0.113.1:80", "drop"),
    ]);
    guarded(&["198.51.100.0/25", "0.0.0.0/0"]).check(&[("198.51.100.200 203.0.113.1:80", BOTH_HIDDEN)]);
    // Ranges of the other family say nothing of this one.
    guarded(&["fd00::/8"]).check(&[("198.51.100.200 203.0.113.1:80", BOTH_HIDDEN)]);
}

#[test]
fn row_90_source_ranges_come_before_the_refusal_of_a_service_without_endpoints() {
    let mut spec = load_balancer(json!([{"ip": "203.0.113.1"}]));
    spec["loadBalancerSourceRanges"] = json!(["198.51.100.0/25"]);
    web(spec, "").check(&[("outside 203.0.113.1:80", "reject"), ("198.51.100.200 203.0.113.1:80", "drop")]);
}

#[test]
fn row_97_a_service_without_endpoints_refuses() {
    let spec = json!({
        "type": "LoadBalancer", "externalIPs": ["192.0.2.7"], "loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]},
        "ports": [{"name": "http", "port": 80, "nodePort": 30080}, {"name": "http", "port": 80, "protocol": "UDP"}],
    });
    let lab = web(spec, "10.50.1.11 @n1 unready, 10.50.2.11 @n2 gone");
    let to = ["10.96.0.1:80", "192.0.2.7:80", "203.0.113.1:80", "172.30.0.11:30080"];
    for (who, to) in ["pod", "otherpod", "node", "outside"].into_iter().flat_map(|who| to.map(|to| (who, to))) {
        lab.check(&[(&format!("{who} {to}"), "reject")]);
    }
    let reject = |packet| lab.decide(packet).verdict;
    assert_eq!(reject("pod 10.96.0.1:80"), Verdict::Reject(RejectWith::TcpReset));
    assert_eq!(reject("pod 10.96.0.1:80/UDP"), Verdict::Reject(RejectWith::PortUnreachable));
}

#[test]
fn row_98_unknown_ports_of_cluster_ips_are_refused_and_unallocated_cluster_ips_dropped() {
    web(json!({}), TWO).check(&[("pod 10.96.0.1:81", "reject"), ("pod 10.96.0.2:80", "drop")]);
    let open = Node { guard_cluster_ips: false, ..node() };
    lab(open, json!({}), TWO).check(&[("pod 10.96.0.1:81", "-"), ("pod 10.96.0.2:80", "-")]);
}

#[test]
fn row_99_sources_are_hidden_where_answers_would_not_come_back() {
    let with = |change: fn(&mut Node)| {
        let mut node = node();
        change(&mut node);
        lab(node, json!({"externalIPs": ["192.0.2.7"], "externalTrafficPolicy": "Local"}), TWO)
    };
    let local = "10.50.1.11:8080";
    with(|_| {}).check(&[
        ("outside 10.96.0.1:80", BOTH_HIDDEN),
        ("pod 10.96.0.1:80", BOTH),
        ("outside 192.0.2.7:80", local),
    ]);
    with(|node| node.masquerade_all = true)
        .check(&[("pod 10.96.0.1:80", BOTH_HIDDEN), ("outside 192.0.2.7:80", local)]);
    // Nobody is known to be a Pod, so nobody is known not to be one.
    with(|node| node.detection = LocalDetection::None).check(&[
        ("outside 10.96.0.1:80", BOTH),
        ("pod 10.96.0.1:80", BOTH),
        ("pod 192.0.2.7:80", local),
        ("node 192.0.2.7:80", BOTH_HIDDEN),
    ]);
    with(|node| node.detection = LocalDetection::Bridge("cni0".to_owned())).check(&[
        ("pod 10.96.0.1:80", BOTH),
        ("otherpod 10.96.0.1:80", BOTH_HIDDEN),
        ("node 10.96.0.1:80", BOTH_HIDDEN),
        ("otherpod 192.0.2.7:80", local),
    ]);
    with(|node| node.detection = LocalDetection::InterfacePrefix("cn".to_owned()))
        .check(&[("pod 10.96.0.1:80", BOTH), ("outside 10.96.0.1:80", BOTH_HIDDEN)]);
    // A family without a range is not detected.
    with(|node| node.detection = LocalDetection::Ranges(vec!["fd50::/48".parse().expect("a range")]))
        .check(&[("outside 10.96.0.1:80", BOTH)]);
}

#[test]
fn row_100_a_pod_that_reaches_itself_sees_the_node() {
    let hairpin = "10.50.1.11:8080! 10.50.2.11:8080";
    web(json!({}), TWO).check(&[("10.50.1.11 10.96.0.1:80", hairpin), ("10.50.2.11 10.96.0.1:80", BOTH)]);
    web(json!({"externalIPs": ["192.0.2.7"], "externalTrafficPolicy": "Local"}), TWO)
        .check(&[("10.50.1.11 192.0.2.7:80", hairpin)]);
}

#[test]
fn row_100_a_process_of_the_node_sees_the_client_whatever_is_masqueraded() {
    let spec = json!({"type": "NodePort", "ports": [{"name": "http", "port": 80, "nodePort": 30080}]});
    web(spec, "172.30.0.11 @n1, 172.30.0.12 @n2").check(&[
        ("outside 172.30.0.11:30080", "172.30.0.11:8080 172.30.0.12:8080!"),
        ("node 172.30.0.11:30080", "172.30.0.11:8080! 172.30.0.12:8080!"),
    ]);
}

#[test]
fn row_105_services_of_others_and_without_addresses_are_passed_over() {
    let label = |name: &str| json!({"labels": {name: ""}});
    for spec in [
        label("service.kubernetes.io/service-proxy-name"),
        label("service.kubernetes.io/headless"),
        json!({"type": "ExternalName"}),
        json!({"clusterIP": ""}),
    ] {
        web(spec, TWO).check(&[("pod 10.96.0.1:80", "drop")]);
    }
    let headless = web(json!({"clusterIP": "None", "externalIPs": ["192.0.2.7"]}), TWO);
    headless.check(&[("pod 192.0.2.7:80", "-")]);
}

#[test]
fn row_106_each_family_has_its_own_endpoints() {
    let spec = json!({
        "type": "NodePort", "clusterIPs": ["10.96.0.1", "fd00:96::1"], "externalIPs": ["192.0.2.7", "fd00:7::7"],
        "ports": [{"name": "http", "port": 80, "nodePort": 30080}],
    });
    let mut lab = web(spec.clone(), TWO);
    lab.slice("web-2", "web", "fd50:0:0:1::b @n1");
    lab.check(&[
        ("pod 10.96.0.1:80", BOTH),
        ("pod [fd00:96::1]:80", "[fd50:0:0:1::b]:8080"),
        ("outside [fd00:7::7]:80", "[fd50:0:0:1::b]:8080!"),
        ("outside [fd30::11]:30080", "[fd50:0:0:1::b]:8080!"),
        ("outside 172.30.0.11:30080", BOTH_HIDDEN),
    ]);
    let only_v4 = Node { families: [fairlead_api::view::Family::V4].into(), ..node() };
    let mut lab = crate::lab::lab(only_v4, spec, TWO);
    lab.slice("web-2", "web", "fd50:0:0:1::b @n1");
    lab.check(&[("pod 10.96.0.1:80", BOTH), ("pod [fd00:96::1]:80", "-")]);
    // Addresses of a family in which a Service has no cluster IP are not served.
    web(json!({"externalIPs": ["fd00:7::7"]}), TWO).check(&[("outside [fd00:7::7]:80", "-")]);
}

#[test]
fn an_address_several_ask_for_goes_to_the_cluster_ip_then_to_the_older_and_back() {
    let mut lab = web(json!({"creationTimestamp": "2026-02-01T00:00:00Z", "externalIPs": ["192.0.2.7"]}), "10.50.1.11");
    lab.slice("old-1", "old", "10.50.1.12");
    let old = json!({
        "creationTimestamp": "2026-01-01T00:00:00Z", "clusterIP": "10.96.0.2", "externalIPs": ["192.0.2.7", "10.96.0.1"],
    });
    lab.check(&[("pod 192.0.2.7:80", "10.50.1.11:8080!")]);
    let change = lab.service("old", old);
    assert_eq!((change.frontends.len(), change.contested.len()), (2, 2), "{change:?}");
    lab.check(&[("pod 192.0.2.7:80", "10.50.1.12:8080!"), ("pod 10.96.0.1:80", "10.50.1.11:8080")]);
    assert_eq!(lab.plan().all_contested().count(), 2);
    lab.service("old", json!({"clusterIP": "10.96.0.2"}));
    lab.check(&[("pod 192.0.2.7:80", "10.50.1.11:8080!")]);
    assert_eq!(lab.plan().all_contested().count(), 0);
}
