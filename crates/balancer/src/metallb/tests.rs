use std::sync::Arc;

use fairlead_api::view::Namespace;
use serde_json::{Value, json};

use super::{Found, IpAddressPool, L2Advertisement, combine};
use crate::spec::Scheme;

fn found(pools: &[Value], advertisements: &[Value]) -> Found {
    let namespaces = [("web", "a"), ("batch", "b")].map(|(name, tier)| {
        let object = json!({"metadata": {"name": name, "labels": {"tier": tier}}});
        Arc::new(serde_json::from_value::<Namespace>(object).unwrap())
    });
    let pools: Vec<_> =
        pools.iter().map(|pool| Arc::new(serde_json::from_value::<IpAddressPool>(pool.clone()).unwrap())).collect();
    let advertisements: Vec<_> = advertisements
        .iter()
        .map(|one| Arc::new(serde_json::from_value::<L2Advertisement>(one.clone()).unwrap()))
        .collect();
    combine(&pools, &advertisements, &namespaces)
}

#[test]
fn a_pool_of_metallbs_is_a_pool() {
    let plain = json!({"metadata": {"name": "first"}, "spec": {"addresses": ["192.0.2.0/28", "fc00::1-fc00::5"]}});
    let pool = &found(&[plain], &[]).pools[0];
    assert_eq!((pool.name.as_str(), pool.ranges.len(), pool.scheme), ("first", 2, Scheme::Public));
    assert_eq!((pool.auto_assign, pool.avoid_buggy, pool.priority), (true, false, 0));
    let full = json!({
        "metadata": {"name": "second", "labels": {"fairlead.dev/scheme": "internal"}},
        "spec": {
            "addresses": ["192.0.2.0/28"],
            "autoAssign": false,
            "avoidBuggyIPs": true,
            "serviceAllocation": {
                "priority": 50,
                "namespaces": ["default"],
                "namespaceSelectors": [{"matchLabels": {"tier": "a"}}],
                "serviceSelectors": [{"matchExpressions": [{"key": "app", "operator": "In", "values": ["bar"]}]}],
            },
        },
    });
    let pool = &found(&[full], &[]).pools[0];
    assert_eq!((pool.auto_assign, pool.avoid_buggy, pool.priority), (false, true, 50));
    assert_eq!(
        (pool.namespaces.as_slice(), pool.scheme),
        (&["default".to_owned(), "web".to_owned()][..], Scheme::Internal)
    );
    let matches = |app: &'static str| pool.selectors[0].matches(|key| (key == "app").then_some(app));
    assert_eq!((matches("bar"), matches("foo")), (true, false));
}

#[test]
fn selectors_that_select_no_namespace_do_not_mean_all() {
    let allocation = json!({"namespaceSelectors": [{"matchLabels": {"tier": "none"}}]});
    let pool =
        json!({"metadata": {"name": "p"}, "spec": {"addresses": ["192.0.2.1"], "serviceAllocation": allocation}});
    assert!(!found(&[pool], &[]).pools[0].namespaces.is_empty());
}

#[test]
fn an_advertisement_is_for_the_pools_it_means_and_the_nodes_it_selects() {
    let pool = |name: &str, zone: &str| json!({"metadata": {"name": name, "labels": {"zone": zone}}, "spec": {"addresses": [format!("192.0.2.{}", name.len())]}});
    let pools = [pool("a", "east"), pool("bb", "west"), pool("ccc", "east")];
    let check = |spec: Value, expected: &[&str]| {
        let found = found(&pools, &[json!({"metadata": {"name": "l2"}, "spec": spec})]);
        assert_eq!(found.advertisements[0].pools, expected, "{spec}");
        found.advertisements[0].clone()
    };
    check(json!({}), &["a", "bb", "ccc"]);
    check(json!({"ipAddressPools": ["bb"]}), &["bb"]);
    let east = json!([{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["east"]}]}]);
    check(json!({"ipAddressPools": ["bb"], "ipAddressPoolSelectors": east}), &["a", "bb", "ccc"]);
    check(json!({"ipAddressPoolSelectors": east}), &["a", "ccc"]);
    let nodes =
        json!([{"matchLabels": {"kubernetes.io/hostname": "n1"}}, {"matchLabels": {"kubernetes.io/hostname": "n2"}}]);
    let one = check(json!({"nodeSelectors": nodes, "interfaces": ["eth1"]}), &["a", "bb", "ccc"]);
    let on = |name: &str| one.selects(&[("kubernetes.io/hostname".to_owned(), name.to_owned())].into());
    assert_eq!((on("n1"), on("n2"), on("n3")), (true, true, false));
    assert_eq!(one.interfaces, ["eth1"]);
}

#[test]
fn what_makes_no_sense_is_told_and_the_rest_holds() {
    let good = json!({"metadata": {"name": "good"}, "spec": {"addresses": ["192.0.2.1"]}});
    let bad = json!({"metadata": {"name": "bad"}, "spec": {"addresses": ["many"]}});
    let strange = json!([{"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}]);
    let found = found(&[bad, good], &[json!({"metadata": {"name": "l2"}, "spec": {"nodeSelectors": strange}})]);
    assert_eq!((found.pools.len(), found.advertisements.len(), found.problems.len()), (1, 0, 2));
    assert!(found.problems[0].contains("IPAddressPool bad"), "{:?}", found.problems);
}
