//! Copies of a store: taken while it runs, and turned into a store again.

use std::path::Path;

use redb::{Database, DatabaseError, ReadTransaction, ReadableTable};

use super::file::{self, place};
use super::log::{self, LOG, Meta};
use crate::{Error, Page, Revision};

/// A restored store goes on this far beyond the copy: clients may have seen revisions after the copy was taken, and must
/// not take the restored store's for those. (etcd's documentation advises the same step.)
const RESTORE_STEP: u64 = 1_000_000_000;

/// Makes a store of a copy in a data directory that has none. Watches of revisions before the restore are compacted.
pub fn restore(from: &Path, data_dir: &Path) -> Result<(), Error> {
    let name = from.display().to_string();
    let source = match Database::builder().open_read_only(from) {
        // The database of a store that was killed, by which a store goes on that has lost its
        // journal.
        Err(DatabaseError::RepairAborted) => return restore_repaired(from, data_dir),
        other => log::look(&other.map_err(|error| log::unreadable(&name, &error.into()))?, &name)?,
    };
    restore_from(&source, &name, data_dir)
}

/// Restores a database that redb must repair first: a copy of it, so that the original stays as it
/// is.
fn restore_repaired(from: &Path, data_dir: &Path) -> Result<(), Error> {
    let name = from.display().to_string();
    file::create_dir(data_dir)?;
    let copy = file::copy_partial(from, &data_dir.join(file::NAME))?;
    let db = Database::builder().open(copy.path()).map_err(|error| log::unreadable(&name, &error.into()))?;
    restore_from(&log::look(&db, &name)?, &name, data_dir)
}

fn restore_from(source: &ReadTransaction, name: &str, data_dir: &Path) -> Result<(), Error> {
    let meta = log::read_meta(source, name)?;
    let mut newest = meta.revision;
    // Before anything is written: a damaged record must not come to light only when the store is opened.
    log::replay(source, name, |revision, _, _| newest = newest.max(revision))?;
    let revision = Revision(newest.0 + RESTORE_STEP);
    file::create_dir(data_dir)?;
    place(&data_dir.join(file::NAME), |target| copy(source, target, Meta::at(revision)))
}

/// Writes a copy of all objects at one revision, without what was before: a restored store has no past.
pub(super) fn backup(mut all: Page, path: &Path) -> Result<(), Error> {
    all.entries.sort_unstable_by_key(|entry| entry.revision);
    place(path, |target| {
        let txn = target.begin_write()?;
        log::write_meta(&txn, Meta::at(all.revision))?;
        log::put(&txn, &all.entries)?;
        txn.commit()?;
        Ok(())
    })
}

fn copy(source: &ReadTransaction, to: &Database, meta: Meta) -> Result<(), redb::Error> {
    let txn = to.begin_write()?;
    log::write_meta(&txn, meta)?;
    {
        let mut log = txn.open_table(LOG)?;
        for record in source.open_table(LOG)?.iter()? {
            let (place, value) = record?;
            log.insert(place.value(), value.value())?;
        }
    }
    txn.commit()?;
    Ok(())
}
