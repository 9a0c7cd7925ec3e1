//! The controller of load balancers: gives Services their addresses and writes that into their status, with Events for whatever
//! it refuses. One process of a cluster does it at a time.
//!
//! ```text
//! Services, Nodes, pools --> State (who has what) --> Task a Service --> finalizer, status, Events --> the API
//!                                  ^------------- what the API shows next ---------------------------'
//! ```
//! Nothing is remembered that is not in the API: the status of Services says who has which address.

mod ports;
mod queue;
mod state;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;
use std::time::Duration;

use fairlead_api::kinds;
use fairlead_api::source::Key;
use fairlead_api::view::{Node, Service};
use fairlead_cluster::{Changes, Cluster, Mirror, Recorder, Reference, Selection, Severity, Watched};
use futures_util::FutureExt;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use state::{Good, Kept, Note, Ours, State, Task};

use crate::config::{Around, Config};
use crate::pools::Pool;
use crate::tls::{SECRET_TYPE, Secret};
use queue::Queue;

/// What keeps a Service until its load balancer is gone; the name every load balancer uses.
pub const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// So many Services are taken in at once before others may run.
const BATCH: usize = 256;

/// Says whether this process serves a Service no more, so that its address may go to another.
pub type Released = Arc<dyn Fn(&Key) -> bool + Send + Sync>;

/// What the controller depends on besides the cluster.
#[derive(Clone)]
pub struct Settings {
    /// Which Services are ours.
    pub ours: Ours,
    /// What annotations may name.
    pub config: Arc<Config>,
    /// Whether the kernel has SCTP.
    pub sctp: bool,
    /// Where it runs, for Events.
    pub host: String,
    /// Whether a Service is served here no more.
    pub released: Released,
}

/// Gives addresses to Services until told to stop.
pub async fn run(
    cluster: Cluster,
    settings: Settings,
    mut pools: watch::Receiver<Arc<[Pool]>>,
    stop: CancellationToken,
) {
    let cluster = cluster.managed_by("fairlead-balancer");
    let recorder = Recorder::new(&cluster, "fairlead-balancer", &settings.host);
    let mut controller = Controller {
        services: Watched::new(&cluster, Selection::all(&kinds::SERVICE)),
        nodes: Mirror::builder(&cluster).with::<Node>().build(),
        secrets: Mirror::builder(&cluster).with_only::<Secret>(certificates()).build(),
        state: State::new(settings.ours, settings.config, settings.sctp, pools.borrow_and_update().to_vec()),
        queue: Queue::default(),
        cluster,
        recorder,
        released: settings.released,
    };
    if stop.run_until_cancelled(controller.first()).await.is_none() {
        return;
    }
    loop {
        controller.start();
        tokio::select! {
            () = stop.cancelled() => break,
            seen = controller.services.next() => controller.saw(seen),
            changes = controller.nodes.next() => controller.saw_nodes(&changes),
            changes = controller.secrets.next() => controller.saw_secrets(&changes),
            done = controller.queue.next() => controller.done(done),
            Ok(()) = pools.changed() => {
                let all = controller.state.set_pools(pools.borrow_and_update().to_vec());
                controller.queue.add(all);
            }
        }
    }
    controller.queue.finish().await;
}

/// Secrets with certificates.
pub(crate) fn certificates() -> Selection {
    Selection::all(&kinds::SECRET).with_fields(format!("type={SECRET_TYPE}"))
}

struct Controller {
    services: Watched<Service>,
    nodes: Mirror,
    /// Followed apart: where they may not be read, the rest must not wait for them.
    secrets: Mirror,
    state: State,
    queue: Queue,
    cluster: Cluster,
    recorder: Recorder,
    released: Released,
}

impl Controller {
    /// Takes everything in before anything is given out: who has an address keeps it.
    async fn first(&mut self) {
        while !self.nodes.synced() {
            let changes = self.nodes.next().await;
            take_nodes(&mut self.state, &changes);
        }
        // They come at once, or we may not read them.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.secrets.sync()).await;
        while !self.services.listed() {
            for (key, service) in self.services.next().await {
                self.state.put(key, service);
            }
        }
        let all = self.state.claim();
        self.queue.add(all);
    }

    fn saw(&mut self, seen: Vec<fairlead_cluster::Seen<Service>>) {
        let mut seen = seen;
        // What else is there at once is one look.
        while seen.len() < BATCH {
            let Some(more) = self.services.next().now_or_never() else { break };
            seen.extend(more);
        }
        for (key, service) in seen {
            if service.is_none() {
                self.queue.forget(&key);
            }
            let concerned = self.state.put(key, service);
            self.queue.add(concerned);
        }
    }

    fn saw_nodes(&mut self, changes: &Changes) {
        let concerned = take_nodes(&mut self.state, changes);
        self.queue.add(concerned);
    }

    /// A Secret that goes concerns the Services that show its certificate.
    fn saw_secrets(&mut self, changes: &Changes) {
        let namespaces = changes.of::<Secret>().iter().map(|change| change.key.namespace.to_string());
        let concerned = self.state.look_at_certificates(&namespaces.collect());
        self.queue.add(concerned);
    }

    /// Begins what can be begun.
    fn start(&mut self) {
        while let Some(key) = self.queue.pop(|key| self.state.revision(key)) {
            let around = Around { secrets: &self.secrets, now: Timestamp::now() };
            let Some(task) = self.state.decide(&key, around) else { continue };
            self.tell(&task, &task.before);
            if !task.is_idle() {
                self.queue.start(key, write::run(self.cluster.clone(), task, self.released.clone()));
            }
        }
    }

    fn done(&mut self, done: Option<(Task, write::Ended)>) {
        let Some((task, ended)) = done else { return };
        if self.queue.ended(&task, ended) {
            self.tell(&task, &task.after);
            let freed = self.state.wrote(&task);
            self.queue.add(freed);
        }
    }

    fn tell(&self, task: &Task, notes: &[Note]) {
        for note in notes {
            match note.severity {
                Severity::Normal => tracing::debug!(service = %task.key, reason = note.reason, "{}", note.message),
                Severity::Warning => tracing::warn!(service = %task.key, reason = note.reason, "{}", note.message),
            }
            self.recorder.record(Reference::of(&*task.service), note.severity, note.reason, note.message.as_str());
        }
    }
}

/// Takes Nodes in. Returns the Services they concern.
fn take_nodes(state: &mut State, changes: &Changes) -> Vec<Arc<Key>> {
    let mut concerned = Vec::new();
    for node in changes.of::<Node>() {
        concerned.extend(state.put_node(&node.key.name, node.new.as_deref()));
    }
    concerned
}
