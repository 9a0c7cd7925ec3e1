//! DaemonSets, with the scheduler beside them and agents that are played.

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Delete, Patch, Selection};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use crate::house::{House, named};
use crate::kubelet::{self, FAILS, Kubelet, NEVER_READY, add_node};

const CONTROLLERS: &str = "daemonset-controller,scheduler,garbage-collector-controller";

fn daemon_set(image: &str, fields: Value) -> Value {
    let mut set = named("default", "web", json!({}));
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": image}]},
        },
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        spec[name.as_str()] = value.clone();
    }
    set.set("spec", spec);
    set
}

/// `NODE IMAGE` of each Pod that is not being deleted, sorted.
async fn placed(house: &House) -> Vec<String> {
    let pods = kubelet::list(&house.cluster).await;
    let stays = pods.iter().filter(|pod| pod.at("metadata").text("deletionTimestamp").is_empty());
    let text =
        |pod: &Value| format!("{} {}", pod.at("spec").text("nodeName"), pod["spec"]["containers"][0].text("image"));
    let mut texts: Vec<String> = stays.map(text).collect();
    texts.sort();
    texts
}

async fn until_placed(house: &House, expected: &[&str]) {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let found = placed(house).await;
        if found == expected {
            return;
        }
        assert!(Instant::now() < end, "{found:?} did not become {expected:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the status has these numbers: desired, current, ready, updated, available.
async fn until_counted(house: &House, expected: [i64; 5]) -> Value {
    let fields = [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    ];
    let counted = |set: &Value| fields.map(|field| set.at("status").int(field)) == expected;
    house.until(&kinds::DAEMON_SET, "default", "web", counted).await
}

async fn set_image(house: &House, image: &str) {
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}});
    house.cluster.patch(&kinds::DAEMON_SET, "default", "web", &Patch::Strategic(patch)).await.expect("patched");
}

#[tokio::test]
async fn every_node_that_fits_gets_one_pod_and_keeps_it() {
    let house = House::near().await;
    let _kubelet = Kubelet::start(&house, &["a", "b"]).await;
    house.make(&kinds::DAEMON_SET, daemon_set("v1", json!({}))).await;
    house.control(CONTROLLERS);
    until_placed(&house, &["a v1", "b v1"]).await;
    let set = until_counted(&house, [2; 5]).await;
    assert_eq!(set.at("status").int("observedGeneration"), 1);
    assert_eq!(set.at("status").int("numberUnavailable"), 0);

    // A new Node, a Node that no longer fits, and a Pod that was deleted.
    add_node(&house, "c", json!({})).await;
    until_placed(&house, &["a v1", "b v1", "c v1"]).await;
    let taints = json!({"spec": {"taints": [{"key": "own", "effect": "NoExecute"}]}});
    house.merge(&kinds::NODE, "", "b", taints).await;
    until_placed(&house, &["a v1", "c v1"]).await;
    let pods = kubelet::list(&house.cluster).await;
    // The Pod of Node b may still be ending.
    let lives = |pod: &&Value| pod.at("metadata").text("deletionTimestamp").is_empty();
    let name = pods.iter().find(lives).expect("a Pod").at("metadata").text("name").to_owned();
    house.cluster.delete(&kinds::POD, "default", &name, &Delete::default()).await.expect("deleted");
    house.until_gone(&kinds::POD, "default", &name).await;
    until_placed(&house, &["a v1", "c v1"]).await;
    until_counted(&house, [2; 5]).await;
    assert!(house.event("default", "web", "SuccessfulCreate").await.starts_with("Created pod: web-"));

    house.cluster.delete(&kinds::DAEMON_SET, "default", "web", &Delete::default()).await.expect("deleted");
    until_placed(&house, &[]).await;
}

#[tokio::test]
async fn a_new_template_replaces_one_pod_after_the_other_and_can_be_undone() {
    let house = House::far().await;
    let _kubelet = Kubelet::start(&house, &["a", "b", "c"]).await;
    house.make(&kinds::DAEMON_SET, daemon_set("v1", json!({}))).await;
    house.control(CONTROLLERS);
    until_counted(&house, [3; 5]).await;
    set_image(&house, "v2").await;
    until_placed(&house, &["a v2", "b v2", "c v2"]).await;
    until_counted(&house, [3; 5]).await;
    // One that never becomes ready stops the update at its first Pod.
    set_image(&house, NEVER_READY).await;
    until_counted(&house, [3, 3, 2, 1, 2]).await;
    assert_eq!(placed(&house).await.iter().filter(|pod| pod.ends_with(" v2")).count(), 2);

    // As `kubectl rollout undo` does it: the data of a revision is a patch.
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let list = house.cluster.request(fairlead_cluster::Method::GET, path, None).await.expect("a list");
    let revisions = list.list("items");
    assert_eq!(revisions.len(), 3);
    let second = revisions.iter().find(|revision| revision.int("revision") == 2).expect("the second revision");
    let patch = Patch::Strategic(second.at("data").clone());
    house.cluster.patch(&kinds::DAEMON_SET, "default", "web", &patch).await.expect("patched");
    until_placed(&house, &["a v2", "b v2", "c v2"]).await;
    until_counted(&house, [3; 5]).await;
    let name = second.at("metadata").text("name");
    house.until(&kinds::CONTROLLER_REVISION, "default", name, |revision| revision.int("revision") == 4).await;
}

