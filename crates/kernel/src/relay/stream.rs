//! TCP connections that never wait.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

use crate::sys;
use crate::sys::relay as calls;

/// How many connections may wait to be accepted; the kernel has a limit of its own (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// Listens. With port 0 the kernel chooses one. What is accepted sends at once what is written to it, and asks now and then
/// whether the client is still there.
pub fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    begin(at, calls::socket(at, libc::SOCK_STREAM)?)
}

/// The same at an address that this machine may have only later, and beside others of this user who listen there alike: each
/// gets a share of the connections. What waits to be accepted when one is closed is lost, so it accepts what there is first.
pub fn listen_beside(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = calls::socket(at, libc::SOCK_STREAM)?;
    let (level, name) = match at.is_ipv4() {
        true => (libc::IPPROTO_IP, libc::IP_FREEBIND),
        false => (libc::IPPROTO_IPV6, libc::IPV6_FREEBIND),
    };
    sys::set_option(socket.as_fd(), level, name, 1)?;
    sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    begin(at, socket)
}

fn begin(at: SocketAddr, socket: OwnedFd) -> io::Result<TcpListener> {
    sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    if at.is_ipv6() {
        sys::set_option(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
    }
    // Accepted sockets take these over, which spares two calls for each.
    send_at_once(&socket)?;
    sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    calls::bind(socket.as_fd(), at)?;
    calls::listen(socket.as_fd(), BACKLOG)?;
    Ok(TcpListener::from(socket))
}

/// Takes a connection that waits; `None`: none does.
pub fn accept(listener: &TcpListener) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    match calls::accept(listener.as_fd()) {
        Ok((connection, from)) => Ok(Some((TcpStream::from(connection), from))),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Begins to connect. It is connected, or has failed, when it can be written to. Then it sends at once what is written to it.
pub fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = calls::socket(to, libc::SOCK_STREAM)?;
    send_at_once(&socket)?;
    calls::connect(socket.as_fd(), to)?;
    Ok(TcpStream::from(socket))
}

/// Ends a connection so that the other side sees that it broke.
pub fn reset(connection: TcpStream) {
    // If it fails the connection ends all the same, in the ordinary way.
    let _ = calls::reset_on_close(connection.as_fd());
}

fn send_at_once(socket: &impl AsFd) -> io::Result<()> {
    sys::set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
}
