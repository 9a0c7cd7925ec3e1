//! Node `n1` of a small cluster, written in few words.
//!
//! Endpoints: `10.50.1.11 @n1 leaving zone:za hz:za hn:n1`, several with commas. Packets: `pod 10.96.0.1:80/UDP`, from `pod`,
//! `otherpod`, `node` or `outside`, or from an address. Verdicts: `reject`, `drop`, `-` (not ours), or endpoints in order,
//! each with `!` when it sees the Node's address and `*3` when its weight is not 1.

use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::Protocol;
use fairlead_plan::{
    Candidate, Change, Decision, Ingress, LocalDetection, Node, NodePortAddresses, Packet, Plan, PlanChange, Planner,
    Verdict, decide,
};
use serde_json::{Value, json};

/// The addresses of the Node.
pub(crate) const ADDRESSES: [&str; 6] = ["172.30.0.11", "172.30.1.11", "10.50.1.1", "127.0.0.1", "fd30::11", "::1"];

pub(crate) struct Lab {
    pub(crate) planner: Planner,
}

/// Node `n1`, Pods known by the range of the cluster, cluster IPs guarded.
pub(crate) fn node() -> Node {
    let range = |text: &str| text.parse().expect("a range");
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    Node {
        name: "n1".to_owned(),
        labels: [label("kubernetes.io/hostname", "n1"), label("topology.kubernetes.io/zone", "za")].into(),
        ips: vec![ip("172.30.0.11"), ip("fd30::11")],
        addresses: ADDRESSES.map(ip).into(),
        pod_ranges: vec![range("10.50.1.0/24"), range("fd50:0:0:1::/64")],
        detection: LocalDetection::Ranges(vec![range("10.50.0.0/16"), range("fd50::/48")]),
        node_port_addresses: NodePortAddresses::Ranges(Vec::new()),
        service_ranges: vec![range("10.96.0.0/16")],
        guard_cluster_ips: true,
        ..Node::default()
    }
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A Service `default/web` with one port `http`, 80 to the outside, and endpoints on port 8080.
pub(crate) fn web(spec: Value, endpoints: &str) -> Lab {
    lab(node(), spec, endpoints)
}

pub(crate) fn lab(node: Node, spec: Value, endpoints: &str) -> Lab {
    let mut lab = Lab { planner: Planner::new(node) };
    lab.service("web", spec);
    lab.slice("web-1", "web", endpoints);
    lab
}

/// A change that makes or replaces a Service. What is not said of its spec is one cluster IP, 10.96.0.1, with one port.
pub(crate) fn service(name: &str, object: Value) -> Change {
    let mut spec = json!({"clusterIP": "10.96.0.1", "ports": [{"name": "http", "port": 80}]});
    let (mut metadata, mut status) = (json!({"name": name, "namespace": "default"}), json!({}));
    for (field, value) in object.as_object().expect("fields") {
        let target = match field.as_str() {
            "labels" | "creationTimestamp" => &mut metadata,
            "loadBalancer" => &mut status,
            _ => &mut spec,
        };
        target[field] = value.clone();
    }
    let object = serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status}));
    Change::Service(Key::new("default", name), Some(Arc::new(object.expect("a Service"))))
}

/// A change that makes or replaces an EndpointSlice with the port `http`, 8080.
pub(crate) fn slice(name: &str, of: &str, endpoints: &str) -> Change {
    let all: Vec<Value> = endpoints.split(',').filter(|text| !text.trim().is_empty()).map(endpoint).collect();
    let family = if endpoints.contains(':') && all[0]["addresses"][0].as_str().is_some_and(|text| text.contains(':')) {
        "IPv6"
    } else {
        "IPv4"
    };
    slice_object(name, of, json!({"addressType": family, "endpoints": all}))
}

/// Likewise, with more said.
pub(crate) fn slice_object(name: &str, of: &str, mut object: Value) -> Change {
    let labels = json!({"kubernetes.io/service-name": of});
    let metadata =
        json!({"name": name, "namespace": "default", "labels": labels, "annotations": object["annotations"]});
    object["metadata"] = metadata;
    if object["ports"].is_null() {
        object["ports"] = json!([{"name": "http", "port": 8080}, {"name": "http", "port": 8080, "protocol": "UDP"}]);
    }
    Change::Slice(Key::new("default", name), Some(Arc::new(serde_json::from_value(object).expect("a slice"))))
}

