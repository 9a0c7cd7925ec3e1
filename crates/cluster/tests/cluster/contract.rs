//! What every way of reading a cluster does alike. The same story is told to the server's own store, to the server over TLS,
//! and to the server through requests in process; all must see it the same way.

use std::time::Duration;

use fairlead_api::kinds;
use fairlead_api::source::{Event, Selection, Watch};
use fairlead_cluster::{Cluster, Delete, Error};
use fairlead_store::{Backend, Txn, Write};
use tokio::time::timeout;

use crate::house::{House, config_map, draft, make, on_the_network, revision};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

async fn in_process(check: impl AsyncFn(&House, &Cluster, &Cluster)) {
    let house = House::new().await;
    let cluster = house.cluster();
    check(&house, &cluster, &cluster).await;
}

async fn through_requests(check: impl AsyncFn(&House, &Cluster, &Cluster)) {
    let house = House::new().await;
    let over = Cluster::over(house.local("system:fairlead", "system:masters"));
    check(&house, &house.cluster(), &over).await;
}

async fn over_tls(check: impl AsyncFn(&House, &Cluster, &Cluster)) {
    let (house, remote, _dir) = on_the_network().await;
    check(&house, &house.cluster(), &remote).await;
}

/// Runs a check against every source.
macro_rules! contract {
    ($($name:ident)*) => {$(
        mod $name {
            #[tokio::test]
            async fn in_process() {
                super::in_process(super::check_all::$name).await;
            }
            #[tokio::test]
            async fn through_requests() {
                super::through_requests(super::check_all::$name).await;
            }
            #[tokio::test]
            async fn over_tls() {
                super::over_tls(super::check_all::$name).await;
            }
        }
    )*};
}

contract! {
    a_list_shows_what_is_there
    a_watch_tells_every_change_in_order
    selectors_decide_what_comes_and_goes
    a_list_of_many_pages_is_whole
    a_version_that_is_gone_is_410
    mistakes_in_selectors_are_told
}

mod check_all {
    use super::*;

    pub(super) async fn a_list_shows_what_is_there(_: &House, cluster: &Cluster, reader: &Cluster) {
        let a = make(cluster, "default", "a", "x").await;
        let b = make(cluster, "kube-system", "b", "x").await;
        let all = reader.list(&Selection::all(&kinds::CONFIG_MAP)).await.expect("a list");
        assert_eq!(keys(&all.objects), [format!("default/a@{a}"), format!("kube-system/b@{b}")]);
        assert!(all.revision >= b);
        let here = Selection::all(&kinds::CONFIG_MAP).in_namespace("kube-system");
        assert_eq!(keys(&reader.list(&here).await.expect("a list").objects), [format!("kube-system/b@{b}")]);
        let named = Selection::all(&kinds::CONFIG_MAP).with_fields("metadata.name=a");
        assert_eq!(keys(&reader.list(&named).await.expect("a list").objects), [format!("default/a@{a}")]);
        let namespaces = reader.list(&Selection::all(&kinds::NAMESPACE)).await.expect("a list");
        assert!(namespaces.objects.iter().any(|object| object.key.to_string() == "default"));
        let value: serde_json::Value = serde_json::from_slice(&all.objects[0].json).expect("JSON");
        assert_eq!(value["data"]["key"], "1");
    }

    pub(super) async fn a_watch_tells_every_change_in_order(_: &House, cluster: &Cluster, reader: &Cluster) {
        let selection = Selection::all(&kinds::CONFIG_MAP);
        make(cluster, "default", "before", "x").await;
        let list = reader.list(&selection).await.expect("a list");
        let mut watch = reader.source().watch(&selection, list.revision).await.expect("a watch");
        let mut expected = Vec::new();
        for round in 0..5 {
            let made = make(cluster, "default", "a", "x").await;
            let new = config_map("default", "a", "x", "2");
            let changed = revision(&cluster.update(&kinds::CONFIG_MAP, &new).await.expect("updated"));
            cluster.delete(&kinds::CONFIG_MAP, "default", "a", &Delete::default()).await.expect("deleted");
            expected.extend([format!("default/a@{made}"), format!("default/a@{changed}")]);
            expected.push(format!("-default/a@{}", changed + 1));
            assert_eq!(events(&mut watch, 3).await, expected[round * 3..], "round {round}");
        }
        assert_eq!(format!("-default/a@{}", watch.progress()), expected[14]);
        // Taken up in the middle, it goes on with the next change.
        let middle = expected[3].rsplit('@').next().and_then(|text| text.parse().ok()).expect("a revision");
        let mut again = reader.source().watch(&selection, middle).await.expect("a watch");
        assert_eq!(events(&mut again, 11).await, expected[4..]);
    }

