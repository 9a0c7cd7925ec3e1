//! StatefulSets, with the scheduler beside them and agents that are played.

use std::collections::BTreeSet;

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Delete, Patch, Selection};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use crate::house::{House, named};
use crate::kubelet::{self, FAILS, Kubelet, NEVER_READY};

const CONTROLLERS: &str = "statefulset-controller,scheduler,garbage-collector-controller";

fn stateful_set(image: &str, fields: Value) -> Value {
    let mut set = named("default", "web", json!({}));
    let mut spec = json!({
        "replicas": 3,
        "serviceName": "web",
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

/// `NAME IMAGE` of each Pod, sorted.
async fn pods(house: &House) -> Vec<String> {
    let pods = kubelet::list(&house.cluster).await;
    let text =
        |pod: &Value| format!("{} {}", pod.at("metadata").text("name"), pod["spec"]["containers"][0].text("image"));
    let mut texts: Vec<String> = pods.iter().map(text).collect();
    texts.sort();
    texts
}

async fn until_pods(house: &House, expected: &[&str]) {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let found = pods(house).await;
        if found == expected {
            return;
        }
        assert!(Instant::now() < end, "{found:?} did not become {expected:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the status has these numbers: all, ready, current, updated.
async fn until_counted(house: &House, expected: [i64; 4]) -> Value {
    let fields = ["replicas", "readyReplicas", "currentReplicas", "updatedReplicas"];
    let counted = |set: &Value| fields.map(|field| set.at("status").int(field)) == expected;
    house.until(&kinds::STATEFUL_SET, "default", "web", counted).await
}

/// Waits until a Pod is there and as it should be.
async fn until_pod(house: &House, name: &str, holds: impl Fn(&Value) -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !house.get(&kinds::POD, "default", name).await.is_some_and(|pod| holds(&pod)) {
        assert!(Instant::now() < end, "{name} did not become what it should");
        sleep(Duration::from_millis(5)).await;
    }
}

async fn set_image(house: &House, image: &str) {
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}});
    house.cluster.patch(&kinds::STATEFUL_SET, "default", "web", &Patch::Strategic(patch)).await.expect("patched");
}

#[tokio::test]
async fn pods_have_names_labels_and_an_order() {
    let house = House::far().await;
    let _kubelet = Kubelet::start(&house, &["a"]).await;
    house.make(&kinds::STATEFUL_SET, stateful_set("v1", json!({}))).await;
    house.control(CONTROLLERS);
    let set = until_counted(&house, [3; 4]).await;
    let status = set.at("status");
    assert_eq!((status.text("currentRevision"), status.int("observedGeneration")), (status.text("updateRevision"), 1));
    let pod = house.get(&kinds::POD, "default", "web-1").await.expect("the second Pod");
    let (metadata, spec) = (pod.at("metadata"), pod.at("spec"));
    assert_eq!((spec.text("hostname"), spec.text("subdomain")), ("web-1", "web"));
    let labels = metadata.at("labels");
    assert_eq!(labels.text("statefulset.kubernetes.io/pod-name"), "web-1");
    assert_eq!(labels.text("apps.kubernetes.io/pod-index"), "1");
    assert_eq!(labels.text("controller-revision-hash"), status.text("updateRevision"));
    assert_eq!(
        house.event("default", "web", "SuccessfulCreate").await,
        "create Pod web-0 in StatefulSet web successful"
    );

    house.merge(&kinds::STATEFUL_SET, "default", "web", json!({"spec": {"replicas": 1}})).await;
    until_pods(&house, &["web-0 v1"]).await;
    house.cluster.delete(&kinds::STATEFUL_SET, "default", "web", &Delete::default()).await.expect("deleted");
    until_pods(&house, &[]).await;
}

#[tokio::test]
async fn a_pod_that_is_not_ready_holds_up_the_next() {
    let house = House::near().await;
    let _kubelet = Kubelet::start(&house, &["a"]).await;
    house.make(&kinds::STATEFUL_SET, stateful_set(NEVER_READY, json!({}))).await;
    house.control(CONTROLLERS);
    until_counted(&house, [1, 0, 1, 1]).await;
    house.stays(&kinds::POD, "default", "web-0").await;
    assert_eq!(pods(&house).await, [format!("web-0 {NEVER_READY}")]);
}

#[tokio::test]
async fn in_parallel_all_pods_start_at_once() {
    let house = House::near().await;
    let _kubelet = Kubelet::start(&house, &["a"]).await;
    let fields = json!({"podManagementPolicy": "Parallel", "ordinals": {"start": 7}});
    house.make(&kinds::STATEFUL_SET, stateful_set(NEVER_READY, fields)).await;
    house.control(CONTROLLERS);
    let expected: Vec<String> = (7..10).map(|number| format!("web-{number} {NEVER_READY}")).collect();
    until_pods(&house, &expected.iter().map(String::as_str).collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_new_template_goes_from_the_last_pod_to_the_partition() {
    let house = House::near().await;
    let _kubelet = Kubelet::start(&house, &["a"]).await;
    let update = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    house.make(&kinds::STATEFUL_SET, stateful_set("v1", json!({"updateStrategy": update}))).await;
    house.control(CONTROLLERS);
    until_counted(&house, [3; 4]).await;
    set_image(&house, "v2").await;
    let set = until_counted(&house, [3, 3, 2, 1]).await;
    assert_ne!(set.at("status").text("currentRevision"), set.at("status").text("updateRevision"));
    assert_eq!(pods(&house).await, ["web-0 v1", "web-1 v1", "web-2 v2"]);
    // A Pod below the partition that is deleted gets the old template again.
    let old = house.get(&kinds::POD, "default", "web-0").await.expect("the first Pod");
    house.cluster.delete(&kinds::POD, "default", "web-0", &Delete::default()).await.expect("deleted");
    let again = |pod: &Value| pod.at("metadata").text("uid") != old.at("metadata").text("uid");
    until_pod(&house, "web-0", again).await;
    until_counted(&house, [3, 3, 2, 1]).await;
    assert_eq!(pods(&house).await, ["web-0 v1", "web-1 v1", "web-2 v2"]);
    let all = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
    house.merge(&kinds::STATEFUL_SET, "default", "web", all).await;
    let set = until_counted(&house, [3; 4]).await;
    assert_eq!(set.at("status").text("currentRevision"), set.at("status").text("updateRevision"));
    until_pods(&house, &["web-0 v2", "web-1 v2", "web-2 v2"]).await;
}

#[tokio::test]
async fn a_set_with_claims_of_volumes_says_why_it_has_no_pods() {
    let house = House::near().await;
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    }});
    house.make(&kinds::STATEFUL_SET, stateful_set("v1", json!({"volumeClaimTemplates": [claim]}))).await;
    house.control(CONTROLLERS);
    assert_eq!(
        house.event("default", "web", "FailedCreate").await,
        "spec.volumeClaimTemplates: there are no PersistentVolumeClaims here, so no Pod is created"
    );
    assert_eq!(pods(&house).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_pod_that_fails_is_replaced_with_growing_delays() {
    let house = House::near().await;
    let _kubelet = Kubelet::start(&house, &["a"]).await;
    house.make(&kinds::STATEFUL_SET, stateful_set(FAILS, json!({}))).await;
    let start = Instant::now();
    house.control(CONTROLLERS);
    // The first failed Pod is replaced at once, the others after 1 and 2 s. The test may miss Pods,
    // which only makes the time longer.
    let mut seen = BTreeSet::new();
    while seen.len() < 4 {
        let pod = house.get(&kinds::POD, "default", "web-0").await;
        seen.extend(pod.map(|pod| pod.at("metadata").text("uid").to_owned()));
        assert!(start.elapsed() < Duration::from_secs(60), "only {} Pods", seen.len());
        sleep(Duration::from_millis(5)).await;
    }
    assert!(start.elapsed() >= Duration::from_secs(3), "four Pods after {:?}", start.elapsed());
    assert_eq!(pods(&house).await.iter().filter(|pod| !pod.starts_with("web-0 ")).count(), 0);
}

#[tokio::test]
async fn a_selector_on_a_label_of_the_controller_makes_no_pods() {
    for (label, kind) in [
        ("controller-revision-hash", "Pod"),
        ("apps.kubernetes.io/pod-index", "Pod"),
        ("controller.kubernetes.io/hash", "ControllerRevision"),
    ] {
        let house = House::near().await;
        let labels = json!({"app": "web", label: "own"});
        let spec = json!({"containers": [{"name": "c", "image": "v1"}]});
        let template = json!({"metadata": {"labels": labels}, "spec": spec});
        let fields = json!({"selector": {"matchLabels": labels}, "template": template});
        house.make(&kinds::STATEFUL_SET, stateful_set("v1", fields)).await;
        house.control(CONTROLLERS);
        let message = house.event("default", "web", "SelectorMismatch").await;
        assert!(message.contains(&format!("the labels of a new {kind} (")), "{message}");
        assert_eq!(pods(&house).await, Vec::<String>::new());
        let revisions = house.cluster.list(&Selection::all(&kinds::CONTROLLER_REVISION)).await.expect("a list");
        assert_eq!(revisions.objects.len(), usize::from(kind == "Pod"));
    }
}
