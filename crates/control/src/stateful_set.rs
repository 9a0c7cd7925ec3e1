//! Keeps the Pods `web-0`, `web-1`, ... of each StatefulSet (pkg/controller/statefulset): started
//! in order, each when the one before is available; stopped in reverse order; replaced one by one
//! when the template changes.
//!
//! Each Pod has its name as host name and the Service of the set as subdomain, so that
//! `web-0.web.default.svc` is its name in DNS. There are no claims of volumes: a StatefulSet that
//! asks for them makes no Pods and says so.

mod plan;
pub(crate) mod view;

use std::sync::Arc;
use std::time::Duration;

use fairlead_api::view::{Condition, Meta, Pod, View};
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
use plan::{Plan, StatefulPod, Template};
use view::{StatefulSet, StatefulSetStatus};

pub(crate) const SETTINGS: Settings = Settings { spawn_actions: true, ..Settings::new("statefulset") };

/// The kind that this controller keeps.
const KIND: &Kind = &kinds::STATEFUL_SET;
/// Maximum number of requests in flight for one StatefulSet.
const CONCURRENT_REQUESTS: usize = 16;
/// Old revisions that are kept if the StatefulSet does not say how many.
const HISTORY: i32 = 10;
/// Label of a revision that holds its hash.
const REVISION_LABEL: &str = "controller.kubernetes.io/hash";
/// Labels of a Pod that hold its name and its number.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// Caches StatefulSets, their revisions and all Pods.
pub(crate) fn cache(cluster: &Cluster) -> Mirror {
    Mirror::builder(cluster).with::<StatefulSet>().with::<ControllerRevision>().with::<Pod>().build()
}

pub(crate) struct StatefulSetController {
    cluster: Cluster,
    recorder: Recorder,
    pods: OwnerIndex<Pod>,
    revisions: OwnerIndex<ControllerRevision>,
    /// Failed Pods, by name.
    failures: Failures,
}

impl StatefulSetController {
    pub(crate) fn new(cluster: Cluster, host: &str) -> StatefulSetController {
        let recorder = Recorder::new(&cluster, "statefulset-controller", host);
        StatefulSetController {
            cluster,
            recorder,
            pods: OwnerIndex::new(),
            revisions: OwnerIndex::new(),
            failures: Failures::default(),
        }
    }
}

impl StatefulSetController {
    fn stateful_pod(&self, set: &StatefulSet, pod: &Arc<Pod>, now: Timestamp, clock: Instant) -> Option<StatefulPod> {
        let Meta { name, labels, .. } = &pod.metadata;
        let ordinal = set.ordinal(name)?;
        let is_running = pod.status.phase == "Running";
        let conditions = &pod.status.conditions;
        let available = availability::after(conditions, set.spec.min_ready_seconds, now);
        Some(StatefulPod {
            ordinal,
            revision: labels.get(HASH_LABEL).cloned().unwrap_or_default(),
            is_ready: is_running && Condition::is_true(conditions, "Ready"),
            is_available: is_running && available == Some(Duration::ZERO),
            backs_off: pod.status.phase == "Failed" && self.failures.is_too_soon(&set.metadata.uid, name, clock),
            is_labeled: labels.get(POD_NAME) == Some(name),
            pod: pod.clone(),
        })
    }
}

impl Controller for StatefulSetController {
    type Key = Key;

    fn enqueue(&mut self, cache: &Mirror, changes: &Changes, queue: &mut WorkQueue<Key>) {
        self.pods.update(changes.of::<Pod>());
        self.revisions.update(changes.of::<ControllerRevision>());
        for change in changes.of::<StatefulSet>() {
            self.failures.update(change, |set| &set.spec.template);
            queue.add_for_version(change.key.clone(), ObjectVersion::of_change(change));
        }
        for change in changes.of::<Pod>() {
            add_owners(cache, change, queue);
        }
        for change in changes.of::<ControllerRevision>() {
            add_owners(cache, change, queue);
        }
    }

