//! Which hints are given, row by row.

use fairlead_api::view::Node;

use crate::sample::{Cluster, node, pod, service, text};

use super::*;

const AUTO: &str = "metadata: {annotations: {service.kubernetes.io/topology-mode: Auto}}";

/// A Node in each zone, and so many Pods on each.
fn cluster(fields: &str, zones: &[(&str, usize)]) -> Cluster {
    let mut cluster = Cluster::new(service(fields), Vec::new());
    cluster.nodes = zones.iter().map(|(zone, _)| (format!("n-{zone}"), node(&format!("n-{zone}"), zone, ""))).collect();
    for (zone, count) in zones {
        let on = format!("spec: {{nodeName: n-{zone}}}");
        let ip = |at: usize| format!("10.{}.0.{at}", zone.as_bytes()[0]);
        cluster.pods.extend((0..*count).map(|at| pod(&format!("{zone}{at}"), &ip(at), &on)));
    }
    cluster
}

/// How many endpoints are hinted to each zone, and what is told.
fn hinted(cluster: &mut Cluster) -> (Vec<String>, Vec<String>) {
    let changes = cluster.sync();
    let mut counts = BTreeMap::<String, usize>::new();
    for endpoint in cluster.slices.iter().flat_map(|slice| &slice.endpoints) {
        let zones = endpoint.hints.as_ref().map(|hints| hints.for_zones.iter().map(|zone| zone.name.as_str()));
        *counts.entry(zones.map_or("none".to_owned(), |zones| zones.collect::<Vec<_>>().join("+"))).or_default() += 1;
    }
    let told = changes.notices.into_iter().map(|notice| format!("{}: {}", notice.reason, notice.message));
    (counts.into_iter().map(|(zone, count)| format!("{zone} {count}")).collect(), told.collect())
}

fn check(mut cluster: Cluster, counts: &[&str], told: &[&str]) {
    let found = hinted(&mut cluster);
    assert_eq!(
        found,
        (counts.iter().map(ToString::to_string).collect(), told.iter().map(ToString::to_string).collect())
    );
    assert_eq!(cluster.sync().writes(), 0, "a second look changes nothing");
}

const ENABLED: &str = "TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4";

#[test]
fn traffic_distribution_hints_to_the_own_zone_and_node() {
    for (asked, expected) in
        [("PreferClose", "->z1"), ("PreferSameZone", "->z1"), ("PreferSameNode", "->z1 ->n1"), ("Unheard", "")]
    {
        let fields = format!("spec: {{trafficDistribution: {asked}}}");
        let mut cluster = Cluster::new(service(&fields), vec![pod("a", "10.1.0.1", "")]);
        cluster.sync();
        let expected = format!("IPv4 :80/TCP | a=10.1.0.1 ready serving @n1 z1 {expected}");
        assert_eq!(text(&cluster.slices), [expected.trim()]);
        assert_eq!(cluster.sync().writes(), 0);
    }
}

#[test]
fn an_endpoint_without_zone_is_hinted_to_its_node_at_most() {
    for (asked, expected) in [("PreferClose", ""), ("PreferSameNode", " ->n1")] {
        let mut cluster =
            Cluster::new(service(&format!("spec: {{trafficDistribution: {asked}}}")), vec![pod("a", "10.1.0.1", "")]);
        cluster.nodes.insert("n1".to_owned(), Node::default());
        cluster.sync();
        assert_eq!(text(&cluster.slices), [format!("IPv4 :80/TCP | a=10.1.0.1 ready serving @n1{expected}")]);
    }
}

#[test]
fn hints_come_and_go_with_the_wish_and_with_readiness() {
    let mut cluster = Cluster::new(service(""), vec![pod("a", "10.1.0.1", "")]);
    let not_ready = "status: {conditions: null}";
    for (fields, pod_fields, expected) in [
        ("", "", "none 1"),
        ("spec: {trafficDistribution: PreferClose}", "", "z1 1"),
        ("spec: {trafficDistribution: PreferClose}", not_ready, "none 1"),
        ("spec: {trafficDistribution: PreferClose, publishNotReadyAddresses: true}", not_ready, "z1 1"),
        ("", "", "none 1"),
    ] {
        cluster.service = service(fields);
        cluster.pods = vec![pod("a", "10.1.0.1", pod_fields)];
        assert_eq!(hinted(&mut cluster).0, [expected], "{fields} {pod_fields}");
    }
}

