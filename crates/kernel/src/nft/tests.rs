use std::time::Duration;

use super::*;
use crate::netlink::{Attributes, Messages, Writer, hostile};

#[test]
fn every_expression_survives_the_way_to_bytes_and_back() {
    let all = vec![
        Expr::Meta { key: MetaKey::L4proto, dreg: Reg(1) },
        Expr::MetaSet { key: MetaKey::Mark, sreg: Reg(15) },
        Expr::network(16, 4, Reg(0)),
        Expr::equal(Reg(1), [6]),
        Expr::Range { sreg: Reg(2), invert: true, from: vec![0, 1], to: vec![0, 9] },
        Expr::Bitwise { sreg: Reg(3), dreg: Reg(4), mask: vec![0xff; 4], xor: vec![1, 0, 0, 0] },
        Expr::Shift { sreg: Reg(3), dreg: Reg(4), left: false, bits: 1, len: 4 },
        Expr::Byteorder { sreg: Reg(3), dreg: Reg(4), to_network: true, len: 4, size: 4 },
        Expr::is_in("a", Reg(0)),
        Expr::is_not_in("a", Reg(0)),
        Expr::map("b", Reg(0), Reg(8)),
        Expr::verdict_map("c", Reg(0)),
        Expr::Immediate { dreg: Reg(4), data: vec![1, 2, 3, 4] },
        Expr::Verdict(Verdict::Jump("x".into())),
        Expr::Verdict(Verdict::Return),
        Expr::Nat(Nat::to(NatKind::Destination, Family::Ip6, Reg(0), Some(Reg(4)))),
        Expr::Masquerade { flags: NatFlags { fully_random: true, ..NatFlags::default() } },
        Expr::Redirect { port: Some(Reg(0)), flags: NatFlags::default() },
        Expr::Numgen { kind: Numgen::Random, modulus: 3, offset: 1, dreg: Reg(3) },
        Expr::Jhash { sreg: Reg(0), len: 4, modulus: 5, seed: Some(7), offset: 2, dreg: Reg(3) },
        Expr::Dynset(Dynset {
            set: "d".into(),
            op: DynsetOp::Update,
            key: Reg(0),
            data: Some(Reg(4)),
            timeout: Some(Duration::from_secs(3)),
        }),
        Expr::Counter(Counter { packets: 1, bytes: 2 }),
        Expr::NamedCounter("n".into()),
        Expr::CounterMap { map: "m".into(), sreg: Reg(0) },
        Expr::Ct { key: CtKey::State, direction: None, dreg: Reg(0) },
        Expr::Ct { key: CtKey::DestinationIp, direction: Some(Direction::Original), dreg: Reg(0) },
        Expr::CtSet { key: CtKey::Mark, sreg: Reg(0) },
        Expr::Fib { result: FibResult::Addrtype, flags: fib::DADDR, dreg: Reg(0) },
        Expr::Reject(Reject::TcpReset),
        Expr::Reject(Reject::Icmp(3)),
        Expr::Reject(Reject::Icmpx(1)),
        Expr::Limit { rate: 10, per: Duration::from_secs(60), burst: 5, bytes: false, over: true },
        Expr::Log { prefix: "why".into(), group: Some(5) },
        Expr::Socket { key: SocketKey::Cgroupv2, level: Some(2), dreg: Reg(0) },
        Expr::Notrack,
        Expr::Tproxy { family: Family::Ip, addr: Some(Reg(0)), port: None },
    ];
    let mut writer = Writer::new();
    expr::encode(&mut writer, &all);
    assert_eq!(expr::decode(Attributes::new(writer.as_bytes())), all);
}

/// A batch with every kind of object: what the kernel answers has the same form.
fn everything() -> Vec<u8> {
    let mut batch = Batch::new();
    let table = Table { comment: Some("ours".to_owned()), ..Table::new(Family::Ip, "t") };
    batch.add_table(&table);
    batch.add_chain(&table, &Chain::nat("c", Hook::Prerouting, -100));
    batch.add_set(&table, &Set::verdict_map("s", [DataType::Ipv4Addr, DataType::InetService]).comment("why"));
    let element = Element::verdict(Key::new().number(1), Verdict::Goto("c".into())).comment("e");
    batch.add_elements(&table, "s", &[element]);
    let mut range = Element::data(Key::new().number(1), Key::new().number(2));
    range.key_end = Some(vec![0, 0, 0, 9]);
    range.timeout = Some(Duration::from_secs(9));
    batch.add_elements(&table, "s", &[range]);
    batch.add_rule(&table, &Rule::new("c", [Expr::network(16, 4, Reg(0)), Expr::verdict_map("s", Reg(0))]));
    batch.add_rule(&table, &Rule::new("c", [Expr::Counter(Counter { packets: 1, bytes: 2 }), Expr::Notrack]));
    batch.add_counter(&table, &NamedCounter { name: "n".into(), counter: Counter::default() });
    batch.finish(None, 1).writer.as_bytes().to_vec()
}

#[test]
fn no_answer_about_rules_does_harm() {
    hostile::check(&[&everything()], |message| {
        let objects = [
            decode::table(message).is_ok(),
            decode::chain(message).is_ok(),
            decode::rule(message).is_ok(),
            decode::set(message).is_ok(),
            !decode::elements(message).is_empty(),
            decode::named_counter(message).is_some(),
            connection::generation(message).is_some(),
            connection::deleted(message).is_some(),
            monitor::event(message).is_some(),
        ];
        objects.contains(&true)
    });
}

#[test]
fn no_trace_does_harm() {
    let trace = |kind: u32| {
        let mut w = Writer::new();
        w.begin(message(kind::TRACE), 0, 1, &header(2, 0));
        w.text(1, "table");
        w.text(2, "chain");
        w.u64_be(3, 7);
        w.u32_be(4, kind);
        w.nest(5, |w| {
            w.u32_be(1, (-3i32).cast_unsigned());
            w.text(2, "other");
        });
        w.u32_be(6, 42);
        w.bytes(8, &[0x45; 20]);
        w.bytes(9, &[1; 8]);
        w.u32_be(14, 1);
        w.u32_be(16, 1);
        w.end();
        w.as_bytes().to_vec()
    };
    let good = [trace(1), trace(2), trace(3)];
    hostile::check(&[&good[0], &good[1], &good[2]], |message| trace::traced(message).is_some());
}

#[test]
fn types_of_a_key_survive_their_number() {
    let types = vec![DataType::Ipv4Addr, DataType::InetProto, DataType::InetService, DataType::Mark];
    assert_eq!(key::types(key::number(&types)), types);
    assert_eq!(key::length(&types), 16);
    assert_eq!(key::length(&[DataType::InetService]), 2);
}

#[test]
fn elements_go_into_as_many_messages_as_they_need() {
    let table = Table::new(Family::Ip, "t");
    let elements: Vec<Element> = (0..10_000).map(|number| Element::new(Key::new().number(number))).collect();
    let mut batch = Batch::new();
    batch.add_elements(&table, "s", &elements);
    let batch = batch.finish(None, 1);
    assert!(!batch.writer.is_too_long());
    let found: Vec<Element> =
        Messages::new(batch.writer.as_bytes()).flat_map(|message| decode::elements(&message)).collect();
    assert_eq!(found, elements);
}
