//! The files: the database, made whole or not at all and open in one process, and the journal. Readable by their owner only.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{Database, DatabaseError, StorageError};

use super::journal::Medium;
use super::{log, recovery};
use crate::Error;

/// The name of the database in the data directory.
pub(super) const NAME: &str = "store.redb";

/// The names of the journal's files.
pub(super) const JOURNAL: [&str; 2] = ["store.journal-0", "store.journal-1"];

/// What the name of a file ends with that is not yet whole.
const PARTIAL: &str = ".partial";

/// The log is read once, at the start, and then only written; what redb caches beyond the pages of a batch is waste.
const CACHE_BYTES: usize = 1 << 20;

/// Opens a file, or makes an empty one that is filled as told.
pub(super) fn open_or_make(
    path: &Path,
    fill: impl FnOnce(&Database) -> Result<(), redb::Error>,
) -> Result<Database, Error> {
    // redb does not survive being killed while it makes a file, so that happens under another name.
    if !path.exists()
        && let Err(error) = place(path, fill)
        && !path.exists()
    {
        return Err(error);
    }
    let db = open(path)?;
    remove_partial(path);
    Ok(db)
}

/// Fills a new file under another name and gives it its own only when it is whole and on disk.
pub(super) fn place(path: &Path, fill: impl FnOnce(&Database) -> Result<(), redb::Error>) -> Result<(), Error> {
    if path.exists() {
        return Err(exists(path));
    }
    let partial = partial_name(path);
    let result = write_partial(&partial, fill).and_then(|()| publish(&partial, path));
    // Gone already if it was renamed; otherwise nothing half-made stays behind.
    let _ = fs::remove_file(&partial);
    result
}

/// A copy of a database, removed when dropped.
#[derive(Debug)]
pub(super) struct PartialCopy(PathBuf);

impl PartialCopy {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PartialCopy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Copies a database beside the place where a store will be, under the name of a file that is not
/// yet whole.
pub(super) fn copy_partial(from: &Path, path: &Path) -> Result<PartialCopy, Error> {
    let copy = PartialCopy(partial_name(path));
    let mut target = open_file(copy.path())?;
    let copied = File::open(from).and_then(|mut source| std::io::copy(&mut source, &mut target));
    copied.map_err(|error| failed(copy.path(), &error))?;
    Ok(copy)
}

/// Makes a directory only its owner can look into.
pub(super) fn create_dir(path: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| Error::Unusable(format!("{} cannot be made: {error}", path.display())))
}

/// Opens the files of the journal, or makes them, empty, unless they must be there. The database is
/// open, which locks them too.
pub(super) fn open_journal(data_dir: &Path, required: bool) -> Result<[Medium; 2], Error> {
    let open = |name: &str| -> Result<Medium, Error> {
        let path = data_dir.join(name);
        if required && !path.exists() {
            let (path, database) = (path.display().to_string(), data_dir.join(NAME).display().to_string());
            return Err(recovery::lost(&path, "is missing", &database));
        }
        let medium = FileBackend::new(open_file(&path)?);
        Ok(Box::new(medium.map_err(|error| log::unreadable(&path.display().to_string(), &error.into()))?))
    };
    let media = [open(JOURNAL[0])?, open(JOURNAL[1])?];
    // The names must be on disk before anything in the files is relied on.
    File::open(data_dir).and_then(|dir| dir.sync_all()).map_err(|error| failed(data_dir, &error))?;
    Ok(media)
}

fn open(path: &Path) -> Result<Database, Error> {
    let name = path.display();
    let file = open_file(path)?;
    Database::builder().set_cache_size(CACHE_BYTES).create_file(file).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => Error::Unusable(format!("{name} is in use by another process")),
        DatabaseError::UpgradeRequired(version) => Error::Unusable(format!(
            "{name} has version {version} of the redb file format, which this program does not read"
        )),
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == ErrorKind::StorageFull => {
            failed(path, &error)
        }
        other => log::unreadable(&name.to_string(), &other.into()),
    })
}

/// It holds Secrets, hence the mode.
fn open_file(path: &Path) -> Result<File, Error> {
    let file = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    file.map_err(|error| Error::Unusable(format!("{} cannot be opened: {error}", path.display())))
}

fn write_partial(partial: &Path, fill: impl FnOnce(&Database) -> Result<(), redb::Error>) -> Result<(), Error> {
    let db = open(partial)?;
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
    // A new name is on disk only when its directory is.
    let synced = File::open(parent(path)).and_then(|dir| dir.sync_all());
    synced.map_err(|error| failed(path, &error))
}

fn partial_name(path: &Path) -> PathBuf {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{}{PARTIAL}", std::process::id(), now.as_nanos()));
    name.into()
}

/// Removes what a kill left behind. Once the file itself is there, nobody needs a partial one.
fn remove_partial(path: &Path) {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
    let Ok(siblings) = fs::read_dir(parent(path)) else { return };
    for sibling in siblings.flatten() {
        let other = sibling.file_name();
        if other.to_str().is_some_and(|other| other.starts_with(name) && other.ends_with(PARTIAL)) {
            let _ = fs::remove_file(sibling.path());
        }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn exists(path: &Path) -> Error {
    Error::Unusable(format!("{} exists and is not overwritten", path.display()))
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Unusable(format!("{} cannot be written: {error}", path.display()))
}