    pub(super) async fn selectors_decide_what_comes_and_goes(_: &House, cluster: &Cluster, reader: &Cluster) {
        let selection = Selection::all(&kinds::CONFIG_MAP).in_namespace("default").with_labels("app in (x, y),app!=y");
        let list = reader.list(&selection).await.expect("a list");
        let mut watch = reader.source().watch(&selection, list.revision).await.expect("a watch");
        make(cluster, "kube-system", "a", "x").await;
        make(cluster, "default", "a", "other").await;
        let came = cluster.update(&kinds::CONFIG_MAP, &config_map("default", "a", "x", "1")).await.expect("updated");
        let left = cluster.update(&kinds::CONFIG_MAP, &config_map("default", "a", "y", "1")).await.expect("updated");
        cluster.update(&kinds::CONFIG_MAP, &config_map("default", "a", "y", "2")).await.expect("updated");
        let last = make(cluster, "default", "b", "x").await;
        let expected = [
            format!("default/a@{}", revision(&came)),
            format!("-default/a@{}", revision(&left)),
            format!("default/b@{last}"),
        ];
        assert_eq!(events(&mut watch, 3).await, expected);
    }

    pub(super) async fn a_list_of_many_pages_is_whole(house: &House, _: &Cluster, reader: &Cluster) {
        let put = |number: usize| {
            let text = config_map("default", &format!("c{number:04}"), "x", "1").to_string();
            Write::Put(format!("/registry/configmaps/default/c{number:04}").into(), draft(&text))
        };
        let txn = Txn { guards: Vec::new(), writes: (0..1234).map(put).collect() };
        house.store.commit(txn).await.expect("written");
        let list = reader.list(&Selection::all(&kinds::CONFIG_MAP)).await.expect("a list");
        let names: Vec<&str> = list.objects.iter().map(|object| &*object.key.name).collect();
        assert_eq!((names.len(), names[0], names[1233]), (1234, "c0000", "c1233"));
    }

    pub(super) async fn a_version_that_is_gone_is_410(house: &House, cluster: &Cluster, reader: &Cluster) {
        let first = make(cluster, "default", "a", "x").await;
        // More than the store remembers.
        let text = config_map("default", "a", "x", "1").to_string();
        for _ in 0..17_000 {
            let write = Write::Put("/registry/configmaps/default/a".into(), draft(&text));
            house.store.commit(Txn { guards: Vec::new(), writes: vec![write] }).await.expect("written");
        }
        let selection = Selection::all(&kinds::CONFIG_MAP);
        let failure = match reader.source().watch(&selection, first).await {
            Ok(mut watch) => timeout(PATIENCE, watch.next()).await.expect("an answer").expect_err("a failure"),
            Err(failure) => failure,
        };
        assert_eq!((failure.code, failure.reason), (410, "Expired"), "{}", failure.message);
        assert!(failure.message.starts_with(&format!("too old resource version: {first} (")), "{}", failure.message);
    }

    pub(super) async fn mistakes_in_selectors_are_told(_: &House, _: &Cluster, reader: &Cluster) {
        let labels = Selection::all(&kinds::CONFIG_MAP).with_labels("a==");
        let fields = Selection::all(&kinds::CONFIG_MAP).with_fields("spec.nothing=1");
        assert!(reader.list(&labels).await.is_ok());
        assert!(matches!(reader.list(&fields).await, Err(Error::Refused(failure)) if failure.code == 400));
        assert_eq!(reader.source().watch(&fields, 1).await.err().map(|failure| failure.code), Some(400));
    }
}

fn keys(objects: &[fairlead_api::source::Object]) -> Vec<String> {
    objects.iter().map(|object| format!("{}@{}", object.key, object.revision)).collect()
}

/// The next so many events.
async fn events(watch: &mut Box<dyn Watch>, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let events = timeout(PATIENCE, watch.next()).await.expect("an event in time").expect("events");
        seen.extend(events.iter().map(|event| match event {
            Event::Put(object) => format!("{}@{}", object.key, object.revision),
            Event::Delete(key, revision) => format!("-{key}@{revision}"),
        }));
    }
    seen
}
