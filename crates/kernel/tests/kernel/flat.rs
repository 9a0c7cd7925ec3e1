//! The layout of `docs/nftables.md` for real: connections arrive, balanced, and foreign marks survive.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use fairlead_kernel::nft::*;

use crate::lab::{in_namespace, tool};

const SERVICE: [DataType; 3] = [DataType::Ipv4Addr, DataType::InetProto, DataType::InetService];

fn table() -> Table {
    Table::new(Family::Ip, "fairlead")
}

fn service() -> Key {
    Key::new().ipv4([10, 96, 0, 10].into()).proto(6).port(80)
}

fn load_service() -> Vec<Expr> {
    vec![
        Expr::network(16, 4, Reg(0)),
        Expr::Meta { key: MetaKey::L4proto, dreg: Reg(1) },
        Expr::transport(2, 2, Reg(2)),
    ]
}

fn dispatch() -> Rule {
    let mut rule = vec![Expr::Meta { key: MetaKey::Mark, dreg: Reg(8) }];
    rule.extend(load_service());
    rule.extend([
        Expr::map("services", Reg(0), Reg(0)),
        Expr::MetaSet { key: MetaKey::Mark, sreg: Reg(0) },
        Expr::Meta { key: MetaKey::Mark, dreg: Reg(4) },
        Expr::MetaSet { key: MetaKey::Mark, sreg: Reg(8) },
        Expr::verdict_map("classes", Reg(4)),
    ]);
    Rule::new("out", rule)
}

fn balance(count: u32) -> Vec<Expr> {
    let mut rule = load_service();
    rule.extend([
        Expr::Numgen { kind: Numgen::Random, modulus: count, offset: 0, dreg: Reg(3) },
        Expr::map("endpoints", Reg(0), Reg(0)),
        Expr::Nat(Nat::to(NatKind::Destination, Family::Ip, Reg(0), Some(Reg(1)))),
    ]);
    rule
}

/// One service with endpoints 127.0.1.0, 127.0.1.1, ...; and counters of what leaves with which mark.
fn layout(endpoints: u8) -> Batch {
    let (table, lb) = (table(), format!("lb{endpoints}"));
    let mut batch = Batch::new();
    batch.add_table(&table);
    batch.add_set(&table, &Set::map("services", SERVICE, [DataType::Mark]).counting());
    let index = [&SERVICE[..], &[DataType::Mark]].concat();
    batch.add_set(&table, &Set::map("endpoints", index, [DataType::Ipv4Addr, DataType::InetService]).counting());
    batch.add_set(&table, &Set::verdict_map("classes", [DataType::Mark]));
    batch.add_chain(&table, &Chain::regular(&lb));
    batch.add_rule(&table, &Rule::new(&lb, balance(endpoints.into())));
    batch.add_rule(&table, &Rule::new(&lb, balance(1)).comment("whoever drew an index that has just gone"));
    batch.add_elements(&table, "classes", &[Element::verdict(Key::new().number(7), Verdict::Goto(lb))]);
    batch.add_elements(&table, "services", &[Element::data(service(), Key::new().number(7))]);
    let to = |last| Key::new().ipv4(Ipv4Addr::new(127, 0, 1, last)).port(8080);
    let all: Vec<Element> =
        (0..endpoints).map(|number| Element::data(service().number(number.into()), to(number))).collect();
    batch.add_elements(&table, "endpoints", &all);
    batch.add_chain(&table, &Chain::nat("out", Hook::Output, -100));
    batch.add_rule(&table, &dispatch());
    batch
}

/// Connects many times and counts which endpoint answered.
fn connect(times: usize) -> BTreeMap<Ipv4Addr, usize> {
    let server = TcpListener::bind("0.0.0.0:8080").unwrap();
    let mut seen = BTreeMap::new();
    for _ in 0..times {
        let limit = Duration::from_secs(5);
        let client = TcpStream::connect_timeout(&"10.96.0.10:80".parse().unwrap(), limit).unwrap();
        let (accepted, _) = server.accept().unwrap();
        let std::net::IpAddr::V4(endpoint) = accepted.local_addr().unwrap().ip() else { unreachable!() };
        *seen.entry(endpoint).or_default() += 1;
        drop((client, accepted));
    }
    seen
}

fn prepare() {
    tool("ip", &["link", "set", "lo", "up"]);
    tool("ip", &["route", "add", "10.96.0.0/16", "dev", "lo", "src", "127.0.0.1"]);
}

