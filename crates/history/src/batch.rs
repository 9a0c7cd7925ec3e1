//! Records on their way into a file: already as they will stand there, so that many are written at once.

use crate::frame;
use crate::record::Record;

/// Records, encoded and framed.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    changes: u64,
}

impl Batch {
    pub(crate) fn push(&mut self, record: &Record) {
        self.changes += u64::from(matches!(record, Record::Change(_)));
        frame::put_with(&mut self.bytes, |out| record.append(out));
    }

    /// Copies, encoded before.
    pub(crate) fn extend(&mut self, copies: &[Vec<u8>]) {
        copies.iter().for_each(|copy| frame::put(&mut self.bytes, copy));
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many of the records are changes.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Forgets them; the room they had stays, unless it is much.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(64 << 10);
        self.changes = 0;
    }
}
