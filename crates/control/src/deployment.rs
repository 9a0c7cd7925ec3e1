//! Rolls out Deployments: each template becomes a ReplicaSet, and the sizes of the ReplicaSets
//! change step by step until only the new one has Pods (pkg/controller/deployment). [`rollout`]
//! decides, this file writes.

mod conditions;
mod revision;
mod rollout;

use std::sync::Arc;

use fairlead_api::view::{Deployment, Meta, ObjectSelector, Pod, ReplicaSet, SelectorFields};
use fairlead_api::{Look, kinds};
use fairlead_cluster::controller::{Action, Controller, ObjectVersion, Outcome, Requeue, Settings, WorkQueue};
use fairlead_cluster::{Change, Changes, Cluster, Delete, Error, Key, Mirror, Patch, Recorder, Reference, Severity};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::ownership::{self, OwnerIndex};
use rollout::{Plan, PlannedSet};

pub(crate) const SETTINGS: Settings = Settings::new("deployment");

/// Caches all Deployments, ReplicaSets and Pods.
pub(crate) fn cache(cluster: &Cluster) -> Mirror {
    Mirror::builder(cluster).with::<Deployment>().with::<ReplicaSet>().with::<Pod>().build()
}

pub(crate) struct DeploymentController {
    cluster: Cluster,
    recorder: Recorder,
    sets: OwnerIndex<ReplicaSet>,
    pods: OwnerIndex<Pod>,
}

impl DeploymentController {
    pub(crate) fn new(cluster: Cluster, host: &str) -> DeploymentController {
        let recorder = Recorder::new(&cluster, "deployment-controller", host);
        DeploymentController { cluster, recorder, sets: OwnerIndex::new(), pods: OwnerIndex::new() }
    }
}

impl Controller for DeploymentController {
    type Key = Key;

    fn enqueue(&mut self, cache: &Mirror, changes: &Changes, queue: &mut WorkQueue<Key>) {
        self.sets.update(changes.of::<ReplicaSet>());
        self.pods.update(changes.of::<Pod>());
        for change in changes.of::<Deployment>() {
            queue.add_for_version(change.key.clone(), ObjectVersion::of_change(change));
        }
        for change in changes.of::<ReplicaSet>() {
            add_owners(cache, change, queue);
        }
        for change in changes.of::<Pod>() {
            add_for_ended_pod(cache, change, queue);
        }
    }

    fn reconcile(&mut self, cache: &Mirror, key: &Key) -> Action {
        let Some(deployment) = cache.get::<Deployment>(&key.namespace, &key.name) else { return Action::None };
        let selector = &deployment.spec.selector;
        let claims = self.sets.claim(cache, &deployment.metadata, |labels| selector.matches(labels), |_| true);
        if !claims.is_settled() {
            let cluster = self.cluster.clone();
            let deployment = deployment.clone();
            return Action::run(async move { claims.write(&cluster, &kinds::DEPLOYMENT, &deployment.metadata).await });
        }
        let has_running_pods = |uid: &str| self.pods.owned_by(cache, uid).any(|pod| !pod.is_terminal());
        let plan = rollout::plan(deployment, claims.owned, has_running_pods, Timestamp::now());
        if plan.sets.iter().any(|set| set.object.is_none()) {
            let hash = revision::template_hash(&deployment.spec.template, deployment.status.collision_count);
            let labels = rollout::labels_with_hash(&deployment.spec.template, &hash);
            let child = json!({"kind": kinds::REPLICA_SET.kind, "metadata": {"labels": labels}});
            let matches = |labels: &ownership::Labels| selector.matches(labels);
            if !ownership::selects_child(&self.recorder, &**deployment, matches, &child) {
                return Action::None;
            }
        }
        let requeue = match plan.deadline {
            Some(after) => Requeue::At(Instant::now() + after),
            None => Requeue::OnChange,
        };
        let has_revision = plan.revision.is_none()
            || plan.revision.as_ref() == deployment.metadata.annotations.get(revision::REVISION);
        if has_revision && plan.sets.is_empty() && plan.delete.is_empty() && plan.status == deployment.status {
            return match requeue {
                Requeue::At(at) => Action::RequeueAt(at),
                Requeue::OnChange | Requeue::Now => Action::None,
            };
        }
        let writer = Writer {
            cluster: self.cluster.clone(),
            recorder: self.recorder.clone(),
            deployment: deployment.clone(),
            resource_version: deployment.metadata.resource_version.clone(),
        };
        Action::run(async move {
            let mut outcome = Outcome { requeue, ..Outcome::default() };
            let mut writer = writer;
            outcome.error = writer.write(plan, has_revision, &mut outcome.written, &mut outcome.requeue).await.err();
            outcome
        })
    }
}

