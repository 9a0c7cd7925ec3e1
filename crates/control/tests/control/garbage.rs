//! Objects whose owners go.

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Delete, Propagation};
use serde_json::{Value, json};

use crate::house::{House, named};

const CONTROLLER: &str = "garbage-collector-controller";

fn owner(kind: &str, object: &Value) -> Value {
    let metadata = object.at("metadata");
    json!({
        "apiVersion": object.text("apiVersion"), "kind": kind, "name": metadata.text("name"), "uid": metadata.text("uid"),
        "blockOwnerDeletion": true,
    })
}

async fn service(house: &House) -> Value {
    let service = json!({"metadata": {"namespace": "default", "name": "web"}, "spec": {"ports": [{"port": 80}]}});
    house.make(&kinds::SERVICE, service).await
}

/// A Service and two slices of it.
async fn service_with_slices(house: &House) {
    let service = service(house).await;
    for name in ["web-a", "web-b"] {
        let mut slice = named("default", name, json!({"ownerReferences": [owner("Service", &service)]}));
        slice.set("addressType", "IPv4");
        slice.set("endpoints", json!([]));
        house.make(&kinds::ENDPOINT_SLICE, slice).await;
    }
}

async fn delete_service(house: &House, propagation: Propagation) {
    let how = Delete { propagation: Some(propagation), ..Delete::default() };
    house.cluster.delete(&kinds::SERVICE, "default", "web", &how).await.expect("deleted");
}

/// A ConfigMap that belongs to others.
async fn dependent(house: &House, name: &str, owners: &[&Value]) -> Value {
    let owners: Vec<Value> = owners.iter().map(|object| owner("ConfigMap", object)).collect();
    house.config_map(name, json!({"ownerReferences": owners})).await
}

async fn delete(house: &House, name: &str) {
    let how = Delete { propagation: Some(Propagation::Background), ..Delete::default() };
    house.cluster.delete(&kinds::CONFIG_MAP, "default", name, &how).await.expect("deleted");
}

#[tokio::test]
async fn slices_go_after_their_service() {
    for house in [House::near().await, House::far().await] {
        house.control(CONTROLLER);
        service_with_slices(&house).await;
        house.stays(&kinds::ENDPOINT_SLICE, "default", "web-a").await;
        delete_service(&house, Propagation::Background).await;
        house.until_gone(&kinds::ENDPOINT_SLICE, "default", "web-a").await;
        house.until_gone(&kinds::ENDPOINT_SLICE, "default", "web-b").await;
    }
}

#[tokio::test]
async fn what_went_while_nobody_looked_is_found_at_the_start() {
    for house in [House::near().await, House::far().await] {
        service_with_slices(&house).await;
        delete_service(&house, Propagation::Background).await;
        house.control(CONTROLLER);
        house.until_gone(&kinds::ENDPOINT_SLICE, "default", "web-a").await;
        house.until_gone(&kinds::ENDPOINT_SLICE, "default", "web-b").await;
    }
}

#[tokio::test]
async fn a_service_deleted_in_the_foreground_goes_after_its_slices() {
    for house in [House::near().await, House::far().await] {
        house.control(CONTROLLER);
        service_with_slices(&house).await;
        let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
        house.merge(&kinds::ENDPOINT_SLICE, "default", "web-a", hold).await;
        delete_service(&house, Propagation::Foreground).await;
        house.until_gone(&kinds::ENDPOINT_SLICE, "default", "web-b").await;
        house.stays(&kinds::SERVICE, "default", "web").await;
        house.merge(&kinds::ENDPOINT_SLICE, "default", "web-a", json!({"metadata": {"finalizers": null}})).await;
        house.until_gone(&kinds::SERVICE, "default", "web").await;
        // Its address is free again.
        service(&house).await;
    }
}

#[tokio::test]
async fn slices_of_a_service_deleted_as_an_orphan_maker_stay_without_owner() {
    for house in [House::near().await, House::far().await] {
        house.control(CONTROLLER);
        service_with_slices(&house).await;
        delete_service(&house, Propagation::Orphan).await;
        house.until_gone(&kinds::SERVICE, "default", "web").await;
        for name in ["web-a", "web-b"] {
            house.stays(&kinds::ENDPOINT_SLICE, "default", name).await;
            let slice = house.get(&kinds::ENDPOINT_SLICE, "default", name).await.expect("the slice");
            assert!(slice.at("metadata").list("ownerReferences").is_empty(), "{slice}");
        }
    }
}

#[tokio::test]
async fn an_owner_made_again_is_another() {
    let house = House::near().await;
    house.control(CONTROLLER);
    service_with_slices(&house).await;
    delete_service(&house, Propagation::Background).await;
    service(&house).await;
    house.until_gone(&kinds::ENDPOINT_SLICE, "default", "web-a").await;
    house.stays(&kinds::SERVICE, "default", "web").await;
}

#[tokio::test]
async fn a_chain_of_owners_goes_link_by_link() {
    let house = House::near().await;
    house.control(CONTROLLER);
    let first = house.config_map("first", json!({})).await;
    let second = dependent(&house, "second", &[&first]).await;
    dependent(&house, "third", &[&second]).await;
    delete(&house, "first").await;
    house.until_gone(&kinds::CONFIG_MAP, "default", "third").await;
    house.until_gone(&kinds::CONFIG_MAP, "default", "second").await;
}

