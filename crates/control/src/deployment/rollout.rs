//! What a Deployment does next: which ReplicaSet to create, which to scale, which to delete, and
//! the status. Pure; the cases are those of kube-controller-manager (pkg/controller/deployment:
//! sync.go, rolling.go, recreate.go, progress.go, util/deployment_util.go).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::Look;
use fairlead_api::view::{Condition, Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetStatus};
use jiff::Timestamp;
use serde_json::Value;

use super::{conditions, revision};
use crate::availability::int_or_percent;

/// A ReplicaSet as it should be.
#[derive(Debug, Clone)]
pub(super) struct PlannedSet {
    /// The ReplicaSet as it is; `None` if it has to be created.
    pub(super) object: Option<Arc<ReplicaSet>>,
    pub(super) name: String,
    pub(super) replicas: i32,
    pub(super) min_ready_seconds: i32,
    pub(super) annotations: BTreeMap<String, String>,
}

/// The writes for a Deployment.
#[derive(Debug)]
pub(super) struct Plan {
    /// ReplicaSets to create or to update, in order.
    pub(super) sets: Vec<PlannedSet>,
    /// ReplicaSets beyond the history limit.
    pub(super) delete: Vec<Arc<ReplicaSet>>,
    /// Number of the current revision, for the annotation of the Deployment.
    pub(super) revision: Option<String>,
    pub(super) status: DeploymentStatus,
    /// Time until the rollout counts as failed if nothing changes.
    pub(super) deadline: Option<Duration>,
}

/// Decides what to write for a Deployment with these ReplicaSets. `has_running_pods` says whether
/// Pods of the ReplicaSet with this uid have not ended yet, terminating ones included.
pub(super) fn plan(
    deployment: &Deployment,
    sets: Vec<Arc<ReplicaSet>>,
    has_running_pods: impl Fn(&str) -> bool,
    now: Timestamp,
) -> Plan {
    let mut rollout = Rollout::new(deployment, sets, now);
    if deployment.metadata.deletion_timestamp.is_some() {
        rollout.new = rollout.find_new();
        rollout.count_replicas();
        return rollout.into_plan();
    }
    rollout.set_paused_condition();
    if deployment.spec.paused || rollout.is_scaled() {
        rollout.find_or_create_new(false);
        rollout.scale();
        if deployment.spec.paused {
            rollout.delete_old();
        }
        rollout.count_replicas();
        return rollout.into_plan();
    }
    if deployment.spec.strategy.kind == "Recreate" {
        rollout.recreate(has_running_pods);
    } else {
        rollout.roll();
    }
    rollout.set_progress();
    if conditions::is_complete(deployment, &rollout.status) {
        rollout.delete_old();
    }
    rollout.into_plan()
}

/// A plan in the making.
struct Rollout<'a> {
    deployment: &'a Deployment,
    now: Timestamp,
    /// All ReplicaSets, the oldest first.
    sets: Vec<PlannedSet>,
    /// The ReplicaSet with the current template.
    new: Option<usize>,
    /// ReplicaSets that change, in the order of their first change.
    changed: Vec<usize>,
    delete: Vec<Arc<ReplicaSet>>,
    status: DeploymentStatus,
    deadline: Option<Duration>,
}

