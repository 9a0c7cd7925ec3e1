//! The pod garbage collector: Pods nobody can end any more are deleted. Those are the Pods of a Node that does not exist, after
//! a while, and Pods on their way out that never were on a Node.
//!
//! No Pod is remembered: the Pods of a missing Node are asked for when its time has come.

use std::collections::HashSet;
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

/// What there is to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Work {
    /// A Node may be missing.
    Node(Box<str>),
    /// A Pod is on its way out that never was on a Node.
    Pod(Key),
}

/// Runs until told to stop. The Pods of a Node go when it was missing for the time of `quarantine`.
pub(crate) async fn run(cluster: Cluster, quarantine: Duration, meter: QueueMeter, stop: CancellationToken) {
    let nodes = cluster.follow(Selection::all(&kinds::NODE)).map(|step| (true, step));
    let pods = cluster.follow(Selection::all(&kinds::POD)).map(|step| (false, step));
    let mut steps = stream::select(nodes, pods);
    let queue = Queue::new(meter);
    let mut collector = Collector { quarantine, nodes: HashSet::new(), listed: HashSet::new(), queue };
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
    queue: Queue<Work>,
}

/// What must be known of a Pod.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Bound {
    metadata: Marked,
    spec: Place,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Marked {
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
            Step::Changed(events, _) => events.iter().for_each(|event| {
                if let Event::Put(object) = event {
                    self.see(object);
                }
            }),
            Step::Listing | Step::Listed(_) => {}
            Step::Trouble(failure) => tracing::debug!(why = failure.message, "cannot follow Pods"),
        }
    }

    fn see(&mut self, object: &Object) {
        let Ok(pod) = serde_json::from_slice::<Bound>(&object.json) else { return };
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
