//! Keeps the number of Pods of each ReplicaSet and ReplicationController
//! (pkg/controller/replicaset). Both kinds are served by the same code, each by a controller of its
//! own.
//!
//! Pods that match the selector and have no owner are adopted first. Then Pods are created or
//! deleted until as many are active as the specification says, and the status is written from the
//! Pods of the cache.

mod order;
mod status;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::view::{Meta, Pod, ReplicaSet, ReplicaSetStatus, ReplicationController, View};
use fairlead_api::{Look, kinds};
use fairlead_cluster::controller::{Action, Controller, ObjectVersion, Outcome, Requeue, Settings, WorkQueue};
use fairlead_cluster::{Change, Changes, Cluster, Delete, Error, Key, Mirror, Patch, Recorder, Reference, Severity};
use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::failures::Failures;
use crate::ownership::{self, Labels, OwnerIndex};

pub(crate) const SETTINGS: Settings = Settings { spawn_actions: true, ..Settings::new("replicaset") };
pub(crate) const REPLICATION_CONTROLLER_SETTINGS: Settings =
    Settings { spawn_actions: true, ..Settings::new("replicationcontroller") };

/// Maximum number of Pods created or deleted by one action (BurstReplicas of
/// kube-controller-manager).
const BURST: usize = 500;
/// Maximum number of requests in flight for one ReplicaSet.
const CONCURRENT_REQUESTS: usize = 16;

/// A kind that keeps a number of Pods.
pub(crate) trait Replicated: View {
    /// The name under which Events are written.
    const COMPONENT: &'static str;
    /// True if `status.terminatingReplicas` exists.
    const HAS_TERMINATING_REPLICAS: bool;

    fn replicas(&self) -> i32;
    fn min_ready_seconds(&self) -> i32;
    fn selects(&self, labels: &Labels) -> bool;
    fn template(&self) -> &Value;
    fn status(&self) -> &ReplicaSetStatus;
}

impl Replicated for ReplicaSet {
    const COMPONENT: &'static str = "replicaset-controller";
    const HAS_TERMINATING_REPLICAS: bool = true;

    fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }

    fn min_ready_seconds(&self) -> i32 {
        self.spec.min_ready_seconds
    }

    fn selects(&self, labels: &Labels) -> bool {
        self.spec.selector.matches(labels)
    }

    fn template(&self) -> &Value {
        &self.spec.template
    }

    fn status(&self) -> &ReplicaSetStatus {
        &self.status
    }
}

impl Replicated for ReplicationController {
    const COMPONENT: &'static str = "replication-controller";
    const HAS_TERMINATING_REPLICAS: bool = false;

    fn replicas(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }

    fn min_ready_seconds(&self) -> i32 {
        self.spec.min_ready_seconds
    }

    fn selects(&self, labels: &Labels) -> bool {
        let selector = &self.spec.selector;
        !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    }

    fn template(&self) -> &Value {
        &self.spec.template
    }

    fn status(&self) -> &ReplicaSetStatus {
        &self.status
    }
}

/// Caches the objects of the kind and all Pods.
pub(crate) fn cache<T: Replicated>(cluster: &Cluster) -> Mirror {
    Mirror::builder(cluster).with::<T>().with::<Pod>().build()
}

/// The controller of one of the two kinds.
pub(crate) struct ReplicaSetController<T> {
    cluster: Cluster,
    recorder: Recorder,
    pods: OwnerIndex<Pod>,
    sets: OwnerIndex<T>,
    backlog: FailedPods,
}

impl<T: Replicated> ReplicaSetController<T> {
    pub(crate) fn new(cluster: Cluster, host: &str) -> ReplicaSetController<T> {
        let recorder = Recorder::new(&cluster, T::COMPONENT, host);
        ReplicaSetController {
            cluster,
            recorder,
            pods: OwnerIndex::new(),
            sets: OwnerIndex::new(),
            backlog: FailedPods::default(),
        }
    }

