//! A store in one directory: the present in memory, every change in a journal on disk before anybody sees it.
//!
//! ```text
//! commit --queue--> committer thread: plan, append to the journal, sync, apply --> readers, watchers
//!                                                  |
//!                                                  +--> checkpoint thread: many changes at once into the database
//! ```
//!
//! The database is read only at the start. What it has not seen by then is in the journal.

mod backup;
mod checkpoint;
mod committer;
mod disk;
mod file;
mod history;
mod journal;
mod log;
mod recovery;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use journal::frame::Frame;
use redb::ReadTransaction;
use tokio::sync::{mpsc, oneshot};

use crate::state::{Present, State};
use crate::{Backend, Entry, Error, Event, Outcome, Page, Range, Revision, Txn, Watch};
pub use backup::restore;
use committer::{Committer, Job, Trouble};
use disk::{Disk, Opened, Place};
use history::History;
use log::{Change, Meta};

/// Transactions that wait for the disk. Further callers wait for a place.
const QUEUE: usize = 1024;

/// Time between attempts to write again to a disk that was full. To open the files again takes the
/// longer, the more objects there are.
const RETRY: Duration = Duration::from_secs(2);

/// Keeps objects in files.
#[derive(Debug)]
pub struct Embedded {
    state: Arc<State>,
    trouble: Arc<Trouble>,
    /// `None` only while being dropped.
    queue: Option<mpsc::Sender<Job>>,
    committer: Option<JoinHandle<()>>,
}

impl Embedded {
    /// Opens the store of a data directory, or makes an empty one. The database is locked: a second
    /// process is refused.
    ///
    /// A store on a full disk is opened for reading: [`Backend::health`] says so, and writes are
    /// refused until there is room.
    pub fn open(data_dir: &Path) -> Result<Embedded, Error> {
        file::create_dir(data_dir)?;
        let path = data_dir.join(file::NAME);
        let name = path.display().to_string();
        let data_dir = data_dir.to_owned();
        let open = move || {
            let db = file::open_or_make(&path, |db| log::initialize(db, Meta::at(Revision(0))))?;
            let meta = log::read_meta(&log::look(&db, &path.display().to_string())?, &path.display().to_string())?;
            Ok((db, file::open_journal(&data_dir, meta.journal.is_some())?))
        };
        Embedded::start(Place { open: Box::new(open), capacity: journal::CAPACITY, name, retry: RETRY })
    }

    /// Copies the store, as it is now, into a file that [`restore`] takes. Commits go on meanwhile; blocks the caller.
    pub fn backup(&self, path: &Path) -> Result<(), Error> {
        backup::backup(self.state.page(&Range::default())?, path)
    }

    fn start(mut place: Place) -> Result<Embedded, Error> {
        let Opened { state, disk } = Disk::open(&mut place)?;
        let state = Arc::new(state);
        let trouble = Arc::new(Trouble::default());
        let mut committer = Committer {
            state: state.clone(),
            place,
            disk: None,
            trouble: trouble.clone(),
            retry: None,
            told: String::new(),
        };
        match disk {
            Ok(disk) => committer.disk = Some(disk),
            Err(failure) => drop(committer.give_up(&failure)),
        }
        let (queue, jobs) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new().name("store".into());
        let thread = thread.spawn(move || committer.run(jobs));
        let thread = thread.map_err(|error| Error::Unusable(format!("no thread for the store: {error}")))?;
        Ok(Embedded { state, trouble, queue: Some(queue), committer: Some(thread) })
    }

    async fn enqueue(&self, txn: Txn) -> Result<Outcome, Error> {
        let closed = || Error::Unavailable("it has been closed".into());
        let (done, outcome) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.send(Job { txn, done }).await.map_err(|_| closed())?;
        outcome.await.map_err(|_| closed())?
    }
}

impl Drop for Embedded {
    /// Waits for the queued writes, so that whoever opens the files next finds them closed.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.committer.take() {
            let _ = thread.join();
        }
    }
}

impl Backend for Embedded {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Entry>>, Error>> {
        ready(Ok(self.state.entry(key))).boxed()
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>> {
        ready(self.state.page(&range)).boxed()
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.enqueue(txn).boxed()
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Watch, Error>> {
        ready(self.state.watch(prefix, after)).boxed()
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        ready(Ok(self.state.revision())).boxed()
    }

    fn health(&self) -> BoxFuture<'_, Result<(), Error>> {
        ready(self.trouble.get().map_or(Ok(()), Err)).boxed()
    }
}

/// Reads the database and the frames that follow it: what is present, what happened last, and what
/// is only history.
fn rebuild(source: &ReadTransaction, frames: &[Frame<'_>], name: &str) -> Result<(State, History), Error> {
    let meta = log::read_meta(source, name)?;
    let mut present = Present::at(meta.revision);
    let (mut events, mut history) = (Vec::new(), History::default());
    let mut add = |revision: Revision, key: &str, change: Change| {
        present.revision = present.revision.max(revision);
        let previous = present.entry(key).cloned();
        let event = match (change, previous) {
            (Change::Put(draft), previous) => {
                let entry = Arc::new(Entry::new(key.into(), revision, &draft));
                present.put(entry.clone());
                Event { revision, entry, previous, deleted: false }
            }
            (Change::Delete, Some(previous)) => {
                present.remove(key);
                Event { revision, entry: Arc::new(previous.at(revision)), previous: Some(previous), deleted: true }
            }
            // What it deleted has been forgotten already, and it is next.
            (Change::Delete, None) => return history.push(revision, (revision, key.into()), 0),
        };
        history.add(&event);
        if revision > meta.history {
            events.push(event);
        }
    };
    log::replay(source, name, &mut add)?;
    for record in frames.iter().flat_map(Frame::records).flatten() {
        let damaged =
            |why: &str| Error::Damaged { key: record.key.into(), why: format!("{why} in the journal of {name}") };
        add(record.revision, record.key, log::decode(record.value).map_err(damaged)?);
    }
    Ok((State::new(present, meta.history, events), history))
}
