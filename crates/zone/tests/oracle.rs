//! Messages as others see them: any bytes are read without harm, and what we write is read by another's reader as we meant it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on has failed")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use domain::base::message::RecordSection;
use domain::base::rdata::ComposeRecordData;
use domain::base::{self, ParsedRecord};
use domain::rdata::AllRecordData;
use fairlead_api::source::Key;
use fairlead_api::view::{Endpoint, EndpointPort, EndpointSlice, Namespace, Service, ServicePort, ServiceType};
use fairlead_zone::message::{self, Builder, Edns, Head, MAX_MESSAGE, Message, Outcome, Query, Rcode, Reading, Record};
use fairlead_zone::{Change, Name, Options, PodRecords, Zone, rtype};
use proptest::prelude::*;

/// A cluster with a name of each kind; `count` endpoints behind the headless Service.
fn zone(count: u8) -> Zone {
    let mut zone = Zone::new(Options {
        zones: ["cluster.local", "in-addr.arpa"].map(|zone| zone.parse().unwrap()).to_vec(),
        pods: PodRecords::Insecure,
        local_addresses: vec![IpAddr::V4(Ipv4Addr::new(10, 1, 0, 0))],
        ..Options::default()
    });
    let port = ServicePort { name: "http".to_owned(), port: 80, ..ServicePort::default() };
    let mut plain = Service::default();
    plain.spec.cluster_ips = vec!["10.0.0.1".to_owned(), "fd00::1".to_owned()];
    plain.spec.ports = vec![port];
    let mut headless = Service::default();
    headless.spec.cluster_ip = "None".to_owned();
    let mut alias = Service::default();
    alias.spec.kind = ServiceType::ExternalName;
    alias.spec.external_name = "db.default.svc.cluster.local".to_owned();
    let endpoint = |last: u8| Endpoint {
        addresses: vec![format!("10.1.0.{last}")],
        hostname: Some(format!("db-{last}")),
        ..Endpoint::default()
    };
    let mut slice = EndpointSlice { endpoints: (0..count).map(endpoint).collect(), ..EndpointSlice::default() };
    slice.ports = vec![EndpointPort { name: Some("sql".to_owned()), port: Some(5432), ..EndpointPort::default() }];
    slice.metadata.labels.insert("kubernetes.io/service-name".to_owned(), "db".to_owned());
    let key = |name: &str| Key::new("default", name);
    zone.apply([
        Change::Namespace(Key::new("", "default"), Some(Arc::new(Namespace::default()))),
        Change::Service(key("web"), Some(Arc::new(plain))),
        Change::Service(key("db"), Some(Arc::new(headless))),
        Change::Service(key("other"), Some(Arc::new(alias))),
        Change::EndpointSlice(key("db-x"), Some(Arc::new(slice))),
    ]);
    zone
}

const NAMES: [&str; 12] = [
    "web.default.svc.cluster.local",
    "db.default.svc.cluster.local",
    "OTHER.default.svc.cluster.local",
    "_http._tcp.web.default.svc.cluster.local",
    "_sql._tcp.db.default.svc.cluster.local",
    "db-1.db.default.svc.cluster.local",
    "10-9-8-7.default.pod.cluster.local",
    "1.0.0.10.in-addr.arpa",
    "1.0.1.10.in-addr.arpa",
    "cluster.local",
    "nosuch.default.svc.cluster.local",
    "dns-version.cluster.local",
];
const TYPES: [u16; 9] =
    [rtype::A, rtype::AAAA, rtype::SRV, rtype::PTR, rtype::NS, rtype::SOA, rtype::CNAME, rtype::TXT, rtype::ANY];

fn read(bytes: &[u8]) -> Query<'_> {
    match message::read(bytes) {
        Reading::Query(query) => query,
        other => panic!("{other:?}"),
    }
}

