//! Whatever changes came in which order: a zone is the one that would be made of the cluster as it is.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use fairlead_api::selector::LabelSelector;
use fairlead_api::source::Key;
use fairlead_api::view::{
    AddressType, Endpoint, EndpointConditions, EndpointPort, EndpointSlice, Meta, Namespace, ObjectReference, Pod,
    Service, ServicePort, ServiceType,
};
use fairlead_zone::{Answer, Change, Name, Options, PodRecords, Question, Zone, pointer_name, rtype};
use proptest::prelude::*;

const SPACES: [&str; 2] = ["default", "shop"];
const NAMES: [&str; 3] = ["web", "db", "a.b"];
const LABELS: [(&str, &str); 2] = [("expose", "yes"), ("expose", "no")];

/// A cluster, and the zone that followed its changes.
#[derive(Default)]
struct Cluster {
    services: BTreeMap<Key, Arc<Service>>,
    slices: BTreeMap<Key, Arc<EndpointSlice>>,
    pods: BTreeMap<Key, Arc<Pod>>,
    namespaces: BTreeMap<Key, Arc<Namespace>>,
}

impl Cluster {
    fn take(&mut self, change: Change) {
        fn put<T>(table: &mut BTreeMap<Key, Arc<T>>, key: Key, value: Option<Arc<T>>) {
            match value {
                Some(value) => drop(table.insert(key, value)),
                None => drop(table.remove(&key)),
            }
        }
        match change {
            Change::Service(key, value) => put(&mut self.services, key, value),
            Change::EndpointSlice(key, value) => put(&mut self.slices, key, value),
            Change::Pod(key, value) => put(&mut self.pods, key, value),
            Change::Namespace(key, value) => put(&mut self.namespaces, key, value),
        }
    }

    fn zone(self, options: Options) -> Zone {
        let mut zone = Zone::new(options);
        zone.apply(self.pods.into_iter().map(|(key, value)| Change::Pod(key, Some(value))));
        zone.apply(self.slices.into_iter().map(|(key, value)| Change::EndpointSlice(key, Some(value))));
        zone.apply(self.services.into_iter().map(|(key, value)| Change::Service(key, Some(value))));
        zone.apply(self.namespaces.into_iter().map(|(key, value)| Change::Namespace(key, Some(value))));
        zone
    }
}

fn key() -> impl Strategy<Value = Key> {
    (0..2usize, 0..3usize).prop_map(|(space, name)| Key::new(SPACES[space], NAMES[name]))
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0..6u8).prop_map(|last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))),
        (0..3u16).prop_map(|last| IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last))),
    ]
}

