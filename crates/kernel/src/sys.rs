//! The system calls nobody else wraps: each a safe function around one call, with the reason why it is safe.
#![allow(unsafe_code, reason = "the one file that talks to libc")]

use std::ffi::{CStr, c_int};
use std::io;
use std::mem::{size_of, size_of_val};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

pub(crate) mod datagrams;
pub(crate) mod memory;
pub(crate) mod packet;
pub(crate) mod process;
pub(crate) mod relay;
pub(crate) mod terminal;

/// A netlink socket bound to a port of the kernel's choice, and that port.
pub(crate) fn netlink_socket(protocol: c_int) -> io::Result<(OwnedFd, u32)> {
    // SAFETY: no pointers are passed.
    let raw = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
    check(raw)?;
    // SAFETY: `raw` is a descriptor that was just made and that nobody else knows.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    let mut address = kernel_address();
    let mut length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
    // SAFETY: `address` is a sockaddr_nl and `length` its size, which the kernel reads.
    check(unsafe { libc::bind(raw, (&raw const address).cast(), length) })?;
    // SAFETY: `address` has room for `length` bytes, and both outlive the call.
    check(unsafe { libc::getsockname(raw, (&raw mut address).cast(), &raw mut length) })?;
    Ok((fd, address.nl_pid))
}

/// Sets an option that is an integer.
pub(crate) fn set_option(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    set_raw_option(fd, level, name, &value)
}

/// Sets how long a receive waits.
pub(crate) fn set_receive_timeout(fd: BorrowedFd<'_>, limit: Duration) -> io::Result<()> {
    let value = libc::timeval {
        tv_sec: limit.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_usec: limit.subsec_micros().into(),
    };
    set_raw_option(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &value)
}

fn set_raw_option<T: Copy>(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let length = size_of_val(value) as libc::socklen_t;
    // SAFETY: `value` is valid for reads of `length` bytes during the call; the kernel checks the length it wants.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, ptr::from_ref(value).cast(), length) }).map(drop)
}

/// Sends to the kernel, all or nothing.
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    let address = kernel_address();
    let length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
    loop {
        // SAFETY: `bytes` and `address` are valid for reads of the lengths given, and outlive the call.
        let sent = unsafe {
            let to = (&raw const address).cast();
            libc::sendto(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0, to, length)
        };
        match sent {
            sent if sent >= 0 && sent.unsigned_abs() == bytes.len() => return Ok(()),
            sent if sent >= 0 => return Err(io::ErrorKind::WriteZero.into()),
            _ => retry_interrupted()?,
        }
    }
}

/// The bytes anybody may still write to the file system a path is on.
pub(crate) fn free_space(path: &CStr) -> io::Result<u64> {
    // SAFETY: a statvfs is numbers only, for which all bits being zero is a value.
    let mut space: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` ends with a zero byte and `space` is valid for writes; both outlive the call.
    check(unsafe { libc::statvfs(path.as_ptr(), &raw mut space) })?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

/// What one receive brought.
pub(crate) struct Received {
    /// The length of the datagram, which is more than the buffer's if it did not fit.
    pub(crate) length: usize,
    /// The netlink port of the sender; the kernel's is 0.
    pub(crate) from: u32,
}

/// Receives one datagram.
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8], wait: bool) -> io::Result<Received> {
    let flags = libc::MSG_TRUNC | if wait { 0 } else { libc::MSG_DONTWAIT };
    loop {
        let mut address = kernel_address();
        let mut length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: `buffer` and `address` are valid for writes of the lengths given, and outlive the call.
        let got = unsafe {
            let from = (&raw mut address).cast();
            libc::recvfrom(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags, from, &raw mut length)
        };
        if got >= 0 {
            return Ok(Received { length: got.unsigned_abs(), from: address.nl_pid });
        }
        retry_interrupted()?;
    }
}

/// Waits until `fd` can be read; false when `limit` passed first.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let millis = c_int::try_from(limit.as_millis()).unwrap_or(c_int::MAX);
    loop {
        // SAFETY: `poll` is one pollfd, valid for reads and writes during the call.
        match unsafe { libc::poll(&raw mut poll, 1, millis) } {
            ready if ready >= 0 => return Ok(ready > 0),
            _ => retry_interrupted()?,
        }
    }
}

/// Whether the kernel may back this process's memory with huge pages.
pub(crate) fn allow_huge_pages(allow: bool) -> io::Result<()> {
    let disable = libc::c_ulong::from(!allow);
    // SAFETY: no pointer is passed.
    check(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, disable, 0, 0, 0) }).map(drop)
}

/// Moves this thread into a fresh namespace of the given kind.
pub(crate) fn unshare(kind: c_int) -> io::Result<()> {
    // SAFETY: no pointers are passed; namespaces of network and mounts may be left by one thread alone.
    check(unsafe { libc::unshare(kind) }).map(drop)
}

/// Moves this thread into the namespace `fd` stands for.
pub(crate) fn set_namespace(fd: BorrowedFd<'_>, kind: c_int) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::setns(fd.as_raw_fd(), kind) }).map(drop)
}

/// Mounts `source` on `target`. An empty `source` changes only flags.
pub(crate) fn mount(source: &CStr, target: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    // SAFETY: both strings end with NUL and outlive the call; type and data may be null for binds.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), ptr::null(), flags, ptr::null()) }).map(drop)
}

/// Takes the mount on `target` away, at once for the name, later for those who use it.
pub(crate) fn unmount(target: &CStr) -> io::Result<()> {
    // SAFETY: the string ends with NUL and outlives the call.
    check(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

fn kernel_address() -> libc::sockaddr_nl {
    // SAFETY: sockaddr_nl holds integers only, for which all bits zero is a value.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    address
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Ok if the last call was merely interrupted by a signal.
fn retry_interrupted() -> io::Result<()> {
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}
