//! What a container sees as its file system: the machine's or its image's, with some things shown
//! in places of their own. The machine's file system stays as it is: a place that does not exist is
//! made in a copy of the folder it is in.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use fairlead_kernel::Error;
use fairlead_kernel::mount::{self, Tree};

use super::launch::{Launch, Mount, Who};
use super::root;
use crate::volumes::PRIVATE;

/// A folder with more entries than this is not copied.
const MOST_ENTRIES: usize = 4096;
/// Links are followed so often.
const MOST_LINKS: usize = 40;
/// Where the copy of the root is made: a folder every machine has.
pub(super) const STAGE: &str = "/tmp";
/// The folder of devices.
const DEVICES: &str = "/dev";
/// Where the old root is meanwhile.
pub(super) const OLD: &str = ".fairlead-old-root";

/// What was made on the way.
struct ViewState<'a> {
    /// The user of the container, whose devices are copied with /dev.
    who: &'a Who,
    /// Folders that can be written to: copies, and what was made in them.
    places: BTreeSet<PathBuf>,
    copies: Vec<PathBuf>,
    /// The root is the container's own, so that places can be made anywhere in it.
    own_root: bool,
}

impl ViewState<'_> {
    /// True if places can be made in a folder without a copy of it. Of a privileged container with
    /// an image the root alone is its own: /dev and the like are the machine's.
    fn is_own(&self, folder: &Path) -> bool {
        let of_machine =
            root::has_machine_devices(self.who) && root::FOLDERS.iter().any(|name| folder.starts_with(name));
        self.own_root && !of_machine
    }
}

/// Makes it, in a mount namespace of its own.
pub(super) fn make(launch: &Launch) -> Result<(), Error> {
    mount::isolate()?;
    // Sources are copied before the first of them is mounted. A path could lead into what was
    // mounted before, and a bind of an open /etc/hosts of the host would take along the Pod's own
    // that is mounted on it (fs/namespace.c, copy_tree).
    let sources = launch.mounts.iter().map(open).collect::<Result<Vec<_>, _>>();
    let sources = sources.map_err(failed("opening what is to be mounted"))?;
    let mut made = ViewState {
        who: &launch.program.who,
        places: BTreeSet::new(),
        copies: Vec::new(),
        own_root: launch.root.is_some(),
    };
    if let Some(root) = &launch.root {
        let root = File::open(root).map_err(failed(&format!("opening the root of the image, {}", root.display())))?;
        root::enter(launch, &root)?;
    } else if launch.read_only {
        mount::set_read_only(Path::new("/"), true, true)?;
        // Shared memory is no file system to anybody.
        let _ = mount::set_read_only(Path::new("/dev/shm"), false, false);
    }
    for (wanted, source) in launch.mounts.iter().zip(&sources) {
        let target = show(wanted, source, &mut made)?;
        if let Some(target) = target.filter(|_| !wanted.read_only && is_private(wanted)) {
            // The Pod's own, and not the host's: what is mounted below is made in it.
            made.places.insert(target);
        }
    }
    leave_old_root()?;
    if made.own_root {
        make_working_directory(launch)?;
    }
    if launch.read_only {
        // A copy of a folder is read-only, as the folder is.
        made.copies.iter().try_for_each(|copy| mount::set_read_only(copy, false, true))?;
        if made.own_root {
            // Volumes, /dev and /proc are mounts of their own.
            mount::set_read_only(Path::new("/"), false, true)?;
        }
    }
    if !made.own_root && launch.has_own_proc() {
        mount::processes(Path::new("/proc"))?;
    }
    Ok(())
}

/// Makes the working directory of a container that has an image, where the image has none, as runc
/// does.
fn make_working_directory(launch: &Launch) -> Result<(), Error> {
    let (known, missing) = resolve(Path::new(&launch.program.folder))
        .map_err(failed(&format!("finding the working directory {:?}", launch.program.folder)))?;
    let whole = missing.iter().fold(known, |path, part| path.join(part));
    fs::create_dir_all(&whole).map_err(failed(&format!("making {}", whole.display())))
}

