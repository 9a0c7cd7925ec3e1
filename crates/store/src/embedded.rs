//! A store in one file: the present in memory, every change in a log on disk before anybody sees it.
//!
//! ```text
//! commit --queue--> committer thread: plan, append to the log, sync, apply --> readers, watchers
//! ```

mod backup;
mod committer;
mod file;
mod history;
mod log;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use redb::{Database, ReadTransaction};
use tokio::sync::{mpsc, oneshot};

use crate::state::{Present, State};
use crate::{Backend, Entry, Error, Event, Outcome, Page, Range, Revision, Txn, Watch};
pub use backup::restore;
use committer::{Committer, Job};
use history::History;
use log::{Change, Meta};

/// Transactions that wait for the disk. Further callers wait for a place.
const QUEUE: usize = 1024;

/// Keeps objects in a file.
#[derive(Debug)]
pub struct Embedded {
    state: Arc<State>,
    db: Arc<Database>,
    /// `None` only while being dropped.
    queue: Option<mpsc::Sender<Job>>,
    committer: Option<JoinHandle<()>>,
}

impl Embedded {
    /// Opens the store of a data directory, or makes an empty one. The file is locked: a second process is refused.
    pub fn open(data_dir: &Path) -> Result<Embedded, Error> {
        file::create_dir(data_dir)?;
        let path = data_dir.join(file::NAME);
        let db = file::open_or_make(&path, |db| log::initialize(db, Meta::EMPTY))?;
        Embedded::start(db, &path.display().to_string())
    }

    /// Copies the store, as it is now, into a file that [`restore`] takes. Commits go on meanwhile; blocks the caller.
    pub fn backup(&self, path: &Path) -> Result<(), Error> {
        backup::backup(&self.db, path)
    }

    fn start(db: Database, name: &str) -> Result<Embedded, Error> {
        let (state, history) = rebuild(&log::look(&db, name)?, name)?;
        let (db, state) = (Arc::new(db), Arc::new(state));
        let (queue, jobs) = mpsc::channel(QUEUE);
        let committer = Committer { db: db.clone(), state: state.clone(), history, broken: None };
        let thread = std::thread::Builder::new().name("store".into());
        let thread = thread.spawn(move || committer.run(jobs));
        let thread = thread.map_err(|error| Error::Unusable(format!("no thread for the store: {error}")))?;
        Ok(Embedded { state, db, queue: Some(queue), committer: Some(thread) })
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
    /// Waits for the queued writes, so that whoever opens the file next finds it closed.
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
}

/// Reads the log: what is present, what happened last, and what is only history.
fn rebuild(source: &ReadTransaction, name: &str) -> Result<(State, History), Error> {
    let meta = log::read_meta(source, name)?;
    let mut present = Present { entries: BTreeMap::new(), revision: meta.revision };
    let (mut events, mut history) = (Vec::new(), History::default());
    log::replay(source, name, |revision, key, change| {
        present.revision = present.revision.max(revision);
        let previous = present.entries.get(key).cloned();
        let event = match (change, previous) {
            (Change::Put(draft), previous) => {
                let entry = Arc::new(Entry::new(key.into(), revision, &draft));
                present.entries.insert(key.into(), entry.clone());
                Event { revision, entry, previous, deleted: false }
            }
            (Change::Delete, Some(previous)) => {
                present.entries.remove(key);
                Event { revision, entry: Arc::new(previous.at(revision)), previous: Some(previous), deleted: true }
            }
            // What it deleted has been forgotten already, and it is next.
            (Change::Delete, None) => return history.push(revision, (revision, key.into()), 0),
        };
        history.add(&event);
        if revision > meta.history {
            events.push(event);
        }
    })?;
    Ok((State::new(present, meta.history, events), history))
}
