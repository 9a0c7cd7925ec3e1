use serde_json::{Value, json};

use super::*;

fn check(spec: Value, expected: i128) {
    assert_eq!(of(&json!({"spec": spec}), "cpu"), expected, "{spec}");
}

fn container(cpu: &str) -> Value {
    json!({"resources": {"requests": {"cpu": cpu}}})
}

fn sidecar(cpu: &str) -> Value {
    json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}})
}

#[test]
fn containers_that_run_side_by_side_are_added_up() {
    check(json!({}), 0);
    check(json!({"containers": [{}, container("500m"), container("2")]}), 2500);
    check(json!({"containers": [container("1")], "overhead": {"cpu": "100m"}}), 1100);
    check(json!({"containers": [container("1")], "resources": {"requests": {"cpu": "3"}}}), 3000);
    check(json!({"containers": [container("1")], "resources": {"requests": {"memory": "3"}}}), 1000);
}

#[test]
fn of_init_containers_the_largest_counts() {
    let mains = [container("1")];
    check(json!({"initContainers": [container("500m"), container("700m")], "containers": mains}), 1000);
    check(json!({"initContainers": [container("3"), container("1")], "containers": mains}), 3000);
    check(json!({"initContainers": [sidecar("1"), container("3")], "containers": mains}), 4000);
    check(json!({"initContainers": [container("3"), sidecar("1")], "containers": mains}), 3000);
    check(json!({"initContainers": [container("1"), sidecar("1")], "containers": mains}), 2000);
}
