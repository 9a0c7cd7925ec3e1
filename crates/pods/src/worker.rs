//! The life of one Pod on this Node: one task that owns it, from the first sight of it to its last trace.
//!
//! ```text
//!   Pod seen, container ended, probe changed, time to try again
//!        |
//!        v
//!   note --> step (what must be started or stopped) --> publish (record on disk, status in the API) --> wait
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::Look;
use fairlead_cluster::Severity;
use fairlead_probe as probe;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::leave::{Leaving, Stop};
use crate::metrics::Share;
use crate::network::Names;
use crate::node::{Node, Shown, Slot};
use crate::order::{Order, order};
use crate::probes::Kind;
use crate::record::{Admission, Record};
use crate::refuse::Refused;
use crate::shim::launch::End;
use crate::status::{self, Facts};
use crate::unit::State;
use crate::volumes::Volumes;
use crate::words;
use crate::writer::Writer;

mod finish;
mod start;
mod take_over;

/// The queue of what happened in a Pod; its probes wait when it is full.
const HAPPENINGS: usize = 64;

/// Reason of a Pod that has failed because it used too much of the Node's disk.
pub(crate) const EVICTED: &str = "Evicted";

/// A Pod as the API has it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) pod: Arc<Value>,
    /// The API has it no more.
    pub(crate) gone: bool,
}

/// Something in a Pod.
enum Happened {
    /// A run of a container ended.
    Ended { place: usize, run: u32, end: End },
    /// A probe says something else.
    Probe { place: usize, run: u32, kind: Kind, state: probe::State },
    /// A postStart hook failed.
    HookFailed { place: usize, run: u32 },
    /// The Pod uses more of the Node's disk than it may.
    StorageExceeded { message: String },
}

/// A task that ends when nobody holds it.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One Pod.
pub(crate) struct Worker {
    node: Arc<Node>,
    slot: Arc<Slot>,
    seen: watch::Receiver<Seen>,
    pod: Arc<Value>,
    gone: bool,
    record: Record,
    order: Order,
    network: bool,
    volumes: Option<Volumes>,
    refreshed: Instant,
    happened: mpsc::Receiver<Happened>,
    tell: mpsc::Sender<Happened>,
    /// What looks at each container.
    tasks: BTreeMap<usize, Vec<Task>>,
    /// Startup and liveness probes of each container, which end when the Pod begins to.
    restarting_probes: BTreeMap<usize, Vec<Task>>,
    stopping: BTreeMap<usize, Task>,
    /// Measures the Pod's use of the disk, if it has limits for it.
    storage: Option<Task>,
    retry: BTreeMap<usize, Instant>,
    blocked: Option<Instant>,
    /// Containers whose back-off was told of.
    told: BTreeSet<(usize, u32)>,
    refused: Option<Refused>,
    /// Why it waited when it last said so.
    waits: String,
    writer: Writer,
    status: Value,
    leaving: Option<Task>,
    /// What runs of it.
    share: Share,
    /// When it was seen first, until it has run.
    appeared: Option<Instant>,
}

impl Worker {
    /// For a Pod, and what is known of it from before.
    pub(crate) fn new(node: Arc<Node>, seen: watch::Receiver<Seen>, record: Option<Record>) -> Worker {
        let Seen { pod, gone } = seen.borrow().clone();
        let network = !pod.at("spec").flag("hostNetwork");
        let file = Names::of(&node.settings.data, pod.at("metadata").text("uid")).file();
        let appeared = record.is_none().then(Instant::now);
        let record = record.unwrap_or_else(|| Record::new(&pod));
        let slot = Arc::new(Slot::new(Shown {
            pod: pod.clone(),
            units: record.units.clone(),
            ends: BTreeMap::new(),
            network: network.then_some(file),
        }));
        let (tell, happened) = mpsc::channel(HAPPENINGS);
        let writer = Writer::new(&node.cluster, &pod);
        let status = pod.at("status").clone();
        let share = node.metrics.share();
        let (order, volumes, tasks, stopping, retry) = Default::default();
        let (told, refreshed) = (BTreeSet::new(), Instant::now());
        let (blocked, refused, leaving, network, waits) = (None, None, None, false, String::new());
        Worker {
            node,
            slot,
            seen,
            pod,
            gone,
            record,
            order,
            network,
            volumes,
            refreshed,
            happened,
            tell,
            tasks,
            restarting_probes: BTreeMap::new(),
            stopping,
            storage: None,
            retry,
            blocked,
            told,
            refused,
            waits,
            writer,
            status,
            leaving,
            share,
            appeared,
        }
    }

