//! What do others do to the ruleset? Events in the order in which they took effect, each change ended by its generation.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use super::connection::generation;
use super::{Family, Generation, SUBSYSTEM, decode, kind};
use crate::error::Error;
use crate::netlink::{Message, Protocol, Socket};

/// The group of nftables' events.
const GROUP: u32 = 7;

/// Listens to changes in the namespace it was opened in.
#[derive(Debug)]
pub struct Monitor {
    socket: Socket,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An object came or went.
    Changed(Change),
    /// The change before this is complete.
    Generation(Generation),
}

/// An object that came or went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The port of the connection that did it: see [`super::Connection::port`].
    pub port: u32,
    /// What it is.
    pub object: Object,
    /// Whether it went.
    pub deleted: bool,
    /// The family of its table.
    pub family: Family,
    /// Its table.
    pub table: String,
    /// Its name; of rules the chain's, of elements the set's.
    pub name: String,
}

/// The kinds of object events tell of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of nftables")]
pub enum Object {
    Table,
    Chain,
    Rule,
    Set,
    Elements,
    Counter,
}

impl Monitor {
    /// Listens from now on.
    pub fn open() -> Result<Self, Error> {
        let socket = Socket::open(Protocol::Netfilter)?;
        socket.join(GROUP)?;
        Ok(Monitor { socket })
    }

    /// The events that are there, after waiting up to `limit` for the first. [`Error::Overrun`] means that some were
    /// lost: read the ruleset again.
    pub fn events(&mut self, limit: Duration) -> Result<Vec<Event>, Error> {
        let mut events = Vec::new();
        if self.socket.wait(limit)? {
            while self.socket.receive(false, |message| events.extend(event(message)))? {}
        }
        Ok(events)
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

pub(super) fn event(message: &Message<'_>) -> Option<Event> {
    if message.kind >> 8 != SUBSYSTEM {
        return None;
    }
    let (object, deleted, name) = match message.kind & 0xff {
        kind::NEW_GENERATION => return generation(message).map(Event::Generation),
        kind::NEW_TABLE => (Object::Table, false, 1),
        kind::DEL_TABLE => (Object::Table, true, 1),
        kind::NEW_CHAIN => (Object::Chain, false, 3),
        kind::DEL_CHAIN => (Object::Chain, true, 3),
        kind::NEW_RULE => (Object::Rule, false, 2),
        kind::DEL_RULE => (Object::Rule, true, 2),
        kind::NEW_SET => (Object::Set, false, 2),
        kind::DEL_SET => (Object::Set, true, 2),
        kind::NEW_ELEMENT => (Object::Elements, false, 2),
        kind::DEL_ELEMENT => (Object::Elements, true, 2),
        kind::NEW_OBJECT => (Object::Counter, false, 2),
        kind::DEL_OBJECT => (Object::Counter, true, 2),
        _ => return None,
    };
    let a = message.attributes(decode::HEADER);
    let (table, name) = (a.text(1)?, a.text(name).unwrap_or_default());
    Some(Event::Changed(Change { port: message.port, object, deleted, family: decode::family(message), table, name }))
}