#[test]
fn topology_mode_gives_each_zone_its_share() {
    check(cluster(AUTO, &[("a", 3), ("b", 3)]), &["a 3", "b 3"], &[ENABLED]);
    check(cluster(AUTO, &[("a", 6), ("b", 0)]), &["a 3", "b 3"], &[ENABLED]);
    check(cluster(AUTO, &[("a", 5), ("b", 1)]), &["a 3", "b 3"], &[ENABLED]);
    check(cluster(AUTO, &[("a", 4), ("b", 4), ("c", 4)]), &["a 4", "b 4", "c 4"], &[ENABLED]);
}

#[test]
fn shares_follow_the_cpu_of_nodes_that_count() {
    let mut uneven = cluster(AUTO, &[("a", 6), ("b", 6)]);
    uneven.nodes.insert("n-a".to_owned(), node("n-a", "a", "status: {allocatable: {cpu: 12000m}}"));
    let master = "metadata: {labels: {node-role.kubernetes.io/control-plane: ''}}";
    uneven.nodes.insert("m".to_owned(), node("m", "c", master));
    uneven.nodes.insert("down".to_owned(), node("down", "c", "status: {conditions: null}"));
    check(uneven, &["a 9", "b 3"], &[ENABLED]);
}

#[test]
fn safeguards_leave_all_without_hints_and_say_why() {
    let told = |why: &str| format!("TopologyAwareHintsDisabled: {why}, addressType: IPv4");
    let check = |cluster: Cluster, counts: &[&str], why: &str| check(cluster, counts, &[&told(why)]);
    let no_information = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
    check(cluster(AUTO, &[("a", 3)]), &["none 3"], no_information);
    let mut without_cpu = cluster(AUTO, &[("a", 3), ("b", 3)]);
    without_cpu.nodes.insert("x".to_owned(), node("x", "a", "status: {allocatable: null}"));
    check(without_cpu, &["none 6"], no_information);
    check(cluster(AUTO, &[("a", 1), ("b", 0)]), &["none 1"], "Insufficient number of endpoints (1 endpoints, 2 zones)");
    check(
        cluster(AUTO, &[("a", 2), ("b", 2), ("c", 0)]),
        &["none 4"],
        "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (4 endpoints, 3 zones)",
    );
    let mut without_zone = cluster(AUTO, &[("a", 3), ("b", 3)]);
    without_zone.nodes.insert("x".to_owned(), node("x", "", "status: {conditions: null}"));
    without_zone.pods.push(pod("x", "10.9.0.1", "spec: {nodeName: x}"));
    check(without_zone, &["none 7"], "One or more endpoints do not have a zone specified");
}

#[test]
fn topology_mode_wins_even_when_it_cannot_give_hints() {
    let both = "{metadata: {annotations: {service.kubernetes.io/topology-mode: Auto}}, spec: {trafficDistribution: PreferClose}}";
    assert_eq!(hinted(&mut cluster(both, &[("a", 3)])).0, ["none 3"]);
    let old = "metadata: {annotations: {service.kubernetes.io/topology-aware-hints: auto}}";
    assert_eq!(hinted(&mut cluster(old, &[("a", 3), ("b", 3)])).0, ["a 3", "b 3"]);
    let old_wins = "metadata: {annotations: {service.kubernetes.io/topology-mode: Auto, service.kubernetes.io/topology-aware-hints: disabled}}";
    assert_eq!(hinted(&mut cluster(old_wins, &[("a", 3), ("b", 3)])).0, ["none 6"]);
}

#[test]
fn taking_the_mode_away_is_told_once() {
    let mut cluster = cluster(AUTO, &[("a", 3), ("b", 3)]);
    hinted(&mut cluster);
    cluster.service = service("");
    let disabled = "TopologyAwareHintsDisabled: Topology Aware Hints has been disabled, addressType: IPv4";
    assert_eq!(hinted(&mut cluster), (vec!["none 6".to_owned()], vec![disabled.to_owned()]));
    assert_eq!(hinted(&mut cluster).1, [""; 0]);
    assert!(cluster.hinted.is_empty());
}

#[test]
fn a_service_is_overloaded_when_a_zone_has_grown_beyond_its_endpoints() {
    let mut cluster = cluster(AUTO, &[("a", 3), ("b", 3)]);
    hinted(&mut cluster);
    let overloaded = |cluster: &Cluster| cluster.hinted.is_overloaded(&Zones::of(cluster.nodes.values()));
    assert!(!overloaded(&cluster));
    cluster.nodes.insert("more".to_owned(), node("more", "a", ""));
    assert!(overloaded(&cluster));
    hinted(&mut cluster);
    assert!(!overloaded(&cluster));
    cluster.nodes.clear();
    assert!(overloaded(&cluster));
}
