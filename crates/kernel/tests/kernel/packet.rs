//! Frames on a real link: another machine asks for addresses and learns who has them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fairlead_kernel::link::{LinkMonitor, Links, Prefix};
use fairlead_kernel::netns::Namespace;
use fairlead_kernel::nft::{Batch, Chain, Connection, DataType, Element, Expr, Family, Hook, Key, Reg};
use fairlead_kernel::nft::{Rule, Set, Table, Verdict};
use fairlead_kernel::packet::arp::{Arp, Operation};
use fairlead_kernel::packet::ndp::{Advertisement, Ndp};
use fairlead_kernel::packet::{BROADCAST, Groups, Hardware, Protocol, Socket};

use crate::lab::{in_namespace, tool};

const OURS: Hardware = [2, 0, 0, 0, 0, 1];
const OWNER: u8 = 208;
const LIMIT: Duration = Duration::from_secs(5);

/// A link to another machine; the number of our end.
fn link() -> (Namespace, u32) {
    let other = Namespace::unnamed().unwrap();
    let mut links = Links::open().unwrap();
    let lo = links.index("lo").unwrap();
    links.set_up(lo).unwrap();
    links.add_veth("fla", "flb", Some(other.as_fd())).unwrap();
    let ours = links.index("fla").unwrap();
    links.set_hardware_address(ours, OURS).unwrap();
    links.set_up(ours).unwrap();
    let there = |text: &str| Prefix { address: text.parse().unwrap(), length: 64 };
    other
        .run(|| {
            let mut links = Links::open().unwrap();
            let link = links.index("flb").unwrap();
            links.set_up(link).unwrap();
            links.add_address(link, Prefix { length: 24, ..there("192.0.2.9") }).unwrap();
            links.add_address(link, there("fd00::9")).unwrap();
        })
        .unwrap();
    (other, ours)
}

/// The other machine asks for an address.
fn ask(other: &Namespace, address: &str) {
    let to: IpAddr = address.parse().unwrap();
    let from: IpAddr = if to.is_ipv4() { "192.0.2.9" } else { "fd00::9" }.parse().unwrap();
    other.run(|| UdpSocket::bind((from, 0)).unwrap().send_to(b"x", (to, 9)).unwrap()).unwrap();
}

fn neighbours(other: &Namespace) -> String {
    other.run(|| tool("ip", &["neigh"])).unwrap()
}

#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "not in time: {what}");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn questions_of_arp_are_heard_and_answers_believed() {
    in_namespace("questions_of_arp_are_heard_and_answers_believed", || {
        let (other, link) = link();
        let mut socket = Socket::open(link, Protocol::Arp).unwrap();
        ask(&other, "192.0.2.100");
        eventually("a question is answered", || match socket.receive().unwrap().and_then(Arp::read) {
            Some(asked) if asked.target == Ipv4Addr::new(192, 0, 2, 100) => {
                socket.send(&asked.answer(OURS).frame(asked.hardware)).unwrap();
                true
            }
            _ => false,
        });
        eventually("it is believed", || neighbours(&other).contains("192.0.2.100 dev flb lladdr 02:00:00:00:00:01"));
        // Somebody else has it now. Each form is believed at once.
        for (operation, last) in [(Operation::Request, 7), (Operation::Reply, 8)] {
            let hardware = [2, 0, 0, 0, 0, last];
            let frame = Arp::announcement(operation, hardware, [192, 0, 2, 100].into()).frame(BROADCAST);
            socket.send(&frame).unwrap();
            let line = format!("192.0.2.100 dev flb lladdr 02:00:00:00:00:0{last}");
            eventually("the new one is", || neighbours(&other).contains(&line));
        }
    });
}

#[test]
fn solicitations_are_heard_and_advertisements_believed() {
    in_namespace("solicitations_are_heard_and_advertisements_believed", || {
        let (other, link) = link();
        let address: Ipv6Addr = "fd00::64".parse().unwrap();
        let mut socket = Socket::open(link, Protocol::Ndp).unwrap();
        let groups = Groups::open().unwrap();
        groups.join(link, address).unwrap();
        groups.join(link, address).unwrap();
        ask(&other, "fd00::64");
        eventually("a solicitation is answered", || match socket.receive().unwrap().and_then(Ndp::read) {
            Some(Ndp::Solicitation(asked)) if asked.target == address => {
                let (answer, to) = asked.answer(OURS);
                socket.send(&answer.frame(to)).unwrap();
                true
            }
            _ => false,
        });
        eventually("it is believed", || neighbours(&other).contains("fd00::64 dev flb lladdr 02:00:00:00:00:01"));
        let (announced, to) = Advertisement::announcement([2, 0, 0, 0, 0, 7], address);
        socket.send(&announced.frame(to)).unwrap();
        eventually("the new one is", || neighbours(&other).contains("fd00::64 dev flb lladdr 02:00:00:00:00:07"));
        groups.leave(link, address);
    });
}

