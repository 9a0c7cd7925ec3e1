use fairlead_api::view::ReplicaSet;

use super::*;

const NOW: &str = "2024-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

fn set(min_ready_seconds: i32) -> ReplicaSet {
    let set = json!({
        "metadata": {"name": "web", "generation": 3},
        "spec": {
            "minReadySeconds": min_ready_seconds,
            "template": {"metadata": {"labels": {"app": "web", "tier": "front"}}},
        },
    });
    serde_json::from_value(set).expect("a ReplicaSet")
}

fn pod(labels: &Value, ready: &str, since: &str) -> Arc<Pod> {
    let pod = json!({
        "metadata": {"labels": labels},
        "status": {"conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": since}]},
    });
    Arc::new(serde_json::from_value(pod).expect("a Pod"))
}

#[test]
fn pods_are_counted_by_labels_readiness_and_time() {
    let all = json!({"app": "web", "tier": "front", "other": "x"});
    let pods = [
        pod(&all, "True", "2024-01-01T11:59:50Z"),
        pod(&all, "True", "2024-01-01T11:59:57Z"),
        pod(&all, "False", "2024-01-01T11:00:00Z"),
        pod(&json!({"app": "web"}), "True", "2024-01-01T11:59:51Z"),
    ];
    for (min_ready_seconds, available, next) in [(0, 3, None), (10, 1, Some(1)), (600, 0, Some(590)), (5, 2, Some(2))] {
        let set = set(min_ready_seconds);
        let status = of_pods(&set, &pods, 2, now());
        let counts = (status.replicas, status.fully_labeled_replicas, status.ready_replicas);
        assert_eq!((counts, status.available_replicas), ((4, 3, 3), available), "{min_ready_seconds} s");
        assert_eq!((status.terminating_replicas, status.observed_generation), (Some(2), 3));
        assert_eq!(next_availability(&pods, min_ready_seconds, now()), next.map(Duration::from_secs));
    }
}

#[test]
fn a_failure_is_a_condition_until_a_success() {
    let mut status = ReplicaSetStatus::default();
    set_failure(&mut status, Some(("FailedCreate", "no".to_owned())), now());
    let failed = status.clone();
    // A later failure keeps the time and the reason of the first.
    set_failure(&mut status, Some(("FailedDelete", "still no".to_owned())), now());
    assert_eq!(status, failed);
    let condition = &to_json(&status)["conditions"][0];
    let expected = json!({
        "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no", "lastTransitionTime": NOW,
    });
    assert_eq!(*condition, expected);
    set_failure(&mut status, None, now());
    assert_eq!(to_json(&status)["conditions"], Value::Null);
}