impl<'a> Rollout<'a> {
    fn new(deployment: &'a Deployment, mut sets: Vec<Arc<ReplicaSet>>, now: Timestamp) -> Rollout<'a> {
        sets.sort_by(|a, b| {
            let age = |set: &ReplicaSet| (set.metadata.creation_timestamp.clone(), set.metadata.name.clone());
            age(a).cmp(&age(b))
        });
        let planned = sets.into_iter().map(|set| PlannedSet {
            name: set.metadata.name.clone(),
            replicas: set.spec.replicas.unwrap_or(1),
            min_ready_seconds: set.spec.min_ready_seconds,
            annotations: set.metadata.annotations.clone(),
            object: Some(set),
        });
        let status = deployment.status.clone();
        Rollout {
            deployment,
            now,
            sets: planned.collect(),
            new: None,
            changed: Vec::new(),
            delete: Vec::new(),
            status,
            deadline: None,
        }
    }

    fn into_plan(self) -> Plan {
        let revision = self.new.and_then(|new| self.sets[new].annotations.get(revision::REVISION).cloned());
        Plan {
            sets: self.changed.iter().map(|index| self.sets[*index].clone()).collect(),
            delete: self.delete,
            revision,
            status: self.status,
            deadline: self.deadline,
        }
    }

    fn replicas(&self) -> i32 {
        self.deployment.spec.replicas.unwrap_or(1)
    }

    /// Number of Pods that a rolling update may have beyond the wanted number.
    fn max_surge(&self) -> i32 {
        self.limits().0
    }

    /// Number of Pods that a rolling update may be short of.
    fn max_unavailable(&self) -> i32 {
        if self.replicas() == 0 { 0 } else { self.limits().1.min(self.replicas()) }
    }

    /// `maxSurge` and `maxUnavailable` as numbers. Percentages of both may be less than one Pod:
    /// then one may be unavailable, or the update could not begin (ResolveFenceposts).
    fn limits(&self) -> (i32, i32) {
        let strategy = &self.deployment.spec.strategy;
        if strategy.kind == "Recreate" {
            return (0, 0);
        }
        let surge = int_or_percent(&strategy.rolling_update.max_surge, self.replicas(), true);
        let unavailable = int_or_percent(&strategy.rolling_update.max_unavailable, self.replicas(), false);
        if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
    }

    fn find_new(&self) -> Option<usize> {
        let template = &self.deployment.spec.template;
        let is_new = |set: &PlannedSet| {
            set.object.as_ref().is_some_and(|object| revision::same_template(&object.spec.template, template))
        };
        self.sets.iter().position(is_new)
    }

    /// Indices of all ReplicaSets but the one with the current template, the oldest first.
    fn old(&self) -> Vec<usize> {
        (0..self.sets.len()).filter(|index| Some(*index) != self.new).collect()
    }

    /// Sum of `spec.replicas`.
    fn total(&self) -> i32 {
        sum(self.sets.iter().map(|set| set.replicas))
    }

    /// Maximum number of Pods, `spec.replicas` and `maxSurge`.
    fn max_replicas(&self) -> i32 {
        self.replicas().saturating_add(self.max_surge())
    }

    /// Finds the ReplicaSet with the current template, or plans to create it, and gives it its
    /// revision and annotations.
    fn find_or_create_new(&mut self, create: bool) {
        self.new = self.find_new();
        let old_revisions = self.old().into_iter().map(|index| revision::revision_of(&self.sets[index].annotations));
        let revision = old_revisions.max().unwrap_or_default().saturating_add(1);
        let deployment = self.deployment;
        let has_deadline = conditions::progress_deadline(deployment).is_some();
        if let Some(new) = self.new {
            let set = &mut self.sets[new];
            revision::set_annotations(&mut set.annotations, &deployment.metadata.annotations, revision);
            set.min_ready_seconds = deployment.spec.min_ready_seconds;
            if has_deadline && conditions::find(&self.status, conditions::PROGRESSING).is_none() {
                let message = format!("Found new replica set {:?}", set.name);
                self.set_progressing("True", conditions::NEW_SET_FOUND, message);
            }
            return self.mark_changed(new);
        }
        if !create {
            return;
        }
        let hash = revision::template_hash(&deployment.spec.template, deployment.status.collision_count);
        let mut set = PlannedSet {
            object: None,
            name: format!("{}-{hash}", deployment.metadata.name),
            replicas: 0,
            min_ready_seconds: deployment.spec.min_ready_seconds,
            annotations: BTreeMap::new(),
        };
        revision::set_annotations(&mut set.annotations, &deployment.metadata.annotations, revision);
        if has_deadline {
            self.set_progressing(
                "True",
                conditions::NEW_SET_CREATED,
                format!("Created new replica set {:?}", set.name),
            );
        }
        let new = self.sets.len();
        self.sets.push(set);
        self.new = Some(new);
        let replicas = self.new_replicas(new);
        self.scale_set(new, replicas);
    }

    /// The size that the new ReplicaSet may have now.
    fn new_replicas(&self, new: usize) -> i32 {
        let current = self.sets[new].replicas;
        if self.deployment.spec.strategy.kind == "Recreate" {
            return self.replicas();
        }
        let room = self.max_replicas().saturating_sub(self.total());
        if room <= 0 { current } else { current.saturating_add(room.min(self.replicas().saturating_sub(current))) }
    }

    /// Scales a ReplicaSet. Returns true if its size changes.
    fn scale_set(&mut self, index: usize, replicas: i32) -> bool {
        let desired = self.replicas();
        let max = self.max_replicas();
        let set = &mut self.sets[index];
        let before = std::mem::replace(&mut set.replicas, replicas);
        revision::set_sizes(&mut set.annotations, desired, max);
        self.mark_changed(index);
        before != replicas
    }

    fn mark_changed(&mut self, index: usize) {
        let set = &self.sets[index];
        let same = set.object.as_ref().is_some_and(|object| {
            object.spec.replicas.unwrap_or(1) == set.replicas
                && object.spec.min_ready_seconds == set.min_ready_seconds
                && object.metadata.annotations == set.annotations
        });
        if !same && !self.changed.contains(&index) {
            self.changed.push(index);
        }
    }

    /// True if `spec.replicas` is not the one for which the ReplicaSets were scaled last.
    fn is_scaled(&self) -> bool {
        self.sets.iter().filter(|set| set.replicas > 0).any(|set| {
            revision::number(&set.annotations, revision::DESIRED_REPLICAS)
                .is_some_and(|desired| desired != self.replicas())
        })
    }

    /// Adapts the ReplicaSets to a changed `spec.replicas`, or to a pause, without going on with a
    /// rollout. In the middle of a rollout the change is shared by all ReplicaSets in proportion to
    /// their sizes, so that a bad revision does not get all of it.
    fn scale(&mut self) {
        let active: Vec<usize> = (0..self.sets.len()).filter(|index| self.sets[*index].replicas > 0).collect();
        let only = match active[..] {
            [] => self.new.or_else(|| self.sets.len().checked_sub(1)),
            [only] => Some(only),
            _ => None,
        };
        if let Some(only) = only {
            self.scale_set(only, self.replicas());
            return;
        }
        if self.is_saturated() {
            for old in self.old() {
                if self.sets[old].replicas > 0 {
                    self.scale_set(old, 0);
                }
            }
            return;
        }
        if self.deployment.spec.strategy.kind != "Recreate" {
            self.scale_proportionally(active);
        }
    }

    /// True if the new ReplicaSet has its whole size and all its Pods are available.
    fn is_saturated(&self) -> bool {
        let Some(new) = self.new else { return false };
        let set = &self.sets[new];
        set.replicas == self.replicas()
            && revision::number(&set.annotations, revision::DESIRED_REPLICAS) == Some(self.replicas())
            && set.status().available_replicas == self.replicas()
    }

    fn scale_proportionally(&mut self, mut active: Vec<usize>) {
        let allowed = if self.replicas() > 0 { self.max_replicas() } else { 0 };
        let change = allowed.saturating_sub(self.total());
        // The largest first; of the same size, the newest first if Pods are added, and the oldest
        // first if they are removed.
        active.sort_by_key(|index| {
            let age = i64::try_from(*index).unwrap_or_default();
            (Reverse(self.sets[*index].replicas), if change > 0 { -age } else { age })
        });
        let mut sizes = Vec::new();
        let mut added: i32 = 0;
        for index in &active {
            let proportion = if change == 0 { 0 } else { self.proportion(&self.sets[*index], change, added) };
            sizes.push(self.sets[*index].replicas.saturating_add(proportion));
            added = added.saturating_add(proportion);
        }
        // Rounding leaves a rest, which the largest gets.
        if let Some(largest) = sizes.first_mut() {
            *largest = largest.saturating_add(change.saturating_sub(added)).max(0);
        }
        for (index, size) in active.into_iter().zip(sizes) {
            self.scale_set(index, size);
        }
    }

    /// The part of a change that a ReplicaSet gets, of which `added` is already given to others.
    fn proportion(&self, set: &PlannedSet, change: i32, added: i32) -> i32 {
        let allowed = change.saturating_sub(added);
        if set.replicas == 0 || allowed == 0 {
            return 0;
        }
        let fraction = if self.replicas() == 0 {
            set.replicas.saturating_neg()
        } else {
            let before = revision::number(&set.annotations, revision::MAX_REPLICAS).filter(|max| *max > 0);
            let before = before.unwrap_or(self.deployment.status.replicas);
            if before == 0 {
                return 0;
            }
            let max = f64::from(self.max_replicas());
            let size = (f64::from(set.replicas) * max / f64::from(before)).round();
            #[expect(clippy::cast_possible_truncation, reason = "a float to integer cast saturates")]
            let size = size as i32;
            size.saturating_sub(set.replicas)
        };
        if change > 0 { fraction.min(allowed) } else { fraction.max(allowed) }
    }

    /// A step of a rolling update.
    fn roll(&mut self) {
        self.find_or_create_new(true);
        let Some(new) = self.new else { return };
        let current = self.sets[new].replicas;
        if current != self.replicas() {
            let size = if current > self.replicas() { self.replicas() } else { self.new_replicas(new) };
            if size != current && self.scale_set(new, size) {
                return;
            }
        }
        self.scale_down_old(new);
    }

    /// Removes as many old Pods as the limit of unavailable Pods allows: those that are not
    /// available anyway first.
    fn scale_down_old(&mut self, new: usize) {
        let old: Vec<usize> = self.old().into_iter().filter(|index| self.sets[*index].replicas > 0).collect();
        if old.is_empty() {
            return;
        }
        let min_available = self.replicas().saturating_sub(self.max_unavailable());
        let new_unavailable = self.sets[new].unavailable();
        let limit = self.total().saturating_sub(min_available).saturating_sub(new_unavailable);
        if limit <= 0 {
            return;
        }
        let mut removed = 0;
        for index in &old {
            let set = &self.sets[*index];
            let count = set.unavailable().min(limit - removed);
            if count > 0 {
                removed += count;
                self.scale_set(*index, self.sets[*index].replicas - count);
            }
        }
        let available = sum(self.sets.iter().map(PlannedSet::available));
        let mut removable = available.saturating_sub(min_available);
        for index in &old {
            let count = self.sets[*index].replicas.min(removable);
            if count > 0 {
                removable -= count;
                self.scale_set(*index, self.sets[*index].replicas - count);
            }
        }
    }

    /// A step of an update that ends all old Pods before it starts new ones.
    fn recreate(&mut self, has_running_pods: impl Fn(&str) -> bool) {
        self.find_or_create_new(false);
        let mut scaled = false;
        for old in self.old() {
            if self.sets[old].replicas > 0 {
                scaled |= self.scale_set(old, 0);
            }
        }
        let runs = |set: &PlannedSet| {
            set.status().replicas > 0 || set.object.as_ref().is_some_and(|set| has_running_pods(&set.metadata.uid))
        };
        if scaled || self.old().into_iter().any(|old| runs(&self.sets[old])) {
            return;
        }
        self.find_or_create_new(true);
        if let Some(new) = self.new
            && self.sets[new].replicas != self.replicas()
        {
            self.scale_set(new, self.replicas());
        }
    }

    /// Deletes old ReplicaSets without Pods, beyond the number to keep, the oldest revision first.
    fn delete_old(&mut self) {
        // The greatest number means all (HasRevisionHistoryLimit).
        let Some(limit) = self.deployment.spec.revision_history_limit.filter(|limit| *limit != i32::MAX) else {
            return;
        };
        let mut old: Vec<Arc<ReplicaSet>> = self
            .old()
            .into_iter()
            .filter_map(|index| self.sets[index].object.clone())
            .filter(|set| set.metadata.deletion_timestamp.is_none())
            .collect();
        let Some(excess) = old.len().checked_sub(usize::try_from(limit).unwrap_or_default()) else { return };
        old.sort_by_key(|set| revision::revision_of(&set.metadata.annotations));
        let is_unused = |set: &Arc<ReplicaSet>| {
            set.status.replicas == 0
                && set.spec.replicas == Some(0)
                && set.metadata.generation <= set.status.observed_generation
        };
        self.delete = old.into_iter().take(excess).filter(is_unused).collect();
    }

    fn set_paused_condition(&mut self) {
        if conditions::progress_deadline(self.deployment).is_none() {
            return;
        }
        let reason =
            conditions::find(&self.status, conditions::PROGRESSING).map(|progressing| progressing.reason.as_str());
        if reason == Some(conditions::DEADLINE_EXCEEDED) {
            return;
        }
        let was_paused = reason == Some(conditions::PAUSED);
        if self.deployment.spec.paused && !was_paused {
            self.set_progressing("Unknown", conditions::PAUSED, "Deployment is paused");
        } else if !self.deployment.spec.paused && was_paused {
            self.set_progressing("Unknown", conditions::RESUMED, "Deployment is resumed");
        }
    }

    fn set_progressing(&mut self, status: &str, reason: &str, message: impl Into<String>) {
        let condition = conditions::condition(conditions::PROGRESSING, status, reason, message, self.now);
        conditions::set(&mut self.status, condition);
    }

    /// Sets the numbers of the status, and condition `Available`.
    fn count_replicas(&mut self) {
        let count = |count: fn(&ReplicaSetStatus) -> i32| sum(self.sets.iter().map(|set| count(set.status())));
        let available = count(|status| status.available_replicas);
        let terminating: Vec<i32> = self.sets.iter().filter_map(|set| set.status().terminating_replicas).collect();
        self.status.observed_generation = self.deployment.metadata.generation;
        self.status.replicas = count(|status| status.replicas);
        self.status.updated_replicas = self.new.map_or(0, |new| self.sets[new].status().replicas);
        self.status.ready_replicas = count(|status| status.ready_replicas);
        self.status.available_replicas = available;
        self.status.unavailable_replicas = self.total().saturating_sub(available).max(0);
        self.status.terminating_replicas = (!terminating.is_empty()).then(|| sum(terminating.into_iter()));
        let condition = if available >= self.replicas().saturating_sub(self.max_unavailable()) {
            let message = "Deployment has minimum availability.";
            conditions::condition(conditions::AVAILABLE, "True", "MinimumReplicasAvailable", message, self.now)
        } else {
            let message = "Deployment does not have minimum availability.";
            conditions::condition(conditions::AVAILABLE, "False", "MinimumReplicasUnavailable", message, self.now)
        };
        conditions::set(&mut self.status, condition);
    }

    /// Sets the status of a rollout: numbers, progress and failures of ReplicaSets.
    fn set_progress(&mut self) {
        self.count_replicas();
        if conditions::progress_deadline(self.deployment).is_none() {
            conditions::remove(&mut self.status, conditions::PROGRESSING);
        } else {
            self.set_progressing_condition();
        }
        // A rollout that has failed or is complete waits for nothing.
        let remaining = conditions::until_deadline(self.deployment, &self.status, self.now);
        self.deadline = remaining
            .filter(|remaining| *remaining > Duration::ZERO && !conditions::is_complete(self.deployment, &self.status));
        match self.replica_failure() {
            Some(failure) => conditions::set(&mut self.status, failure),
            None => conditions::remove(&mut self.status, conditions::REPLICA_FAILURE),
        }
    }

    fn set_progressing_condition(&mut self) {
        let current = conditions::find(&self.status, conditions::PROGRESSING).cloned();
        let was_complete = self.status.replicas == self.status.updated_replicas
            && current.as_ref().is_some_and(|current| current.reason == conditions::NEW_SET_AVAILABLE);
        if was_complete {
            return;
        }
        let what = match self.new {
            Some(new) => format!("ReplicaSet {:?}", self.sets[new].name),
            None => format!("Deployment {:?}", self.deployment.metadata.name),
        };
        if conditions::is_complete(self.deployment, &self.status) {
            let message = format!("{what} has successfully progressed.");
            self.set_progressing("True", conditions::NEW_SET_AVAILABLE, message);
        } else if conditions::is_progressing(&self.deployment.status, &self.status) {
            // The time of the update is that of the last progress, so the condition is replaced
            // even if it says the same.
            let message = format!("{what} is progressing.");
            let kind = conditions::PROGRESSING;
            let mut condition = conditions::condition(kind, "True", conditions::SET_UPDATED, message, self.now);
            if let Some(current) = current.filter(|current| current.status == "True") {
                condition.last_transition_time = current.last_transition_time;
            }
            conditions::remove(&mut self.status, kind);
            self.status.conditions.push(condition);
        } else if conditions::until_deadline(self.deployment, &self.status, self.now) == Some(Duration::ZERO) {
            let message = format!("{what} has timed out progressing.");
            self.set_progressing("False", conditions::DEADLINE_EXCEEDED, message);
        }
    }

    /// The failure of the new ReplicaSet to create Pods, else that of any.
    fn replica_failure(&self) -> Option<DeploymentCondition> {
        let failure =
            |set: &PlannedSet| Condition::find(&set.status().conditions, conditions::REPLICA_FAILURE).cloned();
        let new = self.new.and_then(|new| failure(&self.sets[new]));
        let found = new.or_else(|| self.sets.iter().find_map(failure))?;
        let time = found.last_transition_time.unwrap_or_default();
        Some(DeploymentCondition {
            kind: found.kind,
            status: found.status,
            last_update_time: time.clone(),
            last_transition_time: time,
            reason: found.reason,
            message: found.message,
        })
    }
}

impl PlannedSet {
    /// The status of the ReplicaSet; that of a new one is empty.
    fn status(&self) -> &ReplicaSetStatus {
        static NEW: ReplicaSetStatus = ReplicaSetStatus {
            replicas: 0,
            fully_labeled_replicas: 0,
            ready_replicas: 0,
            available_replicas: 0,
            terminating_replicas: None,
            observed_generation: 0,
            conditions: Vec::new(),
        };
        self.object.as_ref().map_or(&NEW, |object| &object.status)
    }

    /// Number of available Pods that stay. Right after a ReplicaSet was made smaller, its status
    /// still counts Pods that are about to be deleted; they must not be counted on.
    fn available(&self) -> i32 {
        self.status().available_replicas.min(self.replicas)
    }

    /// Number of Pods that are not available.
    fn unavailable(&self) -> i32 {
        self.replicas.saturating_sub(self.available())
    }
}

/// Sum of numbers that users give; at most the greatest number.
fn sum(numbers: impl Iterator<Item = i32>) -> i32 {
    numbers.fold(0, i32::saturating_add)
}

/// The labels of a template with the hash of its ReplicaSet.
pub(super) fn labels_with_hash(template: &Value, hash: &str) -> Value {
    let mut labels = template.at("metadata").at("labels").clone();
    labels.set(revision::HASH_LABEL, hash);
    labels
}

#[cfg(test)]
mod tests;
