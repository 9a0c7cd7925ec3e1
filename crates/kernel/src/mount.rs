//! What does a process see as its file system? Mounts in a namespace of its own, which others never see.

use std::ffi::CString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::process::{self, Own};
use crate::sys;
use crate::sys::process as calls;

/// Puts this process into a mount namespace of its own. What is mounted or unmounted outside is so inside, and not the other way.
pub fn isolate() -> Result<(), Error> {
    process::unshare(Own::Mounts)?;
    sys::mount(c"", c"/", libc::MS_REC | libc::MS_SLAVE).map_err(process::failed("leaving the mounts of others alone"))
}

/// Shows `source` at `target` too, with what is mounted below it.
pub fn bind(source: &Path, target: &Path) -> Result<(), Error> {
    let action = format!("mounting {} at {}", source.display(), target.display());
    let done = (|| sys::mount(&text(source)?, &text(target)?, libc::MS_BIND | libc::MS_REC))();
    done.map_err(process::failed(&action))
}

/// A copy of the mounts at and below a file or folder, as they were when it was made. Nobody sees
/// it until it is attached.
#[derive(Debug)]
pub struct Tree(File);

impl Tree {
    /// Copies the mounts at and below a path.
    pub fn copy(source: &Path) -> io::Result<Tree> {
        calls::open_tree(libc::AT_FDCWD, &text(source)?).map(|tree| Tree(tree.into()))
    }

    /// Copies the mounts at and below an open file or folder, but for those on top of it.
    pub fn copy_open(source: &File) -> io::Result<Tree> {
        calls::open_tree(source.as_raw_fd(), c"").map(|tree| Tree(tree.into()))
    }

    /// True if its root is a folder.
    pub fn is_folder(&self) -> io::Result<bool> {
        Ok(self.0.metadata()?.is_dir())
    }

    /// Makes the mount at the root of the copy read-only, without devices and setuid programs.
    /// For copies that are not attached yet.
    pub fn make_read_only(&self) -> io::Result<()> {
        calls::make_tree_read_only(self.0.as_fd())
    }

    /// Attaches the copy on top of an open file or folder. To attach it twice, copy it twice.
    pub fn attach(&self, target: &File) -> io::Result<()> {
        calls::move_mount(self.0.as_fd(), target.as_fd())
    }
}

/// Nobody writes through this mount any more.
pub fn make_read_only(target: &Path) -> Result<(), Error> {
    let flags = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;
    let action = format!("making {} read-only", target.display());
    (|| sys::mount(c"", &text(target)?, flags))().map_err(process::failed(&action))
}

/// Nobody writes through this mount, and those under it if `below`, or somebody does again.
pub fn set_read_only(target: &Path, below: bool, read_only: bool) -> Result<(), Error> {
    let action = format!("setting whether {} is read-only", target.display());
    (|| calls::set_read_only(&text(target)?, below, read_only))().map_err(process::failed(&action))
}

/// An empty file system in memory, with options such as `mode=0755,size=1m`.
pub fn memory(target: &Path, options: &str) -> Result<(), Error> {
    fresh("tmpfs", target, libc::MS_NOSUID | libc::MS_NODEV, options)
}

/// An empty file system in memory like [`memory`], in which files of devices work.
pub fn memory_with_devices(target: &Path, options: &str) -> Result<(), Error> {
    fresh("tmpfs", target, libc::MS_NOSUID, options)
}

/// Makes a file of a device that is like another one.
pub fn make_device(target: &Path, like: &Metadata) -> io::Result<()> {
    calls::make_device(&text(target)?, like.mode(), like.rdev())?;
    chown(target, Some(like.uid()), Some(like.gid()))?;
    // The umask counts when a file is made.
    fs::set_permissions(target, Permissions::from_mode(like.mode() & 0o7777))
}

/// The processes of this namespace of processes.
pub fn processes(target: &Path) -> Result<(), Error> {
    fresh("proc", target, libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC, "")
}

/// Mounts `lower` at a place so that what is written there goes to `upper` and `lower` stays as it is. `work` is an empty
/// directory on the file system of `upper`. The paths hold no comma, colon or backslash, which separate the options of the
/// file system (Documentation/filesystems/overlayfs.rst). Device files in `lower` are of no use, and programs with a setuid
/// bit give their user's rights only with `setuid`.
pub fn copy_on_write(lower: &Path, upper: &Path, work: &Path, target: &Path, setuid: bool) -> Result<(), Error> {
    let options = format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
    let nosuid = if setuid { 0 } else { libc::MS_NOSUID };
    fresh("overlay", target, libc::MS_NODEV | nosuid, &options)
}

