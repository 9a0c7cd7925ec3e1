//! Steady senders through every change that leaves the kernel with a wrong memory, with real sockets, rules and flows.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod scopes;

use std::time::{Duration, Instant};

use fairlead_plan::Family;
use serde_json::{Value, json};

use crate::lab::{A, B, Lab, SETTLED, in_lab};

/// No sender may be left alone for longer: a multiple of what it takes, for busy machines.
const LIMIT: Duration = Duration::from_secs(10);

/// Addresses of a Service under which its clients know it.
const ADDRESSES: [&str; 5] =
    ["10.96.0.10:53", "192.168.7.1:30053", "203.0.113.7:53", "198.51.100.7:53", "[fd00:96::10]:53"];

/// A Service with all those addresses.
fn dns() -> Value {
    json!({"spec": {
        "type": "LoadBalancer", "clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10", "fd00:96::10"],
        "ipFamilies": ["IPv4", "IPv6"], "externalIPs": ["198.51.100.7"],
        "ports": [{"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053}],
    }, "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}})
}

fn without(field: &str) -> Value {
    let mut service = dns();
    service["spec"].as_object_mut().unwrap().remove(field);
    service
}

fn with(field: &str, value: Value) -> Value {
    let mut service = dns();
    service["spec"][field] = value;
    service
}

/// A change of the cluster: the Service, if it is another, and its endpoints, if they are.
struct Step {
    service: Option<Option<Value>>,
    endpoints: Option<&'static str>,
}

/// Begins with endpoint A, which answers if endpoints do, takes the step under a sender to each address, and says who must get its packets then.
fn check(test: &str, step: &Step, expected: Option<usize>) {
    for answers in [false, true] {
        check_if(test, answers, step, expected);
    }
}

fn check_if(test: &str, answers: bool, step: &Step, expected: Option<usize>) {
    in_lab(test, |lab| {
        lab.answers = answers;
        for address in ADDRESSES {
            lab.service("dns", Some(dns()));
            lab.endpoints("dns", "A");
            let sender = lab.send_to(address);
            lab.wait_for(A, LIMIT).unwrap_or_else(|| panic!("{test}: {address} does not work"));
            if let Some(service) = &step.service {
                lab.service("dns", service.clone());
            }
            if let Some(endpoints) = step.endpoints {
                lab.endpoints("dns", endpoints);
            }
            match expected {
                Some(who) => {
                    let took = lab.wait_for(who, LIMIT).unwrap_or_else(|| panic!("{test}: {address} is lost"));
                    lab.say(&format!("{test}: {address} works again after {took:?}"));
                    assert!(lab.is_left_alone(1 - who, LIMIT), "{test}: {address} still gets to the other");
                }
                None => assert!(lab.is_left_alone(A, LIMIT), "{test}: {address} still gets through"),
            }
            drop(sender);
        }
    });
}

fn endpoints(endpoints: &'static str) -> Step {
    Step { service: None, endpoints: Some(endpoints) }
}

fn service(service: Option<Value>) -> Step {
    Step { service: Some(service), endpoints: None }
}

#[test]
fn an_endpoint_is_replaced() {
    check("an_endpoint_is_replaced", &endpoints("B"), Some(B));
}

#[test]
fn the_last_endpoint_goes() {
    check("the_last_endpoint_goes", &endpoints(""), None);
}

#[test]
fn an_endpoint_serves_no_more() {
    check("an_endpoint_serves_no_more", &endpoints("A gone,B"), Some(B));
}

#[test]
fn an_endpoint_on_its_way_out_keeps_its_flows() {
    check("an_endpoint_on_its_way_out_keeps_its_flows", &endpoints("A leaving,B"), Some(A));
}

#[test]
fn a_new_endpoint_takes_no_flow_away() {
    check("a_new_endpoint_takes_no_flow_away", &endpoints("A,B"), Some(A));
}

#[test]
fn a_service_is_deleted() {
    check("a_service_is_deleted", &service(None), None);
}

#[test]
fn a_service_and_its_endpoints_go_at_once() {
    check("a_service_and_its_endpoints_go_at_once", &Step { service: Some(None), endpoints: Some("") }, None);
}

#[test]
fn policies_are_for_new_flows() {
    let step = Step { service: Some(Some(with("externalTrafficPolicy", json!("Local")))), endpoints: Some("A,B") };
    // To the rules a flow is new until it is answered.
    check_if("policies_are_for_new_flows", true, &step, Some(A));
}

#[test]
fn clients_that_stay_with_their_endpoint_are_sent_to_another_when_it_goes() {
    let affinity = Some(Some(with("sessionAffinity", json!("ClientIP"))));
    let test = "clients_that_stay_with_their_endpoint_are_sent_to_another_when_it_goes";
    check(test, &Step { service: affinity, endpoints: Some("B") }, Some(B));
}

/// What is sent before anybody serves it: the kernel remembers that it led nowhere.
#[test]
fn a_service_is_made_under_a_sender() {
    in_lab("a_service_is_made_under_a_sender", |lab| {
        for address in ADDRESSES {
            for first in ["", "B"] {
                lab.service("dns", None);
                let sender = lab.send_to(address);
                let start = Instant::now();
                while lab.flows_to(address) == 0 {
                    assert!(start.elapsed() < LIMIT, "{address} is not remembered");
                    std::thread::sleep(Duration::from_millis(5));
                }
                lab.service("dns", Some(dns()));
                lab.endpoints("dns", first);
                std::thread::sleep(SETTLED);
                lab.endpoints("dns", "B");
                assert!(lab.wait_for(B, LIMIT).is_some(), "{address} after {first:?}");
                drop(sender);
            }
        }
    });
}

#[test]
fn one_address_of_a_service_goes() {
    in_lab("one_address_of_a_service_goes", |lab| {
        let no_balancer = json!({"spec": dns()["spec"]});
        let no_node_port = {
            let mut service = dns();
            service["spec"]["ports"][0].as_object_mut().unwrap().remove("nodePort");
            service
        };
        let cases = [
            ("198.51.100.7:53", without("externalIPs")),
            ("203.0.113.7:53", no_balancer),
            ("192.168.7.1:30053", no_node_port),
        ];
        for (address, after) in cases {
            lab.service("dns", Some(dns()));
            lab.endpoints("dns", "A");
            let (sender, other) = (lab.send_to(address), lab.send_to("10.96.0.10:53"));
            lab.wait_for(A, LIMIT).unwrap();
            lab.service("dns", Some(after));
            drop(other);
            assert!(lab.is_left_alone(A, LIMIT), "{address} still gets through");
            assert_eq!(lab.flows_to("10.96.0.10:53"), 1, "the other address keeps its flow");
            drop(sender);
            lab.forget_all();
        }
    });
}

#[test]
fn another_service_takes_the_address() {
    in_lab("another_service_takes_the_address", |lab| {
        for address in ADDRESSES {
            lab.service("other", None);
            lab.service("dns", Some(dns()));
            lab.endpoints("dns", "A");
            lab.endpoints("other", "B");
            let sender = lab.send_to(address);
            lab.wait_for(A, LIMIT).unwrap();
            lab.replace_service("dns", "other", dns());
            assert!(lab.wait_for(B, LIMIT).is_some(), "{address}");
            assert!(lab.is_left_alone(A, LIMIT), "{address}");
            drop(sender);
        }
    });
}

#[test]
fn flows_that_are_not_to_a_service_are_left_alone() {
    in_lab("flows_that_are_not_to_a_service_are_left_alone", |lab| {
        lab.service("dns", Some(dns()));
        lab.endpoints("dns", "A");
        let senders = ["10.244.1.1:5353", "192.168.7.1:9999"].map(|address| lab.send_to(address));
        // A foreign translation, to where one of ours led.
        lab.insert_flow(&["-p", "udp", "-s", "10.9.9.9", "-d", "10.96.200.1", "--sport", "7", "--dport", "53"], A);
        // Others track in zones of their own.
        lab.insert(&["-p", "udp", "-s", "10.9.9.9", "-d", "10.96.0.10", "--sport", "8", "--dport", "53", "-w", "7"]);
        // TCP to an endpoint that will be gone.
        let tcp = ["-p", "tcp", "-s", "10.9.9.9", "-d", "10.96.0.10", "--sport", "9", "--dport", "53"];
        lab.insert_flow(&[&tcp[..], &["--state", "ESTABLISHED"]].concat(), A);
        std::thread::sleep(SETTLED);
        let before = lab.flows();
        lab.endpoints("dns", "");
        lab.service("dns", None);
        lab.look_until_done();
        lab.full();
        assert_eq!(lab.flows(), before);
        drop(senders);
    });
}

#[test]
fn a_flow_that_comes_back_after_the_change_is_found() {
    in_lab("a_flow_that_comes_back_after_the_change_is_found", |lab| {
        let flow = ["-p", "udp", "-s", "10.9.9.9", "-d", "10.96.0.10", "--sport", "7", "--dport", "53"];
        for deleted in [false, true] {
            lab.service("dns", Some(dns()));
            lab.endpoints("dns", "A");
            match deleted {
                true => lab.service("dns", None),
                false => lab.endpoints("dns", ""),
            }
            lab.insert_flow(&flow, A);
            assert_eq!(lab.flows_to("10.96.0.10:53"), 1);
            assert_eq!(lab.look_until_done(), 1, "deleted: {deleted}");
            assert_eq!(lab.flows_to("10.96.0.10:53"), 0);
        }
    });
}

/// An earlier run may have left flows to endpoints that went while nobody looked.
#[test]
fn the_first_look_finds_what_happened_before() {
    in_lab("the_first_look_finds_what_happened_before", |lab| {
        lab.service("dns", Some(dns()));
        lab.endpoints("dns", "B");
        lab.look_until_done();
        let flow = |to| ["-p", "udp", "-s", "10.9.9.9", "-d", to, "--sport", "7", "--dport", "53"];
        lab.insert_flow(&flow("10.96.0.10"), A);
        lab.insert_flow(&flow("203.0.113.7"), B);
        let mut fresh = super::Reconciler::new();
        let done = fresh.full(lab.plan()).unwrap();
        assert_eq!(done.deleted.get(&Family::V4), Some(&1));
        assert_eq!(lab.flows_to("203.0.113.7:53"), 1);
    });
}

#[test]
fn changes_of_tcp_cost_no_look() {
    in_lab("changes_of_tcp_cost_no_look", |lab| {
        let mut service = dns();
        service["spec"]["ports"][0]["protocol"] = json!("TCP");
        lab.service("dns", Some(service));
        lab.endpoints("dns", "A");
        lab.endpoints("dns", "B");
        lab.service("dns", None);
        assert_eq!(lab.looks, 0);
    });
}

/// Prints what a look costs when many flows are known.
#[test]
fn a_look_at_a_large_table() {
    in_lab("a_look_at_a_large_table", |lab: &mut Lab| {
        lab.service("dns", Some(dns()));
        lab.endpoints("dns", "A");
        lab.many_flows(20_000);
        let start = Instant::now();
        lab.full();
        lab.say(&format!("a look at all of 20000 flows: {:?}", start.elapsed()));
        lab.look_until_done();
        let start = Instant::now();
        lab.endpoints("dns", "");
        lab.say(&format!("an endpoint with 20000 flows goes: {:?}", start.elapsed()));
        lab.look_until_done();
        assert_eq!(lab.flows_to("10.96.0.10:53"), 0);
    });
}
