//! The objects of nftables as plain data: what is written is what is read back, so that the two can be compared.

use std::time::Duration;

use super::{DataType, Expr, Key};

/// Which packets a table sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4 and IPv6.
    Inet,
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
    /// ARP. Its chains are at the hooks input and output.
    Arp,
    /// Any other, by its number; only ever read.
    Other(u8),
}

impl Family {
    /// What `nft` calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Family::Inet => "inet",
            Family::Ip => "ip",
            Family::Ip6 => "ip6",
            Family::Arp => "arp",
            Family::Other(_) => "other",
        }
    }
}

/// A table: the family and the name are its identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Table {
    /// Which packets it sees.
    pub family: Family,
    /// Its name, unique in the family.
    pub name: String,
    /// A remark for people.
    pub comment: Option<String>,
}

impl Table {
    /// A table without a comment.
    pub fn new(family: Family, name: impl Into<String>) -> Self {
        Table { family, name: name.into(), comment: None }
    }
}

/// An object the kernel has, with the number it goes by there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// The kernel's number, unique in the table.
    pub handle: u64,
    /// The object.
    pub value: T,
}

/// A chain of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Its name, unique in the table.
    pub name: String,
    /// Where packets enter it; None for a chain that is only jumped to.
    pub base: Option<Base>,
    /// A remark for people.
    pub comment: Option<String>,
}

impl Chain {
    /// A chain that is only jumped to.
    pub fn regular(name: impl Into<String>) -> Self {
        Chain { name: name.into(), base: None, comment: None }
    }

    /// A chain that accepts or drops packets at a hook; it accepts what no rule decides.
    pub fn filter(name: impl Into<String>, hook: Hook, priority: i32) -> Self {
        Chain::base(name, ChainType::Filter, hook, priority)
    }

    /// A chain that sees the first packet of each connection, to translate addresses.
    pub fn nat(name: impl Into<String>, hook: Hook, priority: i32) -> Self {
        Chain::base(name, ChainType::Nat, hook, priority)
    }

    fn base(name: impl Into<String>, kind: ChainType, hook: Hook, priority: i32) -> Self {
        let base = Base { kind, hook, priority, policy: Policy::Accept };
        Chain { name: name.into(), base: Some(base), comment: None }
    }
}

/// Where packets enter a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// What it may do.
    pub kind: ChainType,
    /// The place.
    pub hook: Hook,
    /// The order among chains at one place, lowest first.
    pub priority: i32,
    /// What becomes of a packet no rule decides about.
    pub policy: Policy,
}

/// What a base chain may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainType {
    /// Accept or drop.
    Filter,
    /// Translate addresses.
    Nat,
    /// Have the packet routed again.
    Route,
}

/// The place of a base chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Everything that comes in, before routing.
    Prerouting,
    /// What is for this machine.
    Input,
    /// What passes through.
    Forward,
    /// What this machine sends.
    Output,
    /// Everything that goes out, after routing.
    Postrouting,
}

/// What becomes of a packet no rule decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// It goes on.
    Accept,
    /// It is gone.
    Drop,
}

/// A rule: expressions from left to right, until one does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The chain it is in.
    pub chain: String,
    /// What it does.
    pub exprs: Vec<Expr>,
    /// A remark for people.
    pub comment: Option<String>,
}

impl Rule {
    /// A rule without a comment.
    pub fn new(chain: impl Into<String>, exprs: impl Into<Vec<Expr>>) -> Self {
        Rule { chain: chain.into(), exprs: exprs.into(), comment: None }
    }

    /// The same with a comment.
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }
}

/// A set of keys, or a map from keys to values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Its name, unique in the table.
    pub name: String,
    /// What a key is made of; several are a concatenation.
    pub key: Vec<DataType>,
    /// What a key leads to.
    pub value: ValueType,
    /// Keys are ranges.
    pub interval: bool,
    /// Elements may be added by packets.
    pub dynamic: bool,
    /// Elements may expire; with [`Duration::ZERO`] only those that have a time-out of their own do.
    pub timeout: Option<Duration>,
    /// How many elements it may hold. A map with a size is a hash table made for it, and faster.
    pub size: Option<u32>,
    /// Each element counts the packets that found it.
    pub counter: bool,
    /// A remark for people.
    pub comment: Option<String>,
}

