//! A netlink socket: a request with its acknowledgement, a dump with its end, a batch with all its complaints.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::message::attribute_path;
use super::{Attributes, Message, Messages, Writer, flag};
use crate::error::{Error, Refusal};
use crate::sys;

/// The kernel answers at once; what takes longer than this never comes.
const ANSWER_LIMIT_S: u64 = 10;
/// The kernel's dumps come in pieces of at most 32 KiB; an error may quote a request, which is capped off.
const RECEIVE_BUFFER: usize = 128 * 1024;
/// What the kernel may queue for us before it drops: the complaints of a batch, the events between two reads.
const KERNEL_QUEUE: i32 = 4 * 1024 * 1024;
/// A table that changes faster than it can be read this many times will not be read at all.
const DUMP_ATTEMPTS: usize = 8;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLMSG_OVERRUN: u16 = 4;
/// Kinds below are netlink's own.
const FIRST_KIND: u16 = 16;

/// Which part of the kernel a socket speaks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Links, addresses, routes.
    Route,
    /// nftables, conntrack, ipset.
    Netfilter,
    /// Families that are found by name, such as IPVS.
    Generic,
}

/// A socket in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    port: u32,
    sequence: u32,
    buffer: Vec<u8>,
    send_queue: usize,
}

/// What one message of an answer means.
enum Answer {
    More,
    Done,
    Interrupted,
}

