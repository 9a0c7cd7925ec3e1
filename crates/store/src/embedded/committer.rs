//! The one thread that acknowledges: takes what is queued, makes it durable with one sync, then shows it to everybody.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use super::disk::{Disk, Failure, Opened, Place};
use crate::state::{Plan, State};
use crate::{Error, Outcome, Txn, Write};

/// Transactions in one sync. More would only make the first of them wait longer.
const BATCH_TXNS: usize = 512;
/// Bytes in one sync, for the same reason.
const BATCH_BYTES: usize = 8 << 20;
/// Maximum time that a transaction waits to be refused while the disk takes no writes.
const BREATH: Duration = Duration::from_millis(20);

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
    pub(super) place: Place,
    /// `None` only while it cannot be opened again.
    pub(super) disk: Option<Disk>,
    pub(super) trouble: Arc<Trouble>,
    /// When to open the files again; `None`: never.
    pub(super) retry: Option<Instant>,
    /// Why that did not work the last time.
    pub(super) told: String,
}

/// Why nothing is written, if nothing is: after a failed write nobody knows what is on disk. To open the files again finds out.
#[derive(Debug, Default)]
pub(super) struct Trouble(Mutex<Option<Error>>);

impl Trouble {
    pub(super) fn get(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, error: Option<Error>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }
}

impl Committer {
    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut batch = Vec::new();
        while let Some(first) = self.next(&mut queue) {
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

    /// Returns the next transaction. Until there is one, tries to open files again that could not
    /// be written.
    fn next(&mut self, queue: &mut mpsc::Receiver<Job>) -> Option<Job> {
        while let Some(at) = self.retry {
            if Instant::now() >= at {
                self.mend();
                continue;
            }
            match queue.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => std::thread::sleep(BREATH),
            }
        }
        queue.blocking_recv()
    }

    fn write(&mut self, plan: Plan) -> Result<Vec<Outcome>, Error> {
        if plan.events.is_empty() {
            return Ok(plan.outcomes);
        }
        if let Some(error) = self.trouble.get() {
            return Err(error);
        }
        let recorded = match &mut self.disk {
            Some(disk) => disk.record(&plan.events, self.state.revision()),
            None => Err(Failure::of("the files are closed")),
        };
        recorded.map_err(|failure| self.give_up(&failure))?;
        self.state.apply(plan.events, plan.revision);
        Ok(plan.outcomes)
    }

    /// Refuses writes from now on; returns the error for them.
    pub(super) fn give_up(&mut self, failure: &Failure) -> Error {
        self.retry = failure.temporary.then(|| Instant::now() + self.place.retry);
        let until = if failure.temporary { "the cause has gone" } else { "the program is started again" };
        tracing::error!(error = %failure, "the store cannot be written; it takes no more writes until {until}");
        let error = Error::Unavailable(format!("writing to disk failed: {failure}"));
        self.trouble.set(Some(error.clone()));
        error
    }

    /// Opens the files again, if the cause has gone by now.
    fn mend(&mut self) {
        match self.reopen() {
            Ok(true) => {
                tracing::info!("the store is written again");
                self.trouble.set(None);
                self.retry = None;
                self.told.clear();
            }
            Ok(false) => {
                tracing::error!(
                    "the files do not have what they should; start the program again to see what they have"
                );
                self.retry = None;
            }
            Err(why) => {
                if why != self.told {
                    tracing::warn!(why, "the store cannot be opened again; it is tried again and again");
                    self.told = why;
                }
                self.retry = Some(Instant::now() + self.place.retry);
            }
        }
    }

    /// Whether the files have just what everybody was told.
    fn reopen(&mut self) -> Result<bool, String> {
        if let Some(disk) = &mut self.disk {
            disk.take_back().map_err(|error| error.to_string())?;
        }
        // A database is open once.
        self.disk = None;
        let Opened { state, disk } = Disk::open(&mut self.place).map_err(|error| error.to_string())?;
        if state.revision() != self.state.revision() {
            return Ok(false);
        }
        self.disk = Some(disk.map_err(|failure| failure.to_string())?);
        Ok(true)
    }

    fn close(&mut self) {
        if self.trouble.get().is_some() {
            return;
        }
        if let Some(Err(error)) = self.disk.take().map(|disk| disk.close(self.state.revision())) {
            tracing::warn!(%error, "the journal was not taken over into the database; the next start does it");
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