fn endpoint(text: &str) -> Value {
    let mut words = text.split_whitespace();
    let mut endpoint = json!({"addresses": [words.next().expect("an address")]});
    for word in words {
        match word.split_once([':', '@']).unwrap_or((word, "")) {
            ("", node) => endpoint["nodeName"] = json!(node),
            ("leaving", _) => endpoint["conditions"] = json!({"ready": false, "serving": true, "terminating": true}),
            ("gone", _) => endpoint["conditions"] = json!({"ready": false, "serving": false, "terminating": true}),
            ("serving", _) => endpoint["conditions"] = json!({"ready": false, "serving": true}),
            ("unready", _) => endpoint["conditions"] = json!({"ready": false, "serving": false}),
            ("zone", zone) => endpoint["zone"] = json!(zone),
            ("hz", zone) => endpoint["hints"]["forZones"] = json!([{"name": zone}]),
            ("hn", node) => endpoint["hints"]["forNodes"] = json!([{"name": node}]),
            other => panic!("what is {other:?}?"),
        }
    }
    endpoint
}

impl Lab {
    pub(crate) fn plan(&self) -> &Plan {
        self.planner.plan()
    }

    pub(crate) fn service(&mut self, name: &str, spec: Value) -> PlanChange {
        self.planner.apply([service(name, spec)])
    }

    pub(crate) fn slice(&mut self, name: &str, of: &str, endpoints: &str) -> PlanChange {
        self.planner.apply([slice(name, of, endpoints)])
    }

    pub(crate) fn decide(&self, packet: &str) -> Decision {
        decide(self.plan(), &read_packet(packet))
    }

    /// Checks packets against verdicts.
    pub(crate) fn check(&self, table: &[(&str, &str)]) {
        for (packet, expected) in table {
            let decision = self.decide(packet);
            let steps: Vec<String> = decision.steps.iter().map(ToString::to_string).collect();
            assert_eq!(words(&decision.verdict), *expected, "{packet}\n{}", steps.join("\n"));
        }
    }
}

pub(crate) fn read_packet(text: &str) -> Packet {
    let (who, to) = text.split_once(' ').expect("who and to whom");
    let (to, protocol) = to.split_once('/').unwrap_or((to, "TCP"));
    let to: std::net::SocketAddr = to.parse().expect("an address and port");
    let v6 = to.is_ipv6();
    let (src, from) = match who {
        "pod" => (if v6 { "fd50:0:0:1::63" } else { "10.50.1.99" }, "cni0"),
        "otherpod" => (if v6 { "fd50:0:0:2::63" } else { "10.50.2.99" }, "eth0"),
        "node" if to.ip().is_loopback() => (if v6 { "::1" } else { "127.0.0.1" }, ""),
        "node" => (if v6 { "fd30::11" } else { "172.30.0.11" }, ""),
        "outside" => (if v6 { "fd98::10" } else { "198.51.100.10" }, "eth0"),
        pod if pod.starts_with("10.50.1.") || pod.starts_with("fd50:0:0:1:") => (pod, "cni0"),
        own if ADDRESSES.contains(&own) => (own, ""),
        other => (other, "eth0"),
    };
    let from = if from.is_empty() { Ingress::Output } else { Ingress::Interface(from.to_owned()) };
    let protocol = match protocol {
        "TCP" => Protocol::Tcp,
        "UDP" => Protocol::Udp,
        _ => Protocol::Sctp,
    };
    Packet { src: ip(src), dst: to.ip(), port: to.port(), protocol, from }
}

pub(crate) fn words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::NotOurs => "-".to_owned(),
        Verdict::Reject(_) => "reject".to_owned(),
        Verdict::Drop => "drop".to_owned(),
        Verdict::Dnat(dnat) => dnat.candidates.iter().map(candidate).collect::<Vec<_>>().join(" "),
    }
}

fn candidate(candidate: &Candidate) -> String {
    let Candidate { endpoint, snat } = candidate;
    let weight = if endpoint.weight == 1 { String::new() } else { format!("*{}", endpoint.weight) };
    format!("{endpoint}{}{weight}", if *snat { "!" } else { "" })
}