fn meta() -> impl Strategy<Value = Meta> {
    (0..3usize, 0..4usize).prop_map(|(label, service)| {
        let mut meta = Meta::default();
        meta.labels.extend(LABELS.get(label).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let service = NAMES.get(service).map(|name| ("kubernetes.io/service-name".to_owned(), (*name).to_owned()));
        meta.labels.extend(service);
        meta
    })
}

fn service() -> impl Strategy<Value = Service> {
    let kind = prop_oneof![Just(0), Just(1), Just(2)];
    (meta(), kind, prop::collection::vec(address(), 0..3), 0..3i32).prop_map(|(metadata, kind, addresses, ports)| {
        let mut service = Service { metadata, ..Service::default() };
        let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        match kind {
            0 => service.spec.cluster_ip = "None".to_owned(),
            1 => {
                service.spec.kind = ServiceType::ExternalName;
                service.spec.external_name = texts.first().cloned().unwrap_or("web.shop.svc.cluster.local".to_owned());
            }
            _ => {
                service.spec.cluster_ip = texts.first().cloned().unwrap_or_default();
                service.spec.cluster_ips = texts;
            }
        }
        let port = |number: i32| ServicePort { name: format!("p{number}"), port: number, ..ServicePort::default() };
        service.spec.ports = (1..=ports).map(port).collect();
        service
    })
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    let ready = prop_oneof![Just(None), Just(Some(true)), Just(Some(false))];
    (prop::collection::vec(address(), 1..3), ready, 0..3usize, any::<bool>()).prop_map(
        |(addresses, ready, host, zone)| Endpoint {
            addresses: addresses.iter().map(ToString::to_string).collect(),
            conditions: EndpointConditions { ready, ..EndpointConditions::default() },
            hostname: (host == 1).then(|| "h".to_owned()),
            target_ref: (host == 2).then(|| ObjectReference { name: "pod".to_owned(), ..ObjectReference::default() }),
            zone: zone.then(|| "z".to_owned()),
            ..Endpoint::default()
        },
    )
}

fn slice() -> impl Strategy<Value = EndpointSlice> {
    (meta(), prop::collection::vec(endpoint(), 0..4), 0..3i32, 0..8u8).prop_map(|(metadata, endpoints, ports, kind)| {
        let port = |number: i32| EndpointPort {
            name: Some(format!("p{number}")),
            port: Some(number),
            ..EndpointPort::default()
        };
        let address_type = if kind == 0 { AddressType::Fqdn } else { AddressType::V4 };
        EndpointSlice { metadata, address_type, endpoints, ports: (1..=ports).map(port).collect() }
    })
}

fn pod() -> impl Strategy<Value = Pod> {
    (meta(), address(), 0..5u8).prop_map(|(metadata, address, state)| {
        let mut pod = Pod { metadata, ..Pod::default() };
        pod.status.pod_ip = address.to_string();
        match state {
            0 => pod.status.phase = "Failed".to_owned(),
            1 => pod.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".to_owned()),
            _ => {}
        }
        pod
    })
}

fn change() -> impl Strategy<Value = Change> {
    let namespace = meta().prop_map(|metadata| Namespace { metadata, ..Namespace::default() });
    let space = (0..2usize).prop_map(|space| Key::new("", SPACES[space]));
    prop_oneof![
        3 => (key(), prop::option::weighted(0.8, service().prop_map(Arc::new))).prop_map(|(k, v)| Change::Service(k, v)),
        5 => (key(), prop::option::weighted(0.8, slice().prop_map(Arc::new)))
            .prop_map(|(k, v)| Change::EndpointSlice(k, v)),
        2 => (key(), prop::option::weighted(0.8, pod().prop_map(Arc::new))).prop_map(|(k, v)| Change::Pod(k, v)),
        2 => (space, prop::option::weighted(0.8, namespace.prop_map(Arc::new)))
            .prop_map(|(k, v)| Change::Namespace(k, v)),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    (0..3u8, any::<[bool; 6]>()).prop_map(|(pods, [labels, spaces, pod_names, noendpoints, empty, zonal])| Options {
        zones: ["cluster.local", "in-addr.arpa", "ip6.arpa"].map(|zone| zone.parse().unwrap()).to_vec(),
        pods: [PodRecords::Disabled, PodRecords::Insecure, PodRecords::Verified][usize::from(pods)],
        namespaces: if spaces { vec!["shop".to_owned()] } else { Vec::new() },
        labels: labels.then(|| LabelSelector::parse("expose!=no").unwrap()),
        endpoint_pod_names: pod_names,
        noendpoints: noendpoints && labels,
        ignore_empty_service: empty,
        zonal,
        local_addresses: vec![IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))],
        ..Options::default()
    })
}

/// Questions that between them look at all a zone keeps.
fn questions() -> Vec<Question> {
    let mut names: Vec<Name> = (0..6).map(|last| pointer_name(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)))).collect();
    let prefixes = ["", "h.", "pod.", "10-0-0-1.", "_p1._tcp.", "_p2._tcp.", "z.pin._zone.", "y.prefer._zone."];
    for prefix in prefixes {
        for (space, name) in SPACES.iter().flat_map(|space| NAMES.iter().map(move |name| (space, name))) {
            names.push(format!("{prefix}{name}.{space}.svc.cluster.local").parse().unwrap());
        }
    }
    names.extend(
        ["10-0-0-1.shop.pod.cluster.local", "cluster.local", "shop.svc.cluster.local"].map(|n| n.parse().unwrap()),
    );
    let types = [rtype::A, rtype::AAAA, rtype::SRV, rtype::PTR, rtype::NS, rtype::CNAME, rtype::TXT];
    names.iter().flat_map(|name| types.map(|rtype| Question::new(name, rtype))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_zone_that_followed_changes_is_the_one_made_anew(
        changes in prop::collection::vec(prop::collection::vec(change(), 1..4), 0..15),
        options in options(),
    ) {
        let (mut zone, mut cluster) = (Zone::new(options.clone()), Cluster::default());
        for batch in changes {
            batch.iter().cloned().for_each(|change| cluster.take(change));
            zone.apply(batch);
        }
        let anew = cluster.zone(options);
        prop_assert!(zone == anew, "{zone:#?}\nis not\n{anew:#?}");
        for question in questions() {
            prop_assert_eq!(zone.answer(&question), anew.answer(&question), "{:?}", question);
            prop_assert!(!matches!(anew.answer(&question), Answer::NotOurs | Answer::Refused));
            let found = matches!(zone.answer(&question), Answer::Records(_) | Answer::Alias(_));
            prop_assert_eq!(zone.why(&question).is_none(), found, "{:?}", question);
        }
    }
}
