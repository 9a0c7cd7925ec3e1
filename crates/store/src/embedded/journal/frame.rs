//! How a batch of log records lies in a journal file as one frame, and how frames are found again.
//!
//! | bytes | what                                                                                        |
//! |-------|---------------------------------------------------------------------------------------------|
//! | 4     | `FLJ1`                                                                                      |
//! | 4     | CRC-32 of the frame's offset in the file (8 bytes) and of everything below                  |
//! | 4     | length of the records                                                                       |
//! | 4     | zero                                                                                        |
//! | 8     | the store it belongs to                                                                     |
//! | 8, 8  | the first and the last revision in it                                                       |
//! | ...   | records: revision (8), length of the key (4), length of the value (4), key, value           |
//! | 0-7   | zeros up to a multiple of 8                                                                 |
//!
//! Frames begin at byte 4096 of a file. Before them is the mark, written when the store is opened and never after:
//!
//! | bytes | what                                                                                        |
//! |-------|---------------------------------------------------------------------------------------------|
//! | 4     | `FLG1`                                                                                      |
//! | 4     | CRC-32 as above, of all 40 bytes                                                            |
//! | 8     | zero                                                                                        |
//! | 8     | the store it belongs to                                                                     |
//! | 8     | the generation: a random number of this opening, which the database has too                 |
//! | 8     | zero                                                                                        |
//!
//! Numbers are little endian. A frame is one write, so one checksum holds for all of it: a write that was cut off is no
//! frame. The length is far below 2^24, so a header has a zero byte where JSON never has one: no object looks like a frame.

use std::ops::Range;

use super::super::log;
use crate::{Event, Revision};

const MAGIC: [u8; 4] = *b"FLJ1";
/// The beginning of the mark.
const MARK: [u8; 4] = *b"FLG1";
/// Offset of the first frame. A disk writes sectors of at most 4096 bytes at once, so that no frame
/// can damage the mark.
pub(in crate::embedded) const START: usize = 4096;
/// Frames begin at multiples of this.
const ALIGN: usize = 8;
/// Bytes before the records.
pub(in crate::embedded) const HEAD: usize = 40;
const RECORD_HEAD: usize = 16;

/// A frame in a file that has been read.
#[derive(Debug, Clone, Copy)]
pub(in crate::embedded) struct Frame<'a> {
    pub(in crate::embedded) store: u64,
    pub(in crate::embedded) first: Revision,
    pub(in crate::embedded) last: Revision,
    /// Where the next frame begins, if it is of the same filling.
    pub(in crate::embedded) end: usize,
    records: &'a [u8],
}

/// One log record of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::embedded) struct Record<'a> {
    pub(in crate::embedded) revision: Revision,
    pub(in crate::embedded) key: &'a str,
    pub(in crate::embedded) value: &'a [u8],
}

/// Lays out events as a frame of a store, all but its checksum. Of no events there is no frame.
pub(super) fn write(out: &mut Vec<u8>, store: u64, events: &[Event]) {
    let revision = |event: Option<&Event>| event.map_or(0, |event| event.revision.0).to_le_bytes();
    out.clear();
    out.resize(HEAD, 0);
    out[..4].copy_from_slice(&MAGIC);
    out[16..24].copy_from_slice(&store.to_le_bytes());
    out[24..32].copy_from_slice(&revision(events.first()));
    out[32..40].copy_from_slice(&revision(events.last()));
    events.iter().for_each(|event| write_record(out, event));
    let records = u32::try_from(out.len() - HEAD).expect("a batch is much smaller than 4 GiB");
    out[8..12].copy_from_slice(&records.to_le_bytes());
    out.resize(out.len().next_multiple_of(ALIGN), 0);
}

/// Sets the checksum of a frame that will stand at an offset.
pub(in crate::embedded) fn seal(frame: &mut [u8], at: u64) {
    let sum = checksum(frame, at);
    frame[4..8].copy_from_slice(&sum.to_le_bytes());
}

