//! Sets of ranges in a kernel: every step from one list of ranges to another is taken.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_kernel::netns::Namespace;
use fairlead_plan::{Change, LocalDetection, Node, Planner};
use ipnet::IpNet;
use serde_json::json;

use super::*;

/// Ranges of which several touch: the end of one is where the next begins.
const TOUCHING: [[&str; 7]; 2] = [
    ["10.0.0.0/23", "10.0.2.0/24", "10.0.3.0/25", "10.0.4.0/24", "10.0.3.128/25", "255.255.255.0/24", "0.0.0.0/24"],
    [
        "fd00::/63",
        "fd00:0:0:2::/64",
        "fd00:0:0:3::/65",
        "fd00:0:0:4::/64",
        "fd00:0:0:3:8000::/65",
        "ffff:ffff::/32",
        "::/64",
    ],
];

/// Runs `work` in a network namespace of its own with a node proxy, and a planner of a dual-stack
/// Node.
fn in_namespace(test: &str, work: impl FnOnce(&mut Nftables, &mut Planner, &Node) + Send) {
    let Ok(namespace) = Namespace::unnamed() else { return fairlead_testkit::need::skip(test, "root") };
    let node = Node { name: "n1".to_owned(), ..Node::default() };
    namespace
        .run(|| {
            let mut planner = Planner::new(node.clone());
            let mut nftables = Nftables::open(Options::default(), Duration::from_secs(60)).unwrap();
            nftables.load(planner.plan()).unwrap();
            work(&mut nftables, &mut planner, &node);
        })
        .unwrap();
}

/// Lists of ranges that grow and shrink one by one, beginning with each of them.
fn steps(ranges: [&'static str; 7]) -> impl Iterator<Item = Vec<IpNet>> {
    (0..ranges.len()).flat_map(move |first| {
        let mut order = ranges;
        order.rotate_left(first);
        let all = order.map(|range| range.parse().unwrap());
        (1..=all.len()).chain((0..all.len()).rev()).map(move |count| all[..count].to_vec())
    })
}

#[test]
fn ranges_of_pods_and_services_that_touch_are_taken_by_the_kernel() {
    in_namespace("ranges_of_pods_and_services_that_touch_are_taken_by_the_kernel", |nftables, planner, node| {
        for ranges in TOUCHING.into_iter().flat_map(steps) {
            let node = Node {
                detection: LocalDetection::Ranges(ranges.clone()),
                pod_ranges: ranges.clone(),
                service_ranges: ranges.clone(),
                ..node.clone()
            };
            let change = planner.apply([Change::Node(Box::new(node))]);
            nftables.apply(planner.plan(), &change).unwrap_or_else(|error| panic!("{ranges:?}: {error}"));
            assert_eq!(nftables.drift(planner.plan()).unwrap(), None, "{ranges:?}");
        }
    });
}

#[test]
fn source_ranges_that_touch_are_taken_by_the_kernel() {
    in_namespace("source_ranges_that_touch_are_taken_by_the_kernel", |nftables, planner, _| {
        for ranges in TOUCHING.into_iter().flat_map(steps) {
            let service = serde_json::from_value(json!({
                "metadata": {"name": "web", "namespace": "default", "uid": "u"},
                "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"], "ipFamilies": ["IPv4"],
                         "loadBalancerSourceRanges": ranges.iter().map(ToString::to_string).collect::<Vec<_>>(),
                         "ports": [{"port": 80, "protocol": "TCP"}]},
                "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"ip": "2001:db8::1"}]}},
            }));
            let change = planner.apply([Change::Service(Key::new("default", "web"), Some(Arc::new(service.unwrap())))]);
            nftables.apply(planner.plan(), &change).unwrap_or_else(|error| panic!("{ranges:?}: {error}"));
            assert_eq!(nftables.drift(planner.plan()).unwrap(), None, "{ranges:?}");
        }
    });
}
