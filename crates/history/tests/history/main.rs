//! The history beside a real server: what is told, what belongs to a Service, restarts, gaps, bounds.

mod house;
mod restarts;

use std::time::Duration;

use fairlead_api::kinds;
use fairlead_cluster::Patch;
use fairlead_history::{Bounds, Error, Happened, Item, Wish};
use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;

use house::{House, ROOMY, lines, slice};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_becomes_of_a_service_is_told_newest_first_with_who() {
    let (house, dir) = (House::new().await, TempDir::new().expect("a directory"));
    let kept = house.keep(dir.path(), ROOMY).await;
    kept.settled(&house).await;
    house.make("web").await;
    house.retarget("web", json!("http")).await;
    house.remove(&kinds::SERVICE, "web").await;
    let timeline = kept.until("svc/default/web", |items| items.len() == 3).await;
    let told: Vec<(Happened, &str)> = timeline.items.iter().map(|item| (item.change, item.by.as_str())).collect();
    let who = "tester (alice)";
    assert_eq!(told, [(Happened::Deleted, who), (Happened::Changed, who), (Happened::Created, who)]);
    assert_eq!(timeline.items[1].lines, ["spec.ports[0].targetPort: 9376 -> http"]);
    assert!(timeline.items.is_sorted_by(|one, next| one.at >= next.at && one.revision > next.revision));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slices_pods_and_events_of_a_service_belong_to_it_and_others_do_not() {
    let (house, dir) = (House::new().await, TempDir::new().expect("a directory"));
    let kept = house.keep(dir.path(), ROOMY).await;
    kept.settled(&house).await;
    let cluster = &house.cluster;
    for name in ["web", "other"] {
        house.make(name).await;
        cluster.create(&kinds::ENDPOINT_SLICE, &slice(name, &[("10.1.1.1", true)])).await.expect("made");
        let pod = json!({
            "metadata": {"namespace": "default", "name": format!("{name}-1"), "labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        cluster.create(&kinds::POD, &pod).await.expect("made");
        let event = json!({
            "metadata": {"namespace": "default", "name": format!("{name}.1")},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": format!("{name}-1")},
            "type": "Warning", "reason": "Unhealthy", "message": format!("{name} does not answer"),
        });
        cluster.create(&kinds::EVENT, &event).await.expect("made");
    }
    let ready = json!({"status": {"podIP": "10.1.1.1", "podIPs": [{"ip": "10.1.1.1"}], "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    cluster.patch_status(&kinds::POD, "default", "web-1", &Patch::Merge(ready)).await.expect("patched");
    cluster
        .update(&kinds::ENDPOINT_SLICE, &slice("web", &[("10.1.1.1", false), ("10.1.1.2", true)]))
        .await
        .expect("put");
    let timeline = kept.until("svc/default/web", |items| items.len() == 6).await;
    let told = lines(&timeline.items);
    for want in [
        "endpoint 10.1.1.1:9376 (Pod pod-10.1.1.1) is no longer ready",
        "endpoint 10.1.1.2:9376 (Pod pod-10.1.1.2) joined",
        "Pod web-1 became ready",
        "Pod web-1 has address 10.1.1.1",
        "Pod web-1: Warning Unhealthy: web does not answer",
        "Pod web-1 is new",
    ] {
        assert!(told.contains(&want), "{want}: {told:#?}");
    }
    assert!(!told.iter().any(|line| line.contains("other")), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_about_a_node_are_told_of_it_though_they_have_a_namespace() {
    let (house, dir) = (House::new().await, TempDir::new().expect("a directory"));
    let kept = house.keep(dir.path(), ROOMY).await;
    kept.settled(&house).await;
    let cluster = &house.cluster;
    for name in ["n1", "n2"] {
        cluster.create(&kinds::NODE, &json!({"metadata": {"name": name}})).await.expect("made");
        let event = json!({
            "metadata": {"namespace": "default", "name": format!("{name}.1")},
            "involvedObject": {"kind": "Node", "name": name},
            "type": "Warning", "reason": "NodeNotReady", "message": format!("{name} is silent"),
        });
        cluster.create(&kinds::EVENT, &event).await.expect("made");
    }
    // What is in that namespace is not of the Node for that.
    house.make("n1").await;
    let told = |items: &[Item]| items.iter().filter(|item| item.change == Happened::Event).count();
    let timeline = kept.until("node/n1", |items| told(items) == 1 && items.len() == 2).await;
    let event = timeline.items.iter().find(|item| item.change == Happened::Event).expect("it is told");
    assert_eq!((event.namespace.as_str(), event.name.as_str()), ("", "n1"));
    assert_eq!(event.lines, ["Node n1: Warning NodeNotReady: n1 is silent"]);
    kept.settled(&house).await;
    let all = kept.until("node/n1", |_| true).await;
    assert_eq!(all.items.len(), 2, "{all:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moment_shows_who_was_in_rotation_and_the_object_as_it_was() {
    let (house, dir) = (House::new().await, TempDir::new().expect("a directory"));
    house.make("old").await;
    let kept = house.keep(dir.path(), ROOMY).await;
    kept.settled(&house).await;
    let before = Timestamp::now();
    assert!(kept.moment("svc/default/old", before).await.object.is_some(), "it was there before the history was");
    assert!(kept.moment("svc/default/web", before).await.object.is_none());
    house.make("web").await;
    house
        .cluster
        .create(&kinds::ENDPOINT_SLICE, &slice("web", &[("10.1.1.1", true), ("10.1.1.2", false)]))
        .await
        .expect("made");
    kept.settled(&house).await;
    let then = Timestamp::now();
    house.retarget("web", json!(1)).await;
    house.cluster.update(&kinds::ENDPOINT_SLICE, &slice("web", &[("10.1.1.3", true)])).await.expect("put");
    kept.settled(&house).await;
    let moment = kept.moment("svc/default/web", then).await;
    let places: Vec<(&str, bool, &str)> =
        moment.endpoints.iter().map(|one| (one.address.as_str(), one.in_rotation, one.why)).collect();
    assert_eq!(places, [("10.1.1.1", true, "ready"), ("10.1.1.2", false, "not ready")]);
    let object = moment.object.expect("it was there");
    assert_eq!(object["spec"]["ports"][0]["targetPort"], 9376);
    let now = kept.moment("svc/default/web", Timestamp::now()).await;
    assert_eq!(now.object.expect("it is there")["spec"]["ports"][0]["targetPort"], 1);
    assert_eq!(now.endpoints.len(), 1);
    let long_ago = Timestamp::from_second(1).expect("a time");
    let early = kept.history.moment("svc/default/web".parse().expect("a subject"), Some(long_ago)).await;
    assert!(matches!(early, Err(Error::TooEarly { from: Some(_), .. })), "{early:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_asked_at_the_start_is_answered_from_the_first_lists() {
    let house = House::new().await;
    house.make("old").await;
    for round in 0..20 {
        let dir = TempDir::new().expect("a directory");
        let kept = house.keep(dir.path(), ROOMY).await;
        let subject = "svc/default/old".parse().expect("a subject");
        let present = kept.history.moment(subject, None).await.expect("the history waits for its first lists");
        assert!(present.object.is_some(), "round {round}: the Service looks absent");
        let timeline = kept.history.timeline(Wish { limit: 1, ..Wish::default() }).await.expect("an answer");
        assert!(timeline.from.is_some(), "round {round}: the history has no beginning");
        kept.end();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_old_files_go_what_moments_need_stays() {
    let (house, dir) = (House::new().await, TempDir::new().expect("a directory"));
    house.make("old").await;
    let size = 64 << 10;
    let kept = house.keep(dir.path(), Bounds { size, age: Duration::from_secs(3600) }).await;
    kept.settled(&house).await;
    house.make("busy").await;
    for round in 0..600 {
        let patch = json!({"metadata": {"annotations": {"a": format!("{round:04}").repeat(50)}}});
        house.cluster.patch(&kinds::SERVICE, "default", "busy", &Patch::Merge(patch)).await.expect("patched");
    }
    kept.settled(&house).await;
    let files: Vec<u64> = std::fs::read_dir(dir.path())
        .expect("it is there")
        .flatten()
        .map(|entry| entry.metadata().expect("it is").len())
        .collect();
    assert!(files.iter().sum::<u64>() <= size, "{files:?}");
    let wish = Wish { subject: Some("svc/default/busy".parse().expect("a subject")), since: None, limit: 10_000 };
    let timeline = kept.history.timeline(wish).await.expect("an answer");
    // The newest file may just have been begun.
    assert!(timeline.items.len() < 600, "the oldest are gone: {}", timeline.items.len());
    let from = timeline.from.expect("something is kept");
    for name in ["old", "busy"] {
        let subject = format!("svc/default/{name}");
        assert!(kept.moment(&subject, Timestamp::now()).await.object.is_some(), "{name} now");
        // The file it is in may go meanwhile.
        match kept.history.moment(subject.parse().expect("a subject"), Some(from)).await {
            Ok(moment) => assert!(moment.object.is_some(), "{name} at {from}"),
            Err(error) => assert!(matches!(error, Error::TooEarly { .. }), "{error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_and_times_narrow_what_is_told() {
    let (house, dir) = (House::new().await, TempDir::new().expect("a directory"));
    let kept = house.keep(dir.path(), ROOMY).await;
    kept.settled(&house).await;
    house.make("one").await;
    kept.settled(&house).await;
    let between = Timestamp::now();
    house.make("two").await;
    kept.settled(&house).await;
    let all = |since, limit| kept.history.timeline(Wish { subject: None, since, limit });
    assert_eq!(all(None, 1).await.expect("an answer").items.len(), 1);
    let late = all(Some(between), 1000).await.expect("an answer");
    let names: Vec<&str> =
        late.items.iter().filter(|item| item.kind == "Service").map(|item| item.name.as_str()).collect();
    assert!(names.contains(&"two") && !names.contains(&"one"), "{names:?}");
}
