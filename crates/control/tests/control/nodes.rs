//! Nodes whose agents fall silent, and Pods whose Nodes are gone.

use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Delete, Patch};
use fairlead_control::Options;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::house::{House, condition, named, pod};

/// Silence that is too long.
const GRACE: Duration = Duration::from_millis(300);

fn control(house: &House) {
    let options = Options { node_monitor_grace_period: GRACE, pod_quarantine: GRACE, ..Options::default() };
    house.control_with("node-lifecycle-controller,pod-garbage-collector-controller", options);
}

fn ready(status: &str) -> Patch {
    let time = "2026-01-01T00:00:00Z";
    let condition = json!({
        "type": "Ready", "status": status, "reason": "KubeletReady", "message": "fine",
        "lastHeartbeatTime": time, "lastTransitionTime": time,
    });
    Patch::Merge(json!({"status": {"conditions": [condition]}}))
}

/// A Node that is ready, and a Pod on it that is.
async fn node_with_pod(house: &House) {
    house.make(&kinds::NODE, named("", "n", json!({}))).await;
    house.cluster.patch_status(&kinds::NODE, "", "n", &ready("True")).await.expect("patched");
    house.make(&kinds::POD, pod("default", "p", "n")).await;
    let condition = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let running = Patch::Merge(json!({"status": {"phase": "Running", "conditions": [condition]}}));
    house.cluster.patch_status(&kinds::POD, "default", "p", &running).await.expect("patched");
}

async fn lease(house: &House) {
    house.make(&kinds::LEASE, named("kube-node-lease", "n", json!({}))).await;
}

async fn renew(house: &House, count: usize) {
    let renewed = json!({"spec": {"leaseTransitions": count}});
    house.merge(&kinds::LEASE, "kube-node-lease", "n", renewed).await;
}

fn is_unknown(node: &Value) -> bool {
    condition(node, "Ready") == ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
}

fn is_unready(pod: &Value) -> bool {
    condition(pod, "Ready").0 == "False"
}

#[tokio::test]
async fn a_node_whose_agent_is_silent_is_unknown_and_its_pods_are_not_ready() {
    for house in [House::near().await, House::far().await] {
        node_with_pod(&house).await;
        lease(&house).await;
        control(&house);
        let node = house.until(&kinds::NODE, "", "n", is_unknown).await;
        assert_eq!(
            condition(&node, "DiskPressure"),
            ("Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status.")
        );
        house.until(&kinds::POD, "default", "p", is_unready).await;
        assert_eq!(house.event("default", "n", "NodeNotReady").await, "Node n status is now: NodeNotReady");
        assert_eq!(house.event("default", "p", "NodeNotReady").await, "Node is not ready");
    }
}

#[tokio::test]
async fn a_node_whose_agent_reports_is_left_alone_until_it_stops() {
    let house = House::near().await;
    node_with_pod(&house).await;
    lease(&house).await;
    control(&house);
    for count in 1..20 {
        renew(&house, count).await;
        sleep(GRACE / 6).await;
        let node = house.get(&kinds::NODE, "", "n").await.expect("the Node");
        assert_eq!(condition(&node, "Ready").0, "True");
    }
    house.until(&kinds::NODE, "", "n", is_unknown).await;
}

#[tokio::test]
async fn a_node_that_comes_back_and_falls_silent_again_is_unknown_again() {
    let house = House::near().await;
    node_with_pod(&house).await;
    lease(&house).await;
    control(&house);
    house.until(&kinds::NODE, "", "n", is_unknown).await;
    house.until(&kinds::POD, "default", "p", is_unready).await;
    renew(&house, 1).await;
    house.cluster.patch_status(&kinds::NODE, "", "n", &ready("True")).await.expect("patched");
    house.until(&kinds::NODE, "", "n", is_unknown).await;
}

#[tokio::test]
async fn a_node_without_agent_is_left_alone() {
    let house = House::near().await;
    node_with_pod(&house).await;
    control(&house);
    sleep(GRACE * 3).await;
    let node = house.get(&kinds::NODE, "", "n").await.expect("the Node");
    assert_eq!(condition(&node, "Ready").0, "True");
    assert!(house.get(&kinds::POD, "default", "p").await.is_some());
}

