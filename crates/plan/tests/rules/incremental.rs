//! A plan kept up to date is the plan made anew, and what is said to have changed is what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_plan::{
    Action, Change, Delta, Frontend, FrontendKey, LocalDetection, Node, Plan, PlanChange, Planner, Pool, PoolKey,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::lab::{node, service, slice_object, web};

#[test]
fn an_endpoint_changes_a_pool_and_nothing_else() {
    let mut lab = web(json!({"externalIPs": ["192.0.2.7"]}), "10.50.1.11 @n1");
    let change = lab.slice("web-1", "web", "10.50.1.11 @n1, 10.50.2.11 @n2");
    let counts = |change: &PlanChange| (change.frontends.len(), change.pools.len(), change.notes.len());
    assert_eq!(counts(&change), (0, 1, 0));
    assert_eq!(change.pools[0].new.as_ref().map(|pool| pool.endpoints.len()), Some(2));
    assert!(lab.slice("web-1", "web", "10.50.2.11 @n2, 10.50.1.11 @n1").is_empty(), "only the order changed");
    // The last endpoint takes the pool with it and turns both frontends into refusals.
    assert_eq!(counts(&lab.slice("web-1", "web", "")), (2, 1, 1));
}

#[test]
fn changes_taken_in_together_are_one() {
    let mut lab = web(json!({}), "10.50.1.11");
    let away = service("web", json!({"clusterIP": "10.96.0.7"}));
    let change = lab.planner.apply([away.clone(), service("web", json!({}))]);
    assert!(change.is_empty(), "{change:?}");
    assert_eq!(lab.planner.apply([away]).frontends.len(), 2);
}

#[test]
fn what_is_looked_up_by_packet_does_not_plan_anew() {
    let mut lab = web(json!({}), "10.50.1.11");
    let other = Node { guard_cluster_ips: false, addresses: BTreeSet::new(), ..node() };
    let change = lab.planner.apply([Change::Node(Box::new(other))]);
    assert_eq!(change, PlanChange { node: Some(Box::new(node())), ..PlanChange::default() });
    lab.check(&[("pod 10.96.0.1:81", "-")]);
}

