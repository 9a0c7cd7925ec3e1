//! System calls of a socket that sees whole frames of one link.

use std::ffi::c_int;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::{check, retry_interrupted, set_raw_option};

/// A socket of whole frames that does not wait and gets nothing until it is bound.
pub(crate) fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers are passed.
    let raw = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: `raw` is a descriptor that was just made and that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Lets only frames through that a program of classic BPF likes.
pub(crate) fn attach_filter(fd: BorrowedFd<'_>, program: &[libc::sock_filter]) -> io::Result<()> {
    let len = program.len().try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // The kernel reads the program and does not write to it.
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    set_raw_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// From now on frames of a protocol that come by a link are received.
pub(crate) fn bind(fd: BorrowedFd<'_>, link: c_int, protocol: u16) -> io::Result<()> {
    // SAFETY: sockaddr_ll holds integers only, for which all bits zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = link;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` is valid for reads of `length` bytes and outlives the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) }).map(drop)
}

/// Takes one frame, or as much of it as there is room for.
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: `buffer` is valid for writes of its length and outlives the call.
        let got = unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
        if got >= 0 {
            return Ok(got.unsigned_abs());
        }
        retry_interrupted()?;
    }
}

/// Sends one frame by the link the socket is bound to.
pub(crate) fn send(fd: BorrowedFd<'_>, frame: &[u8]) -> io::Result<()> {
    loop {
        // SAFETY: `frame` is valid for reads of its length and outlives the call; the address may be null.
        let sent = unsafe { libc::sendto(fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0, ptr::null(), 0) };
        if sent >= 0 {
            return Ok(());
        }
        retry_interrupted()?;
    }
}
