//! What the committer writes to: the journal at once, the database behind it later. Opened at the start, and again when a disk
//! that was full has room.

use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

use redb::Database;

use super::checkpoint::{Batch, Checkpoints};
use super::journal::{Journal, Medium};
use super::log::{self, JournalNeed};
use super::{rebuild, recovery};
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

/// Result of opening the files: the objects in any case, which can be read even if the disk takes
/// no writes.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) state: State,
    pub(super) disk: Result<Disk, Failure>,
}

/// The reason why something was not written.
#[derive(Debug)]
pub(super) struct Failure {
    why: String,
    /// True if the cause can go away by itself, as a full disk does. The files are then opened
    /// again.
    pub(super) temporary: bool,
}

impl Disk {
    /// Opens the files, reads the database and what only the journal has, and takes the latter over
    /// into the database.
    pub(super) fn open(place: &mut Place) -> Result<Opened, Error> {
        let (db, media) = (place.open)()?;
        let name = &place.name;
        let files = recovery::read(&media, name)?;
        let source = log::look(&db, name)?;
        let unseen = recovery::check(&source, &files, name)?;
        let (state, history) = rebuild(&source, &unseen.frames, name)?;
        drop(source);
        let disk = recovery::take_over(&db, &media, &files, &unseen, place).and_then(|store| {
            let journal = Journal::new(media, store, place.capacity)?;
            Ok(Disk { journal, checkpoints: Checkpoints::start(db, history)?, pending: Vec::new() })
        });
        match disk {
            Err(failure) if !failure.temporary => Err(Error::Unusable(format!("{name} cannot be written: {failure}"))),
            disk => Ok(Opened { state, disk }),
        }
    }

    /// Makes events durable that follow a revision.
    pub(super) fn record(&mut self, events: &[Event], after: Revision) -> Result<(), Failure> {
        self.checkpoints.look()?;
        if self.journal.prepare(events) {
            self.journal.append()?;
            self.pending.extend_from_slice(events);
            return Ok(());
        }
        // The other file is free when the database has what was in it. Writers wait for that if
        // they are faster.
        self.checkpoints.finish()?;
        self.journal.turn();
        self.journal.append()?;
        // Only now, for with the database's next transaction the other file must have this frame.
        let full = std::mem::replace(&mut self.pending, events.to_vec());
        let floor = events.last().map_or(after, |event| event.revision);
        self.checkpoints.begin(Batch { events: full, revision: after, journal: JournalNeed::Until(floor) })
    }

    /// Makes sure that events which were not recorded are not found when the files are opened again.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        self.journal.take_back()
    }

    /// Leaves nothing to be recovered. If it fails, the journal still has everything.
    pub(super) fn close(mut self, revision: Revision) -> Result<(), Failure> {
        self.checkpoints.begin(Batch { events: self.pending, revision, journal: JournalNeed::Closed })?;
        self.checkpoints.finish()
    }
}

impl Failure {
    pub(super) fn of(why: &str) -> Failure {
        Failure { why: why.to_owned(), temporary: false }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure { why: error.to_string(), temporary: is_temporary(&error) }
    }
}

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Failure {
        let temporary = matches!(&error, redb::Error::Io(error) if is_temporary(error));
        Failure { why: error.to_string(), temporary }
    }
}

/// Returns true for want of room, memory or descriptors, and for calls to be made again. Other
/// errors (EIO) say nothing about what is on disk: after a failed fsync the kernel may drop pages
/// it reports as written (<https://wiki.postgresql.org/wiki/Fsync_Errors>), so that only a new
/// start may trust the files.
fn is_temporary(error: &io::Error) -> bool {
    let kind = matches!(
        error.kind(),
        ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::OutOfMemory
            | ErrorKind::WouldBlock
            | ErrorKind::Interrupted
    );
    // ENFILE and EMFILE have no kind (asm-generic/errno-base.h).
    kind || matches!(error.raw_os_error(), Some(23 | 24))
}