#[test]
fn a_cluster_ip_two_services_have_goes_with_the_last() {
    let mut lab = web(json!({}), "");
    assert!(lab.service("twin", json!({"ports": [{"name": "b", "port": 81}]})).cluster_ips.is_empty());
    lab.planner.apply([Change::Service(Key::new("default", "web"), None)]);
    lab.check(&[("pod 10.96.0.1:80", "reject"), ("pod 10.96.0.1:81", "reject")]);
    let change = lab.planner.apply([Change::Service(Key::new("default", "twin"), None)]);
    assert_eq!(change.cluster_ips, [Delta { key: crate::lab::ip("10.96.0.1"), old: Some(()), new: None }]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn step_by_step_is_all_at_once(batches in prop::collection::vec(prop::collection::vec(change(), 1..4), 1..24)) {
        let mut planner = Planner::new(node());
        let mut shadow = Shadow::default();
        let mut objects = BTreeMap::new();
        for batch in batches {
            for change in &batch {
                objects.insert(name_of(change), change.clone());
            }
            let change = planner.apply(batch);
            shadow.follow(&change);
            prop_assert_eq!(&shadow, &Shadow::of(planner.plan()));
            holds_together(planner.plan());
        }
        // In the reverse order of names, and what is gone never was.
        let mut anew = Planner::new(node());
        anew.apply(objects.into_values().rev());
        prop_assert_eq!(anew.plan(), planner.plan());
    }
}

fn name_of(change: &Change) -> String {
    match change {
        Change::Service(key, _) => format!("service {key}"),
        Change::Slice(key, _) => format!("slice {key}"),
        Change::Labels(name, _) => format!("labels {name}"),
        Change::Node(_) => "node".to_owned(),
    }
}

/// What a renderer knows that only follows changes.
#[derive(Debug, Default, PartialEq)]
struct Shadow {
    frontends: BTreeMap<FrontendKey, Arc<Frontend>>,
    pools: BTreeMap<PoolKey, Arc<Pool>>,
    cluster_ips: BTreeSet<std::net::IpAddr>,
    notes: BTreeSet<Arc<Key>>,
}

impl Shadow {
    fn of(plan: &Plan) -> Shadow {
        Shadow {
            frontends: plan.frontends().map(|frontend| (frontend.key, frontend.clone())).collect(),
            pools: plan.pools().map(|pool| (pool.key.clone(), pool.clone())).collect(),
            cluster_ips: plan.cluster_ips().clone(),
            notes: plan.all_notes().map(|(service, _)| service.clone()).collect(),
        }
    }

    fn follow(&mut self, change: &PlanChange) {
        follow(&mut self.frontends, &change.frontends);
        follow(&mut self.pools, &change.pools);
        for Delta { key, new, .. } in &change.cluster_ips {
            assert!(if new.is_some() { self.cluster_ips.insert(*key) } else { self.cluster_ips.remove(key) });
        }
        for Delta { key, old, new } in &change.notes {
            assert_eq!(self.notes.contains(key), old.is_some());
            if new.is_some() {
                self.notes.insert(key.clone())
            } else {
                self.notes.remove(key)
            };
        }
    }
}

fn follow<K: Ord + Clone, V: PartialEq + Clone + std::fmt::Debug>(table: &mut BTreeMap<K, V>, deltas: &[Delta<K, V>]) {
    for Delta { key, old, new } in deltas {
        assert_ne!(old, new, "a change that changes nothing");
        let before = match new {
            Some(new) => table.insert(key.clone(), new.clone()),
            None => table.remove(key),
        };
        assert_eq!(&before, old, "a change from what was not there");
    }
}

/// What renderers rely on.
pub(crate) fn holds_together(plan: &Plan) {
    for frontend in plan.frontends() {
        assert_eq!(frontend.key.family(), frontend.port.family);
        for (_, action) in frontend.actions.iter() {
            if let Action::Forward { scope, .. } = action {
                assert!(plan.pool_of(frontend, scope).is_some(), "{} forwards to nothing", frontend.key);
            }
        }
    }
    for pool in plan.pools() {
        assert!(!pool.endpoints.is_empty());
        assert!(pool.endpoints.iter().all(|endpoint| endpoint.weight > 0 && endpoint.port > 0));
        assert!(pool.endpoints.is_sorted_by(|a, b| (a.ip, a.port) < (b.ip, b.port)));
        assert!(pool.endpoints.iter().all(|endpoint| plan.backends(&pool.key.port).contains(endpoint)));
    }
}

/// A change in a cluster so small that things get in each other's way.
pub(crate) fn change() -> impl Strategy<Value = Change> {
    let names = prop::sample::select(vec!["a", "b", "c"]);
    prop_oneof![
        4 => (names.clone(), spec()).prop_map(|(name, spec)| service(name, spec)),
        1 => names.clone().prop_map(|name| Change::Service(Key::new("default", name), None)),
        6 => (0..5u8, names, slice_body()).prop_map(|(at, of, body)| slice_object(&format!("s{at}"), of, body)),
        1 => (0..5u8).prop_map(|at| Change::Slice(Key::new("default", format!("s{at}")), None)),
        1 => nodes().prop_map(|node| Change::Node(Box::new(node))),
        1 => (prop::sample::select(vec!["n2", "n3"]), prop::option::of(labels()))
            .prop_map(|(name, labels)| Change::Labels(name.to_owned(), labels)),
    ]
}

fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    let key = prop::sample::select(vec!["topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack"]);
    let value = prop::sample::select(vec!["za", "zb", "n1", ""]);
    prop::collection::btree_map(key.prop_map(str::to_owned), value.prop_map(str::to_owned), 0..3)
}

fn nodes() -> impl Strategy<Value = Node> {
    let name = prop::sample::select(vec!["n1", "n2"]).prop_map(str::to_owned);
    (name, labels(), any::<[bool; 5]>()).prop_map(|(name, labels, [all, keys, guard, blind, single])| Node {
        name,
        labels,
        masquerade_all: all,
        topology_keys: keys,
        guard_cluster_ips: guard,
        detection: if blind { LocalDetection::None } else { node().detection },
        families: if single { [fairlead_api::view::Family::V4].into() } else { node().families },
        ..node()
    })
}