/// Mounts a directory of terminals of its own, in which those of others are not seen.
pub fn terminals(target: &Path) -> Result<(), Error> {
    fresh("devpts", target, libc::MS_NOSUID | libc::MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
}

/// Mounts what the kernel tells of devices and of the network of this namespace, to be read only.
pub fn system(target: &Path) -> Result<(), Error> {
    fresh("sysfs", target, libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY, "")
}

fn fresh(kind: &str, target: &Path, flags: libc::c_ulong, options: &str) -> Result<(), Error> {
    let action = format!("mounting a {kind} at {}", target.display());
    let done = (|| {
        let (kind, options) = (CString::new(kind)?, CString::new(options)?);
        calls::mount_new(&kind, &text(target)?, flags, &options)
    })();
    done.map_err(process::failed(&action))
}

/// Makes a mount the root of this namespace, and puts the old root at `old`, a folder in it.
pub fn become_root(root: &Path, old: &Path) -> Result<(), Error> {
    let done = (|| {
        calls::pivot_root(&text(root)?, &text(old)?)?;
        std::env::set_current_dir("/")
    })();
    done.map_err(process::failed(&format!("making {} the root", root.display())))
}

/// Opens a path below a folder. Nothing in it, such as a link somebody made, leads out of the folder.
pub fn open_below(folder: &File, path: &Path) -> io::Result<File> {
    calls::open_below(folder.as_fd(), &text(path)?).map(File::from)
}

/// Opens a path below a folder. A link anywhere in it is an error, even if it leads to a place
/// below the folder.
pub fn open_without_links(folder: &File, path: &Path) -> io::Result<File> {
    calls::open_without_links(folder.as_fd(), &text(path)?).map(File::from)
}

/// Opens a folder in a folder, and makes it if there is none. Links are not followed: another
/// process may put one in its place at any time. `mode` is set, whatever the umask, for a folder
/// that was made.
pub fn open_or_make_folder(folder: &File, name: &Path, mode: Option<u32>) -> io::Result<File> {
    match open_without_links(folder, name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    let own = own_path(folder).join(name);
    match fs::create_dir(&own) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => {
            made?;
            if let Some(mode) = mode {
                set_mode_of_own_folder(&own, mode)?;
            }
        }
    }
    open_without_links(folder, name)
}

/// Sets the mode of a folder that this process has just made. Does nothing if a folder of another
/// user is in its place by now.
fn set_mode_of_own_folder(path: &Path, mode: u32) -> io::Result<()> {
    let made = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(path)?;
    let own = fs::metadata("/proc/self")?.uid();
    if made.metadata()?.uid() == own { made.set_permissions(Permissions::from_mode(mode)) } else { Ok(()) }
}

/// Makes an empty file in a folder and opens it for looking at it. There must be nothing of its
/// name, and no link is followed.
pub fn make_file(folder: &File, name: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(own_path(folder).join(name))?;
    open_without_links(folder, name)
}

/// The path by which this process names a file it has opened.
fn own_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Reads a file as somebody sees it whose root that folder is: no link leads out of it. Whoever may write there may have put
/// anything in its place, so only plain files of at most `most` bytes are read: with others it might never end.
pub fn read_within(root: &File, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let seen = File::from(calls::open_within(root.as_fd(), &text(path)?)?);
    let about = seen.metadata()?;
    if !about.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    // Files that the kernel makes up have no size. Some of them wait for something to tell.
    if about.len() == 0 {
        return Ok(Vec::new());
    }
    let own = format!("/proc/self/fd/{}", seen.as_raw_fd());
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(own)?;
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= most);
    if fits {
        Ok(bytes)
    } else {
        Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes")))
    }
}

/// Takes a mount away. Fine if there is none.
pub fn unmount(target: &Path) -> Result<(), Error> {
    match (|| sys::unmount(&text(target)?))() {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => {
            Err(process::failed(&format!("unmounting {}", target.display()))(error))
        }
        _ => Ok(()),
    }
}

fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests;
