//! System calls of a process that carries other people's bytes: sockets that do not wait, epoll, splice(2), recvmmsg(2).

use std::ffi::c_int;
use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::{check, retry_interrupted, set_raw_option};

/// A socket of a kind that does not wait.
pub(crate) fn socket(of: SocketAddr, kind: c_int) -> io::Result<OwnedFd> {
    let domain = if of.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: no pointers are passed.
    let raw = check(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0) })?;
    // SAFETY: `raw` is a descriptor that was just made and that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Gives a socket an address.
pub(crate) fn bind(fd: BorrowedFd<'_>, at: SocketAddr) -> io::Result<()> {
    let (address, length) = write_address(at);
    // SAFETY: `address` is valid for reads of `length` bytes and outlives the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) }).map(drop)
}

/// Begins to connect. Ok also when that takes longer.
pub(crate) fn connect(fd: BorrowedFd<'_>, to: SocketAddr) -> io::Result<()> {
    let (address, length) = write_address(to);
    // SAFETY: `address` is valid for reads of `length` bytes and outlives the call.
    match check(unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), length) }) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR)) => Ok(()),
        other => other.map(drop),
    }
}

/// Lets others connect.
pub(crate) fn listen(fd: BorrowedFd<'_>, backlog: c_int) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::listen(fd.as_raw_fd(), backlog) }).map(drop)
}

/// Takes one connection, as a socket that does not wait.
pub(crate) fn accept(fd: BorrowedFd<'_>) -> io::Result<(OwnedFd, SocketAddr)> {
    loop {
        let mut address = MaybeUninit::<libc::sockaddr_storage>::zeroed();
        let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: `address` has room for `length` bytes, and both outlive the call.
        let raw = unsafe { libc::accept4(fd.as_raw_fd(), address.as_mut_ptr().cast(), &raw mut length, flags) };
        if raw < 0 {
            retry_interrupted()?;
            continue;
        }
        // SAFETY: `raw` is a descriptor that was just made and that nobody else knows.
        let connection = unsafe { OwnedFd::from_raw_fd(raw) };
        // SAFETY: sockaddr_storage holds integers only, and was zero before the kernel wrote to it.
        let from = read_address(unsafe { address.assume_init_ref() });
        return from.map(|from| (connection, from)).ok_or_else(|| io::ErrorKind::InvalidData.into());
    }
}

/// Makes the close of a socket a reset.
pub(crate) fn reset_on_close(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_raw_option(fd, libc::SOL_SOCKET, libc::SO_LINGER, &libc::linger { l_onoff: 1, l_linger: 0 })
}

/// An epoll instance.
pub(crate) fn epoll() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let raw = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: `raw` is a descriptor that was just made and that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Changes what is waited for.
pub(crate) fn epoll_control(
    epoll: BorrowedFd<'_>,
    operation: c_int,
    fd: BorrowedFd<'_>,
    event: libc::epoll_event,
) -> io::Result<()> {
    let mut event = event;
    // SAFETY: `event` is valid for reads during the call.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event) }).map(drop)
}

/// Waits for events, for so many milliseconds or for ever (-1); how many there are.
pub(crate) fn epoll_wait(
    epoll: BorrowedFd<'_>,
    events: &mut [libc::epoll_event],
    milliseconds: c_int,
) -> io::Result<usize> {
    let room = c_int::try_from(events.len()).unwrap_or(c_int::MAX);
    // SAFETY: `events` is valid for writes of `room` events during the call.
    match check(unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), room, milliseconds) }) {
        Ok(count) => Ok(count.unsigned_abs() as usize),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

/// A counter that can be waited for.
pub(crate) fn event_counter() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let raw = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: `raw` is a descriptor that was just made and that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Moves bytes without looking at them, from or to a pipe, without waiting.
pub(crate) fn splice(from: BorrowedFd<'_>, to: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
    let flags = libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK;
    let none = ptr::null_mut();
    loop {
        // SAFETY: offsets may be null, and no other pointers are passed.
        let moved = unsafe { libc::splice(from.as_raw_fd(), none, to.as_raw_fd(), none, most, flags) };
        if moved >= 0 {
            return Ok(moved.unsigned_abs());
        }
        retry_interrupted()?;
    }
}

/// Gives a pipe room for at least so many bytes.
pub(crate) fn set_pipe_size(fd: BorrowedFd<'_>, bytes: c_int) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETPIPE_SZ, bytes) }).map(drop)
}

/// How many datagrams one call takes at most.
pub(crate) const DATAGRAMS: usize = 16;

/// Takes the datagrams that are there, one after the other into equal parts of `buffer`; `found` gets the length and sender
/// of each.
pub(crate) fn receive_many(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
    found: &mut Vec<(usize, Option<SocketAddr>)>,
) -> io::Result<()> {
    found.clear();
    // SAFETY: sockaddr_storage, iovec and mmsghdr hold integers and pointers only, for which all bits zero is a value.
    let mut senders: [libc::sockaddr_storage; DATAGRAMS] = unsafe { zeroed() };
    // SAFETY: as above.
    let mut parts: [libc::iovec; DATAGRAMS] = unsafe { zeroed() };
    // SAFETY: as above.
    let mut headers: [libc::mmsghdr; DATAGRAMS] = unsafe { zeroed() };
    let chunks = buffer.chunks_exact_mut((buffer.len() / DATAGRAMS).max(1)).take(DATAGRAMS);
    for (((header, part), sender), chunk) in headers.iter_mut().zip(&mut parts).zip(&mut senders).zip(chunks) {
        *part = libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: chunk.len() };
        header.msg_hdr.msg_name = ptr::from_mut(sender).cast();
        header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        header.msg_hdr.msg_iov = ptr::from_mut(part);
        header.msg_hdr.msg_iovlen = 1;
    }
    let count = loop {
        let (room, flags) = (DATAGRAMS as libc::c_uint, libc::MSG_DONTWAIT);
        // SAFETY: each header points to a sender, a part and a chunk of the buffer, which are valid for writes of the
        // lengths given and outlive the call.
        let count = unsafe { libc::recvmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), room, flags, ptr::null_mut()) };
        if count >= 0 {
            break count.unsigned_abs() as usize;
        }
        retry_interrupted()?;
    };
    let received = headers.iter().zip(&senders).take(count);
    found.extend(received.map(|(header, sender)| (header.msg_len as usize, read_address(sender))));
    Ok(())
}

/// Lets this process have as many descriptors as it may; how many that is.
pub(crate) fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes during the call.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: `limit` is valid for reads during the call.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    }
    Ok(limit.rlim_cur)
}

pub(super) fn write_address(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: sockaddr_storage holds integers only, for which all bits zero is a value.
    let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
    match address {
        SocketAddr::V4(v4) => {
            let written = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage has room for, and is aligned for, every kind of address.
            unsafe { ptr::from_mut(&mut storage).cast::<libc::sockaddr_in>().write(written) };
            (storage, size_of::<libc::sockaddr_in>() as libc::socklen_t)
        }
        SocketAddr::V6(v6) => {
            let written = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { ptr::from_mut(&mut storage).cast::<libc::sockaddr_in6>().write(written) };
            (storage, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
        }
    }
}

pub(super) fn read_address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is one; sockaddr_storage is large enough and aligned for it.
            let v4 = unsafe { ptr::from_ref(storage).cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { ptr::from_ref(storage).cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}
