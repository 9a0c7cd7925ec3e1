//! Where a write becomes durable: one append and one sync. Two files take turns; while one fills, what is in the other goes
//! into the database, after which it may be written over.
//!
//! ```text
//! file 0: [mark][frame][frame][frame][ older, in the database already ... ]
//! file 1: [mark][frame][frame] ... full: the database takes over its records in the background
//! ```
//!
//! The mark and the length of both files are on disk before the database says that the store is open, so that a file which is
//! missing, cut or an older copy is found at the next start.

pub(super) mod frame;
#[cfg(test)]
mod tests;

use std::io;

use redb::StorageBackend;

use crate::Event;

/// What the journal is written to.
pub(super) type Medium = Box<dyn StorageBackend>;

/// How much a file takes before the other one is used: some hundred changes for one transaction of the database, so that
/// it costs little for each, and little enough to be in memory until then.
pub(super) const CAPACITY: usize = 1 << 20;

/// A file grows by so much. To write over what has been written before costs the sync two thirds of what growing
/// costs it (measured on ext4: 35 us of CPU, not 52), since then only data goes to disk.
const GROWTH: usize = 256 << 10;

/// A buffer larger than this is not kept for the next frame.
const KEPT_BUFFER: usize = 64 << 10;

/// The two files, and where the next frame goes.
#[derive(Debug)]
pub(super) struct Journal {
    files: [File; 2],
    /// The file that is being filled.
    active: usize,
    at: usize,
    capacity: usize,
    store: u64,
    /// The frame about to be written.
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct File {
    medium: Medium,
    len: usize,
}

impl Journal {
    /// Two files in which nothing is needed any more.
    pub(super) fn new(media: [Medium; 2], store: u64, capacity: usize) -> io::Result<Journal> {
        let [first, second] = media;
        let files = [File::new(first)?, File::new(second)?];
        Ok(Journal { files, active: 0, at: frame::START, capacity, store, buffer: Vec::new() })
    }

    /// Lays out the next frame; returns whether it fits into the file that is being filled. An empty file takes any.
    pub(super) fn prepare(&mut self, events: &[Event]) -> bool {
        frame::write(&mut self.buffer, self.store, events);
        self.at == frame::START || self.at + self.buffer.len() + frame::HEAD <= self.capacity
    }

    /// Goes on with the other file. Everything in it must be in the database.
    pub(super) fn turn(&mut self) {
        self.active = 1 - self.active;
        self.at = frame::START;
    }

    /// Writes the frame that was prepared; it is on disk when this returns.
    pub(super) fn append(&mut self) -> io::Result<()> {
        let (file, size) = (&mut self.files[self.active], self.buffer.len());
        frame::seal(&mut self.buffer, self.at as u64);
        // Zeros end what is valid, over whatever was there before; the next frame replaces them.
        let end = self.at + size + frame::HEAD;
        let end = file.make_room(end, GROWTH.min(self.capacity))?;
        self.buffer.resize(end - self.at, 0);
        file.medium.write(self.at as u64, &self.buffer)?;
        file.medium.sync_data()?;
        self.at += size;
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BUFFER);
        Ok(())
    }

    /// Leaves nothing of a frame whose writing failed.
    pub(super) fn take_back(&mut self) -> io::Result<()> {
        let medium = &self.files[self.active].medium;
        let end = (self.at + frame::HEAD) as u64;
        if medium.len()? < end {
            return Ok(());
        }
        medium.write(self.at as u64, &[0; frame::HEAD])?;
        medium.sync_data()
    }
}

impl File {
    fn new(medium: Medium) -> io::Result<File> {
        let len = usize::try_from(medium.len()?).map_err(io::Error::other)?;
        Ok(File { medium, len })
    }

    /// Where a write must end that is wanted to end at `end`: further on if the file grows, so that all of it is written.
    fn make_room(&mut self, end: usize, growth: usize) -> io::Result<usize> {
        if end <= self.len {
            return Ok(end);
        }
        let len = end.next_multiple_of(growth);
        self.medium.set_len(len as u64)?;
        self.len = len;
        Ok(len)
    }
}

/// Writes the mark of a new generation into a file and makes the file at least `bytes` long; both
/// are on disk when this returns. Nothing in the file may be needed any more.
pub(super) fn begin(medium: &dyn StorageBackend, store: u64, generation: u64, bytes: usize) -> io::Result<()> {
    let len = usize::try_from(medium.len()?).map_err(io::Error::other)?;
    if len < bytes {
        medium.set_len(bytes as u64)?;
        // Written and not only counted: a full disk is noticed now, and syncs of frames have no
        // blocks to allocate.
        medium.write(len as u64, &vec![0; bytes - len])?;
    }
    medium.write(0, &frame::mark(store, generation))?;
    medium.sync_data()
}

/// All of a journal file.
pub(super) fn read(medium: &dyn StorageBackend) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(medium.len()?).map_err(io::Error::other)?];
    medium.read(0, &mut bytes)?;
    Ok(bytes)
}