fn some<T: Clone + std::fmt::Debug + 'static>(of: &[T]) -> impl Strategy<Value = Vec<T>> + use<T> {
    let max = of.len().min(3);
    prop::sample::subsequence(of.to_vec(), 0..=max)
}

fn spec() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec!["ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer", "ExternalName"]);
    let policy = || prop::sample::select(vec!["Cluster", "Local"]);
    let cluster_ips = prop::sample::select(vec![
        json!(["10.96.0.1"]),
        json!(["10.96.0.2", "fd00:96::2"]),
        json!(["fd00:96::3"]),
        json!(["None"]),
        json!([]),
    ]);
    let ports = some(&[
        json!({"name": "http", "port": 80, "nodePort": 30080}),
        json!({"name": "alt", "port": 80, "nodePort": 30081}),
        json!({"name": "http", "port": 80, "protocol": "UDP", "nodePort": 30080}),
        json!({"name": "http", "port": 81}),
    ]);
    let external = some(&["192.0.2.7", "192.0.2.8", "10.96.0.1", "fd00:7::7"]);
    let ingress =
        some(&[json!({"ip": "192.0.2.7"}), json!({"ip": "192.0.2.9"}), json!({"ip": "192.0.2.8", "ipMode": "Proxy"})]);
    let more = (
        prop::sample::select(vec!["None", "ClientIP"]),
        some(&["198.51.100.0/24", "172.30.0.0/24", "0.0.0.0/0", "bad"]),
        some(&["kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack", "*"]),
        prop::sample::select(vec![None, Some("2026-01-01T00:00:00Z"), Some("2026-02-01T00:00:00Z")]),
    );
    (kind, policy(), policy(), cluster_ips, ports, external, ingress, more).prop_map(
        |(kind, internal, outer, cluster_ips, ports, external, ingress, (affinity, ranges, keys, created))| {
            json!({
                "type": kind, "internalTrafficPolicy": internal, "externalTrafficPolicy": outer, "ports": ports,
                "clusterIPs": cluster_ips, "clusterIP": cluster_ips.get(0).cloned().unwrap_or(json!("")),
                "externalIPs": external, "loadBalancer": {"ingress": ingress}, "sessionAffinity": affinity,
                "loadBalancerSourceRanges": ranges, "topologyKeys": keys, "healthCheckNodePort": 32000,
                "creationTimestamp": created,
            })
        },
    )
}

fn slice_body() -> impl Strategy<Value = Value> {
    let ip = |v6: bool, at: u8| if v6 { format!("fd50::{at}") } else { format!("10.50.1.{at}") };
    let state = prop::sample::select(vec![
        json!({}),
        json!({}),
        json!({"ready": false, "serving": true, "terminating": true}),
        json!({"ready": false, "serving": false}),
    ]);
    let hints = prop::sample::select(vec![
        Value::Null,
        json!({"forZones": [{"name": "za"}]}),
        json!({"forZones": [{"name": "zb"}], "forNodes": [{"name": "n2"}]}),
        json!({"forNodes": [{"name": "n1"}]}),
    ]);
    let node = prop::sample::select(vec![None, Some("n1"), Some("n2"), Some("n3")]);
    let endpoint = (1..6u8, state, hints, node);
    let weight = prop::sample::select(vec![Value::Null, Value::Null, json!("0"), json!("3,10.50.1.2=0")]);
    (any::<bool>(), prop::collection::vec(endpoint, 0..5), weight).prop_map(move |(v6, endpoints, weight)| {
        let endpoint = |(at, conditions, hints, node): &(u8, Value, Value, Option<&str>)| {
            json!({"addresses": [ip(v6, *at)], "conditions": conditions, "hints": hints, "nodeName": node})
        };
        let endpoints: Vec<Value> = endpoints.iter().map(endpoint).collect();
        let annotations = if weight.is_null() { json!({}) } else { json!({"fairlead.dev/weight": weight}) };
        json!({"addressType": if v6 { "IPv6" } else { "IPv4" }, "endpoints": endpoints, "annotations": annotations})
    })
}
