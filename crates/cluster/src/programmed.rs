//! Has everybody heard of it? Whoever takes an endpoint away in order waits until each node has programmed the revision that
//! says so, and only then stops it.
//!
//! Every node has a Lease for each component that programs something, with two annotations:
//! ```text
//! fairlead.dev/awaits-revision       somebody waits for this revision      (written by who waits)
//! fairlead.dev/programmed-revision   all up to this revision is programmed (written by the component, while somebody waits)
//! ```
//! Nothing is written while nobody waits, and the Lease of a node goes with its Node.

use std::collections::BTreeMap;
use std::time::Duration;

use fairlead_api::kinds;
use fairlead_api::programmed::{COMPONENT, NAMESPACE, lease_name, node_of_lease};
use fairlead_api::source::{Event, Key, Object, Selection};
use fairlead_api::view::{Condition, Meta};
use fairlead_api::{Look, head};
use futures_util::StreamExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

pub use fairlead_api::programmed::{AWAITS, PROGRAMMED};

use crate::{Backoff, Cluster, Error, Patch, Step, retry};

/// The least time between two answers of a node.
const PACE: Duration = Duration::from_millis(100);
/// How long to wait after something went wrong.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a node may be silent until its Node is looked at: one that is down or gone is not waited for.
const SILENCE: Duration = Duration::from_secs(1);
/// Who may not write Leases, as a proxy in a cluster that knows nothing of this, tries again now and then.
const REFUSED: Duration = Duration::from_secs(300);

/// The component of a node that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// `proxy`, `balancer`, ...
    pub name: &'static str,
    /// The name of its Node.
    pub node: String,
    /// The uid of its Node, if there is one: the Lease goes with it.
    pub uid: Option<String>,
}

impl Component {
    fn lease(&self) -> String {
        lease_name(self.name, &self.node)
    }
}

/// Where a component says how far it is. Cheap, and callable from any thread.
#[derive(Debug)]
pub struct Progress(watch::Sender<u64>);

impl Progress {
    /// Nothing is programmed yet.
    pub fn new() -> Progress {
        Progress(watch::Sender::new(0))
    }

    /// All up to this revision is programmed.
    pub fn reached(&self, revision: u64) {
        self.0.send_if_modified(|reached| std::mem::replace(reached, revision) != revision);
    }

    /// For [`announce`].
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new()
    }
}

/// Answers those who wait, until told to stop.
pub async fn announce(cluster: Cluster, component: Component, progress: watch::Receiver<u64>, stop: CancellationToken) {
    let announcer = Announcer { cluster, lease: component.lease(), component, progress, told: false };
    stop.run_until_cancelled(announcer.run()).await;
}

struct Announcer {
    cluster: Cluster,
    lease: String,
    component: Component,
    progress: watch::Receiver<u64>,
    /// It was said that it does not work.
    told: bool,
}

/// What a Lease says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Said {
    awaits: u64,
    programmed: u64,
}

impl Said {
    fn read(json: &[u8]) -> Said {
        let meta: Meta = head::read(json).unwrap_or_default();
        let number = |name| meta.annotations.get(name).and_then(|text| text.parse().ok()).unwrap_or_default();
        Said { awaits: number(AWAITS), programmed: number(PROGRAMMED) }
    }

    /// What to answer, if something is to be: somebody waits and there is news, or what stands there cannot be, as after the
    /// cluster was restored from an older copy.
    fn answer(self, reached: u64) -> Option<u64> {
        let news = self.awaits > self.programmed && reached > self.programmed;
        let wrong = reached > 0 && self.programmed > reached;
        (news || wrong).then_some(reached)
    }
}