fn is_private(wanted: &Mount) -> bool {
    PRIVATE.iter().any(|private| wanted.target == Path::new(private))
}

fn open(wanted: &Mount) -> io::Result<Tree> {
    let Some(below) = &wanted.below else { return Tree::copy(&wanted.source) };
    let source = File::open(&wanted.source)?;
    let inside = match mount::open_below(&source, below) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_below(source, below),
        opened => opened,
    };
    Tree::copy_open(&inside?)
}

/// Makes the folders of a path below a folder. One part after the other: none of them may be a link that leads elsewhere.
fn make_below(folder: File, path: &Path) -> io::Result<File> {
    parts(path).iter().try_fold(folder, |folder, part| match mount::open_below(&folder, part) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let new = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(part);
            fs::create_dir(&new)?;
            // In a volume with a group new folders belong to it (chmod(2) clears what mkdir(2)
            // inherits).
            let inherited = folder.metadata()?.mode() & 0o2000;
            fs::set_permissions(&new, fs::Permissions::from_mode(0o777 | inherited))?;
            mount::open_below(&folder, part)
        }
        opened => opened,
    })
}

fn show(wanted: &Mount, source: &Tree, made: &mut ViewState<'_>) -> Result<Option<PathBuf>, Error> {
    if wanted.optional && !wanted.target.exists() {
        return Ok(None);
    }
    let folder = source.is_folder().map_err(failed("looking at what is to be mounted"))?;
    let target = place(&wanted.target, folder, made)?;
    source.attach(&target)?;
    if wanted.read_only {
        mount::make_read_only(&target)?;
    }
    Ok(Some(target))
}

/// Makes sure that a place exists, and returns where it really is. Folders that were made here, or copied, can be written to.
fn place(target: &Path, folder: bool, made: &mut ViewState<'_>) -> Result<PathBuf, Error> {
    let (known, missing) = resolve(target).map_err(failed(&format!("finding {}", target.display())))?;
    if missing.is_empty() {
        return Ok(known);
    }
    if !made.is_own(&known) && made.places.insert(known.clone()) {
        copy(&known, made.who)?;
        made.copies.push(known.clone());
    }
    let whole = missing.iter().fold(known, |path, part| {
        let next = path.join(part);
        made.places.insert(next.clone());
        next
    });
    let action = format!("making {}", whole.display());
    let parent = if folder { Some(whole.as_path()) } else { whole.parent() };
    parent.map_or(Ok(()), fs::create_dir_all).map_err(failed(&action))?;
    if !folder {
        // A container of the Pod that runs already may have put a link there meanwhile.
        File::options().write(true).create_new(true).open(&whole).map_err(failed(&action))?;
    }
    Ok(whole)
}

/// How far a path leads, links followed, and what of it does not exist.
fn resolve(path: &Path) -> io::Result<(PathBuf, Vec<PathBuf>)> {
    let mut known = PathBuf::from("/");
    let mut rest: Vec<PathBuf> = parts(path);
    rest.reverse();
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part.as_os_str() == ".." {
            known.pop();
            continue;
        }
        let next = known.join(&part);
        match fs::symlink_metadata(&next) {
            Ok(metadata) if metadata.is_symlink() => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(io::Error::other("too many links"));
                }
                let leads = fs::read_link(&next)?;
                if leads.is_absolute() {
                    known = PathBuf::from("/");
                }
                rest.extend(parts(&leads).into_iter().rev());
            }
            Ok(_) => known = next,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                rest.push(part);
                rest.reverse();
                return Ok((known, rest));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((known, Vec::new()))
}

