//! Namespaces on their way out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fairlead_api::kinds;
use fairlead_cluster::Delete;
use serde_json::{Value, json};

use crate::house::{House, condition, named, pod};

const CONTROLLER: &str = "namespace-controller";

async fn doomed(house: &House) {
    house.namespace("doomed").await;
    let service = json!({"metadata": {"namespace": "doomed", "name": "web"}, "spec": {"ports": [{"port": 80}]}});
    house.make(&kinds::SERVICE, service).await;
}

async fn delete(house: &House) {
    house.cluster.delete(&kinds::NAMESPACE, "", "doomed", &Delete::default()).await.expect("deleted");
}

#[tokio::test]
async fn a_namespace_goes_with_everything_in_it() {
    for house in [House::near().await, House::far().await] {
        doomed(&house).await;
        house.namespace("other").await;
        for namespace in ["doomed", "other"] {
            house.make(&kinds::CONFIG_MAP, named(namespace, "a", json!({}))).await;
        }
        delete(&house).await;
        house.control(CONTROLLER);
        house.until_gone(&kinds::NAMESPACE, "", "doomed").await;
        assert!(house.get(&kinds::SERVICE, "doomed", "web").await.is_none());
        assert!(house.get(&kinds::CONFIG_MAP, "doomed", "a").await.is_none());
        assert!(house.get(&kinds::CONFIG_MAP, "other", "a").await.is_some());
    }
}

#[tokio::test]
async fn pods_go_first_and_the_rest_stays_until_they_are_gone() {
    for house in [House::near().await, House::far().await] {
        house.control(CONTROLLER);
        doomed(&house).await;
        let mut held = pod("doomed", "held", "");
        held["metadata"]["finalizers"] = json!(["example.com/hold"]);
        house.make(&kinds::POD, held).await;
        delete(&house).await;
        let waits = |namespace: &Value| condition(namespace, "NamespaceFinalizersRemaining").0 == "True";
        let namespace = house.until(&kinds::NAMESPACE, "", "doomed", waits).await;
        assert_eq!(
            condition(&namespace, "NamespaceContentRemaining").2,
            "Some resources are remaining: pods. has 1 resource instances"
        );
        house.stays(&kinds::SERVICE, "doomed", "web").await;
        house.merge(&kinds::POD, "doomed", "held", json!({"metadata": {"finalizers": null}})).await;
        house.until_gone(&kinds::NAMESPACE, "", "doomed").await;
    }
}

#[tokio::test]
async fn a_held_object_keeps_the_namespace_and_the_conditions_tell() {
    let house = House::near().await;
    house.control(CONTROLLER);
    doomed(&house).await;
    house.make(&kinds::CONFIG_MAP, named("doomed", "held", json!({"finalizers": ["example.com/hold"]}))).await;
    delete(&house).await;
    let waits = |namespace: &Value| condition(namespace, "NamespaceContentRemaining").0 == "True";
    let namespace = house.until(&kinds::NAMESPACE, "", "doomed", waits).await;
    assert_eq!(namespace["status"]["phase"], "Terminating");
    let table = [
        ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        ),
        (
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
        ),
    ];
    for (kind, status, reason, message) in table {
        assert_eq!(condition(&namespace, kind), (status, reason, message));
    }
    house.stays(&kinds::NAMESPACE, "", "doomed").await;
    house.merge(&kinds::CONFIG_MAP, "doomed", "held", json!({"metadata": {"finalizers": null}})).await;
    house.until_gone(&kinds::NAMESPACE, "", "doomed").await;
}

#[tokio::test]
async fn a_group_that_cannot_be_asked_for_keeps_the_namespace() {
    let down = Arc::new(AtomicBool::new(true));
    let house = House::far_without("/apis/discovery.k8s.io/v1", down.clone()).await;
    house.control(CONTROLLER);
    doomed(&house).await;
    delete(&house).await;
    let fails = |namespace: &Value| condition(namespace, "NamespaceDeletionDiscoveryFailure").0 == "True";
    let namespace = house.until(&kinds::NAMESPACE, "", "doomed", fails).await;
    assert_eq!(
        condition(&namespace, "NamespaceDeletionDiscoveryFailure").2,
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: \
         discovery.k8s.io/v1: nobody is there"
    );
    house.until_gone(&kinds::SERVICE, "doomed", "web").await;
    house.stays(&kinds::NAMESPACE, "", "doomed").await;
    down.store(false, Ordering::Relaxed);
    house.until_gone(&kinds::NAMESPACE, "", "doomed").await;
}

#[tokio::test]
async fn a_namespace_with_five_hundred_objects_goes() {
    let house = House::far().await;
    house.namespace("doomed").await;
    for number in 0..500 {
        let kind = if number % 2 == 0 { &kinds::CONFIG_MAP } else { &kinds::SERVICE_ACCOUNT };
        house.make(kind, named("doomed", &format!("o{number}"), json!({}))).await;
    }
    delete(&house).await;
    house.control(CONTROLLER);
    house.until_gone(&kinds::NAMESPACE, "", "doomed").await;
}

#[tokio::test]
async fn a_namespace_with_a_finalizer_of_its_own_stays_empty() {
    let house = House::near().await;
    house.control(CONTROLLER);
    let metadata = json!({"name": "doomed", "finalizers": ["example.com/hold"]});
    house.make(&kinds::NAMESPACE, json!({"metadata": metadata})).await;
    delete(&house).await;
    let ours_gone = |namespace: &Value| namespace["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty);
    house.until(&kinds::NAMESPACE, "", "doomed", ours_gone).await;
    house.merge(&kinds::NAMESPACE, "", "doomed", json!({"metadata": {"finalizers": null}})).await;
    house.until_gone(&kinds::NAMESPACE, "", "doomed").await;
}

#[tokio::test]
async fn a_namespace_deleted_and_made_again_and_deleted_goes_again() {
    let house = House::near().await;
    house.control(CONTROLLER);
    for _ in 0..3 {
        doomed(&house).await;
        delete(&house).await;
        house.until_gone(&kinds::NAMESPACE, "", "doomed").await;
    }
}
