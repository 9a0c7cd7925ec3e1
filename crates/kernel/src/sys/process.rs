//! The system calls of processes: forks, signals, identities, terminals, mounts. Each a safe function around one call.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use super::check;

/// Splits the process in two: `None` in the new one, its number in the old. Refused with more than one thread.
pub(crate) fn fork() -> io::Result<Option<i32>> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a process with several threads cannot be split"));
    }
    // SAFETY: there is one thread, this one, so no lock is held by somebody who is missing in the child.
    match check(unsafe { libc::fork() })? {
        0 => Ok(None),
        child => Ok(Some(child)),
    }
}

/// Waits for a child, or for any (-1): its number and how it ended. `None`: none has ended yet, and waiting was not asked for.
pub(crate) fn wait(child: i32, block: bool) -> io::Result<Option<(i32, i32)>> {
    let mut status = 0;
    let flags = if block { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: `status` is valid for writes during the call.
        match check(unsafe { libc::waitpid(child, &raw mut status, flags) }) {
            Ok(0) => return Ok(None),
            Ok(ended) => return Ok(Some((ended, status))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sends a signal to a process.
pub(crate) fn kill(process: i32, signal: c_int) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::kill(process, signal) }).map(drop)
}

/// A descriptor that stands for a process and can be read once it has ended.
pub(crate) fn pidfd(process: i32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    let raw = check(c_int::try_from(raw).unwrap_or(-1))?;
    // SAFETY: `raw` is a descriptor that was just made and that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Sends a signal to the process a descriptor stands for.
pub(crate) fn pidfd_kill(process: BorrowedFd<'_>, signal: c_int) -> io::Result<()> {
    let none = ptr::null::<libc::siginfo_t>();
    // SAFETY: without a siginfo_t the kernel makes one of its own.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, none, 0) };
    check(c_int::try_from(sent).unwrap_or(-1)).map(drop)
}

/// Holds all signals back, for [`next_signal`].
pub(crate) fn block_signals() -> io::Result<()> {
    set_mask(&all_signals())
}

/// All signals do what they do in a new process.
pub(crate) fn reset_signals() -> io::Result<()> {
    for number in 1..=64 {
        // Two cannot be changed, and some numbers are not for everybody.
        // SAFETY: the default action calls no code of ours.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
    // SAFETY: a sigset_t is a set of bits; sigemptyset makes it a proper one.
    let none = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        set
    };
    set_mask(&none)
}

/// Waits for one of the signals held back.
pub(crate) fn next_signal() -> io::Result<c_int> {
    let set = all_signals();
    loop {
        // SAFETY: `set` is valid for reads; nobody wants the details.
        match check(unsafe { libc::sigwaitinfo(&raw const set, ptr::null_mut()) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            signal => return signal,
        }
    }
}

fn all_signals() -> libc::sigset_t {
    // SAFETY: a sigset_t is a set of bits; sigfillset makes it a proper one.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        set
    }
}

fn set_mask(set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: `set` is valid for reads; nobody wants the old mask.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, set, ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Begins a session: no terminal, and nobody's process group.
pub(crate) fn new_session() -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::setsid() }).map(drop)
}

/// The name of this machine, in the namespace of this process.
pub(crate) fn set_hostname(name: &str) -> io::Result<()> {
    // SAFETY: `name` is valid for reads of its length.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

/// The groups beside the main one.
pub(crate) fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: `groups` is valid for reads of as many numbers as are told.
    check(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) }).map(drop)
}

/// Becomes another user, for good.
pub(crate) fn set_user(user: u32, group: u32) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::setresgid(group, group, group) })?;
    // SAFETY: no pointers are passed.
    check(unsafe { libc::setresuid(user, user, user) }).map(drop)
}

/// One of prctl's calls that take a number or two.
pub(crate) fn control(what: c_int, first: u64, second: u64) -> io::Result<c_int> {
    // SAFETY: only calls that take numbers are made through this.
    check(unsafe { libc::prctl(what, first, second, 0, 0) })
}

/// Sets a filter for the system calls of this process and of its children, for good.
pub(crate) fn set_seccomp_filter(filter: &[libc::sock_filter]) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel copies the filter and does not write to it.
    let program = libc::sock_fprog { len: length, filter: filter.as_ptr().cast_mut() };
    let mode = u64::from(libc::SECCOMP_MODE_FILTER);
    // SAFETY: `program` and the filter it points to are valid for reads during the call.
    check(unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program, 0u64, 0u64) }).map(drop)
}

