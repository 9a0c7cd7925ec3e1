//! Writes what was decided for a Service: its finalizer before its status, and the other way round when the load balancer goes.

use std::time::Duration;

use fairlead_api::view::{Ingress, Meta};
use fairlead_api::{Look, kinds};
use fairlead_cluster::{Cluster, Error, Patch};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{FINALIZER, Kept, Released, Task};

/// How long this process is waited for to stop serving an address. It takes a moment; if it hangs, others must go on.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is asked.
const LOOK: Duration = Duration::from_millis(5);

/// How it ended: the revision of the Service afterwards, or why not.
pub(super) type Ended = Result<Option<u64>, Error>;

/// Writes.
pub(super) async fn run(cluster: Cluster, task: Task, released: Released) -> (Task, Ended) {
    let written = match &task.kept {
        Kept::Same => Ok(None),
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
    let Meta { namespace, name, finalizers, resource_version, .. } = &task.service.metadata;
    let mut version = resource_version.clone();
    if !finalizers.iter().any(|name| name == FINALIZER) {
        let mut all = finalizers.clone();
        all.push(FINALIZER.to_owned());
        let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version, "finalizers": all}}));
        version = version_of(&cluster.patch(&kinds::SERVICE, namespace, name, &patch).await?);
    }
    if task.service.status.load_balancer.ingress != *ingress {
        let ingress: Vec<Value> = ingress.iter().map(|one| json!({"ip": one.ip, "ipMode": one.ip_mode})).collect();
        version = status(cluster, task, &version, json!(ingress)).await?;
    }
    Ok(version.parse().ok())
}

async fn remove(cluster: &Cluster, task: &Task) -> Ended {
    let Meta { namespace, name, finalizers, resource_version, deletion_timestamp, .. } = &task.service.metadata;
    let mut version = resource_version.clone();
    if !task.service.status.load_balancer.ingress.is_empty() && deletion_timestamp.is_none() {
        version = status(cluster, task, &version, Value::Null).await?;
    }
    let left: Vec<&String> = finalizers.iter().filter(|name| *name != FINALIZER).collect();
    if left.len() < finalizers.len() {
        let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version, "finalizers": left}}));
        version = version_of(&cluster.patch(&kinds::SERVICE, namespace, name, &patch).await?);
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