/// Records of a section as the other reader has them: owner, type, class, TTL, data with names written out.
fn theirs(section: RecordSection<'_, [u8]>) -> Vec<Record> {
    let one = |record: ParsedRecord<'_, [u8]>| {
        let record = record.into_any_record::<AllRecordData<_, _>>().unwrap();
        let mut rdata = Vec::new();
        record.data().compose_rdata(&mut rdata).unwrap();
        Record {
            name: record.owner().to_string().parse().unwrap(),
            rtype: record.rtype().to_int(),
            class: record.class().to_int(),
            ttl: record.ttl().as_secs(),
            rdata: rdata.into(),
        }
    };
    section.map(|record| one(record.unwrap())).filter(|record| record.rtype != rtype::OPT).collect()
}

/// Reads a message with both readers, which must agree; returns what they read.
fn agreed(bytes: &[u8]) -> Message {
    let ours = Message::parse(bytes).unwrap();
    let other = base::Message::from_slice(bytes).unwrap();
    let (_, answer, authority, additional) = other.sections().unwrap();
    assert_eq!(ours.answer, theirs(answer));
    assert_eq!(ours.authority, theirs(authority));
    assert_eq!(ours.additional, theirs(additional));
    assert_eq!(ours.rcode, Rcode(other.opt_rcode().to_int()));
    assert_eq!(ours.edns.is_some(), other.opt().is_some());
    assert_eq!(ours.is_truncated(), other.header().tc());
    ours
}

#[test]
fn replies_are_read_as_they_were_meant() {
    let zone = zone(20);
    let mut out = Vec::new();
    for (name, rtype) in NAMES.iter().flat_map(|name| TYPES.map(|rtype| (name.parse::<Name>().unwrap(), rtype))) {
        for edns in [None, Some(Edns { size: 4096, dnssec_ok: true })] {
            let bytes = message::query(1, &name, rtype, edns);
            let query = read(&bytes);
            message::reply(&zone, &query, 3, MAX_MESSAGE, &mut out);
            let full = agreed(&out);
            assert_eq!(full.question, Some((name.clone(), rtype, 1)));
            for limit in [512, 300, 120] {
                message::reply(&zone, &query, 3, limit, &mut out);
                let cut = agreed(&out);
                assert!(out.len() <= limit.max(100), "{name} {rtype} {limit}: {}", out.len());
                assert!(cut.answer.iter().all(|record| full.answer.contains(record)));
                let complete = cut.answer == full.answer && cut.additional == full.additional;
                assert_eq!(cut.is_truncated(), !complete, "{name} {rtype} {limit}");
            }
        }
    }
}

#[test]
fn turns_go_round() {
    let zone = zone(5);
    let name: Name = NAMES[1].parse().unwrap();
    let bytes = message::query(1, &name, rtype::A, None);
    let mut out = Vec::new();
    let mut firsts = Vec::new();
    for turn in 0..5 {
        assert_eq!(message::reply(&zone, &read(&bytes), turn, 512, &mut out), Outcome::Answered);
        firsts.push(agreed(&out).answer[0].rdata[3]);
    }
    firsts.sort_unstable();
    assert_eq!(firsts, [0, 1, 2, 3, 4]);
}

fn name() -> impl Strategy<Value = Name> {
    let label = prop::collection::vec(prop_oneof![Just(b'a'), Just(b'B'), Just(b'.'), any::<u8>()], 1..6);
    prop::collection::vec(label, 0..6).prop_map(|labels| Name::from_labels(labels.iter().map(Vec::as_slice)).unwrap())
}

