//! What is written about a Node whose agent is silent: nobody knows how it does, and its Pods are not ready.

use fairlead_api::view::{Meta, Pod};
use fairlead_api::{Look, kinds};
use fairlead_cluster::{Cluster, Error, Patch, Recorder, Reference, Selection, Severity};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

/// What only the agent knows. Whether the network is there is known by others.
const CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
const REASON: &str = "NodeNotReady";

/// Writes it.
pub(super) async fn tell(cluster: &Cluster, recorder: &Recorder, name: &str) -> Result<(), Error> {
    let mut node = match cluster.get(&kinds::NODE, "", name).await {
        Err(Error::NotFound(_)) => return Ok(()),
        other => other?,
    };
    let was_ready = status(&node, "Ready") == "True";
    if forget(&mut node, &now()) {
        cluster.update_status(&kinds::NODE, &node).await?;
    }
    if was_ready {
        // Kubernetes names the Node without its version here.
        let meta =
            Meta { resource_version: String::new(), ..Meta::deserialize(node.at("metadata")).unwrap_or_default() };
        let message = format!("Node {name} status is now: {REASON}");
        recorder.record(Reference::to(&kinds::NODE, &meta), Severity::Normal, REASON, message);
    }
    let selection = Selection::all(&kinds::POD).with_fields(format!("spec.nodeName={name}"));
    for object in cluster.list(&selection).await?.objects {
        match serde_json::from_slice::<Pod>(&object.json) {
            Ok(pod) => make_unready(cluster, recorder, &pod).await?,
            Err(error) => tracing::warn!(key = %object.key, %error, "cannot read a Pod"),
        }
    }
    Ok(())
}

fn now() -> String {
    format!("{:.0}", Timestamp::now())
}

fn status<'a>(node: &'a Value, kind: &str) -> &'a str {
    let conditions = node.at("status").list("conditions");
    conditions.iter().find(|condition| condition.text("type") == kind).map_or("", |condition| condition.text("status"))
}

/// Makes every condition unknown that the agent reports; says whether that changed the one that counts.
fn forget(node: &mut Value, now: &str) -> bool {
    if status(node, "Ready") == "Unknown" {
        return false;
    }
    let created = node.at("metadata").at("creationTimestamp").clone();
    let mut conditions = node.at("status").list("conditions").to_vec();
    for kind in CONDITIONS {
        match conditions.iter_mut().find(|condition| condition.text("type") == kind) {
            None => conditions.push(json!({
                "type": kind, "status": "Unknown",
                "reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status.",
                "lastHeartbeatTime": created, "lastTransitionTime": now,
            })),
            Some(known) if known.text("status") == "Unknown" => {}
            Some(known) => {
                known.set("status", "Unknown");
                known.set("reason", "NodeStatusUnknown");
                known.set("message", "Kubelet stopped posting node status.");
                known.set("lastTransitionTime", now);
            }
        }
    }
    node.map_mut("status").insert("conditions".to_owned(), conditions.into());
    true
}

/// A Pod that says it is ready, or might be, is not.
async fn make_unready(cluster: &Cluster, recorder: &Recorder, pod: &Pod) -> Result<(), Error> {
    if pod.ready_condition().is_none_or(|ready| ready.status == "False") {
        return Ok(());
    }
    let condition = json!({"type": "Ready", "status": "False", "lastTransitionTime": now()});
    let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}});
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    match cluster.patch_status(&kinds::POD, namespace, name, &Patch::Strategic(patch)).await {
        // Gone, or another of the same name, which is nobody's business here.
        Err(Error::NotFound(_) | Error::Conflict(_)) => return Ok(()),
        other => other?,
    };
    recorder.record(Reference::of(pod), Severity::Warning, REASON, "Node is not ready");
    Ok(())
}
