//! Tells those who ask how the worker does: load balancers, Prometheus, and whoever waits for a revision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairlead_api::view::{self, Family};
use fairlead_cluster::programmed::Progress;
use fairlead_plan::{About, Note, Plan, PlanChange, Reason, Traffic as Direction};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::conntrack::Reconciled;
use crate::dataplane::RulesWritten;
use crate::health::{self, Health};
use crate::worker::{Stamp, Watcher, Work};
use crate::{Error, Extent, Metrics, Policy, Programmed};

/// How long a question for counters waits while the worker does something else.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where everything is told.
pub(crate) struct Report {
    metrics: Metrics,
    health: Health,
    progress: Progress,
    /// Who has the counters, while there is somebody.
    work: Arc<Mutex<Option<SyncSender<Work>>>>,
    /// How the last attempt to program the kernel ended.
    state: Mutex<Programmed>,
    /// Whether the Node was ever there: one that never was cannot be gone.
    known: AtomicBool,
    /// Ports with a policy Local and no endpoint for it.
    no_local: Mutex<BTreeMap<(Direction, Family), usize>>,
}

impl Report {
    pub(crate) fn new(metrics: Metrics, health: Health) -> Report {
        let work: Arc<Mutex<Option<SyncSender<Work>>>> = Arc::default();
        let source = work.clone();
        metrics.count_with(move || {
            let work = source.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
            let (answer, tallies) = mpsc::sync_channel(1);
            work.try_send(Work::Counters(answer)).ok()?;
            drop(work);
            tallies.recv_timeout(PATIENCE).ok()
        });
        Report {
            metrics,
            health,
            progress: Progress::new(),
            work,
            state: Mutex::default(),
            known: AtomicBool::new(false),
            no_local: Mutex::default(),
        }
    }

    /// Counters are asked for there.
    pub(crate) fn count_with(&self, work: &SyncSender<Work>) {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work.clone());
    }

    /// There are no counters any more.
    pub(crate) fn count_no_more(&self) {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Up to which revision all is programmed.
    pub(crate) fn progress(&self) -> watch::Receiver<u64> {
        self.progress.follow()
    }

    /// How far it is, and how the last attempt ended.
    pub(crate) fn programmed(&self) -> Programmed {
        self.state().clone()
    }

    fn state(&self) -> MutexGuard<'_, Programmed> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes have arrived and wait.
    pub(crate) fn seen(&self, stamp: &Stamp, node: Option<&view::Node>) {
        self.state().seen = stamp.revision;
        let known = self.known.fetch_or(node.is_some(), Ordering::Relaxed);
        self.health.node(health::eligible(node) || node.is_none() && !known);
        self.health.queued();
        self.metrics.changes(stamp.services as u64, stamp.slices as u64);
    }
}

impl Report {
    fn note(&self, stamps: &[Stamp], time: Timestamp) {
        let mut state = self.state();
        state.revision = stamps.last().map_or(state.revision, |stamp| stamp.revision);
        (state.last, state.error) = (Some(time), None);
    }

    fn count_no_local(&self, plan: &Plan, change: &PlanChange, full: bool) {
        if change.notes.is_empty() && !full {
            return;
        }
        let mut counts = self.no_local.lock().unwrap_or_else(PoisonError::into_inner);
        if full {
            counts.clear();
            for place in plan.all_notes().flat_map(|(_, notes)| without_local(notes)) {
                *counts.entry(place).or_default() += 1;
            }
        }
        for delta in change.notes.iter().filter(|_| !full) {
            for place in delta.old.iter().flat_map(|notes| without_local(notes)) {
                counts.entry(place).and_modify(|count| *count = count.saturating_sub(1));
            }
            for place in delta.new.iter().flat_map(|notes| without_local(notes)) {
                *counts.entry(place).or_default() += 1;
            }
        }
        for (direction, policy) in [(Direction::Internal, Policy::Internal), (Direction::External, Policy::External)] {
            for family in crate::FAMILIES {
                let count = counts.get(&(direction, family)).copied().unwrap_or(0);
                self.metrics.no_local_endpoints(policy, family, count);
            }
        }
    }
}

/// Which traffic of a Service meets no endpoint because those there are, are elsewhere.
fn without_local(notes: &[Note]) -> BTreeSet<(Direction, Family)> {
    let place = |note: &Note| match (&note.about, &note.reason) {
        (About::Port(port), Reason::NoLocalEndpoints { traffic }) => Some((*traffic, port.family)),
        _ => None,
    };
    notes.iter().filter_map(place).collect()
}

impl Watcher for Report {
    fn programmed(&self, stamps: &[Stamp], plan: &Plan, change: &PlanChange, took: Duration, full: bool) {
        let extent = if full { Extent::Full } else { Extent::Partial };
        self.metrics.synced(extent, took);
        self.count_no_local(plan, change, full);
        self.health.updated();
        if full {
            // Changes of attempts that failed are in none.
            self.health.show(plan);
        } else {
            self.health.checks(&change.health_checks);
            if change.node.is_some() {
                self.health.listen_as(plan.node());
            }
        }
        let families: BTreeSet<Family> = change.pools.iter().map(|delta| delta.key.port.family).collect();
        let time = Timestamp::now();
        let now = time.as_millisecond();
        self.note(stamps, time);
        for stamp in stamps {
            let after = stamp.triggered.and_then(|then| u64::try_from(now - then).ok()).map(Duration::from_millis);
            for (family, after) in families.iter().zip(after.into_iter().cycle()) {
                self.metrics.programmed(*family, after);
            }
            self.progress.reached(stamp.revision);
            tracing::debug!(revision = stamp.revision, after = ?stamp.arrived.elapsed(), ?took, full, "programmed");
            // For whoever follows changes on their way here.
            tracing::trace!(
                target: "fairlead_path",
                stage = "programmed",
                revision = stamp.revision,
                request_us = micros(stamp.arrived.elapsed()),
                took_us = micros(took),
            );
        }
    }

    fn wrote(&self, rules: &[RulesWritten]) {
        for rules in rules {
            self.metrics.iptables_rules(rules.table, rules.family, rules.total, rules.written);
        }
    }

    fn failed(&self, error: &Error, full: bool) {
        self.state().error = Some(error.to_string());
        self.metrics.sync_failed(if full { Extent::Full } else { Extent::Partial });
    }

    fn repaired(&self, _: &str) {
        self.metrics.repaired();
    }

    fn forgotten(&self, done: &Reconciled) {
        let Some(took) = done.took else { return };
        for family in crate::FAMILIES {
            self.metrics.flows_reconciled(family, took, done.deleted.get(&family).copied().unwrap_or(0));
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
