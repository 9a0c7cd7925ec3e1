//! Deployments: rollouts, revisions, and the ReplicaSets behind them. A task of the test makes Pods ready, as a Node would.

use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Delete, Propagation, Selection};
use fairlead_control::Options;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::house::{House, condition, named};
use crate::replica_sets::{make_ready, pods, until_pods};

/// Limit for changes that take a moment.
const PATIENCE: Duration = Duration::from_secs(60);
const REVISION: &str = "deployment.kubernetes.io/revision";

fn control(house: &House) {
    house.control_with("deployment-controller,replicaset-controller,garbage-collector-controller", Options::default());
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

/// A Deployment called `web`.
fn web(replicas: i32, change: &Value) -> Value {
    let mut object = named("default", "web", json!({}));
    let selector = json!({"matchLabels": {"app": "web"}});
    object.set("spec", json!({"replicas": replicas, "selector": selector, "template": template("one")}));
    for (field, value) in change.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

async fn set_image(house: &House, image: &str) {
    house.merge(&kinds::DEPLOYMENT, "default", "web", json!({"spec": {"template": template(image)}})).await;
}

/// All ReplicaSets, by name.
async fn sets(house: &House) -> Vec<Value> {
    let list = house.cluster.list(&Selection::all(&kinds::REPLICA_SET)).await.expect("ReplicaSets");
    list.objects.iter().map(|object| serde_json::from_slice(&object.json).expect("a ReplicaSet")).collect()
}

fn image(object: &Value) -> &str {
    object.at("spec").at("template").at("spec").list("containers")[0].text("image")
}

async fn set_of(house: &House, wanted: &str) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let sets = sets(house).await;
        if let Some(set) = sets.iter().find(|set| image(set) == wanted) {
            return set.clone();
        }
        assert!(Instant::now() < end, "no ReplicaSet of {wanted}: {sets:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

fn revision(object: &Value) -> &str {
    object.at("metadata").at("annotations").text(REVISION)
}

/// Makes Pods ready until the rollout is complete, as `kubectl rollout status` understands it.
async fn roll_out(house: &House) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        for pod in pods(house).await {
            if condition(&pod, "Ready").0 != "True" {
                make_ready(house, &pod).await;
            }
        }
        let deployment = house.get(&kinds::DEPLOYMENT, "default", "web").await.expect("it is there");
        let (metadata, spec, status) = (deployment.at("metadata"), deployment.at("spec"), deployment.at("status"));
        let complete = status.int("observedGeneration") >= metadata.int("generation")
            && ["replicas", "updatedReplicas", "availableReplicas"]
                .iter()
                .all(|count| status.int(count) == spec.int("replicas"))
            && condition(&deployment, "Progressing").1 == "NewReplicaSetAvailable";
        if complete {
            return deployment;
        }
        assert!(Instant::now() < end, "the rollout does not end: {deployment}");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_template_is_rolled_out_and_back_with_revisions() {
    for house in [House::near().await, House::far().await] {
        control(&house);
        house.make(&kinds::DEPLOYMENT, web(3, &json!({}))).await;
        let deployment = roll_out(&house).await;
        assert_eq!(revision(&deployment), "1");
        assert_eq!(condition(&deployment, "Available").1, "MinimumReplicasAvailable");
        let first = set_of(&house, "one").await;
        let hash = first.at("metadata").at("labels").text("pod-template-hash");
        assert!(!hash.is_empty() && first.at("metadata").text("name") == format!("web-{hash}"), "{first}");
        let message = house.event("default", "web", "ScalingReplicaSet").await;
        assert_eq!(message, format!("Scaled up replica set web-{hash} from 0 to 3"));

        set_image(&house, "two").await;
        set_of(&house, "two").await;
        let deployment = roll_out(&house).await;
        assert_eq!(revision(&deployment), "2");
        let pods = until_pods(&house, "three Pods of the new template", |pods| pods.len() == 3).await;
        assert!(pods.iter().all(|pod| pod.at("spec").list("containers")[0].text("image") == "two"), "{pods:?}");
        assert_eq!(set_of(&house, "one").await.at("spec").int_opt("replicas"), Some(0));

        // As `kubectl rollout undo` does: the template of the old ReplicaSet, which is used again.
        set_image(&house, "one").await;
        house.until(&kinds::DEPLOYMENT, "default", "web", |deployment| revision(deployment) == "3").await;
        roll_out(&house).await;
        let again = set_of(&house, "one").await;
        assert_eq!((again.at("metadata").text("uid"), revision(&again)), (first.at("metadata").text("uid"), "3"));
        let history = again.at("metadata").at("annotations").text("deployment.kubernetes.io/revision-history");
        assert_eq!((history, sets(&house).await.len()), ("1", 2));
    }
}

#[tokio::test]
async fn old_replica_sets_beyond_the_limit_are_deleted() {
    let house = House::near().await;
    control(&house);
    house.make(&kinds::DEPLOYMENT, web(1, &json!({"revisionHistoryLimit": 1}))).await;
    for image in ["one", "two", "three", "four"] {
        set_image(&house, image).await;
        set_of(&house, image).await;
        roll_out(&house).await;
    }
    let end = Instant::now() + PATIENCE;
    loop {
        let images: Vec<String> = sets(&house).await.iter().map(|set| image(set).to_owned()).collect();
        if images.len() == 2 && ["three", "four"].iter().all(|image| images.iter().any(|found| found == image)) {
            return;
        }
        assert!(Instant::now() < end, "{images:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn recreate_has_no_pods_of_two_templates() {
    let house = House::near().await;
    control(&house);
    house.make(&kinds::DEPLOYMENT, web(2, &json!({"strategy": {"type": "Recreate"}}))).await;
    roll_out(&house).await;
    let first = pods(&house).await;
    // A finalizer holds an old Pod, as a process that takes its time does.
    let name = first[0].at("metadata").text("name");
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    house.merge(&kinds::POD, "default", name, hold).await;
    set_image(&house, "two").await;
    until_pods(&house, "one Pod that is terminating", |pods| {
        pods.len() == 1 && !pods[0].at("metadata").text("deletionTimestamp").is_empty()
    })
    .await;
    let scaled =
        |set: &Value| set.at("status").int("replicas") == 0 && set.at("status").int("terminatingReplicas") == 1;
    let set = set_of(&house, "one").await;
    house.until(&kinds::REPLICA_SET, "default", set.at("metadata").text("name"), scaled).await;
    assert_eq!(sets(&house).await.len(), 1, "the new template waits");
    house.merge(&kinds::POD, "default", name, json!({"metadata": {"finalizers": null}})).await;
    set_of(&house, "two").await;
    roll_out(&house).await;
}

#[tokio::test]
async fn a_paused_deployment_waits_with_a_new_template_and_not_with_its_size() {
    let house = House::near().await;
    control(&house);
    house.make(&kinds::DEPLOYMENT, web(2, &json!({}))).await;
    roll_out(&house).await;
    house.merge(&kinds::DEPLOYMENT, "default", "web", json!({"spec": {"paused": true}})).await;
    set_image(&house, "two").await;
    house.merge(&kinds::DEPLOYMENT, "default", "web", json!({"spec": {"replicas": 4}})).await;
    until_pods(&house, "four Pods", |pods| pods.len() == 4).await;
    let paused = |deployment: &Value| condition(deployment, "Progressing").1 == "DeploymentPaused";
    house.until(&kinds::DEPLOYMENT, "default", "web", paused).await;
    assert_eq!(sets(&house).await.len(), 1);
    house.merge(&kinds::DEPLOYMENT, "default", "web", json!({"spec": {"paused": false}})).await;
    set_of(&house, "two").await;
    assert_eq!(revision(&roll_out(&house).await), "2");
}

#[tokio::test]
async fn a_name_that_is_in_use_changes_the_hash() {
    let house = House::near().await;
    control(&house);
    house.make(&kinds::DEPLOYMENT, web(1, &json!({"paused": true}))).await;
    house.merge(&kinds::DEPLOYMENT, "default", "web", json!({"spec": {"paused": false}})).await;
    let first = set_of(&house, "one").await;
    let name = first.at("metadata").text("name").to_owned();
    let how = Delete { propagation: Some(Propagation::Background), ..Delete::default() };
    house.cluster.delete(&kinds::DEPLOYMENT, "default", "web", &how).await.expect("deleted");
    house.until_gone(&kinds::REPLICA_SET, "default", &name).await;
    let mut other = named("default", &name, json!({}));
    let mut foreign = template("other");
    foreign["metadata"]["labels"] = json!({"app": "other"});
    other.set("spec", json!({"replicas": 0, "selector": {"matchLabels": {"app": "other"}}, "template": foreign}));
    house.make(&kinds::REPLICA_SET, other).await;
    house.make(&kinds::DEPLOYMENT, web(1, &json!({}))).await;
    let set = set_of(&house, "one").await;
    assert_ne!(set.at("metadata").text("name"), name);
    assert_eq!(roll_out(&house).await.at("status").int("collisionCount"), 1);
}

#[tokio::test]
async fn a_deployment_takes_everything_along_or_leaves_it_to_the_next() {
    let house = House::near().await;
    control(&house);
    house.make(&kinds::DEPLOYMENT, web(2, &json!({}))).await;
    roll_out(&house).await;
    let before = sets(&house).await;
    let how = |propagation| Delete { propagation: Some(propagation), ..Delete::default() };
    house.cluster.delete(&kinds::DEPLOYMENT, "default", "web", &how(Propagation::Orphan)).await.expect("deleted");
    house.until_gone(&kinds::DEPLOYMENT, "default", "web").await;
    house.make(&kinds::DEPLOYMENT, web(2, &json!({}))).await;
    let deployment = roll_out(&house).await;
    let after = sets(&house).await;
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].at("metadata").text("uid"), before[0].at("metadata").text("uid"), "it is adopted");
    let owner = &after[0].at("metadata").list("ownerReferences")[0];
    assert_eq!(owner.text("uid"), deployment.at("metadata").text("uid"));
    house.cluster.delete(&kinds::DEPLOYMENT, "default", "web", &how(Propagation::Background)).await.expect("deleted");
    until_pods(&house, "no Pods", <[Value]>::is_empty).await;
    assert!(sets(&house).await.is_empty());
}

#[tokio::test]
async fn a_rollout_that_does_not_get_on_is_reported() {
    let house = House::near().await;
    control(&house);
    house.make(&kinds::DEPLOYMENT, web(1, &json!({"progressDeadlineSeconds": 1}))).await;
    let failed = |deployment: &Value| condition(deployment, "Progressing").1 == "ProgressDeadlineExceeded";
    house.until(&kinds::DEPLOYMENT, "default", "web", failed).await;
    assert_eq!(condition(&roll_out(&house).await, "Progressing").0, "True");
}

#[tokio::test]
async fn a_selector_on_the_hash_of_the_template_makes_no_replica_sets() {
    for selector in [
        json!({"matchLabels": {"app": "web", "pod-template-hash": "own"}}),
        json!({"matchExpressions": [{"key": "pod-template-hash", "operator": "In", "values": ["own"]}]}),
    ] {
        let house = House::near().await;
        let mut template = template("one");
        template["metadata"]["labels"].set("pod-template-hash", "own");
        house.make(&kinds::DEPLOYMENT, web(1, &json!({"selector": selector, "template": template}))).await;
        control(&house);
        let message = house.event("default", "web", "SelectorMismatch").await;
        assert!(message.starts_with("spec.selector does not match the labels of a new ReplicaSet ("), "{message}");
        let sets = house.cluster.list(&Selection::all(&kinds::REPLICA_SET)).await.expect("a list");
        assert!(sets.objects.is_empty());
    }
}
