//! What is written to slices, row by row. What holds for any Pods is in `tests/properties.rs`.

use fairlead_api::view::Pod;

use crate::sample::{Cluster, pod, service, text};

use super::*;

fn pods(range: std::ops::Range<usize>) -> Vec<Pod> {
    range.map(|at| pod(&format!("p{at:04}"), &format!("10.1.{}.{}", at / 250, at % 250 + 1), "")).collect()
}

fn number(pod: &Pod) -> usize {
    pod.metadata.name[1..].parse().expect("a number")
}

/// Sizes of the slices, in order of names.
fn sizes(cluster: &Cluster) -> Vec<usize> {
    cluster.slices.iter().map(|slice| slice.endpoints.len()).collect()
}

fn writes(changes: &Changes<EndpointSlice>) -> (usize, usize, usize) {
    (changes.create.len(), changes.update.len(), changes.delete.len())
}

#[test]
fn a_new_slice_says_whose_it_is() {
    let labels = "metadata: {labels: {team: blue, kubernetes.io/service-name: x, service.kubernetes.io/headless: w, \
                  endpointslice.kubernetes.io/managed-by: z}, annotations: {note: private}}";
    let mut cluster = Cluster::new(service(labels), pods(0..1));
    let changes = cluster.sync();
    let metadata = &changes.create[0].metadata;
    assert_eq!(
        (metadata.generate_name.as_str(), metadata.name.as_str(), metadata.namespace.as_str()),
        ("web-", "", "default")
    );
    let labels: Vec<_> = metadata.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(
        labels,
        [
            "endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io",
            "kubernetes.io/service-name=web",
            "team=blue"
        ]
    );
    assert!(metadata.annotations.is_empty());
    assert_eq!(metadata.owner_references, [owner("Service", &cluster.service.metadata)]);
}

#[test]
fn slices_of_services_without_cluster_ip_are_marked() {
    let mut cluster = Cluster::new(service("spec: {clusterIP: None}"), pods(0..1));
    cluster.sync();
    assert_eq!(cluster.slices[0].metadata.labels.get(names::HEADLESS).map(String::as_str), Some(""));
}

#[test]
fn a_service_without_endpoints_has_one_empty_slice_that_is_used_later() {
    let mut cluster = Cluster::new(service(""), Vec::new());
    let changes = cluster.sync();
    assert_eq!(changes.empty, Some(Reason::NoPods { selector: vec!["app=web".to_owned()] }));
    assert_eq!(text(&cluster.slices), ["IPv4"]);
    assert_eq!(writes(&cluster.sync()), (0, 0, 0));
    cluster.pods = pods(0..1);
    assert_eq!(writes(&cluster.sync()), (0, 1, 0));
    assert_eq!(text(&cluster.slices), ["IPv4 :80/TCP | p0000=10.1.0.1 ready serving @n1 z1"]);
    cluster.pods.clear();
    assert_eq!(writes(&cluster.sync()), (0, 1, 0));
    assert_eq!(text(&cluster.slices), ["IPv4"]);
}

#[test]
fn services_that_are_not_ours_are_left_as_they_are() {
    for (fields, reason) in [
        ("spec: {type: ExternalName}", Reason::ExternalName),
        ("spec: {selector: null}", Reason::NoSelector),
        ("spec: {selector: {app: null}}", Reason::NoSelector),
    ] {
        let mut cluster = Cluster::new(service(""), pods(0..3));
        cluster.sync();
        cluster.service = service(fields);
        let changes = cluster.sync();
        assert_eq!((writes(&changes), changes.empty), ((0, 0, 0), Some(reason)), "{fields}");
    }
}

#[test]
fn slices_are_filled_before_others_are_made() {
    for (count, expected) in [(99, vec![99]), (100, vec![100]), (101, vec![100, 1]), (250, vec![100, 100, 50])] {
        let mut cluster = Cluster::new(service(""), pods(0..count));
        cluster.sync();
        assert_eq!(sizes(&cluster), expected);
    }
}