    /// Active Pods of all ReplicaSets that have the same owner as this one.
    fn related_pods(&self, cache: &Mirror, set: &T) -> Vec<Arc<Pod>> {
        let mut uids = BTreeSet::from([set.meta().uid.as_str()]);
        if let Some(owner) = set.meta().controller() {
            uids.extend(self.sets.owned_by(cache, &owner.uid).map(|set| set.meta().uid.as_str()));
        }
        let pods = uids.into_iter().flat_map(|uid| self.pods.owned_by(cache, uid));
        pods.filter(|pod| is_active(pod)).cloned().collect()
    }
}

/// True if a Pod counts as a replica: it has not ended and is not being deleted.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !pod.is_terminal() && !pod.is_terminating()
}

/// Failed Pods that have to be replaced, by the uid of their ReplicaSet. Only their replacement is
/// delayed: Pods that are missing for another reason are created at once.
#[derive(Debug, Default)]
struct FailedPods {
    pods: HashMap<Box<str>, usize>,
    failures: Failures,
}

impl FailedPods {
    /// Records a Pod that has failed.
    fn add(&mut self, uid: &str) {
        *self.pods.entry(uid.into()).or_default() += 1;
    }

    /// Follows a change of a ReplicaSet.
    fn update<T: Replicated>(&mut self, change: &Change<T>) {
        self.failures.update(change, T::template);
        let old = change.old.as_ref().map(|old| old.meta().uid.as_str());
        let new = change.new.as_ref().map(|new| new.meta().uid.as_str());
        if old != new {
            self.pods.remove(old.unwrap_or_default());
        }
    }

    /// Returns how many of the missing Pods of a ReplicaSet may be created now, and the time until
    /// more may be.
    fn allowed(&mut self, uid: &str, missing: usize, now: Instant) -> (usize, Option<Duration>) {
        let Some(failed) = self.pods.get_mut(uid) else { return (missing, None) };
        *failed = missing.min(*failed);
        let failed = *failed;
        if failed > 0 && self.failures.is_too_soon(uid, "", now) {
            return (missing - failed, self.failures.next(uid, now));
        }
        self.pods.remove(uid);
        if failed > 0 {
            self.failures.count(uid, "", now);
        }
        (missing, None)
    }
}

impl<T: Replicated> Controller for ReplicaSetController<T> {
    type Key = Key;

    fn enqueue(&mut self, cache: &Mirror, changes: &Changes, queue: &mut WorkQueue<Key>) {
        self.pods.update(changes.of::<Pod>());
        self.sets.update(changes.of::<T>());
        for change in changes.of::<T>() {
            self.backlog.update(change);
            queue.add_for_version(change.key.clone(), ObjectVersion::of_change(change));
        }
        for change in changes.of::<Pod>() {
            if let Some(owner) = failed_owner::<T>(cache, change) {
                self.backlog.add(&owner.meta().uid);
            }
            add_owners::<T>(cache, change, queue);
        }
    }

