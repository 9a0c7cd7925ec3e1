//! Which Pods are this Node's? Follows them, and gives each a worker; finds again those of the runner before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_api::kinds;
use fairlead_api::view::Service;
use fairlead_api::{Look, source::Selection};
use fairlead_cluster::{Cluster, Event, Key, Mirror, Object, Recorder, Step};
use futures_util::StreamExt;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::node::{self, Ask, Node, lock};
use crate::record::Record;
use crate::settings::Settings;
use crate::worker::{Seen, Worker};
use crate::{LinkChanges, network, outbound};

/// Questions for Services that wait.
const QUESTIONS: usize = 64;

/// Runs the Pods of a Node.
pub struct Runner {
    node: Arc<Node>,
    object: watch::Sender<Arc<Value>>,
    questions: mpsc::Receiver<Ask>,
}

impl Runner {
    /// For a cluster. Needs a tokio run time.
    pub fn new(cluster: &Cluster, settings: Settings) -> Runner {
        Runner::measured(cluster, settings, Metrics::new())
    }

    /// The same, counting what it does in these metrics.
    pub fn measured(cluster: &Cluster, settings: Settings, metrics: Metrics) -> Runner {
        let cluster = cluster.managed_by("fairlead-pods");
        // Clients look for Events of a Node's Pods by this name, whatever agent the Node has.
        let recorder = Recorder::new(&cluster, "kubelet", &settings.node);
        let (object, objects) = watch::channel(Arc::new(Value::Null));
        let (services, questions) = mpsc::channel(QUESTIONS);
        let node = Arc::new(Node::new(settings, cluster, (recorder, metrics), objects, services));
        Runner { node, object, questions }
    }

    pub(crate) fn node(&self) -> Arc<Node> {
        self.node.clone()
    }

    /// Until told to stop. Pods live on then: the next runner finds them.
    pub async fn run(self, stop: CancellationToken) {
        for problem in network::forward() {
            tracing::warn!(%problem, "Pods may not reach other machines");
        }
        let records = self.recall().await;
        let Runner { node, object, questions } = self;
        let pods = Pods { node: node.clone(), records, ..Pods::new(node.clone()) };
        let (ranges, wanted) = watch::channel(None);
        tokio::select! {
            () = follow_node(&node, object, ranges) => {}
            () = outbound::keep(wanted) => {}
            () = keep_links(&node) => {}
            () = answer(&node.cluster, questions) => {}
            () = pods.run() => {}
            () = stop.cancelled() => {}
        }
    }

    /// The Pods of the runner before; their addresses stay theirs.
    async fn recall(&self) -> BTreeMap<String, Record> {
        let folder = Node::states(&self.node.settings.data);
        let records = tokio::task::spawn_blocking(move || Record::all(&folder)).await.unwrap_or_default();
        for record in &records {
            self.node.know_addresses(&record.addresses, &[]);
            if let Some(user) = record.user {
                self.node.keep_user(user);
            }
        }
        records.into_iter().map(|record| (record.uid().to_owned(), record)).collect()
    }
}

/// Keeps this Node's own object.
async fn follow_node(
    node: &Node,
    object: watch::Sender<Arc<Value>>,
    outbound: watch::Sender<Option<outbound::Ranges>>,
) {
    let selection = Selection::all(&kinds::NODE).with_fields(format!("metadata.name={}", node.settings.node));
    let mut steps = node.cluster.follow(selection);
    while let Some(step) = steps.next().await {
        let newest = match step {
            Step::Objects(objects) => objects.into_iter().next_back(),
            Step::Changed(events, _) => events.into_iter().next_back().and_then(|event| match event {
                Event::Put(object) => Some(object),
                Event::Delete(..) => None,
            }),
            _ => None,
        };
        if let Some(value) = newest.and_then(|newest| serde_json::from_slice::<Value>(&newest.json).ok()) {
            let (before, ranges) = (node::ranges(&object.borrow()), node::ranges(&value));
            if before.is_empty() {
                node.know_addresses(&[], &ranges);
            }
            let cluster = node.settings.pod_ranges.clone();
            if before != ranges && !cluster.is_empty() {
                outbound.send_replace(Some(outbound::Ranges { own: ranges, cluster }));
            }
            object.send_replace(Arc::new(value));
        }
    }
}

/// Makes links and routes of Pods again that were removed.
async fn keep_links(node: &Node) {
    let mut changes = LinkChanges::open();
    let mut failed = BTreeSet::new();
    loop {
        let ranges = node.ranges();
        changes.changed(|notice| network::concerns_pods(notice, &ranges)).await;
        let plugged = node.plugged.clone().lock_owned().await;
        let mtu = node.settings.mtu;
        let mended = tokio::task::spawn_blocking(move || network::mend_all(plugged.values(), mtu)).await;
        let mended = match mended {
            Ok(Ok(mended)) => mended,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the links of Pods cannot be looked at");
                continue;
            }
            // The thread panicked, which is logged by itself.
            Err(_) => continue,
        };
        let before = std::mem::take(&mut failed);
        for (link, error) in mended {
            match error {
                None => tracing::warn!(link, "the link of a Pod or a route to it was removed; it is made again"),
                Some(error) => {
                    if !before.contains(&link) {
                        tracing::warn!(link, %error, "the link of a Pod cannot be made again; delete the Pod to have another");
                    }
                    failed.insert(link);
                }
            }
        }
    }
}

