//! Entries of a tar file from anybody: names and sizes are bounded before they are kept.

use std::io::{self, Read};

use tar::{Archive, Entry, EntryType, PaxExtensions};

/// Maximum length of a path, in bytes: PATH_MAX of Linux.
const PATH: u64 = 4096;
/// Maximum length of the attributes of one entry, in bytes. They hold a path, times and extended
/// attributes.
const ATTRIBUTES: u64 = 1 << 20;

/// Why a file is no image, or not one that may be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file or directory of this machine.
    #[error("{what}: {error}")]
    Io {
        /// The action that failed.
        what: String,
        /// Why it did not work.
        error: io::Error,
    },
    /// An entry of a layer.
    #[error("entry {entry:?}: {why}")]
    Entry {
        /// The name of the entry in the archive.
        entry: String,
        /// Why it is refused.
        why: String,
    },
    /// The archive as a whole.
    #[error("{0}")]
    Invalid(String),
}

impl ImageError {
    /// Returns the error of something that was tried with a file of this machine.
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> ImageError {
        let what = what.into();
        move |error| ImageError::Io { what, error }
    }

    /// Returns the refusal of an entry.
    pub(super) fn entry(name: &[u8], why: impl std::fmt::Display) -> ImageError {
        ImageError::Entry { entry: String::from_utf8_lossy(name).into_owned(), why: why.to_string() }
    }
}

/// An entry with its whole names, which may have stood in entries before it.
#[derive(Debug, Clone, Default)]
pub(super) struct Item {
    pub(super) path: Vec<u8>,
    /// The target of a link.
    pub(super) link: Vec<u8>,
    pub(super) kind: Option<EntryType>,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) user: u64,
    pub(super) group: u64,
    /// Seconds since 1970.
    pub(super) modified: u64,
    /// Offset of the content in the file.
    pub(super) offset: u64,
}

/// Values that an entry has from those before it.
#[derive(Debug, Default)]
struct Extended {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    user: Option<u64>,
    group: Option<u64>,
}

/// Calls `each` with the entries of a tar file, in their order, and their content.
pub(super) fn entries<R: Read>(
    from: R,
    mut each: impl FnMut(Item, &mut dyn Read) -> Result<(), ImageError>,
) -> Result<(), ImageError> {
    let mut archive = Archive::new(from);
    let wrong = |error: io::Error| ImageError::Invalid(format!("reading a tar file: {error}"));
    let mut extended = Extended::default();
    let mut last = Vec::new();
    // Raw: the crate would read names of any length into memory.
    for entry in archive.entries().map_err(wrong)?.raw(true) {
        let mut entry = entry.map_err(|error| match last.is_empty() {
            true => wrong(error),
            false => ImageError::entry(&last, format!("reading what comes after it: {error}")),
        })?;
        let name = entry.path_bytes().into_owned();
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => extended.path = Some(text(&mut entry, &name)?),
            EntryType::GNULongLink => extended.link = Some(text(&mut entry, &name)?),
            EntryType::XHeader => extended.read(&content(&mut entry, &name, ATTRIBUTES)?, &name)?,
            // Comments, mostly of git.
            EntryType::XGlobalHeader => {}
            _ => {
                let item = item(&entry, std::mem::take(&mut extended), name)?;
                last.clone_from(&item.path);
                each(item, &mut entry)?;
            }
        }
    }
    Ok(())
}

fn item<R: Read>(entry: &Entry<'_, R>, extended: Extended, name: Vec<u8>) -> Result<Item, ImageError> {
    let path = extended.path.unwrap_or(name);
    let header = entry.header();
    let number = |number: io::Result<u64>| number.map_err(|error| ImageError::entry(&path, error));
    let size = number(header.size())?;
    if extended.size.is_some_and(|said| said != size) {
        return Err(ImageError::entry(&path, "it has more than 8 GiB"));
    }
    let link = extended.link.or_else(|| header.link_name_bytes().map(|link| link.into_owned()));
    // Some writers leave the owner out.
    let blank = |field: &[u8]| field.iter().all(|byte| matches!(byte, 0 | b' '));
    let user = if blank(&header.as_old().uid) { 0 } else { number(header.uid())? };
    let group = if blank(&header.as_old().gid) { 0 } else { number(header.gid())? };
    Ok(Item {
        link: link.unwrap_or_default(),
        kind: Some(header.entry_type()),
        size,
        mode: header.mode().map_err(|error| ImageError::entry(&path, error))?,
        user: extended.user.unwrap_or(user),
        group: extended.group.unwrap_or(group),
        modified: header.mtime().unwrap_or(0),
        offset: entry.raw_file_position(),
        path,
    })
}

impl Extended {
    /// Reads the attributes of POSIX (pax, "Extended Header").
    fn read(&mut self, attributes: &[u8], name: &[u8]) -> Result<(), ImageError> {
        for attribute in PaxExtensions::new(attributes) {
            let attribute = attribute.map_err(|error| ImageError::entry(name, error))?;
            let value = attribute.value_bytes();
            let number = || {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                number.ok_or_else(|| ImageError::entry(name, "an attribute is no number"))
            };
            match attribute.key_bytes() {
                b"path" => self.path = Some(bounded(value.to_vec(), name)?),
                b"linkpath" => self.link = Some(bounded(value.to_vec(), name)?),
                b"size" => self.size = Some(number()?),
                b"uid" => self.user = Some(number()?),
                b"gid" => self.group = Some(number()?),
                // Times, comments and extended attributes.
                _ => {}
            }
        }
        Ok(())
    }
}

fn bounded(path: Vec<u8>, name: &[u8]) -> Result<Vec<u8>, ImageError> {
    if u64::try_from(path.len()).is_ok_and(|length| length > PATH) {
        return Err(ImageError::entry(name, format!("a path has more than {PATH} bytes")));
    }
    Ok(path)
}

/// Reads a path that is the content of an entry and ends with a NUL.
fn text<R: Read>(entry: &mut Entry<'_, R>, name: &[u8]) -> Result<Vec<u8>, ImageError> {
    let mut text = content(entry, name, PATH + 1)?;
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    text.truncate(end);
    Ok(text)
}

fn content<R: Read>(entry: &mut Entry<'_, R>, name: &[u8], most: u64) -> Result<Vec<u8>, ImageError> {
    let size = entry.header().size().map_err(|error| ImageError::entry(name, error))?;
    if size > most {
        return Err(ImageError::entry(name, format!("its name or its attributes have more than {most} bytes")));
    }
    let mut bytes = Vec::new();
    entry.take(most).read_to_end(&mut bytes).map_err(|error| ImageError::entry(name, error))?;
    Ok(bytes)
}
