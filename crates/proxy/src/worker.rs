//! The thread that owns the plan and the kernel's copy of it: takes changes as they come, and looks after the kernel when none
//! do. Everything here may block; nothing else in the proxy does.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use fairlead_plan::{Change, Plan, PlanChange, Planner};

use crate::conntrack::{Meter, Reconciled, Reconciler};
use crate::dataplane::RulesWritten;
use crate::node::Addresses;
use crate::{Dataplane, Error, Mode, Tallies};

/// How often the kernel is looked at briefly.
const GLANCE: Duration = Duration::from_secs(1);
/// After a failure: how long until the next attempt, at first and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// How many batches may wait. What does not fit waits in the mirror, which holds each object once.
pub(crate) const QUEUE: usize = 4;

/// How many batches are programmed at once at most.
const TOGETHER: usize = 64;

/// What there is to do.
pub(crate) enum Work {
    /// Objects changed.
    Changes(Batch),
    /// Somebody asks what was counted.
    Counters(SyncSender<Tallies>),
}

/// Changes that arrived together.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) changes: Vec<Change>,
    pub(crate) stamp: Stamp,
}

/// Where changes come from, for those who wait for them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    /// When they arrived.
    pub(crate) arrived: Instant,
    /// The newest revision they show.
    pub(crate) revision: u64,
    /// How many Services and EndpointSlices changed.
    pub(crate) services: usize,
    pub(crate) slices: usize,
    /// When the oldest of the endpoint changes was asked for, in milliseconds since the epoch.
    pub(crate) triggered: Option<i64>,
}

/// Of no changes yet, from now on.
impl Default for Stamp {
    fn default() -> Stamp {
        Stamp { arrived: Instant::now(), revision: 0, services: 0, slices: 0, triggered: None }
    }
}

/// Who wants to know what happens here.
pub(crate) trait Watcher: Send + Sync {
    /// Changes are in the kernel, after so long.
    fn programmed(&self, stamps: &[Stamp], plan: &Plan, change: &PlanChange, took: Duration, full: bool);
    /// Rules were written, in modes that write them one by one.
    fn wrote(&self, rules: &[RulesWritten]);
    /// They are not.
    fn failed(&self, error: &Error, full: bool);
    /// The kernel was not as we left it, and is mended now.
    fn repaired(&self, what: &str);
    /// Flows were looked at, and some forgotten.
    fn forgotten(&self, done: &Reconciled);
}

/// The thread's state.
pub(crate) struct Worker {
    pub(crate) planner: Planner,
    pub(crate) dataplane: Box<dyn Dataplane>,
    pub(crate) reconciler: Reconciler,
    /// Who adds up packets and bytes, where the kernel counts them.
    pub(crate) meter: Option<Meter>,
    pub(crate) addresses: Addresses,
    pub(crate) watcher: Arc<dyn Watcher>,
    /// The least time between two changes of the kernel.
    pub(crate) pause: Duration,
    /// How often everything is looked at.
    pub(crate) sync_period: Duration,
    /// What other modes left here was not removed yet: that waits until this one serves.
    pub(crate) others: bool,
    /// The newest changes that are in the plan and not in the kernel.
    pub(crate) owed: Option<Stamp>,
}

/// When to do what.
struct Clock {
    glance: Instant,
    full: Instant,
    flows: Option<Instant>,
    /// When to try again what failed, and how long to wait after that.
    retry: Option<(Instant, Duration)>,
    /// The kernel may be changed again.
    free: Instant,
}

