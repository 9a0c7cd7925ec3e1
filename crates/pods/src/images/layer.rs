//! Unpacks the layers of an image, one over the other, into a directory. Nothing is ever made
//! outside of it, whatever an archive says (OCI image specification, layer.md).

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tar::EntryType;

use super::tarball::{ImageError, Item, entries};

#[cfg(test)]
mod tests;

/// Marks a file of a lower layer as removed: `.wh.NAME`.
const WHITEOUT: &[u8] = b".wh.";
/// Removes all that lower layers have in its directory.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Other names that aufs had for itself.
const AUFS: &[u8] = b".wh..wh.";
/// Maximum length of a name, in bytes: NAME_MAX of Linux.
const NAME: usize = 255;
/// Maximum length of a path, in bytes: PATH_MAX of Linux.
const PATH: usize = 4096;
/// Links are followed so often on the way to one entry, as by the kernel.
const LINKS: usize = 40;

/// Limits of what one archive may unpack to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all layers, unpacked.
    pub bytes: u64,
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes of all their paths, which are kept in memory for the layer that is unpacked.
    pub names: u64,
    /// Directories that are in each other.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 16 << 30, entries: 500_000, names: 64 << 20, depth: 128 }
    }
}

/// A directory into which layers are unpacked.
pub(super) struct Unpacking {
    root: PathBuf,
    limits: Limits,
    /// The rest of each limit.
    left: Limits,
    /// Owners are kept; only root may.
    owners: bool,
    /// Paths that the present layer has made, without the root.
    made: BTreeSet<PathBuf>,
    /// Bytes of regular files that are there.
    pub(super) written: u64,
}

impl Unpacking {
    /// Begins with an empty directory.
    pub(super) fn new(root: PathBuf, limits: Limits, owners: bool) -> Unpacking {
        Unpacking { root, limits, left: limits, owners, made: BTreeSet::new(), written: 0 }
    }

    /// Unpacks a layer over those before it. The layer is read to its end.
    pub(super) fn layer(&mut self, mut layer: impl Read) -> Result<(), ImageError> {
        self.made.clear();
        let most = self.limits.bytes;
        let mut left = self.left.bytes;
        let mut bounded = Bounded { from: &mut layer, left: &mut left, most };
        let done = entries(&mut bounded, |item, content| {
            let name = item.path.clone();
            self.entry(&item, content).map_err(|failure| match failure {
                Failure::Refused(why) => ImageError::entry(&name, why),
                Failure::Io(error) => ImageError::entry(&name, error),
            })
        });
        done?;
        // What follows the end mark counts for the digest of the layer.
        io::copy(&mut bounded, &mut io::sink())
            .map_err(|error| ImageError::Invalid(format!("the end of a layer: {error}")))?;
        self.left.bytes = left;
        Ok(())
    }