#[test]
fn connections_are_spread_and_counted() {
    in_namespace("connections_are_spread_and_counted", || {
        prepare();
        let mut nft = Connection::open().unwrap();
        nft.commit(layout(3), None).unwrap();
        let seen = connect(300);
        assert_eq!(seen.len(), 3, "{seen:?}");
        assert!(seen.values().all(|count| (60..=140).contains(count)), "{seen:?}");
        let packets = |element: &Element| element.counter.unwrap().packets;
        assert_eq!(nft.elements(&table(), "services").unwrap().iter().map(packets).sum::<u64>(), 300);
        for element in nft.elements(&table(), "endpoints").unwrap() {
            let Some(Value::Data(data)) = &element.value else { panic!("{element:?}") };
            let endpoint = Ipv4Addr::new(data[0], data[1], data[2], data[3]);
            assert_eq!(packets(&element), seen[&endpoint] as u64);
        }
    });
}

#[test]
fn a_foreign_mark_survives_and_ours_never_shows() {
    in_namespace("a_foreign_mark_survives_and_ours_never_shows", || {
        prepare();
        Connection::open().unwrap().commit(layout(2), None).unwrap();
        // Somebody else marks before us, and looks behind us.
        tool("nft", &["add table ip other"]);
        tool("nft", &["add chain ip other marks { type filter hook output priority -300; }"]);
        tool("nft", &["add chain ip other look { type filter hook postrouting priority 300; }"]);
        tool("nft", &["add rule ip other look oifname lo meta mark 0xabcd0000 counter"]);
        tool("nft", &["add rule ip other look oifname lo meta mark 0 counter"]);
        tool("nft", &["add rule ip other look oifname lo meta mark != 0 meta mark != 0xabcd0000 counter"]);
        connect(20);
        tool("nft", &["add rule ip other marks meta mark set 0xabcd0000"]);
        connect(20);
        let text = tool("nft", &["list", "chain", "ip", "other", "look"]);
        let counts: Vec<u32> =
            text.lines().filter_map(|line| line.split("packets ").nth(1)?.split(' ').next()?.parse().ok()).collect();
        assert!(counts.len() == 3 && counts[0] >= 40 && counts[1] >= 40 && counts[2] == 0, "{text}");
    });
}

#[test]
fn nft_prints_the_layout() {
    in_namespace("nft_prints_the_layout", || {
        Connection::open().unwrap().commit(layout(2), None).unwrap();
        let text = tool("nft", &["list", "ruleset"]);
        for line in [
            "ip daddr . meta l4proto . th dport map @services",
            "meta mark vmap @classes",
            "dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 2 map @endpoints",
        ] {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
    });
}

#[test]
fn a_packet_between_two_changes_never_sees_half_of_one() {
    in_namespace("a_packet_between_two_changes_never_sees_half_of_one", || {
        prepare();
        let mut nft = Connection::open().unwrap();
        nft.commit(layout(2), None).unwrap();
        std::thread::scope(|scope| {
            // An endpoint is replaced again and again while connections are made: each finds one.
            scope.spawn(|| {
                for turn in 0..20_000_u32 {
                    let last = 10 + turn.to_le_bytes()[0] % 200;
                    let to = Key::new().ipv4(Ipv4Addr::new(127, 0, 1, last)).port(8080);
                    let element = Element::data(service().number(1), to);
                    let mut batch = Batch::new();
                    batch.delete_elements(&table(), "endpoints", [&element]);
                    batch.add_elements(&table(), "endpoints", [&element]);
                    nft.commit(batch, None).unwrap();
                }
            });
            let seen = connect(1000);
            assert!(seen.len() > 2, "{seen:?}");
        });
    });
}

#[test]
fn a_connection_made_while_a_service_shrinks_finds_an_endpoint() {
    in_namespace("a_connection_made_while_a_service_shrinks_finds_an_endpoint", || {
        prepare();
        let mut nft = Connection::open().unwrap();
        let mut batch = layout(2);
        batch.add_chain(&table(), &Chain::regular("lb1"));
        batch.add_rule(&table(), &Rule::new("lb1", balance(1)));
        let one = Element::verdict(Key::new().number(1), Verdict::Goto("lb1".into()));
        batch.add_elements(&table(), "classes", [&one]);
        nft.commit(batch, None).unwrap();
        let class = |number| [Element::data(service(), Key::new().number(number))];
        let second = [Element::data(service().number(1), Key::new().ipv4(Ipv4Addr::new(127, 0, 1, 1)).port(8080))];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 0..20_000_u32 {
                    let mut batch = Batch::new();
                    batch.delete_elements(&table(), "services", class(0));
                    batch.add_elements(&table(), "services", class(if turn % 2 == 0 { 1 } else { 7 }));
                    if turn % 2 == 0 {
                        batch.delete_elements(&table(), "endpoints", &second);
                    } else {
                        batch.add_elements(&table(), "endpoints", &second);
                    }
                    nft.commit(batch, None).unwrap();
                }
            });
            let seen = connect(3000);
            assert_eq!(seen.len(), 2, "{seen:?}");
        });
    });
}