fn parts(path: &Path) -> Vec<PathBuf> {
    let kept = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    kept.map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// Puts a folder in memory in the place of a folder, with everything in it that was there.
fn copy(folder: &Path, who: &Who) -> Result<(), Error> {
    if folder == Path::new("/") {
        return copy_root(who);
    }
    let action = format!("copying the folder {}", folder.display());
    let old = File::open(folder).map_err(failed(&action))?;
    let from = PathBuf::from(format!("/proc/self/fd/{}", old.as_raw_fd()));
    let entries = entries(folder, who)?;
    let devices = folder == Path::new(DEVICES);
    let new = if devices { mount::memory_with_devices } else { mount::memory };
    new(folder, &like(folder)?)?;
    entries.iter().try_for_each(|name| entry_copy(&from.join(name), &folder.join(name), devices))
}

/// The same for the root. The old one stays until all is made: what is to be shown may be in it.
fn copy_root(who: &Who) -> Result<(), Error> {
    let (stage, old) = (Path::new(STAGE), Path::new(STAGE).join(OLD));
    let entries = entries(Path::new("/"), who)?;
    mount::memory(stage, &like(Path::new("/"))?)?;
    fs::create_dir(&old).map_err(failed("making a folder for the old root"))?;
    mount::become_root(stage, &old)?;
    let old = Path::new("/").join(OLD);
    entries.iter().try_for_each(|name| entry_copy(&old.join(name), &Path::new("/").join(name), false))
}

fn leave_old_root() -> Result<(), Error> {
    let old = Path::new("/").join(OLD);
    if !old.exists() {
        return Ok(());
    }
    mount::unmount(&old)?;
    fs::remove_dir(&old).map_err(failed("removing the folder of the old root"))
}

/// The names in a folder, without devices that the user of the container cannot open: those are
/// most of /dev, and each name is a mount.
fn entries(folder: &Path, who: &Who) -> Result<Vec<OsString>, Error> {
    let action = format!("copying the folder {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed(&action))? {
        let entry = entry.map_err(failed(&action))?;
        let kind = entry.file_type().map_err(failed(&action))?;
        let device = kind.is_char_device() || kind.is_block_device();
        if device && !entry.metadata().is_ok_and(|device| can_open(who, &device)) {
            continue;
        }
        if names.len() == MOST_ENTRIES {
            return Err(failed(&action)(io::Error::other("it has too many entries")));
        }
        names.push(entry.file_name());
    }
    Ok(names)
}

/// True if the permissions of a file let a user read or write it.
fn can_open(who: &Who, file: &fs::Metadata) -> bool {
    let permits = |class: u32| file.mode() & class != 0;
    let owner = file.uid() == who.user && permits(0o600);
    let group = (file.gid() == who.group || who.groups.contains(&file.gid())) && permits(0o060);
    // With capabilities permissions may not count.
    owner || group || permits(0o006) || who.capabilities != 0
}

/// The options of a folder in memory that looks like another.
fn like(folder: &Path) -> Result<String, Error> {
    let is = folder.metadata().map_err(failed(&format!("looking at {}", folder.display())))?;
    Ok(format!("mode={:o},uid={},gid={},size=64m", is.mode() & 0o7777, is.uid(), is.gid()))
}

/// Shows an entry of a folder in a copy of the folder, in which files of devices may work.
fn entry_copy(from: &Path, to: &Path, devices: bool) -> Result<(), Error> {
    let action = format!("copying {}", to.display());
    let metadata = match fs::symlink_metadata(from) {
        // Devices may be unplugged while /dev is copied.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed(&action))?,
    };
    let kind = metadata.file_type();
    // A mount of /dev/ptmx alone would not find the terminals in the folder `pts` beside it
    // (fs/devpts/inode.c, devpts_mntget). Without the right to make devices a mount has to do.
    if devices && (kind.is_char_device() || kind.is_block_device()) && mount::make_device(to, &metadata).is_ok() {
        return Ok(());
    }
    if metadata.is_symlink() {
        let leads = fs::read_link(from).map_err(failed(&action))?;
        return symlink(leads, to).map_err(failed(&action));
    }
    let made = if metadata.is_dir() { fs::create_dir(to) } else { File::create(to).map(drop) };
    made.map_err(failed(&action))?;
    mount::bind(from, to)
}

/// The path by which this process names a file it has opened.
pub(super) fn own(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

pub(super) fn failed(action: &str) -> impl FnOnce(io::Error) -> Error {
    let action = action.to_owned();
    move |source| Error::System { action, source }
}
