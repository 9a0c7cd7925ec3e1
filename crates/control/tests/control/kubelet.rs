//! Plays the agents of all Nodes: Pods that are bound become ready, and Pods that are being deleted
//! go.

use std::time::Duration;

use fairlead_api::{Look, kinds};
use fairlead_cluster::{Cluster, Delete, Method, Patch};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::house::{House, named};

/// Image of containers that never become ready.
pub(crate) const NEVER_READY: &str = "never-ready";
/// Image of containers that fail.
pub(crate) const FAILS: &str = "fails";

/// Ends with the test.
pub(crate) struct Kubelet(JoinHandle<()>);

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Kubelet {
    /// Adds these Nodes, ready, and runs what is bound to them.
    pub(crate) async fn start(house: &House, nodes: &[&str]) -> Kubelet {
        for name in nodes {
            add_node(house, name, json!({})).await;
        }
        let cluster = house.cluster.clone();
        Kubelet(tokio::spawn(async move {
            loop {
                run_pods(&cluster).await;
                sleep(Duration::from_millis(5)).await;
            }
        }))
    }
}

/// Adds a ready Node with this metadata.
pub(crate) async fn add_node(house: &House, name: &str, metadata: Value) {
    house.make(&kinds::NODE, named("", name, metadata)).await;
    let ready = json!({"type": "Ready", "status": "True"});
    let patch = Patch::Merge(json!({"status": {"conditions": [ready]}}));
    house.cluster.patch_status(&kinds::NODE, "", name, &patch).await.expect("patched");
}

/// One step of all Pods. Races with the controllers are lost without a word: the next step sees
/// what they did.
async fn run_pods(cluster: &Cluster) {
    for pod in list(cluster).await {
        let metadata = pod.at("metadata");
        let (namespace, name) = (metadata.text("namespace"), metadata.text("name"));
        if pod.at("spec").text("nodeName").is_empty() {
            continue;
        }
        if !metadata.text("deletionTimestamp").is_empty() {
            let at_once = Delete { grace_seconds: Some(0), ..Delete::default() };
            let _ = cluster.delete(&kinds::POD, namespace, name, &at_once).await;
        } else if pod.at("status").text("phase") == "Pending" {
            let image = pod["spec"]["containers"][0].text("image");
            let phase = if image == FAILS { "Failed" } else { "Running" };
            let ready = if image == NEVER_READY || image == FAILS { "False" } else { "True" };
            let condition = json!({"type": "Ready", "status": ready, "lastTransitionTime": "2024-01-01T00:00:00Z"});
            let status = json!({"phase": phase, "conditions": [condition]});
            let patch = Patch::Strategic(json!({"status": status}));
            let _ = cluster.patch_status(&kinds::POD, namespace, name, &patch).await;
        }
    }
}

/// All Pods as the API has them.
pub(crate) async fn list(cluster: &Cluster) -> Vec<Value> {
    let path = "/api/v1/pods";
    let list = cluster.request(Method::GET, path, None).await.expect("a list");
    list.list("items").to_vec()
}