/// Answers which Services a namespace has, once they are known.
async fn answer(cluster: &Cluster, mut questions: mpsc::Receiver<Ask>) {
    let mut mirror = Mirror::builder(cluster).with::<Service>().build();
    mirror.sync().await;
    loop {
        tokio::select! {
            _ = mirror.next() => {}
            ask = questions.recv() => {
                let Some(Ask { namespace, answer }) = ask else { return };
                let own = mirror.in_namespace::<Service>(&namespace);
                let api = mirror.get::<Service>("default", "kubernetes").filter(|_| namespace != "default");
                // Whoever asked may have gone.
                let _ = answer.send(own.chain(api).cloned().collect());
            }
        }
    }
}

/// A worker at work. It ends with the runner, wherever it is: whatever it had begun, the next runner finds.
struct Handle {
    seen: watch::Sender<Seen>,
    task: AbortHandle,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The Pods of this Node, by uid.
struct Pods {
    node: Arc<Node>,
    records: BTreeMap<String, Record>,
    workers: BTreeMap<String, Handle>,
    names: BTreeMap<Key, String>,
    /// Those that have ended here, while the API still has them.
    over: BTreeSet<String>,
    listed: BTreeSet<Key>,
    done: (mpsc::UnboundedSender<String>, mpsc::UnboundedReceiver<String>),
}

impl Pods {
    fn new(node: Arc<Node>) -> Pods {
        let (records, workers, names, over, listed) = Default::default();
        Pods { node, records, workers, names, over, listed, done: mpsc::unbounded_channel() }
    }

    async fn run(mut self) {
        let own = Selection::all(&kinds::POD).with_fields(format!("spec.nodeName={}", self.node.settings.node));
        let mut steps = self.node.cluster.follow(own);
        loop {
            tokio::select! {
                step = steps.next() => match step {
                    Some(step) => self.hear(step),
                    None => return,
                },
                Some(uid) = self.done.1.recv() => {
                    self.workers.remove(&uid);
                    lock(&self.node.slots).remove(&uid);
                    if self.names.values().any(|known| *known == uid) {
                        self.over.insert(uid);
                    }
                }
            }
        }
    }

    fn hear(&mut self, step: Step) {
        match step {
            Step::Listing => self.listed.clear(),
            Step::Objects(objects) => objects.iter().for_each(|object| {
                self.listed.insert(object.key.clone());
                self.put(object);
            }),
            Step::Listed(_) => self.forget_the_missing(),
            Step::Changed(events, _) => events.into_iter().for_each(|event| match event {
                Event::Put(object) => self.put(&object),
                Event::Delete(key, _) => self.gone(&key),
            }),
            Step::Trouble(failure) => tracing::debug!(why = failure.message, "the Pods of this Node are not known"),
        }
    }

    fn put(&mut self, object: &Object) {
        let Ok(pod) = serde_json::from_slice::<Value>(&object.json) else {
            tracing::warn!(pod = %object.key, "a Pod cannot be read");
            return;
        };
        let uid = pod.at("metadata").text("uid").to_owned();
        if let Some(old) = self.names.insert(object.key.clone(), uid.clone()).filter(|old| *old != uid) {
            self.end(&old);
        }
        if self.over.contains(&uid) {
            return;
        }
        let seen = Seen { pod: Arc::new(pod), gone: false };
        match self.workers.get(&uid) {
            Some(worker) => drop(worker.seen.send_replace(seen)),
            None => {
                let record = self.records.remove(&uid);
                self.start(uid, seen, record);
            }
        }
    }

    fn gone(&mut self, key: &Key) {
        if let Some(uid) = self.names.remove(key) {
            self.over.remove(&uid);
            self.end(&uid);
        }
    }

    /// The API has a Pod no more.
    fn end(&mut self, uid: &str) {
        if let Some(worker) = self.workers.get(uid) {
            worker.seen.send_modify(|seen| seen.gone = true);
        }
    }

    /// The list is complete: what is not in it is gone, and so are Pods an earlier runner left.
    fn forget_the_missing(&mut self) {
        let missing: Vec<Key> = self.names.keys().filter(|key| !self.listed.contains(*key)).cloned().collect();
        missing.iter().for_each(|key| self.gone(key));
        for (uid, record) in std::mem::take(&mut self.records) {
            let seen = Seen { pod: Arc::new(record.pod.clone()), gone: true };
            self.start(uid, seen, Some(record));
        }
    }

    fn start(&mut self, uid: String, seen: Seen, record: Option<Record>) {
        let ended = matches!(seen.pod.at("status").text("phase"), "Succeeded" | "Failed");
        if ended && record.is_none() && seen.pod.at("metadata").text_opt("deletionTimestamp").is_none() {
            // It ended before anything of it was remembered here.
            return;
        }
        let (sender, receiver) = watch::channel(seen);
        let worker = Worker::new(self.node.clone(), receiver, record);
        lock(&self.node.slots).insert(uid.clone(), worker.slot());
        let done = self.done.0.clone();
        let task = tokio::spawn(worker.run());
        self.workers.insert(uid.clone(), Handle { seen: sender, task: task.abort_handle() });
        tokio::spawn(async move {
            match task.await {
                Ok(true) => drop(done.send(uid)),
                Ok(false) => {}
                Err(error) if error.is_cancelled() => {}
                Err(error) => {
                    tracing::error!(%error, uid, "the worker of a Pod ended by mistake; a restart takes the Pod up again");
                }
            }
        });
    }
}
