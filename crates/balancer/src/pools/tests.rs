use std::sync::Arc;

use fairlead_api::selector::LabelSelector;
use fairlead_api::source::Key;
use fairlead_api::view::{Protocol, Service};
use serde_json::{Value, json};

use super::{Ledger, Owner, Pool, Range, Wish, overlap};
use crate::spec::Scheme;

fn pool(name: &str, ranges: &str) -> Pool {
    Pool::new(name, ranges.split(',').map(|range| range.parse().unwrap()).collect(), Scheme::Public)
}

/// A Service of type LoadBalancer with a port 80, with some fields replaced.
fn service(name: &str, more: &Value) -> (Arc<Key>, Service) {
    let mut object = json!({
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.1", "ipFamilies": ["IPv4"], "ports": [{"port": 80}]},
    });
    merge(&mut object, more);
    let service: Service = serde_json::from_value(object).unwrap();
    (Arc::new(Key::new(service.metadata.namespace.as_str(), name)), service)
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            more.iter().for_each(|(key, value)| merge(into.entry(key.clone()).or_insert(Value::Null), value));
        }
        (into, more) => *into = more.clone(),
    }
}

/// What a Service gets, or the beginning of why not.
fn ask(ledger: &mut Ledger, name: &str, more: &Value) -> String {
    ask_of(ledger, Scheme::Public, name, more)
}

fn ask_of(ledger: &mut Ledger, scheme: Scheme, name: &str, more: &Value) -> String {
    let (key, service) = service(name, more);
    let assigned = Wish::read(key, &service, scheme).and_then(|wish| ledger.assign(&wish));
    match assigned {
        Ok(ips) => ips.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        Err(refusal) => format!("no: {refusal}"),
    }
}

#[track_caller]
fn refused(answer: &str, why: &str) {
    assert!(answer.starts_with("no: ") && answer.contains(why), "{answer:?} should say {why:?}");
}

fn annotated(name: &str, value: &str) -> Value {
    json!({"metadata": {"annotations": {name: value}}})
}

#[test]
fn the_lowest_free_address_is_given_and_given_again_when_it_is_back() {
    let mut ledger = Ledger::new(vec![pool("p", "192.0.2.0/30")]);
    assert_eq!(ask(&mut ledger, "a", &json!({})), "192.0.2.1");
    assert_eq!(ask(&mut ledger, "b", &json!({})), "192.0.2.2");
    assert_eq!(ask(&mut ledger, "a", &json!({})), "192.0.2.1");
    assert_eq!(ask(&mut ledger, "c", &json!({})), "192.0.2.3");
    refused(&ask(&mut ledger, "d", &json!({})), "every IPv4 address of pool \"p\" is taken");
    ledger.release(&Key::new("default", "b"));
    assert_eq!(ask(&mut ledger, "d", &json!({})), "192.0.2.2");
}

#[test]
fn addresses_that_end_in_0_or_255_are_for_who_asks_or_who_lists_them_alone() {
    let mut ledger = Ledger::new(vec![pool("p", "192.0.2.254-192.0.3.1"), pool("q", "198.51.100.0")]);
    assert_eq!(ask(&mut ledger, "a", &json!({})), "192.0.2.254");
    assert_eq!(ask(&mut ledger, "b", &json!({})), "192.0.3.1");
    assert_eq!(ask(&mut ledger, "c", &json!({})), "198.51.100.0");
    refused(&ask(&mut ledger, "d", &json!({})), "is taken");
    assert_eq!(ask(&mut ledger, "d", &json!({"spec": {"loadBalancerIP": "192.0.2.255"}})), "192.0.2.255");
    let plain = Pool { avoid_buggy: false, ..pool("p", "192.0.2.0/30") };
    assert_eq!(ask(&mut Ledger::new(vec![plain]), "a", &json!({})), "192.0.2.0");
}

#[test]
fn an_address_can_be_asked_for_by_field_and_annotations() {
    for name in ["fairlead.dev/load-balancer-ips", "metallb.io/loadBalancerIPs", "metallb.universe.tf/loadBalancerIPs"]
    {
        let mut ledger = Ledger::new(vec![pool("p", "192.0.2.0/28")]);
        assert_eq!(ask(&mut ledger, "a", &annotated(name, "192.0.2.9")), "192.0.2.9", "{name}");
        refused(&ask(&mut ledger, "b", &annotated(name, "192.0.2.9")), "belongs to the Service default/a");
        refused(&ask(&mut ledger, "b", &annotated(name, "192.0.2.99")), "accepted: 192.0.2.0-192.0.2.15");
        refused(&ask(&mut ledger, "b", &annotated(name, "nine")), &format!("{name}: \"nine\" is no address"));
        refused(&ask(&mut ledger, "b", &annotated(name, "192.0.2.7,192.0.2.8")), "one address each of IPv4");
        refused(&ask(&mut ledger, "b", &annotated(name, "2001:db8::1")), "one address each of IPv4");
        let mut both = annotated(name, "192.0.2.7");
        both["spec"] = json!({"loadBalancerIP": "192.0.2.8"});
        refused(&ask(&mut ledger, "b", &both), "say different things");
        both["spec"] = json!({"loadBalancerIP": "192.0.2.7"});
        assert_eq!(ask(&mut ledger, "b", &both), "192.0.2.7");
    }
}

