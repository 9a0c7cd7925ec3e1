//! A change of the ruleset: any number of messages of which all take effect at once, or none.

use std::borrow::Borrow;
use std::iter::Peekable;

use super::decode::HEADER;
use super::{Chain, Element, NamedCounter, Rule, Set, Table, encode, header, kind, message};
use crate::netlink::{Messages, Writer, flag};

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// A list of elements is one attribute, whose length has 16 bits; one element is far below what is left.
const ELEMENTS_LIMIT: usize = 60_000;
/// Where the number of the generation stands in the first message.
const GENERATION_AT: usize = 24;

/// Where the flags stand in a message.
const FLAGS_AT: usize = 6;
/// How many bytes of deletions are echoed at most. What comes back is larger and must fit the socket's queue.
const ECHOED_LIMIT: usize = 256 * 1024;

/// A change that is being written. Objects are added in the order in which they need each other.
#[derive(Debug)]
pub struct Batch {
    writer: Writer,
    /// How many messages there are, the first included.
    count: u32,
    sets: u32,
}

impl Default for Batch {
    fn default() -> Self {
        Batch::new()
    }
}

impl Batch {
    /// An empty change.
    pub fn new() -> Self {
        let mut writer = Writer::new();
        writer.begin(BATCH_BEGIN, 0, 0, &header(0, super::SUBSYSTEM));
        writer.u32_be(1, 0);
        writer.end();
        Batch { writer, count: 1, sets: 0 }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.count == 1
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.writer.len()
    }

    /// Makes a table; fine if it is there.
    pub fn add_table(&mut self, table: &Table) {
        self.put(table, kind::NEW_TABLE, flag::CREATE, |w| encode::table(w, table));
    }

    /// Makes a table that only this connection may change, and that is gone when the connection ends, however it does.
    pub fn add_owned_table(&mut self, table: &Table) {
        self.put(table, kind::NEW_TABLE, flag::CREATE, |w| encode::owned_table(w, table));
    }

    /// Deletes a table and all it holds; an error if it is not there.
    pub fn delete_table(&mut self, table: &Table) {
        self.put(table, kind::DEL_TABLE, 0, |w| w.text(1, &table.name));
    }

    /// Makes a chain; fine if it is there.
    pub fn add_chain(&mut self, table: &Table, chain: &Chain) {
        self.put(table, kind::NEW_CHAIN, flag::CREATE, |w| encode::chain(w, table, chain));
    }

    /// Deletes a chain, which must be empty and unused by then.
    pub fn delete_chain(&mut self, table: &Table, name: &str) {
        self.put(table, kind::DEL_CHAIN, 0, |w| {
            w.text(1, &table.name);
            w.text(3, name);
        });
    }

    /// Deletes the rules of a chain.
    pub fn flush_chain(&mut self, table: &Table, name: &str) {
        self.put(table, kind::DEL_RULE, 0, |w| {
            w.text(1, &table.name);
            w.text(2, name);
        });
    }

    /// Adds a rule behind all others of its chain.
    pub fn add_rule(&mut self, table: &Table, rule: &Rule) {
        self.put(table, kind::NEW_RULE, flag::CREATE | flag::APPEND, |w| encode::rule(w, table, rule));
    }

    /// Adds a rule before all others of its chain.
    pub fn insert_rule(&mut self, table: &Table, rule: &Rule) {
        self.put(table, kind::NEW_RULE, flag::CREATE, |w| encode::rule(w, table, rule));
    }

    /// Puts a rule where another is.
    pub fn replace_rule(&mut self, table: &Table, handle: u64, rule: &Rule) {
        self.put(table, kind::NEW_RULE, flag::REPLACE, |w| {
            encode::rule(w, table, rule);
            w.u64_be(3, handle);
        });
    }

    /// Deletes one rule.
    pub fn delete_rule(&mut self, table: &Table, chain: &str, handle: u64) {
        self.put(table, kind::DEL_RULE, 0, |w| {
            w.text(1, &table.name);
            w.text(2, chain);
            w.u64_be(3, handle);
        });
    }

    /// Makes a set or map; fine if the same is there.
    pub fn add_set(&mut self, table: &Table, set: &Set) {
        self.sets += 1;
        let id = self.sets;
        self.put(table, kind::NEW_SET, flag::CREATE, |w| encode::set(w, table, set, id));
    }

    /// Deletes a set, which must be unused by then.
    pub fn delete_set(&mut self, table: &Table, name: &str) {
        self.put(table, kind::DEL_SET, 0, |w| {
            w.text(1, &table.name);
            w.text(2, name);
        });
    }

    /// Adds elements, in as many messages as it takes; fine if the same are there.
    pub fn add_elements<E: Borrow<Element>>(
        &mut self,
        table: &Table,
        set: &str,
        elements: impl IntoIterator<Item = E>,
    ) {
        let mut elements = elements.into_iter().peekable();
        while elements.peek().is_some() {
            self.put(table, kind::NEW_ELEMENT, flag::CREATE, |w| list(w, table, set, &mut elements, encode::element));
        }
    }

    /// Deletes elements by their keys; an error if one is not there.
    pub fn delete_elements<E: Borrow<Element>>(
        &mut self,
        table: &Table,
        set: &str,
        elements: impl IntoIterator<Item = E>,
    ) {
        let mut elements = elements.into_iter().peekable();
        while elements.peek().is_some() {
            self.put(table, kind::DEL_ELEMENT, 0, |w| list(w, table, set, &mut elements, encode::element_key));
        }
    }