#[tokio::test]
async fn a_chain_deleted_in_the_foreground_goes_from_its_end() {
    let house = House::near().await;
    house.control(CONTROLLER);
    let first = house.config_map("first", json!({})).await;
    let second = dependent(&house, "second", &[&first]).await;
    let metadata = json!({"ownerReferences": [owner("ConfigMap", &second)], "finalizers": ["example.com/hold"]});
    house.config_map("third", metadata).await;
    let how = Delete { propagation: Some(Propagation::Foreground), ..Delete::default() };
    house.cluster.delete(&kinds::CONFIG_MAP, "default", "first", &how).await.expect("deleted");
    let goes = |object: &Value| !object.at("metadata").text("deletionTimestamp").is_empty();
    house.until(&kinds::CONFIG_MAP, "default", "third", goes).await;
    house.stays(&kinds::CONFIG_MAP, "default", "second").await;
    house.merge(&kinds::CONFIG_MAP, "default", "third", json!({"metadata": {"finalizers": null}})).await;
    house.until_gone(&kinds::CONFIG_MAP, "default", "first").await;
    assert!(house.get(&kinds::CONFIG_MAP, "default", "second").await.is_none());
}

#[tokio::test]
async fn owners_in_a_circle_do_not_wait_for_each_other_for_ever() {
    let house = House::near().await;
    house.control(CONTROLLER);
    let first = house.config_map("first", json!({})).await;
    let second = dependent(&house, "second", &[&first]).await;
    let owners = json!({"metadata": {"ownerReferences": [owner("ConfigMap", &second)]}});
    house.merge(&kinds::CONFIG_MAP, "default", "first", owners).await;
    let how = Delete { propagation: Some(Propagation::Foreground), ..Delete::default() };
    house.cluster.delete(&kinds::CONFIG_MAP, "default", "first", &how).await.expect("deleted");
    house.until_gone(&kinds::CONFIG_MAP, "default", "first").await;
    house.until_gone(&kinds::CONFIG_MAP, "default", "second").await;
}

#[tokio::test]
async fn an_object_with_an_owner_left_loses_only_the_other() {
    for propagation in [Propagation::Background, Propagation::Foreground] {
        let house = House::near().await;
        house.control(CONTROLLER);
        let (left, gone) = (house.config_map("left", json!({})).await, house.config_map("gone", json!({})).await);
        dependent(&house, "both", &[&left, &gone]).await;
        let how = Delete { propagation: Some(propagation), ..Delete::default() };
        house.cluster.delete(&kinds::CONFIG_MAP, "default", "gone", &how).await.expect("deleted");
        let alone = |object: &Value| object.at("metadata").list("ownerReferences").len() == 1;
        house.until(&kinds::CONFIG_MAP, "default", "both", alone).await;
        house.until_gone(&kinds::CONFIG_MAP, "default", "gone").await;
    }
}

#[tokio::test]
async fn an_owner_in_another_namespace_is_none_and_an_event_says_so() {
    let house = House::near().await;
    house.control(CONTROLLER);
    house.namespace("other").await;
    // One that is collected shows that everything was listed.
    let settled = house.config_map("settled", json!({})).await;
    dependent(&house, "settles", &[&settled]).await;
    delete(&house, "settled").await;
    house.until_gone(&kinds::CONFIG_MAP, "default", "settles").await;
    let there = house.make(&kinds::CONFIG_MAP, named("other", "there", json!({}))).await;
    dependent(&house, "here", &[&there]).await;
    house.until_gone(&kinds::CONFIG_MAP, "default", "here").await;
    let uid = there.at("metadata").text("uid");
    assert_eq!(
        house.event("default", "here", "OwnerRefInvalidNamespace").await,
        format!(
            "ownerRef [v1/ConfigMap, namespace: default, name: there, uid: {uid}] does not exist in namespace \"default\""
        )
    );
}

#[tokio::test]
async fn an_object_outside_namespaces_is_not_collected_for_an_owner_inside_one() {
    let house = House::near().await;
    house.control(CONTROLLER);
    let inside = house.config_map("inside", json!({})).await;
    let metadata = json!({"ownerReferences": [owner("ConfigMap", &inside)]});
    house.make(&kinds::NODE, named("", "outside", metadata)).await;
    delete(&house, "inside").await;
    house.stays(&kinds::NODE, "", "outside").await;
}

#[tokio::test]
async fn an_object_inside_a_namespace_goes_with_an_owner_outside() {
    let house = House::near().await;
    house.control(CONTROLLER);
    let node = house.make(&kinds::NODE, named("", "n", json!({}))).await;
    let lease = named("kube-node-lease", "n", json!({"ownerReferences": [owner("Node", &node)]}));
    house.make(&kinds::LEASE, lease).await;
    house.stays(&kinds::LEASE, "kube-node-lease", "n").await;
    house.cluster.delete(&kinds::NODE, "", "n", &Delete::default()).await.expect("deleted");
    house.until_gone(&kinds::LEASE, "kube-node-lease", "n").await;
}

#[tokio::test]
async fn an_object_of_an_owner_of_unknown_kind_is_never_touched() {
    let house = House::near().await;
    house.control(CONTROLLER);
    let gone = house.config_map("gone", json!({})).await;
    let unknown = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "9"});
    let owners = json!({"ownerReferences": [unknown, owner("ConfigMap", &gone)]});
    house.config_map("kept", owners).await;
    delete(&house, "gone").await;
    house.stays(&kinds::CONFIG_MAP, "default", "kept").await;
}
