//! The database behind the embedded store: which tables it has, how a change is laid out as bytes, and what is appended.
//!
//! | table  | key                  | value                                                            |
//! |--------|----------------------|------------------------------------------------------------------|
//! | `meta` | `format`             | the version of this layout                                       |
//! | `meta` | `store`              | which store it is: the journal's frames bear the same number     |
//! | `meta` | `revision`           | the database is at this revision or later                        |
//! | `meta` | `history`            | every change after this revision is in `log`                     |
//! | `meta` | `generation`         | only while the store is open: the number in both journal files   |
//! | `meta` | `journal`            | with it: bytes that each journal file has at least               |
//! | `meta` | `floor`              | with it: a revision that database and journal reach together     |
//! | `log`  | revision, object key | 1 byte: 1 put, 2 delete; for a put then 4 bytes: the offset of   |
//! |        |                      | the resourceVersion, little endian, and the JSON without it      |
//!
//! Up to `history` the log has at least the newest put of each object that was there.

use std::sync::Arc;

use redb::{Database, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use crate::{Draft, Entry, Error, Event, Revision};

/// The layout this program writes, and the newest it reads. Format 1 had no journal: a program that
/// knows only that one would not see what is in it. Format 2 had no generations: a program that
/// knows only that one would write over them.
pub(crate) const FORMAT: u64 = 3;

pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
pub(crate) const LOG: TableDefinition<'_, (u64, &str), &[u8]> = TableDefinition::new("log");

const PUT: u8 = 1;
const DELETE: u8 = 2;
const PUT_HEAD: usize = 5;

/// The numbers beside the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meta {
    pub(crate) revision: Revision,
    pub(crate) history: Revision,
    /// Not yet given in a copy, and in format 1.
    pub(crate) store: Option<u64>,
    /// The journal files that must be there. `None` if the database has everything: the store was
    /// closed, or is a copy.
    pub(crate) journal: Option<JournalMark>,
}

/// The state of the journal files that the database relies on while the store is open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalMark {
    /// Random number of one opening, at the beginning of both files.
    pub(crate) generation: u64,
    /// Minimum length of each file.
    pub(crate) bytes: u64,
    /// A durable revision. A journal that ends before it was cut, or is an older copy.
    pub(crate) floor: Revision,
}

impl Meta {
    /// Of a store at a revision, without a past.
    pub(crate) fn at(revision: Revision) -> Meta {
        Meta { revision, history: revision, store: None, journal: None }
    }
}

/// What a log record says.
#[derive(Debug)]
pub(crate) enum Change {
    Put(Draft),
    Delete,
}

/// What one batch does to the file.
#[derive(Debug)]
pub(crate) struct Append<'a> {
    pub(crate) events: &'a [Event],
    /// After the events.
    pub(crate) revision: Revision,
    /// Records nobody needs any more, those of these events among them.
    pub(crate) forgotten: &'a [(Revision, Box<str>)],
    /// Set when records are forgotten: from where on the log is complete.
    pub(crate) history: Option<Revision>,
    /// Requirement on the journal from now on.
    pub(crate) journal: JournalNeed,
}

/// Changes of a batch to the journal files that must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalNeed {
    /// Both files, up to a revision that is durable in one of them.
    Until(Revision),
    /// None: with this batch the database has everything.
    Closed,
}

/// Writes a batch; it is on disk when this returns.
pub(crate) fn append(db: &Database, batch: &Append<'_>) -> Result<(), redb::Error> {
    let txn = db.begin_write()?;
    {
        let mut log = txn.open_table(LOG)?;
        for event in batch.events {
            let mut place = log.insert_reserve((event.revision.0, &*event.entry.key), encoded_len(event))?;
            encode(event, place.as_mut());
        }
        // After the events, of which some may be history already.
        for (revision, key) in batch.forgotten {
            log.remove((revision.0, &**key))?;
        }
    }
    {
        let mut meta = txn.open_table(META)?;
        meta.insert("revision", batch.revision.0)?;
        if let Some(history) = batch.history {
            meta.insert("history", history.0)?;
        }
        match batch.journal {
            JournalNeed::Until(floor) => drop(meta.insert("floor", floor.0)?),
            JournalNeed::Closed => drop(meta.remove("generation")?),
        }
    }
    txn.commit()?;
    Ok(())
}

/// Adds objects to the log.
pub(crate) fn put(txn: &WriteTransaction, entries: &[Arc<Entry>]) -> Result<(), redb::Error> {
    let mut log = txn.open_table(LOG)?;
    for entry in entries {
        let mut place = log.insert_reserve((entry.revision.0, &*entry.key), put_len(entry))?;
        encode_put(entry, place.as_mut());
    }
    Ok(())
}

/// Makes an empty store of an empty file.
pub(crate) fn initialize(db: &Database, meta: Meta) -> Result<(), redb::Error> {
    let txn = db.begin_write()?;
    write_meta(&txn, meta)?;
    txn.open_table(LOG)?;
    txn.commit()?;
    Ok(())
}