#[test]
fn a_pool_can_be_asked_for() {
    let closed = Pool { auto_assign: false, ..pool("closed", "192.0.2.0/28") };
    for name in ["fairlead.dev/address-pool", "metallb.io/address-pool", "metallb.universe.tf/address-pool"] {
        let mut ledger = Ledger::new(vec![closed.clone(), pool("open", "198.51.100.0/28")]);
        assert_eq!(ask(&mut ledger, "a", &json!({})), "198.51.100.1");
        assert_eq!(ask(&mut ledger, "b", &annotated(name, "closed")), "192.0.2.1", "{name}");
        assert_eq!(ask(&mut ledger, "a", &annotated(name, "closed")), "192.0.2.2", "one of another pool is not kept");
        refused(&ask(&mut ledger, "c", &annotated(name, "none")), "accepted: closed, open");
    }
    refused(&ask(&mut Ledger::new(vec![closed]), "a", &json!({})), "not assigned automatically");
}

#[test]
fn pools_for_some_come_first_then_by_priority_and_none_is_last() {
    let for_some = Pool { namespaces: vec!["default".to_owned()], ..pool("some", "192.0.2.1") };
    let for_others = Pool { namespaces: vec!["other".to_owned()], ..pool("others", "192.0.2.2") };
    let labelled = |text: &str, pool| Pool { selectors: vec![LabelSelector::parse(text).unwrap()], ..pool };
    let urgent = Pool { priority: 1, ..pool("urgent", "192.0.2.4") };
    let later = Pool { priority: 20, ..pool("later", "192.0.2.5") };
    let web = labelled("app in (web, api)", pool("web", "192.0.2.6"));
    let last = pool("last", "192.0.2.3");
    let mut ledger = Ledger::new(vec![last, later, urgent, for_others, for_some, web]);
    for expected in ["192.0.2.1", "192.0.2.4", "192.0.2.5", "192.0.2.3"] {
        assert_eq!(ask(&mut ledger, expected, &json!({})), expected);
    }
    refused(&ask(&mut ledger, "more", &json!({})), "is taken");
    assert_eq!(ask(&mut ledger, "web", &json!({"metadata": {"labels": {"app": "api"}}})), "192.0.2.6");
    assert_eq!(ask(&mut ledger, "o", &json!({"metadata": {"namespace": "other"}})), "192.0.2.2");
    let wanted = json!({"spec": {"loadBalancerIP": "192.0.2.2"}});
    refused(&ask(&mut ledger, "more", &wanted), "192.0.2.2 is in no pool this Service may use");
}

#[test]
fn without_a_pool_that_fits_the_flag_that_makes_one_is_named() {
    refused(&ask(&mut Ledger::new(Vec::new()), "a", &json!({})), "--pool");
    let mut ledger = Ledger::new(vec![pool("p", "192.0.2.0/28")]);
    refused(&ask_of(&mut ledger, Scheme::Internal, "a", &json!({})), "--internal-pool");
    refused(&ask(&mut ledger, "a", &json!({"spec": {"ipFamilies": ["IPv6"]}})), "no public pool has IPv6 addresses");
    let inside = Pool { scheme: Scheme::Internal, ..pool("inside", "10.9.0.0/28") };
    let mut ledger = Ledger::new(vec![inside, pool("p", "192.0.2.0/28")]);
    assert_eq!(ask_of(&mut ledger, Scheme::Internal, "a", &json!({})), "10.9.0.1");
    assert_eq!(ask(&mut ledger, "a", &json!({})), "192.0.2.1", "what changes its scheme moves");
    refused(&ask(&mut ledger, "a", &annotated("fairlead.dev/address-pool", "inside")), "for internal load balancers");
}

