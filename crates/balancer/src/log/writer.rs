//! The thread that turns entries into files: ten times a second what waits is added to each log's file, and files whose interval
//! is over, or that are large, get their name.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::name::{self, Owner};
use super::spool::{self, Spool};
use super::{Bucket, Destination, Entry, Log, Target, line};

/// What all logs share.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Twelve digits, in names of files.
    pub account: String,
    /// In names of files.
    pub region: String,
    /// Where files wait for object stores.
    pub spool: PathBuf,
    /// How much may wait for each, in bytes.
    pub spool_limit: u64,
}

/// The logs of all load balancers. Dropping it ends them.
#[derive(Debug)]
pub struct Logs {
    shared: Arc<Shared>,
    stop: CancellationToken,
    ended: oneshot::Receiver<()>,
}

#[derive(Debug)]
struct Shared {
    open: Mutex<Vec<Log>>,
    /// Bytes that wait in all logs together.
    waiting: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
    written: AtomicU64,
}

/// How often waiting entries are looked at.
const TICK: Duration = Duration::from_millis(100);

/// A file of this size is finished before its time: it is sent in one piece.
const LARGEST: u64 = 64 << 20;

/// At the end, object stores get so long to take the last files. What they do not take waits for the next start.
const FAREWELL: Duration = Duration::from_secs(5);

impl Default for Settings {
    fn default() -> Settings {
        let (account, region) = ("000000000000".to_owned(), "fairlead".to_owned());
        Settings { account, region, spool: "/var/lib/fairlead/access-logs".into(), spool_limit: 256 << 20 }
    }
}

