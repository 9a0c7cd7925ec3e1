//! Tells those who ask how the worker does: load balancers, Prometheus, and whoever waits for a revision.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairlead_api::view::{self, Family};
use fairlead_cluster::programmed::Progress;
use fairlead_plan::{Plan, PlanChange};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::conntrack::Reconciled;
use crate::health::{self, Health};
use crate::worker::{Stamp, Watcher, Work};
use crate::{Error, Extent, Metrics};

/// How long a question for counters waits while the worker does something else.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where everything is told.
pub(crate) struct Report {
    metrics: Metrics,
    health: Health,
    progress: Progress,
    /// Who has the counters, while there is somebody.
    work: Arc<Mutex<Option<SyncSender<Work>>>>,
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
        Report { metrics, health, progress: Progress::new(), work }
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

    /// Changes have arrived and wait.
    pub(crate) fn seen(&self, stamp: &Stamp, node: Option<&view::Node>) {
        self.health.node(node.is_none() || health::eligible(node));
        self.health.queued();
        self.metrics.changes(stamp.services as u64, stamp.slices as u64);
    }
}

impl Watcher for Report {
    fn programmed(&self, stamps: &[Stamp], plan: &Plan, change: &PlanChange, took: Duration, full: bool) {
        let extent = if full { Extent::Full } else { Extent::Partial };
        self.metrics.synced(extent, took);
        self.health.updated();
        self.health.checks(&change.health_checks);
        if change.node.is_some() {
            self.health.listen_as(plan.node());
        }
        let families: BTreeSet<Family> = change.pools.iter().map(|delta| delta.key.port.family).collect();
        let now = Timestamp::now().as_millisecond();
        for stamp in stamps {
            let after = stamp.triggered.and_then(|then| u64::try_from(now - then).ok()).map(Duration::from_millis);
            for (family, after) in families.iter().zip(after.into_iter().cycle()) {
                self.metrics.programmed(*family, after);
            }
            self.progress.reached(stamp.revision);
            tracing::debug!(revision = stamp.revision, after = ?stamp.arrived.elapsed(), ?took, full, "programmed");
        }
    }

    fn failed(&self, _: &Error, full: bool) {
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
