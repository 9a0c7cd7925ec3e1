//! The status of a ReplicaSet, counted from its Pods
//! (pkg/controller/replicaset/replica_set_utils.go, calculateStatus).

use std::sync::Arc;
use std::time::Duration;

use fairlead_api::Look;
use fairlead_api::view::{Condition, Pod, ReplicaSetStatus};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Replicated;
use crate::availability;

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Counts the Pods. Conditions are kept.
pub(super) fn of_pods<T: Replicated>(
    set: &T,
    active: &[Arc<Pod>],
    terminating: usize,
    now: Timestamp,
) -> ReplicaSetStatus {
    let template = set.template().at("metadata").at("labels");
    let has_template_labels = |pod: &&Arc<Pod>| {
        let wanted = template.as_object().into_iter().flatten();
        wanted.into_iter().all(|(key, value)| pod.metadata.labels.get(key).map(String::as_str) == value.as_str())
    };
    let is_available = |pod: &&Arc<Pod>| available_after(pod, set.min_ready_seconds(), now) == Some(Duration::ZERO);
    ReplicaSetStatus {
        replicas: number(active.len()),
        fully_labeled_replicas: number(active.iter().filter(has_template_labels).count()),
        ready_replicas: number(active.iter().filter(|pod| pod.is_ready()).count()),
        available_replicas: number(active.iter().filter(is_available).count()),
        terminating_replicas: T::HAS_TERMINATING_REPLICAS.then(|| number(terminating)),
        observed_generation: set.meta().generation,
        conditions: set.status().conditions.clone(),
    }
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Time until a Pod counts as available if it stays ready; zero if it is available, `None` if it is
/// not ready.
pub(super) fn available_after(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> Option<Duration> {
    availability::after(&pod.status.conditions, min_ready_seconds, now)
}

/// Time until the next ready Pod becomes available.
pub(super) fn next_availability(pods: &[Arc<Pod>], min_ready_seconds: i32, now: Timestamp) -> Option<Duration> {
    let times = pods.iter().filter_map(|pod| available_after(pod, min_ready_seconds, now));
    times.filter(|after| *after > Duration::ZERO).min()
}

/// Sets condition `ReplicaFailure` with a reason and a message, or removes it. A condition that is
/// there stays as it is.
pub(super) fn set_failure(status: &mut ReplicaSetStatus, failure: Option<(&str, String)>, now: Timestamp) {
    match failure {
        None => status.conditions.retain(|condition| condition.kind != REPLICA_FAILURE),
        Some(_) if Condition::find(&status.conditions, REPLICA_FAILURE).is_some() => {}
        Some((reason, message)) => status.conditions.push(Condition {
            kind: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(format!("{now:.0}")),
            reason: reason.to_owned(),
            message,
        }),
    }
}

/// The status as a merge patch. Absent conditions are removed.
pub(super) fn to_json(status: &ReplicaSetStatus) -> Value {
    let conditions: Vec<Value> = status
        .conditions
        .iter()
        .map(|condition| {
            json!({
                "type": condition.kind, "status": condition.status, "reason": condition.reason,
                "message": condition.message, "lastTransitionTime": condition.last_transition_time,
            })
        })
        .collect();
    let mut json = json!({
        "replicas": status.replicas,
        "fullyLabeledReplicas": status.fully_labeled_replicas,
        "readyReplicas": status.ready_replicas,
        "availableReplicas": status.available_replicas,
        "observedGeneration": status.observed_generation,
        "conditions": if conditions.is_empty() { Value::Null } else { conditions.into() },
    });
    if let Some(terminating) = status.terminating_replicas {
        json.set("terminatingReplicas", terminating);
    }
    json
}

#[cfg(test)]
mod tests;
