//! Pods that come without a Node, and Nodes that come without ranges.

use std::collections::HashSet;
use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Delete, Patch, Selection};
use fairlead_control::{NodeRanges, Options};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::house::{House, condition, named, pod};

async fn node(house: &House, name: &str, labels: Value) {
    house.make(&kinds::NODE, named("", name, json!({"labels": labels}))).await;
    let ready = json!({"type": "Ready", "status": "True"});
    let patch = Patch::Merge(json!({"status": {"conditions": [ready]}}));
    house.cluster.patch_status(&kinds::NODE, "", name, &patch).await.expect("patched");
}

async fn place(house: &House, name: &str) -> String {
    let bound = |pod: &Value| !pod.at("spec").text("nodeName").is_empty();
    let pod = house.until(&kinds::POD, "default", name, bound).await;
    assert_eq!(condition(&pod, "PodScheduled").0, "True");
    pod.at("spec").text("nodeName").to_owned()
}

#[tokio::test]
async fn pods_that_come_together_are_spread_over_the_nodes() {
    for house in [House::near().await, House::far().await] {
        for name in ["a", "b", "c"] {
            node(&house, name, json!({})).await;
        }
        for at in 0..30 {
            house.make(&kinds::POD, pod("default", &format!("p{at}"), "")).await;
        }
        house.control("scheduler");
        let mut places = Vec::new();
        for at in 0..30 {
            places.push(place(&house, &format!("p{at}")).await);
        }
        let count = |name: &str| places.iter().filter(|place| *place == name).count();
        assert_eq!([count("a"), count("b"), count("c")], [10, 10, 10]);
        let message = house.event("default", "p0", "Scheduled").await;
        assert!(message.starts_with("Successfully assigned default/p0 to "), "{message}");
    }
}

#[tokio::test]
async fn a_pod_that_suits_no_node_says_why_and_goes_as_soon_as_one_suits() {
    let house = House::near().await;
    house.control("scheduler");
    node(&house, "a", json!({})).await;
    let mut wants = pod("default", "p", "");
    wants["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    house.make(&kinds::POD, wants).await;
    let why = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector (a).";
    assert_eq!(house.event("default", "p", "FailedScheduling").await, why);
    let told = |pod: &Value| condition(pod, "PodScheduled") == ("False", "Unschedulable", why);
    house.until(&kinds::POD, "default", "p", told).await;
    house.merge(&kinds::NODE, "", "a", json!({"metadata": {"labels": {"disk": "ssd"}}})).await;
    assert_eq!(place(&house, "p").await, "a");
}

#[tokio::test]
async fn a_pod_of_another_scheduler_or_with_gates_is_left_alone() {
    let house = House::near().await;
    node(&house, "a", json!({})).await;
    house.control("scheduler");
    let mut other = pod("default", "other", "");
    other["spec"]["schedulerName"] = json!("mine");
    house.make(&kinds::POD, other).await;
    let mut gated = pod("default", "gated", "");
    gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    house.make(&kinds::POD, gated).await;
    house.make(&kinds::POD, pod("default", "usual", "")).await;
    place(&house, "usual").await;
    sleep(Duration::from_millis(100)).await;
    for name in ["other", "gated"] {
        let pod = house.get(&kinds::POD, "default", name).await.expect("the Pod");
        assert_eq!(pod.at("spec").text("nodeName"), "", "{name}");
    }
    house.merge(&kinds::POD, "default", "gated", json!({"spec": {"schedulingGates": null}})).await;
    place(&house, "gated").await;
}

#[tokio::test]
async fn a_full_node_takes_a_pod_when_another_leaves() {
    let house = House::near().await;
    house.make(&kinds::NODE, named("", "small", json!({}))).await;
    let status = json!({"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"pods": "1"}, "allocatable": {"pods": "1"}});
    house
        .cluster
        .patch_status(&kinds::NODE, "", "small", &Patch::Merge(json!({"status": status})))
        .await
        .expect("patched");
    house.make(&kinds::POD, pod("default", "first", "small")).await;
    house.make(&kinds::POD, pod("default", "second", "")).await;
    house.control("scheduler");
    let why = "0/1 nodes are available: 1 Too many pods (small).";
    assert_eq!(house.event("default", "second", "FailedScheduling").await, why);
    let now = Delete { grace_seconds: Some(0), ..Delete::default() };
    house.cluster.delete(&kinds::POD, "default", "first", &now).await.expect("deleted");
    assert_eq!(place(&house, "second").await, "small");
}

async fn ranges(house: &House, name: &str) -> Vec<String> {
    let given = |node: &Value| !node.at("spec").list("podCIDRs").is_empty();
    let node = house.until(&kinds::NODE, "", name, given).await;
    assert_eq!(node.at("spec").text("podCIDR"), node.at("spec").texts("podCIDRs")[0]);
    node.at("spec").texts("podCIDRs").into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn every_node_gets_ranges_of_both_families_that_no_other_has() {
    for house in [House::near().await, House::far().await] {
        let mut taken = named("", "old", json!({}));
        taken["spec"] = json!({"podCIDR": "10.244.0.0/24", "podCIDRs": ["10.244.0.0/24"]});
        house.make(&kinds::NODE, taken).await;
        house.control("node-ipam-controller");
        let mut seen = HashSet::from(["10.244.0.0/24".to_owned()]);
        for at in 0..20 {
            house.make(&kinds::NODE, named("", &format!("n{at}"), json!({}))).await;
        }
        for at in 0..20 {
            let given = ranges(&house, &format!("n{at}")).await;
            assert!(given.len() == 2 && given[0].ends_with("/24") && given[1].ends_with("/64"), "{given:?}");
            assert!(given.into_iter().all(|range| seen.insert(range)));
        }
        assert_eq!(ranges(&house, "old").await, ["10.244.0.0/24"]);
        let nodes = house.cluster.list(&Selection::all(&kinds::NODE)).await.expect("Nodes");
        assert_eq!(nodes.objects.len(), 21);
    }
}

#[tokio::test]
async fn a_node_for_whom_nothing_is_left_says_so_and_gets_what_another_leaves() {
    let house = House::near().await;
    let cluster = vec!["192.0.2.0/25".parse().expect("a range")];
    let node_ranges = NodeRanges { cluster, prefix_v4: 26, prefix_v6: 64 };
    house.control_with("nodeipam", Options { node_ranges, ..Options::default() });
    for name in ["a", "b"] {
        house.make(&kinds::NODE, named("", name, json!({}))).await;
        ranges(&house, name).await;
    }
    house.make(&kinds::NODE, named("", "c", json!({}))).await;
    assert_eq!(house.event("default", "c", "CIDRNotAvailable").await, "Node c status is now: CIDRNotAvailable");
    house.cluster.delete(&kinds::NODE, "", "a", &Delete::default()).await.expect("deleted");
    assert_eq!(ranges(&house, "c").await, ["192.0.2.0/26"]);
}