impl Worker {
    /// Works until nobody can send work any more.
    pub(crate) fn run(mut self, work: &Receiver<Work>) {
        let now = Instant::now();
        // Nothing is loaded yet: the first changes load everything.
        let retry = Some((now + RETRY.1, RETRY.0));
        let mut clock = Clock { glance: now + GLANCE, full: now + self.sync_period, flows: None, retry, free: now };
        loop {
            if clock.next() <= Instant::now() {
                self.look(&mut clock);
            }
            let wait = clock.next().saturating_duration_since(Instant::now());
            match work.recv_timeout(wait) {
                Ok(Work::Changes(batch)) => self.take(batch, work, &mut clock),
                Ok(Work::Counters(answer)) => self.count(&answer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Takes changes, and what else has come until the kernel may be changed again.
    fn take(&mut self, batch: Batch, work: &Receiver<Work>, clock: &mut Clock) {
        let (mut changes, mut stamps) = (batch.changes, vec![batch.stamp]);
        // However fast more comes: what is there gets into the kernel.
        while stamps.len() < TOGETHER {
            let wait = clock.free.saturating_duration_since(Instant::now());
            match work.recv_timeout(wait) {
                Ok(Work::Changes(more)) => {
                    changes.extend(more.changes);
                    stamps.push(more.stamp);
                }
                Ok(Work::Counters(answer)) => self.count(&answer),
                Err(_) => break,
            }
        }
        let change = self.planner.apply(changes.into_iter().map(|change| self.addresses.fill(change)));
        self.program(&change, &stamps, clock);
    }

    fn program(&mut self, change: &PlanChange, stamps: &[Stamp], clock: &mut Clock) {
        self.owed = stamps.last().copied().or(self.owed);
        if clock.retry.is_some() {
            return self.load(change, clock);
        }
        let began = Instant::now();
        match self.dataplane.apply(self.planner.plan(), change) {
            Ok(()) => self.done(change, stamps, began, false, clock),
            Err(error) => {
                tracing::warn!(%error, "a change did not get into the kernel; loading everything");
                self.watcher.failed(&error, false);
                self.load(change, clock);
            }
        }
    }

    /// Loads everything, the last change included.
    fn load(&mut self, change: &PlanChange, clock: &mut Clock) {
        let began = Instant::now();
        match self.dataplane.load(self.planner.plan()) {
            Ok(()) => {
                let owed = self.owed;
                self.done(change, owed.as_slice(), began, true, clock);
            }
            Err(error) => {
                let wait = clock.retry.map_or(RETRY.0, |(_, wait)| (wait * 2).min(RETRY.1));
                tracing::error!(%error, "the plan is not in the kernel; trying again in {wait:?}");
                self.watcher.failed(&error, true);
                clock.retry = Some((Instant::now() + wait, wait));
            }
        }
    }

    /// The kernel has it: tells everybody, and lets it forget what must be forgotten.
    fn done(&mut self, change: &PlanChange, stamps: &[Stamp], began: Instant, full: bool, clock: &mut Clock) {
        clock.free = Instant::now() + self.pause;
        (clock.retry, self.owed) = (None, None);
        self.watcher.programmed(stamps, self.planner.plan(), change, began.elapsed(), full);
        self.watcher.wrote(&self.dataplane.rules());
        if std::mem::take(&mut self.others) {
            crate::modes::remove_others(self.dataplane.mode());
        }
        if let Some(portals) = self.dataplane.stand_ins() {
            self.reconciler.set_portals(portals);
        }
        let plan = self.planner.plan();
        let mut looked = self.reconciler.change(plan, change);
        if full {
            // What an earlier run left behind is in no change.
            looked = looked.and_then(|_| self.reconciler.full(plan));
        }
        self.forgotten(looked, clock);
    }

    /// Nothing came: looks after what is there.
    fn look(&mut self, clock: &mut Clock) {
        let now = Instant::now();
        if clock.retry.is_some_and(|(at, _)| at <= now) {
            self.load(&PlanChange::default(), clock);
        }
        if clock.full <= now {
            clock.full = now + self.sync_period;
            let done = self.reconciler.full(self.planner.plan());
            self.forgotten(done, clock);
        } else if clock.flows.is_some_and(|at| at <= now) {
            let done = self.reconciler.look(self.planner.plan());
            self.forgotten(done, clock);
        }
        if clock.glance <= now {
            clock.glance = now + GLANCE;
            self.glance(clock);
        }
    }

    fn glance(&mut self, clock: &mut Clock) {
        if let Some(node) = self.addresses.changed(self.planner.plan().node()) {
            let change = self.planner.apply([Change::Node(Box::new(node))]);
            self.program(&change, &[], clock);
        }
        if clock.retry.is_some() {
            return;
        }
        match self.dataplane.drift(self.planner.plan()) {
            Ok(None) => {}
            Ok(Some(what)) => {
                tracing::warn!(what, "somebody changed what is ours; putting it right");
                self.load(&PlanChange::default(), clock);
                if clock.retry.is_none() {
                    self.watcher.repaired(&what);
                }
            }
            Err(error) => tracing::warn!(%error, "cannot look at what is in the kernel"),
        }
    }

    fn forgotten(&mut self, done: Result<Reconciled, Error>, clock: &mut Clock) {
        match done {
            Ok(done) => self.watcher.forgotten(&done),
            Err(error) => tracing::warn!(%error, "cannot read which flows the kernel remembers"),
        }
        clock.flows = self.reconciler.next_look().map(|wait| Instant::now() + wait);
    }

    fn count(&mut self, answer: &SyncSender<Tallies>) {
        let plan = self.planner.plan();
        if self.meter.is_none() {
            self.meter = Meter::start().unwrap_or_default();
        }
        let counted = self.dataplane.counters(plan).and_then(|mut counters| {
            if let Some(meter) = &mut self.meter {
                meter.measure(plan, &mut counters)?;
            }
            Ok(counters)
        });
        match counted {
            // Who asked may have gone.
            Ok(counters) => {
                let measured = self.meter.is_some() || matches!(self.dataplane.mode(), Mode::Ipvs | Mode::Userspace);
                drop(answer.send(Tallies::of(counters, measured, plan)));
            }
            Err(error) => tracing::warn!(%error, "cannot read what was counted"),
        }
    }
}

impl Clock {
    fn next(&self) -> Instant {
        let soon = [Some(self.glance), Some(self.full), self.flows, self.retry.map(|(at, _)| at)];
        soon.into_iter().flatten().min().unwrap_or(self.glance)
    }
}