impl Logs {
    /// Starts the thread.
    pub fn start(settings: Settings) -> io::Result<Logs> {
        let shared = Shared {
            open: Mutex::default(),
            waiting: Arc::default(),
            lost: Arc::default(),
            written: AtomicU64::new(0),
        };
        let (shared, stop, (done, ended)) = (Arc::new(shared), CancellationToken::new(), oneshot::channel());
        let (ours, until) = (shared.clone(), stop.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("access-logs".to_owned()).spawn(move || {
            LocalSet::new().block_on(&runtime, Writer::new(settings, ours).run(until));
            let _ = done.send(());
        })?;
        Ok(Logs { shared, stop, ended })
    }

    /// A log; the same one for the same destination, as long as somebody has it.
    pub fn open(&self, destination: &Destination) -> Log {
        let mut open = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = open.iter().find(|log| log.destination() == destination) {
            return log.clone();
        }
        let log = Log::new(destination.clone(), self.shared.waiting.clone(), self.shared.lost.clone());
        open.push(log.clone());
        log
    }

    /// Lines that were lost so far: the queue was full, a file could not be written, or an object store was away too long.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Lines that were written to files so far.
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Finishes all files, whatever the time.
    pub async fn stop(mut self) {
        self.stop.cancel();
        let _ = (&mut self.ended).await;
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Writer {
    settings: Settings,
    owner: Owner,
    shared: Arc<Shared>,
    /// By load balancer and place, so that a log that is opened again goes on in its file.
    files: HashMap<(String, PathBuf), Unfinished>,
    /// Where others' unfinished files have been looked for.
    known: HashSet<PathBuf>,
    spools: HashMap<PathBuf, (Rc<Spool>, AbortOnDrop)>,
    /// What cannot be written to, so that it is said once.
    failing: HashSet<PathBuf>,
    entries: Vec<Entry>,
    text: String,
}

/// A file lines are added to.
struct Unfinished {
    end: Timestamp,
    path: PathBuf,
    file: File,
    size: u64,
}

impl Writer {
    fn new(settings: Settings, shared: Arc<Shared>) -> Writer {
        let owner = Owner { account: settings.account.clone(), region: settings.region.clone() };
        Writer {
            settings,
            owner,
            shared,
            files: HashMap::new(),
            known: HashSet::new(),
            spools: HashMap::new(),
            failing: HashSet::new(),
            entries: Vec::new(),
            text: String::new(),
        }
    }

    async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let _ = time::timeout(TICK, stop.cancelled()).await;
            self.look(Timestamp::now());
        }
        self.finish(|_| true);
        let spools: Vec<_> = self.spools.drain().map(|(_, (spool, _))| spool).collect();
        let _ = time::timeout(FAREWELL, join_all(spools.iter().map(|spool| spool.carry()))).await;
    }

    /// Adds what waits, finishes what is over, and forgets logs nobody has any more.
    fn look(&mut self, now: Timestamp) {
        let logs = self.shared.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for log in &logs {
            let mut entries = std::mem::take(&mut self.entries);
            log.take(&mut entries);
            self.add(log.destination(), &entries, now);
            self.entries = entries;
        }
        drop(logs);
        self.finish(|file| file.end <= now || file.size >= LARGEST);
        self.shared.open.lock().unwrap_or_else(PoisonError::into_inner).retain(|log| !log.is_abandoned());
    }

    fn add(&mut self, destination: &Destination, entries: &[Entry], now: Timestamp) {
        let base = self.base(destination);
        if entries.is_empty() {
            return;
        }
        self.text.clear();
        entries.iter().for_each(|entry| line::write(&destination.name, entry, &mut self.text));
        let result = self.append(destination, &base, now);
        let count = if result.is_ok() { &self.shared.written } else { &*self.shared.lost };
        count.fetch_add(entries.len() as u64, Ordering::Relaxed);
        match result {
            Ok(()) => drop(self.failing.remove(&base)),
            Err(error) if self.failing.insert(base.clone()) => {
                tracing::warn!(path = %base.display(), %error, "access logs cannot be written");
            }
            Err(_) => {}
        }
    }

    fn append(&mut self, destination: &Destination, base: &Path, now: Timestamp) -> io::Result<()> {
        let key = (destination.name.clone(), base.join(&destination.prefix));
        let over = |file: &Unfinished| file.end <= now || file.size >= LARGEST;
        if self.files.get(&key).is_some_and(over) {
            self.finish(over);
        }
        let file = match self.files.entry(key.clone()) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(Unfinished::begin(&self.owner, destination, base, now)?)
            }
        };
        let result = file.file.write_all(self.text.as_bytes());
        file.size += self.text.len() as u64;
        if result.is_err() {
            // Half a line may be in it; the next begins a file of its own.
            self.finish(|file| file.path.starts_with(base));
        }
        result
    }

    /// Gives files of which this is true their names, and tells who carries them away.
    fn finish(&mut self, over: impl Fn(&Unfinished) -> bool) {
        for (_, file) in self.files.extract_if(|_, file| over(file)) {
            let synced = file.file.sync_all().and_then(|()| spool::finish(&file.path));
            if let Err(error) = synced {
                tracing::warn!(path = %file.path.display(), %error, "an access log cannot be finished");
            }
        }
        self.spools.values().for_each(|(spool, _)| spool.finished.notify_one());
    }

    /// The directory names begin in, made ready for use the first time.
    fn base(&mut self, destination: &Destination) -> PathBuf {
        match &destination.target {
            Target::Directory(path) => {
                if self.known.insert(path.clone()) {
                    // It may be shared with others, whose files are finished an interval after they began.
                    let longest = destination.interval.max(HOUR) + Duration::from_secs(300);
                    spool::recover(path, |idle| idle > longest);
                }
                path.clone()
            }
            Target::S3(bucket) => self.spool(bucket),
        }
    }

    /// The directory of what waits for a bucket, with somebody who carries it away.
    fn spool(&mut self, bucket: &Bucket) -> PathBuf {
        let base = self.settings.spool.join(name::clean(&bucket.name));
        if self.spools.get(&base).is_some_and(|spool| spool.0.bucket == *bucket) {
            return base;
        }
        if self.known.insert(base.clone()) {
            spool::recover(&base, |_| true);
        }
        let (finished, lost, limit) = (Notify::new(), self.shared.lost.clone(), self.settings.spool_limit);
        let spool = Rc::new(Spool {
            base: base.clone(),
            bucket: bucket.clone(),
            finished,
            lost,
            limit,
            given_up: Cell::new(None),
        });
        let carrier = AbortOnDrop(spawn_local(spool.clone().run()));
        self.spools.insert(base.clone(), (spool, carrier));
        base
    }
}

/// A task that ends with whoever needs it.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The longest interval there is.
const HOUR: Duration = Duration::from_secs(3600);

impl Unfinished {
    fn begin(owner: &Owner, destination: &Destination, base: &Path, now: Timestamp) -> io::Result<Unfinished> {
        let end = name::end_of_interval(now, destination.interval);
        let random: String = std::iter::repeat_with(fastrand::lowercase).take(8).collect();
        let path = base.join(name::of_file(owner, destination, end, &random));
        let path = path.with_extension(format!("log.{}", spool::PARTIAL));
        fs::create_dir_all(path.parent().unwrap_or(base))?;
        let file = File::options().create_new(true).append(true).open(&path)?;
        Ok(Unfinished { end, path, file, size: 0 })
    }
}
