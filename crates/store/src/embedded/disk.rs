//! What the committer writes to: the journal at once, the database behind it later. Opened at the start, and again when a disk
//! that was full has room.

use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

use redb::Database;

use super::checkpoint::Checkpoints;
use super::journal::{Journal, Medium};
use super::{log, rebuild, recovery};
use crate::state::State;
use crate::{Error, Event, Revision};

/// Opens the database and the two files of the journal.
pub(super) type Opener = Box<dyn FnMut() -> Result<(Database, [Medium; 2]), Error> + Send>;

/// Where the files are.
pub(super) struct Place {
    pub(super) open: Opener,
    /// How much a file of the journal takes.
    pub(super) capacity: usize,
    /// What messages call it.
    pub(super) name: String,
    /// How often to see whether a disk that was full has room.
    pub(super) retry: Duration,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The files, open.
#[derive(Debug)]
pub(super) struct Disk {
    journal: Journal,
    checkpoints: Checkpoints,
    /// What is in the file of the journal that is being filled, and not yet in the database.
    pending: Vec<Event>,
}

/// Why something was not written.
#[derive(Debug)]
pub(super) struct Failure {
    why: String,
    /// For want of room, which there may be again.
    pub(super) full: bool,
}

impl Disk {
    /// Opens the files, takes over into the database what only the journal has, and reads it.
    pub(super) fn open(place: &mut Place) -> Result<(Disk, State), Error> {
        let (db, media) = (place.open)()?;
        let name = &place.name;
        let store = recovery::recover(&db, &media, name)?;
        let (state, history) = rebuild(&log::look(&db, name)?, name)?;
        let journal = Journal::new(media, store, place.capacity);
        let journal = journal.map_err(|error| Error::Unusable(format!("the journal of {name}: {error}")))?;
        let checkpoints = Checkpoints::start(db, history)?;
        Ok((Disk { journal, checkpoints, pending: Vec::new() }, state))
    }

    /// Makes events durable that follow a revision.
    pub(super) fn record(&mut self, events: &[Event], after: Revision) -> Result<(), Failure> {
        self.checkpoints.look()?;
        if !self.journal.prepare(events) {
            // The other file is free when the database has what was in it. Writers wait for that if they are faster.
            self.checkpoints.begin(std::mem::take(&mut self.pending), after)?;
            self.journal.turn();
        }
        self.journal.append()?;
        self.pending.extend_from_slice(events);
        Ok(())
    }

    /// Makes sure that events which were not recorded are not found when the files are opened again.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        self.journal.take_back()
    }

    /// Leaves nothing to be recovered. If it fails, the journal still has everything.
    pub(super) fn close(mut self, revision: Revision) -> Result<(), Failure> {
        if !self.pending.is_empty() {
            self.checkpoints.begin(self.pending, revision)?;
        }
        self.checkpoints.finish()
    }
}

impl Failure {
    pub(super) fn of(why: &str) -> Failure {
        Failure { why: why.to_owned(), full: false }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure { why: error.to_string(), full: is_full(&error) }
    }
}

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Failure {
        let full = matches!(&error, redb::Error::Io(error) if is_full(error));
        Failure { why: error.to_string(), full }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
