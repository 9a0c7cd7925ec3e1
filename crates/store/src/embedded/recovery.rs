//! What happens to the journal when a store is opened: what the database has not seen is put into it, in order and without
//! a gap, or the store is not opened. Only a last write that was cut off, and so never acknowledged, is left out.

use std::io;

use redb::{Database, StorageBackend};

use super::journal::frame::{self, Frame};
use super::journal::{self, Medium};
use super::log::{self, LOG, Meta};
use crate::{Error, Revision};

/// Puts into the database what only the journal has; returns which store it is.
pub(super) fn recover(db: &Database, media: &[Medium; 2], name: &str) -> Result<u64, Error> {
    let look = log::look(db, name)?;
    let meta = log::read_meta(&look, name)?;
    let newest = log::newest(&look, name)?.max(meta.revision);
    drop(look);
    let files = [contents(&*media[0], name)?, contents(&*media[1], name)?];
    let missing = missing(&files, newest, meta.store, name)?;
    for Remains { file, at } in remains(&files, &missing) {
        tracing::warn!(
            file,
            at,
            "the journal of {name} ends with something incomplete: a write that was cut off before it was acknowledged \
             (unless the disk has damaged it); it is left out"
        );
        media[file].write(at as u64, &[0; frame::HEAD]).map_err(|error| unreadable(name, &error))?;
    }
    if missing.is_empty()
        && let Some(store) = meta.store
    {
        return Ok(store);
    }
    let store = meta.store.unwrap_or_else(|| fastrand::u64(1..));
    let revision = missing.last().map_or(newest, |frame| frame.last);
    let written = write(db, &missing, Meta { revision, store: Some(store), ..meta });
    written.map_err(|error| Error::Unusable(format!("{name} cannot be written: {error}")))?;
    Ok(store)
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
            return Err(Error::Unusable(format!(
                "the journal of {name} is damaged: revision {next} is missing and revision {} is there; what was written \
                 in between would be lost",
                frame.last
            )));
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
        newest.map_or(0, |frame| frame.end)
    };
    let places = files.iter().enumerate().map(|(file, bytes)| (file, next(bytes), bytes));
    let unreadable = places.filter(|(_, at, bytes)| {
        let there = bytes.get(*at..).unwrap_or_default();
        there.iter().take(frame::HEAD).any(|byte| *byte != 0) && frame::read(bytes, *at).is_none()
    });
    unreadable.map(|(file, at, _)| Remains { file, at }).collect()
}

fn write(db: &Database, frames: &[Frame<'_>], meta: Meta) -> Result<(), redb::Error> {
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
}

fn contents(medium: &dyn StorageBackend, name: &str) -> Result<Vec<u8>, Error> {
    journal::read(medium).map_err(|error| unreadable(name, &error))
}

fn unreadable(name: &str, error: &io::Error) -> Error {
    Error::Unusable(format!("the journal of {name} cannot be read: {error}"))
}
