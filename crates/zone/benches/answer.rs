//! How long does an answer take, from the bytes of the query to those of the reply, and how long a change?

#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark looks at the clock and prints")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_api::source::Key;
use fairlead_api::view::{Endpoint, EndpointPort, EndpointSlice, Namespace, Protocol, Service, ServicePort};
use fairlead_zone::message::{self, Edns, Reading};
use fairlead_zone::{Change, Name, Options, Zone, rtype};

const ENDPOINTS: usize = 10;
const QUERIES: usize = 65_536;
const ROUNDS: usize = 7;

fn service(number: usize) -> Change {
    let mut service = Service::default();
    service.spec.cluster_ip = if number.is_multiple_of(4) { "None".to_owned() } else { address(10, number) };
    let port = ServicePort { name: "http".to_owned(), port: 80, ..ServicePort::default() };
    service.spec.ports = vec![port];
    Change::Service(Key::new("default", format!("service-{number}")), Some(Arc::new(service)))
}

fn slice(number: usize) -> Change {
    let endpoint = |place: usize| Endpoint {
        addresses: vec![address(11, number * ENDPOINTS + place)],
        hostname: Some(format!("host-{place}")),
        ..Endpoint::default()
    };
    let mut slice = EndpointSlice { endpoints: (0..ENDPOINTS).map(endpoint).collect(), ..EndpointSlice::default() };
    let (name, protocol) = (Some("http".to_owned()), Some(Protocol::Tcp));
    slice.ports = vec![EndpointPort { name, protocol, port: Some(80), ..EndpointPort::default() }];
    let label = ("kubernetes.io/service-name".to_owned(), format!("service-{number}"));
    slice.metadata.labels.extend([label]);
    Change::EndpointSlice(Key::new("default", format!("service-{number}-x")), Some(Arc::new(slice)))
}

fn address(first: u8, number: usize) -> String {
    format!("{first}.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255)
}

fn zone(services: usize) -> Zone {
    let zones = ["cluster.local", "in-addr.arpa", "ip6.arpa"].map(|zone| zone.parse().expect("a name")).to_vec();
    let mut zone = Zone::new(Options { zones, ttl: 30, ..Options::default() });
    let namespace = Change::Namespace(Key::new("", "default"), Some(Arc::new(Namespace::default())));
    zone.apply([namespace].into_iter().chain((0..services).map(service)).chain((0..services).map(slice)));
    zone
}

/// Queries for names of Services in an order that is not the one they were made in.
fn queries(services: usize, rtype: u16, name: impl Fn(usize) -> String) -> Vec<Vec<u8>> {
    let name = |number: usize| -> Name { name(number * 7919 % services).parse().expect("a name") };
    (0..QUERIES).map(|number| message::query(1, &name(number), rtype, Some(Edns::default()))).collect()
}

/// The best of some rounds, in nanoseconds for one query.
fn measure(zone: &Zone, queries: &[Vec<u8>]) -> u128 {
    let mut out = Vec::with_capacity(message::MAX_MESSAGE);
    let round = |out: &mut Vec<u8>| {
        let start = Instant::now();
        for (turn, bytes) in (0u32..).zip(queries) {
            if let Reading::Query(query) = message::read(black_box(bytes)) {
                black_box(message::reply(zone, &query, turn, query.limit(), out));
            }
        }
        start.elapsed()
    };
    let best = (0..ROUNDS).map(|_| round(&mut out)).min().unwrap_or(Duration::MAX);
    best.as_nanos() / queries.len() as u128
}

fn main() {
    println!("ns for one query, read and answered:");
    for services in [1_000, 10_000] {
        let start = Instant::now();
        let mut zone = zone(services);
        let made = start.elapsed();
        let suffix = "default.svc.cluster.local";
        // Service 4n is headless, the others have a cluster IP.
        let plain = |number: usize| format!("service-{}.{suffix}", number | 1);
        let headless = |number: usize| format!("service-{}.{suffix}", number & !3);
        let kinds = [
            ("A, one cluster IP", queries(services, rtype::A, plain)),
            ("AAAA, no data", queries(services, rtype::AAAA, plain)),
            ("A, 10 endpoints", queries(services, rtype::A, headless)),
            ("A, one endpoint by name", queries(services, rtype::A, |number| format!("host-3.{}", headless(number)))),
            ("A, no such name", queries(services, rtype::A, |number| format!("www.{number}.com.{suffix}"))),
            ("SRV, one port", queries(services, rtype::SRV, |number| format!("_http._tcp.{}", plain(number)))),
            ("SRV, 10 endpoints", queries(services, rtype::SRV, |number| format!("_http._tcp.{}", headless(number)))),
            ("A, not ours", queries(services, rtype::A, |number| format!("www-{number}.example.com"))),
        ];
        println!("{services} Services with {ENDPOINTS} endpoints each, made in {made:.1?}");
        for (what, queries) in kinds {
            println!("  {what:<26}{:>6}", measure(&zone, &queries));
        }
        let changes: Vec<Change> = (0..services).map(slice).collect();
        let start = Instant::now();
        zone.apply(changes);
        println!("  {:<26}{:>6}", "a slice told again", start.elapsed().as_nanos() / services as u128);
    }
}
