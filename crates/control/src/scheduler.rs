//! The scheduler: a Pod without a Node is bound, once, to the ready Node that suits it and has the fewest Pods. One that suits
//! no Node says why, and is looked at again when Nodes change.
//!
//! What was decided counts before the API server shows it, so that Pods that come together do not all go to one Node.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::kinds;
use fairlead_api::view::Meta;
use fairlead_cluster::controller::QueueMeter;
use fairlead_cluster::{Change, Cluster, Error, Key, Method, Mirror, Patch, Recorder, Reference, Severity};
use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::queue::Queue;
use view::{Node, Pod};

pub(crate) mod fit;
pub(crate) mod view;

/// The schedulers a Pod may name and mean us.
const NAMES: [&str; 3] = ["", "default-scheduler", "fairlead"];
/// So many Pods are bound at a time.
const AT_ONCE: usize = 16;

/// Runs until told to stop.
pub(crate) async fn run(cluster: Cluster, host: String, meter: QueueMeter, stop: CancellationToken) {
    let mut mirror = Mirror::builder(&cluster).with::<Pod>().with::<Node>().build();
    let writer = Writer { recorder: Recorder::new(&cluster, "default-scheduler", &host), cluster };
    let mut scheduler = Scheduler::new(meter);
    let mut tasks: JoinSet<(Key, Result<(), Error>)> = JoinSet::new();
    loop {
        while mirror.synced() && tasks.len() < AT_ONCE {
            let Some((key, step)) = scheduler.next(&mirror) else { break };
            let writer = writer.clone();
            tasks.spawn(async move { (key, writer.write(step).await) });
        }
        let due = scheduler.queue.due().unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            () = stop.cancelled() => return,
            changes = mirror.next() => {
                changes.of::<Node>().iter().for_each(|change| scheduler.node(change));
                changes.of::<Pod>().iter().for_each(|change| scheduler.pod(&mirror, change));
            }
            Some(ended) = tasks.join_next() => match ended {
                Ok((key, result)) => scheduler.written(key, result),
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            () = sleep_until(due) => {}
        }
    }
}

/// What is to be written about a Pod.
enum Step {
    Bind { pod: Arc<Pod>, node: String },
    Complain { pod: Arc<Pod>, message: String },
}

/// Knows how many Pods each Node has, and which Pods have none.
struct Scheduler {
    /// Pods by Node, also by Nodes that are not there.
    pods: HashMap<String, usize>,
    /// The Nodes there are, those with the fewest Pods first.
    nodes: BTreeSet<(usize, String)>,
    /// Decided, but not yet seen.
    decided: HashMap<Key, String>,
    /// Pods that suit no Node.
    waiting: HashSet<Key>,
    queue: Queue<Key>,
}

impl Scheduler {
    fn new(meter: QueueMeter) -> Scheduler {
        let (pods, nodes, decided, waiting) = Default::default();
        Scheduler { pods, nodes, decided, waiting, queue: Queue::new(meter) }
    }

    fn node(&mut self, change: &Change<Node>) {
        let name = &*change.key.name;
        let place = (self.count(name), name.to_owned());
        match &change.new {
            Some(_) => self.nodes.insert(place),
            None => self.nodes.remove(&place),
        };
        let same = match (&change.old, &change.new) {
            (Some(old), Some(new)) => old.decides_as(new),
            _ => false,
        };
        if !same {
            self.wake();
        }
    }

    fn pod(&mut self, mirror: &Mirror, change: &Change<Pod>) {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        if new.is_none_or(|pod| pod.place().is_some() || !is_ours(pod))
            && let Some(node) = self.decided.remove(&change.key)
        {
            self.take(mirror, &node);
        }
        let (before, after) = (old.and_then(Pod::place), new.and_then(Pod::place));
        if before != after {
            before.into_iter().for_each(|node| self.take(mirror, node));
            after.into_iter().for_each(|node| self.put(node));
        }
        match new {
            Some(pod) if is_ours(pod) => self.queue.add(change.key.clone()),
            _ => drop(self.waiting.remove(&change.key)),
        }
    }

