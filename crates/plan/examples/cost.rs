//! What a change of one slice costs among many Services: `cargo run --release -p fairlead-plan --example cost`.

#![allow(clippy::disallowed_methods, clippy::print_stdout)] // measures, and says what it measured

use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_api::source::Key;
use fairlead_api::view::{Endpoint, EndpointPort, EndpointSlice, Service, ServicePort};
use fairlead_plan::{Change, Ingress, LocalDetection, Node, Packet, Planner, decide};

const ENDPOINTS: usize = 10;
const CHANGES: usize = 20_000;
/// As many as a mirror hands out at once.
const BATCH: usize = 1024;

fn main() {
    println!(
        "{:>9} {:>14} {:>12} {:>12} {:>12} {:>10}",
        "services", "all at once", "one slice", "no change", "decide", "memory"
    );
    // The largest first: what is measured of memory is what was not there before.
    for services in [40_000, 10_000, 1_000, 100] {
        measure(services);
    }
    measure_large();
}

/// One slice among the hundred of a Service with 10,000 endpoints.
fn measure_large() {
    let mut planner = Planner::default();
    planner.apply([service(0)]);
    let part = |at: usize, version| rename(hundred(at, version), at);
    planner.apply((0..100).map(|at| part(at, 0)));
    let changes = (0..500).map(|at| part(at % 100, at + 1)).collect();
    let one = median(changes, |change| assert_eq!(planner.apply([change]).pools.len(), 1));
    println!("one slice of a Service with 100 slices of 100 endpoints: {one:.2?}");
}

fn hundred(at: usize, version: usize) -> EndpointSlice {
    let mut slice = EndpointSlice::default();
    slice.metadata.labels.insert("kubernetes.io/service-name".to_owned(), name(0));
    slice.ports = vec![EndpointPort { name: Some("http".to_owned()), port: Some(8080), ..EndpointPort::default() }];
    let addresses = (1..100).map(|place| place * 100 + at).chain([20_000 + version]);
    slice.endpoints =
        addresses.map(|at| Endpoint { addresses: vec![address(128, at)], ..Endpoint::default() }).collect();
    slice
}

fn rename(slice: EndpointSlice, at: usize) -> Change {
    Change::Slice(Key::new("default", format!("part-{at}")), Some(Arc::new(slice)))
}

fn measure(services: usize) {
    let before = memory();
    let range = "10.128.0.0/9".parse().expect("a range");
    let mut planner =
        Planner::new(Node { name: "n1".to_owned(), detection: LocalDetection::Ranges(vec![range]), ..Node::default() });
    let objects: Vec<Change> = (0..services).flat_map(|at| [service(at), slice(at, 0)]).collect();
    let held = memory();
    let start = Instant::now();
    let mut objects = objects.into_iter();
    while objects.len() > 0 {
        planner.apply(objects.by_ref().take(BATCH));
    }
    let full = start.elapsed();
    let kept = memory().saturating_sub(held);

    let changes: Vec<Change> = (0..CHANGES).map(|at| slice(at * 7919 % services, at / services + 1)).collect();
    let again = changes.last().cloned().expect("at least one change");
    let one = median(changes, |change| assert_eq!(planner.apply([change]).pools.len(), 1));
    let none = median(vec![again; CHANGES], |change| assert!(planner.apply([change]).is_empty()));
    let decided = time_decide(&planner, services);
    println!(
        "{services:>9} {full:>14.2?} {one:>12.2?} {none:>12.2?} {decided:>12.2?} {:>6} KiB (objects {} KiB)",
        kept,
        held - before
    );
}

/// What doing something to one of many takes. Not the mean: other work of the machine is not ours.
fn median<T>(all: Vec<T>, mut act: impl FnMut(T)) -> Duration {
    let mut times: Vec<Duration> = all
        .into_iter()
        .map(|one| {
            let start = Instant::now();
            act(one);
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn time_decide(planner: &Planner, services: usize) -> Duration {
    median((0..CHANGES).collect(), |at| {
        let dst = address(96, at % services).parse().expect("an address");
        let src = "10.128.0.9".parse().expect("an address");
        let packet =
            Packet { src, dst, port: 80, protocol: Default::default(), from: Ingress::Interface(String::new()) };
        assert!(!decide(planner.plan(), &packet).steps.is_empty());
    })
}

fn address(second: usize, at: usize) -> String {
    format!("10.{}.{}.{}", second + at / 65_536, at / 256 % 256, at % 256)
}

fn name(at: usize) -> String {
    format!("service-{at}")
}

fn service(at: usize) -> Change {
    let mut service = Service::default();
    service.spec.cluster_ip = address(96, at);
    service.spec.ports = vec![ServicePort { name: "http".to_owned(), port: 80, ..ServicePort::default() }];
    Change::Service(Key::new("default", name(at)), Some(Arc::new(service)))
}

/// Ten endpoints, of which one is another in each version.
fn slice(at: usize, version: usize) -> Change {
    let mut slice = EndpointSlice::default();
    slice.metadata.labels.insert("kubernetes.io/service-name".to_owned(), name(at));
    let port = EndpointPort { name: Some("http".to_owned()), port: Some(8080), ..EndpointPort::default() };
    slice.ports = vec![port];
    let first = at * ENDPOINTS;
    let changed = first + 4_000_000 + version % 1000;
    let addresses = (first..first + ENDPOINTS - 1).chain([changed]);
    slice.endpoints = addresses
        .map(|at| Endpoint {
            addresses: vec![address(128, at)],
            node_name: Some("n2".to_owned()),
            ..Endpoint::default()
        })
        .collect();
    Change::Slice(Key::new("default", format!("{}-1", name(at))), Some(Arc::new(slice)))
}

/// Memory of this process in KiB.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
