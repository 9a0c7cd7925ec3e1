//! Mirrors: what they show, what they tell, and what they survive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairlead_api::source::Selection;
use fairlead_api::view::{Meta, View};
use fairlead_api::{Kind, kinds};
use fairlead_cluster::{Changes, Cluster, Delete, Mirror};
use fairlead_store::{Backend, Txn, Write};
use futures_util::StreamExt;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;
use tower::{BoxError, ServiceExt};

use crate::house::{House, config_map, draft, make, on_the_network};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Deserialize)]
pub(crate) struct ConfigMap {
    metadata: Meta,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

impl View for ConfigMap {
    const KIND: &'static Kind = &kinds::CONFIG_MAP;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Deserialize)]
struct Secret {
    metadata: Meta,
}

impl View for Secret {
    const KIND: &'static Kind = &kinds::SECRET;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Deserialize)]
struct Slice {
    metadata: Meta,
    endpoints: Vec<Endpoint>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint {
    addresses: Vec<String>,
    conditions: Conditions,
    node_name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Conditions {
    ready: Option<bool>,
}

impl View for Slice {
    const KIND: &'static Kind = &kinds::ENDPOINT_SLICE;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

async fn next(mirror: &mut Mirror) -> Changes {
    timeout(PATIENCE, mirror.next()).await.expect("changes in time")
}

/// Changes as text: `default/a 1->2`.
fn show(changes: &Changes) -> Vec<String> {
    let value = |side: &Option<Arc<ConfigMap>>| side.as_ref().map_or("", |map| map.data["key"].as_str()).to_owned();
    let show = |change: &fairlead_cluster::Change<ConfigMap>| {
        format!("{} {}->{}", change.key, value(&change.old), value(&change.new))
    };
    changes.of::<ConfigMap>().iter().map(show).collect()
}

async fn put(cluster: &Cluster, name: &str, value: &str) {
    cluster.update(&kinds::CONFIG_MAP, &config_map("default", name, "x", value)).await.expect("updated");
}

async fn check_changes(cluster: &Cluster, mirror: &mut Mirror) {
    make(cluster, "default", "a", "x").await;
    make(cluster, "default", "b", "x").await;
    timeout(PATIENCE, mirror.sync()).await.expect("in sync");
    assert_eq!(mirror.get::<ConfigMap>("default", "a").map(|map| map.data["key"].as_str()), Some("1"));
    assert_eq!(mirror.all::<ConfigMap>().count(), 2);

    put(cluster, "a", "2").await;
    assert_eq!(show(&next(mirror).await), ["default/a 1->2"]);
    cluster.delete(&kinds::CONFIG_MAP, "default", "b", &Delete::default()).await.expect("deleted");
    assert_eq!(show(&next(mirror).await), ["default/b 1->"]);
    make(cluster, "default", "c", "x").await;
    assert_eq!(show(&next(mirror).await), ["default/c ->1"]);
    assert!(mirror.get::<ConfigMap>("default", "b").is_none());
    assert_eq!(mirror.in_namespace::<ConfigMap>("default").count(), 2);
    let newest = mirror.get::<ConfigMap>("default", "c").expect("c").metadata.resource_version.clone();
    assert_eq!(mirror.revision::<ConfigMap>().to_string(), newest);
}

#[tokio::test]
async fn a_mirror_tells_what_changed_in_process() {
    let house = House::new().await;
    let mut mirror = Mirror::builder(&house.cluster()).with::<ConfigMap>().with::<Secret>().build();
    check_changes(&house.cluster(), &mut mirror).await;
}

#[tokio::test]
async fn a_mirror_tells_what_changed_over_tls() {
    let (house, remote, _dir) = on_the_network().await;
    let mut mirror = Mirror::builder(&remote).with::<ConfigMap>().with::<Secret>().build();
    check_changes(&house.cluster(), &mut mirror).await;
}

#[tokio::test]
async fn what_happened_meanwhile_is_one_change() {
    let house = House::new().await;
    let cluster = house.cluster();
    let mut mirror = Mirror::builder(&cluster).with::<ConfigMap>().build();
    make(&cluster, "default", "a", "x").await;
    mirror.sync().await;
    for value in ["2", "3", "4"] {
        put(&cluster, "a", value).await;
    }
    make(&cluster, "default", "b", "x").await;
    cluster.delete(&kinds::CONFIG_MAP, "default", "b", &Delete::default()).await.expect("deleted");
    make(&cluster, "default", "c", "x").await;
    let changes = next(&mut mirror).await;
    assert_eq!(show(&changes), ["default/a 1->4", "default/c ->1"]);
    assert_eq!((changes.len(), changes.of::<Secret>().len()), (2, 0));
}

#[tokio::test]
async fn a_wait_that_is_given_up_loses_nothing() {
    let house = House::new().await;
    let cluster = house.cluster();
    let mut mirror = Mirror::builder(&cluster).with::<ConfigMap>().with::<Secret>().build();
    let mut last = BTreeMap::new();
    for number in 0..300 {
        let name = format!("c{}", number % 7);
        if number < 7 {
            make(&cluster, "default", &name, "x").await;
        }
        put(&cluster, &name, &number.to_string()).await;
        // Given up at any point at which it waits.
        let Some(changes) = stop_after(number % 5, mirror.next()).await else { continue };
        for change in changes.of::<ConfigMap>() {
            let side = |side: &Option<Arc<ConfigMap>>| side.as_ref().map(|map| map.data["key"].clone());
            let before = last.insert(change.key.clone(), side(&change.new)).flatten();
            assert_eq!(side(&change.old), before, "{} is told in an unbroken row", change.key);
        }
    }
    while last.values().flatten().all(|value| value != "299") {
        for change in next(&mut mirror).await.of::<ConfigMap>() {
            last.insert(change.key.clone(), change.new.as_ref().map(|map| map.data["key"].clone()));
        }
    }
    let values: Vec<_> = mirror.all::<ConfigMap>().map(|map| Some(map.data["key"].clone())).collect();
    assert_eq!(values, last.into_values().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_wait_that_is_given_up_while_reading_is_taken_up_again() {
    const MANY: usize = 500;
    let house = House::new().await;
    let mut mirror = Mirror::builder(&house.cluster()).with::<ConfigMap>().build();
    mirror.sync().await;
    let put = |number: usize| {
        let text = config_map("default", &format!("c{number}"), "x", "1").to_string();
        Write::Put(format!("/registry/configmaps/default/c{number}").into(), draft(&text))
    };
    let txn = Txn { guards: Vec::new(), writes: (0..MANY).map(put).collect() };
    house.store.commit(txn).await.expect("written");
    let before = mirror.revision::<ConfigMap>();
    let given_up = stop_after(1, mirror.next()).await.is_none();
    assert!(given_up, "so many objects are not read at one go");
    assert_eq!(mirror.revision::<ConfigMap>(), before, "not all of it is shown yet");
    assert_eq!(next(&mut mirror).await.len(), MANY);
    assert!(mirror.revision::<ConfigMap>() > before);
}

/// Polls a future so many times at most.
async fn stop_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    for _ in 0..polls {
        if let Some(done) = futures_util::FutureExt::now_or_never(&mut future) {
            return Some(done);
        }
        tokio::task::yield_now().await;
    }
    None
}

#[tokio::test]
async fn an_empty_kind_is_in_sync_once_listed() {
    let house = House::new().await;
    let mut mirror = Mirror::builder(&house.cluster()).with::<Secret>().build();
    assert!(!mirror.synced());
    assert!(next(&mut mirror).await.is_empty());
    assert!(mirror.synced());
    assert!(mirror.health().all(|health| health.synced && health.trouble.is_none() && health.revision > 0));
}

#[tokio::test]
async fn a_selection_is_all_a_mirror_sees() {
    let house = House::new().await;
    let cluster = house.cluster();
    let selection = Selection::all(&kinds::CONFIG_MAP).in_namespace("default").with_labels("app=x");
    let mut mirror = Mirror::builder(&cluster).with_only::<ConfigMap>(selection).build();
    make(&cluster, "default", "a", "x").await;
    make(&cluster, "default", "b", "y").await;
    make(&cluster, "kube-system", "c", "x").await;
    mirror.sync().await;
    assert_eq!(mirror.all::<ConfigMap>().count(), 1);
    cluster.update(&kinds::CONFIG_MAP, &config_map("default", "a", "y", "2")).await.expect("updated");
    assert_eq!(show(&next(&mut mirror).await), ["default/a 1->"]);
}

#[tokio::test]
async fn mirrors_of_one_process_share_what_they_read() {
    let house = House::new().await;
    let cluster = house.cluster();
    make(&cluster, "default", "a", "x").await;
    let build = || Mirror::builder(&cluster).with::<ConfigMap>().build();
    let (mut one, mut two) = (build(), build());
    one.sync().await;
    two.sync().await;
    let same = |one: &Mirror, two: &Mirror| {
        let of = |mirror: &Mirror| mirror.get::<ConfigMap>("default", "a").expect("a").clone();
        Arc::ptr_eq(&of(one), &of(two))
    };
    assert!(same(&one, &two));
    put(&cluster, "a", "2").await;
    next(&mut one).await;
    assert!(!same(&one, &two), "what one has seen does not change under the other's hands");
    next(&mut two).await;
    assert!(same(&one, &two));
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_told_once_and_skipped() {
    let house = House::new().await;
    let cluster = house.cluster();
    let mut mirror = Mirror::builder(&cluster).with::<ConfigMap>().build();
    mirror.sync().await;
    let broken = r#"{"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":7}"#;
    let writes = vec![Write::Put("/registry/configmaps/default/a".into(), draft(broken))];
    house.store.commit(Txn { guards: Vec::new(), writes }).await.expect("written");
    let changes = next(&mut mirror).await;
    assert_eq!((changes.len(), changes.problems.len()), (0, 1));
    assert_eq!(changes.problems[0].key.to_string(), "default/a");
    assert!(changes.problems[0].why.contains("expected a map"), "{}", changes.problems[0].why);
    assert!(mirror.get::<ConfigMap>("default", "a").is_none());
    make(&cluster, "default", "b", "x").await;
    assert_eq!(show(&next(&mut mirror).await), ["default/b ->1"]);
}

/// Overwrites a ConfigMap more often than the store remembers.
async fn flood(house: &House) {
    let text = config_map("default", "flood", "x", "1").to_string();
    for _ in 0..17_000 {
        let writes = vec![Write::Put("/registry/configmaps/default/flood".into(), draft(&text))];
        house.store.commit(Txn { guards: Vec::new(), writes }).await.expect("written");
    }
}

async fn check_falling_behind(house: &House, mut mirror: Mirror) {
    let cluster = house.cluster();
    for name in ["gone", "same", "other"] {
        make(&cluster, "default", name, "x").await;
    }
    mirror.sync().await;
    let same = mirror.get::<ConfigMap>("default", "same").expect("same").clone();
    cluster.delete(&kinds::CONFIG_MAP, "default", "gone", &Delete::default()).await.expect("deleted");
    put(&cluster, "other", "2").await;
    flood(house).await;
    make(&cluster, "default", "new", "x").await;
    let mut seen = BTreeMap::new();
    while seen.len() < 4 {
        for change in next(&mut mirror).await.of::<ConfigMap>() {
            seen.insert(change.key.name.to_string(), change.new.as_ref().map(|map| map.data["key"].clone()));
        }
    }
    let one = || Some("1".to_owned());
    let expected = [("flood", one()), ("gone", None), ("new", one()), ("other", Some("2".to_owned()))];
    assert_eq!(seen, expected.map(|(name, value)| (name.to_owned(), value)).into());
    assert!(Arc::ptr_eq(&same, mirror.get::<ConfigMap>("default", "same").expect("same")));
    assert_eq!(mirror.all::<ConfigMap>().count(), 4);
}

#[tokio::test]
async fn a_mirror_that_fell_behind_lists_again() {
    let house = House::new().await;
    let mirror = Mirror::builder(&house.cluster()).with::<ConfigMap>().build();
    check_falling_behind(&house, mirror).await;
}

#[tokio::test]
async fn a_remote_mirror_that_fell_behind_lists_again() {
    let house = House::new().await;
    let over = Cluster::over(house.local("system:fairlead", "system:masters"));
    let mirror = Mirror::builder(&over).with::<ConfigMap>().build();
    check_falling_behind(&house, mirror).await;
}

/// A way in where every third request fails and every answer to a watch breaks off after a few words.
fn unreliable(house: &House) -> Cluster {
    let (local, requests) = (house.local("system:fairlead", "system:masters"), Arc::new(AtomicUsize::new(0)));
    Cluster::over(tower::service_fn(move |request: Request<Full<Bytes>>| {
        let (local, number) = (local.clone(), requests.fetch_add(1, Ordering::Relaxed));
        async move {
            if number % 3 == 1 {
                return Err(BoxError::from("the network is down"));
            }
            let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let response: Response<_> = local.oneshot(request).await?;
            let words = if watch { 2 } else { usize::MAX };
            Ok(response.map(|body| {
                StreamBody::new(body.into_data_stream().take(words).map(|bytes| bytes.map(http_body::Frame::data)))
            }))
        }
    }))
}

#[tokio::test]
async fn broken_connections_lose_nothing() {
    let house = House::new().await;
    let cluster = house.cluster();
    let mut mirror = Mirror::builder(&unreliable(&house)).with::<ConfigMap>().build();
    timeout(PATIENCE, mirror.sync()).await.expect("in sync");
    let mut last = String::new();
    make(&cluster, "default", "a", "x").await;
    for value in 2..20 {
        put(&cluster, "a", &value.to_string()).await;
        while last != value.to_string() {
            for change in next(&mut mirror).await.of::<ConfigMap>() {
                last = change.new.as_ref().expect("never deleted").data["key"].clone();
            }
        }
    }
}

#[tokio::test]
async fn trouble_is_told_and_so_is_its_end() {
    let house = House::new().await;
    let (tell, down) = tokio::sync::watch::channel(false);
    let local = house.local("system:fairlead", "system:masters");
    let cluster = Cluster::over(tower::service_fn(move |request: Request<Full<Bytes>>| {
        let (local, mut down) = (local.clone(), down.clone());
        async move {
            if *down.borrow() {
                return Err(BoxError::from("the network is down"));
            }
            let response: Response<_> = local.oneshot(request).await?;
            let cut = async move { drop(down.wait_for(|down| *down).await) };
            let frames = |bytes: Result<Bytes, _>| bytes.map(http_body::Frame::data);
            Ok(response.map(|body| StreamBody::new(body.into_data_stream().take_until(Box::pin(cut)).map(frames))))
        }
    }));
    let mut mirror = Mirror::builder(&cluster).with::<ConfigMap>().build();
    mirror.sync().await;
    tell.send_replace(true);
    let trouble = |mirror: &Mirror| mirror.health().find_map(|health| health.trouble).map(|failure| failure.message);
    assert!(next(&mut mirror).await.is_empty());
    assert!(trouble(&mirror).is_some());
    make(&house.cluster(), "default", "a", "x").await;
    tell.send_replace(false);
    while mirror.get::<ConfigMap>("default", "a").is_none() {
        next(&mut mirror).await;
    }
    assert_eq!(trouble(&mirror), None);
}

#[tokio::test]
async fn a_mirror_over_tls_sees_when_the_server_goes() {
    let (house, remote, _dir) = on_the_network().await;
    let mut mirror = Mirror::builder(&remote).with::<ConfigMap>().build();
    make(&house.cluster(), "default", "a", "x").await;
    mirror.sync().await;
    drop(house);
    while mirror.health().all(|health| health.trouble.is_none()) {
        next(&mut mirror).await;
    }
    assert!(mirror.get::<ConfigMap>("default", "a").is_some(), "the last good state stays");
}

/// A slice of a hundred endpoints: about 26 KB.
fn slice(name: &str, ready: bool) -> String {
    let endpoint = |number: usize| {
        json!({
            "addresses": [format!("10.244.{}.{}", number / 250, number % 250)],
            "conditions": {"ready": ready, "serving": true, "terminating": false},
            "nodeName": format!("node-{number:04}"), "zone": "zone-a",
            "targetRef": {"kind": "Pod", "namespace": "default", "name": format!("web-6d4cf56db6-{number:05}"), "uid": "5fbd0d2e-9c3a-4f0a-8f57-0d5c1c9f8a11"},
        })
    };
    json!({
        "kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "endpoints": (0..100).map(endpoint).collect::<Vec<_>>(),
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
    })
    .to_string()
}

#[allow(clippy::print_stdout)]
/// Not a test of speed, which machines differ in, but of a load that is much for any; prints what it saw.
#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_follows_large_slices() {
    const SLICES: usize = 100;
    const CHANGES: usize = 2000;
    let house = House::new().await;
    let mut mirror = Mirror::builder(&house.cluster()).with::<Slice>().build();
    mirror.sync().await;
    let texts = [slice("s", true), slice("s", false)];
    let store = house.store.clone();
    let size = texts[0].len();
    let began = Instant::now();
    let writer = tokio::spawn(async move {
        for number in 0..CHANGES {
            let key = format!("/registry/endpointslices/default/s{:03}", number % SLICES).into();
            let writes = vec![Write::Put(key, draft(&texts[(number / SLICES) % 2]))];
            store.commit(Txn { guards: Vec::new(), writes }).await.expect("written");
            if number % 16 == 0 {
                tokio::task::yield_now().await;
            }
        }
        store.revision().await.expect("a revision").0
    });
    let (mut last, mut reads, mut writing) = (u64::MAX, 0, Some(writer));
    while mirror.revision::<Slice>() < last {
        if writing.as_ref().is_some_and(|writer| writer.is_finished()) {
            last = writing.take().expect("once").await.expect("it ends");
            continue;
        }
        if let Ok(changes) = timeout(Duration::from_millis(100), mirror.next()).await {
            reads += changes.of::<Slice>().len();
        }
    }
    let took = began.elapsed();
    let ready =
        |slice: &Arc<Slice>| slice.endpoints.iter().filter(|endpoint| endpoint.conditions.ready == Some(true)).count();
    assert_eq!(mirror.all::<Slice>().count(), SLICES);
    assert_eq!(mirror.all::<Slice>().map(ready).sum::<usize>(), 0);
    let first = &mirror.get::<Slice>("default", "s000").expect("a slice").endpoints[0];
    assert_eq!((first.addresses[0].as_str(), first.node_name.as_deref()), ("10.244.0.0", Some("node-0000")));
    let rate = |count: usize| (count as f64 / took.as_secs_f64()) as u64;
    println!("{size} bytes a slice: {} changes/s seen, {} read/s", rate(CHANGES), rate(reads));
}
