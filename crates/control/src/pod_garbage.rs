//! The pod garbage collector: deletes the Pods of a Node that does not exist, after a while; Pods
//! that are being deleted and never were on a Node; and the oldest Pods that have ended, if there
//! are too many of those.
//!
//! Only Pods that have ended are remembered, by name and age: at most [`MAX_ENDED_PODS`], since
//! those beyond are deleted. The Pods of a missing Node are asked for when its time has come.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use fairlead_api::view::Pod;
use fairlead_api::{Look, kinds};
use fairlead_cluster::controller::QueueMeter;
use fairlead_cluster::{Cluster, Delete, Error, Event, Key, Object, Patch, Selection, Step};
use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::queue::Queue;

/// So much is done at a time.
const AT_ONCE: usize = 8;
/// Maximum number of Pods that have ended, in all namespaces
/// (kube-controller-manager --terminated-pod-gc-threshold; pkg/controller/podgc/config/v1alpha1).
pub(crate) const MAX_ENDED_PODS: usize = 12_500;
/// Reason in the status of a Pod that its Node has evicted (pkg/kubelet/eviction).
const EVICTED: &str = "Evicted";

/// What there is to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Work {
    /// A Node may be missing.
    Node(Box<str>),
    /// A Pod is on its way out that never was on a Node.
    Pod(Key),
    /// A Pod has ended that is one too many.
    Ended(Key),
}

/// Runs until told to stop. The Pods of a Node go when it was missing for the time of `quarantine`.
pub(crate) async fn run(
    cluster: Cluster,
    quarantine: Duration,
    max_ended: usize,
    meter: QueueMeter,
    stop: CancellationToken,
) {
    let nodes = cluster.follow(Selection::all(&kinds::NODE)).map(|step| (true, step));
    let pods = cluster.follow(Selection::all(&kinds::POD)).map(|step| (false, step));
    let mut steps = stream::select(nodes, pods);
    let queue = Queue::new(meter);
    let ended = EndedPods::new(max_ended);
    let mut collector = Collector { quarantine, nodes: HashSet::new(), listed: HashSet::new(), ended, queue };
    let mut tasks = JoinSet::new();
    loop {
        while tasks.len() < AT_ONCE
            && let Some(work) = collector.next()
        {
            let cluster = cluster.clone();
            tasks.spawn(async move { (collect(&cluster, &work).await, work) });
        }
        let due = collector.queue.due().unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            () = stop.cancelled() => return,
            Some((of_node, step)) = steps.next() => if of_node { collector.node(step) } else { collector.pod(step) },
            Some(ended) = tasks.join_next() => match ended {
                Ok((Ok(()), work)) => collector.queue.done(work),
                Ok((Err(error), work)) => {
                    tracing::warn!(?work, %error, "cannot collect Pods");
                    collector.queue.failed(work);
                }
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            () = sleep_until(due) => {}
        }
    }
}

struct Collector {
    quarantine: Duration,
    /// The Nodes there are.
    nodes: HashSet<Box<str>>,
    /// Those of the list that is coming in.
    listed: HashSet<Box<str>>,
    ended: EndedPods,
    queue: Queue<Work>,
}

/// Pods that have ended and are not being deleted.
#[derive(Debug)]
struct EndedPods {
    max: usize,
    ages: HashMap<Key, EndedAge>,
    /// Keys of `ages` in the order in which the Pods are deleted.
    order: BTreeSet<(EndedAge, Key)>,
}

/// Position in the order in which Pods that have ended are deleted: evicted Pods first, then the
/// oldest (pkg/controller/podgc, byEvictionAndCreationTimestamp).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct EndedAge {
    is_kept_longer: bool,
    created: Box<str>,
}

impl EndedPods {
    fn new(max: usize) -> EndedPods {
        EndedPods { max, ages: HashMap::new(), order: BTreeSet::new() }
    }

    fn add(&mut self, key: &Key, age: EndedAge) {
        self.remove(key);
        self.order.insert((age.clone(), key.clone()));
        self.ages.insert(key.clone(), age);
    }

    fn remove(&mut self, key: &Key) {
        if let Some(age) = self.ages.remove(key) {
            self.order.remove(&(age, key.clone()));
        }
    }

    fn clear(&mut self) {
        self.ages.clear();
        self.order.clear();
    }

    /// Removes the next Pod to delete, if there are more than the maximum.
    fn pop_excess(&mut self) -> Option<Key> {
        if self.ages.len() <= self.max {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.ages.remove(&key);
        Some(key)
    }
}

/// What must be known of a Pod.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Bound {
    metadata: Marked,
    spec: Place,
    status: PodPhase,
}

