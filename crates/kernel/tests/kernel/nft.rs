//! nftables for real: what is written is what the kernel has, what `nft` prints, and what others are seen to change.

use std::time::Duration;

use crate::lab::{in_namespace, tool};
use fairlead_kernel::Error;
use fairlead_kernel::nft::*;

fn table() -> Table {
    Table { comment: Some("a table of a test".into()), ..Table::new(Family::Ip, "fl") }
}

/// One of everything, as the kernel reports it back.
struct Everything {
    chains: Vec<Chain>,
    sets: Vec<Set>,
    rules: Vec<Rule>,
    elements: Vec<(&'static str, Vec<Element>)>,
}

fn service(port: u16) -> Key {
    Key::new().ipv4([10, 96, 0, 10].into()).proto(6).port(port)
}

fn load_service() -> Vec<Expr> {
    vec![
        Expr::network(16, 4, Reg(0)),
        Expr::Meta { key: MetaKey::L4proto, dreg: Reg(1) },
        Expr::transport(2, 2, Reg(2)),
    ]
}

fn everything() -> Everything {
    let service_types = [DataType::Ipv4Addr, DataType::InetProto, DataType::InetService];
    let index = [&service_types[..], &[DataType::Mark]].concat();
    let endpoint = [DataType::Ipv4Addr, DataType::InetService];
    let sets = vec![
        Set::verdict_map("services", service_types).comment("where a service goes").counting(),
        Set::map("endpoints", index, endpoint).size(1000).counting(),
        Set::new("ranges", [DataType::Ipv4Addr]).interval(),
        Set::new("sources", [DataType::Ipv4Addr, DataType::InetService]).interval(),
        Set::map("affinity", [DataType::Ipv4Addr], endpoint).dynamic(65_535).timeout(Duration::from_secs(30)),
        Set::new("links", [DataType::Ifname]),
        Set::map("marks", [DataType::Mark], [DataType::Mark]),
    ];
    let chains = vec![
        Chain { comment: Some("balances".into()), ..Chain::regular("lb2") },
        Chain::nat("pre", Hook::Prerouting, -100),
        Chain::nat("post", Hook::Postrouting, 100),
        Chain {
            base: Some(Base { kind: ChainType::Filter, hook: Hook::Forward, priority: -110, policy: Policy::Accept }),
            ..Chain::regular("forward")
        },
    ];
    let ten = |last| Key::new().ipv4([10, 0, 0, last].into());
    let elements = vec![
        ("services", vec![Element::verdict(service(80), Verdict::Goto("lb2".into())).comment("default/web:http")]),
        (
            "endpoints",
            vec![
                Element::data(service(80).number(0), ten(1).port(8080)),
                Element::data(service(80).number(1), ten(2).port(8080)),
            ],
        ),
        ("ranges", vec![Element::new(ten(0)), Element::end(ten(128))]),
        ("sources", vec![Element::range(ten(0).port(1), ten(9).port(99))]),
        ("links", vec![Element::new(Key::new().ifname("eth0"))]),
        ("marks", vec![Element::data(Key::new().number(1), Key::new().number(0x4000))]),
    ];
    Everything { chains, sets, rules: rules(), elements }
}

fn rules() -> Vec<Rule> {
    let learned = |key| Dynset { set: "affinity".into(), op: DynsetOp::Update, key, data: Some(Reg(4)), timeout: None };
    vec![
        Rule::new(
            "lb2",
            [
                load_service(),
                vec![
                    Expr::Numgen { kind: Numgen::Random, modulus: 2, offset: 0, dreg: Reg(3) },
                    Expr::map("endpoints", Reg(0), Reg(0)),
                    Expr::Nat(Nat::to(NatKind::Destination, Family::Ip, Reg(0), Some(Reg(1)))),
                ],
            ]
            .concat(),
        )
        .comment("one of two"),
        Rule::new("pre", [load_service(), vec![Expr::verdict_map("services", Reg(0))]].concat()),
        Rule::new(
            "post",
            [
                Expr::Ct { key: CtKey::Status, direction: None, dreg: Reg(0) },
                Expr::Bitwise {
                    sreg: Reg(0),
                    dreg: Reg(0),
                    mask: ct_status::DNAT.to_ne_bytes().into(),
                    xor: vec![0; 4],
                },
                Expr::not_equal(Reg(0), [0; 4]),
                Expr::Counter(Counter::default()),
                Expr::Masquerade { flags: NatFlags { fully_random: true, ..NatFlags::default() } },
            ],
        ),
        Rule::new(
            "forward",
            [
                Expr::Ct { key: CtKey::State, direction: None, dreg: Reg(0) },
                Expr::Bitwise { sreg: Reg(0), dreg: Reg(0), mask: ct_state::NEW.to_ne_bytes().into(), xor: vec![0; 4] },
                Expr::not_equal(Reg(0), [0; 4]),
                Expr::network(12, 4, Reg(0)),
                Expr::is_in("ranges", Reg(0)),
                Expr::network(16, 4, Reg(4)),
                Expr::transport(2, 2, Reg(5)),
                Expr::Dynset(learned(Reg(0))),
            ],
        ),
        Rule::new(
            "forward",
            [
                Expr::Meta { key: MetaKey::Iifname, dreg: Reg(0) },
                Expr::is_not_in("links", Reg(0)),
                Expr::Meta { key: MetaKey::L4proto, dreg: Reg(0) },
                Expr::equal(Reg(0), [6]),
                Expr::Limit { rate: 10, per: Duration::from_secs(1), burst: 5, bytes: false, over: false },
                Expr::Reject(Reject::TcpReset),
            ],
        ),
        Rule::new(
            "forward",
            [
                Expr::network(12, 4, Reg(0)),
                Expr::transport(0, 2, Reg(1)),
                Expr::is_in("sources", Reg(0)),
                Expr::Fib { result: FibResult::Addrtype, flags: fib::DADDR, dreg: Reg(0) },
                Expr::equal(Reg(0), addrtype::LOCAL.to_ne_bytes()),
                Expr::Log { prefix: "from outside ".into(), group: Some(5) },
                Expr::NamedCounter("seen".into()),
                Expr::Verdict(Verdict::Drop),
            ],
        ),
    ]
}

fn load(everything: &Everything) -> Batch {
    let table = table();
    let mut batch = Batch::new();
    batch.add_table(&table);
    batch.add_counter(&table, &NamedCounter { name: "seen".into(), counter: Counter::default() });
    for set in &everything.sets {
        batch.add_set(&table, set);
    }
    for chain in &everything.chains {
        batch.add_chain(&table, chain);
    }
    for rule in &everything.rules {
        batch.add_rule(&table, rule);
    }
    for (set, elements) in &everything.elements {
        batch.add_elements(&table, set, elements);
    }
    batch
}

#[test]
fn the_kernel_has_what_was_written() {
    in_namespace("the_kernel_has_what_was_written", || {
        let wanted = everything();
        let mut nft = Connection::open().unwrap();
        nft.commit(load(&wanted), None).unwrap();

        assert_eq!(values(nft.tables().unwrap()), [table()]);
        assert_eq!(values(nft.chains(&table()).unwrap()), wanted.chains);
        assert_eq!(values(nft.rules(&table()).unwrap()), wanted.rules);
        let mut sets = values(nft.sets(&table()).unwrap());
        let mut expected = wanted.sets.clone();
        sets.sort_by(|a, b| a.name.cmp(&b.name));
        expected.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(sets, expected);
        for (set, elements) in &wanted.elements {
            let counts = wanted.sets.iter().any(|one| one.name == *set && one.counter);
            let mut found = nft.elements(&table(), set).unwrap();
            let mut expected = elements.clone();
            expected.iter_mut().for_each(|element| element.counter = counts.then(Counter::default));
            // A range set may begin with an end of its own.
            found.retain(|element| !(element.interval_end && element.key == [0; 4]));
            found.sort_by(|a, b| a.key.cmp(&b.key));
            assert_eq!(found, expected, "{set}");
        }
        assert_eq!(values(nft.counters(&table()).unwrap()).len(), 1);
    });
}

#[test]
fn nft_prints_what_was_written() {
    in_namespace("nft_prints_what_was_written", || {
        Connection::open().unwrap().commit(load(&everything()), None).unwrap();
        let text = tool("nft", &["list", "ruleset"]);
        for line in [
            "comment \"a table of a test\"",
            "type ipv4_addr . inet_proto . inet_service : verdict",
            "comment \"where a service goes\"",
            "elements = { 10.96.0.10 . tcp . 80 counter packets 0 bytes 0 comment \"default/web:http\" : goto lb2 }",
            "type ipv4_addr . inet_proto . inet_service . mark : ipv4_addr . inet_service",
            "10.96.0.10 . tcp . 80 . 0x00000001 counter packets 0 bytes 0 : 10.0.0.2 . 8080",
            "elements = { 10.0.0.0/25 }",
            "elements = { 10.0.0.0-10.0.0.9 . 1-99 }",
            "elements = { \"eth0\" }",
            "elements = { 0x00000001 : 0x00004000 }",
            "dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 2 map @endpoints comment \"one of two\"",
            "ip daddr . meta l4proto . th dport vmap @services",
            "ct status dnat counter packets 0 bytes 0 masquerade fully-random",
            "ct state new ip saddr @ranges update @affinity { ip saddr : ip daddr . th dport }",
            "iifname != @links meta l4proto tcp limit rate 10/second reject with tcp reset",
            "ip saddr . th sport @sources fib daddr type local log prefix \"from outside \" group 5 counter name \"seen\" drop",
            "type nat hook prerouting priority dstnat; policy accept;",
        ] {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
    });
}

#[test]
fn a_refused_batch_changes_nothing_and_says_what_was_wrong() {
    in_namespace("a_refused_batch_changes_nothing_and_says_what_was_wrong", || {
        let mut nft = Connection::open().unwrap();
        let mut batch = Batch::new();
        batch.add_table(&table());
        batch.add_rule(&table(), &Rule::new("nowhere", [Expr::Verdict(Verdict::Accept)]));
        let error = nft.commit(batch, None).unwrap_err();
        let Error::Refused(refusal) = &error else { panic!("{error}") };
        assert_eq!(refusal.request, "new rule in fl/nowhere");
        assert_eq!(refusal.attribute, [2], "the chain's name: {error}");
        assert!(error.is_not_found());
        assert_eq!(nft.tables().unwrap(), []);
    });
}

#[test]
fn a_change_made_for_another_generation_is_refused() {
    in_namespace("a_change_made_for_another_generation_is_refused", || {
        let mut nft = Connection::open().unwrap();
        let before = nft.generation().unwrap();
        tool("nft", &["add", "table", "ip", "foreign"]);
        let batch = || {
            let mut batch = Batch::new();
            batch.add_table(&table());
            batch
        };
        let error = nft.commit(batch(), Some(before)).unwrap_err();
        assert!(matches!(error, Error::GenerationClash(_)), "{error}");
        let now = nft.generation().unwrap();
        nft.commit(batch(), Some(now)).unwrap();
        assert_eq!(nft.tables().unwrap().len(), 2);
    });
}

#[test]
fn rules_and_elements_can_be_replaced_and_deleted() {
    in_namespace("rules_and_elements_can_be_replaced_and_deleted", || {
        let mut nft = Connection::open().unwrap();
        nft.commit(load(&everything()), None).unwrap();
        let rules = nft.rules(&table()).unwrap();
        let (first, last) = (&rules[0], &rules[rules.len() - 1]);
        let other = Rule::new("lb2", [Expr::Verdict(Verdict::Return)]);
        let mut batch = Batch::new();
        batch.replace_rule(&table(), first.handle, &other);
        batch.delete_rule(&table(), "forward", last.handle);
        batch.insert_rule(&table(), &Rule::new("lb2", [Expr::Counter(Counter::default())]));
        batch.flush_chain(&table(), "post");
        batch.delete_chain(&table(), "post");
        batch.delete_elements(&table(), "endpoints", &[Element::new(service(80).number(1))]);
        batch.flush_set(&table(), "ranges");
        batch.delete_set(&table(), "marks");
        nft.commit(batch, None).unwrap();

        let left = values(nft.rules(&table()).unwrap());
        assert_eq!(left.len(), rules.len() - 1);
        assert_eq!(left[0].counted(), Some(Counter::default()));
        assert_eq!(left[1], other);
        assert_eq!(nft.elements(&table(), "endpoints").unwrap().len(), 1);
        assert_eq!(nft.elements(&table(), "ranges").unwrap().len(), 0);
        assert_eq!(nft.sets(&table()).unwrap().len(), everything().sets.len() - 1);
        let mut batch = Batch::new();
        batch.delete_table(&table());
        nft.commit(batch, None).unwrap();
        assert_eq!(nft.tables().unwrap(), []);
    });
}

#[test]
fn a_full_map_refuses_more_and_says_so() {
    in_namespace("a_full_map_refuses_more_and_says_so", || {
        let mut nft = Connection::open().unwrap();
        let elements: Vec<Element> = (0..3).map(|number| Element::new(Key::new().number(number))).collect();
        let mut batch = Batch::new();
        batch.add_table(&table());
        batch.add_set(&table(), &Set::new("small", [DataType::Mark]).size(2));
        batch.add_elements(&table(), "small", &elements);
        let error = nft.commit(batch, None).unwrap_err();
        assert_eq!(error.errno(), Some(ENFILE), "{error}");
    });
}

#[test]
fn a_large_batch_is_one_change() {
    in_namespace("a_large_batch_is_one_change", || {
        let mut nft = Connection::open().unwrap();
        let before = nft.generation().unwrap();
        let elements: Vec<Element> = (0..200_000).map(|number| Element::new(Key::new().number(number))).collect();
        let mut batch = Batch::new();
        batch.add_table(&table());
        batch.add_set(&table(), &Set::new("large", [DataType::Mark]));
        batch.add_elements(&table(), "large", &elements);
        nft.commit(batch, None).unwrap();
        assert_eq!(nft.generation().unwrap(), before + 1);
        assert_eq!(nft.elements(&table(), "large").unwrap().len(), 200_000);
    });
}

#[test]
fn what_others_change_is_seen() {
    in_namespace("what_others_change_is_seen", || {
        let mut nft = Connection::open().unwrap();
        let mut monitor = Monitor::open().unwrap();
        nft.commit(load(&everything()), None).unwrap();
        let own = monitor.events(Duration::from_secs(5)).unwrap();
        assert!(!own.is_empty());
        let port = nft.port();
        assert!(own.iter().all(|event| !matches!(event, Event::Changed(change) if change.port != port)), "{own:?}");

        tool("nft", &["flush", "ruleset"]);
        let events = monitor.events(Duration::from_secs(5)).unwrap();
        let gone = events.iter().any(|event| {
            matches!(event, Event::Changed(change) if change.object == Object::Table
                && change.deleted && change.table == "fl" && change.port != port)
        });
        assert!(gone, "{events:?}");
        let by = events.iter().find_map(|event| match event {
            Event::Generation(generation) => Some(generation.program.as_str()),
            Event::Changed(_) => None,
        });
        assert_eq!(by, Some("nft"));
    });
}

/// What the kernel says when a set is full.
const ENFILE: i32 = 23;

fn values<T>(listed: Vec<Listed<T>>) -> Vec<T> {
    listed.into_iter().map(|one| one.value).collect()
}