    fn reconcile(&mut self, cache: &Mirror, key: &Key) -> Action {
        let Some(set) = cache.get::<T>(&key.namespace, &key.name) else { return Action::None };
        let claims = self.pods.claim(cache, set.meta(), |labels| set.selects(labels), is_active);
        if !claims.is_settled() {
            let cluster = self.cluster.clone();
            let set = set.clone();
            return Action::run(async move { claims.write(&cluster, T::KIND, set.meta()).await });
        }
        let now = Timestamp::now();
        let (mut active, terminating): (Vec<_>, Vec<_>) =
            claims.owned.into_iter().filter(|pod| !pod.is_terminal()).partition(|pod| is_active(pod));
        let next_availability = status::next_availability(&active, set.min_ready_seconds(), now);
        let wanted = usize::try_from(set.replicas()).unwrap_or_default();
        let mut status = status::of_pods(&**set, &active, terminating.len(), now);
        let missing = wanted.saturating_sub(active.len());
        let (allowed, next_replacement) = self.backlog.allowed(&set.meta().uid, missing, Instant::now());
        let scaling = if set.meta().deletion_timestamp.is_some() || active.len() == wanted {
            Scaling::None
        } else if active.len() < wanted {
            if allowed == 0 { Scaling::None } else { Scaling::Create(allowed.min(BURST)) }
        } else {
            let excess = (active.len() - wanted).min(BURST);
            order::sort_by_deletion_order(&mut active, &self.related_pods(cache, set), now);
            active.truncate(excess);
            Scaling::Delete(active)
        };
        let requeue = match [next_availability, next_replacement].into_iter().flatten().min() {
            Some(after) => Requeue::At(Instant::now() + after),
            None => Requeue::OnChange,
        };
        if matches!(scaling, Scaling::None) {
            status::set_failure(&mut status, None, now);
            if status == *set.status() {
                return match requeue {
                    Requeue::At(at) => Action::RequeueAt(at),
                    Requeue::OnChange | Requeue::Now => Action::None,
                };
            }
        }
        let writer = Writer { cluster: self.cluster.clone(), recorder: self.recorder.clone(), set: set.clone() };
        Action::run(async move {
            let mut outcome = writer.scale(scaling, &mut status, now).await;
            outcome.requeue = requeue;
            if status != *writer.set.status() {
                match writer.write_status(&status).await {
                    Ok(version) => outcome.written.push(version),
                    // A deleted ReplicaSet has no status.
                    Err(error) if error.is_not_found() => {}
                    Err(error) => {
                        outcome.error.get_or_insert(error);
                    }
                }
            }
            outcome
        })
    }
}

/// The ReplicaSet of a Pod that has failed with this change. A Pod that is being deleted is no
/// replica any more and has been replaced.
fn failed_owner<'a, T: Replicated>(cache: &'a Mirror, change: &Change<Pod>) -> Option<&'a Arc<T>> {
    let failed = |pod: &&Arc<Pod>| pod.status.phase == "Failed";
    let new = change.new.as_ref().filter(failed).filter(|pod| !pod.is_terminating())?;
    if change.old.as_ref().is_some_and(|old| failed(&old)) {
        return None;
    }
    let owner = ownership::controller_of_kind(&new.metadata, T::KIND)?;
    cache.get::<T>(&change.key.namespace, &owner.name).filter(|set| set.meta().uid == owner.uid)
}

/// Adds the ReplicaSets that a change of a Pod concerns: the owner before and after it, and for a
/// Pod without an owner those that may adopt it.
fn add_owners<T: Replicated>(cache: &Mirror, change: &Change<Pod>, queue: &mut WorkQueue<Key>) {
    let namespace = &change.key.namespace;
    for pod in [&change.old, &change.new].into_iter().flatten() {
        if let Some(owner) = ownership::controller_of_kind(&pod.metadata, T::KIND) {
            queue.add(Key::new(namespace.clone(), owner.name.as_str()));
        }
    }
    let Some(new) = change.new.as_ref().filter(|pod| pod.metadata.controller().is_none()) else { return };
    let unchanged = change
        .old
        .as_ref()
        .is_some_and(|old| old.metadata.labels == new.metadata.labels && old.metadata.controller().is_none());
    if unchanged {
        return;
    }
    for set in cache.in_namespace::<T>(namespace).filter(|set| set.selects(&new.metadata.labels)) {
        queue.add(Key::new(namespace.clone(), set.meta().name.as_str()));
    }
}

/// The Pods to create or delete.
enum Scaling {
    None,
    Create(usize),
    Delete(Vec<Arc<Pod>>),
}

/// Writes for one ReplicaSet.
struct Writer<T> {
    cluster: Cluster,
    recorder: Recorder,
    set: Arc<T>,
}

impl<T: Replicated> Writer<T> {
    /// Creates or deletes Pods, and sets condition `ReplicaFailure` in the status.
    async fn scale(&self, scaling: Scaling, status: &mut ReplicaSetStatus, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::default();
        let reason = match scaling {
            Scaling::None => "",
            Scaling::Create(count) => {
                self.create_pods(count, &mut outcome).await;
                "FailedCreate"
            }
            Scaling::Delete(pods) => {
                let deleted = stream::iter(pods).map(|pod| self.delete_pod(pod)).buffer_unordered(CONCURRENT_REQUESTS);
                record(deleted.collect().await, &mut outcome);
                "FailedDelete"
            }
        };
        // Nothing can be created in a namespace that is being deleted, and nothing needs to be.
        outcome.error = outcome.error.filter(|error| !error.is_namespace_terminating());
        status::set_failure(status, outcome.error.as_ref().map(|error| (reason, error.to_string())), now);
        outcome
    }

