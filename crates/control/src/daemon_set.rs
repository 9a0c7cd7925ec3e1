//! Keeps one Pod of each DaemonSet on every Node that fits its template (pkg/controller/daemon).
//!
//! Each Pod requires its Node by name, so the scheduler binds it. Templates are kept in
//! ControllerRevisions; a rolling update replaces the Pods of old ones within `maxUnavailable` and
//! `maxSurge`.

mod placement;
mod plan;
pub(crate) mod view;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::view::{Meta, View};
use fairlead_api::{Kind, Look, kinds};
use fairlead_cluster::controller::{Action, Controller, ObjectVersion, Outcome, Requeue, Settings, WorkQueue};
use fairlead_cluster::{Change, Changes, Cluster, Delete, Error, Key, Mirror, Patch, Recorder, Reference, Severity};
use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::availability;
use crate::failures::Failures;
use crate::ownership::{self, OwnerIndex};
use crate::revisions::{self, ControllerRevision, HASH_LABEL, Owner, Step};
use crate::scheduler::view::{Node, Pod};
use placement::place;
use plan::{DaemonPod, Limits, NodePods, Plan, Reason};
use view::{DaemonSet, DaemonSetStatus};

pub(crate) const SETTINGS: Settings = Settings { spawn_actions: true, ..Settings::new("daemonset") };

/// The kind that this controller keeps.
const KIND: &Kind = &kinds::DAEMON_SET;
/// Maximum number of Pods created or deleted by one action (BurstReplicas of
/// kube-controller-manager).
const BURST: usize = 250;
/// Maximum number of requests in flight for one DaemonSet.
const CONCURRENT_REQUESTS: usize = 16;
/// Old revisions that are kept if the DaemonSet does not say how many.
const HISTORY: i32 = 10;

/// Caches DaemonSets, their revisions, and all Pods and Nodes.
pub(crate) fn cache(cluster: &Cluster) -> Mirror {
    Mirror::builder(cluster).with::<DaemonSet>().with::<ControllerRevision>().with::<Pod>().with::<Node>().build()
}

pub(crate) struct DaemonSetController {
    cluster: Cluster,
    recorder: Recorder,
    pods: OwnerIndex<Pod>,
    revisions: OwnerIndex<ControllerRevision>,
    /// Failed Pods, by Node.
    failures: Failures,
}

impl DaemonSetController {
    pub(crate) fn new(cluster: Cluster, host: &str) -> DaemonSetController {
        let recorder = Recorder::new(&cluster, "daemonset-controller", host);
        DaemonSetController {
            cluster,
            recorder,
            pods: OwnerIndex::new(),
            revisions: OwnerIndex::new(),
            failures: Failures::default(),
        }
    }

    /// The Nodes with the Pods of a DaemonSet, and Pods that are to be bound to a Node that does
    /// not exist.
    fn nodes(
        &mut self,
        cache: &Mirror,
        set: &DaemonSet,
        pods: &[Arc<Pod>],
        hash: &str,
        now: Timestamp,
        clock: Instant,
    ) -> (Vec<NodePods>, Vec<Arc<Pod>>) {
        let Some(spec) = placement::template_spec(set) else { return (Vec::new(), Vec::new()) };
        let mut by_node: HashMap<&str, Vec<Arc<Pod>>> = HashMap::new();
        for pod in pods {
            // A Pod that has ended and is being deleted takes no place.
            let is_gone = pod.metadata.deletion_timestamp.is_some() && has_ended(pod);
            if let (Some(node), false) = (placement::node_of(pod), is_gone) {
                by_node.entry(node).or_default().push(pod.clone());
            }
        }
        let mut nodes = Vec::new();
        for node in cache.all::<Node>() {
            let name = node.metadata.name.as_str();
            let mut pods = by_node.remove(name).unwrap_or_default();
            pods.sort_by(|a, b| age(a).cmp(&age(b)));
            let pods = pods.into_iter().map(|pod| {
                let conditions = &pod.status.conditions;
                let is_failed = pod.status.phase == "Failed" && pod.metadata.deletion_timestamp.is_none();
                DaemonPod {
                    is_updated: pod.metadata.labels.get(HASH_LABEL).is_some_and(|label| label == hash),
                    is_ready: fairlead_api::view::Condition::is_true(conditions, "Ready"),
                    is_available: availability::after(conditions, set.spec.min_ready_seconds, now)
                        == Some(Duration::ZERO),
                    backs_off: is_failed && self.failures.is_too_soon(&set.metadata.uid, name, clock),
                    pod,
                }
            });
            nodes.push(NodePods { name: name.to_owned(), placement: place(&spec, node), pods: pods.collect() });
        }
        let is_lost = |pod: &Arc<Pod>| pod.spec.node_name.is_empty() && pod.metadata.deletion_timestamp.is_none();
        (nodes, by_node.into_values().flatten().filter(is_lost).collect())
    }
}

