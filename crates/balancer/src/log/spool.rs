//! Files on their way to an object store: kept on disk until they are there, the oldest given up when there are too many.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairlead_cluster::Backoff;
use tokio::sync::Notify;
use tokio::time;

use super::s3::Bucket;

/// What a file is called while lines are added to it.
pub(super) const PARTIAL: &str = "partial";

/// The files of one bucket.
#[derive(Debug)]
pub(super) struct Spool {
    /// Names under it are those in the bucket.
    pub base: PathBuf,
    pub bucket: Bucket,
    /// A file was finished.
    pub finished: Notify,
    /// Lines given up are counted here.
    pub lost: Arc<AtomicU64>,
    /// What may wait, in bytes.
    pub limit: u64,
    /// Files given up since the last report.
    pub given_up: Cell<Option<GivenUp>>,
}

/// Files that were given up and not reported yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct GivenUp {
    files: usize,
    lines: u64,
    reported: Instant,
}

/// Interval at which files over the limit are given up while others are carried away.
const TRIM: Duration = Duration::from_secs(10);
/// Minimum time between two log lines about files that were given up.
const REPORT: Duration = Duration::from_secs(60);

/// A day has hundreds of files of a load balancer; directories deeper than names of ours are somebody else's.
const DEEPEST: usize = 24;

impl Spool {
    /// Carries files away as they are finished, for ever.
    pub(super) async fn run(self: Rc<Self>) {
        let backoff = Backoff { first: Duration::from_secs(1), most: Duration::from_secs(300), tries: u32::MAX };
        let mut failed = 0;
        loop {
            match self.carry().await {
                Ok(()) => {
                    failed = 0;
                    self.finished.notified().await;
                }
                Err(error) => {
                    if failed == 0 {
                        tracing::warn!(bucket = %self.bucket.name, %error, "access logs wait on disk");
                    }
                    failed += 1;
                    time::sleep(backoff.wait(failed)).await;
                }
            }
        }
    }

    /// Carries away what is finished now, oldest first.
    pub(super) async fn carry(&self) -> Result<(), super::s3::Error> {
        let mut files = VecDeque::from(self.trim());
        let mut trimmed = Instant::now();
        while let Some((path, _)) = files.pop_front() {
            // A store that takes a minute for each file must not let others pile up meanwhile.
            if trimmed.elapsed() >= TRIM {
                files = VecDeque::from(self.trim());
                trimmed = Instant::now();
                continue;
            }
            let Some(key) = path.strip_prefix(&self.base).ok().and_then(Path::to_str) else { continue };
            let Ok(content) = fs::read(&path) else { continue };
            self.bucket.put(key, Bytes::from(content)).await?;
            remove(&path, &self.base);
        }
        Ok(())
    }

    /// What is finished, oldest first, after the oldest that do not fit were given up.
    fn trim(&self) -> Vec<(PathBuf, u64)> {
        let mut files = finished(&self.base);
        let mut size: u64 = files.iter().map(|(_, size)| size).sum();
        let mut given_up = 0;
        let mut lost = 0;
        while size > self.limit && given_up < files.len() {
            let (path, its) = &files[given_up];
            let lines = fs::read(path).map(|text| text.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(0);
            lost += lines as u64;
            remove(path, &self.base);
            size -= its;
            given_up += 1;
        }
        self.lost.fetch_add(lost, Ordering::Relaxed);
        self.report(given_up, lost);
        files.split_off(given_up)
    }

    /// Logs how many files were given up, at most once a minute.
    fn report(&self, files: usize, lines: u64) {
        let (files, lines, last) = match self.given_up.get() {
            Some(before) => (before.files + files, before.lines + lines, Some(before.reported)),
            None => (files, lines, None),
        };
        if files == 0 {
            return;
        }
        if last.is_some_and(|last| last.elapsed() < REPORT) {
            let reported = last.unwrap_or_else(Instant::now);
            return self.given_up.set(Some(GivenUp { files, lines, reported }));
        }
        let bucket = &self.bucket.name;
        let limit = self.limit;
        tracing::warn!(%bucket, files, lines, limit, "access logs are given up: too many wait for the object store");
        self.given_up.set(Some(GivenUp { files: 0, lines: 0, reported: Instant::now() }));
    }
}

/// Finishes what another process left unfinished. `abandoned` says which by how long ago lines were added.
pub(super) fn recover(base: &Path, abandoned: impl Fn(Duration) -> bool) {
    for path in files_under(base) {
        let idle = fs::metadata(&path).and_then(|meta| meta.modified()).ok().and_then(|time| time.elapsed().ok());
        if path.extension().is_some_and(|extension| extension == PARTIAL) && idle.is_some_and(&abandoned) {
            let _ = finish(&path);
        }
    }
}

/// A file whose last line is written gets its name.
pub(super) fn finish(partial: &Path) -> io::Result<()> {
    fs::rename(partial, partial.with_extension(""))?;
    // So that the name is there after a crash, too.
    partial.parent().map_or(Ok(()), |dir| fs::File::open(dir)?.sync_all())
}

/// Finished files with their sizes, oldest first.
fn finished(base: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for path in
        files_under(base).into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "log"))
    {
        if let Ok(meta) = fs::metadata(&path) {
            found.push((meta.modified().ok(), path, meta.len()));
        }
    }
    found.sort();
    found.into_iter().map(|(_, path, size)| (path, size)).collect()
}

fn files_under(base: &Path) -> Vec<PathBuf> {
    let (mut files, mut dirs) = (Vec::new(), vec![(base.to_owned(), 0)]);
    while let Some((dir, depth)) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEEPEST => dirs.push((entry.path(), depth + 1)),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files
}

/// Removes a file, and the directories above it that are empty then.
fn remove(path: &Path, base: &Path) {
    let _ = fs::remove_file(path);
    for dir in path.ancestors().skip(1).take_while(|dir| *dir != base) {
        if fs::remove_dir(dir).is_err() {
            break;
        }
    }
}