/// Adds the Deployments that a change of a ReplicaSet concerns: the owner before and after it, and
/// for a ReplicaSet without an owner those that may adopt it.
fn add_owners(cache: &Mirror, change: &Change<ReplicaSet>, queue: &mut WorkQueue<Key>) {
    let namespace = &change.key.namespace;
    for set in [&change.old, &change.new].into_iter().flatten() {
        if let Some(owner) = ownership::controller_of_kind(&set.metadata, &kinds::DEPLOYMENT) {
            queue.add(Key::new(namespace.clone(), owner.name.as_str()));
        }
    }
    let Some(new) = change.new.as_ref().filter(|set| set.metadata.controller().is_none()) else { return };
    let selects = |deployment: &&Arc<Deployment>| deployment.spec.selector.matches(&new.metadata.labels);
    for deployment in cache.in_namespace::<Deployment>(namespace).filter(selects) {
        queue.add(Key::new(namespace.clone(), deployment.metadata.name.as_str()));
    }
}

/// Adds the Deployment of a Pod that has ended or is gone, if it waits for that before it starts
/// new Pods.
fn add_for_ended_pod(cache: &Mirror, change: &Change<Pod>, queue: &mut WorkQueue<Key>) {
    let has_ended = change.new.as_ref().is_none_or(|pod| pod.is_terminal());
    let Some(pod) = change.old.as_ref().filter(|_| has_ended) else { return };
    let namespace = &change.key.namespace;
    let set = ownership::controller_of_kind(&pod.metadata, &kinds::REPLICA_SET);
    let set = set.and_then(|owner| cache.get::<ReplicaSet>(namespace, &owner.name));
    let owner = set.and_then(|set| ownership::controller_of_kind(&set.metadata, &kinds::DEPLOYMENT));
    let deployment = owner.and_then(|owner| cache.get::<Deployment>(namespace, &owner.name));
    if let Some(deployment) = deployment.filter(|deployment| deployment.spec.strategy.kind == "Recreate") {
        queue.add(Key::new(namespace.clone(), deployment.metadata.name.as_str()));
    }
}

/// Writes for one Deployment.
struct Writer {
    cluster: Cluster,
    recorder: Recorder,
    deployment: Arc<Deployment>,
    /// The resourceVersion of the Deployment after the last write.
    resource_version: String,
}