impl Announcer {
    async fn run(mut self) {
        let selection =
            Selection::all(&kinds::LEASE).in_namespace(NAMESPACE).with_fields(format!("metadata.name={}", self.lease));
        let mut steps = self.cluster.follow(selection);
        let (mut said, mut listed, mut next) = (None, false, Instant::now());
        loop {
            if listed && said.is_none() {
                said = self.create().await;
            }
            let reached = *self.progress.borrow_and_update();
            let due = said.and_then(|said| said.answer(reached));
            let write = async {
                match due {
                    Some(revision) => {
                        sleep_until(next).await;
                        revision
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                step = steps.next() => match step {
                    Some(step) => (said, listed) = read(step, said, listed),
                    None => return,
                },
                changed = self.progress.changed() => if changed.is_err() { return },
                _ = write => {
                    next = Instant::now() + PACE;
                    // By now it may be further.
                    let reached = *self.progress.borrow_and_update();
                    if let Some(now) = self.write(reached).await {
                        said = Some(now);
                    }
                }
            }
        }
    }

    async fn write(&mut self, revision: u64) -> Option<Said> {
        let now = format!("{:.6}", Timestamp::now());
        let patch = Patch::Merge(json!({
            "metadata": {"annotations": {PROGRAMMED: revision.to_string()}},
            "spec": {"renewTime": now},
        }));
        let written = self.cluster.patch(&kinds::LEASE, NAMESPACE, &self.lease, &patch).await;
        self.outcome(written).await
    }

    async fn create(&mut self) -> Option<Said> {
        let Component { name, node, uid } = &self.component;
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": NAMESPACE, "name": self.lease, "labels": {COMPONENT: name}},
            "spec": {"holderIdentity": node, "renewTime": format!("{:.6}", Timestamp::now())},
        });
        if let Some(uid) = uid {
            lease["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}]);
        }
        let made = self.cluster.create(&kinds::LEASE, &lease).await;
        if made.as_ref().is_err_and(Error::is_not_found) {
            // There is no such namespace yet.
            sleep(AGAIN).await;
        }
        self.outcome(made).await
    }

    /// What the Lease says now. Trouble is told once, and waited for.
    async fn outcome(&mut self, written: Result<Value, Error>) -> Option<Said> {
        let error = match written {
            Ok(lease) => {
                self.told = false;
                return Some(Said::read(lease.to_string().as_bytes()));
            }
            // Somebody else made it, or removed it: the watch tells.
            Err(Error::AlreadyExists(_)) => return Some(Said::default()),
            Err(Error::NotFound(_)) => return None,
            // Objects in files: nobody can wait there.
            Err(Error::Refused(failure)) if failure.code == 405 => std::future::pending().await,
            Err(error) => error,
        };
        if !std::mem::replace(&mut self.told, true) {
            tracing::warn!(lease = self.lease, %error, "cannot say how far this node is; who waits for it waits in vain");
        }
        sleep(if error.is_transient() { AGAIN } else { REFUSED }).await;
        None
    }
}

fn read(step: Step, said: Option<Said>, listed: bool) -> (Option<Said>, bool) {
    match step {
        Step::Listing => (None, false),
        Step::Objects(objects) => (objects.last().map(|object| Said::read(&object.json)).or(said), listed),
        Step::Listed(_) => (said, true),
        Step::Changed(events, _) => {
            let said = events.into_iter().next_back().map_or(said, |event| match event {
                Event::Put(object) => Some(Said::read(&object.json)),
                Event::Delete(..) => None,
            });
            (said, listed)
        }
        Step::Trouble(_) => (said, listed),
    }
}

/// Why not everybody is known to have programmed a revision.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unfinished {
    /// These nodes did not say so in time.
    #[error("gave up waiting for {}", .0.join(", "))]
    GaveUp(Vec<String>),
    /// They could not be asked.
    #[error("cannot ask the nodes: {0}")]
    Failed(#[from] Error),
}

/// Waits until a component has programmed a revision on every node that has it, but no longer than the limit. Nodes that are not
/// ready, or gone, are not waited for.
pub async fn await_programmed(
    cluster: &Cluster,
    component: &'static str,
    revision: u64,
    limit: Duration,
) -> Result<(), Unfinished> {
    let mut waiter = Waiter { cluster: cluster.clone(), component, revision, missing: BTreeMap::new() };
    match timeout(limit, waiter.wait()).await {
        Ok(done) => Ok(done?),
        Err(_) if waiter.missing.is_empty() => Err(Unfinished::Failed(Error::unavailable("no answer in time"))),
        Err(_) => Err(Unfinished::GaveUp(waiter.missing.into_keys().collect())),
    }
}

struct Waiter {
    cluster: Cluster,
    component: &'static str,
    revision: u64,
    /// Nodes that have not answered, and since when.
    missing: BTreeMap<String, Instant>,
}

impl Waiter {
    async fn wait(&mut self) -> Result<(), Error> {
        let all = Selection::all(&kinds::LEASE)
            .in_namespace(NAMESPACE)
            .with_labels(format!("{COMPONENT}={}", self.component));
        let leases = self.cluster.list(&all).await?;
        for Object { key, json, .. } in &leases.objects {
            if let (Some(node), true) = (self.node(key), Said::read(json).programmed < self.revision) {
                self.missing.insert(node, Instant::now());
            }
        }
        if self.missing.is_empty() {
            return Ok(());
        }
        let mut steps = self.cluster.follow(all);
        for Object { key, json, .. } in &leases.objects {
            if self.node(key).is_some_and(|node| self.missing.contains_key(&node)) {
                self.ask(&key.name, Said::read(json).awaits).await?;
            }
        }
        while !self.missing.is_empty() {
            match timeout(SILENCE, steps.next()).await {
                Ok(Some(step)) => self.hear(step),
                Ok(None) => return Ok(()),
                Err(_) => self.forget_the_dead().await,
            }
        }
        Ok(())
    }

