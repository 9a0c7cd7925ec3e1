//! What happens to the journal when a store is opened: what the database has not seen is put into it, in order and without
//! a gap, or the store is not opened. Only a last write that was cut off, and so never acknowledged, is left out.
//!
//! ```text
//! check      both files are those of the database's generation, and reach its floor
//! take over  1. database: what only the journal has; no journal is needed
//!            2. files: mark of a new generation, full length
//!            3. database: the new generation, with which both files are needed
//! ```
//!
//! A crash after any step leaves a store that opens: between 1 and 3 nothing is acknowledged.

use std::io;

use redb::{Database, ReadTransaction, StorageBackend};

use super::disk::{Failure, Place};
use super::file::JOURNAL;
use super::journal::frame::{self, Frame, START};
use super::journal::{self, Medium};
use super::log::{self, JournalMark, LOG, Meta};
use crate::{Error, Revision};

/// The part of a store that only its journal has, and the numbers of its database.
#[derive(Debug)]
pub(super) struct Unseen<'a> {
    /// Frames after the newest revision of the database, in order.
    pub(super) frames: Vec<Frame<'a>>,
    newest: Revision,
    meta: Meta,
}

/// Reads both files of the journal.
pub(super) fn read(media: &[Medium; 2], name: &str) -> Result<[Vec<u8>; 2], Error> {
    Ok([contents(&*media[0], name)?, contents(&*media[1], name)?])
}

/// Finds the frames that the database has not seen, and makes sure that none is missing.
pub(super) fn check<'a>(source: &ReadTransaction, files: &'a [Vec<u8>; 2], name: &str) -> Result<Unseen<'a>, Error> {
    let meta = log::read_meta(source, name)?;
    let newest = log::newest(source, name)?.max(meta.revision);
    if let Some(mark) = meta.journal {
        check_files(files, meta.store, mark, name)?;
    } else if newest == Revision(0) {
        check_no_other_store(files, meta.store, name)?;
    }
    let frames = missing(files, newest, meta.store, name)?;
    let end = frames.last().map_or(newest, |frame| frame.last);
    if let Some(floor) = meta.journal.map(|mark| mark.floor)
        && end < floor
    {
        let what =
            format!("ends at revision {end}, and revision {floor} was on disk: a file was cut or is an older copy");
        return Err(lost(&format!("the journal ({})", JOURNAL.join(", ")), &what, name));
    }
    Ok(Unseen { frames, newest, meta })
}

/// Puts the unseen frames into the database and begins a new generation of the journal; returns the
/// number of the store.
pub(super) fn take_over(
    db: &Database,
    media: &[Medium; 2],
    files: &[Vec<u8>; 2],
    unseen: &Unseen<'_>,
    place: &Place,
) -> Result<u64, Failure> {
    let name = &place.name;
    let Unseen { frames, newest, meta } = unseen;
    for Remains { file, at } in remains(files, frames) {
        tracing::warn!(
            file,
            at,
            "the journal of {name} ends with something incomplete: a write that was cut off before it was acknowledged \
             (unless the disk has damaged it); it is left out"
        );
        media[file].write(at as u64, &[0; frame::HEAD])?;
    }
    let store = meta.store.unwrap_or_else(|| fastrand::u64(1..));
    let revision = frames.last().map_or(*newest, |frame| frame.last);
    let meta = Meta { revision, store: Some(store), journal: None, history: meta.history };
    if unseen.meta.journal.is_some() || unseen.meta.store.is_none() || !frames.is_empty() {
        write(db, frames, meta)?;
    }
    let generation = fastrand::u64(1..);
    for medium in media {
        journal::begin(&**medium, store, generation, place.capacity)?;
    }
    let mark = JournalMark { generation, bytes: place.capacity as u64, floor: revision };
    write(db, &[], Meta { journal: Some(mark), ..meta })?;
    Ok(store)
}

/// The error for a journal file without which acknowledged writes may be lost.
pub(super) fn lost(file: &str, what: &str, database: &str) -> Error {
    Error::Unusable(format!(
        "{file} {what}. The store {database} was not closed, so acknowledged writes may be only in its journal: put the files \
         back that belong to it. To go on without those writes, move store.* out of the data directory and run \
         `fairlead restore` with the store.redb that you moved"
    ))
}