impl Writer {
    async fn write(
        &mut self,
        plan: Plan,
        has_revision: bool,
        written: &mut Vec<ObjectVersion>,
        requeue: &mut Requeue,
    ) -> Result<(), Error> {
        let Plan { sets, delete, revision, mut status, .. } = plan;
        for set in &sets {
            let result = match &set.object {
                Some(object) => self.update_set(set, object).await,
                None => self.create_set(set).await,
            };
            match result {
                Ok(version) => written.push(version),
                Err(CreateError::NameInUse) => {
                    // Another template has the same hash, or the name is that of a ReplicaSet of
                    // somebody else.
                    let collisions = self.deployment.status.collision_count.unwrap_or_default().saturating_add(1);
                    *requeue = Requeue::Now;
                    let patch = json!({"collisionCount": collisions});
                    return self.write_status(patch).await.map(|version| written.push(version));
                }
                Err(CreateError::Failed(error)) if set.object.is_none() && !error.is_namespace_terminating() => {
                    let message = format!("Failed to create new replica set {:?}: {error}", set.name);
                    self.event(Severity::Warning, "ReplicaSetCreateError", message.clone());
                    if conditions::progress_deadline(&self.deployment).is_some() {
                        let kind = conditions::PROGRESSING;
                        let reason = conditions::SET_CREATE_ERROR;
                        status = self.deployment.status.clone();
                        let now = Timestamp::now();
                        conditions::set(&mut status, conditions::condition(kind, "False", reason, message, now));
                        if status != self.deployment.status {
                            written.push(self.write_status(conditions::to_json(&status)).await?);
                        }
                    }
                    return Err(error);
                }
                Err(CreateError::Failed(error)) => return Err(error),
            }
        }
        for set in delete {
            let Meta { namespace, name, uid, .. } = &set.metadata;
            let how = Delete { uid: Some(uid.clone()), ..Delete::default() };
            match self.cluster.delete(&kinds::REPLICA_SET, namespace, name, &how).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {
                    let key = Key::new(namespace.as_str(), name.as_str());
                    written.push(ObjectVersion::deleted(&kinds::REPLICA_SET, key));
                }
            }
        }
        if let Some(revision) = revision.filter(|_| !has_revision) {
            written.push(self.write_revision(&revision).await?);
            // A change of annotations increases the generation of a Deployment, which the status
            // then has to follow.
            *requeue = Requeue::Now;
        }
        if status != self.deployment.status {
            written.push(self.write_status(conditions::to_json(&status)).await?);
        }
        Ok(())
    }

    /// Writes the size and annotations of a ReplicaSet.
    async fn update_set(&self, set: &PlannedSet, object: &ReplicaSet) -> Result<ObjectVersion, CreateError> {
        let Meta { namespace, name, resource_version, .. } = &object.metadata;
        let patch = json!({
            "metadata": {"resourceVersion": resource_version, "annotations": set.annotations},
            "spec": {"replicas": set.replicas, "minReadySeconds": set.min_ready_seconds},
        });
        let patched = self.cluster.patch(&kinds::REPLICA_SET, namespace, name, &Patch::Merge(patch)).await?;
        self.report_scaling(name, object.spec.replicas.unwrap_or(1), set.replicas);
        Ok(ObjectVersion::of(&kinds::REPLICA_SET, &patched))
    }

    async fn create_set(&self, set: &PlannedSet) -> Result<ObjectVersion, CreateError> {
        let Deployment { metadata, spec, status } = &*self.deployment;
        let hash = revision::template_hash(&spec.template, status.collision_count);
        let labels = rollout::labels_with_hash(&spec.template, &hash);
        let mut template = spec.template.clone();
        template.map_mut("metadata").insert("labels".to_owned(), labels.clone());
        let object = json!({
            "apiVersion": kinds::REPLICA_SET.api_version(),
            "kind": kinds::REPLICA_SET.kind,
            "metadata": {
                "name": set.name, "namespace": metadata.namespace, "labels": labels, "annotations": set.annotations,
                "ownerReferences": [ownership::reference(&kinds::DEPLOYMENT, metadata)],
            },
            "spec": {
                "replicas": set.replicas, "minReadySeconds": set.min_ready_seconds,
                "selector": selector_with_hash(&spec.selector, &hash), "template": template,
            },
        });
        match self.cluster.create(&kinds::REPLICA_SET, &object).await {
            Ok(created) => {
                self.report_scaling(&set.name, 0, set.replicas);
                Ok(ObjectVersion::of(&kinds::REPLICA_SET, &created))
            }
            Err(Error::AlreadyExists(_)) => {
                let found = self.cluster.get(&kinds::REPLICA_SET, &metadata.namespace, &set.name).await?;
                let mut owners = found.at("metadata").list("ownerReferences").iter();
                let is_own = owners.any(|owner| owner.text("uid") == metadata.uid);
                if is_own && revision::same_template(found.at("spec").at("template"), &spec.template) {
                    return Ok(ObjectVersion::of(&kinds::REPLICA_SET, &found));
                }
                Err(CreateError::NameInUse)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn write_revision(&mut self, revision: &str) -> Result<ObjectVersion, Error> {
        let Meta { namespace, name, .. } = &self.deployment.metadata;
        let metadata = json!({"resourceVersion": self.resource_version, "annotations": {revision::REVISION: revision}});
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let patched = self.cluster.patch(&kinds::DEPLOYMENT, namespace, name, &patch).await?;
        self.resource_version = patched.at("metadata").text("resourceVersion").to_owned();
        Ok(ObjectVersion::of(&kinds::DEPLOYMENT, &patched))
    }

    async fn write_status(&self, status: Value) -> Result<ObjectVersion, Error> {
        let Meta { namespace, name, .. } = &self.deployment.metadata;
        let patch = json!({"metadata": {"resourceVersion": self.resource_version}, "status": status});
        let patched = self.cluster.patch_status(&kinds::DEPLOYMENT, namespace, name, &Patch::Merge(patch)).await?;
        Ok(ObjectVersion::of(&kinds::DEPLOYMENT, &patched))
    }

    fn report_scaling(&self, name: &str, from: i32, to: i32) {
        if from != to {
            let direction = if from < to { "up" } else { "down" };
            let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
            self.event(Severity::Normal, "ScalingReplicaSet", message);
        }
    }

    fn event(&self, severity: Severity, reason: &'static str, message: String) {
        self.recorder.record(Reference::of(&*self.deployment), severity, reason, message);
    }
}

enum CreateError {
    /// There is a ReplicaSet of this name that is not the one to create.
    NameInUse,
    Failed(Error),
}

impl From<Error> for CreateError {
    fn from(error: Error) -> CreateError {
        CreateError::Failed(error)
    }
}

/// The selector of a Deployment, narrowed to the Pods of one ReplicaSet.
fn selector_with_hash(selector: &ObjectSelector, hash: &str) -> Value {
    let SelectorFields { match_labels, match_expressions } = selector.fields();
    let mut labels = json!(match_labels);
    labels.set(revision::HASH_LABEL, hash);
    let expressions: Vec<Value> = match_expressions
        .iter()
        .map(|expression| {
            let mut requirement = json!({"key": expression.key, "operator": expression.operator});
            if !expression.values.is_empty() {
                requirement.set("values", json!(expression.values));
            }
            requirement
        })
        .collect();
    let mut json = json!({"matchLabels": labels});
    if !expressions.is_empty() {
        json.set("matchExpressions", json!(expressions));
    }
    json
}
