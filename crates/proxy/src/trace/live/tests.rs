//! Real packets through real rules, ours and those of others.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::lab::{A, ENDPOINTS, Lab, PORT, in_lab, tool};

/// A Service with a UDP and a TCP port under one number, in both families.
fn dns(lab: &mut Lab) {
    let port = |protocol: &str| json!({"name": "dns", "port": 53, "protocol": protocol});
    lab.service(
        "dns",
        Some(json!({"spec": {
            "clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10", "fd00:96::10"], "ipFamilies": ["IPv4", "IPv6"],
            "ports": [port("UDP"), port("TCP")],
        }})),
    );
}

fn probe(to: &str, protocol: Protocol, namespace: Option<String>) -> Report {
    let probe = Probe { to: to.parse().unwrap(), protocol, namespace };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = runtime.block_on(send(&probe)).unwrap();
    let tables = Connection::open().unwrap().tables().unwrap();
    assert!(tables.iter().all(|table| table.value.name != TABLE), "{tables:?}");
    report
}

/// Checks who ended the way of a packet: `ip fairlead reject`.
fn check_end(report: &Report, expected: Option<&str>) {
    let end = report.ended_by().map(|step| format!("{} {}", step.table, step.chain));
    assert_eq!(end.as_deref(), expected, "{report:#?}");
}

#[test]
fn a_packet_that_arrives_shows_its_way_and_its_endpoint() {
    in_lab("a_packet_that_arrives_shows_its_way_and_its_endpoint", |lab| {
        dns(lab);
        lab.endpoints("dns", "A");
        for (family, to) in ["10.96.0.10:53", "[fd00:96::10]:53"].into_iter().enumerate() {
            for namespace in [None, Some(lab.client())] {
                // Who sends from the Node to itself has no route there but the default one.
                let report = probe(to, Protocol::Udp, namespace);
                check_end(&report, None);
                assert!(lab.got(A), "{report:#?}");
                let flow = report.flow.clone().unwrap_or_else(|| panic!("no connection: {report:#?}"));
                let endpoint: IpAddr = ENDPOINTS[A][family].parse().unwrap();
                assert_eq!((flow.reply.source, flow.reply.source_port), (endpoint, PORT));
                let table = ["ip fairlead", "ip6 fairlead"][family];
                for chain in ["guards", "services", "spread", "lb-1"] {
                    let passes = |step: &Told| step.table == table && step.chain == chain;
                    assert!(report.steps.iter().any(passes), "{chain}: {report:#?}");
                }
                assert_eq!(report.answer, Reply::Nothing, "endpoints do not answer here");
            }
        }
    });
}

#[test]
fn a_refused_packet_names_who_refused_it() {
    in_lab("a_refused_packet_names_who_refused_it", |lab| {
        dns(lab);
        lab.endpoints("dns", "");
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let report = probe("10.96.0.10:53", protocol, Some(lab.client()));
            assert_eq!(report.answer, Reply::Refused, "{report:#?}");
            check_end(&report, Some("ip fairlead reject"));
            assert!(report.ended_by().unwrap().what.ends_with("refuses it"));
        }
        lab.endpoints("dns", "A");
        let report = probe("10.96.0.10:53", Protocol::Tcp, Some(lab.client()));
        assert_eq!(report.answer, Reply::Refused, "nobody listens there: {report:#?}");
        check_end(&report, None);
    });
}

#[test]
fn a_packet_others_drop_names_them() {
    in_lab("a_packet_others_drop_names_them", |lab| {
        if !fairlead_testkit::need("a_packet_others_drop_names_them", "nft") {
            return;
        }
        dns(lab);
        lab.endpoints("dns", "A");
        tool("nft", &["add table inet wall"]);
        tool("nft", &["add chain inet wall in { type filter hook input priority 0; policy accept; }"]);
        tool("nft", &["add rule inet wall in udp dport 1 accept"]);
        tool("nft", &["add rule inet wall in udp dport 5353 drop comment \"no DNS here\""]);
        let report = probe("10.96.0.10:53", Protocol::Udp, Some(lab.client()));
        check_end(&report, Some("inet wall in"));
        assert_eq!(report.ended_by().unwrap().what, "rule 2 of 2 (no DNS here) drops it");
        assert_eq!(report.last_seen.unwrap().1, SocketAddr::new(ENDPOINTS[A][0].parse().unwrap(), PORT));
        tool("nft", &["add table ip raw"]);
        tool("nft", &["add chain ip raw pre { type filter hook prerouting priority -300; policy drop; }"]);
        let report = probe("10.96.0.10:53", Protocol::Udp, Some(lab.client()));
        check_end(&report, Some("ip raw pre"));
        assert_eq!((report.steps.len(), report.flow), (1, None));
    });
}

#[test]
fn what_cannot_be_sent_says_why() {
    in_lab("what_cannot_be_sent_says_why", |_| {
        let report = probe("10.96.0.10:53", Protocol::Sctp, None);
        assert_eq!(report.answer, Reply::Failed("only TCP and UDP are sent".to_owned()));
        let probe =
            Probe { to: "10.96.0.10:53".parse().unwrap(), protocol: Protocol::Udp, namespace: Some("no".into()) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert!(runtime.block_on(send(&probe)).is_err());
        assert!(PATIENCE < Duration::from_secs(1), "the kernel sends again after a second");
    });
}