/// What this process may do, as a set of bits: effective, permitted and inheritable alike.
pub(crate) fn set_capabilities(set: u64) -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    let header: [u32; 2] = [VERSION_3, 0];
    let (low, high) = ((set & 0xffff_ffff) as u32, (set >> 32) as u32);
    let data: [u32; 6] = [low, low, low, high, high, high];
    // SAFETY: version 3 has a header of two words and data of twice three, which the kernel reads.
    let done = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) };
    check(c_int::try_from(done).unwrap_or(-1)).map(drop)
}

/// Becomes another program; comes back only if that cannot be.
pub(crate) fn execute(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both lists end with null, and their texts with NUL; all outlive the call.
    unsafe { libc::execve(program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// Makes `number` stand for what `fd` stands for, also in programs to come.
pub(crate) fn duplicate_onto(fd: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    if fd.as_raw_fd() == number {
        // SAFETY: no pointers are passed.
        return check(unsafe { libc::fcntl(number, libc::F_SETFD, 0) }).map(drop);
    }
    // SAFETY: no pointers are passed; only the numbers of standard streams are replaced, which nobody owns.
    check(unsafe { libc::dup2(fd.as_raw_fd(), number) }).map(drop)
}

/// Closes all descriptors but the standard streams when the next program starts.
pub(crate) fn close_on_exec_from(first: u32) -> io::Result<()> {
    const CLOEXEC: u32 = 4;
    // SAFETY: no pointers are passed, and nothing is closed now.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, CLOEXEC) };
    check(c_int::try_from(done).unwrap_or(-1)).map(drop)
}

/// A terminal: the end that shows it, and the end programs write to.
pub(crate) fn terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let (mut shows, mut writes) = (-1, -1);
    // SAFETY: two integers are written; name, settings and size may be null.
    check(unsafe {
        libc::openpty(&raw mut shows, &raw mut writes, ptr::null_mut(), ptr::null_mut(), ptr::null_mut())
    })?;
    // SAFETY: both are descriptors that were just made and that nobody else knows.
    let pair = unsafe { (OwnedFd::from_raw_fd(shows), OwnedFd::from_raw_fd(writes)) };
    for fd in [shows, writes] {
        // SAFETY: no pointers are passed.
        check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    }
    Ok(pair)
}

/// Makes a terminal the one of this session.
pub(crate) fn control_terminal(terminal: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0) }).map(drop)
}

/// Sets how large a terminal is.
pub(crate) fn resize_terminal(terminal: BorrowedFd<'_>, columns: u16, rows: u16) -> io::Result<()> {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: `size` is valid for reads during the call.
    check(unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }).map(drop)
}

/// Reads and writes return at once from now on.
pub(crate) fn never_wait(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: no pointers are passed.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// Which permissions new files of this process never have.
pub(crate) fn set_umask(mask: u32) {
    // SAFETY: no pointers are passed, and it cannot fail.
    unsafe { libc::umask(mask) };
}

/// Ends this process at once, with nothing of the parent's that it copied being run.
pub(crate) fn exit(code: c_int) -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(code) }
}

/// A new file system of a kind.
pub(crate) fn mount_new(kind: &CStr, target: &CStr, flags: libc::c_ulong, options: &CStr) -> io::Result<()> {
    // SAFETY: all texts end with NUL and outlive the call.
    check(unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast()) })
        .map(drop)
}

/// Makes the file of a device: its kind and permissions, and its number.
pub(crate) fn make_device(path: &CStr, mode: libc::mode_t, device: libc::dev_t) -> io::Result<()> {
    // SAFETY: `path` ends with NUL and outlives the call.
    check(unsafe { libc::mknod(path.as_ptr(), mode, device) }).map(drop)
}