    /// What others see of it.
    pub(crate) fn slot(&self) -> Arc<Slot> {
        self.slot.clone()
    }

    /// Until the Pod is gone, with everything that was made for it. False: the runner ended first; Pods live on then.
    pub(crate) async fn run(mut self) -> bool {
        self.take_over().await;
        loop {
            if self.leaving.is_none() && (self.gone || self.goes()) {
                self.begin_to_leave();
            }
            if self.leaving.is_some() && !self.record.units.iter().any(|unit| unit.is_running()) {
                self.finish().await;
                return true;
            }
            self.step().await;
            self.publish();
            if !self.wait().await {
                return false;
            }
        }
    }

    fn goes(&self) -> bool {
        self.pod.at("metadata").text_opt("deletionTimestamp").is_some()
    }

    /// Waits until something happens. False: the runner has ended.
    async fn wait(&mut self) -> bool {
        let wake = self.wake();
        tokio::select! {
            changed = self.seen.changed() => match changed {
                Ok(()) => self.look(),
                Err(_) => return false,
            },
            Some(happened) = self.happened.recv() => self.note(happened),
            () = sleep_until(wake) => {}
        }
        while let Ok(happened) = self.happened.try_recv() {
            self.note(happened);
        }
        true
    }

    /// When to look again though nothing happens.
    fn wake(&self) -> Instant {
        let again = self.order.again.into_iter().chain(self.deadline()).map(instant);
        let times = again.chain(self.retry.values().copied()).chain(self.blocked);
        let usual = Instant::now() + self.node.settings.refresh;
        // Never at once again: whatever is due was tried just now.
        times.fold(usual, Instant::min).max(Instant::now() + Duration::from_millis(20))
    }

    /// When the Pod has run for too long.
    fn deadline(&self) -> Option<Timestamp> {
        let seconds = self.pod.at("spec").int_opt("activeDeadlineSeconds")?;
        let open = self.record.failed.is_none() && self.order.over.is_none() && self.leaving.is_none();
        open.then(|| {
            self.record.began().saturating_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
        })
    }

    fn look(&mut self) {
        let Seen { pod, gone } = self.seen.borrow_and_update().clone();
        let shorter = pod.at("metadata").int("deletionGracePeriodSeconds")
            < self.pod.at("metadata").int("deletionGracePeriodSeconds");
        if self.leaving.is_some() && (gone && !self.gone || shorter) {
            // It is to go faster than it was.
            self.leaving = None;
        }
        (self.pod, self.gone) = (pod, gone);
        let ready = |status: &Value| {
            let conditions = status.list("conditions").iter();
            conditions.filter(|known| known.text("type") == "Ready").map(|known| known.text("status").to_owned()).next()
        };
        if ready(self.pod.at("status")) != ready(&self.status) {
            // Somebody else has said something else, as others do of a Node they do not hear of.
            self.writer.again();
        }
        self.record.pod = (*self.pod).clone();
    }

