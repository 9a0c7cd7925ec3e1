//! What stands in the files: one change of one object a record, and now and then whole copies, so that the past can be read
//! from there on.
//!
//! | first byte | then |
//! |---|---|
//! | 1, copies | time; objects, deflated: each kind, revision, namespace, name, JSON |
//! | 2, a change | time, late, kind, revision, namespace, name, who, one byte (1 whole, 2 difference, 3 gone, 4 left out, 5 new), JSON or [difference](crate::delta) |
//! | 3, a mark | revision up to which nothing is missing |
//! | 4, a gap | from, to, why |
//! | 5, the head of a file | time, version of the format |
//!
//! Times are microseconds since 1970; numbers are little endian; texts have their length in four bytes before them.

use std::io::Read;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use jiff::Timestamp;

use crate::Followed;
use crate::frame::Frames;
use bytes::Reader;

mod bytes;
#[cfg(test)]
mod tests;

pub(crate) use bytes::{put_text, put_time};

/// The version of all this. Differences of version 1 were edits in JSON.
pub(crate) const FORMAT: u8 = 2;
/// Copies unpacked take no more than this: more is not ours.
const MAX_COPIES: u64 = 16 << 20;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    /// Objects as they were at a time.
    Copies(Timestamp, Vec<Copy>),
    /// What became of one object.
    Change(Change),
    /// Nothing is missing up to this revision.
    Mark(u64),
    /// Changes may be missing.
    Gap(Gap),
    /// A file begins.
    Head(Timestamp, u8),
}

/// An object as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) kind: Followed,
    pub(crate) revision: u64,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) json: Vec<u8>,
}

/// One change of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) at: Timestamp,
    /// It was seen later than it happened, and the time is a guess.
    pub(crate) late: bool,
    pub(crate) kind: Followed,
    pub(crate) revision: u64,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Who; empty if nobody knows.
    pub(crate) by: String,
    pub(crate) body: Body,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// It was made.
    New(Vec<u8>),
    /// It is this now; what it was does not stand in this file.
    Whole(Vec<u8>),
    /// It is what this difference makes of the text before.
    Difference(Vec<u8>),
    /// It is no more.
    Gone,
    /// It is too large to be kept.
    LeftOut,
}

/// A time for which changes may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The last time before it that is known.
    pub from: Timestamp,
    /// From here on everything is known again.
    pub to: Timestamp,
    /// Why.
    pub why: String,
}

impl Record {
    /// Encodes it behind what is there.
    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        match self {
            Record::Copies(at, copies) => out.extend(encode_copies(*at, &copies_bytes(copies))),
            Record::Change(change) => {
                out.extend([2]);
                change.encode(out);
            }
            Record::Mark(revision) => {
                out.extend([3]);
                out.extend(revision.to_le_bytes());
            }
            Record::Gap(gap) => {
                out.extend([4]);
                put_time(out, gap.from);
                put_time(out, gap.to);
                put_text(out, gap.why.as_bytes());
            }
            Record::Head(at, format) => {
                out.extend([5]);
                put_time(out, *at);
                out.extend([*format]);
            }
        }
    }

    /// `None` if it makes no sense.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Record> {
        let mut reader = Reader::new(bytes);
        Some(match reader.byte()? {
            1 => {
                let at = reader.time()?;
                Record::Copies(at, decode_copies(reader.rest())?)
            }
            2 => Record::Change(Change::decode(&mut reader)?),
            3 => Record::Mark(reader.number()?),
            4 => Record::Gap(Gap { from: reader.time()?, to: reader.time()?, why: reader.string()? }),
            5 => Record::Head(reader.time()?, reader.byte()?),
            _ => return None,
        })
    }

    /// In which namespace an encoded change happened, without reading the rest of it.
    pub(crate) fn namespace_of_change(bytes: &[u8]) -> Option<&[u8]> {
        let mut reader = Reader::new(bytes);
        reader.byte().filter(|code| *code == 2)?;
        reader.skip(8 + 1 + 1 + 8)?;
        reader.text()
    }

    /// Which revision an encoded change made, without reading the rest of it.
    pub(crate) fn revision_of_change(bytes: &[u8]) -> Option<u64> {
        let mut reader = Reader::new(bytes);
        reader.byte().filter(|code| *code == 2)?;
        reader.skip(8 + 1 + 1)?;
        reader.number()
    }

    /// Whether these are copies, without reading them.
    pub(crate) fn has_copies(bytes: &[u8]) -> bool {
        bytes.first() == Some(&1)
    }

    /// The changes in the bytes of a file that are newer than a revision.
    pub(crate) fn changes_after(bytes: &[u8], revision: u64) -> Vec<Change> {
        let newer = |record: &&[u8]| Record::revision_of_change(record) > Some(revision);
        let changes = Frames::new(bytes).filter(newer).filter_map(Record::decode);
        changes.filter_map(|record| if let Record::Change(change) = record { Some(change) } else { None }).collect()
    }

    /// The gap that is encoded; `None` if it is something else, which is not read.
    pub(crate) fn gap(bytes: &[u8]) -> Option<Gap> {
        bytes.first().filter(|code| **code == 4)?;
        Record::decode(bytes).and_then(|record| if let Record::Gap(gap) = record { Some(gap) } else { None })
    }

    /// When an encoded change happened, without reading the rest of it.
    pub(crate) fn time_of_change(bytes: &[u8]) -> Option<Timestamp> {
        let mut reader = Reader::new(bytes);
        reader.byte().filter(|code| *code == 2)?;
        reader.time()
    }
}