#[test]
fn slices_are_never_merged_and_go_when_empty() {
    let mut cluster = Cluster::new(service(""), pods(0..200));
    cluster.sync();
    cluster.pods.retain(|pod| !matches!(number(pod), 0..90 | 100..190));
    assert_eq!(writes(&cluster.sync()), (0, 2, 0));
    assert_eq!(sizes(&cluster), [10, 10]);
    cluster.pods.truncate(10);
    assert_eq!(writes(&cluster.sync()), (0, 0, 1));
    assert_eq!(sizes(&cluster), [10]);
}

#[test]
fn new_endpoints_go_where_a_change_is_made_anyway_then_where_they_fit_best() {
    let mut cluster = Cluster::new(service(""), pods(0..250));
    cluster.sync();
    cluster.pods.retain(|pod| number(pod) >= 30);
    cluster.sync();
    assert_eq!(sizes(&cluster), [70, 100, 50]);
    // Two slices have room: the fuller one is chosen.
    cluster.pods.extend(pods(300..320));
    assert_eq!(writes(&cluster.sync()), (0, 1, 0));
    assert_eq!(sizes(&cluster), [90, 100, 50]);
    // The emptier one loses a Pod and so gets the new one.
    cluster.pods.retain(|pod| pod.metadata.name != "p0240");
    cluster.pods.extend(pods(320..321));
    assert_eq!(writes(&cluster.sync()), (0, 1, 0));
    assert_eq!(sizes(&cluster), [90, 100, 50]);
    // More than fit into one other slice make a new one.
    cluster.pods.extend(pods(400..460));
    assert_eq!(writes(&cluster.sync()), (1, 0, 0));
    assert_eq!(sizes(&cluster), [90, 100, 50, 60]);
}

#[test]
fn other_ports_are_written_into_the_same_slices() {
    let mut cluster = Cluster::new(service(""), pods(0..150));
    cluster.sync();
    cluster.service.spec.ports[0].target_port = fairlead_api::view::TargetPort::Number(8080);
    assert_eq!(writes(&cluster.sync()), (0, 2, 0));
    assert!(cluster.slices.iter().all(|slice| slice.ports[0].port == Some(8080)));
}

#[test]
fn labels_of_the_service_are_followed() {
    let mut cluster = Cluster::new(service("metadata: {labels: {a: b}}"), pods(0..1));
    cluster.sync();
    cluster.service.metadata.labels = BTreeMap::from([("c".to_owned(), "d".to_owned())]);
    assert_eq!(writes(&cluster.sync()), (0, 1, 0));
    assert!(!cluster.slices[0].metadata.labels.contains_key("a"));
    assert_eq!(cluster.slices[0].metadata.labels["c"], "d");
}

#[test]
fn a_family_that_is_gone_takes_its_slices_along() {
    let mut cluster = Cluster::new(service("spec: {ipFamilies: [IPv4, IPv6]}"), pods(0..1));
    cluster.sync();
    assert_eq!(cluster.slices.len(), 2);
    cluster.service = service("");
    assert_eq!(writes(&cluster.sync()), (0, 0, 1));
    assert_eq!(cluster.slices[0].address_type, AddressType::V4);
}

#[test]
fn slices_of_others_are_left_alone_and_those_of_an_earlier_service_go() {
    let mut cluster = Cluster::new(service(""), pods(0..1));
    cluster.sync();
    let mut staff = cluster.slices[0].clone();
    staff.metadata.name = "web-staff".to_owned();
    staff.metadata.labels.insert(names::MANAGED_BY.to_owned(), "staff".to_owned());
    let mut earlier = cluster.slices[0].clone();
    earlier.metadata.name = "web-earlier".to_owned();
    earlier.metadata.owner_references[0].uid = "earlier-uid".to_owned();
    cluster.slices.extend([staff, earlier]);
    let changes = cluster.sync();
    assert_eq!((writes(&changes), changes.delete), ((0, 0, 1), vec!["web-earlier".to_owned()]));
    // Nor is a slice of an earlier Service made into one of this: the garbage collector is after it.
    cluster.slices.retain(|slice| slice.metadata.name == "web-staff");
    let mut earlier = cluster.slices[0].clone();
    earlier.metadata.owner_references[0].uid = "earlier-uid".to_owned();
    earlier.metadata.labels.insert(names::MANAGED_BY.to_owned(), CONTROLLER.to_owned());
    cluster.slices.push(earlier);
    assert_eq!(writes(&cluster.plan().changes), (1, 0, 1));
}