    /// Deletes all elements of a set.
    pub fn flush_set(&mut self, table: &Table, set: &str) {
        self.put(table, kind::DEL_ELEMENT, 0, |w| {
            w.text(1, &table.name);
            w.text(2, set);
        });
    }

    /// Makes a counter with a name; fine if it is there.
    pub fn add_counter(&mut self, table: &Table, counter: &NamedCounter) {
        self.put(table, kind::NEW_OBJECT, flag::CREATE, |w| encode::named_counter(w, table, counter));
    }

    /// Deletes a counter with a name.
    pub fn delete_counter(&mut self, table: &Table, name: &str) {
        self.put(table, kind::DEL_OBJECT, 0, |w| {
            w.text(1, &table.name);
            w.text(2, name);
            w.u32_be(3, 1);
        });
    }

    /// Has the kernel say what the elements of these sets counted that are deleted so far: see
    /// [`super::Connection::commit_echoed`]. Too many at once would not fit its queue: then it says nothing, and this is false.
    pub fn echo_deletions(&mut self, sets: &[&str]) -> bool {
        let (mut at, mut places, mut length) = (0, Vec::new(), 0);
        for one in Messages::new(self.writer.as_bytes()) {
            let size = one.payload.len() + 16;
            let name = one.attributes(HEADER).text(2).unwrap_or_default();
            if one.kind == message(kind::DEL_ELEMENT) && sets.contains(&name.as_str()) {
                places.push((at + FLAGS_AT, one.flags | flag::ECHO));
                length += size;
            }
            at += size.next_multiple_of(4);
        }
        if length > ECHOED_LIMIT {
            return false;
        }
        for (at, flags) in places {
            self.writer.patch(at, &flags.to_ne_bytes());
        }
        true
    }

    fn put(&mut self, table: &Table, kind: u16, flags: u16, fill: impl FnOnce(&mut Writer)) {
        // The first message asks for confirmation, which comes only after all of them took effect.
        let flags = if self.count == 1 { flags | flag::ACK } else { flags };
        self.writer.begin(message(kind), flags, self.count, &header(table.family.number(), 0));
        fill(&mut self.writer);
        self.writer.end();
        self.count += 1;
    }

    /// The finished bytes: valid only for this generation, if one is given; numbered from `first` on.
    pub(super) fn finish(mut self, generation: Option<u32>, first: u32) -> Finished {
        self.writer.begin(BATCH_END, 0, self.count, &header(0, super::SUBSYSTEM));
        self.writer.end();
        let count = self.count + 1;
        let generation = generation.unwrap_or(0);
        self.writer.patch(GENERATION_AT, &generation.to_be_bytes());
        self.writer.renumber(first);
        Finished { writer: self.writer, first, count, generation }
    }
}

/// One message's share of a list of elements.
fn list<E: Borrow<Element>>(
    w: &mut Writer,
    table: &Table,
    set: &str,
    elements: &mut Peekable<impl Iterator<Item = E>>,
    each: fn(&mut Writer, &Element),
) {
    w.text(1, &table.name);
    w.text(2, set);
    w.nest(3, |w| {
        let start = w.len();
        while w.len() - start < ELEMENTS_LIMIT {
            let Some(element) = elements.next() else { break };
            each(w, element.borrow());
        }
    });
}

/// A batch as it is sent.
pub(super) struct Finished {
    pub(super) writer: Writer,
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) generation: u32,
}

impl Finished {
    /// What the message with a number asked for, in words, and its bytes.
    pub(super) fn describe(&self, sequence: u32) -> (String, &[u8]) {
        let index = sequence.wrapping_sub(self.first) as usize;
        let mut at = 0;
        for (position, one) in Messages::new(self.writer.as_bytes()).enumerate() {
            let length = one.payload.len() + 16;
            if position == index {
                let bytes = self.writer.as_bytes().get(at..at + length).unwrap_or_default();
                return (describe(&one), bytes);
            }
            at += length.next_multiple_of(4);
        }
        ("a batch".to_owned(), &[])
    }
}

fn describe(message: &crate::netlink::Message<'_>) -> String {
    let a = message.attributes(HEADER);
    let (verb, name) = match message.kind & 0xff {
        kind::NEW_TABLE => ("new table", 1),
        kind::DEL_TABLE => ("deletion of table", 1),
        kind::NEW_CHAIN => ("new chain", 3),
        kind::DEL_CHAIN => ("deletion of chain", 3),
        kind::NEW_RULE => ("new rule in", 2),
        kind::DEL_RULE => ("deletion of a rule in", 2),
        kind::NEW_SET => ("new set", 2),
        kind::DEL_SET => ("deletion of set", 2),
        kind::NEW_ELEMENT => ("new elements in", 2),
        kind::DEL_ELEMENT => ("deletion of elements in", 2),
        kind::NEW_OBJECT => ("new counter", 2),
        kind::DEL_OBJECT => ("deletion of counter", 2),
        _ => return "a batch".to_owned(),
    };
    let (table, name) = (a.text(1).unwrap_or_default(), a.text(name).unwrap_or_default());
    if table == name { format!("{verb} {table}") } else { format!("{verb} {table}/{name}") }
}