    fn note(&mut self, happened: Happened) {
        let current = |units: &[crate::unit::Unit], place: usize, run: u32| {
            units.get(place).is_some_and(|unit| unit.is_running() && unit.runs == run + 1)
        };
        match happened {
            Happened::Ended { place, run, end } if current(&self.record.units, place, run) => self.ended(place, &end),
            Happened::Probe { place, run, kind, state } if current(&self.record.units, place, run) => {
                self.probed(place, kind, state);
            }
            Happened::StorageExceeded { message } if !self.is_evicted() && self.order.over.is_none() => {
                self.node.tell(&self.pod, Severity::Warning, EVICTED, message.as_str());
                self.record.failed = Some((EVICTED.to_owned(), message));
                // Containers that are being stopped have no more time than others: meanwhile they
                // would go on filling the disk (pkg/kubelet/eviction/eviction_manager.go, evictPod,
                // overrides the grace period of terminating Pods too).
                self.stopping.clear();
                self.leaving = None;
            }
            Happened::HookFailed { place, run } if current(&self.record.units, place, run) => {
                self.node.tell(&self.pod, Severity::Warning, "FailedPostStartHook", "PostStartHook failed");
                self.stop(place, "FailedPostStartHook", None);
            }
            // Of a run that is over.
            _ => {}
        }
    }

    fn ended(&mut self, place: usize, end: &End) {
        let unit = &mut self.record.units[place];
        unit.end(end);
        self.node.metrics.container_terminated(unit.role, end.code);
        let name = unit.name.clone();
        self.add_last_words(place);
        tracing::info!(
            pod = self.pod.at("metadata").text("name"),
            container = name,
            code = end.code,
            "a container ended"
        );
        self.tasks.remove(&place);
        self.restarting_probes.remove(&place);
        self.stopping.remove(&place);
        self.slot.show(|shown| {
            if let Some(end) = shown.ends.get(&name) {
                end.cancel();
            }
        });
    }

    fn probed(&mut self, place: usize, kind: Kind, state: probe::State) {
        let healthy = state == probe::State::Healthy;
        let ending = self.is_ending();
        let unit = &mut self.record.units[place];
        match kind {
            Kind::Readiness => unit.ready = healthy,
            Kind::Startup if healthy => {
                unit.started = true;
                self.watch_started(place);
            }
            // It was under way when the Pod began to end.
            Kind::Startup | Kind::Liveness if ending => {}
            Kind::Startup | Kind::Liveness => {
                let field = kind.field();
                let why = format!("failed {} probe, will be restarted", field.trim_end_matches("Probe"));
                let spec = container_of(&self.pod, &self.record.units[place].name);
                let grace = spec.at(field).int_opt("terminationGracePeriodSeconds");
                self.stop(place, &why, grace);
            }
        }
    }

    /// True if the Pod has failed because it used too much of the Node's disk.
    fn is_evicted(&self) -> bool {
        self.record.failed.as_ref().is_some_and(|(reason, _)| reason == EVICTED)
    }

    /// True if the Pod is deleted, or over before its containers are.
    fn is_ending(&self) -> bool {
        self.leaving.is_some() || self.record.failed.is_some() || self.order.over.is_some()
    }

    /// What a container left to say, for those who ask why it ended.
    fn add_last_words(&mut self, place: usize) {
        let unit = &mut self.record.units[place];
        let (name, number) = (unit.name.clone(), unit.runs.saturating_sub(1));
        let State::Ended(ended) = &mut unit.state else { return };
        let container = container_of(&self.pod, &name);
        let falls_back = container.text("terminationMessagePolicy") == "FallbackToLogsOnError";
        if ended.message.is_empty() {
            ended.message = words::left(&self.node, &self.pod, &name, number);
        }
        if ended.message.is_empty() && falls_back && ended.code != 0 {
            ended.message = words::last(&self.node.log(&self.pod, &name, number));
        }
    }

    /// Ends a container, which the restart policy may start again.
    fn stop(&mut self, place: usize, why: &str, grace: Option<i64>) {
        if self.stopping.contains_key(&place) || !self.record.units[place].is_running() {
            return;
        }
        let grace = grace.unwrap_or_else(|| self.grace());
        let deadline = Instant::now() + Duration::from_secs(grace.unsigned_abs());
        let (node, pod, stop) = (self.node.clone(), self.pod.clone(), self.stop_of(place));
        let name = &self.record.units[place].name;
        let message = match why {
            "" => format!("Stopping container {name}"),
            why => format!("Container {name} {why}"),
        };
        let task = tokio::spawn(async move { stop.stop(&node, &pod, deadline, message).await });
        self.stopping.insert(place, Task(task));
    }

