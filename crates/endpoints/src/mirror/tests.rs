//! What is mirrored, row by row.

use fairlead_api::value::json;

use crate::sample::{Cluster, over, service, text};

use super::*;

fn endpoints(fields: &str) -> Endpoints {
    over(json!({"metadata": {"name": "web", "namespace": "default", "uid": "e"}}), fields)
}

/// Writes until nothing changes, which is after one write.
fn sync(cluster: &mut Cluster, endpoints: Option<&Endpoints>, service: Option<&Service>) -> Changes<EndpointSlice> {
    let plan = |cluster: &Cluster| {
        let slices: Vec<_> = cluster.slices.iter().collect();
        reconcile(&Input { endpoints, service, slices: &slices, max_addresses: 3 })
    };
    let changes = plan(cluster);
    cluster.write(&changes);
    assert_eq!(plan(cluster).writes(), 0, "a second look changes nothing");
    changes
}

fn bare() -> Service {
    service("spec: {selector: null}")
}

fn check(fields: &str, expected: &[&str]) {
    let mut cluster = Cluster::new(bare(), Vec::new());
    sync(&mut cluster, Some(&endpoints(fields)), Some(&bare()));
    assert_eq!(text(&cluster.slices), expected, "{fields}");
}

#[test]
fn every_subset_and_family_is_a_slice() {
    check("", &[]);
    check("subsets: [{addresses: [{ip: 10.9.0.1}]}]", &["IPv4 | =10.9.0.1 ready"]);
    check(
        "subsets: [{addresses: [{ip: 10.9.0.1, hostname: h, nodeName: x, targetRef: {kind: Pod, name: p}}], \
         notReadyAddresses: [{ip: 10.9.0.2}, {ip: 'FD00::2'}], ports: [{port: 80, appProtocol: http}]}]",
        &["IPv4 :80/TCP/http | p=10.9.0.1 \"h\" ready @x | =10.9.0.2", "IPv6 :80/TCP/http | =fd00::2"],
    );
    check(
        "subsets: [{addresses: [{ip: 10.9.0.1}], ports: [{port: 80}]}, {addresses: [{ip: 10.9.0.2}], ports: [{port: 81}]}]",
        &["IPv4 :80/TCP | =10.9.0.1 ready", "IPv4 :81/TCP | =10.9.0.2 ready"],
    );
}

#[test]
fn what_is_said_to_be_ready_and_not_is_not() {
    check(
        "subsets: [{addresses: [{ip: 10.9.0.1}], notReadyAddresses: [{ip: 10.9.0.1}], ports: [{port: 80}]}]",
        &["IPv4 :80/TCP | =10.9.0.1"],
    );
}

#[test]
fn only_the_ready_condition_is_known() {
    let mut cluster = Cluster::new(bare(), Vec::new());
    sync(&mut cluster, Some(&endpoints("subsets: [{addresses: [{ip: 10.9.0.1}]}]")), Some(&bare()));
    let conditions = cluster.slices[0].endpoints[0].conditions;
    assert_eq!((conditions.ready, conditions.serving, conditions.terminating), (Some(true), None, None));
}

#[test]
fn metadata_is_that_of_the_endpoints() {
    let fields = "{metadata: {labels: {a: b}, annotations: {c: d, kubectl.kubernetes.io/last-applied-configuration: x, \
                  endpoints.kubernetes.io/last-change-trigger-time: z}}, subsets: [{addresses: [{ip: 10.9.0.1}]}]}";
    let mut cluster = Cluster::new(bare(), Vec::new());
    let changes = sync(&mut cluster, Some(&endpoints(fields)), Some(&bare()));
    let metadata = &changes.create[0].metadata;
    assert_eq!(metadata.generate_name, "web-");
    assert_eq!(metadata.annotations.keys().collect::<Vec<_>>(), ["c"]);
    assert_eq!(metadata.labels.values().collect::<Vec<_>>(), ["b", CONTROLLER, "web"]);
    assert_eq!(metadata.owner_references, [owner("Endpoints", &endpoints("").metadata)]);
}