/// Copies the mounts at and below a path, or at and below what a descriptor stands for if the path
/// is empty. The copy is attached nowhere until [`move_mount`] attaches it.
pub(crate) fn open_tree(folder: RawFd, path: &CStr) -> io::Result<OwnedFd> {
    let open = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE | libc::O_CLOEXEC;
    let flags = open.unsigned_abs() | libc::OPEN_TREE_CLONE;
    // SAFETY: `path` ends with NUL and outlives the call.
    let raw = unsafe { libc::syscall(libc::SYS_open_tree, folder, path.as_ptr(), flags) };
    let raw = check(c_int::try_from(raw).unwrap_or(-1))?;
    // SAFETY: `raw` is a descriptor that was just made and that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Attaches a copy made by [`open_tree`] on top of an open file or folder.
pub(crate) fn move_mount(tree: BorrowedFd<'_>, target: BorrowedFd<'_>) -> io::Result<()> {
    let tree = tree.as_raw_fd();
    let target = target.as_raw_fd();
    let empty = c"".as_ptr();
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: the empty text ends with NUL and outlives the call.
    let moved = unsafe { libc::syscall(libc::SYS_move_mount, tree, empty, target, empty, flags) };
    check(c_int::try_from(moved).unwrap_or(-1)).map(drop)
}

/// Makes `root` the root of this mount namespace, and puts the old one under `old`.
pub(crate) fn pivot_root(root: &CStr, old: &CStr) -> io::Result<()> {
    // SAFETY: both texts end with NUL and outlive the call.
    let done = unsafe { libc::syscall(libc::SYS_pivot_root, root.as_ptr(), old.as_ptr()) };
    check(c_int::try_from(done).unwrap_or(-1)).map(drop)
}

/// Opens a path below a folder for looking at it; links that lead out of the folder lead nowhere.
pub(crate) fn open_below(folder: BorrowedFd<'_>, path: &CStr) -> io::Result<OwnedFd> {
    look_up(folder, path, libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS)
}

/// Opens a path below a folder for looking at it; a link in it is an error.
pub(crate) fn open_without_links(folder: BorrowedFd<'_>, path: &CStr) -> io::Result<OwnedFd> {
    look_up(folder, path, libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS)
}

/// Opens a path for looking at it as somebody does whose root that folder is.
pub(crate) fn open_within(root: BorrowedFd<'_>, path: &CStr) -> io::Result<OwnedFd> {
    look_up(root, path, libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS)
}

fn look_up(folder: BorrowedFd<'_>, path: &CStr, resolve: u64) -> io::Result<OwnedFd> {
    // SAFETY: open_how holds integers only, for which all bits zero is a value.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = u64::from((libc::O_PATH | libc::O_CLOEXEC).unsigned_abs());
    how.resolve = resolve;
    let size = size_of::<libc::open_how>();
    // SAFETY: `path` ends with NUL, `how` is valid for reads of `size` bytes, and both outlive the call.
    let raw = unsafe { libc::syscall(libc::SYS_openat2, folder.as_raw_fd(), path.as_ptr(), &raw const how, size) };
    let raw = check(c_int::try_from(raw).unwrap_or(-1))?;
    // SAFETY: `raw` is a descriptor that was just made and that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Makes a mount that is attached nowhere read-only, without devices and setuid programs.
pub(crate) fn make_tree_read_only(tree: BorrowedFd<'_>) -> io::Result<()> {
    const READ_ONLY: u64 = 1;
    const NO_SETUID: u64 = 2;
    const NO_DEVICES: u64 = 4;
    let attributes: [u64; 4] = [READ_ONLY | NO_SETUID | NO_DEVICES, 0, 0, 0];
    let tree = tree.as_raw_fd();
    let path = c"".as_ptr();
    let size = size_of_val(&attributes);
    let flags = libc::AT_EMPTY_PATH;
    // SAFETY: `attributes` is valid for reads of `size` bytes during the call.
    let done = unsafe { libc::syscall(libc::SYS_mount_setattr, tree, path, flags, attributes.as_ptr(), size) };
    check(c_int::try_from(done).unwrap_or(-1)).map(drop)
}

/// Makes the mount at a path, and with `below` all mounts under it, read-only, or writable again.
pub(crate) fn set_read_only(target: &CStr, below: bool, read_only: bool) -> io::Result<()> {
    const READ_ONLY: u64 = 1;
    let (set, clear) = if read_only { (READ_ONLY, 0) } else { (0, READ_ONLY) };
    // `struct mount_attr`: what to set, what to clear, propagation, a user namespace.
    let attributes: [u64; 4] = [set, clear, 0, 0];
    let flags = if below { libc::AT_RECURSIVE } else { 0 };
    let (path, size) = (target.as_ptr(), size_of_val(&attributes));
    // SAFETY: `target` ends with NUL, `attributes` is valid for reads of `size` bytes, and both outlive the call.
    let done =
        unsafe { libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, path, flags, attributes.as_ptr(), size) };
    check(c_int::try_from(done).unwrap_or(-1)).map(drop)
}