/// Pods on a Node in the order in which they count: bound ones first, then the oldest.
fn age(pod: &Pod) -> (bool, &str, &str) {
    let created = pod.metadata.creation_timestamp.as_deref().unwrap_or_default();
    (pod.spec.node_name.is_empty(), created, &pod.metadata.name)
}

fn has_ended(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")
}

impl Controller for DaemonSetController {
    type Key = Key;

    fn enqueue(&mut self, cache: &Mirror, changes: &Changes, queue: &mut WorkQueue<Key>) {
        self.pods.update(changes.of::<Pod>());
        self.revisions.update(changes.of::<ControllerRevision>());
        for change in changes.of::<DaemonSet>() {
            self.failures.update(change, |set| &set.spec.template);
            queue.add_for_version(change.key.clone(), ObjectVersion::of_change(change));
        }
        for change in changes.of::<Pod>() {
            add_owners(cache, change, queue);
        }
        for change in changes.of::<ControllerRevision>() {
            add_owners(cache, change, queue);
        }
        for change in changes.of::<Node>() {
            add_affected(cache, change, queue);
        }
    }

    fn reconcile(&mut self, cache: &Mirror, key: &Key) -> Action {
        let Some(set) = cache.get::<DaemonSet>(&key.namespace, &key.name) else { return Action::None };
        if set.spec.selector.is_empty() {
            let message = "This daemon set is selecting all pods. A non-empty selector is required.";
            self.recorder.record(Reference::of(&**set), Severity::Warning, "SelectingAll", message);
            return Action::None;
        }
        // The garbage collector deletes the Pods of a DaemonSet that is being deleted.
        if set.metadata.deletion_timestamp.is_some() {
            return Action::None;
        }
        let matches = |labels: &ownership::Labels| set.spec.selector.matches(labels);
        let pods = self.pods.claim(cache, &set.metadata, matches, |_| true);
        let history = self.revisions.claim(cache, &set.metadata, matches, |_| true);
        let cluster = self.cluster.clone();
        let set = set.clone();
        if !pods.is_settled() {
            return Action::run(async move { pods.write(&cluster, KIND, &set.metadata).await });
        }
        if !history.is_settled() {
            return Action::run(async move { history.write(&cluster, KIND, &set.metadata).await });
        }
        let collisions = set.status.collision_count.unwrap_or_default();
        let owner =
            Owner { kind: KIND, meta: &set.metadata, template: &set.spec.template, hash_label: HASH_LABEL, collisions };
        let current = match owner.find(&history.owned) {
            Step::Current(current) => current,
            Step::Create(revision) if !ownership::selects_child(&self.recorder, &*set, matches, &revision) => {
                return Action::None;
            }
            step => {
                return Action::run(
                    async move { revisions::write(&cluster, KIND, &set.metadata, collisions, step).await },
                );
            }
        };
        let hash = current.metadata.labels.get(HASH_LABEL).cloned().unwrap_or_default();
        let now = Timestamp::now();
        let clock = Instant::now();
        let (nodes, lost) = self.nodes(cache, &set, &pods.owned, &hash, now, clock);
        let counted = DaemonSetStatus {
            observed_generation: set.metadata.generation,
            collision_count: set.status.collision_count,
            ..plan::count(&nodes)
        };
        let limits = limits(&set, usize::try_from(counted.desired_number_scheduled).unwrap_or_default());
        let surges = set.spec.update_strategy.kind == "RollingUpdate" && limits.max_surge > 0;
        let mut plan = plan::manage(&nodes, surges);
        plan.delete.extend(lost.into_iter().map(|pod| (pod, Reason::Superfluous)));
        if plan.is_empty() && set.spec.update_strategy.kind == "RollingUpdate" {
            plan = plan::roll(&nodes, limits);
        }
        plan.create.truncate(BURST);
        if let Some(node) = plan.create.first() {
            let pod = placement::pod_for(&set, node, &hash);
            if !ownership::selects_child(&self.recorder, &*set, matches, &pod) {
                return Action::None;
            }
        }
        plan.delete.truncate(BURST);
        for (pod, _) in plan.delete.iter().filter(|(_, reason)| *reason == Reason::Failed) {
            self.failures.count(&set.metadata.uid, placement::node_of(pod).unwrap_or_default(), clock);
        }
        let limit = set.spec.revision_history_limit.unwrap_or(HISTORY);
        let is_used = |revision: &ControllerRevision| {
            let label = revision.metadata.labels.get(HASH_LABEL);
            revision.metadata.uid == current.metadata.uid
                || pods.owned.iter().any(|pod| pod.metadata.labels.get(HASH_LABEL) == label)
        };
        let old = revisions::superfluous(&history.owned, usize::try_from(limit).unwrap_or(usize::MAX), is_used);
        let next = [self.failures.next(&set.metadata.uid, clock), next_availability(&pods.owned, &set, now)];
        let requeue =
            next.into_iter().flatten().min().map_or(Requeue::OnChange, |after| Requeue::At(Instant::now() + after));
        if plan.is_empty() && old.is_empty() && counted == set.status {
            return match requeue {
                Requeue::At(at) => Action::RequeueAt(at),
                Requeue::OnChange | Requeue::Now => Action::None,
            };
        }
        let writer = Writer { cluster, recorder: self.recorder.clone(), set };
        Action::run(async move {
            let mut outcome = writer.carry_out(plan, &hash).await;
            revisions::delete(&writer.cluster, old, &mut outcome).await;
            outcome.requeue = requeue;
            if counted != writer.set.status {
                match writer.write_status(&counted).await {
                    Ok(version) => outcome.written.push(version),
                    // A deleted DaemonSet has no status.
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

/// Time until the next ready Pod becomes available.
fn next_availability(pods: &[Arc<Pod>], set: &DaemonSet, now: Timestamp) -> Option<Duration> {
    let times =
        pods.iter().filter_map(|pod| availability::after(&pod.status.conditions, set.spec.min_ready_seconds, now));
    times.filter(|after| *after > Duration::ZERO).min()
}

/// The limits of a rolling update; percentages are rounded up. If nothing may be missing and
/// nothing may be added, no Pod could ever be replaced: then one may be missing.
fn limits(set: &DaemonSet, nodes: usize) -> Limits {
    let update = &set.spec.update_strategy.rolling_update;
    let limits = Limits {
        max_unavailable: availability::amount(&update.max_unavailable, nodes),
        max_surge: availability::amount(&update.max_surge, nodes),
    };
    if limits.max_unavailable == 0 && limits.max_surge == 0 { Limits { max_unavailable: 1, ..limits } } else { limits }
}

/// Adds the DaemonSets that a change of an owned object concerns: its owners before and after it,
/// and those that may adopt it.
fn add_owners<T: View>(cache: &Mirror, change: &Change<T>, queue: &mut WorkQueue<Key>) {
    let namespace = &change.key.namespace;
    for object in [&change.old, &change.new].into_iter().flatten() {
        if let Some(owner) = ownership::controller_of_kind(object.meta(), KIND) {
            queue.add(Key::new(namespace.clone(), owner.name.as_str()));
        }
    }
    let Some(new) = change.new.as_ref().filter(|new| new.meta().controller().is_none()) else { return };
    let unchanged = change
        .old
        .as_ref()
        .is_some_and(|old| old.meta().labels == new.meta().labels && old.meta().controller().is_none());
    if unchanged {
        return;
    }
    let sets = cache.in_namespace::<DaemonSet>(namespace);
    for set in sets.filter(|set| set.spec.selector.matches(&new.meta().labels)) {
        queue.add(Key::new(namespace.clone(), set.metadata.name.as_str()));
    }
}

/// Adds the DaemonSets for which a change of a Node makes a difference.
fn add_affected(cache: &Mirror, change: &Change<Node>, queue: &mut WorkQueue<Key>) {
    let same = match (&change.old, &change.new) {
        (Some(old), Some(new)) => old.decides_as(new),
        _ => false,
    };
    if same {
        return;
    }
    for set in cache.all::<DaemonSet>() {
        let Some(spec) = placement::template_spec(set) else { continue };
        let placed = |node: &Option<Arc<Node>>| node.as_ref().map(|node| place(&spec, node));
        if placed(&change.old) != placed(&change.new) {
            queue.add(Key::new(set.metadata.namespace.as_str(), set.metadata.name.as_str()));
        }
    }
}

/// Writes for one DaemonSet.
struct Writer {
    cluster: Cluster,
    recorder: Recorder,
    set: Arc<DaemonSet>,
}

impl Writer {
    /// Creates and deletes Pods. Creation goes in batches of 1, 2, 4 and so on, and stops at the
    /// first batch with an error.
    async fn carry_out(&self, plan: Plan, hash: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let mut left = plan.create;
        let mut batch = 1;
        while !left.is_empty() && outcome.error.is_none() {
            let later = left.split_off(batch.min(left.len()));
            let created = stream::iter(left).map(|node| self.create_pod(node, hash));
            record(created.buffer_unordered(CONCURRENT_REQUESTS).collect().await, &mut outcome);
            left = later;
            batch *= 2;
        }
        let deleted = stream::iter(plan.delete).map(|(pod, reason)| self.delete_pod(pod, reason));
        record(deleted.buffer_unordered(CONCURRENT_REQUESTS).collect().await, &mut outcome);
        outcome
    }

    async fn create_pod(&self, node: String, hash: &str) -> Result<ObjectVersion, Error> {
        match self.cluster.create(&kinds::POD, &placement::pod_for(&self.set, &node, hash)).await {
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

    async fn delete_pod(&self, pod: Arc<Pod>, reason: Reason) -> Result<ObjectVersion, Error> {
        let Meta { namespace, name, uid, .. } = &pod.metadata;
        let node = placement::node_of(&pod).unwrap_or_default();
        match reason {
            Reason::Failed => {
                let message = format!("Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it");
                self.event(Severity::Warning, "FailedDaemonPod", message);
            }
            Reason::Succeeded => {
                let message =
                    format!("Found succeeded daemon pod {namespace}/{name} on node {node}, will try to delete it");
                self.event(Severity::Normal, "SucceededDaemonPod", message);
            }
            Reason::Superfluous => {}
        }
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

    async fn write_status(&self, status: &DaemonSetStatus) -> Result<ObjectVersion, Error> {
        let Meta { namespace, name, resource_version, .. } = &self.set.metadata;
        let status: Value = serde_json::to_value(status).expect("numbers are JSON");
        let patch = json!({"metadata": {"resourceVersion": resource_version}, "status": status});
        let written = self.cluster.patch_status(KIND, namespace, name, &Patch::Merge(patch)).await?;
        Ok(ObjectVersion::of(KIND, &written))
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
