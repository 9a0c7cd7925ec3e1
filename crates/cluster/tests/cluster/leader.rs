//! Leader election on a real Lease, with a clock that runs only when everybody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fairlead_api::kinds;
use fairlead_cluster::leader::{self, Config};
use fairlead_cluster::{Cluster, Delete};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::house::House;

/// A contender that tells when it leads and when it stops.
struct Contender {
    stop: CancellationToken,
    ended: tokio::task::JoinHandle<()>,
}

fn contend(cluster: &Cluster, identity: &str, told: &mpsc::UnboundedSender<String>) -> Contender {
    let stop = CancellationToken::new();
    let config = Config::new("kube-system", "the-lease", identity);
    let (told, name) = (told.clone(), identity.to_owned());
    let lead = move |stop: CancellationToken| {
        let (told, name) = (told.clone(), name.clone());
        async move {
            told.send(format!("{name} leads")).expect("heard");
            stop.cancelled().await;
            told.send(format!("{name} stops")).expect("heard");
        }
    };
    let ended = tokio::spawn(leader::run(cluster.clone(), config, stop.clone(), lead));
    Contender { stop, ended }
}

async fn heard(news: &mut mpsc::UnboundedReceiver<String>) -> String {
    timeout(Duration::from_secs(120), news.recv()).await.expect("news in time").expect("news")
}

async fn lease(cluster: &Cluster) -> Value {
    cluster.get(&kinds::LEASE, "kube-system", "the-lease").await.expect("a lease")["spec"].clone()
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_the_next_follows_when_it_goes() {
    let house = House::new().await;
    let cluster = house.cluster();
    let (tell, mut news) = mpsc::unbounded_channel();
    let a = contend(&cluster, "a", &tell);
    assert_eq!(heard(&mut news).await, "a leads");
    let b = contend(&cluster, "b", &tell);
    sleep(Duration::from_secs(100)).await;
    assert!(news.try_recv().is_err());
    let spec = lease(&cluster).await;
    assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&json!("a"), &json!(15)));
    assert_eq!(spec["leaseTransitions"], json!(0));

    let began = Instant::now();
    a.stop.cancel();
    a.ended.await.expect("it ends");
    assert_eq!(heard(&mut news).await, "a stops");
    assert_eq!(heard(&mut news).await, "b leads");
    assert!(began.elapsed() < Duration::from_secs(4), "given back, not run out: {:?}", began.elapsed());
    let spec = lease(&cluster).await;
    assert_eq!((&spec["holderIdentity"], &spec["leaseTransitions"]), (&json!("b"), &json!(1)));
    b.stop.cancel();
    b.ended.await.expect("it ends");
    assert_eq!(lease(&cluster).await["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn a_silent_leader_is_followed_after_the_lease_duration() {
    let house = House::new().await;
    let cluster = house.cluster();
    let (tell, mut news) = mpsc::unbounded_channel();
    let a = contend(&cluster, "a", &tell);
    assert_eq!(heard(&mut news).await, "a leads");
    let b = contend(&cluster, "b", &tell);
    sleep(Duration::from_secs(10)).await;
    a.ended.abort();
    let began = Instant::now();
    assert_eq!(heard(&mut news).await, "b leads");
    let waited = began.elapsed().as_secs();
    assert!((13..=18).contains(&waited), "{waited}");
    b.stop.cancel();
    b.ended.await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_taken_stops_and_waits_again() {
    let house = House::new().await;
    let cluster = house.cluster();
    let (tell, mut news) = mpsc::unbounded_channel();
    let a = contend(&cluster, "a", &tell);
    assert_eq!(heard(&mut news).await, "a leads");
    let mut taken = cluster.get(&kinds::LEASE, "kube-system", "the-lease").await.expect("a lease");
    taken["spec"]["holderIdentity"] = "somebody".into();
    cluster.update(&kinds::LEASE, &taken).await.expect("updated");
    assert_eq!(heard(&mut news).await, "a stops");
    cluster.delete(&kinds::LEASE, "kube-system", "the-lease", &Delete::default()).await.expect("deleted");
    assert_eq!(heard(&mut news).await, "a leads");
    a.stop.cancel();
    a.ended.await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_another_may_begin() {
    use tower::{BoxError, ServiceExt};
    let house = House::new().await;
    let (local, down) = (house.local("system:fairlead", "system:masters"), CancellationToken::new());
    let cut = down.clone();
    let cluster =
        Cluster::over(tower::service_fn(move |request: http::Request<http_body_util::Full<bytes::Bytes>>| {
            let (local, down) = (local.clone(), cut.clone());
            async move {
                if down.is_cancelled() {
                    return Err(BoxError::from("the network is down"));
                }
                Ok::<_, BoxError>(local.oneshot(request).await?)
            }
        }));
    let (tell, mut news) = mpsc::unbounded_channel();
    let a = contend(&cluster, "a", &tell);
    assert_eq!(heard(&mut news).await, "a leads");
    sleep(Duration::from_secs(21)).await;
    down.cancel();
    let began = Instant::now();
    assert_eq!(heard(&mut news).await, "a stops");
    let held = began.elapsed().as_secs();
    assert!((6..=10).contains(&held), "{held}");
    a.stop.cancel();
    a.ended.await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn never_two_at_a_time() {
    let house = House::new().await;
    let cluster = house.cluster();
    let (leading, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let contenders: Vec<_> = (0..5)
        .map(|number| {
            let (stop, leading, most) = (CancellationToken::new(), leading.clone(), most.clone());
            let config = Config::new("kube-system", "the-lease", &format!("contender-{number}"));
            let lead = move |stop: CancellationToken| {
                let (leading, most) = (leading.clone(), most.clone());
                async move {
                    most.fetch_max(leading.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    stop.run_until_cancelled(sleep(Duration::from_secs(7))).await;
                    leading.fetch_sub(1, Ordering::SeqCst);
                }
            };
            tokio::spawn(leader::run(cluster.clone(), config, stop, lead))
        })
        .collect();
    for contender in contenders {
        contender.await.expect("it ends");
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert_eq!(lease(&cluster).await["leaseTransitions"].as_i64().map(|count| count >= 4), Some(true));
}
