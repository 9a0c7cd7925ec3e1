//! Endpoints that follow Pods, Nodes and Services, with no more writes than there are changes.

use std::collections::BTreeMap;
use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Delete, Patch, Selection};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::house::{House, named, pod};

const ENDPOINTS: &str = "endpoint,endpointslice,endpointslicemirroring";

/// Two Nodes, two ready Pods, a Service.
async fn web(house: &House) {
    for (node, zone) in [("n1", "z1"), ("n2", "z2")] {
        let labels = json!({"labels": {"topology.kubernetes.io/zone": zone}});
        house.make(&kinds::NODE, named("", node, labels)).await;
    }
    for (name, node, ip) in [("a", "n1", "10.1.0.1"), ("b", "n2", "10.1.0.2")] {
        let mut pod = pod("default", name, node);
        pod["metadata"]["labels"] = json!({"app": "web"});
        house.make(&kinds::POD, pod).await;
        set_ready(house, name, ip, "True").await;
    }
    let mut service = named("default", "web", json!({}));
    service["spec"] = json!({"selector": {"app": "web"}, "ports": [{"port": 80}]});
    house.make(&kinds::SERVICE, service).await;
}

async fn set_ready(house: &House, pod: &str, ip: &str, ready: &str) {
    let status = json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [{"type": "Ready", "status": ready}]});
    let patch = Patch::Merge(json!({"status": status}));
    house.cluster.patch_status(&kinds::POD, "default", pod, &patch).await.expect("patched");
}

async fn objects(house: &House, kind: &'static fairlead_api::Kind) -> Vec<Value> {
    let list = house.cluster.list(&Selection::all(kind).in_namespace("default")).await.expect("a list");
    let read = |object: &fairlead_cluster::Object| serde_json::from_slice::<Value>(&object.json).expect("JSON");
    list.objects.iter().map(read).filter(|object| object.at("metadata").text("name") != "kubernetes").collect()
}

/// `address zone ready` of every endpoint in slices, and `address ready` of every one in Endpoints.
async fn seen(house: &House) -> (Vec<String>, Vec<String>) {
    let mut slices = Vec::new();
    for endpoint in objects(house, &kinds::ENDPOINT_SLICE).await.iter().flat_map(|slice| slice.list("endpoints")) {
        let ready = endpoint.at("conditions").at("ready");
        slices.push(format!(
            "{} {} {ready}",
            endpoint.list("addresses")[0].as_str().unwrap_or_default(),
            endpoint.text("zone")
        ));
    }
    let mut endpoints = Vec::new();
    for subset in objects(house, &kinds::ENDPOINTS).await.iter().flat_map(|object| object.list("subsets")) {
        endpoints.extend(subset.list("addresses").iter().map(|address| format!("{} true", address.text("ip"))));
        endpoints
            .extend(subset.list("notReadyAddresses").iter().map(|address| format!("{} false", address.text("ip"))));
    }
    slices.sort();
    endpoints.sort();
    (slices, endpoints)
}

async fn becomes(house: &House, slices: &[&str], endpoints: &[&str]) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let seen = seen(house).await;
        if seen.0 == slices && seen.1 == endpoints {
            return;
        }
        assert!(Instant::now() < end, "{seen:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

const BOTH: (&[&str], &[&str]) = (&["10.1.0.1 z1 true", "10.1.0.2 z2 true"], &["10.1.0.1 true", "10.1.0.2 true"]);

/// A house with the controllers and a Service with both its endpoints.
async fn started(house: House) -> House {
    house.control(ENDPOINTS);
    web(&house).await;
    becomes(&house, BOTH.0, BOTH.1).await;
    house
}

/// The revisions of what the controllers write.
async fn revisions(house: &House) -> BTreeMap<String, String> {
    let mut revisions = BTreeMap::new();
    for kind in [&kinds::ENDPOINT_SLICE, &kinds::ENDPOINTS] {
        for object in objects(house, kind).await {
            let metadata = object.at("metadata");
            let name = format!("{}/{}", kind.kind, metadata.text("name"));
            revisions.insert(name, metadata.text("resourceVersion").to_owned());
        }
    }
    revisions
}

#[tokio::test]
async fn a_pod_that_is_not_ready_is_no_ready_endpoint_and_only_that_is_written() {
    for house in [House::near().await, House::far().await] {
        let house = started(house).await;
        sleep(Duration::from_millis(300)).await;
        let before = revisions(&house).await;
        set_ready(&house, "b", "10.1.0.2", "False").await;
        becomes(&house, &["10.1.0.1 z1 true", "10.1.0.2 z2 false"], &["10.1.0.1 true", "10.1.0.2 false"]).await;
        sleep(Duration::from_millis(300)).await;
        let after = revisions(&house).await;
        assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>(), "the same objects");
        let last: u64 = before.values().filter_map(|revision| revision.parse().ok()).max().unwrap_or(0);
        let newest: u64 = after.values().filter_map(|revision| revision.parse().ok()).max().unwrap_or(0);
        assert!(newest - last <= 3, "the Pod, the slice, the Endpoints, and nothing again: {before:?} {after:?}");
    }
}

