//! The one thread that acknowledges: takes what is queued, makes it durable with one sync, then shows it to everybody.

use std::sync::{Arc, OnceLock};

use tokio::sync::{mpsc, oneshot};

use super::checkpoint::Checkpoints;
use super::journal::Journal;
use crate::state::{Plan, State};
use crate::{Error, Event, Outcome, Txn, Write};

/// Transactions in one sync. More would only make the first of them wait longer.
const BATCH_TXNS: usize = 512;
/// Bytes in one sync, for the same reason.
const BATCH_BYTES: usize = 8 << 20;

/// A transaction and who waits for it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) txn: Txn,
    pub(super) done: oneshot::Sender<Result<Outcome, Error>>,
}

/// Writes batches.
#[derive(Debug)]
pub(super) struct Committer {
    pub(super) state: Arc<State>,
    pub(super) journal: Journal,
    pub(super) checkpoints: Checkpoints,
    /// What is in the file of the journal that is being filled, and not yet in the database.
    pub(super) pending: Vec<Event>,
    /// After a failed write nobody knows what is on disk, so nothing more is written; reopening finds out.
    pub(super) broken: Arc<OnceLock<Error>>,
}

impl Committer {
    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut batch = Vec::new();
        while let Some(first) = queue.blocking_recv() {
            gather(first, &mut queue, &mut batch);
            let plan = self.state.plan(batch.iter().map(|job| &job.txn));
            let outcomes = self.write(plan);
            for (at, job) in batch.drain(..).enumerate() {
                // A caller that went away has its write all the same.
                let _ = job.done.send(outcomes.as_ref().map(|all| all[at]).map_err(Error::clone));
            }
        }
        self.close();
    }

    fn write(&mut self, plan: Plan) -> Result<Vec<Outcome>, Error> {
        if plan.events.is_empty() {
            return Ok(plan.outcomes);
        }
        if let Some(error) = self.broken.get() {
            return Err(error.clone());
        }
        self.record(&plan.events).map_err(|error| self.give_up(&error))?;
        self.pending.extend_from_slice(&plan.events);
        self.state.apply(plan.events, plan.revision);
        Ok(plan.outcomes)
    }

    fn record(&mut self, events: &[Event]) -> Result<(), String> {
        self.checkpoints.look()?;
        if !self.journal.prepare(events) {
            // The other file is free when the database has what was in it. Writers wait for that if they are faster.
            self.checkpoints.begin(std::mem::take(&mut self.pending), self.state.revision())?;
            self.journal.turn();
        }
        self.journal.append().map_err(|error| error.to_string())
    }

    fn give_up(&self, error: &str) -> Error {
        tracing::error!(error, "the store cannot be written; it takes no more writes until it is opened again");
        let error = Error::Unavailable(format!("writing to disk failed: {error}"));
        self.broken.get_or_init(|| error).clone()
    }

    /// Leaves nothing to be recovered. If it fails, the journal still has everything.
    fn close(&mut self) {
        if self.broken.get().is_some() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        let begun = if pending.is_empty() { Ok(()) } else { self.checkpoints.begin(pending, self.state.revision()) };
        if let Err(error) = begun.and_then(|()| self.checkpoints.finish()) {
            tracing::warn!(error, "the journal was not taken over into the database; the next start does it");
        }
    }
}

fn gather(first: Job, queue: &mut mpsc::Receiver<Job>, batch: &mut Vec<Job>) {
    let mut bytes = size(&first.txn);
    batch.push(first);
    while batch.len() < BATCH_TXNS && bytes < BATCH_BYTES {
        let Ok(job) = queue.try_recv() else { break };
        bytes += size(&job.txn);
        batch.push(job);
    }
}

fn size(txn: &Txn) -> usize {
    let of = |write: &Write| match write {
        Write::Put(_, draft) => draft.json.len(),
        Write::Delete(_) => 0,
    };
    txn.writes.iter().map(of).sum()
}