    fn node(&self, key: &Key) -> Option<String> {
        node_of_lease(self.component, &key.name).map(str::to_owned)
    }

    /// Asks, unless somebody waits for that or more already.
    async fn ask(&self, lease: &str, awaits: u64) -> Result<(), Error> {
        if awaits >= self.revision {
            return Ok(());
        }
        let again = |error: &Error| error.is_transient() || error.is_conflict();
        let asked = retry(Backoff::default(), again, || async {
            let current = self.cluster.get(&kinds::LEASE, NAMESPACE, lease).await?;
            if Said::read(current.to_string().as_bytes()).awaits >= self.revision {
                return Ok(());
            }
            // With the version it was read at: of two who ask at once the higher revision must stay.
            let version = current.at("metadata").text("resourceVersion");
            let annotations = json!({AWAITS: self.revision.to_string()});
            let patch = Patch::Merge(json!({"metadata": {"resourceVersion": version, "annotations": annotations}}));
            self.cluster.patch(&kinds::LEASE, NAMESPACE, lease, &patch).await.map(drop)
        });
        match asked.await {
            Err(Error::NotFound(_)) => Ok(()),
            asked => asked,
        }
    }

    fn hear(&mut self, step: Step) {
        let mut heard = |key: &Key, programmed: u64| {
            if let Some(node) = self.node(key).filter(|_| programmed >= self.revision) {
                self.missing.remove(&node);
            }
        };
        match step {
            Step::Objects(objects) => {
                objects.iter().for_each(|object| heard(&object.key, Said::read(&object.json).programmed));
            }
            Step::Changed(events, _) => events.iter().for_each(|event| match event {
                Event::Put(object) => heard(&object.key, Said::read(&object.json).programmed),
                Event::Delete(key, _) => heard(key, u64::MAX),
            }),
            Step::Listing | Step::Listed(_) | Step::Trouble(_) => {}
        }
    }

    /// A node that is silent and not ready programs nothing, and gets no traffic from those that are.
    async fn forget_the_dead(&mut self) {
        let silent: Vec<String> =
            self.missing.iter().filter(|(_, since)| since.elapsed() >= SILENCE).map(|(node, _)| node.clone()).collect();
        for node in silent {
            let dead = match self.cluster.get(&kinds::NODE, "", &node).await {
                Ok(object) => !is_ready(&object),
                Err(error) => error.is_not_found(),
            };
            if dead {
                self.missing.remove(&node);
            } else if let Some(since) = self.missing.get_mut(&node) {
                *since = Instant::now();
            }
        }
    }
}

/// A Node nobody says anything of counts as ready: without a kubelet nobody reports.
fn is_ready(node: &Value) -> bool {
    let conditions: Vec<Condition> =
        serde_json::from_value(node.at("status").at("conditions").clone()).unwrap_or_default();
    !conditions.iter().any(|condition| condition.kind == "Ready" && condition.status != "True")
}
