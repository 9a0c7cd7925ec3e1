//! Keeps allocations whole, as kube-apiserver does: passes look at everything the store holds, mend what `fairlead_api::repair`
//! finds and tell about it in Events. A pass that finds nothing writes nothing. Servers that share a store may all make
//! passes: every change is conditional on what the pass saw.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_api::repair::{Findings, GRACE, Mend, Seen};
use fairlead_api::{Failure, kinds};
use fairlead_store::Revision;
use futures_util::{FutureExt, StreamExt};
use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::{Inner, Server};

mod counters;
mod loss;
mod mend;
mod report;
mod snapshot;

pub(crate) use counters::Counters;
use snapshot::Snapshot;

/// The usual time between passes; the reference server's.
pub const INTERVAL: Duration = Duration::from_secs(180);
/// Time for the server to get going before the first pass, and between a loss and the pass that mends it.
const PAUSE: Duration = Duration::from_secs(1);
/// Mends at a time: enough for the store to commit them in groups.
const AT_A_TIME: usize = 32;
/// Events of one pass; the rest come with the next ones.
const MAX_EVENTS: usize = 1000;

/// What passes remember.
#[derive(Debug, Default)]
pub(crate) struct Repair {
    /// Held during a pass: there is one at a time.
    seen: Mutex<Seen>,
}

/// What a pass did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Things that were wrong.
    pub found: usize,
    /// Those it mended.
    pub mended: usize,
    /// Events it wrote.
    pub reported: usize,
    /// Things that look leaked and are not freed yet.
    pub waiting: usize,
    /// Objects it looked at.
    pub looked_at: usize,
    /// How long it took.
    pub took: Duration,
    /// The revision it looked at.
    revision: Revision,
}

impl Server {
    /// Makes a pass over all allocations now.
    pub async fn repair_now(&self) -> Result<Repaired, Failure> {
        self.repair_at(Timestamp::now()).await
    }

    /// Makes a pass at a time of the caller's choice, by which it is judged how long a thing has looked leaked.
    pub async fn repair_at(&self, now: Timestamp) -> Result<Repaired, Failure> {
        pass(&self.inner, now).await
    }

    /// Makes passes until the server stops: soon, at every interval, and when an IPAddress object was deleted under its Service.
    pub async fn keep_repaired(self, interval: Duration) {
        let stop = self.inner.stop.clone();
        let passes = async {
            let mut wait = PAUSE;
            let mut seen = self.inner.store.revision().await.unwrap_or_default();
            loop {
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = loss::of_address(&self.inner, seen) => tokio::time::sleep(PAUSE).await,
                }
                wait = interval;
                match self.repair_now().await {
                    Ok(done) => {
                        seen = done.revision;
                        if done.waiting > 0 {
                            wait = interval.min(Duration::from_secs(GRACE.unsigned_abs()));
                        }
                    }
                    Err(failure) => tracing::warn!(why = failure.message, "allocations cannot be looked at"),
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = passes => {}
        }
    }
}

async fn pass(server: &Arc<Inner>, now: Timestamp) -> Result<Repaired, Failure> {
    let started = Instant::now();
    let mut seen = server.repair.seen.lock().await;
    let snapshot = Snapshot::read(&*server.store).await.inspect_err(|_| server.metrics.repair.failed())?;
    let (looked_at, revision, map) = (snapshot.len(), snapshot.revision(), snapshot.map());
    let (range, before) = (server.options.settings.node_ports.clone(), seen.clone());
    // On a thread of its own: requests go on meanwhile.
    let looking = tokio::task::spawn_blocking(move || snapshot.examine(&range, &before, now.as_second()));
    let findings = looking.await.map_err(|error| Failure::internal(error.to_string()))?;
    let (mended, reported) = settle(server, &findings, map, now).await;
    let (found, waiting) = (findings.list.len(), findings.seen.len());
    *seen = findings.seen;
    let done = Repaired { found, mended, reported, waiting, looked_at, took: started.elapsed(), revision };
    tracing::debug!(?done, "allocations were looked at");
    Ok(done)
}

/// Mends and tells; returns how often.
async fn settle(server: &Arc<Inner>, findings: &Findings, map: Option<Revision>, now: Timestamp) -> (usize, usize) {
    let ports = mend::ports(server, &findings.list, map).await;
    let each: Vec<_> = findings.list.iter().map(|finding| mended(server, &finding.mend, ports).boxed()).collect();
    // In order, so that Events come in the order of the findings.
    let outcomes: Vec<bool> = futures_util::stream::iter(each).buffered(AT_A_TIME).collect().await;
    let (mut count, mut reported) = (0, 0);
    for (finding, done) in findings.list.iter().zip(outcomes) {
        count += usize::from(done);
        // Somebody else was quicker, or it changed: the next pass will see.
        if !done && finding.mend != Mend::Nothing {
            continue;
        }
        server.metrics.repair.count(&finding.problem);
        if reported < MAX_EVENTS && report::tell(server, finding, now).await {
            reported += 1;
        }
    }
    (count, reported)
}

async fn mended(server: &Inner, mend: &Mend, ports: mend::Ports) -> bool {
    match mend {
        Mend::Nothing => false,
        Mend::SetPort(_) | Mend::NewMap => ports.set,
        Mend::ClearPort(_) => ports.cleared,
        Mend::Create(..) | Mend::Point(..) | Mend::Delete(..) => mend::address(server, mend).await,
    }
}
