//! Waiting for nodes, on real Leases, with a clock that runs only when everybody waits.

use std::time::Duration;

use fairlead_api::kinds;
use fairlead_cluster::programmed::{AWAITS, Component, PROGRAMMED, Progress, Unfinished, announce, await_programmed};
use fairlead_cluster::{Cluster, Delete, Patch};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::house::{House, make, revision};

/// A node that answers until it is dropped.
struct Node {
    progress: Progress,
    _ends: DropGuard,
}

async fn node(cluster: &Cluster, name: &str) -> Node {
    cluster.create(&kinds::NODE, &json!({"metadata": {"name": name}})).await.expect("a Node");
    let (progress, stop) = (Progress::new(), CancellationToken::new());
    let component = Component { name: "proxy", node: name.to_owned(), uid: None };
    tokio::spawn(announce(cluster.clone(), component, progress.follow(), stop.clone()));
    lease(cluster, name).await;
    Node { progress, _ends: stop.drop_guard() }
}

async fn lease(cluster: &Cluster, node: &str) -> Value {
    let name = format!("fairlead-proxy-{node}");
    loop {
        match cluster.get(&kinds::LEASE, "kube-system", &name).await {
            Ok(lease) => return lease,
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

fn said(lease: &Value, annotation: &str) -> Option<u64> {
    lease["metadata"]["annotations"][annotation].as_str()?.parse().ok()
}

const LIMIT: Duration = Duration::from_secs(30);

fn wait(cluster: &Cluster, revision: u64) -> tokio::task::JoinHandle<Result<(), Unfinished>> {
    let cluster = cluster.clone();
    tokio::spawn(async move { await_programmed(&cluster, "proxy", revision, LIMIT).await })
}

#[tokio::test(start_paused = true)]
async fn who_waits_goes_on_when_every_node_has_it() {
    let house = House::new().await;
    let cluster = house.cluster();
    let (one, two) = (node(&cluster, "one").await, node(&cluster, "two").await);
    let wanted = make(&cluster, "default", "a", "x").await;
    let waits = wait(&cluster, wanted);
    one.progress.reached(wanted);
    two.progress.reached(wanted - 1);
    sleep(Duration::from_millis(500)).await;
    assert!(!waits.is_finished(), "the second is not so far");
    two.progress.reached(wanted + 5);
    assert_eq!(waits.await.expect("an end"), Ok(()));
    let (one, two) = (lease(&cluster, "one").await, lease(&cluster, "two").await);
    assert_eq!((said(&one, PROGRAMMED), said(&two, PROGRAMMED)), (Some(wanted), Some(wanted + 5)));
    assert_eq!(said(&one, AWAITS), Some(wanted));
    // Who asks for what is known is answered at once.
    let now = Instant::now();
    assert_eq!(await_programmed(&cluster, "proxy", wanted, LIMIT).await, Ok(()));
    assert!(now.elapsed() < Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_while_nobody_waits() {
    let house = House::new().await;
    let cluster = house.cluster();
    let node = node(&cluster, "one").await;
    let before = revision(&lease(&cluster, "one").await);
    for step in 1..100 {
        node.progress.reached(step);
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(revision(&lease(&cluster, "one").await), before);
}

#[tokio::test(start_paused = true)]
async fn a_node_answers_at_most_ten_times_a_second() {
    let house = House::new().await;
    let cluster = house.cluster();
    let node = node(&cluster, "one").await;
    let mut answers = std::collections::BTreeSet::new();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        // Somebody waits for more and more, and always gets it.
        let patch = |to: u64| Patch::Merge(json!({"metadata": {"annotations": {AWAITS: to.to_string()}}}));
        let reached = u64::try_from(began.elapsed().as_millis()).expect("a small number") + 1;
        cluster.patch(&kinds::LEASE, "kube-system", "fairlead-proxy-one", &patch(reached)).await.expect("asked");
        node.progress.reached(reached);
        sleep(Duration::from_millis(5)).await;
        answers.extend(said(&lease(&cluster, "one").await, PROGRAMMED));
    }
    assert!((5..=21).contains(&answers.len()), "{} answers in two seconds", answers.len());
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_gives_up_and_names_the_nodes() {
    let house = House::new().await;
    let cluster = house.cluster();
    let (fast, _slow) = (node(&cluster, "fast").await, node(&cluster, "slow").await);
    fast.progress.reached(1000);
    let began = Instant::now();
    let waited = await_programmed(&cluster, "proxy", 1000, Duration::from_secs(5)).await;
    assert_eq!(waited, Err(Unfinished::GaveUp(vec!["slow".to_owned()])));
    assert_eq!(waited.expect_err("given up").to_string(), "gave up waiting for slow");
    assert!(began.elapsed() >= Duration::from_secs(5) && began.elapsed() < Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_down_or_gone_are_not_waited_for() {
    let house = House::new().await;
    let cluster = house.cluster();
    let (_down, _gone) = (node(&cluster, "down").await, node(&cluster, "gone").await);
    cluster.delete(&kinds::NODE, "", "gone", &Delete::default()).await.expect("gone");
    let status = Patch::Merge(json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}));
    cluster.patch_status(&kinds::NODE, "", "down", &status).await.expect("a status");
    let began = Instant::now();
    assert_eq!(await_programmed(&cluster, "proxy", 1000, LIMIT).await, Ok(()));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn without_a_component_there_is_nothing_to_wait_for() {
    let house = House::new().await;
    assert_eq!(await_programmed(&house.cluster(), "proxy", u64::MAX, LIMIT).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn of_two_who_wait_the_one_with_more_is_not_forgotten() {
    let house = House::new().await;
    let cluster = house.cluster();
    let node = node(&cluster, "one").await;
    let waits: Vec<_> = [50, 200, 100].map(|revision| wait(&cluster, revision)).into();
    sleep(Duration::from_millis(300)).await;
    assert_eq!(said(&lease(&cluster, "one").await, AWAITS), Some(200));
    // Who waits for less goes on before.
    node.progress.reached(100);
    sleep(Duration::from_millis(300)).await;
    assert_eq!(waits.iter().map(|waits| waits.is_finished()).collect::<Vec<_>>(), [true, false, true]);
    node.progress.reached(200);
    for waits in waits {
        assert_eq!(timeout(LIMIT, waits).await.expect("in time").expect("an end"), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_removed_is_made_again() {
    let house = House::new().await;
    let cluster = house.cluster();
    let node = node(&cluster, "one").await;
    cluster.delete(&kinds::LEASE, "kube-system", "fairlead-proxy-one", &Delete::default()).await.expect("removed");
    lease(&cluster, "one").await;
    node.progress.reached(70);
    assert_eq!(await_programmed(&cluster, "proxy", 70, LIMIT).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn what_stood_there_before_a_cluster_was_restored_is_corrected() {
    let house = House::new().await;
    let cluster = house.cluster();
    let old = json!({
        "metadata": {
            "namespace": "kube-system", "name": "fairlead-proxy-one", "labels": {"fairlead.dev/component": "proxy"},
            "annotations": {PROGRAMMED: "9000", AWAITS: "9000"},
        },
    });
    cluster.create(&kinds::LEASE, &old).await.expect("a Lease");
    let node = node(&cluster, "one").await;
    node.progress.reached(10);
    while said(&lease(&cluster, "one").await, PROGRAMMED) != Some(10) {
        sleep(Duration::from_millis(10)).await;
    }
    node.progress.reached(11);
    let waited = await_programmed(&cluster, "proxy", 11, LIMIT).await;
    assert_eq!(waited, Ok(()), "although somebody once waited for more");
}

#[tokio::test(start_paused = true)]
async fn objects_in_files_are_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let (cluster, _) = Cluster::from_manifests(dir.path()).expect("no objects");
    let stop = CancellationToken::new();
    let component = Component { name: "proxy", node: "one".to_owned(), uid: None };
    let progress = Progress::new();
    let announces = tokio::spawn(announce(cluster.clone(), component, progress.follow(), stop.clone()));
    progress.reached(5);
    sleep(Duration::from_secs(1000)).await;
    assert!(!announces.is_finished(), "it waits to be stopped");
    stop.cancel();
    announces.await.expect("an end");
    assert_eq!(await_programmed(&cluster, "proxy", 5, LIMIT).await, Ok(()));
}