impl Socket {
    /// Opens a socket in this thread's network namespace.
    pub fn open(protocol: Protocol) -> Result<Self, Error> {
        let number = match protocol {
            Protocol::Route => libc::NETLINK_ROUTE,
            Protocol::Netfilter => libc::NETLINK_NETFILTER,
            Protocol::Generic => libc::NETLINK_GENERIC,
        };
        let system = |source| Error::System { action: "opening a netlink socket".into(), source };
        let (fd, port) = sys::netlink_socket(number).map_err(system)?;
        let socket = Socket { fd, port, sequence: 0, buffer: vec![0; RECEIVE_BUFFER], send_queue: 0 };
        // Explanations are a comfort: kernels without them still say yes and no.
        for name in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK, libc::NETLINK_GET_STRICT_CHK] {
            let _ = sys::set_option(socket.fd.as_fd(), libc::SOL_NETLINK, name, 1);
        }
        socket.grow(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, KERNEL_QUEUE).map_err(system)?;
        sys::set_receive_timeout(socket.fd.as_fd(), Duration::from_secs(ANSWER_LIMIT_S)).map_err(system)?;
        Ok(socket)
    }

    /// The port under which the kernel knows this socket; events caused by it carry the number.
    pub fn port(&self) -> u32 {
        self.port
    }

    /// Joins a multicast group, to receive events.
    pub fn join(&self, group: u32) -> Result<(), Error> {
        let group = i32::try_from(group).map_err(|_| Error::Malformed("no such group"))?;
        sys::set_option(self.fd.as_fd(), libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, group)
            .map_err(|source| Error::System { action: format!("joining netlink group {group}"), source })
    }

    /// A number for the next message; answers carry it.
    pub fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        self.sequence
    }

    /// Sends one request and waits until the kernel confirms it; `each` sees what comes before the confirmation.
    /// `what` names the request in errors.
    pub fn request(
        &mut self,
        what: &str,
        message: Request<'_>,
        each: impl FnMut(&Message<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let sent = self.write(message, flag::ACK)?;
        match self.answers(what, &sent, each)? {
            Answer::Interrupted => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    /// Asks for all objects of a kind; starts again if they changed meanwhile. `parse` may skip messages.
    pub fn dump<T>(
        &mut self,
        what: &str,
        message: Request<'_>,
        mut parse: impl FnMut(&Message<'_>) -> Result<Option<T>, Error>,
    ) -> Result<Vec<T>, Error> {
        for _ in 0..DUMP_ATTEMPTS {
            let mut found = Vec::new();
            let sent = self.write(message, flag::DUMP)?;
            let answer = self.answers(what, &sent, |message| {
                found.extend(parse(message)?);
                Ok(())
            });
            match answer {
                Ok(Answer::Interrupted) | Err(Error::Overrun) => self.drain(),
                Ok(_) => return Ok(found),
                Err(error) => return Err(error),
            }
        }
        Err(Error::Interrupted)
    }

    /// Sends a buffer of messages as it is.
    pub fn send(&mut self, writer: &Writer) -> Result<(), Error> {
        if writer.is_too_long() {
            return Err(Error::TooLong("an attribute"));
        }
        let action = || "sending a netlink request".to_owned();
        // The kernel takes a datagram whole or not at all, and only what fits the socket's send queue.
        let wanted = writer.len().saturating_add(64 * 1024);
        if wanted > self.send_queue.max(128 * 1024) {
            let size = i32::try_from(wanted).map_err(|_| Error::TooLong("a batch"))?;
            self.grow(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, size)
                .map_err(|source| Error::System { action: action(), source })?;
            self.send_queue = wanted;
        }
        sys::send(self.fd.as_fd(), writer.as_bytes()).map_err(|source| Error::System { action: action(), source })
    }

    /// Hands every message that is there to `each`, waiting for the first if `wait`. False when nothing was there.
    pub fn receive(&mut self, wait: bool, mut each: impl FnMut(&Message<'_>)) -> Result<bool, Error> {
        let Some(length) = self.datagram(wait)? else { return Ok(false) };
        for message in Messages::new(&self.buffer[..length]) {
            if message.kind == NLMSG_OVERRUN {
                return Err(Error::Overrun);
            }
            each(&message);
        }
        Ok(true)
    }

    /// Waits until something can be received; false when `limit` passed first.
    pub fn wait(&self, limit: Duration) -> Result<bool, Error> {
        sys::wait_readable(self.fd.as_fd(), limit)
            .map_err(|source| Error::System { action: "waiting for netlink messages".into(), source })
    }

    fn write(&mut self, request: Request<'_>, flags: u16) -> Result<Writer, Error> {
        let mut writer = Writer::new();
        let sequence = self.next_sequence();
        writer.begin(request.kind, request.flags | flags, sequence, request.header);
        (request.body)(&mut writer);
        writer.end();
        self.send(&writer)?;
        Ok(writer)
    }

    /// Reads until the answer to the last request is complete.
    fn answers(
        &mut self,
        what: &str,
        sent: &Writer,
        mut each: impl FnMut(&Message<'_>) -> Result<(), Error>,
    ) -> Result<Answer, Error> {
        let mut interrupted = false;
        loop {
            let Some(length) = self.datagram(true)? else { return Err(Error::Timeout(ANSWER_LIMIT_S)) };
            for message in Messages::new(&self.buffer[..length]) {
                // What belongs to an earlier request that was given up is not ours.
                if message.sequence != self.sequence {
                    continue;
                }
                interrupted |= message.flags & flag::DUMP_INTR != 0;
                match step(what, sent.as_bytes(), &message, &mut each)? {
                    Answer::Done if interrupted => return Ok(Answer::Interrupted),
                    Answer::More => {}
                    end => return Ok(end),
                }
            }
        }
    }

    /// One datagram from the kernel into the buffer; None when there is none.
    fn datagram(&mut self, wait: bool) -> Result<Option<usize>, Error> {
        loop {
            let received = match sys::receive(self.fd.as_fd(), &mut self.buffer, wait) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => return Err(Error::Overrun),
                Err(source) => return Err(Error::System { action: "receiving from netlink".into(), source }),
            };
            // Any process may send to our port; only the kernel is believed.
            if received.from != 0 {
                continue;
            }
            if received.length > self.buffer.len() {
                return Err(Error::Malformed("longer than the buffer"));
            }
            return Ok(Some(received.length));
        }
    }

    /// Throws away what is left of an answer.
    fn drain(&mut self) {
        while !matches!(self.datagram(false), Ok(None) | Err(Error::System { .. })) {}
    }

    /// Sets a buffer size, beyond the system's limit if we may.
    fn grow(&self, force: i32, plain: i32, size: i32) -> io::Result<()> {
        sys::set_option(self.fd.as_fd(), libc::SOL_SOCKET, force, size)
            .or_else(|_| sys::set_option(self.fd.as_fd(), libc::SOL_SOCKET, plain, size))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A request without its number, which the socket gives.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The kind of the message.
    pub kind: u16,
    /// Flags beside those the call adds.
    pub flags: u16,
    /// The protocol's own header.
    pub header: &'a [u8],
    /// Writes the attributes.
    pub body: &'a dyn Fn(&mut Writer),
}

fn step(
    what: &str,
    sent: &[u8],
    message: &Message<'_>,
    each: &mut impl FnMut(&Message<'_>) -> Result<(), Error>,
) -> Result<Answer, Error> {
    match message.kind {
        NLMSG_OVERRUN => Err(Error::Overrun),
        NLMSG_ERROR => match refusal(what, sent, message)? {
            None => Ok(Answer::Done),
            Some(refusal) if refusal.errno == libc::EINTR => Ok(Answer::Interrupted),
            Some(refusal) => Err(Error::Refused(Box::new(refusal))),
        },
        // The end of a dump may carry an error too.
        NLMSG_DONE => match message.payload.get(..4).map(errno) {
            None | Some(0) => Ok(Answer::Done),
            Some(libc::EINTR) => Ok(Answer::Interrupted),
            Some(number) => {
                let refusal = explain(what, number, message.attributes(4), sent);
                Err(Error::Refused(Box::new(refusal)))
            }
        },
        kind if kind < FIRST_KIND => Ok(Answer::More),
        _ => each(message).map(|()| Answer::More),
    }
}

/// What an error message says about the request `sent`: None for a confirmation.
pub(crate) fn refusal(what: &str, sent: &[u8], message: &Message<'_>) -> Result<Option<Refusal>, Error> {
    let number = message.payload.get(..4).map(errno).ok_or(Error::Malformed("an error without a number"))?;
    if number == 0 {
        return Ok(None);
    }
    // Behind the number comes the header of the request, or all of it where the kernel does not cap it.
    let capped = message.flags & 0x100 != 0;
    let quoted =
        message.payload.get(4..8).map_or(0, |bytes| u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    let skip = if capped { 20 } else { 4usize.saturating_add((quoted as usize).next_multiple_of(4)).max(20) };
    Ok(Some(explain(what, number, message.attributes(skip), sent)))
}

fn explain(what: &str, errno: i32, attributes: Attributes<'_>, sent: &[u8]) -> Refusal {
    const MESSAGE: u16 = 1;
    const OFFSET: u16 = 2;
    let offset = attributes.find(OFFSET).and_then(|attribute| attribute.u32());
    // nfnetlink and generic netlink both have headers of 4 bytes; others name the attribute in words.
    let attribute = offset.map(|offset| attribute_path(sent, 20, offset as usize)).unwrap_or_default();
    Refusal { request: what.to_owned(), errno, reason: attributes.text(MESSAGE), attribute }
}

fn errno(bytes: &[u8]) -> i32 {
    let number = i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    number.checked_neg().unwrap_or(i32::MAX)
}
