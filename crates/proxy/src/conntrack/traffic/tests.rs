//! Packets and bytes of real connections, while they live and after.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::json;

use super::*;
use crate::lab::{Lab, in_lab, tool};

fn dns(lab: &mut Lab) {
    let spec = json!({
        "type": "NodePort", "clusterIP": "10.96.0.10",
        "ports": [{"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053}],
    });
    lab.service("dns", Some(json!({"spec": spec})));
    lab.endpoints("dns", "A");
}

/// Connections, packets and bytes of the one endpoint, and of each frontend in order.
fn measured(meter: &mut Meter, lab: &Lab) -> Vec<(u64, u64, u64)> {
    let mut counters = Counters::default();
    assert_eq!(meter.measure(lab.plan(), &mut counters).unwrap(), 0);
    let all = counters.endpoints.values().chain(counters.frontends.values());
    all.map(|it| (it.connections, it.packets, it.bytes)).collect()
}

#[test]
fn packets_and_bytes_are_counted_while_connections_live_and_after() {
    in_lab("packets_and_bytes_are_counted_while_connections_live_and_after", |lab| {
        dns(lab);
        assert!(Meter::start().unwrap().is_none(), "the kernel is not told to count");
        sysctl::write(ACCOUNTING, "1").unwrap();
        let mut meter = Meter::start().unwrap().unwrap();
        lab.send_from_ports("10.96.0.10:53", 10);
        lab.send_from_ports("192.168.7.1:30053", 5);
        // Not to a Service.
        lab.send_from_ports("10.244.1.1:5353", 5);
        // One byte, and 28 of headers.
        let expected = [(15, 15, 15 * 29), (10, 10, 10 * 29), (5, 5, 5 * 29)];
        assert_eq!(measured(&mut meter, lab), expected);
        lab.forget_all();
        // While ends are gathered, nothing gets less; after that, all of them are known.
        assert_eq!(measured(&mut meter, lab), expected);
        thread::sleep(GATHER * 4);
        assert_eq!(measured(&mut meter, lab), expected);
        lab.send_from_ports("10.96.0.10:53", 1);
        assert_eq!(measured(&mut meter, lab)[0], (16, 16, 16 * 29));
    });
}

#[test]
fn answers_count_and_exact_connections_are_kept() {
    in_lab("answers_count_and_exact_connections_are_kept", |lab| {
        dns(lab);
        sysctl::write(ACCOUNTING, "1").unwrap();
        let mut meter = Meter::start().unwrap().unwrap();
        tool("conntrack", &["-F"]);
        lab.answers = true;
        let sender = lab.send_to("10.96.0.10:53");
        lab.wait_for(crate::lab::A, Duration::from_secs(2)).unwrap();
        lab.wait_for(crate::lab::A, Duration::from_secs(2)).unwrap();
        drop(sender);
        let mut counters = Counters::default();
        let port = lab.plan().pools().next().unwrap().key.port.clone();
        let key = (port, "10.244.1.1:5353".parse().unwrap());
        counters.endpoints.insert(key.clone(), Traffic { connections: 77, ..Traffic::default() });
        meter.measure(lab.plan(), &mut counters).unwrap();
        let traffic = counters.endpoints[&key];
        assert_eq!(traffic.connections, 77);
        assert!(traffic.packets > 2, "there and back: {traffic:?}");
        let back = traffic.back.expect("connection tracking knows directions");
        assert!(back.packets > 0 && back.bytes > 0 && back.bytes < traffic.bytes, "{traffic:?}");
    });
}
