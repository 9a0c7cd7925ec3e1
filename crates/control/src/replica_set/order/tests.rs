use serde_json::{Value, json};

use super::*;

const NOW: &str = "2024-01-01T12:00:00Z";

/// A ready Pod on node n1 that was created and became ready at 10:00; `change` is merged into it.
fn pod(name: &str, change: &Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {"name": name, "uid": name, "creationTimestamp": "2024-01-01T10:00:00Z"},
        "spec": {"nodeName": "n1"},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T10:00:00Z"}],
        },
    });
    for (part, fields) in change.as_object().into_iter().flatten() {
        for (field, value) in fields.as_object().into_iter().flatten() {
            pod[part][field] = value.clone();
        }
    }
    Arc::new(serde_json::from_value(pod).expect("a Pod"))
}

fn order(pods: &[Arc<Pod>], related: &[Arc<Pod>]) -> Vec<String> {
    let mut sorted = pods.to_vec();
    sort_by_deletion_order(&mut sorted, related, NOW.parse().expect("a time"));
    sorted.iter().map(|pod| pod.metadata.name.clone()).collect()
}

fn ready(status: &str, since: &str) -> Value {
    json!({"status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": since}]}})
}

#[test]
fn each_criterion_puts_the_less_useful_pod_first() {
    let cost = |cost: &str| json!({"metadata": {"annotations": {DELETION_COST: cost}}});
    let restarts =
        |count: i32| json!({"status": {"containerStatuses": [{"restartCount": 0}, {"restartCount": count}]}});
    let created = |time: &str| json!({"metadata": {"creationTimestamp": time}});
    let plain = json!({});
    for (what, first, second) in [
        ("not assigned to a Node", json!({"spec": {"nodeName": ""}}), plain.clone()),
        ("pending", json!({"status": {"phase": "Pending"}}), json!({"status": {"phase": "Unknown"}})),
        ("unknown", json!({"status": {"phase": "Unknown"}}), plain.clone()),
        ("not ready", ready("False", "2024-01-01T10:00:00Z"), plain.clone()),
        ("lower deletion cost", cost("-5"), plain.clone()),
        ("deletion cost by number", cost("9"), cost("10")),
        ("ready for a shorter time", ready("True", "2024-01-01T11:59:00Z"), plain.clone()),
        ("ready for an unknown time", ready("True", ""), plain.clone()),
        ("more restarts", restarts(3), restarts(2)),
        ("created later", created("2024-01-01T11:59:00Z"), plain.clone()),
        // 110 and 120 minutes are of the same magnitude, so the uid decides.
        ("the uid", created("2024-01-01T10:00:00Z"), created("2024-01-01T10:10:00Z")),
    ] {
        let pods = [pod("b", &second), pod("a", &first)];
        assert_eq!(order(&pods, &pods), ["a", "b"], "{what}");
        if what != "the uid" {
            let pods = [pod("a", &second), pod("b", &first)];
            assert_eq!(order(&pods, &pods), ["b", "a"], "{what}");
        }
    }
}

#[test]
fn of_two_pods_the_one_on_the_node_with_more_related_pods_goes_first() {
    let on = |name: &str, node: &str| pod(name, &json!({"spec": {"nodeName": node}}));
    let pods = [on("a", "n1"), on("b", "n2")];
    let related = [on("a", "n1"), on("b", "n2"), on("c", "n2")];
    assert_eq!(order(&pods, &related), ["b", "a"]);
}
