//! The files of the history: which there are, how long they may be, when the oldest goes.
//!
//! Each file can be read without the others: it begins with copies of all objects. So the oldest can be removed whole, and a
//! damaged one takes nothing with it but its own rest. Only the newest is written to.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use crate::batch::Batch;
use crate::frame::Frames;
use crate::record::{FORMAT, Record};

#[cfg(test)]
mod tests;

/// How the names of files end.
const ENDING: &str = ".history";
/// The file that says whose history it is.
const CLUSTER: &str = "cluster";
/// A file that is not whole yet.
const PARTIAL: &str = "partial";
/// The part of the room that changes in one file may take.
const PARTS: u64 = 4;
/// The most bytes that wait for a disk that is full. More is discarded and leaves a gap. Twice what
/// the store's journal takes on the same full disk (two files of 1 MiB, whose room is reserved),
/// so that every change acknowledged there is in the history as well.
const MAX_WAITING: usize = 4 << 20;
/// The most bytes that are written at once.
const MOST_AT_ONCE: usize = 256 << 10;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes on disk.
    pub size: u64,
    /// Time.
    pub age: Duration,
}

/// What is known of a file without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    pub(crate) number: u64,
    /// From when on it can be read.
    pub(crate) begins: Timestamp,
    /// When something was written to it last.
    pub(crate) ends: Timestamp,
    /// Its length; what stands beyond it in the file is not whole.
    pub(crate) size: u64,
    /// The length of its head and of the copies it began with.
    base: u64,
    pub(crate) changes: u64,
}

/// The files, the newest open.
#[derive(Debug)]
pub(crate) struct Segments {
    dir: PathBuf,
    bounds: Bounds,
    /// Oldest first.
    all: Vec<Segment>,
    newest: Option<File>,
    unsynced: bool,
}

/// What opening found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// How many bytes were cut off the newest file because they were not whole.
    pub(crate) cut: u64,
    /// Older files that are damaged; what comes after the damage is lost.
    pub(crate) damaged: Vec<PathBuf>,
    /// Whether files of an earlier version were removed, which nobody can read.
    pub(crate) outdated: bool,
}

