use std::cell::RefCell;
use std::collections::HashSet;

use super::super::NodePorts;
use super::*;

fn range(text: &str) -> Option<Range> {
    Range::new(&text.parse().expect("a range"))
}

/// Takes addresses until none is left or `limit` is reached.
fn take_all(text: &str, limit: usize) -> Vec<IpAddr> {
    let range = range(text).expect("usable addresses");
    let used = RefCell::new(HashSet::new());
    let taken = |ip: IpAddr| used.borrow().contains(&ip);
    let mut seed = 7u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 16) % below
    };
    let mut ledger = Ledger::new(&[], &taken, &mut random, NodePorts::new(1..=1));
    let mut order = Vec::new();
    while order.len() < limit
        && let Some(ip) = range.pick(&mut ledger)
    {
        used.borrow_mut().insert(ip);
        order.push(ip);
    }
    order
}

#[test]
fn bands_have_the_documented_sizes() {
    for (range, expected) in [
        ("10.0.0.0/28", 0),
        ("10.0.0.0/27", 16),
        ("10.0.0.0/24", 16),
        ("10.0.0.0/20", 256),
        ("10.0.0.0/16", 256),
        ("fd00::/64", 256),
    ] {
        assert_eq!(self::range(range).map(|range| range.band), Some(expected), "{range}");
    }
}

#[test]
fn neither_the_network_nor_the_broadcast_address_is_given() {
    let mut all = take_all("10.0.0.0/29", 100);
    all.sort();
    let expected: Vec<IpAddr> = (1..=6).map(|n| IpAddr::from([10, 0, 0, n])).collect();
    assert_eq!(all, expected);
    assert_eq!(take_all("fd00::/126", 100).len(), 3);
    assert!(range("10.0.0.0/31").is_none() && range("10.0.0.0/32").is_none() && range("fd00::/128").is_none());
}

#[test]
fn the_static_band_is_used_last() {
    let all = take_all("10.0.0.0/24", 1000);
    assert_eq!(all.len(), 254);
    let (upper, lower) = all.split_at(254 - 16);
    assert!(upper.iter().all(|ip| *ip > IpAddr::from([10, 0, 0, 16])));
    assert!(lower.iter().all(|ip| *ip <= IpAddr::from([10, 0, 0, 16])));
}

#[test]
fn large_ranges_are_drawn_from_not_walked() {
    let some = take_all("fd00::/64", 50);
    let net: IpNet = "fd00::/64".parse().expect("a range");
    assert_eq!(some.iter().filter(|ip| net.contains(*ip)).collect::<HashSet<_>>().len(), 50);
}

#[test]
fn each_address_of_the_band_is_as_likely_as_another() {
    let range = range("10.0.0.0/24").expect("usable addresses");
    let mut next = 0;
    let mut random = |below: u64| {
        next += 1;
        next % below
    };
    let mut ledger = Ledger::new(&[], &|_| false, &mut random, NodePorts::new(1..=1));
    let drawn: HashSet<IpAddr> = (0..238).filter_map(|_| range.pick(&mut ledger)).collect();
    assert_eq!(drawn.len(), 238);
}
