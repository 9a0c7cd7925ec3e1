//! What a container sees as its file system: the machine's or its image's, with some things shown
//! in places of their own. The machine's file system stays as it is: a place that does not exist is
//! made in a copy of the folder it is in.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
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
/// Where the old root is while a new one is made.
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
    let root = File::open("/").map_err(failed("opening the root"))?;
    let made = make_place(&root, &known, &missing, true);
    made.map(drop).map_err(failed(&format!("making the working directory {:?}", launch.program.folder)))
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

/// Makes the folders of a path below a folder. One part after the other: none of them may be a link
/// that leads elsewhere, also not one that a container of the Pod puts there meanwhile.
fn make_below(folder: File, path: &Path) -> io::Result<File> {
    parts(path).iter().try_fold(folder, |folder, part| match mount::open_below(&folder, part) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // In a volume with a group new folders belong to it (chmod(2) clears what mkdir(2)
            // inherits).
            let inherited = folder.metadata()?.mode() & 0o2000;
            mount::open_or_make_folder(&folder, part, Some(0o777 | inherited))
        }
        opened => opened,
    })
}

fn show(wanted: &Mount, source: &Tree, made: &mut ViewState<'_>) -> Result<Option<PathBuf>, Error> {
    if wanted.optional && !wanted.target.exists() {
        return Ok(None);
    }
    let folder = source.is_folder().map_err(failed("looking at what is to be mounted"))?;
    let (target, place) = place(&wanted.target, folder, made)?;
    let action = format!("mounting at {}", target.display());
    let read_only = if wanted.read_only { source.make_read_only() } else { Ok(()) };
    source.attach(&place).map_err(failed(&action))?;
    match read_only {
        // mount_setattr(2) came with Linux 5.12.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => mount::make_read_only(&target)?,
        set => set.map_err(failed(&action))?,
    }
    Ok(Some(target))
}

/// Makes sure that a place exists, and returns its path without links and the place, opened.
/// Folders that were made here, or copied, can be written to.
fn place(target: &Path, folder: bool, made: &mut ViewState<'_>) -> Result<(PathBuf, File), Error> {
    let action = format!("making {}", target.display());
    let (known, missing) = resolve(target).map_err(failed(&format!("finding {}", target.display())))?;
    if !missing.is_empty() && !made.is_own(&known) && made.places.insert(known.clone()) {
        copy(&known, made.who)?;
        made.copies.push(known.clone());
    }
    let root = File::open("/").map_err(failed(&action))?;
    let place = make_place(&root, &known, &missing, folder).map_err(failed(&action))?;
    let mut whole = known;
    for part in missing {
        whole.push(part);
        made.places.insert(whole.clone());
    }
    Ok((whole, place))
}

/// Opens a place below the root and makes the folders, or the folders and the file, that are
/// missing of it. A container of the Pod that runs already may put links into the path after it was
/// resolved, so a link is an error.
fn make_place(root: &File, known: &Path, missing: &[PathBuf], folder: bool) -> io::Result<File> {
    let known = known.strip_prefix("/").unwrap_or(known);
    let known = if known.as_os_str().is_empty() { Path::new(".") } else { known };
    let known = mount::open_without_links(root, known)?;
    let Some((last, folders)) = missing.split_last() else { return Ok(known) };
    let parent = folders.iter().try_fold(known, |at, part| mount::open_or_make_folder(&at, part, None))?;
    if folder { mount::open_or_make_folder(&parent, last, None) } else { mount::make_file(&parent, last) }
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
                let mut missing = vec![part];
                for part in rest.into_iter().rev() {
                    if part.as_os_str() != ".." {
                        missing.push(part);
                    } else if missing.pop().is_none() {
                        known.pop();
                    }
                }
                return Ok((known, missing));
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
    let open = || {
        let root = File::open("/")?;
        make_place(&root, folder, &[], true)
    };
    let old = open().map_err(failed(&action))?;
    let entries = entries(&old, folder, who)?;
    let devices = folder == Path::new(DEVICES);
    let mount_memory = if devices { mount::memory_with_devices } else { mount::memory };
    mount_memory(&own(&old), &like(&old, folder)?)?;
    let new = open().map_err(failed(&action))?;
    let device = |file: &File| file.metadata().map(|about| about.dev()).map_err(failed(&action));
    if device(&new)? == device(&old)? {
        // A container of the Pod has put another folder there.
        return Err(failed(&action)(io::Error::other("the folder was replaced")));
    }
    entries.iter().try_for_each(|name| entry_copy(&old, &new, name, devices))
}

