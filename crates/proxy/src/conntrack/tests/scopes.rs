//! What of the table is looked at, and how.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_api::source::Key;
use fairlead_kernel::conntrack::Filter;
use fairlead_plan::{Change, Node, PlanChange, Planner};
use serde_json::{Value, json};

use crate::conntrack::scope::Scope;
use crate::conntrack::{Effort, LONGEST_REST, LOOKS, Reconciler};

fn service(name: &str, protocol: &str, ports: &[u16]) -> Change {
    let ports: Vec<Value> =
        ports.iter().map(|port| json!({"name": format!("p{port}"), "port": port, "protocol": protocol})).collect();
    let ip = format!("10.96.0.{}", name.len());
    let object = json!({"metadata": {"name": name, "namespace": "default"}, "spec": {"clusterIP": ip, "ports": ports}});
    Change::Service(Key::new("default", name), Some(Arc::new(serde_json::from_value(object).unwrap())))
}

fn slice(of: &str, protocol: &str, endpoints: &[&str]) -> Change {
    let endpoints: Vec<Value> = endpoints.iter().map(|ip| json!({"addresses": [ip]})).collect();
    let object = json!({
        "metadata": {"name": of, "namespace": "default", "labels": {"kubernetes.io/service-name": of}},
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{"name": "p53", "port": 5353, "protocol": protocol}],
    });
    Change::Slice(Key::new("default", of), Some(Arc::new(serde_json::from_value(object).unwrap())))
}

/// Takes steps, and checks what is looked at after the last when so many flows are known.
fn check(known: u32, steps: impl IntoIterator<Item = Change>, expected: &[Filter]) {
    let mut planner = Planner::new(Node::default());
    let change = steps.into_iter().map(|step| planner.apply([step])).last().unwrap_or_default();
    assert_eq!(Scope::changed(planner.plan(), &change).filters(known), expected, "{change:?}");
}

fn udp() -> Filter {
    Filter { protocol: Some(17), ipv6: Some(false), ..Filter::default() }
}

fn to(ip: &str, port: u16) -> Filter {
    Filter { destination: Some(ip.parse().unwrap()), destination_port: Some(port), ..udp() }
}

fn at(ip: &str) -> Filter {
    Filter { answers_from: Some(ip.parse().unwrap()), answers_from_port: Some(5353), ..udp() }
}

#[test]
fn a_change_is_looked_for_where_it_may_be_felt() {
    let web = || service("web", "UDP", &[53]);
    let both = || slice("web", "UDP", &["10.244.0.1", "10.244.0.2"]);
    check(1, [web()], &[to("10.96.0.3", 53)]);
    check(1, [web(), both()], &[to("10.96.0.3", 53)]);
    check(1, [web(), slice("web", "UDP", &["10.244.0.1"]), both()], &[]);
    check(1, [web(), both(), slice("web", "UDP", &["10.244.0.2"])], &[at("10.244.0.1")]);
    check(1, [web(), both(), Change::Service(Key::new("default", "web"), None)], &[udp()]);
    check(100_000, [web(), both(), slice("web", "UDP", &[])], &[at("10.244.0.1"), at("10.244.0.2")]);
    check(1, [web(), both(), slice("web", "UDP", &[])], &[udp()]);
    check(100_000, [service("many", "UDP", &[1, 2, 3, 4, 5, 6, 7, 8, 9])], &[udp()]);
}

#[test]
fn nothing_is_looked_at_when_no_flow_can_be_stale() {
    check(0, [service("web", "UDP", &[53])], &[]);
    check(1, [service("web", "TCP", &[53])], &[]);
    check(1, [service("web", "TCP", &[53]), slice("web", "TCP", &["10.244.0.1"]), slice("web", "TCP", &[])], &[]);
    let planner = Planner::new(Node::default());
    assert!(Scope::changed(planner.plan(), &PlanChange::default()).is_empty());
}

#[test]
fn a_node_with_another_address_is_looked_at_whole() {
    let node = Node { addresses: ["192.168.7.1".parse().unwrap()].into(), ..Node::default() };
    check(1, [service("web", "UDP", &[53]), Change::Node(Box::new(node))], &[udp()]);
    let labelled = Node { labels: [("a".to_owned(), "b".to_owned())].into(), ..Node::default() };
    check(1, [service("web", "UDP", &[53]), Change::Node(Box::new(labelled))], &[]);
}

#[test]
fn looks_rest_when_they_take_long_but_not_for_ever() {
    let start = Instant::now();
    let after = |millis| start + Duration::from_millis(millis);
    let mut effort = Effort::default();
    assert_eq!(effort.rest(start), Duration::ZERO);
    effort.add(Duration::from_millis(150), start);
    assert_eq!(effort.rest(start), Duration::ZERO, "a stretch is free");
    effort.add(Duration::from_millis(70), start);
    assert_eq!(effort.rest(start), Duration::from_millis(200));
    assert_eq!(effort.rest(after(100)), Duration::from_millis(100));
    assert_eq!(effort.rest(after(200)), Duration::ZERO);
    effort.add(Duration::from_secs(60), start);
    assert_eq!(effort.rest(start), LONGEST_REST);
    assert_eq!(effort.rest(after(1000)), Duration::ZERO);
}

#[test]
fn a_later_look_is_put_off_for_what_is_new_but_not_for_ever() {
    let mut planner = Planner::new(Node::default());
    let change = planner.apply([service("web", "UDP", &[53])]);
    let scope = || Scope::changed(planner.plan(), &change);
    let (start, delay) = (Instant::now(), LOOKS[1]);
    let mut reconciler = Reconciler::new();
    let due = |reconciler: &Reconciler| reconciler.rounds[1].as_ref().map(|round| round.due - start);
    reconciler.schedule(1, scope(), start);
    assert_eq!(due(&reconciler), Some(delay));
    reconciler.schedule(1, scope(), start + delay);
    assert_eq!(due(&reconciler), Some(delay * 2));
    reconciler.schedule(1, scope(), start + delay * 9);
    assert_eq!(due(&reconciler), Some(delay * 4));
    assert!(reconciler.take_due(start + delay * 3).is_empty());
    assert!(!reconciler.take_due(start + delay * 4).is_empty());
    assert!(reconciler.rounds[1].is_none() && reconciler.rounds[2].is_some(), "and once more");
}
