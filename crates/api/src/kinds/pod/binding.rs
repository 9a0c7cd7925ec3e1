//! Binding a Pod to a node: the `binding` subresource.

use crate::value::{Value, json};

use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::status::{Failure, Subject};
use crate::{Path, golang};

/// Writes a `Binding` into the Pod it is for. `pod` is the stored Pod; `now` is the time in the form of the API. The
/// caller compares the names in URL and body, and `metadata.uid` and `metadata.resourceVersion` of the binding.
pub fn bind(pod: &mut Value, binding: &Value, now: &str) -> Result<(), Failure> {
    check_target(binding.at("target"))?;
    check_pod(pod)?;
    let node = binding.at("target").text("name");
    pod.map_mut("spec").insert("nodeName", node.into());
    for name in ["annotations", "labels"] {
        let Some(given) = binding.at("metadata").map(name).filter(|given| !given.is_empty()) else { continue };
        let mut all = pod.at("metadata").map(name).cloned().unwrap_or_default();
        all.extend(given.clone());
        all.sort_keys();
        pod.map_mut("metadata").insert(name.to_owned(), all.into());
    }
    pod.map_mut("status").shift_remove("nominatedNodeName");
    schedule(pod, now);
    Ok(())
}

fn check_target(target: &Value) -> Result<(), Failure> {
    let path = Path::new("target");
    let mut errors = FieldErrors::new();
    if !matches!(target.text("kind"), "" | "Node") {
        errors.push(FieldError::not_supported(&path.child("kind"), target.text("kind"), &["Node", "<empty>"]));
    }
    if target.text("name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    // The reference server does not turn these into a 422.
    let texts: Vec<String> = errors.iter().map(FieldError::to_string).collect();
    match texts.len() {
        0 => Ok(()),
        1 => Err(Failure::new(500, "", texts.concat())),
        _ => Err(Failure::new(500, "", format!("[{}]", texts.join(", ")))),
    }
}

fn check_pod(pod: &Value) -> Result<(), Failure> {
    let name = pod.at("metadata").text("name");
    let node = pod.at("spec").text("nodeName");
    let why = if !pod.at("metadata").at("deletionTimestamp").is_null() {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !node.is_empty() {
        format!("pod {name} is already assigned to node {}", golang::quote(node))
    } else if !pod.at("spec").list("schedulingGates").is_empty() {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    Err(Failure::conflict(Subject { group: "", kind: "pods/binding", name }, &why))
}

/// Sets the condition `PodScheduled`.
fn schedule(pod: &mut Value, now: &str) {
    let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null});
    set_condition(pod, condition, now);
}

/// Sets the condition `DisruptionTarget` on a Pod that is evicted: its owner learns that it did not
/// fail. Returns false for a Pod that gets none: it has ended, was never started, or is being
/// deleted (registry/core/pod/storage/eviction.go).
pub fn disrupt(pod: &mut Value, now: &str) -> bool {
    let phase = pod.at("status").text("phase");
    let leaving = !pod.at("metadata").text("deletionTimestamp").is_empty();
    if leaving || ["Failed", "Pending", "Succeeded"].contains(&phase) {
        return false;
    }
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "lastProbeTime": null, "lastTransitionTime": null,
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
    });
    set_condition(pod, condition, now);
    true
}

/// Sets a condition that is true, since now unless it was true already.
fn set_condition(pod: &mut Value, mut condition: Value, now: &str) {
    let mut conditions = pod.at("status").list("conditions").to_vec();
    let found = conditions.iter().position(|old| old.text("type") == condition.text("type"));
    let since = match found.map(|at| &conditions[at]) {
        Some(old) if old.text("status") == "True" => old.at("lastTransitionTime").clone(),
        _ => now.into(),
    };
    condition.set("lastTransitionTime", since);
    match found {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    pod.map_mut("status").insert("conditions", conditions.into());
}
