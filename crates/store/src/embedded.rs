//! A store in one file: the present in memory, every change in a log on disk before anybody sees it.
//!
//! ```text
//! commit --queue--> committer thread: plan, append to the log, sync, apply --> readers, watchers
//! ```

mod backup;
mod committer;
mod history;
mod log;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use redb::{Database, DatabaseError};
use tokio::sync::{mpsc, oneshot};

use crate::state::{Present, State};
use crate::{Backend, Entry, Error, Event, Outcome, Page, Range, Revision, Txn, Watch};
pub use backup::restore;
use committer::{Committer, Job};
use history::History;
use log::{Change, Meta};

/// The file in the data directory.
const FILE: &str = "store.redb";

/// Transactions that wait for the disk. Further callers wait for a place.
const QUEUE: usize = 1024;

/// The log is read once, at the start, and then only written; what redb caches beyond the pages of a batch is waste.
const CACHE_BYTES: usize = 16 << 20;

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
        create_dir(data_dir)?;
        let path = data_dir.join(FILE);
        let db = open_file(&path)?;
        sync_parent(&path)?;
        Embedded::start(db, &path.display().to_string())
    }

    /// Copies the store, as it is now, into a file that [`restore`] takes. Commits go on meanwhile; blocks the caller.
    pub fn backup(&self, path: &Path) -> Result<(), Error> {
        backup::backup(&self.db, path)
    }

    fn start(db: Database, name: &str) -> Result<Embedded, Error> {
        let empty = Meta { revision: Revision(0), history: Revision(0) };
        let meta = match log::read_meta(&db, name)? {
            Some(meta) => meta,
            None => {
                log::initialize(&db, empty).map_err(|error| log::unreadable(name, &error))?;
                empty
            }
        };
        let (state, history) = rebuild(&db, name, meta)?;
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
fn rebuild(db: &Database, name: &str, meta: Meta) -> Result<(State, History), Error> {
    let mut present = Present { entries: BTreeMap::new(), revision: meta.revision };
    let (mut events, mut history) = (Vec::new(), History::default());
    log::replay(db, name, |revision, key, change| {
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

/// Opens or makes a database file only its owner can read: it holds Secrets.
fn open_file(path: &Path) -> Result<Database, Error> {
    let name = path.display();
    let file = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = file.map_err(|error| Error::Unusable(format!("{name} cannot be opened: {error}")))?;
    Database::builder().set_cache_size(CACHE_BYTES).create_file(file).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => Error::Unusable(format!("{name} is in use by another process")),
        DatabaseError::UpgradeRequired(version) => Error::Unusable(format!(
            "{name} has version {version} of the redb file format, which this program does not read"
        )),
        other => log::unreadable(&name.to_string(), &other.into()),
    })
}

fn create_dir(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| Error::Unusable(format!("{} cannot be made: {error}", path.display())))
}

/// A new name is on disk only when its directory is.
fn sync_parent(path: &Path) -> Result<(), Error> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let synced = File::open(parent).and_then(|dir| dir.sync_all());
    synced.map_err(|error| Error::Unusable(format!("{} cannot be synced: {error}", parent.display())))
}