#[tokio::test]
async fn with_surge_the_old_pod_stays_until_the_new_one_is_available() {
    let house = House::near().await;
    let _kubelet = Kubelet::start(&house, &["a", "b"]).await;
    let update = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    house.make(&kinds::DAEMON_SET, daemon_set("v1", json!({"updateStrategy": update}))).await;
    house.control(CONTROLLERS);
    until_counted(&house, [2; 5]).await;
    set_image(&house, NEVER_READY).await;
    let first = format!("a {NEVER_READY}");
    until_placed(&house, &[&first, "a v1", "b v1"]).await;
    set_image(&house, "v2").await;
    until_placed(&house, &["a v2", "b v2"]).await;
    until_counted(&house, [2; 5]).await;
}

#[tokio::test]
async fn on_delete_a_pod_is_replaced_when_it_is_deleted() {
    let house = House::near().await;
    let _kubelet = Kubelet::start(&house, &["a"]).await;
    let update = json!({"type": "OnDelete"});
    house.make(&kinds::DAEMON_SET, daemon_set("v1", json!({"updateStrategy": update}))).await;
    house.control(CONTROLLERS);
    until_counted(&house, [1; 5]).await;
    set_image(&house, "v2").await;
    until_counted(&house, [1, 1, 1, 0, 1]).await;
    let pods = kubelet::list(&house.cluster).await;
    // The Pod of Node b may still be ending.
    let lives = |pod: &&Value| pod.at("metadata").text("deletionTimestamp").is_empty();
    let name = pods.iter().find(lives).expect("a Pod").at("metadata").text("name").to_owned();
    house.cluster.delete(&kinds::POD, "default", &name, &Delete::default()).await.expect("deleted");
    until_placed(&house, &["a v2"]).await;
}

#[tokio::test]
async fn a_failed_pod_is_replaced_and_an_unowned_one_adopted() {
    let house = House::near().await;
    let _kubelet = Kubelet::start(&house, &["a"]).await;
    let mut orphan = named("default", "orphan", json!({"labels": {"app": "web"}}));
    orphan.set("spec", json!({"nodeName": "a", "containers": [{"name": "c", "image": "own"}]}));
    house.make(&kinds::POD, orphan).await;
    house.make(&kinds::DAEMON_SET, daemon_set(FAILS, json!({"updateStrategy": {"type": "OnDelete"}}))).await;
    house.control(CONTROLLERS);
    let adopted = |pod: &Value| pod["metadata"]["ownerReferences"][0].text("name") == "web";
    house.until(&kinds::POD, "default", "orphan", adopted).await;
    house.cluster.delete(&kinds::POD, "default", "orphan", &Delete::default()).await.expect("deleted");
    let message = house.event("default", "web", "FailedDaemonPod").await;
    assert!(message.contains(" on node a, will try to kill it"), "{message}");
}

#[tokio::test]
async fn a_selector_on_a_label_of_the_controller_makes_no_pods() {
    let generation = "deprecated.daemonset.template.generation";
    for (label, kind) in [("controller-revision-hash", "ControllerRevision"), ("pod-template-generation", "Pod")] {
        let house = House::near().await;
        let _kubelet = Kubelet::start(&house, &["a"]).await;
        let labels = json!({"app": "web", label: "own"});
        let spec = json!({"containers": [{"name": "c", "image": "v1"}]});
        let template = json!({"metadata": {"labels": labels}, "spec": spec});
        let fields = json!({"selector": {"matchLabels": labels}, "template": template});
        let mut set = daemon_set("v1", fields);
        set["metadata"].set("annotations", json!({generation: "1"}));
        house.make(&kinds::DAEMON_SET, set).await;
        house.control(CONTROLLERS);
        let message = house.event("default", "web", "SelectorMismatch").await;
        assert!(message.contains(&format!("the labels of a new {kind} (")), "{message}");
        assert_eq!(placed(&house).await, Vec::<String>::new());
        let revisions = house.cluster.list(&Selection::all(&kinds::CONTROLLER_REVISION)).await.expect("a list");
        assert_eq!(revisions.objects.len(), usize::from(kind == "Pod"));
    }
}
