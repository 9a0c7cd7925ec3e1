//! Takes what the journal holds over into the database, in the background: some hundred records in one transaction.

use std::sync::mpsc;
use std::thread::JoinHandle;

use redb::Database;

use super::disk::Failure;
use super::history::{History, Portion};
use super::log::{self, Append, JournalNeed};
use crate::{Event, Revision};

/// The thread that writes the database.
#[derive(Debug)]
pub(super) struct Checkpoints {
    /// `None` only while being dropped.
    batches: Option<mpsc::Sender<Batch>>,
    results: mpsc::Receiver<Result<(), Failure>>,
    /// At most one at a time, so the journal never needs more than its two files.
    under_way: bool,
    thread: Option<JoinHandle<()>>,
}

/// Events to write.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) events: Vec<Event>,
    /// The revision after the events.
    pub(super) revision: Revision,
    /// Requirement on the journal once the batch is written.
    pub(super) journal: JournalNeed,
}

impl Checkpoints {
    /// Starts the thread.
    pub(super) fn start(db: Database, history: History) -> Result<Checkpoints, Failure> {
        let (batches, queue) = mpsc::channel();
        let (done, results) = mpsc::channel();
        let thread = std::thread::Builder::new().name("checkpoint".into());
        let thread = thread.spawn(move || run(&db, history, &queue, &done))?;
        Ok(Checkpoints { batches: Some(batches), results, under_way: false, thread: Some(thread) })
    }

    /// Begins to write a batch, once the one before it is written.
    pub(super) fn begin(&mut self, batch: Batch) -> Result<(), Failure> {
        self.finish()?;
        let batches = self.batches.as_ref().ok_or_else(gone)?;
        batches.send(batch).map_err(|_| gone())?;
        self.under_way = true;
        Ok(())
    }

    /// Whether what was begun went wrong, as far as is known by now.
    pub(super) fn look(&mut self) -> Result<(), Failure> {
        match self.results.try_recv() {
            Ok(result) => {
                self.under_way = false;
                result
            }
            Err(mpsc::TryRecvError::Empty) => Ok(()),
            Err(mpsc::TryRecvError::Disconnected) => Err(gone()),
        }
    }

    /// Waits for the batch under way.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        match std::mem::take(&mut self.under_way) {
            true => self.results.recv().map_err(|_| gone())?,
            false => Ok(()),
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(db: &Database, mut history: History, queue: &mpsc::Receiver<Batch>, done: &mpsc::Sender<Result<(), Failure>>) {
    while let Ok(batch) = queue.recv() {
        let result = write(db, &mut history, &batch).map_err(Failure::from);
        // Whoever is not there any more has no use for it.
        let _ = done.send(result);
    }
}

fn write(db: &Database, history: &mut History, batch: &Batch) -> Result<(), redb::Error> {
    batch.events.iter().for_each(|event| history.add(event));
    let Portion { records, history } = history.portion();
    let Batch { events, revision, journal } = batch;
    let append = Append { events, revision: *revision, forgotten: &records, history, journal: *journal };
    log::append(db, &append)
}

fn gone() -> Failure {
    Failure::of("the thread that writes the database is gone")
}
