//! Writes and single reads, and what they can end with.

use std::time::Duration;

use fairlead_api::kinds;
use fairlead_cluster::{Backoff, Cluster, Delete, Error, Patch, Propagation, retry};
use serde_json::json;

use crate::house::{House, config_map, on_the_network};

/// Every request and every failure, whoever answers.
async fn check(cluster: &Cluster) {
    let cluster = cluster.managed_by("the-tester");
    let kind = &kinds::CONFIG_MAP;
    let made = cluster.create(kind, &config_map("default", "a", "x", "1")).await.expect("made");
    assert_eq!(made["metadata"]["managedFields"][0]["manager"], "the-tester");
    assert_eq!(cluster.get(kind, "default", "a").await, Ok(made.clone()));

    let changed = cluster.update(kind, &config_map("default", "a", "x", "2")).await.expect("updated");
    assert_eq!(changed["data"]["key"], "2");
    let patches = [
        (Patch::Merge(json!({"data": {"key": "3"}})), "3"),
        (Patch::Json(json!([{"op": "replace", "path": "/data/key", "value": "4"}])), "4"),
        (Patch::Strategic(json!({"data": {"key": "5"}})), "5"),
        (Patch::Apply { object: config_map("default", "a", "x", "6"), force: true }, "6"),
    ];
    for (patch, expected) in patches {
        let patched = cluster.patch(kind, "default", "a", &patch).await.expect("patched");
        assert_eq!(patched["data"]["key"], expected, "{patch:?}");
    }

    let table = [
        (cluster.get(kind, "default", "b").await, "NotFound"),
        (cluster.create(kind, &config_map("default", "a", "x", "1")).await, "AlreadyExists"),
        (cluster.update(kind, &made).await, "Conflict"),
        (cluster.create(kind, &config_map("default", "A b", "x", "1")).await, "Invalid"),
        (
            cluster
                .create(
                    kind,
                    &json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s", "namespace": "default"}}),
                )
                .await,
            "Refused",
        ),
    ];
    for (answer, expected) in table {
        let text = format!("{:?}", answer.expect_err(expected));
        assert!(text.starts_with(expected), "{expected}: {text}");
    }
    let gone = Delete { uid: Some("another".into()), ..Delete::default() };
    assert!(cluster.delete(kind, "default", "a", &gone).await.expect_err("a conflict").is_conflict());
    let how = Delete { propagation: Some(Propagation::Background), grace_seconds: Some(0), ..Delete::default() };
    cluster.delete(kind, "default", "a", &how).await.expect("deleted");
    let error = cluster.get(kind, "default", "a").await.expect_err("gone");
    assert!(error.is_not_found());
    assert_eq!(error.to_string(), "configmaps \"a\" not found");

    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    let mut node = cluster.create(&kinds::NODE, &node).await.expect("made");
    node["status"]["nodeInfo"]["kubeletVersion"] = "v1".into();
    let node = cluster.update_status(&kinds::NODE, &node).await.expect("updated");
    assert_eq!(node["status"]["nodeInfo"]["kubeletVersion"], "v1");
    let phase = Patch::Merge(json!({"status": {"phase": "Running"}}));
    assert_eq!(
        cluster.patch_status(&kinds::NODE, "", "n", &phase).await.expect("patched")["status"]["phase"],
        "Running"
    );

    cluster.create(kind, &config_map("kube-public", "a", "x", "1")).await.expect("made");
    cluster.delete_all(kind, "kube-public", &Delete::default()).await.expect("deleted");
    assert!(cluster.get(kind, "kube-public", "a").await.is_err());
}

#[tokio::test]
async fn requests_are_answered_in_process() {
    check(&House::new().await.cluster()).await;
}

#[tokio::test]
async fn requests_are_answered_over_tls() {
    let (_house, cluster, _dir) = on_the_network().await;
    check(&cluster).await;
}

#[tokio::test]
async fn a_user_in_process_may_do_what_roles_say() {
    let house = House::new().await;
    let local = house.local("ann", "people");
    let cluster = Cluster::new(local.clone(), std::sync::Arc::new(local));
    let error = cluster.get(&kinds::CONFIG_MAP, "default", "a").await.expect_err("forbidden");
    let message = r#"configmaps "a" is forbidden: User "ann" cannot get resource "configmaps" in API group "" in the namespace "default""#;
    assert!(matches!(error, Error::Forbidden(_)));
    assert_eq!(error.to_string(), message);
    let all = fairlead_api::source::Selection::all(&kinds::CONFIG_MAP);
    assert!(matches!(cluster.list(&all).await, Err(Error::Forbidden(_))));
    assert_eq!(cluster.source().watch(&all, 1).await.err().map(|failure| failure.code), Some(403));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let (house, cluster, _dir) = on_the_network().await;
    drop(house);
    let gone = async {
        while cluster.get(&kinds::CONFIG_MAP, "default", "a").await.is_err_and(|error| !error.is_transient()) {}
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("it goes");
}

#[tokio::test(start_paused = true)]
async fn retries_are_bounded_and_believe_the_server() {
    let house = House::new().await;
    let cluster = house.cluster();
    let (mut tries, began) = (0, tokio::time::Instant::now());
    let backoff = Backoff { first: Duration::from_secs(1), most: Duration::from_secs(4), tries: 4 };
    let result = retry(backoff, Error::is_transient, || {
        tries += 1;
        async {
            Err::<(), _>(Error::Unavailable { message: "busy".into(), retry_after: Some(Duration::from_secs(60)) })
        }
    });
    assert!(result.await.is_err());
    assert_eq!((tries, began.elapsed().as_secs()), (4, 12));
    let other = retry(backoff, Error::is_transient, || cluster.get(&kinds::CONFIG_MAP, "default", "a")).await;
    assert!(other.expect_err("not found").is_not_found());
}

#[tokio::test]
async fn another_url_than_the_kubeconfigs_is_used_with_its_credentials() {
    let (_house, _cluster, dir) = crate::house::on_the_network().await;
    let file = dir.path().join("kubeconfig");
    let text = std::fs::read_to_string(&file).expect("a kubeconfig");
    let line = text.lines().find(|line| line.trim_start().starts_with("server:")).expect("a server");
    let url = line.split_once(':').expect("a value").1.trim().trim_matches('"').to_owned();
    std::fs::write(&file, text.replace(&url, "https://127.0.0.1:1")).expect("a file");
    let namespaces = fairlead_api::source::Selection::all(&fairlead_api::kinds::NAMESPACE);
    let cluster = Cluster::connect_at(Some(&file), Some(&url)).await.expect("a way in");
    assert!(!cluster.list(&namespaces).await.expect("a list").objects.is_empty());
    let nowhere = Cluster::connect(Some(&file)).await.expect("a way in");
    assert!(nowhere.list(&namespaces).await.is_err(), "the kubeconfig's own is wrong");
    for wrong in ["", "127.0.0.1:6443", "/x", "ftp://a"] {
        let error = Cluster::connect_at(None, Some(wrong)).await.expect_err(wrong).to_string();
        assert!(error.contains("is no URL of an API server"), "{error}");
    }
}
