//! The kernel's own trace of a packet.

use std::net::UdpSocket;
use std::time::Duration;

use fairlead_kernel::nft::{
    Batch, Chain, Connection, Expr, Family, Hook, MetaKey, Policy, Reg, Rule, Step, Table, Tracer, Verdict,
};

use crate::lab::{in_namespace, tool};

#[test]
fn a_traced_packet_shows_every_rule_it_meets_and_the_table_goes_with_its_owner() {
    in_namespace("a_traced_packet_shows_every_rule_it_meets_and_the_table_goes_with_its_owner", || {
        tool("ip", &["link", "set", "lo", "up"]);
        tool("nft", &["add table ip t"]);
        tool("nft", &["add chain ip t out { type filter hook output priority 0; }"]);
        tool("nft", &["add chain ip t more"]);
        tool("nft", &["add rule ip t more return"]);
        tool("nft", &["add rule ip t out udp dport 54 accept"]);
        tool("nft", &["add rule ip t out udp dport 53 jump more"]);
        tool("nft", &["add rule ip t out udp dport 53 drop"]);
        let mut tracer = Tracer::open().unwrap();
        let mut owner = Connection::open().unwrap();
        let table = Table::new(Family::Ip, "mine");
        let mut batch = Batch::new();
        batch.add_owned_table(&table);
        batch.add_chain(&table, &Chain::filter("out", Hook::Output, -500));
        let trace =
            [Expr::Immediate { dreg: Reg(0), data: vec![1] }, Expr::MetaSet { key: MetaKey::Nftrace, sreg: Reg(0) }];
        batch.add_rule(&table, &Rule::new("out", trace));
        owner.commit(batch, None).unwrap();

        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(socket.send_to(b"x", "127.0.0.1:53").is_err(), "it was dropped");
        let steps = tracer.steps(Duration::from_secs(5)).unwrap();
        assert!(steps.iter().all(|step| step.id == steps[0].id), "{steps:?}");
        let seen: Vec<_> = steps.iter().map(|step| (step.table.as_str(), step.chain.as_str(), &step.step)).collect();
        let [(.., mine), (.., policy), (.., jump), (.., back), (.., drop)] = seen[..] else { panic!("{seen:?}") };
        assert!(matches!(mine, Step::Rule { verdict: Some(Verdict::Continue), .. }), "{mine:?}");
        assert_eq!(*policy, Step::Policy(Policy::Accept));
        assert!(matches!(jump, Step::Rule { verdict: Some(Verdict::Jump(to)), .. } if to == "more"), "{jump:?}");
        assert!(matches!(back, Step::Rule { verdict: Some(Verdict::Return), .. }), "{back:?}");
        assert!(matches!(drop, Step::Rule { verdict: Some(Verdict::Drop), .. }), "{drop:?}");
        assert_eq!(seen[0].0, "mine");
        assert_eq!((seen[3].0, seen[3].1), ("t", "more"));
        assert_eq!(steps[0].transport[2..4], 53u16.to_be_bytes());

        assert!(tool("nft", &["list", "tables"]).contains("mine"));
        std::mem::drop(owner);
        assert!(!tool("nft", &["list", "tables"]).contains("mine"));
    });
}
