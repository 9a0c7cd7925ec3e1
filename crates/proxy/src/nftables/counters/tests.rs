//! Connections through a real kernel, counted while endpoints come and go.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::lab::{Lab, in_lab};

fn dns(affinity: bool) -> Value {
    json!({"spec": {
        "clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10", "fd00:96::10"], "ipFamilies": ["IPv4", "IPv6"],
        "sessionAffinity": if affinity { "ClientIP" } else { "None" },
        "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}],
    }})
}

/// Connections by Service and endpoint: `dns 10.244.1.1`.
fn counted(lab: &mut Lab) -> BTreeMap<String, u64> {
    let endpoints = lab.counters().endpoints;
    endpoints.iter().map(|((port, at), it)| (format!("{} {}", port.service.name, at.ip()), it.connections)).collect()
}

fn total(lab: &mut Lab) -> u64 {
    counted(lab).values().sum()
}

#[test]
fn every_connection_is_counted_though_endpoints_come_and_go() {
    for affinity in [false, true] {
        in_lab("every_connection_is_counted_though_endpoints_come_and_go", |lab| {
            lab.service("dns", Some(dns(affinity)));
            let mut sent = 0;
            for endpoints in ["A", "A,B", "B", "A,B", "A"] {
                lab.endpoints("dns", endpoints);
                lab.send_from_ports("10.96.0.10:53", 20);
                lab.send_from_ports("[fd00:96::10]:53", 5);
                sent += 25;
                assert_eq!(total(lab), sent, "affinity {affinity}, {endpoints}: {:?}", counted(lab));
            }
            let counted = counted(lab);
            assert!(counted["dns 10.244.1.1"] >= 40 && counted["dns 10.244.1.2"] >= 20, "{counted:?}");
        });
    }
}

#[test]
fn what_a_service_counted_is_not_another_ones() {
    in_lab("what_a_service_counted_is_not_another_ones", |lab| {
        lab.service("dns", Some(dns(false)));
        lab.endpoints("dns", "A");
        lab.send_from_ports("10.96.0.10:53", 7);
        // The other gets the number, the slots and the endpoint of the first.
        lab.endpoints("other", "A");
        lab.replace_service("dns", "other", dns(false));
        lab.look_until_done();
        lab.send_from_ports("10.96.0.10:53", 3);
        let all = counted(lab);
        assert_eq!((all.get("dns 10.244.1.1"), all.get("other 10.244.1.1")), (Some(&7), Some(&3)), "{all:?}");
    });
}

#[test]
fn counts_survive_when_all_is_made_anew() {
    in_lab("counts_survive_when_all_is_made_anew", |lab| {
        lab.service("dns", Some(dns(false)));
        lab.endpoints("dns", "A,B");
        lab.send_from_ports("10.96.0.10:53", 9);
        lab.load();
        assert_eq!(total(lab), 9);
        lab.send_from_ports("10.96.0.10:53", 2);
        assert_eq!(total(lab), 11);
    });
}
