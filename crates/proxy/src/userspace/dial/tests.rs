use super::*;
use std::sync::RwLock;
use std::time::Instant;

use fairlead_api::source::Key;
use fairlead_plan::{Endpoint, Family, Pool, PoolKey, PortKey, Protocol, Scope};

use crate::userspace::target::{Captured, Port};

fn target(endpoints: u8) -> Arc<Target> {
    let service = Arc::new(Key::new("default", "web"));
    let port = PortKey { service, name: "http".into(), protocol: Protocol::Tcp, family: Family::V4 };
    let pool = PoolKey { port: port.clone(), scope: Scope::Cluster };
    let endpoint = |last: u8| Endpoint {
        ip: IpAddr::from([10, 0, 0, last]),
        port: 80,
        local: false,
        weight: 1,
        ready: true,
        serving: true,
        terminating: false,
    };
    let known = Port::new(port);
    let endpoints = (0..endpoints).map(endpoint).collect();
    known.set(&Arc::new(Pool { key: pool.clone(), endpoints, affinity: None }));
    let captured: Arc<RwLock<Captured>> = Arc::default();
    Arc::new(Target { pool, port: Arc::new(known), captured, start: Instant::now() })
}

/// Whom a connection asks when each one does what the letters say: `r`efuses or is `s`ilent. A dash: it gives up.
fn check(endpoints: u8, behaviour: &str, expected: &str) {
    let client = IpAddr::from([192, 0, 2, 1]);
    let (mut dial, first) = Dial::new(target(endpoints), client).expect("there is an endpoint");
    let name = |choice: &Choice| match choice.endpoint.ip() {
        IpAddr::V4(ip) => ip.octets()[3].to_string(),
        IpAddr::V6(_) => unreachable!("there are no such endpoints here"),
    };
    let mut asked = name(&first);
    for does in behaviour.chars() {
        let next = if does == 'r' { dial.refused() } else { dial.timed_out() };
        asked += &next.as_ref().map_or("-".to_owned(), name);
    }
    assert_eq!(asked, expected, "{endpoints} endpoints that do {behaviour:?}");
}

#[test]
fn who_refuses_is_asked_once() {
    check(1, "r", "0-");
    check(3, "rrr", "012-");
    check(6, "rrrrrr", "012345-");
}

#[test]
fn who_is_silent_is_asked_again_when_nobody_else_is_left() {
    check(1, "ssss", "0000-");
    check(2, "ssss", "0101-");
    check(3, "srs", "0120");
    check(2, "sr", "010");
    check(2, "srr", "010-");
}

#[test]
fn four_silences_are_enough() {
    check(9, "ssss", "0123-");
    check(9, "srsrss", "012345-");
}

#[test]
fn without_endpoints_there_is_nobody_to_ask() {
    assert!(Dial::new(target(0), IpAddr::from([192, 0, 2, 1])).is_none());
}
