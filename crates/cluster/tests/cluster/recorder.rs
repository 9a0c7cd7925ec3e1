//! Events as people find them.

use std::time::Duration;

use fairlead_api::kinds;
use fairlead_api::source::Selection;
use fairlead_api::view::Meta;
use fairlead_cluster::{Cluster, Delete, Recorder, Reference, Severity};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::house::House;

async fn events(cluster: &Cluster) -> Vec<Value> {
    let list = cluster.list(&Selection::all(&kinds::EVENT)).await.expect("a list");
    list.objects.iter().map(|object| serde_json::from_slice(&object.json).expect("JSON")).collect()
}

/// Waits until the Events are as wanted.
async fn until(cluster: &Cluster, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let wait = async {
        loop {
            let events = events(cluster).await;
            if wanted(&events) {
                return events;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(20), wait).await.expect("events in time")
}

fn web() -> Reference {
    let meta = Meta {
        name: "web".into(),
        namespace: "default".into(),
        uid: "1".into(),
        resource_version: "7".into(),
        ..Meta::default()
    };
    Reference::to(&kinds::SERVICE, &meta)
}

#[tokio::test]
async fn an_event_says_everything_and_is_counted() {
    let house = House::new().await;
    let cluster = house.cluster();
    let recorder = Recorder::new(&cluster, "endpoint-slice-controller", "node-1");
    for _ in 0..3 {
        recorder.record(web(), Severity::Warning, "FailedToUpdate", "it did not work");
    }
    let events = until(&cluster, |events| events.first().is_some_and(|event| event["count"] == 3)).await;
    let [event] = events.as_slice() else { panic!("{events:?}") };
    let about = json!({"kind": "Service", "namespace": "default", "name": "web", "uid": "1", "apiVersion": "v1", "resourceVersion": "7"});
    assert_eq!(event["involvedObject"], about);
    assert_eq!(event["source"], json!({"component": "endpoint-slice-controller", "host": "node-1"}));
    let texts = ["reason", "message", "type", "reportingComponent", "reportingInstance"].map(|field| &event[field]);
    assert_eq!(texts, ["FailedToUpdate", "it did not work", "Warning", "endpoint-slice-controller", "node-1"]);
    assert!(event["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("web.")));
    assert!(event["firstTimestamp"].as_str().is_some_and(|time| time.len() == "2026-01-01T00:00:00Z".len()));
}

#[tokio::test]
async fn a_deleted_event_is_made_again() {
    let house = House::new().await;
    let cluster = house.cluster();
    let recorder = Recorder::new(&cluster, "tester", "");
    recorder.record(web(), Severity::Normal, "Synced", "all is well");
    let made = until(&cluster, |events| events.len() == 1).await;
    let name = made[0]["metadata"]["name"].as_str().expect("a name");
    cluster.delete(&kinds::EVENT, "default", name, &Delete::default()).await.expect("deleted");
    recorder.record(web(), Severity::Normal, "Synced", "all is well");
    until(&cluster, |events| events.len() == 1 && events[0]["count"] == 2).await;
}

#[tokio::test]
async fn a_flood_of_events_is_cut_off_and_objects_without_namespace_have_theirs_in_default() {
    let house = House::new().await;
    let cluster = house.cluster();
    let recorder = Recorder::new(&cluster, "tester", "");
    for number in 0..500 {
        recorder.record(web(), Severity::Normal, "Noise", format!("number {number}"));
    }
    let node = Meta { name: "n".into(), ..Meta::default() };
    recorder.record(Reference::to(&kinds::NODE, &node), Severity::Normal, "Ready", "it is ready");
    let about_node =
        |event: &Value| event["involvedObject"]["kind"] == "Node" && event["metadata"]["namespace"] == "default";
    let events = until(&cluster, |events| events.iter().any(about_node)).await;
    // Nine of their own, then one for all others.
    assert_eq!(events.len(), 9 + 1 + 1);
}
