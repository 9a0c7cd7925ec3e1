use serde_json::{Value, json};

use super::*;

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a view")
}

/// A ready Node with labels, and more in its spec.
fn node(name: &str, labels: Value, spec: Value) -> Node {
    let status = json!({"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"pods": "10"}});
    read(json!({"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}))
}

/// Which Node a Pod with this spec goes to, or what is said.
#[track_caller]
fn check(spec: Value, nodes: &[(usize, Node)], want: Result<&str, &str>) {
    let pod: Pod = read(json!({"spec": spec}));
    let got = choose(&pod, nodes.iter().map(|(pods, node)| (*pods, node)));
    let got = got.map(|node| node.metadata.name.as_str()).map_err(|refused| explain(&refused));
    assert_eq!(got.as_ref().map(|name| *name).map_err(String::as_str), want, "{spec}");
}

fn zones() -> Vec<(usize, Node)> {
    vec![
        (0, node("a", json!({"zone": "east", "cores": "4"}), json!({}))),
        (1, node("b", json!({"zone": "west", "cores": "16"}), json!({}))),
    ]
}

fn affinity(key: &str, operator: &str, values: &[&str]) -> Value {
    let required =
        json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]});
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
}

#[test]
fn the_first_node_is_taken_unless_the_pod_asks_for_another() {
    check(json!({}), &zones(), Ok("a"));
    check(json!({"nodeSelector": {"zone": "west"}}), &zones(), Ok("b"));
    check(affinity("zone", "In", &["west", "north"]), &zones(), Ok("b"));
    check(affinity("zone", "NotIn", &["east"]), &zones(), Ok("b"));
    check(affinity("cores", "Gt", &["8"]), &zones(), Ok("b"));
    check(affinity("cores", "Lt", &["8"]), &zones(), Ok("a"));
    check(affinity("disk", "DoesNotExist", &[]), &zones(), Ok("a"));
    let none = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector (a, b).";
    check(affinity("disk", "Exists", &[]), &zones(), Err(none));
    check(json!({"nodeSelector": {"zone": "north"}}), &zones(), Err(none));
    let field =
        json!({"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]});
    let named = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": field}}});
    check(named, &zones(), Ok("b"));
    let nothing = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}});
    check(nothing, &zones(), Err(none));
}

#[test]
fn a_taint_keeps_away_who_does_not_tolerate_it() {
    let tainted = |effect: &str| {
        let taint = json!({"key": "gpu", "value": "yes", "effect": effect});
        vec![(0, node("t", json!({}), json!({"taints": [taint]})))]
    };
    let kept = Err("0/1 nodes are available: 1 node(s) had untolerated taint(s) (t).");
    check(json!({}), &tainted("NoSchedule"), kept);
    check(json!({}), &tainted("NoExecute"), kept);
    check(json!({}), &tainted("PreferNoSchedule"), Ok("t"));
    check(json!({"tolerations": [{"operator": "Exists"}]}), &tainted("NoSchedule"), Ok("t"));
    check(json!({"tolerations": [{"key": "gpu", "value": "yes"}]}), &tainted("NoSchedule"), Ok("t"));
    check(json!({"tolerations": [{"key": "gpu", "value": "no"}]}), &tainted("NoSchedule"), kept);
    check(
        json!({"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]}),
        &tainted("NoSchedule"),
        kept,
    );
}

#[test]
fn a_node_that_is_not_ready_or_cordoned_or_full_takes_no_pod() {
    let cordoned = node("c", json!({}), json!({"unschedulable": true}));
    let silent: Node = read(json!({"metadata": {"name": "s"}}));
    let full = node("f", json!({}), json!({}));
    let nodes = vec![(0, cordoned), (0, silent), (10, full)];
    let why =
        "0/3 nodes are available: 1 node(s) were not ready (s), 1 node(s) were unschedulable (c), 1 Too many pods (f).";
    check(json!({}), &nodes, Err(why));
    let tolerant = json!({"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]});
    check(tolerant, &nodes, Ok("c"));
    check(json!({}), &[], Err("no nodes available to schedule pods"));
}

#[test]
fn the_taint_of_a_new_node_does_not_outlive_its_being_ready() {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    check(json!({}), &[(0, node("new", json!({}), json!({"taints": [taint]})))], Ok("new"));
}

#[test]
fn many_nodes_are_counted_not_all_named() {
    let names = ["a", "b", "c", "d", "e"];
    let refused: Vec<_> = names.iter().map(|name| (*name, Refusal::NotReady)).collect();
    assert_eq!(explain(&refused), "0/5 nodes are available: 5 node(s) were not ready (a, b, c and 2 more).");
}

#[test]
fn a_pod_that_requests_more_than_a_node_has_goes_to_another() {
    let sized = |name: &str, cpu: &str| {
        let mut node = node(name, json!({}), json!({}));
        node.status.allocatable.insert("cpu".to_owned(), cpu.to_owned());
        (0, node)
    };
    let nodes = [sized("a", "2"), sized("b", "4")];
    let requests = |cpu: &str| json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]});
    check(requests("2"), &nodes, Ok("a"));
    check(requests("2001m"), &nodes, Ok("b"));
    check(requests("5"), &nodes, Err("0/2 nodes are available: 2 Insufficient cpu (a, b)."));
    check(json!({"containers": [{"name": "c", "resources": {}}]}), &nodes, Ok("a"));
}