/// Returns the first block of a file: the mark, zeros, and zeros where the first frame will stand.
pub(in crate::embedded) fn mark(store: u64, generation: u64) -> Vec<u8> {
    let mut mark = vec![0; HEAD];
    mark[..4].copy_from_slice(&MARK);
    mark[16..24].copy_from_slice(&store.to_le_bytes());
    mark[24..32].copy_from_slice(&generation.to_le_bytes());
    seal(&mut mark, 0);
    mark.resize(START + HEAD, 0);
    mark
}

/// Returns the store and the generation in the mark of a file. `None` if there is no whole mark.
pub(in crate::embedded) fn read_mark(file: &[u8]) -> Option<(u64, u64)> {
    let head = file.get(..HEAD)?;
    let valid = head[..4] == MARK && number(head, 4..8) == u64::from(checksum(head, 0));
    valid.then(|| (number(head, 16..24), number(head, 24..32)))
}

/// Every whole frame in a file, wherever it stands: what lies between them is no hindrance.
pub(in crate::embedded) fn all(file: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at + HEAD <= file.len() {
            if let Some(frame) = read(file, at) {
                at = frame.end;
                return Some(frame);
            }
            at += ALIGN;
        }
        None
    })
}

/// The frame at an offset, if a whole one is there.
pub(in crate::embedded) fn read(file: &[u8], at: usize) -> Option<Frame<'_>> {
    let head = file.get(at..)?.get(..HEAD)?;
    if head[..4] != MAGIC {
        return None;
    }
    let records = at + HEAD..(at + HEAD).checked_add(number(head, 8..12) as usize)?;
    let end = records.end.checked_next_multiple_of(ALIGN)?;
    let frame = file.get(at..end)?;
    if number(head, 4..8) != u64::from(checksum(frame, at as u64)) {
        return None;
    }
    Some(Frame {
        store: number(head, 16..24),
        first: Revision(number(head, 24..32)),
        last: Revision(number(head, 32..40)),
        end,
        records: &file[records],
    })
}

impl<'a> Frame<'a> {
    /// Returns the number of bytes from the beginning of the frame to its end.
    #[cfg(test)]
    pub(in crate::embedded) fn len(&self) -> usize {
        HEAD + self.records.len().next_multiple_of(ALIGN)
    }

    /// Its records in order; `None` in place of one that does not fit its frame.
    pub(in crate::embedded) fn records(&self) -> impl Iterator<Item = Option<Record<'a>>> + use<'a> {
        let mut rest = self.records;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let record = read_record(rest);
            rest = record.as_ref().map_or(&[], |(_, rest)| *rest);
            Some(record.map(|(record, _)| record))
        })
    }
}

fn write_record(out: &mut Vec<u8>, event: &Event) {
    let (key, value) = (event.entry.key.as_bytes(), log::encoded_len(event));
    let length = |bytes: usize| u32::try_from(bytes).expect("an object is smaller than 4 GiB").to_le_bytes();
    out.extend_from_slice(&event.revision.0.to_le_bytes());
    out.extend_from_slice(&length(key.len()));
    out.extend_from_slice(&length(value));
    out.extend_from_slice(key);
    let start = out.len();
    out.resize(start + value, 0);
    log::encode(event, &mut out[start..]);
}

fn read_record(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(RECORD_HEAD)?;
    let (key, rest) = rest.split_at_checked(number(head, 8..12) as usize)?;
    let (value, rest) = rest.split_at_checked(number(head, 12..16) as usize)?;
    let key = std::str::from_utf8(key).ok()?;
    Some((Record { revision: Revision(number(head, 0..8)), key, value }, rest))
}

fn checksum(frame: &[u8], at: u64) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&at.to_le_bytes());
    sum.update(&frame[8..]);
    sum.finalize()
}

/// A number of at most 8 bytes.
fn number(bytes: &[u8], place: Range<usize>) -> u64 {
    bytes[place].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
