//! The one thread that writes: takes what is queued, makes it durable with one sync, then shows it to everybody.

use std::sync::Arc;

use redb::Database;
use tokio::sync::{mpsc, oneshot};

use super::history::History;
use super::log::{self, Append};
use crate::state::{Plan, State};
use crate::{Error, Outcome, Txn, Write};

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
    pub(super) db: Arc<Database>,
    pub(super) state: Arc<State>,
    pub(super) history: History,
    /// After a failed write nobody knows what is on disk, so nothing more is written; reopening finds out.
    pub(super) broken: Option<Error>,
}

impl Committer {
    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        while let Some(first) = queue.blocking_recv() {
            let batch = gather(first, &mut queue);
            let plan = self.state.plan(batch.iter().map(|job| &job.txn));
            let outcomes = self.write(plan);
            for (at, job) in batch.into_iter().enumerate() {
                // A caller that went away has its write all the same.
                let _ = job.done.send(outcomes.as_ref().map(|all| all[at]).map_err(Error::clone));
            }
        }
    }

    fn write(&mut self, plan: Plan) -> Result<Vec<Outcome>, Error> {
        if plan.events.is_empty() {
            return Ok(plan.outcomes);
        }
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let portion = self.history.portion();
        let batch = Append { events: &plan.events, forgotten: &portion.records, history: portion.history };
        if let Err(error) = log::append(&self.db, &batch) {
            tracing::error!(%error, "the store cannot be written; it takes no more writes until it is opened again");
            let error = Error::Unavailable(format!("writing to disk failed: {error}"));
            self.broken = Some(error.clone());
            return Err(error);
        }
        plan.events.iter().for_each(|event| self.history.add(event));
        self.state.apply(plan.events, plan.revision);
        Ok(plan.outcomes)
    }
}

fn gather(first: Job, queue: &mut mpsc::Receiver<Job>) -> Vec<Job> {
    let mut bytes = size(&first.txn);
    let mut batch = vec![first];
    while batch.len() < BATCH_TXNS && bytes < BATCH_BYTES {
        let Ok(job) = queue.try_recv() else { break };
        bytes += size(&job.txn);
        batch.push(job);
    }
    batch
}

fn size(txn: &Txn) -> usize {
    let of = |write: &Write| match write {
        Write::Put(_, draft) => draft.json.len(),
        Write::Delete(_) => 0,
    };
    txn.writes.iter().map(of).sum()
}
