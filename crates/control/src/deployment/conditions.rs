//! Conditions of a Deployment, and the status that its ReplicaSets add up to
//! (pkg/controller/deployment/progress.go, sync.go).

use std::time::Duration;

use fairlead_api::view::{Deployment, DeploymentCondition, DeploymentStatus};
use jiff::Timestamp;
use serde_json::{Value, json};

pub(super) const AVAILABLE: &str = "Available";
pub(super) const PROGRESSING: &str = "Progressing";
pub(super) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Reasons of condition `Progressing`.
pub(super) const NEW_SET_CREATED: &str = "NewReplicaSetCreated";
pub(super) const NEW_SET_FOUND: &str = "FoundNewReplicaSet";
pub(super) const NEW_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
pub(super) const SET_UPDATED: &str = "ReplicaSetUpdated";
pub(super) const SET_CREATE_ERROR: &str = "ReplicaSetCreateError";
pub(super) const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";
pub(super) const PAUSED: &str = "DeploymentPaused";
pub(super) const RESUMED: &str = "DeploymentResumed";

/// The condition of this type.
pub(super) fn find<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().find(|condition| condition.kind == kind)
}

/// A condition that changes now.
pub(super) fn condition(
    kind: &str,
    status: &str,
    reason: &str,
    message: impl Into<String>,
    now: Timestamp,
) -> DeploymentCondition {
    let time = format!("{now:.0}");
    DeploymentCondition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        last_update_time: time.clone(),
        last_transition_time: time,
        reason: reason.to_owned(),
        message: message.into(),
    }
}

/// Sets a condition. One of the same status and reason stays as it is; one of the same status keeps
/// the time of its transition.
pub(super) fn set(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    if let Some(current) = find(status, &condition.kind) {
        if current.status == condition.status && current.reason == condition.reason {
            return;
        }
        if current.status == condition.status {
            condition.last_transition_time.clone_from(&current.last_transition_time);
        }
    }
    remove(status, &condition.kind);
    status.conditions.push(condition);
}

pub(super) fn remove(status: &mut DeploymentStatus, kind: &str) {
    status.conditions.retain(|condition| condition.kind != kind);
}

/// Seconds without progress after which a rollout has failed; `None`: never. The greatest number is
/// the same as none (pkg/controller/deployment/util, HasProgressDeadline).
pub(super) fn progress_deadline(deployment: &Deployment) -> Option<i32> {
    deployment.spec.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)
}

/// True if all Pods are of the current template and available, and no others are left.
pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let replicas = deployment.spec.replicas.unwrap_or(1);
    status.updated_replicas == replicas
        && status.replicas == replicas
        && status.available_replicas == replicas
        && status.observed_generation >= deployment.metadata.generation
}

/// True if the rollout has moved since the status that is stored.
pub(super) fn is_progressing(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    new.updated_replicas > old.updated_replicas
        || new.replicas.saturating_sub(new.updated_replicas) < old.replicas.saturating_sub(old.updated_replicas)
        || new.ready_replicas > old.ready_replicas
        || new.available_replicas > old.available_replicas
}

/// Time until the rollout counts as failed; zero if it does. `None` if that cannot happen without
/// another change.
pub(super) fn until_deadline(deployment: &Deployment, status: &DeploymentStatus, now: Timestamp) -> Option<Duration> {
    let deadline = progress_deadline(deployment)?;
    let progressing = find(status, PROGRESSING)?;
    if progressing.reason == NEW_SET_AVAILABLE {
        return None;
    }
    if progressing.reason == DEADLINE_EXCEEDED {
        return Some(Duration::ZERO);
    }
    let updated: Timestamp = progressing.last_update_time.parse().ok()?;
    let end = updated.as_nanosecond() + i128::from(deadline) * 1_000_000_000;
    Some(Duration::from_nanos(u64::try_from((end - now.as_nanosecond()).max(0)).ok()?))
}

/// The status as a merge patch. Absent fields are removed.
pub(super) fn to_json(status: &DeploymentStatus) -> Value {
    let conditions: Vec<Value> = status
        .conditions
        .iter()
        .map(|condition| {
            json!({
                "type": condition.kind, "status": condition.status, "reason": condition.reason,
                "message": condition.message, "lastUpdateTime": condition.last_update_time,
                "lastTransitionTime": condition.last_transition_time,
            })
        })
        .collect();
    let count = |count: i32| if count == 0 { Value::Null } else { count.into() };
    json!({
        "observedGeneration": status.observed_generation,
        "replicas": count(status.replicas),
        "updatedReplicas": count(status.updated_replicas),
        "readyReplicas": count(status.ready_replicas),
        "availableReplicas": count(status.available_replicas),
        "unavailableReplicas": count(status.unavailable_replicas),
        "terminatingReplicas": status.terminating_replicas,
        "collisionCount": status.collision_count,
        "conditions": if conditions.is_empty() { Value::Null } else { conditions.into() },
    })
}
