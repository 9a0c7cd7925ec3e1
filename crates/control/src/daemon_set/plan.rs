//! Which Pods of a DaemonSet are created and deleted (pkg/controller/daemon: podsShouldBeOnNode,
//! rollingUpdate). Pure.

use std::sync::Arc;

use super::placement::Placement;
use super::view::DaemonSetStatus;
use crate::scheduler::view::Pod;

/// A Pod of the DaemonSet.
#[derive(Debug, Clone)]
pub(super) struct DaemonPod {
    pub(super) pod: Arc<Pod>,
    /// True if the Pod was made from the present template.
    pub(super) is_updated: bool,
    pub(super) is_ready: bool,
    /// True if the Pod has been ready for `minReadySeconds`.
    pub(super) is_available: bool,
    /// True if the Pod failed so soon after the one before it that it may not be replaced yet.
    pub(super) backs_off: bool,
}

impl DaemonPod {
    fn is_terminating(&self) -> bool {
        self.pod.metadata.deletion_timestamp.is_some()
    }

    fn phase(&self) -> &str {
        &self.pod.status.phase
    }
}

/// A Node with the Pods that the DaemonSet has there, the oldest first.
#[derive(Debug)]
pub(super) struct NodePods {
    pub(super) name: String,
    pub(super) placement: Placement,
    pub(super) pods: Vec<DaemonPod>,
}

/// Reason to delete a Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Failed,
    Succeeded,
    /// The Node has another Pod, or should have none, or the Pod is of an old template.
    Superfluous,
}

/// The Pods to create and to delete.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Names of Nodes that get a Pod.
    pub(super) create: Vec<String>,
    pub(super) delete: Vec<(Arc<Pod>, Reason)>,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }
}

/// Limits of a rolling update, in numbers of Nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) max_unavailable: usize,
    pub(super) max_surge: usize,
}

/// Gives every Node that should have one a Pod, and removes those that are too many. With `surges`
/// a Node may have an old and a new Pod while the new one is not available.
pub(super) fn manage(nodes: &[NodePods], surges: bool) -> Plan {
    let mut plan = Plan::default();
    for node in nodes {
        if node.placement.should_run && node.pods.is_empty() {
            plan.create.push(node.name.clone());
        } else if node.placement.may_stay {
            manage_node(node, surges, &mut plan);
        } else {
            let present = node.pods.iter().filter(|pod| !pod.is_terminating());
            plan.delete.extend(present.map(|pod| (pod.pod.clone(), Reason::Superfluous)));
        }
    }
    plan
}

fn manage_node(node: &NodePods, surges: bool, plan: &mut Plan) {
    let mut running: Vec<&DaemonPod> = Vec::new();
    for pod in node.pods.iter().filter(|pod| !pod.is_terminating()) {
        match pod.phase() {
            "Failed" if pod.backs_off => {}
            "Failed" => plan.delete.push((pod.pod.clone(), Reason::Failed)),
            "Succeeded" => plan.delete.push((pod.pod.clone(), Reason::Succeeded)),
            _ => running.push(pod),
        }
    }
    let mut remove = |pod: &DaemonPod| plan.delete.push((pod.pod.clone(), Reason::Superfluous));
    if !surges {
        running.iter().skip(1).for_each(|pod| remove(pod));
        return;
    }
    let (new, old): (Vec<&DaemonPod>, Vec<&DaemonPod>) = running.iter().partition(|pod| pod.is_updated);
    new.iter().chain(&old).filter(|pod| !is_first(pod, &new) && !is_first(pod, &old)).for_each(|pod| remove(pod));
    match (new.first(), old.first()) {
        (Some(new), Some(old)) if !old.is_ready || new.is_available => remove(old),
        // A Pod that is going takes no place when surging: the next one starts beside it.
        (None, None) if node.placement.should_run => plan.create.push(node.name.clone()),
        _ => {}
    }
}

fn is_first(pod: &DaemonPod, pods: &[&DaemonPod]) -> bool {
    pods.first().is_some_and(|first| Arc::ptr_eq(&first.pod, &pod.pod))
}

/// Replaces old Pods, as many at a time as the limits allow. Called when [`manage`] has nothing to
/// do.
pub(super) fn roll(nodes: &[NodePods], limits: Limits) -> Plan {
    let mut plan = Plan::default();
    // Nodes that count towards a limit now, and Pods or Nodes that may be next.
    let mut busy = 0;
    let mut candidates: Vec<&NodePods> = Vec::new();
    let mut at_once: Vec<&NodePods> = Vec::new();
    let surges = limits.max_surge > 0;
    for node in nodes.iter().filter(|node| node.placement.should_run || !node.pods.is_empty()) {
        let present: Vec<&DaemonPod> = node.pods.iter().filter(|pod| !pod.is_terminating()).collect();
        let (new, old): (Vec<&DaemonPod>, Vec<&DaemonPod>) = present.into_iter().partition(|pod| pod.is_updated);
        match (&new[..], &old[..]) {
            ([], [old]) if !old.is_available => {
                at_once.push(node);
                busy += usize::from(!surges);
            }
            ([], [_]) => candidates.push(node),
            ([new], []) => busy += usize::from(!surges && !new.is_available),
            ([], []) => busy += usize::from(!surges),
            ([new], [old]) if surges => {
                if new.is_available {
                    plan.delete.push((old.pod.clone(), Reason::Superfluous));
                } else {
                    busy += 1;
                }
            }
            // More Pods than there should be; manage removes them.
            _ => busy += 1,
        }
    }
    let limit = if surges { limits.max_surge } else { limits.max_unavailable };
    let next = candidates.into_iter().take(limit.saturating_sub(busy));
    for node in at_once.into_iter().chain(next) {
        if surges {
            plan.create.push(node.name.clone());
        } else {
            let old = node.pods.iter().filter(|pod| !pod.is_terminating());
            plan.delete.extend(old.map(|pod| (pod.pod.clone(), Reason::Superfluous)));
        }
    }
    plan
}

/// Counts Nodes. A Node with several Pods counts by its oldest.
pub(super) fn count(nodes: &[NodePods]) -> DaemonSetStatus {
    let mut status = DaemonSetStatus::default();
    for node in nodes {
        let first = node.pods.first();
        if !node.placement.should_run {
            status.number_misscheduled += i32::from(first.is_some());
            continue;
        }
        status.desired_number_scheduled += 1;
        let Some(first) = first else { continue };
        status.current_number_scheduled += 1;
        status.number_ready += i32::from(first.is_ready);
        status.number_available += i32::from(first.is_ready && first.is_available);
        status.updated_number_scheduled += i32::from(first.is_updated);
    }
    status.number_unavailable = status.desired_number_scheduled - status.number_available;
    status
}

#[cfg(test)]
mod tests;