/// Puts a folder in memory in the place of the root, with everything in it that was there.
fn copy_root(who: &Who) -> Result<(), Error> {
    let root = Path::new("/");
    let action = "copying the folder /";
    let old = File::open(root).map_err(failed(action))?;
    let entries = entries(&old, root, who)?;
    let (stage, old_place) = (Path::new(STAGE), Path::new(STAGE).join(OLD));
    mount::memory(stage, &like(&old, root)?)?;
    fs::create_dir(&old_place).map_err(failed("making a folder for the old root"))?;
    mount::become_root(stage, &old_place)?;
    let new = File::open(root).map_err(failed(action))?;
    // The rest is copied by paths in /proc.
    let proc = Path::new("/proc");
    fs::create_dir(proc).map_err(failed(action))?;
    mount::bind(&root.join(OLD).join("proc"), proc)?;
    let mut rest = entries.iter().filter(|name| *name != "proc");
    rest.try_for_each(|name| entry_copy(&old, &new, name, false))?;
    leave_old_root()
}

/// Detaches the old root. It is never there while places of mounts are made: places in it would be
/// made in the file system of the host.
pub(super) fn leave_old_root() -> Result<(), Error> {
    let old = Path::new("/").join(OLD);
    mount::unmount(&old)?;
    fs::remove_dir(&old).map_err(failed("removing the folder of the old root"))
}

/// The names in a folder, without devices that the user of the container cannot open: those are
/// most of /dev, and each name is a mount.
fn entries(folder: &File, path: &Path, who: &Who) -> Result<Vec<OsString>, Error> {
    let action = format!("copying the folder {}", path.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(own(folder)).map_err(failed(&action))? {
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
fn like(folder: &File, path: &Path) -> Result<String, Error> {
    let is = folder.metadata().map_err(failed(&format!("looking at {}", path.display())))?;
    Ok(format!("mode={:o},uid={},gid={},size=64m", is.mode() & 0o7777, is.uid(), is.gid()))
}

/// Shows an entry of a folder in a copy of the folder, in which files of devices may work.
fn entry_copy(old: &File, new: &File, name: &OsStr, devices: bool) -> Result<(), Error> {
    let action = format!("copying {}", name.display());
    let from = own(old).join(name);
    let to = own(new).join(name);
    let metadata = match fs::symlink_metadata(&from) {
        // Devices may be unplugged while /dev is copied.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed(&action))?,
    };
    let kind = metadata.file_type();
    // A mount of /dev/ptmx alone would not find the terminals in the folder `pts` beside it
    // (fs/devpts/inode.c, devpts_mntget). Without the right to make devices a mount has to do.
    if devices && (kind.is_char_device() || kind.is_block_device()) && mount::make_device(&to, &metadata).is_ok() {
        return Ok(());
    }
    if metadata.is_symlink() {
        let leads = fs::read_link(&from).map_err(failed(&action))?;
        return symlink(leads, &to).map_err(failed(&action));
    }
    // A container of the Pod may have replaced it by now, with a link too.
    let show = || {
        let source = mount::open_without_links(old, Path::new(name))?;
        let tree = Tree::copy_open(&source)?;
        let target = if tree.is_folder()? {
            mount::open_or_make_folder(new, Path::new(name), None)?
        } else {
            mount::make_file(new, Path::new(name))?
        };
        tree.attach(&target)
    };
    show().map_err(failed(&action))
}

/// The path by which this process names a file it has opened.
pub(super) fn own(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

pub(super) fn failed(action: &str) -> impl FnOnce(io::Error) -> Error {
    let action = action.to_owned();
    move |source| Error::System { action, source }
}

#[cfg(test)]
mod tests;
