//! The way to the kernel's nftables: commit a batch, read back what is there.

use super::batch::Finished;
use super::{Batch, Chain, Element, Family, Listed, NamedCounter, Rule, Set, Table, decode, header, kind, message};
use crate::error::Error;
use crate::netlink::{Message, Protocol, Request, Socket, Writer, refusal};

/// The error number with which the kernel says that the generation is another.
const ERESTART: i32 = 85;
const NLMSG_ERROR: u16 = 2;

/// A connection to nftables in the namespace it was opened in.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
}

/// A state of the ruleset, and who made it: every change by anybody makes a new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// Its number, which is never 0.
    pub id: u32,
    /// Who made it.
    pub process: u32,
    /// The name of the program that made it.
    pub program: String,
}

impl Connection {
    /// Opens one in this thread's network namespace.
    pub fn open() -> Result<Self, Error> {
        Ok(Connection { socket: Socket::open(Protocol::Netfilter)? })
    }

    /// The port events caused by this connection carry.
    pub fn port(&self) -> u32 {
        self.socket.port()
    }

    /// Makes the change, whole or not at all. With a generation: only if nobody changed anything since.
    pub fn commit(&mut self, batch: Batch, generation: Option<u32>) -> Result<(), Error> {
        self.commit_echoed(batch, generation, |_| {})
    }

    /// The same; `each` sees elements that were deleted, as they were then: see [`Batch::echo_deletions`].
    pub fn commit_echoed(
        &mut self,
        batch: Batch,
        generation: Option<u32>,
        each: impl FnMut(Deleted),
    ) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        // Nothing of an earlier answer may be taken for this one.
        while self.socket.receive(false, |_| {})? {}
        let first = self.socket.next_sequence();
        let batch = batch.finish(generation, first);
        for _ in 1..batch.count {
            self.socket.next_sequence();
        }
        self.socket.send(&batch.writer)?;
        self.outcome(&batch, each)
    }

    /// Sending is synchronous: when it returns, every answer is there.
    fn outcome(&mut self, batch: &Finished, mut each: impl FnMut(Deleted)) -> Result<(), Error> {
        let (mut first_error, mut confirmed) = (None, false);
        let mut wait = true;
        while self.socket.receive(wait, |message| {
            let ours = message.sequence.wrapping_sub(batch.first) < batch.count;
            if message.kind != NLMSG_ERROR || !ours {
                deleted(message).map(&mut each);
                return;
            }
            match verdict(batch, message) {
                Ok(()) => confirmed = true,
                Err(error) => first_error = first_error.take().or(Some(error)),
            }
        })? {
            wait = false;
        }
        match first_error {
            Some(error) => Err(error),
            None if confirmed => Ok(()),
            None => Err(Error::Malformed("a batch without an answer")),
        }
    }

    /// The number of the generation of the ruleset.
    pub fn generation(&mut self) -> Result<u32, Error> {
        let mut found = None;
        let head = header(0, 0);
        let request =
            Request { kind: message(kind::GET_GENERATION), flags: 0, header: &head, body: &|_: &mut Writer| {} };
        self.socket.request("the generation of the ruleset", request, |message| {
            // Who made it is not told here: the kernel names the asker.
            found = generation(message).map(|generation| generation.id);
            Ok(())
        })?;
        found.ok_or(Error::Malformed("a generation without a number"))
    }

    /// The tables of all families.
    pub fn tables(&mut self) -> Result<Vec<Listed<Table>>, Error> {
        self.dump("tables", kind::GET_TABLE, Family::Other(0), &|_| {}, |message| decode::table(message).map(Some))
    }

    /// The chains of a table; none if there is no such table.
    pub fn chains(&mut self, table: &Table) -> Result<Vec<Listed<Chain>>, Error> {
        // Older kernels do not filter chains by table.
        self.dump("chains", kind::GET_CHAIN, table.family, &|w| w.text(1, &table.name), |message| {
            if message.attributes(decode::HEADER).text(1).as_ref() != Some(&table.name) {
                return Ok(None);
            }
            decode::chain(message).map(Some)
        })
    }

    /// The rules of a table, chain by chain and in order.
    pub fn rules(&mut self, table: &Table) -> Result<Vec<Listed<Rule>>, Error> {
        self.dump("rules", kind::GET_RULE, table.family, &|w| w.text(1, &table.name), |message| {
            if message.attributes(decode::HEADER).text(1).as_ref() != Some(&table.name) {
                return Ok(None);
            }
            decode::rule(message).map(Some)
        })
    }

    /// The sets and maps of a table.
    pub fn sets(&mut self, table: &Table) -> Result<Vec<Listed<Set>>, Error> {
        let body = |w: &mut Writer| w.text(1, &table.name);
        let sets = self.dump("sets", kind::GET_SET, table.family, &body, |message| decode::set(message).map(Some));
        absent_is_empty(sets)
    }

    /// The elements of a set, with what they counted; in no order.
    pub fn elements(&mut self, table: &Table, set: &str) -> Result<Vec<Element>, Error> {
        self.read_elements(table, set, |elements| elements).map(|parts| parts.into_iter().flatten().collect())
    }

    /// The elements of a set as something else, by the handful: who needs little of each never holds them all.
    pub fn read_elements<T>(
        &mut self,
        table: &Table,
        set: &str,
        mut read: impl FnMut(Vec<Element>) -> T,
    ) -> Result<Vec<T>, Error> {
        let body = |w: &mut Writer| {
            w.text(1, &table.name);
            w.text(2, set);
        };
        self.dump("elements", kind::GET_ELEMENT, table.family, &body, |message| {
            Ok(Some(read(decode::elements(message))))
        })
    }

    /// The counters with names of a table.
    pub fn counters(&mut self, table: &Table) -> Result<Vec<Listed<NamedCounter>>, Error> {
        let body = |w: &mut Writer| {
            w.text(1, &table.name);
            w.u32_be(3, 1);
        };
        self.dump("counters", kind::GET_OBJECT, table.family, &body, |message| Ok(decode::named_counter(message)))
    }

    fn dump<T>(
        &mut self,
        what: &str,
        kind: u16,
        family: Family,
        body: &dyn Fn(&mut Writer),
        parse: impl FnMut(&Message<'_>) -> Result<Option<T>, Error>,
    ) -> Result<Vec<T>, Error> {
        let head = header(family.number(), 0);
        self.socket.dump(what, Request { kind: message(kind), flags: 0, header: &head, body }, parse)
    }
}

