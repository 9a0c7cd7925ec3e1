//! What is written to Endpoints, row by row.

use fairlead_api::view::ObjectReference;
use proptest::prelude::*;

use crate::sample::{Cluster, pod, service, subset_text};

use super::*;

fn check(service_fields: &str, pods: Vec<Pod>, expected: &[&str]) {
    let mut cluster = Cluster::new(service(service_fields), pods);
    cluster.sync_endpoints();
    assert_eq!(subset_text(&cluster.endpoints.as_ref().expect("written").subsets), expected, "{service_fields}");
    assert_eq!(cluster.sync_endpoints().writes(), 0, "a second look changes nothing");
}

const NOT_READY: &str = "status: {conditions: null}";
const GOING: &str = "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}";

#[test]
fn addresses_are_ready_or_not() {
    let pods = || vec![pod("a", "10.1.0.1", ""), pod("b", "10.1.0.2", NOT_READY), pod("c", "10.1.0.3", GOING)];
    check("", pods(), &[":80/TCP a=10.1.0.1@n1 not b=10.1.0.2@n1"]);
    let published = [":80/TCP a=10.1.0.1@n1 b=10.1.0.2@n1 c=10.1.0.3@n1"];
    check("spec: {publishNotReadyAddresses: true}", pods(), &published);
    check("", Vec::new(), &[]);
}

#[test]
fn addresses_are_in_the_order_of_their_text() {
    let pods = vec![pod("a", "10.2.0.1", ""), pod("b", "10.10.0.1", ""), pod("c", "10.1.0.1", "")];
    check("", pods, &[":80/TCP c=10.1.0.1@n1 b=10.10.0.1@n1 a=10.2.0.1@n1"]);
}

#[test]
fn pods_whose_node_is_missing_or_unknown_count() {
    check("", vec![pod("a", "10.1.0.1", "spec: {nodeName: ghost}")], &[":80/TCP a=10.1.0.1@ghost"]);
    check("", vec![pod("a", "10.1.0.1", "spec: {nodeName: null}")], &[":80/TCP a=10.1.0.1"]);
}

#[test]
fn only_the_first_family_counts() {
    let both = "status: {podIPs: [{ip: 10.1.0.1}, {ip: 'fd00::1'}]}";
    let pods = || vec![pod("a", "", both), pod("b", "10.1.0.2", "")];
    check("spec: {ipFamilies: [IPv4, IPv6]}", pods(), &[":80/TCP a=10.1.0.1@n1 b=10.1.0.2@n1"]);
    check("spec: {ipFamilies: [IPv6, IPv4]}", pods(), &[":80/TCP a=fd00::1@n1"]);
    check("spec: {ipFamilies: null, clusterIP: 'fd00::99'}", pods(), &[":80/TCP a=fd00::1@n1"]);
}

#[test]
fn subsets_have_the_ports_all_their_addresses_have() {
    let named =
        |number: i32| format!("spec: {{containers: [{{name: c, ports: [{{name: web, containerPort: {number}}}]}}]}}");
    let pods = vec![pod("a", "10.1.0.1", &named(1)), pod("b", "10.1.0.2", &named(2)), pod("c", "10.1.0.3", "")];
    let fields = "spec: {ports: [{name: m, port: 80, targetPort: web}, {name: f, port: 81, targetPort: 81}]}";
    check(
        fields,
        pods,
        &["f:81/TCP a=10.1.0.1@n1 b=10.1.0.2@n1 c=10.1.0.3@n1", "m:1/TCP a=10.1.0.1@n1", "m:2/TCP b=10.1.0.2@n1"],
    );
}

#[test]
fn a_pod_without_the_only_port_is_in_no_subset_and_the_reason_is_told() {
    let service = service("spec: {ports: [{name: m, port: 80, targetPort: web}]}");
    let changes = Cluster::new(service, vec![pod("a", "10.1.0.1", "")]).sync_endpoints();
    assert!(changes.create[0].subsets.is_empty());
    let reason = Reason::PortMissing { port: "m".to_owned(), target: "web".to_owned(), protocol: "TCP" };
    assert_eq!(changes.left_out, [LeftOut { name: "a".to_owned(), family: None, reason }]);
    assert_eq!(changes.empty, Some(Reason::AllLeftOut { pods: 1 }));
}

#[test]
fn headless_services_need_no_ports_and_name_their_pods() {
    let named = pod("a", "10.1.0.1", "spec: {hostname: h, subdomain: web}");
    check("spec: {clusterIP: None, ports: null}", vec![named], &["a=10.1.0.1@n1(h)"]);
}

#[test]
fn two_pods_with_one_address_are_two_addresses() {
    let pods = vec![pod("b", "10.1.0.1", ""), pod("a", "10.1.0.1", "")];
    check("", pods, &[":80/TCP a=10.1.0.1@n1 b=10.1.0.1@n1"]);
}