fn record() -> impl Strategy<Value = Record> {
    let join = |parts: Vec<Vec<u8>>| parts.concat();
    let wire = || name().prop_map(|name| name.wire().to_vec());
    let data = prop_oneof![
        any::<[u8; 4]>().prop_map(|ip| (rtype::A, ip.to_vec())),
        any::<[u8; 16]>().prop_map(|ip| (rtype::AAAA, ip.to_vec())),
        wire().prop_map(|name| (rtype::CNAME, name)),
        (any::<[u8; 2]>(), wire()).prop_map(move |(head, name)| (rtype::MX, join(vec![head.to_vec(), name]))),
        (any::<[u8; 6]>(), wire()).prop_map(move |(head, name)| (rtype::SRV, join(vec![head.to_vec(), name]))),
        (wire(), wire(), any::<[u8; 20]>())
            .prop_map(move |(server, mailbox, end)| (rtype::SOA, join(vec![server, mailbox, end.to_vec()]))),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|data| (4242, data)),
    ];
    // The other reader takes a TTL with the highest bit set for none.
    (name(), data, 0..1u32 << 31).prop_map(|(name, (rtype, data), ttl)| Record::new(name, rtype, ttl, &data))
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let zone = zone(3);
        let mut out = Vec::new();
        let _ = Message::parse(&bytes);
        match message::read(&bytes) {
            Reading::Ignored => {}
            Reading::Rejected(rejection) => rejection.write(&mut out),
            Reading::Query(query) => drop(message::reply(&zone, &query, 0, query.limit(), &mut out)),
        }
        prop_assert!(out.len() <= 1232);
    }

    #[test]
    fn queries_with_a_few_bytes_changed_are_answered_in_bounds(
        which in 0..NAMES.len(),
        rtype in prop::sample::select(&TYPES[..]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let zone = zone(30);
        let mut bytes = message::query(1, &NAMES[which].parse().unwrap(), rtype, Some(Edns::default()));
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        let mut out = Vec::new();
        match message::read(&bytes) {
            Reading::Ignored => {}
            Reading::Rejected(rejection) => {
                rejection.write(&mut out);
                prop_assert!(Message::parse(&out).is_ok());
            }
            Reading::Query(query) => {
                let outcome = message::reply(&zone, &query, 7, query.limit(), &mut out);
                prop_assert!(out.len() <= query.limit());
                prop_assert!(zone.why(&query.question).is_none_or(|why| !why.to_string().is_empty()));
                let _ = zone.search(&query.question, "default", &[]);
                prop_assert_eq!(out.is_empty(), matches!(outcome, Outcome::NotOurs | Outcome::Alias(_)));
                prop_assert!(out.is_empty() || Message::parse(&out).is_ok());
            }
        }
    }

    #[test]
    fn what_is_built_is_read_again(
        asked in name(),
        answer in prop::collection::vec(record(), 0..8),
        additional in prop::collection::vec(record(), 0..8),
        limit in prop_oneof![Just(MAX_MESSAGE), 400..600usize],
    ) {
        let bytes = message::query(9, &asked, rtype::ANY, Some(Edns::default()));
        let query = read(&bytes);
        let mut out = Vec::new();
        let mut builder = Builder::new(&query, Head::default(), limit, &mut out);
        answer.iter().for_each(|record| builder.answer(record));
        additional.iter().for_each(|record| builder.additional(record));
        let truncated = builder.finish();
        prop_assert!(out.len() <= limit);
        let message = agreed(&out);
        prop_assert_eq!(message.is_truncated(), truncated);
        let (sent, got) = ([answer, additional].concat(), [message.answer, message.additional].concat());
        prop_assert_eq!(&got[..], &sent[..got.len()]);
        prop_assert_eq!(truncated, got.len() < sent.len());
    }
}

#[test]
fn an_address_of_each_family_is_one() {
    let zone = zone(1);
    let mut out = Vec::new();
    let check = |rtype, expect: &[u8], out: &mut Vec<u8>| {
        let bytes = message::query(1, &NAMES[0].parse().unwrap(), rtype, None);
        message::reply(&zone, &read(&bytes), 0, 512, out);
        assert_eq!(&*agreed(out).answer[0].rdata, expect);
    };
    check(rtype::A, &[10, 0, 0, 1], &mut out);
    check(rtype::AAAA, &"fd00::1".parse::<Ipv6Addr>().unwrap().octets(), &mut out);
}