/// Elements that were deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// The family of their table.
    pub family: Family,
    /// Their set.
    pub set: String,
    /// What they were, and what they counted.
    pub elements: Vec<Element>,
}

pub(super) fn deleted(one: &Message<'_>) -> Option<Deleted> {
    let set = one.attributes(decode::HEADER).text(2).filter(|_| one.kind == message(kind::DEL_ELEMENT))?;
    Some(Deleted { family: decode::family(one), set, elements: decode::elements(one) })
}

fn absent_is_empty<T>(found: Result<Vec<T>, Error>) -> Result<Vec<T>, Error> {
    match found {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        other => other,
    }
}

fn verdict(batch: &Finished, message: &Message<'_>) -> Result<(), Error> {
    let (what, sent) = batch.describe(message.sequence);
    match refusal(&what, sent, message)? {
        None => Ok(()),
        Some(refusal) if refusal.errno == ERESTART => Err(Error::GenerationClash(batch.generation)),
        Some(refusal) => Err(Error::Refused(Box::new(refusal))),
    }
}

/// The generation a message tells of.
pub(super) fn generation(message: &Message<'_>) -> Option<Generation> {
    let a = message.attributes(decode::HEADER);
    let (process, program) = (a.u32_be(2).unwrap_or(0), a.text(3).unwrap_or_default());
    Some(Generation { id: a.u32_be(1)?, process, program })
}
