//! Which Pods a ReplicaSet deletes first when it has too many.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use fairlead_api::view::Pod;
use jiff::Timestamp;

/// Annotation that moves a Pod forward in the order: Pods with a lower cost are deleted first
/// (kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost).
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Sorts Pods by the order in which they are deleted, as kube-controller-manager does
/// (pkg/controller/controller_utils.go, ActivePodsWithRanks). `related` are the active Pods of all
/// ReplicaSets of the same owner: of two Pods the one on the Node with more of them goes first.
pub(super) fn sort_by_deletion_order(pods: &mut [Arc<Pod>], related: &[Arc<Pod>], now: Timestamp) {
    let mut pods_on_node: HashMap<&str, usize> = HashMap::new();
    for pod in related {
        *pods_on_node.entry(pod.spec.node_name.as_str()).or_default() += 1;
    }
    pods.sort_by_cached_key(|pod| {
        let restarts = pod.status.container_statuses.iter().map(|container| container.restart_count).max();
        let ready_since = pod.ready_condition().and_then(|ready| ready.last_transition_time.as_deref());
        let rank = pods_on_node.get(pod.spec.node_name.as_str()).copied().unwrap_or_default();
        (
            !pod.spec.node_name.is_empty(),
            match pod.status.phase.as_str() {
                "Running" => 2,
                "Unknown" => 1,
                _ => 0,
            },
            pod.is_ready(),
            pod.metadata.annotations.get(DELETION_COST).and_then(|cost| cost.parse::<i32>().ok()).unwrap_or_default(),
            Reverse(rank),
            if pod.is_ready() { age_magnitude(ready_since, now) } else { None },
            Reverse(restarts.unwrap_or_default()),
            age_magnitude(pod.metadata.creation_timestamp.as_deref(), now),
            pod.metadata.uid.clone(),
        )
    });
}

/// The binary logarithm of an age in nanoseconds, `None` if the time is unknown. Ages are compared
/// by their magnitude so that the Pods that survive are not always the oldest ones (KEP-2185).
fn age_magnitude(time: Option<&str>, now: Timestamp) -> Option<u32> {
    let time: Timestamp = time?.parse().ok()?;
    let age = now.as_nanosecond().saturating_sub(time.as_nanosecond());
    // Ages of 0 or less come before an age of 1 ns.
    Some(u128::try_from(age).ok().and_then(u128::checked_ilog2).map_or(0, |magnitude| magnitude + 1))
}

#[cfg(test)]
mod tests;
