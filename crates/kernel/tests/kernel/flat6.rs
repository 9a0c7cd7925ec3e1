//! The layout of `docs/nftables.md` for IPv6: longer keys, the same shape.

use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::time::Duration;

use fairlead_kernel::nft::*;

use crate::lab::{in_namespace, tool};

fn load_service() -> Vec<Expr> {
    vec![
        Expr::network(24, 16, Reg(0)),
        Expr::Meta { key: MetaKey::L4proto, dreg: Reg(4) },
        Expr::transport(2, 2, Reg(5)),
    ]
}

fn layout() -> Batch {
    let table = Table::new(Family::Ip6, "fairlead");
    let key = [DataType::Ipv6Addr, DataType::InetProto, DataType::InetService];
    let service = || Key::new().ipv6(Ipv6Addr::new(0xfd00, 0x96, 0, 0, 0, 0, 0, 10)).proto(6).port(80);
    let mut batch = Batch::new();
    batch.add_table(&table);
    batch.add_set(&table, &Set::map("services", key, [DataType::Mark]));
    let index = [&key[..], &[DataType::Mark]].concat();
    batch.add_set(&table, &Set::map("endpoints", index, [DataType::Ipv6Addr, DataType::InetService]));
    batch.add_set(&table, &Set::verdict_map("classes", [DataType::Mark]));
    batch.add_chain(&table, &Chain::regular("lb2"));
    batch.add_chain(&table, &Chain::nat("out", Hook::Output, -100));
    let mut dispatch = vec![Expr::Meta { key: MetaKey::Mark, dreg: Reg(8) }];
    dispatch.extend(load_service());
    dispatch.extend([
        Expr::map("services", Reg(0), Reg(0)),
        Expr::MetaSet { key: MetaKey::Mark, sreg: Reg(0) },
        Expr::Meta { key: MetaKey::Mark, dreg: Reg(9) },
        Expr::MetaSet { key: MetaKey::Mark, sreg: Reg(8) },
        Expr::verdict_map("classes", Reg(9)),
    ]);
    batch.add_rule(&table, &Rule::new("out", dispatch));
    let mut balance = load_service();
    balance.extend([
        Expr::Numgen { kind: Numgen::Incremental, modulus: 2, offset: 0, dreg: Reg(6) },
        Expr::map("endpoints", Reg(0), Reg(0)),
        Expr::Nat(Nat::to(NatKind::Destination, Family::Ip6, Reg(0), Some(Reg(4)))),
    ]);
    batch.add_rule(&table, &Rule::new("lb2", balance));
    batch.add_elements(&table, "classes", &[Element::verdict(Key::new().number(2), Verdict::Goto("lb2".into()))]);
    batch.add_elements(&table, "services", &[Element::data(service(), Key::new().number(2))]);
    for (index, last) in [(0, 1), (1, 2)] {
        let to = Key::new().ipv6(Ipv6Addr::new(0xfd00, 0x244, 0, 0, 0, 0, 0, last)).port(8080);
        batch.add_elements(&table, "endpoints", &[Element::data(service().number(index), to)]);
    }
    batch
}

#[test]
fn connections_over_ipv6_take_turns_and_nft_prints_the_layout() {
    in_namespace("connections_over_ipv6_take_turns_and_nft_prints_the_layout", || {
        tool("ip", &["link", "set", "lo", "up"]);
        tool("ip", &["-6", "route", "add", "local", "fd00:244::/64", "dev", "lo"]);
        tool("ip", &["-6", "route", "add", "fd00:96::/64", "dev", "lo"]);
        Connection::open().unwrap().commit(layout(), None).unwrap();
        let text = tool("nft", &["list", "ruleset"]);
        let rule = "dnat ip6 to ip6 daddr . meta l4proto . th dport . numgen inc mod 2 map @endpoints";
        assert!(text.contains(rule), "{text}");

        let server = TcpListener::bind("[::]:8080").unwrap();
        let mut seen = Vec::new();
        for _ in 0..4 {
            let to = "[fd00:96::a]:80".parse().unwrap();
            let client = TcpStream::connect_timeout(&to, Duration::from_secs(5)).unwrap();
            let (accepted, _) = server.accept().unwrap();
            seen.push(accepted.local_addr().unwrap().ip().to_string());
            drop((client, accepted));
        }
        seen.sort();
        assert_eq!(seen, ["fd00:244::1", "fd00:244::1", "fd00:244::2", "fd00:244::2"]);
    });
}
