//! What does the kernel do for this process, and how does another one begin? Processes are split only while they have one
//! thread, so whoever starts others in namespaces is a small program of its own.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::error::Error;
use crate::sys;
use crate::sys::process as calls;

mod identity;
mod system_calls;
mod terminal;

pub use identity::{Identity, capability};
pub use system_calls::refuse_system_calls;
pub use terminal::{never_wait, resize_terminal, terminal};

/// Asks for memory in small pages only. The allocator asks for huge ones, which makes a small program three times as large as
/// it needs to be; large ones are a little slower without.
pub fn use_small_pages() -> Result<(), Error> {
    sys::allow_huge_pages(false).map_err(failed("asking for small pages"))
}

/// Gives memory back that other threads have freed. mimalloc keeps such memory until the thread
/// that allocated it allocates again, which a thread that waits does not do: after thousands of
/// connections have ended, most of what they used would stay. Cheap enough to be called every few
/// seconds.
pub fn return_free_memory() {
    sys::memory::collect();
}

/// Which of the two a process is after it was split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// The old one, and the number of the new.
    Parent(i32),
    /// The new one.
    Child,
}

/// Splits the process in two. Refused with more than one thread: in the child the others would be missing, with whatever they
/// hold.
pub fn fork() -> Result<Fork, Error> {
    let split = calls::fork().map_err(failed("starting a process"))?;
    Ok(split.map_or(Fork::Child, Fork::Parent))
}

/// Waits until a child has ended.
pub fn wait(child: i32) -> Result<ExitStatus, Error> {
    let ended = calls::wait(child, true).map_err(failed("waiting for a process"))?;
    let (_, status) = ended.ok_or(Error::Malformed("a wait that did not wait"))?;
    Ok(ExitStatus::from_raw(status))
}

/// A child that has ended, if one has: its number, and how.
pub fn reap() -> Option<(i32, ExitStatus)> {
    let ended = calls::wait(-1, false).ok().flatten();
    ended.map(|(child, status)| (child, ExitStatus::from_raw(status)))
}

/// Waits for any child; `None` once there is none.
pub fn wait_any() -> Option<(i32, ExitStatus)> {
    let ended = calls::wait(-1, true).ok().flatten();
    ended.map(|(child, status)| (child, ExitStatus::from_raw(status)))
}

/// Sends a signal to a process by its number. Whoever is not its parent takes a [`Handle`]: numbers are used again.
pub fn signal(process: i32, signal: i32) -> Result<(), Error> {
    calls::kill(process, signal).map_err(failed(&format!("sending signal {signal} to process {process}")))
}

/// Asks a process group to end: one that began with a process we started, and have not waited for yet, so that the number is
/// still its own.
pub fn terminate_group(process: u32) -> Result<(), Error> {
    // 0 and 1 would mean our own group and everybody.
    let group = i32::try_from(process).ok().filter(|process| *process > 1);
    let group = group.ok_or_else(|| failed("asking a group to end")(io::ErrorKind::InvalidInput.into()))?;
    signal(-group, libc::SIGTERM)
}

/// A process, also after its number was given to another.
#[derive(Debug)]
pub struct Handle(OwnedFd);

impl Handle {
    /// The process that has this number now.
    pub fn open(process: i32) -> Result<Handle, Error> {
        calls::pidfd(process).map(Handle).map_err(failed(&format!("looking at process {process}")))
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) -> Result<(), Error> {
        calls::pidfd_kill(self.0.as_fd(), signal).map_err(failed(&format!("sending signal {signal} to a process")))
    }

    /// The descriptor, which can be read once the process has ended.
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }
}

/// Holds all signals back: from now on they are read with [`next_signal`].
pub fn hold_signals() -> Result<(), Error> {
    calls::block_signals().map_err(failed("holding signals back"))
}

/// Waits for one of the signals held back.
pub fn next_signal() -> Result<i32, Error> {
    calls::next_signal().map_err(failed("waiting for a signal"))
}

/// Begins a session of its own, without a terminal.
pub fn new_session() -> Result<(), Error> {
    calls::new_session().map_err(failed("beginning a session"))
}

/// Makes a terminal the one of this session.
pub fn control_terminal(terminal: BorrowedFd<'_>) -> Result<(), Error> {
    calls::control_terminal(terminal).map_err(failed("taking a terminal"))
}

/// This process ends when its parent does.
pub fn end_with_parent() -> Result<(), Error> {
    let signal = libc::SIGKILL.unsigned_abs().into();
    calls::control(libc::PR_SET_PDEATHSIG, signal, 0).map(drop).map_err(failed("tying a process to its parent"))
}

/// Processes whose parents end become children of this one.
pub fn adopt_orphans() -> Result<(), Error> {
    calls::control(libc::PR_SET_CHILD_SUBREAPER, 1, 0).map(drop).map_err(failed("becoming the parent of orphans"))
}

/// Which namespaces a process can have for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// Mounts.
    Mounts,
    /// The host name.
    Hostname,
    /// System V's shared memory, semaphores and queues.
    Ipc,
    /// The numbers of its children, not its own.
    Processes,
}

/// Puts this process into a new namespace of a kind.
pub fn unshare(kind: Own) -> Result<(), Error> {
    sys::unshare(flag(kind)).map_err(failed(&format!("making a namespace of {kind:?}")))
}

/// Puts this process, or for [`Own::Processes`] its children, into the namespace a descriptor stands for.
pub fn enter(namespace: BorrowedFd<'_>, kind: Own) -> Result<(), Error> {
    sys::set_namespace(namespace, flag(kind)).map_err(failed(&format!("entering a namespace of {kind:?}")))
}

fn flag(kind: Own) -> i32 {
    match kind {
        Own::Mounts => libc::CLONE_NEWNS,
        Own::Hostname => libc::CLONE_NEWUTS,
        Own::Ipc => libc::CLONE_NEWIPC,
        Own::Processes => libc::CLONE_NEWPID,
    }
}

/// Sets the host name of this namespace.
pub fn set_hostname(name: &str) -> Result<(), Error> {
    calls::set_hostname(name).map_err(failed("setting the host name"))
}

/// What programs of this process read from, write to and complain to.
pub fn set_streams(input: BorrowedFd<'_>, output: BorrowedFd<'_>, complaints: BorrowedFd<'_>) -> Result<(), Error> {
    // Copies first: one of them may have the number of another.
    let copies = [input, output, complaints].map(|fd| fd.try_clone_to_owned());
    for (number, copy) in (0..).zip(copies) {
        let done = copy.and_then(|copy| calls::duplicate_onto(copy.as_fd(), number));
        done.map_err(failed("setting the standard streams"))?;
    }
    Ok(())
}

/// Becomes another program, with nothing but the standard streams open and signals as in a new process. Comes back only if that
/// cannot be.
pub fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    calls::set_umask(0o022);
    if let Err(error) = calls::close_on_exec_from(3).and_then(|()| calls::reset_signals()) {
        return error;
    }
    calls::execute(program, arguments, environment)
}

/// Ends this process at once. For children that are copies: nothing of the parent's is run or written twice.
pub fn exit(code: i32) -> ! {
    calls::exit(code)
}

pub(crate) fn failed(action: &str) -> impl FnOnce(io::Error) -> Error {
    let action = action.to_owned();
    move |source| Error::System { action, source }
}