    fn grace(&self) -> i64 {
        self.pod.at("spec").int_opt("terminationGracePeriodSeconds").unwrap_or(30)
    }

    fn stop_of(&self, place: usize) -> Stop {
        let unit = &self.record.units[place];
        Stop {
            run: self.node.run(self.record.uid(), &unit.name, unit.runs.saturating_sub(1)),
            container: container_of(&self.pod, &unit.name).clone(),
            role: unit.role,
            address: self.addresses().first().cloned().unwrap_or_default(),
        }
    }

    fn begin_to_leave(&mut self) {
        let meta = self.pod.at("metadata");
        let grace =
            if self.gone || self.is_evicted() { 1 } else { meta.int_opt("deletionGracePeriodSeconds").unwrap_or(30) };
        let running = (0..self.record.units.len()).filter(|place| self.record.units[*place].is_running());
        let leaving = Leaving {
            node: self.node.clone(),
            pod: self.pod.clone(),
            stops: running.map(|place| self.stop_of(place)).collect(),
            deadline: Instant::now() + Duration::from_secs(grace.unsigned_abs()),
            known: !self.gone,
        };
        // A container that ends fails such probes, and would be killed before its time. Readiness
        // is still of interest (Kubernetes, pkg/kubelet/prober/prober_manager.go,
        // StopLivenessAndStartup).
        self.restarting_probes.clear();
        // Who is being stopped already is stopped by the way out.
        self.stopping.clear();
        self.leaving = Some(Task(tokio::spawn(leaving.leave())));
    }

    /// The addresses the Pod is reached by.
    fn addresses(&self) -> Vec<String> {
        if self.pod.at("spec").flag("hostNetwork") {
            return self.node.addresses();
        }
        self.record.addresses.iter().map(ToString::to_string).collect()
    }

    /// Writes what is so now: to the disk, to the API, for others to see.
    fn publish(&mut self) {
        let folder = self.node.folder(self.record.uid());
        if let Err(error) = self.record.write(&folder) {
            tracing::warn!(%error, folder = %folder.display(), "a Pod is not remembered; after a restart nobody knows it");
        }
        self.slot.show(|shown| {
            shown.pod = self.pod.clone();
            shown.units = self.record.units.clone();
        });
        let addresses = if self.network { self.addresses() } else { Vec::new() };
        let failed = self.record.failed.as_ref().map(|(reason, message)| (reason.as_str(), message.as_str()));
        self.status = status::render(&Facts {
            pod: &self.pod,
            before: &self.status,
            units: &self.record.units,
            order: &self.order,
            network: self.network,
            addresses: &addresses,
            host_addresses: &self.node.addresses(),
            began: self.record.began(),
            failed,
            rejected: self.record.admission == Admission::Rejected,
            now: Timestamp::now(),
        });
        if !self.gone {
            self.writer.set(self.status.clone());
        }
        self.count();
    }

    fn count(&mut self) {
        self.share.set(&self.record.units);
        let ran = matches!(self.status.text("phase"), "Running" | "Succeeded");
        if let Some(appeared) = self.appeared.take_if(|_| ran) {
            self.node.metrics.pod_ran(appeared.elapsed());
        }
    }

    fn set_order(&mut self) {
        self.order = order(status::policy(&self.pod), &self.record.units, Timestamp::now());
    }
}

/// A time of the calendar as one of the clock that never goes back.
fn instant(time: Timestamp) -> Instant {
    let away = time.duration_since(Timestamp::now());
    Instant::now() + Duration::try_from(away).unwrap_or_default()
}

/// A container of a Pod by its name; null if there is none.
pub(crate) fn container_of<'a>(pod: &'a Value, name: &str) -> &'a Value {
    const NONE: &Value = &Value::Null;
    let spec = pod.at("spec");
    let mut all = spec.list("containers").iter().chain(spec.list("initContainers"));
    all.find(|container| container.text("name") == name).unwrap_or(NONE)
}