impl Set {
    /// A set of keys.
    pub fn new(name: impl Into<String>, key: impl Into<Vec<DataType>>) -> Self {
        Set {
            name: name.into(),
            key: key.into(),
            value: ValueType::Nothing,
            interval: false,
            dynamic: false,
            timeout: None,
            size: None,
            counter: false,
            comment: None,
        }
    }

    /// A map from keys to data.
    pub fn map(name: impl Into<String>, key: impl Into<Vec<DataType>>, data: impl Into<Vec<DataType>>) -> Self {
        Set { value: ValueType::Data(data.into()), ..Set::new(name, key) }
    }

    /// A map from keys to verdicts.
    pub fn verdict_map(name: impl Into<String>, key: impl Into<Vec<DataType>>) -> Self {
        Set { value: ValueType::Verdict, ..Set::new(name, key) }
    }

    /// The same with keys that are ranges.
    pub fn interval(mut self) -> Self {
        self.interval = true;
        self
    }

    /// The same for elements that packets add, with a limit, which such a set must have.
    pub fn dynamic(mut self, size: u32) -> Self {
        self.dynamic = true;
        self.size = Some(size);
        self
    }

    /// The same with elements that expire.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The same with room for so many elements.
    pub fn size(mut self, size: u32) -> Self {
        self.size = Some(size);
        self
    }

    /// The same with elements that count.
    pub fn counting(mut self) -> Self {
        self.counter = true;
        self
    }

    /// The same with a comment.
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }
}

/// What the keys of a set lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueType {
    /// A set: nothing.
    Nothing,
    /// A verdict.
    Verdict,
    /// Data; several types are a concatenation.
    Data(Vec<DataType>),
    /// A named counter.
    Counter,
}

/// One element of a set or map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// The key, or the first of a range.
    pub key: Vec<u8>,
    /// The last key of a range, in sets of concatenations.
    pub key_end: Option<Vec<u8>>,
    /// In interval sets of a single type: this key ends the range before it and belongs to none itself.
    pub interval_end: bool,
    /// What the key leads to.
    pub value: Option<Value>,
    /// After which it expires.
    pub timeout: Option<Duration>,
    /// In how much time it expires; only ever read.
    pub expires: Option<Duration>,
    /// What it counted; read, or written as a start.
    pub counter: Option<Counter>,
    /// A remark for people.
    pub comment: Option<String>,
}

impl Element {
    /// An element that is only a key.
    pub fn new(key: Key) -> Self {
        Element {
            key: key.into_bytes(),
            key_end: None,
            interval_end: false,
            value: None,
            timeout: None,
            expires: None,
            counter: None,
            comment: None,
        }
    }

    /// An element that leads to data.
    pub fn data(key: Key, data: Key) -> Self {
        Element { value: Some(Value::Data(data.into_bytes())), ..Element::new(key) }
    }

    /// An element that leads to a verdict.
    pub fn verdict(key: Key, verdict: Verdict) -> Self {
        Element { value: Some(Value::Verdict(verdict)), ..Element::new(key) }
    }

    /// The end of the range before it, in interval sets of a single type.
    pub fn end(key: Key) -> Self {
        Element { interval_end: true, ..Element::new(key) }
    }

    /// A range with both ends, in interval sets of concatenations.
    pub fn range(first: Key, last: Key) -> Self {
        Element { key_end: Some(last.into_bytes()), ..Element::new(first) }
    }

    /// The same with a comment.
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }
}

/// What a key leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Bytes for a register.
    Data(Vec<u8>),
    /// What happens next.
    Verdict(Verdict),
    /// The name of a counter.
    Counter(String),
}

/// What happens to a packet next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on to the next hook.
    Accept,
    /// It is gone.
    Drop,
    /// The next rule.
    Continue,
    /// Back to the rule behind the jump.
    Return,
    /// Another chain, and back.
    Jump(String),
    /// Another chain, for good.
    Goto(String),
}

/// Packets and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counter {
    /// How many packets.
    pub packets: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// A counter with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedCounter {
    /// Its name, unique in the table.
    pub name: String,
    /// What it counted.
    pub counter: Counter,
}
