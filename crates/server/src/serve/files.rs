//! Files with secrets in them: written whole or not at all, readable by their owner alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Makes a directory that only its owner may enter, and those above it.
pub fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Writes a file that only its owner may read. A reader sees the old or the new content, never a
/// part, even after a crash. A file that has the content already is left alone, so that a start on
/// a full disk needs no room for it.
pub fn write_secret(path: &Path, content: &[u8]) -> io::Result<()> {
    write_secrets(&[(path, content)])
}

/// Writes files of one directory like [`write_secret`], and replaces none of them before all are on
/// disk: a full disk leaves a certificate with the key that belongs to it.
pub fn write_secrets(files: &[(&Path, &[u8])]) -> io::Result<()> {
    let changed: Vec<_> = files.iter().filter(|(path, content)| !has_content(path, content)).collect();
    let drafts = changed.iter().map(|(path, _)| draft_name(path)).collect::<io::Result<Vec<_>>>()?;
    let written = changed.iter().zip(&drafts).try_for_each(|((_, content), draft)| write_new(draft, content));
    let renamed =
        written.and_then(|()| changed.iter().zip(&drafts).try_for_each(|((path, _), draft)| fs::rename(draft, path)));
    if renamed.is_err() {
        for draft in &drafts {
            let _ = fs::remove_file(draft);
        }
        return renamed;
    }
    match changed.first() {
        Some((path, _)) => File::open(parent(path))?.sync_all(),
        None => Ok(()),
    }
}

/// Returns true if a file has a content and is readable by its owner alone.
fn has_content(path: &Path, content: &[u8]) -> bool {
    let private =
        fs::metadata(path).is_ok_and(|found| found.mode() & 0o077 == 0 && found.len() == content.len() as u64);
    private && fs::read(path).is_ok_and(|found| found == content)
}

fn draft_name(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
    Ok(parent(path).join(format!(".{}.{}", name.to_string_lossy(), std::process::id())))
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    // A draft left by a crash may have another owner's mode: it goes first.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// The text of a file, `None` if it is not there.
pub fn read_if_there(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