impl Change {
    fn encode(&self, out: &mut Vec<u8>) {
        put_time(out, self.at);
        out.extend([u8::from(self.late), self.kind.code()]);
        out.extend(self.revision.to_le_bytes());
        put_text(out, self.namespace.as_bytes());
        put_text(out, self.name.as_bytes());
        put_text(out, self.by.as_bytes());
        let (code, json): (u8, &[u8]) = match &self.body {
            Body::New(json) => (5, json),
            Body::Whole(json) => (1, json),
            Body::Difference(json) => (2, json),
            Body::Gone => (3, &[]),
            Body::LeftOut => (4, &[]),
        };
        out.extend([code]);
        out.extend(json);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Change> {
        Some(Change {
            at: reader.time()?,
            late: reader.byte()? != 0,
            kind: Followed::of_code(reader.byte()?)?,
            revision: reader.number()?,
            namespace: reader.string()?,
            name: reader.string()?,
            by: reader.string()?,
            body: match reader.byte()? {
                1 => Body::Whole(reader.rest().to_vec()),
                2 => Body::Difference(reader.rest().to_vec()),
                3 => Body::Gone,
                4 => Body::LeftOut,
                5 => Body::New(reader.rest().to_vec()),
                _ => return None,
            },
        })
    }
}

impl Copy {
    /// Appends it as it stands among copies before they are deflated.
    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        out.extend([self.kind.code()]);
        out.extend(self.revision.to_le_bytes());
        put_text(out, self.namespace.as_bytes());
        put_text(out, self.name.as_bytes());
        put_text(out, &self.json);
    }
}

fn copies_bytes(copies: &[Copy]) -> Vec<u8> {
    let mut out = Vec::new();
    copies.iter().for_each(|copy| copy.append(&mut out));
    out
}

/// A record of copies that [`Copy::append`] wrote.
pub(crate) fn encode_copies(at: Timestamp, copies: &[u8]) -> Vec<u8> {
    let mut out = vec![1];
    put_time(&mut out, at);
    let mut packed = DeflateEncoder::new(out, Compression::fast());
    let done = std::io::Write::write_all(&mut packed, copies).and_then(|()| packed.finish());
    done.expect("memory takes all that is written")
}

fn decode_copies(packed: &[u8]) -> Option<Vec<Copy>> {
    let mut bytes = Vec::new();
    DeflateDecoder::new(packed).take(MAX_COPIES).read_to_end(&mut bytes).ok()?;
    let mut reader = Reader::new(&bytes);
    let mut copies = Vec::new();
    while !reader.rest_is_empty() {
        copies.push(Copy {
            kind: Followed::of_code(reader.byte()?)?,
            revision: reader.number()?,
            namespace: reader.string()?,
            name: reader.string()?,
            json: reader.text()?.to_vec(),
        });
    }
    Some(copies)
}
