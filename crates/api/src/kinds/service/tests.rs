use super::*;
use crate::decode::{decode, decode_gated};

fn settings(service_topology: bool) -> Settings {
    Settings { service_ranges: Vec::new(), node_ports: 30000..=32767, service_topology }
}

#[test]
fn names_are_labels_and_prefixes_may_end_in_a_hyphen() {
    for good in ["a", "1a", "0", "a-b"] {
        assert!(name(good, false).is_empty(), "{good}");
    }
    for bad in ["A", "a_b", "-a", "a-", "a.b", ""] {
        assert!(!name(bad, false).is_empty(), "{bad}");
    }
    assert!(name("web-", true).is_empty() && name("web", true).is_empty());
    assert!(!name("-", true).is_empty() && !name("Web-", true).is_empty());
}

#[test]
fn defaults_keep_the_order_of_the_type() {
    let body = json!({"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    let mut service = decode(&SERVICE, body).expect("a Service").value;
    default(&mut service, &settings(false));
    let expected = json!({
        "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
        "type": "LoadBalancer",
        "sessionAffinity": "None",
        "externalTrafficPolicy": "Cluster",
        "allocateLoadBalancerNodePorts": true,
        "internalTrafficPolicy": "Cluster",
    });
    assert_eq!(service["spec"].to_string(), expected.to_string());
}

#[test]
fn rows_show_what_kubectl_shows() {
    let row = |spec: Value, ingress: Value| {
        let status = json!({"loadBalancer": {"ingress": ingress}});
        let metadata = json!({"name": "s", "creationTimestamp": "1970-01-01T00:00:00Z"});
        Value::from(table::row(&json!({"metadata": metadata, "spec": spec, "status": status}), 90))
    };
    assert_eq!(
        row(
            json!({"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"], "externalIPs": ["9.9.9.9"], "selector": {"a": "b"},
                "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}, {"port": 53, "protocol": "UDP"}]}),
            json!([{"hostname": "lb.io"}, {"ip": "1.1.1.1"}]),
        ),
        json!(["s", "LoadBalancer", "10.0.0.1", "1.1.1.1,lb.io,9.9.9.9", "80:30000/TCP,53/UDP", "90s", "a=b"])
    );
    assert_eq!(
        row(json!({"type": "ClusterIP", "clusterIPs": ["None"]}), json!([])),
        json!(["s", "ClusterIP", "None", "<none>", "<none>", "90s", "<none>"])
    );
    assert_eq!(row(json!({"type": "LoadBalancer"}), json!([]))[3], "<pending>");
    assert_eq!(row(json!({"type": "ExternalName", "externalName": "x.io"}), json!([]))[3], "x.io");
}

fn with_keys(keys: Value) -> Value {
    json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "topologyKeys": keys}})
}

#[test]
fn topology_keys_exist_only_behind_their_gate() {
    let closed = decode(&SERVICE, with_keys(json!(["*"]))).expect("a Service");
    assert_eq!(closed.unknown, ["spec.topologyKeys"]);
    assert_eq!(closed.value["spec"].get("topologyKeys"), None);
    let on = settings(true);
    let open = decode_gated(&SERVICE, with_keys(json!(["*"])), &|gate| on.allows(gate)).expect("a Service");
    assert!(open.unknown.is_empty());
    assert_eq!(open.value["spec"]["topologyKeys"], json!(["*"]));
    let mut service = open.value.clone();
    prepare_update(&mut service, &open.value, &settings(false));
    assert_eq!(service["spec"]["topologyKeys"], json!(["*"]), "what is there stays");
    prepare_create(&mut service, &settings(false));
    assert_eq!(service["spec"].get("topologyKeys"), None);
}

#[test]
fn topology_keys_follow_the_rules_of_their_time() {
    let check = |spec: Value, expected: &[&str]| {
        let errors: Vec<String> = topology::validate(&spec).iter().map(ToString::to_string).collect();
        assert_eq!(errors, expected, "{spec}");
    };
    check(json!({"topologyKeys": ["kubernetes.io/hostname", "example.com/rack", "*"]}), &[]);
    check(
        json!({"topologyKeys": ["*", "a", "a"]}),
        &[
            "spec.topologyKeys[0]: Invalid value: \"*\": \"*\" must be the last value specified",
            "spec.topologyKeys[2]: Duplicate value: \"a\"",
        ],
    );
    check(
        json!({"topologyKeys": ["a"], "externalTrafficPolicy": "Local"}),
        &["spec.topologyKeys: Forbidden: may not be specified when `externalTrafficPolicy=Local`"],
    );
    let many: Vec<String> = (0..17).map(|n| format!("k{n}")).collect();
    check(json!({"topologyKeys": many}), &["spec.topologyKeys: Too many: 17: must have at most 16 items"]);
    assert_eq!(topology::warnings(&json!({"topologyKeys": ["topology.kubernetes.io/zone", "rack", "*"]})).len(), 1);
}

#[test]
fn an_external_name_has_no_internal_policy_but_a_wrong_one_is_refused() {
    let service = |policy: &str| {
        let spec = json!({"type": "ExternalName", "externalName": "x.io", "internalTrafficPolicy": policy});
        let mut service = json!({"metadata": {}, "spec": spec});
        prepare_create(&mut service, &settings(false));
        service["spec"].text("internalTrafficPolicy").to_owned()
    };
    assert_eq!(service("Local"), "");
    assert_eq!(service("Bogus"), "Bogus");
}

#[test]
fn addresses_that_were_there_are_not_looked_at_again() {
    let service = |address: &str, range: &str| {
        json!({"metadata": {}, "spec": {
            "type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}], "sessionAffinity": "None",
            "externalTrafficPolicy": "Cluster", "externalIPs": [address], "loadBalancerSourceRanges": [range],
        }})
    };
    let old = service("010.0.0.1", " 10.0.0.1/8");
    let errors = |new: &Value, old: Option<&Value>| (RULES.validate)(new, old, &settings(false)).len();
    assert_eq!(errors(&old, Some(&old)), 0);
    assert_eq!(errors(&old, None), 2);
    assert_eq!(errors(&service("010.0.0.2", "10.0.0.2/8"), Some(&old)), 2);
}
