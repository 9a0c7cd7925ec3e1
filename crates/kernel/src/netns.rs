//! Which network namespaces are there, and how does one get into them? A namespace is a descriptor, perhaps with a name
//! under `/run/netns`; code runs inside it on a thread of its own, so that the rest of the program stays where it is.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use crate::error::Error;
use crate::sys;

/// Where namespaces have names, as iproute2 keeps them.
const NAMES: &str = "/run/netns";
/// The namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace, kept alive by this value.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// A new one without a name: it is gone with the last value, process and thread in it.
    pub fn unnamed() -> Result<Self, Error> {
        on_thread(|| {
            sys::unshare(libc::CLONE_NEWNET).map_err(failed("making a network namespace"))?;
            Namespace::current()
        })
    }

    /// The one this thread is in.
    pub fn current() -> Result<Self, Error> {
        Namespace::at(Path::new(OWN))
    }

    /// The one a file stands for, such as `/proc/PID/ns/net`.
    pub fn at(path: &Path) -> Result<Self, Error> {
        File::open(path).map(|file| Namespace { file }).map_err(failed(&format!("opening {}", path.display())))
    }

    /// The one with a name.
    pub fn named(name: &str) -> Result<Self, Error> {
        Namespace::at(&path(name)?)
    }

    /// A new one with a name, which `ip netns` shows too. It stays until [`delete`].
    pub fn create(name: &str) -> Result<Self, Error> {
        let path = path(name)?;
        prepare_names()?;
        let action = format!("creating the network namespace {name}");
        OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed(&action))?;
        let made = Namespace::unnamed().and_then(|namespace| {
            let source = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&namespace.file));
            bind(Path::new(&source), &path).map_err(failed(&action))?;
            Ok(namespace)
        });
        if made.is_err() {
            // The mistake to report is the first one.
            let _ = fs::remove_file(&path);
        }
        made
    }

    /// The processes inside, as far as this one may see them.
    pub fn processes(&self) -> Result<Vec<u32>, Error> {
        let own = self.identity()?;
        let entries = fs::read_dir("/proc").map_err(failed("listing processes"))?.flatten();
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
        // One that ends meanwhile is none.
        let is_inside = |pid: &u32| {
            let seen = fs::metadata(format!("/proc/{pid}/ns/net"));
            seen.is_ok_and(|seen| (seen.dev(), seen.ino()) == own)
        };
        Ok(entries.filter_map(number).filter(is_inside).collect())
    }

    /// Two values are the same namespace if this is the same.
    pub fn identity(&self) -> Result<(u64, u64), Error> {
        let seen = self.file.metadata().map_err(failed("looking at a network namespace"))?;
        Ok((seen.dev(), seen.ino()))
    }

    /// Runs `work` inside, on a thread of its own, and waits for it.
    ///
    /// # Panics
    /// If `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        on_thread(|| {
            self.enter()?;
            Ok(work())
        })
    }

    /// Moves the calling thread inside, for good. For threads made for the purpose.
    pub fn enter(&self) -> Result<(), Error> {
        sys::set_namespace(self.file.as_fd(), libc::CLONE_NEWNET).map_err(failed("entering a network namespace"))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Takes a name away; the namespace itself ends when nothing is in it any more. Fine if there is none.
pub fn delete(name: &str) -> Result<(), Error> {
    let path = path(name)?;
    let action = format!("deleting the network namespace {name}");
    match sys::unmount(&c_path(&path).map_err(failed(&action))?) {
        Ok(()) => {}
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => {}
        Err(error) => return Err(failed(&action)(error)),
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&action)(error)),
        _ => Ok(()),
    }
}

/// The names there are, in order.
pub fn names() -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(NAMES) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("listing network namespaces")(error)),
    };
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// A thread that ends afterwards, so that nobody else ever runs where it went.
fn on_thread<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn path(name: &str) -> Result<PathBuf, Error> {
    let fine = !name.is_empty() && name.len() < 256 && !name.contains(['/', '\0']) && name != "." && name != "..";
    if fine { Ok(Path::new(NAMES).join(name)) } else { Err(Error::Malformed("no name for a network namespace")) }
}

/// Makes the folder a mount of its own that is shared, as iproute2 does: else a name deleted here would stay alive in
/// every mount namespace that copied it.
fn prepare_names() -> Result<(), Error> {
    let action = "preparing the folder of network namespaces";
    fs::create_dir_all(NAMES).map_err(failed(action))?;
    let folder = c_path(Path::new(NAMES)).map_err(failed(action))?;
    if sys::mount(c"", &folder, libc::MS_SHARED | libc::MS_REC).is_ok() {
        return Ok(());
    }
    sys::mount(&folder, &folder, libc::MS_BIND | libc::MS_REC).map_err(failed(action))?;
    sys::mount(c"", &folder, libc::MS_SHARED | libc::MS_REC).map_err(failed(action))
}

fn bind(source: &Path, target: &Path) -> io::Result<()> {
    sys::mount(&c_path(source)?, &c_path(target)?, libc::MS_BIND)
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn failed(action: &str) -> impl FnOnce(io::Error) -> Error {
    let action = action.to_owned();
    move |source| Error::System { action, source }
}