    /// Creates Pods in batches of 1, 2, 4 and so on, and stops at the first batch with an error: of
    /// a thousand Pods that a quota refuses, only one is asked for.
    async fn create_pods(&self, count: usize, outcome: &mut Outcome) {
        let pod = pod_of(&*self.set);
        let mut remaining = count;
        let mut batch = 1;
        while remaining > 0 && outcome.error.is_none() {
            batch = batch.min(remaining);
            let created = stream::iter(0..batch).map(|_| self.create_pod(&pod)).buffer_unordered(CONCURRENT_REQUESTS);
            record(created.collect().await, outcome);
            remaining -= batch;
            batch *= 2;
        }
    }

    async fn create_pod(&self, pod: &Value) -> Result<ObjectVersion, Error> {
        match self.cluster.create(&kinds::POD, pod).await {
            Ok(created) => {
                let message = format!("Created pod: {}", created.at("metadata").text("name"));
                self.event(Severity::Normal, "SuccessfulCreate", message);
                Ok(ObjectVersion::of(&kinds::POD, &created))
            }
            Err(error) => {
                if !error.is_namespace_terminating() {
                    self.event(Severity::Warning, "FailedCreate", format!("Error creating: {error}"));
                }
                Err(error)
            }
        }
    }

    async fn delete_pod(&self, pod: Arc<Pod>) -> Result<ObjectVersion, Error> {
        let Meta { namespace, name, uid, .. } = &pod.metadata;
        let deleted = ObjectVersion::deleted(&kinds::POD, Key::new(namespace.as_str(), name.as_str()));
        let how = Delete { uid: Some(uid.clone()), ..Delete::default() };
        match self.cluster.delete(&kinds::POD, namespace, name, &how).await {
            Ok(_) => {
                self.event(Severity::Normal, "SuccessfulDelete", format!("Deleted pod: {name}"));
                Ok(deleted)
            }
            // Another client was faster.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(deleted),
            Err(error) => {
                self.event(Severity::Warning, "FailedDelete", format!("Error deleting: {error}"));
                Err(error)
            }
        }
    }

    async fn write_status(&self, status: &ReplicaSetStatus) -> Result<ObjectVersion, Error> {
        let Meta { namespace, name, resource_version, .. } = self.set.meta();
        let patch = json!({
            "metadata": {"resourceVersion": resource_version},
            "status": status::to_json(status),
        });
        let written = self.cluster.patch_status(T::KIND, namespace, name, &Patch::Merge(patch)).await?;
        Ok(ObjectVersion::of(T::KIND, &written))
    }

    fn event(&self, severity: Severity, reason: &'static str, message: String) {
        self.recorder.record(Reference::of(&*self.set), severity, reason, message);
    }
}

/// Adds the results of requests to an outcome. The first error is kept.
fn record(results: Vec<Result<ObjectVersion, Error>>, outcome: &mut Outcome) {
    for result in results {
        match result {
            Ok(version) => outcome.written.push(version),
            Err(error) => {
                outcome.error.get_or_insert(error);
            }
        }
    }
}

/// A Pod made from the template, named by the server.
fn pod_of<T: Replicated>(set: &T) -> Value {
    let Meta { namespace, name, .. } = set.meta();
    let template = set.template();
    let mut metadata = json!({
        "generateName": format!("{name}-"), "namespace": namespace,
        "ownerReferences": [ownership::reference(T::KIND, set.meta())],
    });
    for field in ["labels", "annotations", "finalizers"] {
        let value = template.at("metadata").at(field);
        if !value.is_null() {
            metadata.set(field, value.clone());
        }
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.at("spec")})
}

#[cfg(test)]
mod tests;