    fn entry(&mut self, item: &Item, content: &mut dyn Read) -> Result<(), Failure> {
        self.count(&item.path)?;
        let parts = parts(&item.path, self.limits.depth)?;
        let Some((name, folders)) = parts.split_last() else {
            // The root itself.
            return if item.kind == Some(EntryType::Directory) { self.adorn(&self.root.clone(), item) } else { Ok(()) };
        };
        if let Some(removed) = name.as_bytes().strip_prefix(WHITEOUT) {
            return self.whiteout(folders, name.as_bytes(), removed);
        }
        let parent = self.walk(folders, true)?.ok_or_else(|| refused("its directory is missing"))?;
        let relative = parent.join(name);
        let path = self.root.join(&relative);
        match item.kind {
            Some(EntryType::Directory) => {
                if !fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir()) {
                    self.clear(&relative)?;
                    fs::create_dir(&path)?;
                }
                self.adorn(&path, item)?;
            }
            Some(EntryType::Regular | EntryType::Continuous) => {
                self.clear(&relative)?;
                let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
                let written = io::copy(content, &mut file)?;
                if written != item.size {
                    return Err(refused("the archive ends in it"));
                }
                self.written += written;
                self.adorn(&path, item)?;
                // A time before 1970 or far from now is not worth an error.
                let _ = file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(item.modified.min(1 << 40)));
            }
            Some(EntryType::Symlink) => {
                stays_inside(&item.link, parent.components().count())?;
                self.clear(&relative)?;
                symlink(OsStr::from_bytes(&item.link), &path)?;
                self.own(&path, item)?;
            }
            Some(EntryType::Link) => {
                let source = self.link_source(&item.link)?;
                if source != relative {
                    self.clear(&relative)?;
                    fs::hard_link(self.root.join(&source), &path)?;
                }
            }
            Some(EntryType::Char | EntryType::Block) => return Err(refused("it is a device")),
            Some(EntryType::Fifo) => return Err(refused("it is a named pipe")),
            _ => return Err(refused("an entry of this type is not supported")),
        }
        self.made.insert(relative);
        Ok(())
    }

    fn count(&mut self, path: &[u8]) -> Result<(), Failure> {
        let left = self.left.entries.checked_sub(1);
        self.left.entries =
            left.ok_or_else(|| refused(format!("there are more than {} entries", self.limits.entries)))?;
        let length = u64::try_from(path.len()).unwrap_or(u64::MAX);
        let left = self.left.names.checked_sub(length);
        self.left.names =
            left.ok_or_else(|| refused(format!("all paths have more than {} bytes", self.limits.names)))?;
        Ok(())
    }

    /// Follows directories from the root, links within it as well, and returns where they lead, as
    /// a path from the root. `None`: one is missing. With `make` it is made.
    ///
    /// No other process writes here, so what is looked at stays as it is.
    fn walk(&mut self, folders: &[OsString], make: bool) -> Result<Option<PathBuf>, Failure> {
        let mut known = PathBuf::new();
        let mut rest: Vec<OsString> = folders.iter().rev().cloned().collect();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                if !known.pop() {
                    return Err(refused("a link leads out of the root"));
                }
                continue;
            }
            let next = known.join(&part);
            match fs::symlink_metadata(self.root.join(&next)) {
                Ok(about) if about.is_dir() => known = next,
                Ok(about) if about.is_symlink() => {
                    links += 1;
                    if links > LINKS {
                        return Err(refused("too many links lead to it"));
                    }
                    let target = fs::read_link(self.root.join(&next))?;
                    if target.is_absolute() {
                        known = PathBuf::new();
                    }
                    let target = target.into_os_string().into_vec();
                    let parts = target.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
                    rest.extend(parts.rev().map(|part| OsString::from_vec(part.to_vec())));
                }
                Ok(_) => return Err(refused("its directory is a file")),
                Err(error) if error.kind() == io::ErrorKind::NotFound && make => {
                    if next.components().count() > self.limits.depth {
                        return Err(refused(format!("more than {} directories are in each other", self.limits.depth)));
                    }
                    self.count(next.as_os_str().as_bytes())?;
                    fs::create_dir(self.root.join(&next))?;
                    fs::set_permissions(self.root.join(&next), fs::Permissions::from_mode(0o755))?;
                    self.made.insert(next.clone());
                    known = next;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(known))
    }

    /// Removes what lower layers have: a name, or all of a directory.
    fn whiteout(&mut self, folders: &[OsString], name: &[u8], removed: &[u8]) -> Result<(), Failure> {
        if matches!(removed, b"" | b"." | b"..") {
            return Err(refused("it removes what is no name"));
        }
        let Some(parent) = self.walk(folders, false)? else { return Ok(()) };
        if name == OPAQUE {
            for entry in fs::read_dir(self.root.join(&parent))? {
                self.remove_lower(&parent.join(entry?.file_name()))?;
            }
            return Ok(());
        }
        if name.starts_with(AUFS) {
            return Ok(());
        }
        self.remove_lower(&parent.join(OsStr::from_bytes(removed)))
    }

    /// Removes a path but for what the present layer has made.
    fn remove_lower(&self, relative: &Path) -> Result<(), Failure> {
        // Paths are in the order of their components, so what is below a directory follows it.
        let kept = self.made.range(relative.to_owned()..).next().is_some_and(|path| path.starts_with(relative));
        let path = self.root.join(relative);
        let about = match fs::symlink_metadata(&path) {
            Ok(about) => about,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        match (kept, about.is_dir()) {
            (false, true) => fs::remove_dir_all(&path)?,
            (false, false) => fs::remove_file(&path)?,
            (true, true) => {
                for entry in fs::read_dir(&path)? {
                    self.remove_lower(&relative.join(entry?.file_name()))?;
                }
            }
            (true, false) => {}
        }
        Ok(())
    }

    /// Removes what is in the place of an entry.
    fn clear(&self, relative: &Path) -> Result<(), Failure> {
        let path = self.root.join(relative);
        match fs::symlink_metadata(&path) {
            Ok(about) if about.is_dir() => Ok(fs::remove_dir_all(&path)?),
            Ok(_) => Ok(fs::remove_file(&path)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the file that a hard link is another name of, as a path from the root.
    fn link_source(&mut self, link: &[u8]) -> Result<PathBuf, Failure> {
        let parts = parts(link, self.limits.depth).map_err(|failure| match failure {
            Failure::Refused(why) => refused(format!("its target {:?}: {why}", String::from_utf8_lossy(link))),
            other => other,
        })?;
        let missing = || refused(format!("its target {:?} is no file of the image", String::from_utf8_lossy(link)));
        let (name, folders) = parts.split_last().ok_or_else(missing)?;
        let source = self.walk(folders, false)?.ok_or_else(missing)?.join(name);
        match fs::symlink_metadata(self.root.join(&source)) {
            Ok(about) if !about.is_dir() => Ok(source),
            _ => Err(missing()),
        }
    }

    /// Gives a file or directory its owner and its mode. The owner first: the kernel takes setuid
    /// bits away from a file that gets another.
    fn adorn(&self, path: &Path, item: &Item) -> Result<(), Failure> {
        self.own(path, item)?;
        Ok(fs::set_permissions(path, fs::Permissions::from_mode(item.mode & 0o7777))?)
    }

    fn own(&self, path: &Path, item: &Item) -> Result<(), Failure> {
        if !self.owners {
            return Ok(());
        }
        // The greatest number means "as it is" to the kernel.
        let id = |id: u64| u32::try_from(id).ok().filter(|id| *id != u32::MAX);
        let ids = id(item.user).zip(id(item.group));
        let (user, group) = ids.ok_or_else(|| refused("its owner is no user or group of Linux"))?;
        Ok(lchown(path, Some(user), Some(group))?)
    }
}

/// Why an entry is not unpacked.
enum Failure {
    Refused(String),
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

fn refused(why: impl Into<String>) -> Failure {
    Failure::Refused(why.into())
}

/// The names of a path; none: the root.
fn parts(path: &[u8], depth: usize) -> Result<Vec<OsString>, Failure> {
    if path.len() > PATH {
        return Err(refused(format!("its path has more than {PATH} bytes")));
    }
    if path.starts_with(b"/") {
        return Err(refused("its name is absolute"));
    }
    if path.contains(&0) {
        return Err(refused("its name contains a NUL"));
    }
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.contains(&b"..".as_slice()) {
        return Err(refused("its name leads out of the root (..)"));
    }
    if parts.iter().any(|part| part.len() > NAME) {
        return Err(refused(format!("a name has more than {NAME} bytes")));
    }
    if parts.len() > depth {
        return Err(refused(format!("more than {depth} directories are in each other")));
    }
    Ok(parts.into_iter().map(|part| OsString::from_vec(part.to_vec())).collect())
}

/// Refuses the target of a symbolic link in a directory that is `depth` below the root, if it leads
/// above the root. A target that begins with / is in the root: a container sees no other.
fn stays_inside(target: &[u8], depth: usize) -> Result<(), Failure> {
    if target.is_empty() || target.len() > PATH || target.contains(&0) {
        return Err(refused("its target is no path"));
    }
    let mut depth = if target.starts_with(b"/") { 0 } else { depth };
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                let above =
                    || refused(format!("its target {:?} leads out of the root", String::from_utf8_lossy(target)));
                depth = depth.checked_sub(1).ok_or_else(above)?;
            }
            _ => depth += 1,
        }
    }
    Ok(())
}

/// A reader of at most so many bytes.
struct Bounded<'a, R> {
    from: R,
    left: &'a mut u64,
    most: u64,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(into)?;
        let left = self.left.checked_sub(u64::try_from(length).unwrap_or(u64::MAX));
        let too_many =
            || io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {} bytes unpacked", self.most));
        *self.left = left.ok_or_else(too_many)?;
        Ok(length)
    }
}
