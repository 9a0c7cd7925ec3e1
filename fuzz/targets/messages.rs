//! Can any message break the reading of queries and replies, or a reply be longer than the client takes?
#![no_main]

use std::sync::{Arc, LazyLock};

use fairlead_api::source::Key;
use fairlead_api::view::{Namespace, Service};
use fairlead_zone::message::{self, Builder, Head, MAX_MESSAGE, Message, Reading};
use fairlead_zone::{Change, Options, PodRecords, Zone};
use libfuzzer_sys::fuzz_target;

static ZONE: LazyLock<Zone> = LazyLock::new(|| {
    let zones = ["cluster.local", "in-addr.arpa", "ip6.arpa"].map(|zone| zone.parse().expect("a name")).to_vec();
    let mut zone = Zone::new(Options { zones, pods: PodRecords::Insecure, zonal: true, ..Options::default() });
    let mut web = Service::default();
    web.spec.cluster_ip = "10.0.0.1".to_owned();
    zone.apply([
        Change::Namespace(Key::new("", "default"), Some(Arc::new(Namespace::default()))),
        Change::Service(Key::new("default", "web"), Some(Arc::new(web))),
    ]);
    zone
});

fuzz_target!(|input: &[u8]| {
    let mut out = Vec::new();
    match message::read(input) {
        Reading::Ignored => {}
        Reading::Rejected(rejection) => {
            rejection.write(&mut out);
            Message::parse(&out).expect("what we write can be read");
        }
        Reading::Query(query) => {
            message::reply(&ZONE, &query, 0, query.limit(), &mut out);
            assert!(out.len() <= query.limit());
            assert!(out.is_empty() || Message::parse(&out).is_ok());
        }
    }
    // What an upstream server sends is written again with other pointers, and means the same.
    let Ok(message) = Message::parse(input) else { return };
    let Some((name, rtype, _)) = &message.question else { return };
    let bytes = message::query(1, name, *rtype, None);
    let Reading::Query(query) = message::read(&bytes) else { return };
    let mut builder = Builder::new(&query, Head::default(), MAX_MESSAGE, &mut out);
    message.answer.iter().for_each(|record| builder.answer(record));
    if !builder.finish() {
        assert_eq!(Message::parse(&out).expect("what we write can be read").answer, message.answer);
    }
});
