//! Writes what was decided for a Service: its finalizer before its status, and the other way round when the load balancer goes.

use std::time::Duration;

use fairlead_api::view::{Ingress, IngressPort, Meta};
use fairlead_api::{Look, kinds};
use fairlead_cluster::{Cluster, Error, Patch};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{FINALIZER, Kept, Released, Task};
use crate::spec::names::LAST_GOOD;

/// How long this process is waited for to stop serving an address. It takes a moment; if it hangs, others must go on.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is asked.
const LOOK: Duration = Duration::from_millis(5);

/// How it ended: the revision of the Service afterwards, or why not.
pub(super) type Ended = Result<Option<u64>, Error>;

/// Writes.
pub(super) async fn run(cluster: Cluster, task: Task, released: Released) -> (Task, Ended) {
    let written = match &task.kept {
        Kept::Same if task.good.is_none() => Ok(None),
        Kept::Same => mark(&cluster, &task, &task.service.metadata.resource_version, None)
            .await
            .map(|version| version.parse().ok()),
        Kept::At(ingress) => put(&cluster, &task, ingress).await,
        Kept::Gone => {
            let until = Instant::now() + PATIENCE;
            while !released(&task.key) && Instant::now() < until {
                sleep(LOOK).await;
            }
            remove(&cluster, &task).await
        }
    };
    (task, written)
}

async fn put(cluster: &Cluster, task: &Task, ingress: &[Ingress]) -> Ended {
    let Meta { finalizers, resource_version, .. } = &task.service.metadata;
    let mut version = resource_version.clone();
    let missing = !finalizers.iter().any(|name| name == FINALIZER);
    if missing || task.good.is_some() {
        let all = || finalizers.iter().map(String::as_str).chain([FINALIZER]).collect();
        version = mark(cluster, task, &version, missing.then(all)).await?;
    }
    if task.service.status.load_balancer.ingress != *ingress {
        let ingress: Vec<Value> = ingress.iter().map(entry).collect();
        version = status(cluster, task, &version, json!(ingress)).await?;
    }
    Ok(version.parse().ok())
}

/// An entry of the status.
fn entry(ingress: &Ingress) -> Value {
    let mut entry = json!({"ip": ingress.ip, "ipMode": ingress.ip_mode});
    if !ingress.ports.is_empty() {
        let port = |one: &IngressPort| match &one.error {
            Some(error) => json!({"port": one.port, "protocol": one.protocol.as_str(), "error": error}),
            None => json!({"port": one.port, "protocol": one.protocol.as_str()}),
        };
        entry["ports"] = ingress.ports.iter().map(port).collect();
    }
    entry
}

/// Writes what a Service is marked with: its finalizers, if they are to be others, and what is kept of its annotations.
async fn mark(cluster: &Cluster, task: &Task, version: &str, finalizers: Option<Vec<&str>>) -> Result<String, Error> {
    let Meta { namespace, name, .. } = &task.service.metadata;
    let mut metadata = json!({"resourceVersion": version});
    if let Some(finalizers) = finalizers {
        metadata["finalizers"] = json!(finalizers);
    }
    if let Some(good) = &task.good {
        metadata["annotations"] = json!({LAST_GOOD: good});
    }
    let patch = Patch::Merge(json!({"metadata": metadata}));
    Ok(version_of(&cluster.patch(&kinds::SERVICE, namespace, name, &patch).await?))
}

async fn remove(cluster: &Cluster, task: &Task) -> Ended {
    let Meta { finalizers, resource_version, deletion_timestamp, .. } = &task.service.metadata;
    let mut version = resource_version.clone();
    if !task.service.status.load_balancer.ingress.is_empty() && deletion_timestamp.is_none() {
        version = status(cluster, task, &version, Value::Null).await?;
    }
    let left: Vec<&str> = finalizers.iter().map(String::as_str).filter(|name| *name != FINALIZER).collect();
    if left.len() < finalizers.len() || task.good.is_some() {
        version = mark(cluster, task, &version, Some(left)).await?;
    }
    Ok(version.parse().ok())
}

async fn status(cluster: &Cluster, task: &Task, version: &str, ingress: Value) -> Result<String, Error> {
    let Meta { namespace, name, .. } = &task.service.metadata;
    let patch = json!({
        "metadata": {"resourceVersion": version},
        "status": {"loadBalancer": {"ingress": ingress}},
    });
    let written = cluster.patch_status(&kinds::SERVICE, namespace, name, &Patch::Merge(patch)).await?;
    Ok(version_of(&written))
}

fn version_of(object: &Value) -> String {
    object.at("metadata").text("resourceVersion").to_owned()
}