pub(crate) fn write_meta(txn: &WriteTransaction, meta: Meta) -> Result<(), redb::Error> {
    let mut table = txn.open_table(META)?;
    table.insert("format", FORMAT)?;
    table.insert("revision", meta.revision.0)?;
    table.insert("history", meta.history.0)?;
    if let Some(store) = meta.store {
        table.insert("store", store)?;
    }
    match meta.journal {
        Some(mark) => {
            table.insert("generation", mark.generation)?;
            table.insert("journal", mark.bytes)?;
            table.insert("floor", mark.floor.0)?;
        }
        None => drop(table.remove("generation")?),
    }
    Ok(())
}

/// One look at the file: what is committed later does not change it.
pub(crate) fn look(db: &impl ReadableDatabase, name: &str) -> Result<ReadTransaction, Error> {
    db.begin_read().map_err(|error| unreadable(name, &error.into()))
}

/// The numbers beside the log. A format from the future is refused.
pub(crate) fn read_meta(source: &ReadTransaction, name: &str) -> Result<Meta, Error> {
    let numbers = meta_numbers(source).map_err(|error| unreadable(name, &error))?;
    match numbers {
        [Some(format), ..] if format > FORMAT => Err(Error::Unusable(format!(
            "{name} has format {format}, written by a newer program; this program reads up to format {FORMAT}"
        ))),
        [Some(_), Some(revision), Some(history), store, generation, bytes, floor] => {
            let mark = |generation| JournalMark {
                generation,
                bytes: bytes.unwrap_or_default(),
                floor: Revision(floor.unwrap_or_default()),
            };
            let journal = generation.map(mark);
            Ok(Meta { revision: Revision(revision), history: Revision(history), store, journal })
        }
        _ => Err(Error::Unusable(format!("{name} is not a store: its format, revision or history is missing"))),
    }
}

fn meta_numbers(source: &ReadTransaction) -> Result<[Option<u64>; 7], redb::Error> {
    let table = match source.open_table(META) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok([None; 7]),
        other => other?,
    };
    let number = |key: &str| -> Result<Option<u64>, redb::Error> { Ok(table.get(key)?.map(|n| n.value())) };
    Ok([
        number("format")?,
        number("revision")?,
        number("history")?,
        number("store")?,
        number("generation")?,
        number("journal")?,
        number("floor")?,
    ])
}

/// The revision of the newest record.
pub(crate) fn newest(source: &ReadTransaction, name: &str) -> Result<Revision, Error> {
    let newest = || -> Result<Revision, redb::Error> {
        let log = source.open_table(LOG)?;
        Ok(log.last()?.map_or(Revision(0), |(place, _)| Revision(place.value().0)))
    };
    newest().map_err(|error| unreadable(name, &error))
}

/// Goes through the log by revision.
pub(crate) fn replay(
    source: &ReadTransaction,
    name: &str,
    mut each: impl FnMut(Revision, &str, Change),
) -> Result<(), Error> {
    let failed = |error: redb::Error| unreadable(name, &error);
    let log = source.open_table(LOG).map_err(|e| failed(e.into()))?;
    for record in log.iter().map_err(|e| failed(e.into()))? {
        let (place, value) = record.map_err(|e| failed(e.into()))?;
        let (revision, key) = place.value();
        let damaged = |why: &str| Error::Damaged { key: key.into(), why: format!("{why} at revision {revision}") };
        each(Revision(revision), key, decode(value.value()).map_err(damaged)?);
    }
    Ok(())
}

pub(crate) fn unreadable(name: &str, error: &redb::Error) -> Error {
    Error::Unusable(format!("{name} cannot be read: {error}"))
}

/// How many bytes the value of a record has.
pub(crate) fn encoded_len(event: &Event) -> usize {
    if event.deleted { 1 } else { put_len(&event.entry) }
}

/// Lays out the value of a record in a place of just the right size.
pub(crate) fn encode(event: &Event, place: &mut [u8]) {
    if event.deleted {
        place[0] = DELETE;
        return;
    }
    encode_put(&event.entry, place);
}

fn put_len(entry: &Entry) -> usize {
    let (before, after) = entry.bare();
    PUT_HEAD + before.len() + after.len()
}

fn encode_put(entry: &Entry, place: &mut [u8]) {
    let (before, after) = entry.bare();
    let gap = u32::try_from(before.len()).expect("an object is smaller than 4 GiB, the most a record can hold");
    let (head, json) = place.split_at_mut(PUT_HEAD);
    head[0] = PUT;
    head[1..].copy_from_slice(&gap.to_le_bytes());
    json[..before.len()].copy_from_slice(before);
    json[before.len()..].copy_from_slice(after);
}

/// Parses the value of a record.
pub(crate) fn decode(value: &[u8]) -> Result<Change, &'static str> {
    match value {
        [DELETE] => Ok(Change::Delete),
        [PUT, a, b, c, d, json @ ..] => {
            let gap = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
            if gap > json.len() {
                return Err("the record is cut short");
            }
            Ok(Change::Put(Draft { json: bytes::Bytes::copy_from_slice(json), gap }))
        }
        [] => Err("the record is empty"),
        _ => Err("the record is of no known kind"),
    }
}
