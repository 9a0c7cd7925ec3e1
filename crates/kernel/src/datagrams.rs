//! How does a server take and answer many datagrams for little? Several sockets share a port, each on a thread of its own;
//! one call takes what has come, one call sends the answers, and each leaves from the address that was asked.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::sys;
use crate::sys::datagrams::{self as calls, Found, Headers, Parcel};
use crate::sys::relay;

/// The longest datagram that is taken. Who sends longer ones is not heard.
const LONGEST: usize = 4096;
/// What a socket keeps while its thread is busy. The kernel allows less unless told otherwise.
const KEPT: i32 = 4 << 20;

/// How a socket is opened.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Whether others may have the same address, to share what comes.
    pub shared: bool,
    /// How long [`Inbox::receive`] waits.
    pub wait: Duration,
}

/// Takes datagrams sent to an address. An IPv6 address stands for IPv6 alone.
pub fn bind(at: SocketAddr, options: Options) -> io::Result<UdpSocket> {
    let socket = relay::socket(at, libc::SOCK_DGRAM)?;
    let fd = socket.as_fd();
    if at.is_ipv6() {
        sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
    }
    if options.shared {
        sys::set_option(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    }
    calls::tell_destination(fd, at.is_ipv4())?;
    // Without it bursts are lost earlier, and nothing else.
    let _ = sys::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, KEPT);
    relay::bind(fd, at)?;
    let socket = UdpSocket::from(socket);
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(options.wait))?;
    Ok(socket)
}

/// Who sent a datagram, and to which of our addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Who.
    pub from: SocketAddr,
    /// To which address; `None`: the kernel did not say.
    pub to: Option<IpAddr>,
}

/// Sends one datagram to a peer, without waiting, from the address it asked.
pub fn send(socket: &UdpSocket, to: Peer, bytes: &[u8]) -> io::Result<()> {
    let parcel = Parcel { bytes, to: to.from, from: to.to };
    Headers::new(1).send(socket.as_fd(), std::iter::once(parcel)).map(drop)
}

/// Room for datagrams that come.
pub struct Inbox {
    headers: Headers,
    buffer: Vec<u8>,
    found: Vec<Found>,
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox {
            headers: Headers::new(calls::MANY),
            buffer: vec![0; LONGEST * calls::MANY],
            found: Vec::with_capacity(calls::MANY),
        }
    }
}

impl Inbox {
    /// Waits for datagrams, and takes them in the place of those that were. None after the time a socket waits.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<()> {
        match self.headers.receive(socket.as_fd(), &mut self.buffer, LONGEST, &mut self.found) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }

    /// What came.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Peer)> {
        let found = self.found.iter().zip(self.buffer.chunks_exact(LONGEST));
        found.filter_map(|(found, part)| Some((part.get(..found.length)?, Peer { from: found.from?, to: found.to })))
    }
}

/// Room for datagrams to be sent.
pub struct Outbox {
    headers: Headers,
    bytes: Vec<u8>,
    parcels: Vec<(Range<usize>, Peer)>,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox { headers: Headers::new(calls::MANY), bytes: Vec::new(), parcels: Vec::new() }
    }
}

impl Outbox {
    /// Adds an answer to a peer.
    pub fn push(&mut self, to: Peer, bytes: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.parcels.push((start..self.bytes.len(), to));
    }

    /// Sends all of them and is empty. One that cannot be sent is lost, as datagrams are.
    pub fn send(&mut self, socket: &UdpSocket) {
        let mut rest = self.parcels.as_slice();
        while !rest.is_empty() {
            let bytes = &self.bytes;
            let parcels = rest
                .iter()
                .filter_map(|(range, to)| Some(Parcel { bytes: bytes.get(range.clone())?, to: to.from, from: to.to }));
            // The first one is at fault when none goes.
            let sent = self.headers.send(socket.as_fd(), parcels).unwrap_or_default().max(1);
            rest = rest.get(sent..).unwrap_or_default();
        }
        self.parcels.clear();
        self.bytes.clear();
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("found", &self.found).finish_non_exhaustive()
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("parcels", &self.parcels).finish_non_exhaustive()
    }
}
