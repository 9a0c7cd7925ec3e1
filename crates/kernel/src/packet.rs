//! Who has an address on a link? Sockets that hear what machines of a link ask each other and can answer: ARP for IPv4, neighbour
//! discovery for IPv6. [`arp`] and [`ndp`] turn frames into values and back, and know nothing of sockets.

pub mod arp;
pub mod ndp;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::Error;
use crate::sys::packet as sys;

/// A hardware address.
pub type Hardware = [u8; 6];

/// All machines of a link.
pub const BROADCAST: Hardware = [0xff; 6];
/// The head of a frame: to whom, from whom, of which protocol.
const HEAD: usize = 14;
/// The longest frame that is looked at. What we want to see is shorter.
const LONGEST: usize = 512;

/// What is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// ARP.
    Arp,
    /// Solicitations and advertisements of IPv6's neighbours.
    Ndp,
}

/// A socket that hears one protocol on one link.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    buffer: Box<[u8; LONGEST]>,
}

impl Socket {
    /// Opens one on a link of this thread's network namespace.
    pub fn open(link: u32, protocol: Protocol) -> Result<Socket, Error> {
        let system = |source| Error::System { action: format!("listening to {protocol:?} on link {link}"), source };
        let index = i32::try_from(link).map_err(|_| Error::Malformed("no such link"))?;
        let fd = sys::socket().map_err(system)?;
        // Before it is bound, so that nothing else ever comes.
        if protocol == Protocol::Ndp {
            sys::attach_filter(fd.as_fd(), &ndp_only()).map_err(system)?;
        }
        sys::bind(fd.as_fd(), index, protocol.number()).map_err(system)?;
        Ok(Socket { fd, buffer: Box::new([0; LONGEST]) })
    }

    /// The next frame that is there; `None`: there is none. Never waits.
    pub fn receive(&mut self) -> io::Result<Option<&[u8]>> {
        match sys::receive(self.fd.as_fd(), &mut self.buffer[..]) {
            Ok(length) => Ok(Some(&self.buffer[..length.min(LONGEST)])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a frame.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        sys::send(self.fd.as_fd(), frame)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Protocol {
    fn number(self) -> u16 {
        match self {
            Protocol::Arp => arp::ETHERTYPE,
            Protocol::Ndp => ndp::ETHERTYPE,
        }
    }
}

/// Membership in groups of IPv6 on links: what is sent to them comes in, and switches that listen know that it should.
#[derive(Debug)]
pub struct Groups {
    socket: UdpSocket,
}

impl Groups {
    /// A member of nothing yet, in this thread's network namespace.
    pub fn open() -> Result<Groups, Error> {
        let failed = |source| Error::System { action: "opening a socket for groups".into(), source };
        UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).map(|socket| Groups { socket }).map_err(failed)
    }

    /// Joins the group of those who may have an address. Fine if it is joined.
    pub fn join(&self, link: u32, address: Ipv6Addr) -> Result<(), Error> {
        let group = ndp::solicited_node(address);
        let done = self.socket.join_multicast_v6(&group, link);
        done.or_else(|error| if error.raw_os_error() == Some(libc::EADDRINUSE) { Ok(()) } else { Err(error) })
            .map_err(|source| Error::System { action: format!("joining the group {group} on link {link}"), source })
    }

    /// Leaves it. Others with the same end share a group: who has some joins again.
    pub fn leave(&self, link: u32, address: Ipv6Addr) {
        // The link may be gone, and the membership with it.
        let _ = self.socket.leave_multicast_v6(&ndp::solicited_node(address), link);
    }
}

/// Classic BPF: ICMPv6 of the types 135 and 136 that follows the header of IPv6 at once, as RFC 4861 has it.
fn ndp_only() -> [libc::sock_filter; 7] {
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    [
        step(LOAD_BYTE, 0, 0, 20),
        step(JUMP_EQUAL, 0, 4, u32::from(ndp::ICMPV6)),
        step(LOAD_BYTE, 0, 0, 54),
        step(JUMP_EQUAL, 1, 0, u32::from(ndp::SOLICITATION)),
        step(JUMP_EQUAL, 0, 1, u32::from(ndp::ADVERTISEMENT)),
        step(RETURN, 0, 0, u32::MAX),
        step(RETURN, 0, 0, 0),
    ]
}

/// The hardware address a frame says it is from, if it is long enough to have one.
fn sender(frame: &[u8]) -> Option<Hardware> {
    frame.get(6..12)?.try_into().ok()
}

fn ethertype(frame: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(frame.get(12..HEAD)?.try_into().ok()?))
}

/// The head of a frame.
fn head(to: Hardware, from: Hardware, ethertype: u16) -> Vec<u8> {
    [&to[..], &from, &ethertype.to_be_bytes()].concat()
}
