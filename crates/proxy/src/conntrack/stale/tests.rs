//! Flows of all kinds, and what is to become of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::Instant;

use fairlead_api::source::Key;
use fairlead_kernel::conntrack::Tuple;
use fairlead_plan::{Change, Node, Planner};
use serde_json::json;

use super::*;

/// Service `dns` at 10.96.0.10 with endpoint 10.244.1.1, and 10.244.1.3 that does not serve; a node port; 203.0.113.7 and
/// node port 30099 were removed and led to 10.244.1.1 and anywhere.
fn cluster() -> (Planner, Removed) {
    let mut planner = Planner::new(Node { addresses: ["192.168.7.1".parse().unwrap()].into(), ..Node::default() });
    let port = |protocol: &str| json!({"name": protocol, "port": 53, "protocol": protocol, "nodePort": 30053});
    let service = |external: &[&str]| {
        let object = json!({"spec": {
            "type": "NodePort", "clusterIP": "10.96.0.10", "externalIPs": external,
            "ports": [port("UDP"), port("SCTP"), port("TCP")],
        }});
        Change::Service(Key::new("default", "dns"), Some(Arc::new(serde_json::from_value(object).unwrap())))
    };
    let target = |protocol: &str| json!({"name": protocol, "port": 5353, "protocol": protocol});
    let unready = json!({"ready": false, "serving": false});
    let slice = json!({
        "metadata": {"labels": {"kubernetes.io/service-name": "dns"}}, "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.244.1.1"]}, {"addresses": ["10.244.1.3"], "conditions": unready}],
        "ports": [target("UDP"), target("SCTP"), target("TCP")],
    });
    let slice = Some(Arc::new(serde_json::from_value(slice).unwrap()));
    planner.apply([service(&["203.0.113.7"]), Change::Slice(Key::new("default", "dns-1"), slice)]);
    let change = planner.apply([service(&[])]);
    let mut removed = Removed::default();
    removed.note(planner.plan(), &change, Instant::now());
    let family = fairlead_plan::Family::V4;
    removed.insert(FrontendKey::NodePort { family, protocol: Protocol::Udp, port: 30099 }, None, Instant::now());
    (planner, removed)
}

/// `10.96.0.10:53 10.244.1.1:5353 17 zone 7`: from where to where, which protocol, and `zone 7` or `assured`.
fn entry(text: &str) -> Entry {
    let words: Vec<&str> = text.split(' ').collect();
    let [to, at]: [SocketAddr; 2] = [words[0].parse().unwrap(), words[1].parse().unwrap()];
    let (client, port, protocol) = ("192.168.7.2".parse().unwrap(), 4000, words[2].parse().unwrap());
    let tuple = |source: (_, u16), destination: (_, u16)| Tuple {
        source: source.0,
        destination: destination.0,
        protocol,
        source_port: source.1,
        destination_port: destination.1,
    };
    Entry {
        original: tuple((client, port), (to.ip(), to.port())),
        reply: tuple((at.ip(), at.port()), (client, port)),
        status: if to == at { 0 } else { status::DESTINATION_NAT }
            | if text.contains("assured") { status::ASSURED } else { 0 },
        timeout_s: 30,
        mark: 0,
        zone: if text.contains("zone 7") { 7 } else { 0 },
        id: 1,
        sent: Default::default(),
        received: Default::default(),
    }
}

#[test]
fn stale_flows_are_told_from_others() {
    let (planner, removed) = cluster();
    let portals = planner.plan().frontends().map(|it| (it.port.clone(), "192.168.7.1:4999".parse().unwrap())).collect();
    let table = [
        ("10.96.0.10:53 10.244.1.1:5353 17", false),
        ("192.168.7.1:30053 10.244.1.1:5353 17", false),
        ("10.96.0.10:53 10.244.1.2:5353 17", true),
        ("10.96.0.10:53 10.244.1.1:5354 17", true),
        ("10.96.0.10:53 10.244.1.3:5353 17", true),
        ("192.168.7.1:30053 10.244.1.2:5353 17", true),
        // Past the Service.
        ("10.96.0.10:53 10.96.0.10:53 17", true),
        ("192.168.7.1:30053 192.168.7.1:30053 17", true),
        ("10.96.0.10:53 10.96.0.10:53 17 zone 7", false),
        ("10.96.0.10:53 10.244.1.2:5353 17 zone 7", true),
        // A process of the Node in the place of the endpoints.
        ("10.96.0.10:53 192.168.7.1:4999 17", false),
        ("10.96.0.10:53 192.168.7.1:4998 17", true),
        // To nobody of ours.
        ("10.96.0.11:53 10.244.1.2:5353 17", false),
        ("10.244.1.2:5353 10.244.1.2:5353 17", false),
        ("192.168.7.2:30053 10.244.1.2:5353 17", false),
        // To those that are gone.
        ("203.0.113.7:53 10.244.1.1:5353 17", true),
        ("203.0.113.7:53 10.244.1.9:5353 17", false),
        ("203.0.113.7:53 203.0.113.7:53 17", false),
        ("192.168.7.1:30099 10.244.1.9:5353 17", true),
        ("192.168.7.9:30099 10.244.1.9:5353 17", false),
        // Other protocols.
        ("10.96.0.10:53 10.244.1.2:5353 6", false),
        ("10.96.0.10:53 10.244.1.2:5353 132", true),
        ("10.96.0.10:53 10.244.1.2:5353 132 assured", false),
        ("10.96.0.10:0 10.244.1.2:0 1", false),
    ];
    for (text, expected) in table {
        assert_eq!(is_stale(planner.plan(), &removed, &portals, &entry(text)), expected, "{text}");
    }
}