#[test]
fn addresses_are_made_local_and_found_again() {
    in_namespace("addresses_are_made_local_and_found_again", || {
        let (_other, _) = link();
        let mut links = Links::open().unwrap();
        let lo = links.index("lo").unwrap();
        let both: [IpAddr; 2] = ["192.0.2.100".parse().unwrap(), "fd00::64".parse().unwrap()];
        for address in both {
            links.add_local(OWNER, lo, address).unwrap();
            links.add_local(OWNER, lo, address).unwrap();
            assert!(tool("ip", &["route", "get", &address.to_string()]).starts_with("local "));
        }
        tool("ip", &["route", "add", "local", "192.0.2.101", "dev", "lo", "table", "local"]);
        assert_eq!(links.local(OWNER).unwrap(), both);
        for address in both {
            links.delete_local(OWNER, lo, address).unwrap();
            assert!(links.delete_local(OWNER, lo, address).unwrap_err().is_not_found());
        }
        assert!(links.delete_local(OWNER, lo, "192.0.2.101".parse().unwrap()).unwrap_err().is_not_found());
        assert!(links.local(OWNER).unwrap().is_empty());
    });
}

#[test]
fn a_table_for_arp_silences_the_kernel() {
    in_namespace("a_table_for_arp_silences_the_kernel", || {
        let (other, _) = link();
        let mut links = Links::open().unwrap();
        let lo = links.index("lo").unwrap();
        let silent: Ipv4Addr = [192, 0, 2, 100].into();
        for last in [100, 101] {
            links.add_local(OWNER, lo, [192, 0, 2, last].into()).unwrap();
        }
        let table = Table::new(Family::Arp, "fltest");
        let set = Set::new("ours", [DataType::Ipv4Addr]);
        let chain = Chain::filter("input", Hook::Input, 0);
        let rule = Rule::new(
            "input",
            [Expr::network(24, 4, Reg(0)), Expr::is_in("ours", Reg(0)), Expr::Verdict(Verdict::Drop)],
        );
        let mut batch = Batch::new();
        batch.add_table(&table);
        batch.add_set(&table, &set);
        batch.add_elements(&table, "ours", [Element::new(Key::new().ipv4(silent))]);
        batch.add_chain(&table, &chain);
        batch.add_rule(&table, &rule);
        let mut connection = Connection::open().unwrap();
        connection.commit(batch, None).unwrap();
        assert_eq!(connection.chains(&table).unwrap()[0].value, chain);
        assert_eq!(connection.rules(&table).unwrap()[0].value, rule);
        assert!(connection.tables().unwrap().iter().any(|listed| listed.value == table));
        let shown = tool("nft", &["list", "table", "arp", "fltest"]);
        assert!(shown.contains("hook input") && shown.contains("arp daddr ip @ours drop"), "{shown}");
        ask(&other, "192.0.2.100");
        ask(&other, "192.0.2.101");
        eventually("the kernel answers for the other", || neighbours(&other).contains("192.0.2.101 dev flb lladdr"));
        assert!(!neighbours(&other).contains("192.0.2.100 dev flb lladdr"), "{}", neighbours(&other));
    });
}

#[test]
fn changes_of_links_are_told() {
    in_namespace("changes_of_links_are_told", || {
        let (other, link) = link();
        let mut links = Links::open().unwrap();
        let running = |links: &mut Links| links.find("fla").unwrap().unwrap().running;
        eventually("the link runs", || running(&mut links));
        let mut monitor = LinkMonitor::open().unwrap();
        let mut told = |what: &str| eventually(what, || monitor.changed().unwrap());
        links.add_address(link, Prefix { address: "192.0.2.1".parse().unwrap(), length: 24 }).unwrap();
        told("an address");
        other.run(|| tool("ip", &["link", "set", "flb", "down"])).unwrap();
        told("the other end is down");
        eventually("the link does not run", || !running(&mut links));
        assert!(links.find("fla").unwrap().unwrap().up);
    });
}
