//! Connections the kernel knows, found and forgotten.

use std::net::UdpSocket;

use fairlead_kernel::conntrack::{Conntrack, Entry, Filter, Tuple, status};
use fairlead_kernel::nft::Counter;

use crate::lab::{in_namespace, tool};

/// Makes the kernel track, and opens UDP flows from these ports to an address that leads to another.
fn track(ports: &[u16]) {
    tool("ip", &["link", "set", "lo", "up"]);
    tool("ip", &["route", "add", "10.96.0.0/16", "dev", "lo"]);
    tool("nft", &["add table ip t"]);
    tool("nft", &["add chain ip t out { type nat hook output priority -100; }"]);
    tool("nft", &["add rule ip t out ip daddr 10.96.0.10 udp dport 53 dnat to 127.0.0.1:5353"]);
    for port in ports {
        let socket = UdpSocket::bind(("127.0.0.1", *port)).unwrap();
        socket.send_to(b"x", "10.96.0.10:53").unwrap();
    }
}

fn tuple(source: [u8; 4], source_port: u16, destination: [u8; 4], destination_port: u16) -> Tuple {
    Tuple { source: source.into(), destination: destination.into(), protocol: 17, source_port, destination_port }
}

#[test]
fn a_translated_flow_shows_both_of_its_sides() {
    in_namespace("a_translated_flow_shows_both_of_its_sides", || {
        track(&[4000]);
        let found = Conntrack::open().unwrap().entries(Filter { protocol: Some(17), ..Filter::default() }).unwrap();
        let [entry] = &found[..] else { panic!("{found:?}") };
        assert_eq!(entry.original, tuple([127, 0, 0, 1], 4000, [10, 96, 0, 10], 53));
        assert_eq!(entry.reply, tuple([127, 0, 0, 1], 5353, [127, 0, 0, 1], 4000));
        assert_ne!(entry.status & status::DESTINATION_NAT, 0);
        assert_eq!(entry.received, Counter::default());
    });
}

#[test]
fn a_filter_leaves_other_protocols_and_zones_out() {
    in_namespace("a_filter_leaves_other_protocols_and_zones_out", || {
        track(&[4000, 4001]);
        tool(
            "conntrack",
            &[
                "-I",
                "-p",
                "tcp",
                "-s",
                "10.0.0.1",
                "-d",
                "10.0.0.2",
                "--sport",
                "1",
                "--dport",
                "2",
                "--state",
                "ESTABLISHED",
                "-t",
                "60",
            ],
        );
        tool(
            "conntrack",
            &[
                "-I", "-p", "udp", "-s", "10.0.0.1", "-d", "10.0.0.2", "--sport", "1", "--dport", "2", "-t", "60",
                "--zone", "7",
            ],
        );
        tool(
            "conntrack",
            &["-I", "-p", "udp", "-s", "fd00::1", "-d", "fd00::2", "--sport", "1", "--dport", "2", "-t", "60"],
        );
        let mut conntrack = Conntrack::open().unwrap();
        let mut count =
            |protocol, zone| conntrack.entries(Filter { protocol, zone, ..Filter::default() }).unwrap().len();
        assert_eq!(count(Some(6), None), 1);
        assert_eq!(count(Some(17), None), 4);
        assert_eq!(count(Some(17), Some(7)), 1);
        assert_eq!(count(Some(132), None), 0);
        assert!(count(None, None) >= 5);
        assert!(conntrack.count().unwrap() >= 5);
    });
}

#[test]
fn one_flow_is_forgotten_and_the_others_stay() {
    in_namespace("one_flow_is_forgotten_and_the_others_stay", || {
        track(&[4000, 4001, 4002]);
        let mut conntrack = Conntrack::open().unwrap();
        let filter = Filter { protocol: Some(17), ..Filter::default() };
        let mut flows = conntrack.entries(filter).unwrap();
        flows.sort_by_key(|entry| entry.original.source_port);
        assert!(conntrack.delete(&flows[1]).unwrap());
        assert!(!conntrack.delete(&flows[1]).unwrap(), "it is gone already");
        let other = Entry { id: flows[0].id ^ 1, ..flows[0].clone() };
        assert!(!conntrack.delete(&other).unwrap(), "another connection with the same addresses");
        let mut left: Vec<u16> =
            conntrack.entries(filter).unwrap().iter().map(|entry| entry.original.source_port).collect();
        left.sort_unstable();
        assert_eq!(left, [4000, 4002]);
    });
}

#[test]
fn a_filter_takes_one_destination_or_one_who_answers() {
    in_namespace("a_filter_takes_one_destination_or_one_who_answers", || {
        track(&[4000, 4001]);
        let other = UdpSocket::bind("127.0.0.1:4002").unwrap();
        other.send_to(b"x", "10.96.0.11:53").unwrap();
        other.send_to(b"x", "127.0.0.1:5353").unwrap();
        let mut conntrack = Conntrack::open().unwrap();
        let mut check = |filter: Filter, expected: usize| {
            let filter = Filter { protocol: Some(17), ..filter };
            assert_eq!(conntrack.entries(filter).unwrap().len(), expected, "{filter:?}");
        };
        let (service, endpoint) = (Some([10, 96, 0, 10].into()), Some([127, 0, 0, 1].into()));
        let any = Filter::default();
        check(any, 4);
        check(Filter { ipv6: Some(false), ..any }, 4);
        check(Filter { ipv6: Some(true), ..any }, 0);
        check(Filter { destination: service, ..any }, 2);
        check(Filter { destination: service, destination_port: Some(54), ..any }, 0);
        check(Filter { destination_port: Some(53), ..any }, 3);
        check(Filter { answers_from: endpoint, ..any }, 3);
        check(Filter { answers_from: endpoint, answers_from_port: Some(5353), ..any }, 3);
        check(Filter { answers_from_port: Some(53), ..any }, 1);
        check(Filter { destination: service, answers_from: service, ..any }, 0);

        for port in ["53", "54"] {
            let flow = ["-s", "fd00::1", "-d", "fd00::2", "--sport", "1", "--dport", port, "-t", "60"];
            tool("conntrack", &[&["-I", "-p", "udp"], &flow[..]].concat());
        }
        let one = Some("fd00::2".parse().unwrap());
        check(Filter { destination: one, ..any }, 2);
        check(Filter { destination: one, destination_port: Some(53), ..any }, 1);
        check(Filter { answers_from: one, answers_from_port: Some(54), ..any }, 1);
        check(Filter { destination: Some("fd00::3".parse().unwrap()), ..any }, 0);
    });
}