#[tokio::test]
async fn endpoints_follow_their_node_into_another_zone_and_go_with_it() {
    let house = started(House::near().await).await;
    let patch = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "z9"}}});
    house.merge(&kinds::NODE, "", "n1", patch).await;
    becomes(&house, &["10.1.0.1 z9 true", "10.1.0.2 z2 true"], BOTH.1).await;
    house.cluster.delete(&kinds::NODE, "", "n2", &Delete::default()).await.expect("deleted");
    becomes(&house, &["10.1.0.1 z9 true"], BOTH.1).await;
    assert!(house.event("default", "web", "FailedToUpdateEndpointSlices").await.contains("Node n2 Not Found"));
    house.make(&kinds::NODE, named("", "n2", json!({}))).await;
    becomes(&house, &["10.1.0.1 z9 true", "10.1.0.2  true"], BOTH.1).await;
}

#[tokio::test]
async fn what_somebody_edits_or_deletes_is_put_right() {
    let house = started(House::near().await).await;
    let slices = objects(&house, &kinds::ENDPOINT_SLICE).await;
    let slice = slices[0].at("metadata").text("name");
    house.merge(&kinds::ENDPOINT_SLICE, "default", slice, json!({"endpoints": []})).await;
    becomes(&house, BOTH.0, BOTH.1).await;
    house.cluster.delete(&kinds::ENDPOINT_SLICE, "default", slice, &Delete::default()).await.expect("deleted");
    becomes(&house, BOTH.0, BOTH.1).await;
    let subsets = json!({"subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]});
    house.merge(&kinds::ENDPOINTS, "default", "web", subsets).await;
    becomes(&house, BOTH.0, BOTH.1).await;
    house.cluster.delete(&kinds::ENDPOINTS, "default", "web", &Delete::default()).await.expect("deleted");
    becomes(&house, BOTH.0, BOTH.1).await;
}

#[tokio::test]
async fn endpoints_of_a_service_that_is_gone_go_and_hand_made_ones_stay() {
    let house = House::near().await;
    let metadata = json!({"labels": {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}});
    house.make(&kinds::ENDPOINTS, named("default", "left", metadata)).await;
    house.make(&kinds::ENDPOINTS, named("default", "mine", json!({}))).await;
    house.control(ENDPOINTS);
    house.until_gone(&kinds::ENDPOINTS, "default", "left").await;
    house.stays(&kinds::ENDPOINTS, "default", "mine").await;
}

#[tokio::test]
async fn what_happened_while_no_controller_ran_is_made_up_for() {
    let house = House::far().await;
    web(&house).await;
    assert_eq!(seen(&house).await, (vec![], vec![]));
    house.control(ENDPOINTS);
    becomes(&house, BOTH.0, BOTH.1).await;
}

#[tokio::test]
async fn only_the_chosen_controllers_run() {
    let house = House::near().await;
    house.control("endpointslice-controller");
    web(&house).await;
    becomes(&house, BOTH.0, &[]).await;
    sleep(Duration::from_millis(200)).await;
    assert!(objects(&house, &kinds::ENDPOINTS).await.is_empty());
}

/// What the slices of the Service say of weights.
async fn weights_become(house: &House, expected: Option<&str>) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let slices = objects(house, &kinds::ENDPOINT_SLICE).await;
        let said: Vec<_> =
            slices.iter().map(|slice| slice["metadata"]["annotations"]["fairlead.dev/weight"].as_str()).collect();
        if said == [expected] {
            return;
        }
        assert!(Instant::now() < end, "{said:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn row_112_weights_of_pods_and_shares_of_a_service_come_into_its_slices() {
    for house in [House::near().await, House::far().await] {
        house.control(ENDPOINTS);
        web(&house).await;
        becomes(&house, BOTH.0, BOTH.1).await;
        weights_become(&house, None).await;
        let weight = |weight: Value| json!({"metadata": {"annotations": {"fairlead.dev/weight": weight}}});
        house.merge(&kinds::POD, "default", "a", weight(json!("0"))).await;
        weights_become(&house, Some("10.1.0.1=0")).await;
        house.merge(&kinds::POD, "default", "a", weight(Value::Null)).await;
        weights_become(&house, None).await;
        let shares = |shares: &str| json!({"metadata": {"annotations": {"fairlead.dev/weights": shares}}});
        house.merge(&kinds::POD, "default", "b", json!({"metadata": {"labels": {"track": "canary"}}})).await;
        house.merge(&kinds::SERVICE, "default", "web", shares("track=canary:5")).await;
        weights_become(&house, Some("10.1.0.1=19")).await;
        house.merge(&kinds::SERVICE, "default", "web", shares("track:5%")).await;
        weights_become(&house, None).await;
        let why = "Annotation fairlead.dev/weights is not followed: \"track:5%\" is to end with a colon and a number from 0 to \
                   100, as in track=canary:5";
        assert_eq!(house.event("default", "web", "InvalidWeight").await, why);
    }
}