    /// The next thing to write.
    fn next(&mut self, mirror: &Mirror) -> Option<(Key, Step)> {
        loop {
            let key = self.queue.take()?;
            let pod = mirror.get::<Pod>(&key.namespace, &key.name).filter(|pod| is_ours(pod));
            let Some(pod) = pod.filter(|_| !self.decided.contains_key(&key)) else {
                self.queue.done(key);
                continue;
            };
            let known = self.nodes.iter().filter_map(|(pods, name)| Some((*pods, &**mirror.get::<Node>("", name)?)));
            let message = match fit::choose(pod, known) {
                Ok(node) => {
                    let node = node.metadata.name.clone();
                    self.waiting.remove(&key);
                    self.decided.insert(key.clone(), node.clone());
                    self.put(&node);
                    return Some((key, Step::Bind { pod: pod.clone(), node }));
                }
                Err(refused) => fit::explain(&refused),
            };
            self.waiting.insert(key.clone());
            if pod.complaint() != Some(&message) {
                return Some((key, Step::Complain { pod: pod.clone(), message }));
            }
            self.queue.done(key);
        }
    }

    fn written(&mut self, key: Key, result: Result<(), Error>) {
        match result {
            Ok(()) => self.queue.done(key),
            Err(error) => {
                tracing::warn!(pod = %key, %error, "cannot schedule a Pod");
                self.forget(&key);
                // Gone, or somebody else's by now: what it is will be seen.
                match error {
                    Error::NotFound(_) | Error::Conflict(_) => self.queue.done(key),
                    _ => self.queue.failed(key),
                }
            }
        }
    }

    /// All that suited no Node are looked at again.
    fn wake(&mut self) {
        self.waiting.drain().for_each(|key| self.queue.add(key));
    }

    fn count(&self, node: &str) -> usize {
        self.pods.get(node).copied().unwrap_or_default()
    }

    fn put(&mut self, node: &str) {
        self.recount(node, self.count(node) + 1);
    }

    /// A Pod leaves a Node; who waits for room is looked at again.
    fn take(&mut self, mirror: &Mirror, node: &str) {
        let before = self.count(node);
        self.recount(node, before.saturating_sub(1));
        let room = mirror.get::<Node>("", node).and_then(|node| node.room());
        if room.is_some_and(|room| before >= room) {
            self.wake();
        }
    }

    fn forget(&mut self, key: &Key) {
        if let Some(node) = self.decided.remove(key) {
            self.recount(&node, self.count(&node).saturating_sub(1));
        }
    }

    fn recount(&mut self, node: &str, count: usize) {
        if self.nodes.remove(&(self.count(node), node.to_owned())) {
            self.nodes.insert((count, node.to_owned()));
        }
        match count {
            0 => drop(self.pods.remove(node)),
            _ => drop(self.pods.insert(node.to_owned(), count)),
        }
    }
}

/// Whether a Pod waits for us.
fn is_ours(pod: &Pod) -> bool {
    pod.spec.node_name.is_empty()
        && NAMES.contains(&pod.spec.scheduler_name.as_str())
        && pod.spec.scheduling_gates.is_empty()
        && pod.metadata.deletion_timestamp.is_none()
        && !matches!(pod.status.phase.as_str(), "Succeeded" | "Failed")
}

/// Writes what was decided.
#[derive(Clone)]
struct Writer {
    cluster: Cluster,
    recorder: Recorder,
}

impl Writer {
    async fn write(&self, step: Step) -> Result<(), Error> {
        match step {
            Step::Bind { pod, node } => self.bind(&pod, &node).await,
            Step::Complain { pod, message } => self.complain(&pod, message).await,
        }
    }

    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), Error> {
        let Meta { namespace, name, uid, .. } = &pod.metadata;
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"namespace": namespace, "name": name, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
        self.cluster.request(Method::POST, &path, Some(&binding)).await?;
        let message = format!("Successfully assigned {namespace}/{name} to {node}");
        self.recorder.record(Reference::of(pod), Severity::Normal, "Scheduled", message);
        Ok(())
    }

    async fn complain(&self, pod: &Pod, message: String) -> Result<(), Error> {
        let Meta { namespace, name, uid, .. } = &pod.metadata;
        let condition = json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
            "lastTransitionTime": format!("{:.0}", Timestamp::now()),
        });
        let patch = Patch::Strategic(json!({"metadata": {"uid": uid}, "status": {"conditions": [condition]}}));
        self.cluster.patch_status(&kinds::POD, namespace, name, &patch).await?;
        self.recorder.record(Reference::of(pod), Severity::Warning, "FailedScheduling", message);
        Ok(())
    }
}