#[test]
fn labels_of_the_service_are_followed_and_annotations_are_the_users() {
    let mut cluster = Cluster::new(service("metadata: {labels: {a: b}, annotations: {note: private}}"), Vec::new());
    let labels = |changes: &Changes<Endpoints>| {
        let written = changes.create.iter().chain(&changes.update).next().expect("written");
        written.metadata.labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    let changes = cluster.sync_endpoints();
    assert_eq!(labels(&changes), ["a=b", "endpoints.kubernetes.io/managed-by=endpoint-controller"]);
    assert!(changes.create[0].metadata.annotations.is_empty());
    let existing = cluster.endpoints.as_mut().expect("written");
    existing.metadata.annotations.insert("mine".to_owned(), "yes".to_owned());
    existing.metadata.resource_version = "7".to_owned();
    cluster.service = service("spec: {clusterIP: None}");
    let changes = cluster.sync_endpoints();
    let marks = ["endpoints.kubernetes.io/managed-by=endpoint-controller", "service.kubernetes.io/headless="];
    assert_eq!(labels(&changes), marks);
    let metadata = &changes.update[0].metadata;
    assert_eq!((metadata.annotations["mine"].as_str(), metadata.resource_version.as_str()), ("yes", "7"));
}

#[test]
fn what_others_order_differently_is_not_written_again() {
    let mut cluster = Cluster::new(service(""), vec![pod("a", "10.1.0.1", ""), pod("b", "10.1.0.2", "")]);
    cluster.sync_endpoints();
    let existing = cluster.endpoints.as_mut().expect("written");
    existing.subsets[0].addresses.reverse();
    existing.subsets[0].addresses[0].target_ref.as_mut().expect("a Pod").resource_version = "7".to_owned();
    assert_eq!(cluster.sync_endpoints().writes(), 0);
    cluster.endpoints.as_mut().expect("written").subsets[0].addresses.pop();
    assert_eq!(cluster.sync_endpoints().writes(), 1);
}

#[test]
fn above_the_maximum_ready_addresses_stay_and_an_annotation_says_so() {
    let pods = |ready: usize, not: usize| -> Vec<Pod> {
        let ready = (0..ready).map(|at| pod(&format!("r{at}"), &format!("10.1.{}.{}", at / 256, at % 256), ""));
        let not = (0..not).map(|at| pod(&format!("n{at}"), &format!("10.2.{}.{}", at / 256, at % 256), NOT_READY));
        ready.chain(not).collect()
    };
    let mut cluster = Cluster::new(service(""), Vec::new());
    for (ready, not, kept) in [
        (1000, 0, (1000, 0)),
        (1001, 0, (1000, 0)),
        (900, 200, (900, 100)),
        (1000, 5, (1000, 0)),
        (1100, 5, (1000, 0)),
        (999, 1, (999, 1)),
    ] {
        cluster.pods = pods(ready, not);
        let changes = cluster.sync_endpoints();
        let endpoints = cluster.endpoints.as_ref().expect("written");
        let subset = &endpoints.subsets[0];
        assert_eq!((subset.addresses.len(), subset.not_ready_addresses.len()), kept);
        let cut = ready + not - kept.0 - kept.1;
        let said = endpoints.metadata.annotations.get(names::OVER_CAPACITY).map(String::as_str);
        assert_eq!(said, (cut > 0).then_some("truncated"));
        let reason = Reason::OverCapacity { max: 1000, left_out: cut };
        assert_eq!(changes.left_out.iter().any(|left| left.reason == reason), cut > 0);
        assert_eq!(cluster.sync_endpoints().writes(), 0, "a second look changes nothing");
    }
}

#[test]
fn every_subset_keeps_its_share() {
    let subset = |count: usize| EndpointSubset {
        addresses: (0..count).map(|at| EndpointAddress { ip: at.to_string(), ..EndpointAddress::default() }).collect(),
        ..EndpointSubset::default()
    };
    let mut subsets = [subset(1), subset(999), subset(1000)];
    assert_eq!(truncate::truncate(&mut subsets), Some(1000));
    assert_eq!(subsets.map(|subset| subset.addresses.len()), [1, 500, 499]);
}

#[test]
fn services_that_are_not_ours_are_left_as_they_are() {
    for (fields, reason) in
        [("spec: {type: ExternalName}", Reason::ExternalName), ("spec: {selector: null}", Reason::NoSelector)]
    {
        let changes = Cluster::new(service(fields), vec![pod("a", "10.1.0.1", "")]).sync_endpoints();
        assert_eq!((changes.writes(), changes.empty), (0, Some(reason)));
    }
}

fn any_subsets() -> impl Strategy<Value = Vec<EndpointSubset>> {
    let address = (0..5u8, 0..3u8).prop_map(|(ip, uid)| {
        let target = ObjectReference { uid: uid.to_string(), ..ObjectReference::default() };
        let target_ref = Some(target).filter(|_| uid > 0);
        EndpointAddress { ip: format!("10.0.0.{ip}"), target_ref, ..EndpointAddress::default() }
    });
    let addresses = prop::collection::vec(address, 0..4);
    let port = (1..4).prop_map(|port| SubsetPort { port, ..SubsetPort::default() });
    let subset = (addresses.clone(), addresses, prop::collection::vec(port, 0..3))
        .prop_map(|(addresses, not_ready_addresses, ports)| EndpointSubset { addresses, not_ready_addresses, ports });
    prop::collection::vec(subset, 0..4)
}

proptest! {
    /// There is one way to write what subsets say, and it says neither more nor less.
    #[test]
    fn repacking_keeps_every_pair_and_is_its_own_image(subsets in any_subsets()) {
        let said = |subsets: &[EndpointSubset]| {
            let mut said = BTreeMap::new();
            for (port, address, ready) in entries(subsets) {
                let uid = address.target_ref.as_ref().map(|target| target.uid.clone());
                *said.entry((port, address.ip.clone(), uid)).or_insert(true) &= ready;
            }
            said
        };
        let packed = repack(entries(&subsets));
        prop_assert_eq!(repack(entries(&packed)), packed.clone());
        let (mut before, mut after) = (said(&subsets), said(&packed));
        // An address that has ports need not be said to have none.
        before.retain(|(port, _, _), _| port.is_some());
        after.retain(|(port, _, _), _| port.is_some());
        prop_assert_eq!(before, after);
    }
}