#[tokio::test]
async fn pods_of_a_node_that_does_not_exist_go_after_a_while() {
    for house in [House::near().await, House::far().await] {
        control(&house);
        node_with_pod(&house).await;
        house.make(&kinds::POD, pod("default", "stray", "nowhere")).await;
        house.until_gone(&kinds::POD, "default", "stray").await;
        house.stays(&kinds::POD, "default", "p").await;
        house.cluster.delete(&kinds::NODE, "", "n", &Delete::default()).await.expect("deleted");
        sleep(GRACE / 3).await;
        assert!(house.get(&kinds::POD, "default", "p").await.is_some());
        house.until_gone(&kinds::POD, "default", "p").await;
    }
}

#[tokio::test]
async fn a_pod_of_a_missing_node_that_is_held_has_failed_and_says_why() {
    let house = House::near().await;
    control(&house);
    let mut held = pod("default", "held", "nowhere");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    house.make(&kinds::POD, held).await;
    let failed = |pod: &Value| pod.at("status").text("phase") == "Failed";
    let pod = house.until(&kinds::POD, "default", "held", failed).await;
    assert_eq!(condition(&pod, "DisruptionTarget"), ("True", "DeletionByPodGC", "PodGC: node no longer exists"));
    house.merge(&kinds::POD, "default", "held", json!({"metadata": {"finalizers": null}})).await;
    house.until_gone(&kinds::POD, "default", "held").await;
}

#[tokio::test]
async fn a_node_that_is_only_late_keeps_its_pods() {
    let house = House::near().await;
    control(&house);
    house.make(&kinds::POD, pod("default", "early", "late")).await;
    sleep(GRACE / 3).await;
    house.make(&kinds::NODE, named("", "late", json!({}))).await;
    sleep(GRACE).await;
    house.stays(&kinds::POD, "default", "early").await;
}

#[tokio::test]
async fn a_pod_that_never_was_on_a_node_is_ended_when_it_is_deleted() {
    let house = House::near().await;
    control(&house);
    let mut held = pod("default", "held", "");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    house.make(&kinds::POD, held).await;
    house.cluster.delete(&kinds::POD, "default", "held", &Delete::default()).await.expect("deleted");
    house.until(&kinds::POD, "default", "held", |pod| pod.at("status").text("phase") == "Failed").await;
    house.merge(&kinds::POD, "default", "held", json!({"metadata": {"finalizers": null}})).await;
    house.until_gone(&kinds::POD, "default", "held").await;
}

#[tokio::test]
async fn taints_say_what_the_conditions_say() {
    let house = House::near().await;
    control(&house);
    node_with_pod(&house).await;
    let taints = |node: &Value| -> Vec<String> {
        node.at("spec").list("taints").iter().map(|taint| taint.text("key").to_owned()).collect()
    };
    house.until(&kinds::NODE, "", "n", |node| taints(node).is_empty()).await;
    house.merge(&kinds::NODE, "", "n", json!({"spec": {"unschedulable": true}})).await;
    house.until(&kinds::NODE, "", "n", |node| taints(node) == ["node.kubernetes.io/unschedulable"]).await;
    house.merge(&kinds::NODE, "", "n", json!({"spec": {"unschedulable": null}})).await;
    lease(&house).await;
    house.until(&kinds::NODE, "", "n", |node| taints(node) == ["node.kubernetes.io/unreachable"]).await;
}

#[tokio::test]
async fn the_oldest_ended_pods_beyond_the_limit_are_deleted() {
    for house in [House::near().await, House::far().await] {
        house.make(&kinds::NODE, named("", "n", json!({}))).await;
        for (name, phase, reason) in [
            ("a", "Succeeded", "done"),
            ("b", "Running", "runs"),
            ("c", "Failed", "Error"),
            ("d", "Failed", "Evicted"),
            ("e", "Failed", "Error"),
        ] {
            house.make(&kinds::POD, pod("default", name, "n")).await;
            set_phase(&house, name, phase, reason).await;
        }
        let options = Options { max_ended_pods: 3, ..Options::default() };
        house.control_with("pod-garbage-collector-controller", options);
        // Evicted Pods go first, then the oldest; of Pods of the same second, by name.
        house.until_gone(&kinds::POD, "default", "d").await;
        set_phase(&house, "b", "Succeeded", "done").await;
        house.until_gone(&kinds::POD, "default", "a").await;
        for name in ["b", "c", "e"] {
            house.stays(&kinds::POD, "default", name).await;
        }
    }
}

async fn set_phase(house: &House, name: &str, phase: &str, reason: &str) {
    let status = Patch::Merge(json!({"status": {"phase": phase, "reason": reason}}));
    house.cluster.patch_status(&kinds::POD, "default", name, &status).await.expect("patched");
}