/// The phase of a Pod, and the reason for it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodPhase {
    phase: String,
    reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Marked {
    creation_timestamp: Option<String>,
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Place {
    node_name: String,
}

impl Collector {
    fn node(&mut self, step: Step) {
        match step {
            Step::Listing => self.listed.clear(),
            Step::Objects(objects) => self.listed.extend(objects.into_iter().map(|object| object.key.name)),
            Step::Listed(_) => {
                let before = std::mem::replace(&mut self.nodes, std::mem::take(&mut self.listed));
                let missing: Vec<_> = before.into_iter().filter(|name| !self.nodes.contains(name)).collect();
                missing.into_iter().for_each(|name| self.miss(name));
            }
            Step::Changed(events, _) => {
                for event in events {
                    match event {
                        Event::Put(object) => drop(self.nodes.insert(object.key.name)),
                        Event::Delete(key, _) => {
                            self.nodes.remove(&key.name);
                            self.miss(key.name);
                        }
                    }
                }
            }
            Step::Trouble(failure) => tracing::debug!(why = failure.message, "cannot follow Nodes"),
        }
    }

    fn pod(&mut self, step: Step) {
        match step {
            Step::Objects(objects) => objects.iter().for_each(|object| self.see(object)),
            Step::Changed(events, _) => events.iter().for_each(|event| match event {
                Event::Put(object) => self.see(object),
                Event::Delete(key, _) => self.ended.remove(key),
            }),
            Step::Listing => self.ended.clear(),
            Step::Listed(_) => {}
            Step::Trouble(failure) => tracing::debug!(why = failure.message, "cannot follow Pods"),
        }
        while let Some(key) = self.ended.pop_excess() {
            self.queue.add(Work::Ended(key));
        }
    }

    fn see(&mut self, object: &Object) {
        let Ok(pod) = serde_json::from_slice::<Bound>(&object.json) else { return };
        if pod.metadata.deletion_timestamp.is_none() && matches!(pod.status.phase.as_str(), "Succeeded" | "Failed") {
            let age = EndedAge {
                is_kept_longer: pod.status.reason != EVICTED,
                created: pod.metadata.creation_timestamp.unwrap_or_default().into(),
            };
            self.ended.add(&object.key, age);
        } else {
            self.ended.remove(&object.key);
        }
        let node = pod.spec.node_name;
        if node.is_empty() {
            if pod.metadata.deletion_timestamp.is_some() {
                self.queue.add(Work::Pod(object.key.clone()));
            }
        } else if !self.nodes.contains(node.as_str()) {
            self.miss(node.into());
        }
    }

    /// A Node is not there. It may be that it is only not seen yet.
    fn miss(&mut self, node: Box<str>) {
        self.queue.add_at(Work::Node(node), Instant::now() + self.quarantine);
    }

    /// The next thing to do.
    fn next(&mut self) -> Option<Work> {
        loop {
            match self.queue.take()? {
                Work::Node(name) if self.nodes.contains(&name) => self.queue.done(Work::Node(name)),
                work => return Some(work),
            }
        }
    }
}

async fn collect(cluster: &Cluster, work: &Work) -> Result<(), Error> {
    match work {
        Work::Node(name) => match cluster.get(&kinds::NODE, "", name).await {
            Err(Error::NotFound(_)) => collect_node(cluster, name).await,
            other => other.map(drop),
        },
        Work::Pod(key) => match cluster.get(&kinds::POD, &key.namespace, &key.name).await {
            Err(Error::NotFound(_)) => Ok(()),
            other => {
                let pod = Pod::deserialize(other?).unwrap_or_default();
                let ours = pod.is_terminating() && pod.spec.node_name.is_empty();
                if ours { end(cluster, &pod, None).await } else { Ok(()) }
            }
        },
        Work::Ended(key) => match cluster.get(&kinds::POD, &key.namespace, &key.name).await {
            Err(Error::NotFound(_)) => Ok(()),
            other => {
                let pod = Pod::deserialize(other?).unwrap_or_default();
                if pod.is_terminal() { end(cluster, &pod, None).await } else { Ok(()) }
            }
        },
    }
}

/// Ends all Pods of a Node that does not exist.
async fn collect_node(cluster: &Cluster, node: &str) -> Result<(), Error> {
    let selection = Selection::all(&kinds::POD).with_fields(format!("spec.nodeName={node}"));
    for object in cluster.list(&selection).await?.objects {
        match serde_json::from_slice::<Pod>(&object.json) {
            Ok(pod) => {
                let condition = json!({
                    "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                    "message": "PodGC: node no longer exists", "lastTransitionTime": format!("{:.0}", Timestamp::now()),
                });
                end(cluster, &pod, Some(condition)).await?;
                tracing::info!(pod = %object.key, node, "deleted a Pod of a Node that does not exist");
            }
            Err(error) => tracing::warn!(pod = %object.key, %error, "cannot read a Pod"),
        }
    }
    Ok(())
}

/// Says that a Pod has failed, since nobody else will, and deletes it at once.
async fn end(cluster: &Cluster, pod: &Pod, condition: Option<Value>) -> Result<(), Error> {
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    if !pod.is_terminal() {
        let mut status = json!({"phase": "Failed"});
        if let Some(condition) = condition {
            status.set("conditions", json!([condition]));
        }
        let patch = Patch::Strategic(json!({"metadata": {"uid": pod.metadata.uid}, "status": status}));
        match cluster.patch_status(&kinds::POD, namespace, name, &patch).await {
            Err(Error::NotFound(_) | Error::Conflict(_)) => return Ok(()),
            other => other?,
        };
    }
    let how = Delete { uid: Some(pod.metadata.uid.clone()), grace_seconds: Some(0), ..Delete::default() };
    match cluster.delete(&kinds::POD, namespace, name, &how).await {
        Err(Error::NotFound(_) | Error::Conflict(_)) => Ok(()),
        other => other.map(drop),
    }
}