#[test]
fn slices_are_used_again_and_follow_their_endpoints() {
    let one = "subsets: [{addresses: [{ip: 10.9.0.1}], ports: [{port: 80}]}]";
    let writes = |changes: Changes<EndpointSlice>| (changes.create.len(), changes.update.len(), changes.delete.len());
    let mut cluster = Cluster::new(bare(), Vec::new());
    for (fields, expected) in [
        (one, (1, 0, 0)),
        ("subsets: [{addresses: [{ip: 10.9.0.2}], ports: [{port: 80}]}]", (0, 1, 0)),
        ("subsets: [{addresses: [{ip: 10.9.0.2}], ports: [{port: 81}]}]", (0, 1, 0)),
        ("subsets: [{addresses: [{ip: 10.9.0.2}, {ip: 'fd00::1'}], ports: [{port: 81}]}]", (1, 0, 0)),
        ("{metadata: {labels: {a: b}}, subsets: [{addresses: [{ip: 10.9.0.2}], ports: [{port: 81}]}]}", (0, 1, 1)),
        ("{metadata: {uid: other}, subsets: [{addresses: [{ip: 10.9.0.2}], ports: [{port: 81}]}]}", (0, 1, 0)),
        ("{metadata: {uid: other}}", (0, 0, 1)),
    ] {
        assert_eq!(writes(sync(&mut cluster, Some(&endpoints(fields)), Some(&bare()))), expected, "{fields}");
    }
}

#[test]
fn what_is_not_to_be_mirrored_is_taken_back() {
    let with = |fields: &str| endpoints(&format!("{{{fields}subsets: [{{addresses: [{{ip: 10.9.0.1}}]}}]}}"));
    let plain = with("");
    let skip = with("metadata: {labels: {endpointslice.kubernetes.io/skip-mirror: 'true'}}, ");
    let lock = with("metadata: {annotations: {control-plane.alpha.kubernetes.io/leader: x}}, ");
    let (without, selecting) = (bare(), service(""));
    for (endpoints, service, reason) in [
        (None, Some(&without), Reason::NoEndpoints),
        (Some(&skip), Some(&without), Reason::SkipMirror),
        (Some(&lock), Some(&without), Reason::LeaderElection),
        (Some(&plain), None, Reason::NoService),
        (Some(&plain), Some(&selecting), Reason::HasSelector),
    ] {
        let mut cluster = Cluster::new(bare(), Vec::new());
        sync(&mut cluster, Some(&plain), Some(&without));
        let mut staff = cluster.slices[0].clone();
        staff.metadata.name = "web-staff".to_owned();
        staff.metadata.labels.insert(names::MANAGED_BY.to_owned(), "staff".to_owned());
        cluster.slices.push(staff);
        let changes = sync(&mut cluster, endpoints, service);
        assert_eq!((changes.delete.len(), changes.empty), (1, Some(reason)));
        assert_eq!(cluster.slices.len(), 1, "the slice of others stays");
    }
}

#[test]
fn invalid_and_too_many_addresses_are_reported() {
    let mut cluster = Cluster::new(bare(), Vec::new());
    let fields = "subsets: [{addresses: [{ip: 10.9.0.1}, {ip: 10.9.0.2}, {ip: nonsense}], \
                  notReadyAddresses: [{ip: 10.9.0.3}, {ip: 10.9.0.4}]}]";
    let changes = sync(&mut cluster, Some(&endpoints(fields)), Some(&bare()));
    assert_eq!(text(&cluster.slices), ["IPv4 | =10.9.0.1 ready | =10.9.0.2 ready | =10.9.0.3"]);
    let messages: Vec<_> = changes.notices.iter().map(|notice| (notice.reason, notice.message.as_str())).collect();
    assert_eq!(
        messages,
        [
            ("InvalidIPAddress", "Skipped 1 invalid IP addresses when mirroring to EndpointSlices"),
            (
                "TooManyAddressesToMirror",
                "A max of 3 addresses can be mirrored to EndpointSlices per Endpoints subset. 2 addresses were skipped"
            ),
        ]
    );
    assert_eq!(changes.left_out.len(), 2);
}
