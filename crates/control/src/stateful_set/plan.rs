//! Which Pods of a StatefulSet are created and deleted (pkg/controller/statefulset,
//! updateStatefulSet). Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::view::Pod;

use super::view::{StatefulSet, StatefulSetStatus};

/// Maximum number of Pods created by one action.
const BURST: usize = 500;

/// A Pod of the StatefulSet.
#[derive(Debug, Clone)]
pub(super) struct StatefulPod {
    pub(super) pod: Arc<Pod>,
    /// The number in its name.
    pub(super) ordinal: u32,
    /// Name of the revision whose template it has.
    pub(super) revision: String,
    /// True if the Pod is running and ready.
    pub(super) is_ready: bool,
    /// True if the Pod is running and has been ready for `minReadySeconds`.
    pub(super) is_available: bool,
    /// True if the Pod failed so soon after the one before it that it may not be replaced yet.
    pub(super) backs_off: bool,
    /// True if its labels hold its name and number.
    pub(super) is_labeled: bool,
}

impl StatefulPod {
    fn is_terminating(&self) -> bool {
        self.pod.is_terminating()
    }

    fn is_unavailable(&self) -> bool {
        !self.is_available || self.is_terminating()
    }
}

/// The template of a new Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Template {
    /// That of `status.currentRevision`.
    Current,
    /// That of `status.updateRevision`, which is the one in the specification.
    Update,
}

impl Template {
    /// The revision that holds the template.
    pub(super) fn revision<'a, T>(self, current: &'a T, update: &'a T) -> &'a T {
        match self {
            Template::Current => current,
            Template::Update => update,
        }
    }
}

/// What is to be done. In order, one Pod at a time; with the policy Parallel all at once.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Numbers of Pods to create.
    pub(super) create: Vec<(u32, Template)>,
    pub(super) delete: Vec<Arc<Pod>>,
    /// Pods whose labels are to be set.
    pub(super) label: Vec<(Arc<Pod>, u32)>,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty() && self.label.is_empty()
    }
}

/// Decides about the Pods of a StatefulSet. `update` is the name of the revision in the
/// specification. The cost grows with the Pods there are, not with the number that is asked for.
pub(super) fn decide(set: &StatefulSet, pods: &[StatefulPod], update: &str) -> Plan {
    let in_order = set.spec.pod_management_policy != "Parallel";
    let start = u32::try_from(set.spec.ordinals.start).unwrap_or_default();
    let end = start.saturating_add(u32::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or_default());
    let mut plan = Plan::default();
    let (replicas, mut condemned): (Vec<&StatefulPod>, Vec<&StatefulPod>) =
        pods.iter().partition(|pod| (start..end).contains(&pod.ordinal));
    let replicas: BTreeMap<u32, &StatefulPod> = replicas.into_iter().map(|pod| (pod.ordinal, pod)).collect();
    condemned.sort_by_key(|pod| pod.ordinal);
    // The first Pod that holds up the others. If it is one that is to go, it need not become
    // available first.
    let holds_up = |ordinal: &u32| replicas.get(ordinal).is_none_or(|pod| pod.is_unavailable());
    let first_unavailable = match (start..end).find(holds_up) {
        Some(ordinal) => Some(ordinal),
        None => condemned.iter().find(|pod| pod.is_unavailable()).map(|pod| pod.ordinal),
    };

    // A Pod waits until those before it are available.
    let mut is_blocked = false;
    for ordinal in start..end {
        let Some(replica) = replicas.get(&ordinal) else {
            plan.create.push((ordinal, template_of(set, ordinal, start)));
            if in_order || plan.create.len() >= BURST {
                return plan;
            }
            continue;
        };
        if replica.pod.is_terminal() {
            // A Pod that has ended is made again once it is gone.
            if !replica.is_terminating() && !replica.backs_off {
                plan.delete.push(replica.pod.clone());
            }
            is_blocked = true;
            if in_order {
                return plan;
            }
        } else if in_order && replica.is_unavailable() {
            return plan;
        } else if !replica.is_labeled {
            plan.label.push((replica.pod.clone(), ordinal));
        }
    }
    if is_blocked {
        return plan;
    }

    // Pods that are too many go from the last to the first.
    for pod in condemned.iter().rev() {
        if pod.is_terminating() {
            if in_order {
                return plan;
            }
            continue;
        }
        if in_order && !pod.is_available && first_unavailable != Some(pod.ordinal) {
            return plan;
        }
        plan.delete.push(pod.pod.clone());
        is_blocked = true;
        if in_order {
            return plan;
        }
    }
    if is_blocked || set.spec.update_strategy.kind == "OnDelete" {
        return plan;
    }

    // Pods of old templates are replaced one by one, from the last to the first that is not kept.
    let partition = set.spec.update_strategy.rolling_update.unwrap_or_default().partition;
    let kept = start.saturating_add(u32::try_from(partition).unwrap_or_default());
    for ordinal in (kept..end).rev() {
        // A Pod that is about to be created is not available.
        let Some(replica) = replicas.get(&ordinal) else { return plan };
        if replica.revision != update && !replica.is_terminating() {
            plan.delete.push(replica.pod.clone());
            return plan;
        }
        if replica.is_unavailable() {
            return plan;
        }
    }
    plan
}

/// During a rolling update, Pods below the partition are made from the old template.
fn template_of(set: &StatefulSet, ordinal: u32, start: u32) -> Template {
    let strategy = &set.spec.update_strategy;
    let kept = match strategy.rolling_update {
        Some(update) => update.partition,
        None if strategy.kind == "RollingUpdate" => set.status.current_replicas,
        None => 0,
    };
    let kept = start.saturating_add(u32::try_from(kept).unwrap_or_default());
    if ordinal < kept { Template::Current } else { Template::Update }
}

/// Counts Pods. When all have the new template, it becomes the current one.
pub(super) fn count(set: &StatefulSet, pods: &[StatefulPod], current: &str, update: &str) -> StatefulSetStatus {
    let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let of_revision =
        |name: &str| number(pods.iter().filter(|pod| pod.revision == name && !pod.is_terminating()).count());
    let mut status = StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas: number(pods.len()),
        ready_replicas: number(pods.iter().filter(|pod| pod.is_ready).count()),
        available_replicas: number(pods.iter().filter(|pod| pod.is_available).count()),
        current_replicas: of_revision(current),
        updated_replicas: of_revision(update),
        current_revision: current.to_owned(),
        update_revision: update.to_owned(),
        collision_count: Some(set.status.collision_count.unwrap_or_default()),
    };
    let wanted = set.spec.replicas.unwrap_or(1);
    let is_complete = [status.updated_replicas, status.ready_replicas, status.replicas] == [wanted; 3];
    if set.spec.update_strategy.kind == "RollingUpdate" && is_complete {
        status.current_replicas = status.updated_replicas;
        status.current_revision.clone_from(&status.update_revision);
    }
    status
}

#[cfg(test)]
mod tests;