#[test]
fn every_family_gets_an_address_and_prefer_takes_what_there_is() {
    let dual = |policy: &str| json!({"spec": {"ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": policy}});
    let mut both = Ledger::new(vec![pool("p", "192.0.2.0/28,2001:db8::10-2001:db8::20")]);
    assert_eq!(ask(&mut both, "a", &dual("RequireDualStack")), "2001:db8::10,192.0.2.1");
    let mut one = Ledger::new(vec![pool("p", "192.0.2.0/28")]);
    refused(&ask(&mut one, "a", &dual("RequireDualStack")), "IPv6");
    assert_eq!(ask(&mut one, "a", &dual("PreferDualStack")), "192.0.2.1");
    let mut asked = dual("RequireDualStack");
    asked["metadata"] = json!({"annotations": {"metallb.io/loadBalancerIPs": "192.0.2.7, 2001:db8::1f"}});
    assert_eq!(ask(&mut both, "b", &asked), "2001:db8::1f,192.0.2.7");
    asked["metadata"] = json!({"annotations": {"metallb.io/loadBalancerIPs": "192.0.2.8"}});
    assert_eq!(ask(&mut both, "c", &asked), "2001:db8::11,192.0.2.8");
}

#[test]
fn what_the_status_says_is_kept_as_long_as_it_is_allowed() {
    let has = |ip: &str| json!({"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}});
    let mut ledger = Ledger::new(vec![pool("p", "192.0.2.0/28")]);
    assert_eq!(ask(&mut ledger, "a", &has("192.0.2.7")), "192.0.2.7");
    assert_eq!(ask(&mut ledger, "b", &has("192.0.2.7")), "192.0.2.1", "who came first keeps it");
    assert_eq!(ask(&mut ledger, "c", &has("198.51.100.1")), "192.0.2.2", "the pool is gone");
    let mut moved = has("192.0.2.7");
    moved["spec"] = json!({"loadBalancerIP": "192.0.2.9"});
    assert_eq!(ask(&mut ledger, "a", &moved), "192.0.2.9");
    assert_eq!(ask(&mut ledger, "a", &has("192.0.2.7")), "192.0.2.9", "its status is older than what it was given");
    moved["spec"] = json!({"loadBalancerIP": "192.0.2.99"});
    refused(&ask(&mut ledger, "a", &moved), "no pool");
    assert_eq!(ledger.addresses(&Key::new("default", "a")), ["192.0.2.9".parse::<std::net::IpAddr>().unwrap()]);
}

#[test]
fn addresses_of_nodes_and_cluster_ips_are_never_given() {
    let mut ledger = Ledger::new(vec![pool("p", "192.0.2.1-192.0.2.4")]);
    let node = Owner::Node("n1".into());
    ledger.reserve("192.0.2.1".parse().unwrap(), node.clone());
    ledger.reserve("192.0.2.2".parse().unwrap(), Owner::ClusterIp(Arc::new(Key::new("default", "x"))));
    assert_eq!(ask(&mut ledger, "a", &json!({})), "192.0.2.3");
    let wanted = |ip: &str| json!({"spec": {"loadBalancerIP": ip}});
    refused(&ask(&mut ledger, "b", &wanted("192.0.2.1")), "an address of the Node n1");
    refused(&ask(&mut ledger, "b", &wanted("192.0.2.2")), "the cluster IP of the Service default/x");
    ledger.reserve("192.0.2.3".parse().unwrap(), node.clone());
    assert_eq!(ask(&mut ledger, "a", &json!({})), "192.0.2.4", "a Node that comes takes its address");
    ledger.unreserve("192.0.2.1".parse().unwrap(), &node);
    assert_eq!(ask(&mut ledger, "b", &json!({})), "192.0.2.1");
}

/// What two Services that want one address get, the second with these fields.
#[track_caller]
fn share(several: bool, first: &Value, second: &Value, expected: &str) {
    let mut ledger = Ledger::new(vec![pool("p", "192.0.2.0/28")]);
    ledger.set_several_nodes(several);
    let wanted = |name: &str, more: &Value| {
        let mut wish = json!({"spec": {"loadBalancerIP": "192.0.2.5"}, "metadata": {"annotations": {}}});
        merge(&mut wish, more);
        (name.to_owned(), wish)
    };
    let (name, wish) = wanted("a", first);
    assert_eq!(ask(&mut ledger, &name, &wish), "192.0.2.5");
    let (name, wish) = wanted("b", second);
    let answer = ask(&mut ledger, &name, &wish);
    if expected.starts_with("192") { assert_eq!(answer, expected) } else { refused(&answer, expected) }
}

#[test]
fn an_address_is_shared_by_key_with_other_ports() {
    let key = |key: &str, port: u16| json!({"metadata": {"annotations": {"metallb.io/allow-shared-ip": key}}, "spec": {"ports": [{"port": port}]}});
    let local = |mut more: Value, app: &str| {
        more["spec"]["externalTrafficPolicy"] = json!("Local");
        more["spec"]["selector"] = json!({"app": app});
        more
    };
    share(false, &key("k", 80), &key("k", 443), "192.0.2.5");
    share(false, &key("k", 80), &key("other", 443), "same value of");
    share(false, &json!({}), &key("k", 443), "same value of");
    share(false, &key("k", 80), &json!({"spec": {"ports": [{"port": 443}]}}), "same value of");
    share(false, &key("k", 80), &key("k", 80), "both have the port 80/TCP");
    let mut udp = key("k", 80);
    udp["spec"]["ports"][0]["protocol"] = json!("UDP");
    share(false, &key("k", 80), &udp, "192.0.2.5");
    share(false, &local(key("k", 80), "a"), &local(key("k", 443), "b"), "192.0.2.5");
    share(true, &local(key("k", 80), "a"), &local(key("k", 443), "b"), "the same selector");
    share(true, &local(key("k", 80), "a"), &local(key("k", 443), "a"), "192.0.2.5");
    share(true, &key("k", 80), &key("k", 443), "192.0.2.5");
}

#[test]
fn who_has_a_key_and_asks_for_no_address_gets_the_shared_one() {
    let key = |port: u16| json!({"metadata": {"annotations": {"fairlead.dev/allow-shared-ip": "k"}}, "spec": {"ports": [{"port": port}]}});
    let mut ledger = Ledger::new(vec![pool("p", "192.0.2.0/28")]);
    assert_eq!(ask(&mut ledger, "x", &json!({})), "192.0.2.1");
    assert_eq!(ask(&mut ledger, "a", &key(80)), "192.0.2.2");
    assert_eq!(ask(&mut ledger, "b", &key(443)), "192.0.2.2");
    assert_eq!(ask(&mut ledger, "c", &key(80)), "192.0.2.3", "its port is taken there");
    ledger.release(&Key::new("default", "a"));
    assert_eq!(ask(&mut ledger, "d", &json!({})), "192.0.2.4", "one of two still has it");
    ledger.release(&Key::new("default", "b"));
    assert_eq!(ask(&mut ledger, "e", &json!({})), "192.0.2.2");
}

#[test]
fn ranges_are_read_and_what_is_none_says_why() {
    let check = |text: &str, expected: &str| {
        let read = text.parse::<Range>().map_or_else(|error| error.to_string(), |range| range.to_string());
        assert!(read.contains(expected), "{text}: {read}");
    };
    check("192.0.2.0/28", "192.0.2.0-192.0.2.15");
    check("192.0.2.5/28", "192.0.2.0-192.0.2.15");
    check(" 192.0.2.10 - 192.0.2.20 ", "192.0.2.10-192.0.2.20");
    check("192.0.2.7", "192.0.2.7");
    check("2001:db8::/126", "2001:db8::-2001:db8::3");
    check("192.0.2.20-192.0.2.10", "ends before it begins");
    check("192.0.2.20-2001:db8::1", "ends before it begins");
    check("127.0.0.1", "loopback");
    check("224.0.0.0/8", "multicast");
    check("0.0.0.0/0", "unspecified");
    check("many", "want one such as");
    check("192.0.2.0/33", "want one such as");
}

#[test]
fn pools_that_overlap_are_found() {
    let check = |one: &str, other: &str, meet: bool| {
        let pools = [pool("one", one), pool("other", other)];
        assert_eq!(overlap(&pools).is_some(), meet, "{one} {other}");
    };
    check("192.0.2.0/28", "192.0.2.16/28", false);
    check("192.0.2.0/28", "192.0.2.15-192.0.2.16", true);
    check("192.0.2.0/24", "198.51.100.0/24,192.0.2.7", true);
    check("192.0.2.0/24", "2001:db8::/64", false);
}

#[test]
fn a_pool_of_a_million_addresses_costs_what_is_used_of_it() {
    let mut ledger = Ledger::new(vec![pool("p", "10.0.0.0/8")]);
    let (_, template) = service("x", &json!({}));
    for index in 0..50_000 {
        let key = Arc::new(Key::new("default", format!("s{index}")));
        let wish = Wish::read(key, &template, Scheme::Public).unwrap();
        assert_eq!(ledger.assign(&wish).unwrap().len(), 1);
    }
    assert_eq!(ledger.holders("10.0.0.1".parse().unwrap()).count(), 1);
    assert_eq!(service("x", &json!({})).1.spec.ports[0].protocol, Protocol::Tcp);
}
