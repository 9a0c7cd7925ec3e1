//! Objects no server would let through break nothing.

use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Protocol, Service};
use fairlead_plan::{Change, Flow, Ingress, Packet, Planner, decide, judge};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::incremental::{change, holds_together};
use crate::lab::node;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn mangled_objects_and_packets_never_panic(
        changes in prop::collection::vec(prop_oneof![2 => mangled_service(), 2 => mangled_slice(), 1 => change()], 1..8),
        packets in prop::collection::vec(packet(), 1..16),
    ) {
        let mut planner = Planner::new(node());
        for change in changes {
            planner.apply([change]);
            holds_together(planner.plan());
            for packet in &packets {
                let decision = decide(planner.plan(), packet);
                prop_assert!(decision.steps.iter().all(|step| !step.to_string().is_empty()));
                let Packet { dst, port, protocol, src, .. } = *packet;
                judge(planner.plan(), &Flow { protocol, dst, port, backend: src, backend_port: port });
            }
            for (_, notes) in planner.plan().all_notes() {
                prop_assert!(notes.iter().all(|note| !note.to_string().is_empty()));
            }
        }
    }
}

/// Texts as they may stand anywhere.
fn text() -> impl Strategy<Value = String> {
    let likely = vec![
        "",
        "None",
        "10.96.0.1",
        "010.096.000.001",
        "::ffff:10.96.0.1",
        "fd00:96::1",
        "0.0.0.0",
        "255.255.255.255",
        "::",
        "10.0.0.0/8",
        "0.0.0.0/0",
        "::/0",
        "10.0.0.0/33",
        "10.96.0.1/",
        "=",
        "1=1",
        "http",
        "n1",
        "*",
    ];
    prop_oneof![4 => prop::sample::select(likely).prop_map(str::to_owned), 1 => "\\PC{0,12}"]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), 0..4)
}

fn number() -> impl Strategy<Value = i32> {
    prop_oneof![prop::sample::select(vec![0, -1, 1, 80, 65535, 65536, i32::MAX, i32::MIN]), any::<i32>()]
}

fn mangled_service() -> impl Strategy<Value = Change> {
    let port = (text(), number(), number(), prop::sample::select(vec!["TCP", "UDP", "SCTP"]));
    let ports = prop::collection::vec(port, 0..4);
    let kind = prop::sample::select(vec!["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]);
    let policy = || prop::sample::select(vec!["Cluster", "Local"]);
    (text(), texts(), texts(), texts(), texts(), ports, (kind, policy(), policy(), number(), number())).prop_map(
        |(ip, ips, external, ranges, keys, ports, (kind, internal, outer, seconds, health))| {
            let port = |(name, port, node, protocol): &(String, i32, i32, &str)| {
                json!({"name": name, "port": port, "nodePort": node, "protocol": protocol})
            };
            let ingress: Vec<Value> = external.iter().map(|ip| json!({"ip": ip, "ipMode": keys.first()})).collect();
            let object = json!({
                "metadata": {"labels": {}, "creationTimestamp": keys.first()},
                "spec": {
                    "type": kind, "clusterIP": ip, "clusterIPs": ips, "externalIPs": external, "topologyKeys": keys,
                    "loadBalancerSourceRanges": ranges, "ports": ports.iter().map(port).collect::<Vec<_>>(),
                    "internalTrafficPolicy": internal, "externalTrafficPolicy": outer, "sessionAffinity": "ClientIP",
                    "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}}, "healthCheckNodePort": health,
                },
                "status": {"loadBalancer": {"ingress": ingress}},
            });
            let service: Service = serde_json::from_value(object).expect("mangled, but readable");
            Change::Service(Key::new("default", "a"), Some(Arc::new(service)))
        },
    )
}

fn mangled_slice() -> impl Strategy<Value = Change> {
    let endpoint = (texts(), any::<[Option<bool>; 3]>(), text(), texts());
    let port = (prop::option::of(text()), prop::option::of(number()));
    let address_type = prop::sample::select(vec!["IPv4", "IPv6", "FQDN"]);
    let endpoints = prop::collection::vec(endpoint, 0..4);
    (address_type, endpoints, prop::collection::vec(port, 0..3), text(), text()).prop_map(
        |(address_type, endpoints, ports, weight, name)| {
            let endpoint = |(addresses, [ready, serving, terminating], node, hints): &(Vec<String>, [Option<bool>; 3], String, Vec<String>)| {
                let hints: Vec<Value> = hints.iter().map(|name| json!({"name": name})).collect();
                json!({
                    "addresses": addresses, "nodeName": node, "hints": {"forZones": hints, "forNodes": hints},
                    "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
                })
            };
            let ports: Vec<Value> = ports.iter().map(|(name, port)| json!({"name": name, "port": port})).collect();
            let object = json!({
                "metadata": {"labels": {"kubernetes.io/service-name": "a"}, "annotations": {"fairlead.dev/weight": weight}},
                "addressType": address_type, "ports": ports, "endpoints": endpoints.iter().map(endpoint).collect::<Vec<_>>(),
            });
            let slice: EndpointSlice = serde_json::from_value(object).expect("mangled, but readable");
            Change::Slice(Key::new("default", name), Some(Arc::new(slice)))
        },
    )
}

fn packet() -> impl Strategy<Value = Packet> {
    let likely: Vec<IpAddr> = ["10.96.0.1", "fd00:96::1", "192.0.2.7", "172.30.0.11", "127.0.0.1", "::1", "10.50.1.1"]
        .map(|ip| ip.parse().expect("an address"))
        .to_vec();
    let ip = || prop_oneof![4 => prop::sample::select(likely.clone()), 1 => any::<IpAddr>()];
    let port = prop_oneof![prop::sample::select(vec![0, 80, 81, 30080, 65535]), any::<u16>()];
    let protocol = prop::sample::select(vec![Protocol::Tcp, Protocol::Udp, Protocol::Sctp]);
    let from = prop_oneof![Just(Ingress::Output), "[a-z0-9]{0,4}".prop_map(Ingress::Interface)];
    (ip(), ip(), port, protocol, from).prop_map(|(src, dst, port, protocol, from)| Packet {
        src,
        dst,
        port,
        protocol,
        from,
    })
}