#[test]
fn edits_by_hand_are_put_right() {
    let edits: &[fn(&mut EndpointSlice)] = &[
        |slice| slice.endpoints.clear(),
        |slice| slice.endpoints[0].conditions.ready = Some(false),
        |slice| slice.endpoints[0].conditions.serving = None,
        |slice| slice.endpoints[0].addresses = vec!["10.9.9.9".to_owned()],
        |slice| slice.endpoints[0].target_ref = None,
        |slice| slice.endpoints[0].zone = Some("other".to_owned()),
        |slice| slice.endpoints.push(slice.endpoints[0].clone()),
        |slice| slice.ports.clear(),
        |slice| slice.metadata.labels.insert("x".to_owned(), "y".to_owned()).into_iter().for_each(drop),
    ];
    let mut cluster = Cluster::new(service(""), pods(0..3));
    cluster.sync();
    let right = cluster.slices.clone();
    for (at, edit) in edits.iter().enumerate() {
        edit(&mut cluster.slices[0]);
        assert_eq!(writes(&cluster.sync()), (0, 1, 0), "edit {at}");
        assert_eq!(writes(&cluster.sync()), (0, 0, 0), "edit {at}");
        assert_eq!((cluster.slices.len(), &cluster.slices[0].metadata), (1, &right[0].metadata), "edit {at}");
        cluster.slices[0].endpoints.sort_by(|a, b| a.addresses.cmp(&b.addresses));
        assert_eq!(cluster.slices, right, "edit {at}");
    }
}

#[test]
fn what_a_change_keeps_of_a_slice_is_kept() {
    let mut cluster = Cluster::new(service(""), pods(0..2));
    cluster.sync();
    let metadata = &mut cluster.slices[0].metadata;
    metadata.annotations.insert("mine".to_owned(), "yes".to_owned());
    metadata.annotations.insert(names::TRIGGER_TIME.to_owned(), "2026-01-01T00:00:00Z".to_owned());
    (metadata.uid, metadata.resource_version) = ("u".to_owned(), "7".to_owned());
    cluster.pods.pop();
    let changes = cluster.sync();
    let metadata = &changes.update[0].metadata;
    assert_eq!((metadata.uid.as_str(), metadata.resource_version.as_str()), ("u", "7"));
    assert_eq!(metadata.annotations.keys().collect::<Vec<_>>(), ["mine"]);
}

#[test]
fn a_service_that_goes_gets_no_new_slices() {
    let mut cluster = Cluster::new(service("metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}"), pods(0..1));
    assert_eq!(writes(&cluster.sync()), (0, 0, 0));
}

#[test]
fn missing_nodes_are_reported_once_and_tried_again() {
    let ghost = |name: &str| pod(name, "10.1.0.1", "spec: {nodeName: ghost}");
    let check = |pods: Vec<Pod>, expected: &str| {
        let outcome = Cluster::new(service("spec: {ipFamilies: [IPv4, IPv6]}"), pods).plan();
        let expected = format!("Error updating Endpoint Slices for Service default/web: {expected}");
        assert!(outcome.retry);
        assert_eq!(outcome.changes.notices, [Notice::warning("FailedToUpdateEndpointSlices", expected)]);
    };
    check(vec![ghost("a")], "skipping Pod a for Service default/web: Node ghost Not Found");
    check(
        vec![ghost("b"), ghost("a")],
        "[skipping Pod a for Service default/web: Node ghost Not Found, skipping Pod b for Service default/web: Node ghost Not Found]",
    );
}

#[test]
fn a_service_whose_pods_are_all_left_out_says_so() {
    let changes = Cluster::new(service(""), vec![pod("a", "10.1.0.1", "status: {phase: Failed}")]).sync();
    assert_eq!(changes.empty, Some(Reason::AllLeftOut { pods: 1 }));
}