impl Segments {
    /// Opens the files of a directory, or makes it. What is not whole at the end of the newest is cut off.
    pub(crate) fn open(dir: &Path, bounds: Bounds) -> io::Result<(Segments, Found)> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let (mut all, mut found) = (Vec::new(), Found::default());
        let paths = names(dir)?;
        for (number, path) in &paths {
            let bytes = fs::read(path)?;
            let segment = match look(*number, path, &bytes)? {
                Looked::Readable(segment) => segment,
                unreadable => {
                    found.cut += if unreadable == Looked::Headless { bytes.len() as u64 } else { 0 };
                    found.outdated |= unreadable == Looked::Outdated;
                    fs::remove_file(path)?;
                    continue;
                }
            };
            let more = bytes.len() as u64 - segment.size;
            if more > 0 && Some(number) == paths.last().map(|(number, _)| number) {
                found.cut += more;
                File::options().write(true).open(path)?.set_len(segment.size)?;
            } else if more > 0 {
                found.damaged.push(path.clone());
            }
            all.push(segment);
        }
        let newest = match all.last() {
            Some(segment) => Some(File::options().append(true).open(&segment.path)?),
            None => None,
        };
        Ok((Segments { dir: dir.to_owned(), bounds, all, newest, unsynced: false }, found))
    }

    /// The files, oldest first.
    pub(crate) fn all(&self) -> &[Segment] {
        &self.all
    }

    /// The number of the newest file; 0 if there is none.
    pub(crate) fn newest(&self) -> u64 {
        self.all.last().map_or(0, |segment| segment.number)
    }

    /// How large the copies at the head of a file may be, packed.
    pub(crate) fn room_for_copies(&self) -> u64 {
        self.bounds.size / 2
    }

    /// How many bytes may wait before they are written: so many, at most, are in a file too much.
    pub(crate) fn portion(&self) -> usize {
        usize::try_from(self.bounds.size / 32).unwrap_or(MOST_AT_ONCE).min(MOST_AT_ONCE)
    }

    /// Returns how many bytes may wait for a disk that is full: no more than one file takes, since all
    /// of them go into the newest.
    pub(crate) fn room_for_waiting(&self) -> usize {
        usize::try_from(self.bounds.size / PARTS).unwrap_or(MAX_WAITING).min(MAX_WAITING)
    }

    /// Whether it is time for another file: this one is full, or so old that removing it late would keep too much.
    pub(crate) fn full(&self, now: Timestamp) -> bool {
        let Some(segment) = self.all.last() else { return true };
        let old = elapsed(segment.begins, now) > self.bounds.age / 4 && segment.changes > 0;
        let grown = segment.size.saturating_sub(segment.base) + self.portion() as u64;
        old || grown >= self.bounds.size / PARTS
    }

    /// Begins another file with `copies`, and removes what is too much then.
    pub(crate) fn begin(&mut self, now: Timestamp, copies: &Batch) -> io::Result<()> {
        self.sync()?;
        let number = self.newest() + 1;
        let path = self.dir.join(format!("{number:012}{ENDING}"));
        let mut head = Batch::default();
        head.push(&Record::Head(now, FORMAT));
        self.place(&path, &[head.bytes(), copies.bytes()])?;
        self.newest = Some(File::options().append(true).open(&path)?);
        let size = (head.bytes().len() + copies.bytes().len()) as u64;
        self.all.push(Segment { path, number, begins: now, ends: now, size, base: size, changes: 0 });
        self.trim(now)
    }

    /// Removes files that are too old, and the oldest while there are too many bytes. The newest stays.
    pub(crate) fn trim(&mut self, now: Timestamp) -> io::Result<()> {
        while self.all.len() > 1 {
            let total: u64 = self.all.iter().map(|segment| segment.size).sum();
            let too_much = total + self.bounds.size / PARTS > self.bounds.size;
            if !too_much && elapsed(self.all[0].ends, now) <= self.bounds.age {
                return Ok(());
            }
            let oldest = self.all.remove(0);
            match fs::remove_file(&oldest.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes a file. Under its name it is whole or not there: half a one would hide the one before.
    fn place(&self, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
        let partial = self.dir.join(PARTIAL);
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        let written = parts.iter().try_for_each(|part| file.write_all(part)).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Others need the room, too.
            let _ = fs::remove_file(&partial);
            return Err(error);
        }
        fs::rename(&partial, path)?;
        File::open(&self.dir)?.sync_all()
    }

    /// Appends records: they are in the file when this returns, and on disk after the next [`Segments::sync`].
    pub(crate) fn append(&mut self, now: Timestamp, records: &Batch) -> io::Result<()> {
        let (Some(file), Some(segment)) = (&mut self.newest, self.all.last_mut()) else {
            return Err(io::Error::other("no file was begun"));
        };
        if let Err(error) = file.write_all(records.bytes()) {
            // Half a record would hide all that follow.
            file.set_len(segment.size)?;
            return Err(error);
        }
        segment.size += records.bytes().len() as u64;
        segment.ends = segment.ends.max(now);
        segment.changes += records.changes();
        self.unsynced = true;
        Ok(())
    }

    /// Waits until all is on disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if let (true, Some(file)) = (std::mem::take(&mut self.unsynced), &self.newest) {
            file.sync_data()?;
        }
        Ok(())
    }

    /// Whether the files are of the cluster with this uid.
    pub(crate) fn is_of(&self, uid: &str) -> bool {
        fs::read_to_string(self.dir.join(CLUSTER)).is_ok_and(|known| known == uid)
    }

    /// From now on they are of this cluster. What is of another must be gone before.
    pub(crate) fn claim(&self, uid: &str) -> io::Result<()> {
        self.place(&self.dir.join(CLUSTER), &[uid.as_bytes()])
    }

    /// Removes everything: what is kept is of another store.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        self.newest = None;
        while let Some(segment) = self.all.last() {
            fs::remove_file(&segment.path)?;
            self.all.pop();
        }
        Ok(())
    }
}

/// The bytes of a file that are whole, read without anything of ours being held.
pub(crate) fn read(segment: &Segment) -> io::Result<Vec<u8>> {
    let mut bytes = fs::read(&segment.path)?;
    bytes.truncate(usize::try_from(segment.size).unwrap_or(usize::MAX));
    Ok(bytes)
}

fn names(dir: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(ENDING)?.parse().ok());
        names.extend(number.map(|number| (number, path)));
    }
    names.sort();
    Ok(names)
}

/// What a file is.
#[derive(Debug, PartialEq, Eq)]
enum Looked {
    Readable(Segment),
    /// Of an earlier version.
    Outdated,
    /// Not even its head is whole: nothing in it can be read.
    Headless,
}

/// Looks through a file. One of a later version is nobody's to remove.
fn look(number: u64, path: &Path, bytes: &[u8]) -> io::Result<Looked> {
    let mut frames = Frames::new(bytes);
    let begins = match frames.next().and_then(Record::decode) {
        Some(Record::Head(begins, FORMAT)) => begins,
        Some(Record::Head(_, older)) if older < FORMAT => return Ok(Looked::Outdated),
        Some(Record::Head(_, other)) => {
            let why = format!("{} has format {other}, which this program does not read", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        _ => return Ok(Looked::Headless),
    };
    let (mut changes, mut ends, mut base) = (0, begins, frames.whole());
    while let Some(record) = frames.next() {
        if let Some(at) = Record::time_of_change(record) {
            changes += 1;
            ends = ends.max(at);
        }
        base = if changes == 0 { frames.whole() } else { base };
    }
    let (size, base) = (frames.whole() as u64, base as u64);
    Ok(Looked::Readable(Segment { path: path.to_owned(), number, begins, ends, size, base, changes }))
}

fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}
