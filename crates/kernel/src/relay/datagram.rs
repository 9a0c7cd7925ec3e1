//! UDP sockets that never wait, and datagrams taken many at a time.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use crate::sys;
use crate::sys::relay as calls;

/// The longest datagram.
const LONGEST: usize = 1 << 16;

/// Takes datagrams sent to an address. With port 0 the kernel chooses one.
pub fn bind_datagram(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = calls::socket(at, libc::SOCK_DGRAM)?;
    if at.is_ipv6() {
        sys::set_option(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
    }
    calls::bind(socket.as_fd(), at)?;
    Ok(UdpSocket::from(socket))
}

/// Sends to one address, and hears only from it.
pub fn connect_datagram(to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = calls::socket(to, libc::SOCK_DGRAM)?;
    calls::connect(socket.as_fd(), to)?;
    Ok(UdpSocket::from(socket))
}

/// Room for datagrams, to be used again and again.
#[derive(Debug)]
pub struct Datagrams {
    buffer: Vec<u8>,
    found: Vec<(usize, Option<SocketAddr>)>,
}

impl Default for Datagrams {
    fn default() -> Datagrams {
        Datagrams { buffer: vec![0; LONGEST * calls::DATAGRAMS], found: Vec::new() }
    }
}

impl Datagrams {
    /// Takes those that are there, in the place of those that were. False: there is none.
    pub fn receive(&mut self, from: &UdpSocket) -> io::Result<bool> {
        match calls::receive_many(from.as_fd(), &mut self.buffer, &mut self.found) {
            Ok(()) => Ok(!self.found.is_empty()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether there was room for more.
    pub fn is_full(&self) -> bool {
        self.found.len() >= calls::DATAGRAMS
    }

    /// What came, and from whom.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], SocketAddr)> {
        let parts = self.buffer.chunks_exact(LONGEST);
        let found = self.found.iter().zip(parts);
        found.filter_map(|((length, from), part)| Some((part.get(..*length)?, (*from)?)))
    }
}