    fn reconcile(&mut self, cache: &Mirror, key: &Key) -> Action {
        let Some(set) = cache.get::<StatefulSet>(&key.namespace, &key.name) else { return Action::None };
        if set.spec.selector.is_empty() {
            return Action::None;
        }
        let matches = |labels: &ownership::Labels| set.spec.selector.matches(labels);
        let pods = self.pods.claim(cache, &set.metadata, matches, |pod| set.ordinal(&pod.metadata.name).is_some());
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
        let owner = Owner {
            kind: KIND,
            meta: &set.metadata,
            template: &set.spec.template,
            hash_label: REVISION_LABEL,
            collisions,
        };
        let update = match owner.find(&history.owned) {
            Step::Current(update) => update,
            // The garbage collector takes the revisions of a StatefulSet that is being deleted.
            _ if set.metadata.deletion_timestamp.is_some() => return Action::None,
            Step::Create(revision) if !ownership::selects_child(&self.recorder, &*set, matches, &revision) => {
                return Action::None;
            }
            step => {
                return Action::run(
                    async move { revisions::write(&cluster, KIND, &set.metadata, collisions, step).await },
                );
            }
        };
        let named = |revision: &&Arc<ControllerRevision>| revision.metadata.name == set.status.current_revision;
        let current = history.owned.iter().find(named).unwrap_or(&update).clone();
        let now = Timestamp::now();
        let clock = Instant::now();
        let of_set: Vec<StatefulPod> =
            pods.owned.iter().filter_map(|pod| self.stateful_pod(&set, pod, now, clock)).collect();
        let counted = plan::count(&set, &of_set, &current.metadata.name, &update.metadata.name);
        let plan = if set.metadata.deletion_timestamp.is_some() {
            Plan::default()
        } else {
            plan::decide(&set, &of_set, &update.metadata.name)
        };
        for (ordinal, template) in &plan.create {
            let pod = pod_for(&set, *ordinal, template.revision(&current, &update));
            if !ownership::selects_child(&self.recorder, &*set, matches, &pod) {
                return Action::None;
            }
        }
        for pod in plan.delete.iter().filter(|pod| pod.status.phase == "Failed") {
            self.failures.count(&set.metadata.uid, &pod.metadata.name, clock);
        }
        let limit = set.spec.revision_history_limit.unwrap_or(HISTORY);
        let is_used = |revision: &ControllerRevision| {
            let name = &revision.metadata.name;
            *name == current.metadata.name
                || *name == update.metadata.name
                || of_set.iter().any(|pod| pod.revision == *name)
        };
        // A negative limit keeps all.
        let old = revisions::superfluous(&history.owned, usize::try_from(limit).unwrap_or(usize::MAX), is_used);
        let times = of_set
            .iter()
            .filter_map(|pod| availability::after(&pod.pod.status.conditions, set.spec.min_ready_seconds, now));
        let times = times.filter(|after| *after > Duration::ZERO).chain(self.failures.next(&set.metadata.uid, clock));
        let requeue = match times.min() {
            Some(after) => Requeue::At(Instant::now() + after),
            None => Requeue::OnChange,
        };
        if plan.is_empty() && old.is_empty() && counted == set.status {
            return match requeue {
                Requeue::At(at) => Action::RequeueAt(at),
                Requeue::OnChange | Requeue::Now => Action::None,
            };
        }
        let writer = Writer { cluster, recorder: self.recorder.clone(), set, current, update };
        Action::run(async move {
            let mut outcome = writer.carry_out(plan).await;
            revisions::delete(&writer.cluster, old, &mut outcome).await;
            outcome.requeue = requeue;
            if counted != writer.set.status {
                match writer.write_status(&counted).await {
                    Ok(version) => outcome.written.push(version),
                    // A deleted StatefulSet has no status.
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

/// Adds the StatefulSets that a change of an owned object concerns: its owners before and after it,
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
    let sets = cache.in_namespace::<StatefulSet>(namespace);
    for set in sets.filter(|set| set.spec.selector.matches(&new.meta().labels)) {
        queue.add(Key::new(namespace.clone(), set.metadata.name.as_str()));
    }
}

/// Writes for one StatefulSet.
struct Writer {
    cluster: Cluster,
    recorder: Recorder,
    set: Arc<StatefulSet>,
    current: Arc<ControllerRevision>,
    update: Arc<ControllerRevision>,
}

impl Writer {
    async fn carry_out(&self, plan: Plan) -> Outcome {
        let mut outcome = Outcome::default();
        if !plan.create.is_empty() && !self.set.spec.volume_claim_templates.is_empty() {
            let message = "spec.volumeClaimTemplates: there are no PersistentVolumeClaims here, so no Pod is created";
            self.event(Severity::Warning, "FailedCreate", message.to_owned());
        } else {
            let created = stream::iter(plan.create).map(|(ordinal, template)| self.create_pod(ordinal, template));
            record(created.buffered(CONCURRENT_REQUESTS).collect().await, &mut outcome);
        }
        let labeled = stream::iter(plan.label).map(|(pod, ordinal)| self.label_pod(pod, ordinal));
        record(labeled.buffered(CONCURRENT_REQUESTS).collect().await, &mut outcome);
        let deleted = stream::iter(plan.delete).map(|pod| self.delete_pod(pod));
        record(deleted.buffered(CONCURRENT_REQUESTS).collect().await, &mut outcome);
        outcome
    }

    async fn create_pod(&self, ordinal: u32, template: Template) -> Result<ObjectVersion, Error> {
        let pod = pod_for(&self.set, ordinal, template.revision(&self.current, &self.update));
        let (name, set) = (pod.at("metadata").text("name"), &self.set.metadata.name);
        match self.cluster.create(&kinds::POD, &pod).await {
            Ok(created) => {
                let message = format!("create Pod {name} in StatefulSet {set} successful");
                self.event(Severity::Normal, "SuccessfulCreate", message);
                Ok(ObjectVersion::of(&kinds::POD, &created))
            }
            Err(error) => {
                if !error.is_namespace_terminating() {
                    let message = format!("create Pod {name} in StatefulSet {set} failed error: {error}");
                    self.event(Severity::Warning, "FailedCreate", message);
                }
                Err(error)
            }
        }
    }

    /// Sets the labels that name a Pod, which somebody has changed.
    async fn label_pod(&self, pod: Arc<Pod>, ordinal: u32) -> Result<ObjectVersion, Error> {
        let Meta { namespace, name, uid, .. } = &pod.metadata;
        let labels = json!({POD_NAME: name, POD_INDEX: ordinal.to_string()});
        let patch = Patch::Merge(json!({"metadata": {"uid": uid, "labels": labels}}));
        let written = self.cluster.patch(&kinds::POD, namespace, name, &patch).await?;
        Ok(ObjectVersion::of(&kinds::POD, &written))
    }

    async fn delete_pod(&self, pod: Arc<Pod>) -> Result<ObjectVersion, Error> {
        let Meta { namespace, name, uid, .. } = &pod.metadata;
        let set = &self.set.metadata.name;
        let deleted = ObjectVersion::deleted(&kinds::POD, Key::new(namespace.as_str(), name.as_str()));
        let how = Delete { uid: Some(uid.clone()), ..Delete::default() };
        match self.cluster.delete(&kinds::POD, namespace, name, &how).await {
            Ok(_) => {
                let message = format!("delete Pod {name} in StatefulSet {set} successful");
                self.event(Severity::Normal, "SuccessfulDelete", message);
                Ok(deleted)
            }
            // Another client was faster.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(deleted),
            Err(error) => {
                let message = format!("delete Pod {name} in StatefulSet {set} failed error: {error}");
                self.event(Severity::Warning, "FailedDelete", message);
                Err(error)
            }
        }
    }

    async fn write_status(&self, status: &StatefulSetStatus) -> Result<ObjectVersion, Error> {
        let Meta { namespace, name, resource_version, .. } = &self.set.metadata;
        let status: Value = serde_json::to_value(status).expect("numbers and texts are JSON");
        let patch = json!({"metadata": {"resourceVersion": resource_version}, "status": status});
        let written = self.cluster.patch_status(KIND, namespace, name, &Patch::Merge(patch)).await?;
        Ok(ObjectVersion::of(KIND, &written))
    }

    fn event(&self, severity: Severity, reason: &'static str, message: String) {
        self.recorder.record(Reference::of(&*self.set), severity, reason, message);
    }
}

/// The Pod with this number, made from the template of a revision.
fn pod_for(set: &StatefulSet, ordinal: u32, revision: &ControllerRevision) -> Value {
    let name = format!("{}-{ordinal}", set.metadata.name);
    let template = revision.data.at("spec").at("template");
    let mut labels = template.at("metadata").at("labels").clone();
    labels.set(POD_NAME, name.as_str());
    labels.set(POD_INDEX, ordinal.to_string());
    labels.set(HASH_LABEL, revision.metadata.name.as_str());
    let mut metadata = json!({
        "name": name, "namespace": set.metadata.namespace, "labels": labels,
        "ownerReferences": [ownership::reference(KIND, &set.metadata)],
    });
    for field in ["annotations", "finalizers"] {
        let value = template.at("metadata").at(field);
        if !value.is_null() {
            metadata.set(field, value.clone());
        }
    }
    let mut spec = template.at("spec").clone();
    spec.set("hostname", name.as_str());
    spec.set("subdomain", set.spec.service_name.as_str());
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
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