/// Refuses files that are not those that the database was left with.
fn check_files(files: &[Vec<u8>; 2], store: Option<u64>, mark: JournalMark, name: &str) -> Result<(), Error> {
    for (file, bytes) in JOURNAL.iter().zip(files) {
        if bytes.is_empty() {
            return Err(lost(file, "is empty", name));
        }
        if (bytes.len() as u64) < mark.bytes {
            let what = format!("was cut: {} bytes are there of at least {}", bytes.len(), mark.bytes);
            return Err(lost(file, &what, name));
        }
        match frame::read_mark(bytes) {
            Some((of, _)) if Some(of) != store => return Err(lost(file, "is of another store", name)),
            Some((_, generation)) if generation == mark.generation => {}
            Some(_) => return Err(lost(file, "is an older or newer copy than the database", name)),
            None => return Err(lost(file, "is damaged: its first bytes do not say of which store it is", name)),
        }
    }
    Ok(())
}

/// Refuses the journal of a store whose database is missing: the one that is there was made just
/// now.
fn check_no_other_store(files: &[Vec<u8>; 2], store: Option<u64>, name: &str) -> Result<(), Error> {
    for (file, bytes) in JOURNAL.iter().zip(files) {
        if frame::read_mark(bytes).is_some_and(|(of, _)| Some(of) != store) {
            return Err(Error::Unusable(format!(
                "{file} is of another store, and {name} is empty: if its database was lost, put it back; to begin with an empty \
                 store, move all store.* out of the data directory"
            )));
        }
    }
    Ok(())
}

/// The frames that the database has not seen.
fn missing<'a>(
    files: &'a [Vec<u8>; 2],
    newest: Revision,
    store: Option<u64>,
    name: &str,
) -> Result<Vec<Frame<'a>>, Error> {
    let frames = files.iter().flat_map(|file| frame::all(file));
    let mut frames: Vec<Frame<'a>> = frames.filter(|frame| frame.last > newest).collect();
    frames.sort_unstable_by_key(|frame| frame.first);
    if let Some(foreign) = frames.iter().rfind(|frame| Some(frame.store) != store) {
        return Err(Error::Unusable(format!(
            "the journal of {name} has revisions up to {} of another store, and this one ends at {newest}: put the right \
             files together, or move the journal away to go on without it",
            foreign.last
        )));
    }
    let mut next = Revision(newest.0 + 1);
    for frame in &frames {
        if frame.first != next || frame.records().any(|record| record.is_none()) {
            let what = format!(
                "is damaged: revision {next} is missing and revision {} is there; what was written in between would be lost",
                frame.last
            );
            return Err(lost(&format!("the journal ({})", JOURNAL.join(", ")), &what, name));
        }
        next = Revision(frame.last.0 + 1);
    }
    Ok(frames)
}

/// Something in a journal file that is neither a frame nor empty.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Remains {
    pub(super) file: usize,
    pub(super) at: usize,
}

/// What stands, in each file, where the next frame would have come.
fn remains(files: &[Vec<u8>; 2], missing: &[Frame<'_>]) -> Vec<Remains> {
    let next = |file: &[u8]| {
        let newest = frame::all(file).max_by_key(|frame| frame.last);
        let newest = newest.filter(|newest| missing.iter().any(|frame| frame.last == newest.last));
        newest.map_or(START, |frame| frame.end)
    };
    let places = files.iter().enumerate().map(|(file, bytes)| (file, next(bytes), bytes));
    let unreadable = places.filter(|(_, at, bytes)| {
        // Files of format 2 have frames where the mark is now, and any bytes where the first frame
        // is.
        let there = bytes.get(*at..).filter(|_| frame::read_mark(bytes).is_some()).unwrap_or_default();
        there.iter().take(frame::HEAD).any(|byte| *byte != 0) && frame::read(bytes, *at).is_none()
    });
    unreadable.map(|(file, at, _)| Remains { file, at }).collect()
}

fn write(db: &Database, frames: &[Frame<'_>], meta: Meta) -> Result<(), Failure> {
    let append = || -> Result<(), redb::Error> {
        let txn = db.begin_write()?;
        {
            let mut log = txn.open_table(LOG)?;
            for record in frames.iter().flat_map(Frame::records).flatten() {
                log.insert((record.revision.0, record.key), record.value)?;
            }
        }
        log::write_meta(&txn, meta)?;
        txn.commit()?;
        Ok(())
    };
    append().map_err(Failure::from)
}

fn contents(medium: &dyn StorageBackend, name: &str) -> Result<Vec<u8>, Error> {
    journal::read(medium).map_err(|error| unreadable(name, &error))
}

fn unreadable(name: &str, error: &io::Error) -> Error {
    Error::Unusable(format!("the journal of {name} cannot be read: {error}"))
}
