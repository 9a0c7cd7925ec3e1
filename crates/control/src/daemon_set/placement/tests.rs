use serde_json::{Value, json};

use super::*;

fn set(pod: Value) -> DaemonSet {
    let template = json!({"metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}}, "spec": pod});
    let set = json!({
        "metadata": {
            "name": "web", "namespace": "default", "uid": "u",
            "annotations": {"deprecated.daemonset.template.generation": "3"},
        },
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    serde_json::from_value(set).expect("a DaemonSet")
}

#[test]
fn labels_taints_and_names_decide_about_nodes() {
    let check = |pod: Value, node: Value, expected: (bool, bool)| {
        let spec = template_spec(&set(pod.clone())).expect("a template");
        let node: Node = serde_json::from_value(node).expect("a Node");
        let found = place(&spec, &node);
        assert_eq!((found.should_run, found.may_stay), expected, "{pod} on {}", node.metadata.name);
    };
    let node = |spec: Value| {
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        json!({"metadata": {"name": "n1", "labels": {"disk": "ssd"}}, "spec": spec, "status": ready})
    };
    let taint = |key: &str, effect: &str| node(json!({"taints": [{"key": key, "effect": effect}]}));
    check(json!({}), node(json!({})), (true, true));
    check(json!({"nodeSelector": {"disk": "ssd"}}), node(json!({})), (true, true));
    check(json!({"nodeSelector": {"disk": "hdd"}}), node(json!({})), (false, false));
    check(json!({"nodeName": "n2"}), node(json!({})), (false, false));
    check(json!({}), taint("own", "NoSchedule"), (false, true));
    check(json!({}), taint("own", "NoExecute"), (false, false));
    check(json!({}), taint("own", "PreferNoSchedule"), (true, true));
    check(json!({"tolerations": [{"key": "own", "operator": "Exists"}]}), taint("own", "NoExecute"), (true, true));
    // A DaemonSet stays on Nodes in trouble, and starts on Nodes that take no other new Pods.
    check(json!({}), taint("node.kubernetes.io/unreachable", "NoExecute"), (true, true));
    check(json!({}), taint("node.kubernetes.io/unschedulable", "NoSchedule"), (true, true));
    check(json!({}), node(json!({"unschedulable": true})), (true, true));
    // The taint of a new Node may outlive its being ready; a Node that is not ready starts no Pod
    // and keeps the one it has.
    check(json!({}), taint("node.kubernetes.io/not-ready", "NoSchedule"), (true, true));
    check(json!({}), json!({"metadata": {"name": "n1"}}), (false, true));
    check(json!({"tolerations": [{"operator": "Exists"}]}), json!({"metadata": {"name": "n1"}}), (true, true));
    check(json!({}), taint("node.kubernetes.io/network-unavailable", "NoSchedule"), (false, true));
    check(json!({"hostNetwork": true}), taint("node.kubernetes.io/network-unavailable", "NoSchedule"), (true, true));
}

#[test]
fn a_pod_names_its_node_and_its_template() {
    let terms = json!([{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]);
    let affinity = json!({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}, "podAffinity": {}});
    let pod = pod_for(&set(json!({"affinity": affinity})), "n1", "h");
    assert_eq!(pod["metadata"]["generateName"], "web-");
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"app": "web", "controller-revision-hash": "h", "pod-template-generation": "3"})
    );
    assert_eq!(pod["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "DaemonSet");
    let required = &pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"];
    assert_eq!(*required, json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]));
    assert_eq!(pod["spec"]["affinity"]["podAffinity"], json!({}));
    assert_eq!(pod["spec"]["tolerations"].as_array().map(Vec::len), Some(6));
    let seen: Pod = serde_json::from_value(pod).expect("a Pod");
    assert_eq!(node_of(&seen), Some("n1"));
}
