//! Copies of a store: taken while it runs, and turned into a store again.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase, ReadableTable};

use super::log::{self, LOG, Meta};
use super::{FILE, create_dir, open_file};
use crate::{Error, Revision};

/// A restored store goes on this far beyond the copy: clients may have seen revisions after the copy was taken, and must
/// not take the restored store's for those. (etcd's documentation advises the same step.)
const RESTORE_STEP: u64 = 1_000_000_000;

/// Makes a store of a copy in a data directory that has none. Watches of revisions before the restore are compacted.
pub fn restore(from: &Path, data_dir: &Path) -> Result<(), Error> {
    let name = from.display().to_string();
    let source = Database::builder().open_read_only(from).map_err(|e| log::unreadable(&name, &e.into()))?;
    let meta = log::read_meta(&source, &name)?.ok_or_else(|| Error::Unusable(format!("{name} is not a store")))?;
    let mut newest = meta.revision;
    // Before anything is written: a damaged record must not come to light only when the store is opened.
    log::replay(&source, &name, |revision, _, _| newest = newest.max(revision))?;
    let revision = Revision(newest.0 + RESTORE_STEP);
    create_dir(data_dir)?;
    place(&data_dir.join(FILE), |target| copy(&source, target, Meta { revision, history: revision }))
}

/// Writes a copy of the store as it is now; what is committed meanwhile is not in it.
pub(super) fn backup(db: &Database, path: &Path) -> Result<(), Error> {
    let name = path.display().to_string();
    let meta = log::read_meta(db, &name)?.ok_or_else(|| Error::Unusable("the store is empty of its tables".into()))?;
    place(path, |target| copy(db, target, meta))
}

fn copy(from: &impl ReadableDatabase, to: &Database, meta: Meta) -> Result<(), redb::Error> {
    let source = from.begin_read()?;
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

/// Fills a new file under another name and gives it its own only when it is whole and on disk.
fn place(path: &Path, fill: impl FnOnce(&Database) -> Result<(), redb::Error>) -> Result<(), Error> {
    if path.exists() {
        return Err(exists(path));
    }
    let partial = partial_name(path);
    let result = write_partial(&partial, fill).and_then(|()| publish(&partial, path));
    // Gone already if it was renamed; otherwise nothing half-made stays behind.
    let _ = fs::remove_file(&partial);
    result
}

fn write_partial(partial: &Path, fill: impl FnOnce(&Database) -> Result<(), redb::Error>) -> Result<(), Error> {
    let db = open_file(partial)?;
    fill(&db).map_err(|error| failed(partial, &error))?;
    drop(db);
    File::open(partial).and_then(|file| file.sync_all()).map_err(|error| failed(partial, &error))
}

fn publish(partial: &Path, path: &Path) -> Result<(), Error> {
    // A link, unlike a rename, never replaces what somebody else put there in the meantime.
    match fs::hard_link(partial, path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(exists(path)),
        Err(_) => fs::rename(partial, path).map_err(|error| failed(path, &error))?,
        Ok(()) => {}
    }
    super::sync_parent(path)
}

fn partial_name(path: &Path) -> PathBuf {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{}.partial", std::process::id(), now.as_nanos()));
    name.into()
}

fn exists(path: &Path) -> Error {
    Error::Unusable(format!("{} exists and is not overwritten", path.display()))
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Unusable(format!("{} cannot be written: {error}", path.display()))
}
