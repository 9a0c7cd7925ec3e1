//! ReplicaSets and ReplicationControllers: Pods that are created, adopted, released and deleted, and the status.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairlead_api::{Kind, Look, kinds};
use fairlead_cluster::{Patch, Selection};
use fairlead_control::Options;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::house::{House, condition, named};
use crate::kubelet::{FAILS, Kubelet};

/// Limit for changes that take a moment.
const PATIENCE: Duration = Duration::from_secs(60);

fn control(house: &House) {
    house.control_with("replicaset-controller,replicationcontroller-controller", Options::default());
}

/// A ReplicaSet or ReplicationController called `web`.
fn web(kind: &Kind, replicas: i32, change: &Value) -> Value {
    let labels = json!({"app": "web"});
    let selector = if kind.kind == "ReplicaSet" { json!({"matchLabels": labels}) } else { labels.clone() };
    let template = json!({
        "metadata": {"labels": {"app": "web", "tier": "front"}, "annotations": {"note": "x"}},
        "spec": {"containers": [{"name": "c", "image": "none"}]},
    });
    let mut object = named("default", "web", json!({}));
    object.set("spec", json!({"replicas": replicas, "selector": selector, "template": template}));
    for (field, value) in change.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

/// All Pods, by name.
pub(crate) async fn pods(house: &House) -> Vec<Value> {
    let list = house.cluster.list(&Selection::all(&kinds::POD)).await.expect("Pods");
    list.objects.iter().map(|object| serde_json::from_slice(&object.json).expect("a Pod")).collect()
}

/// Waits until the Pods are as they should be.
pub(crate) async fn until_pods(house: &House, what: &str, holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let end = Instant::now() + PATIENCE;
    loop {
        let pods = pods(house).await;
        if holds(&pods) {
            return pods;
        }
        assert!(Instant::now() < end, "{what}: {pods:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn make_ready(house: &House, pod: &Value) {
    let metadata = pod.at("metadata");
    let since = jiff::Timestamp::now();
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": format!("{since:.0}")});
    let patch = Patch::Merge(json!({"status": {"phase": "Running", "conditions": [ready]}}));
    let (namespace, name) = (metadata.text("namespace"), metadata.text("name"));
    match house.cluster.patch_status(&kinds::POD, namespace, name, &patch).await {
        Err(error) if error.is_not_found() => {}
        other => drop(other.expect("ready")),
    }
}

fn owner(pod: &Value) -> &str {
    pod.at("metadata").list("ownerReferences").first().map_or("", |owner| owner.text("name"))
}

fn names(pods: &[Value]) -> Vec<String> {
    pods.iter().map(|pod| pod.at("metadata").text("name").to_owned()).collect()
}

async fn until_status(house: &House, kind: &Kind, holds: impl Fn(&Value) -> bool) -> Value {
    house.until(kind, "default", "web", |object| holds(object.at("status"))).await
}

async fn scale(house: &House, kind: &Kind, replicas: i32) {
    house.merge(kind, "default", "web", json!({"spec": {"replicas": replicas}})).await;
}

#[tokio::test]
async fn pods_are_made_from_the_template_and_counted() {
    for kind in [&kinds::REPLICA_SET, &kinds::REPLICATION_CONTROLLER] {
        for house in [House::near().await, House::far().await] {
            control(&house);
            let made = house.make(kind, web(kind, 3, &json!({}))).await;
            let pods = until_pods(&house, "three Pods", |pods| pods.len() == 3).await;
            for pod in &pods {
                let metadata = pod.at("metadata");
                assert!(metadata.text("name").starts_with("web-"), "{pod}");
                assert_eq!(metadata.at("labels"), &json!({"app": "web", "tier": "front"}));
                assert_eq!(metadata.at("annotations"), &json!({"note": "x"}));
                let reference = json!([{
                    "apiVersion": kind.api_version(), "kind": kind.kind, "name": "web",
                    "uid": made.at("metadata").text("uid"), "controller": true, "blockOwnerDeletion": true,
                }]);
                assert_eq!(metadata.at("ownerReferences"), &reference);
            }
            make_ready(&house, &pods[0]).await;
            make_ready(&house, &pods[1]).await;
            let counted = |status: &Value| {
                let counts = ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
                counts.map(|count| status.int(count)) == [3, 3, 2, 2] && status.int("observedGeneration") == 1
            };
            until_status(&house, kind, counted).await;
            // The Pod that is not ready goes first.
            scale(&house, kind, 2).await;
            let left = until_pods(&house, "two Pods", |pods| pods.len() == 2).await;
            assert!(!names(&left).contains(&names(&pods)[2]), "{left:?}");
            let message = house.event("default", "web", "SuccessfulDelete").await;
            assert_eq!(message, format!("Deleted pod: {}", names(&pods)[2]));
            scale(&house, kind, 0).await;
            until_pods(&house, "no Pods", <[Value]>::is_empty).await;
            until_status(&house, kind, |status| status.int("replicas") == 0 && status.int("observedGeneration") == 3)
                .await;
        }
    }
}

#[tokio::test]
async fn a_pod_that_is_deleted_or_ends_is_replaced() {
    let house = House::near().await;
    control(&house);
    house.make(&kinds::REPLICA_SET, web(&kinds::REPLICA_SET, 2, &json!({}))).await;
    let first = until_pods(&house, "two Pods", |pods| pods.len() == 2).await;
    let gone = &names(&first)[0];
    house.cluster.delete(&kinds::POD, "default", gone, &fairlead_cluster::Delete::default()).await.expect("deleted");
    until_pods(&house, "another Pod", |pods| pods.len() == 2 && !names(pods).contains(gone)).await;
    let failed = Patch::Merge(json!({"status": {"phase": "Failed"}}));
    house.cluster.patch_status(&kinds::POD, "default", &names(&first)[1], &failed).await.expect("failed");
    until_pods(&house, "a third Pod beside the failed one", |pods| pods.len() == 3).await;
    until_status(&house, &kinds::REPLICA_SET, |status| status.int("replicas") == 2).await;
}

#[tokio::test]
async fn pods_are_adopted_and_released_by_their_labels() {
    for kind in [&kinds::REPLICA_SET, &kinds::REPLICATION_CONTROLLER] {
        let house = House::near().await;
        let mut orphan = crate::house::pod("default", "orphan", "");
        orphan["metadata"].set("labels", json!({"app": "web"}));
        orphan["spec"].unset("nodeName");
        house.make(&kinds::POD, orphan).await;
        house.make(kind, web(kind, 2, &json!({}))).await;
        control(&house);
        let pods = until_pods(&house, "an adopted Pod and a new one", |pods| {
            pods.len() == 2 && pods.iter().all(|pod| owner(pod) == "web")
        });
        assert!(names(&pods.await).contains(&"orphan".to_owned()));
        until_status(&house, kind, |status| status.int("replicas") == 2 && status.int("fullyLabeledReplicas") == 1)
            .await;
        house.merge(&kinds::POD, "default", "orphan", json!({"metadata": {"labels": {"app": "other"}}})).await;
        let pods = until_pods(&house, "a new Pod for the released one", |pods| pods.len() == 3).await;
        let released = pods.iter().find(|pod| pod.at("metadata").text("name") == "orphan").expect("it stays");
        assert_eq!(owner(released), "");
        // A second Pod that matches is one too many.
        house.merge(&kinds::POD, "default", "orphan", json!({"metadata": {"labels": {"app": "web"}}})).await;
        until_pods(&house, "two Pods", |pods| pods.len() == 2 && pods.iter().all(|pod| owner(pod) == "web")).await;
    }
}

#[tokio::test]
async fn a_pod_is_available_when_it_was_ready_for_long_enough() {
    let house = House::near().await;
    control(&house);
    house.make(&kinds::REPLICA_SET, web(&kinds::REPLICA_SET, 1, &json!({"minReadySeconds": 2}))).await;
    let pods = until_pods(&house, "a Pod", |pods| pods.len() == 1).await;
    make_ready(&house, &pods[0]).await;
    until_status(&house, &kinds::REPLICA_SET, |status| status.int("readyReplicas") == 1).await;
    // Nothing changes any more but the time.
    until_status(&house, &kinds::REPLICA_SET, |status| status.int("availableReplicas") == 1).await;
}

#[tokio::test]
async fn a_failure_to_create_pods_is_a_condition_until_it_is_over() {
    let down = Arc::new(AtomicBool::new(true));
    let house = House::far_without("/api/v1/namespaces/default/pods", down.clone()).await;
    control(&house);
    house.make(&kinds::REPLICA_SET, web(&kinds::REPLICA_SET, 4, &json!({}))).await;
    let failed = |set: &Value| condition(set, "ReplicaFailure").1 == "FailedCreate";
    house.until(&kinds::REPLICA_SET, "default", "web", failed).await;
    let message = house.event("default", "web", "FailedCreate").await;
    assert!(message.starts_with("Error creating: "), "{message}");
    down.store(false, Ordering::Relaxed);
    until_pods(&house, "four Pods", |pods| pods.len() == 4).await;
    let recovered =
        |set: &Value| condition(set, "ReplicaFailure").0.is_empty() && set.at("status").int("replicas") == 4;
    house.until(&kinds::REPLICA_SET, "default", "web", recovered).await;
}

#[tokio::test]
async fn no_pods_are_made_for_a_replica_set_that_is_being_deleted() {
    let house = House::near().await;
    let mut deleted = web(&kinds::REPLICA_SET, 2, &json!({}));
    deleted["metadata"].set("finalizers", json!(["example.com/hold"]));
    house.make(&kinds::REPLICA_SET, deleted).await;
    let how = fairlead_cluster::Delete::default();
    house.cluster.delete(&kinds::REPLICA_SET, "default", "web", &how).await.expect("deleted");
    control(&house);
    until_status(&house, &kinds::REPLICA_SET, |status| status.int("observedGeneration") >= 1).await;
    assert!(pods(&house).await.is_empty());
}

#[tokio::test]
async fn exactly_as_many_pods_are_made_as_are_wanted() {
    // Each Pod that is created changes the cache while others are created: without the wait for own writes, too many would be.
    let house = House::far().await;
    control(&house);
    house.make(&kinds::REPLICA_SET, web(&kinds::REPLICA_SET, 60, &json!({}))).await;
    until_status(&house, &kinds::REPLICA_SET, |status| status.int("replicas") == 60).await;
    scale(&house, &kinds::REPLICA_SET, 25).await;
    until_status(&house, &kinds::REPLICA_SET, |status| status.int("replicas") == 25).await;
    let path = "/api/v1/namespaces/default/events";
    let events = house.cluster.request(fairlead_cluster::Method::GET, path, None).await.expect("Events");
    let deleted: i64 = events
        .list("items")
        .iter()
        .filter(|event| event.text("reason") == "SuccessfulDelete")
        .map(|event| event.int("count"))
        .sum();
    assert!(deleted <= 35, "{deleted} Pods were deleted");
    assert_eq!(pods(&house).await.len(), 25);
}

#[tokio::test]
async fn pods_that_fail_are_replaced_with_growing_delays() {
    for kind in [&kinds::REPLICA_SET, &kinds::REPLICATION_CONTROLLER] {
        let house = House::near().await;
        let _kubelet = Kubelet::start(&house, &["a"]).await;
        let spec = json!({"nodeName": "a", "containers": [{"name": "c", "image": FAILS}]});
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": spec});
        house.make(kind, web(kind, 1, &json!({"template": template}))).await;
        let start = Instant::now();
        control(&house);
        // The first failed Pod is replaced at once, the others after 1 and 2 s.
        until_pods(&house, "four Pods", |pods| pods.len() >= 4).await;
        assert!(start.elapsed() >= Duration::from_secs(3), "four Pods after {:?}", start.elapsed());
    }
}
