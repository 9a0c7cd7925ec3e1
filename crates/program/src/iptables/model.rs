//! Tables, chains and rules of iptables as plain data, and the steps that change them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use fairlead_plan::{Family, Protocol, RejectWith};
use ipnet::IpNet;
use thiserror::Error;

/// A table. The order is that in which they are written, one after the other: a packet in between must meet a translation or a
/// refusal. A refusal looks at addresses that are not translated, so a new translation makes it idle; but what meets neither
/// is remembered by the kernel as a connection past the Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableName {
    /// Translates addresses; sees the first packet of each connection.
    Nat,
    /// Accepts, drops and refuses.
    Filter,
}

/// A chain the kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Builtin {
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

impl Builtin {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Builtin::Prerouting => "PREROUTING",
            Builtin::Input => "INPUT",
            Builtin::Forward => "FORWARD",
            Builtin::Output => "OUTPUT",
            Builtin::Postrouting => "POSTROUTING",
        }
    }
}

/// A rule: what it matches, all of it, and what happens then.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// All of these must match.
    pub matches: Vec<Match>,
    /// What happens; `None`: nothing but what matches do.
    pub target: Option<Target>,
    /// A remark for people.
    pub comment: String,
}

impl Rule {
    /// A rule without a comment.
    pub fn new(matches: impl Into<Vec<Match>>, target: Target) -> Rule {
        Rule { matches: matches.into(), target: Some(target), comment: String::new() }
    }

    /// The same with a comment.
    pub fn comment(mut self, comment: impl Into<String>) -> Rule {
        self.comment = comment.into();
        self
    }
}

/// What a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// From there.
    Source(IpNet),
    /// To there.
    Destination(IpNet),
    /// To anywhere but there.
    NotDestination(IpNet),
    /// To that port.
    Port(Protocol, u16),
    /// With that protocol.
    Protocol(Protocol),
    /// In by that interface; with a `+` at its end by any whose name begins so.
    Interface(String),
    /// In by any interface but that.
    NotInterface(String),
    /// From an address of this machine.
    SourceLocal,
    /// To an address of this machine.
    DestinationLocal,
    /// By chance, so often of so many times.
    Chance {
        /// So often.
        weight: u32,
        /// Of so many times.
        of: u32,
    },
    /// The client is on that list since so many seconds at most.
    Recent(String, u32),
    /// Puts the client on that list; always matches.
    Remember(String),
    /// Has that bit in its mark.
    Mark(u32),
    /// Does not have it.
    NotMark(u32),
    /// Belongs to a connection whose destination is translated.
    Translated,
    /// Is the first of its connection.
    New,
    /// Belongs to a known connection.
    Known,
    /// Belongs to none, and could not begin one.
    InvalidState,
}

/// What happens to a packet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Another chain, and back.
    Jump(String),
    /// Another chain, for good.
    Goto(String),
    /// Back to the rule behind the last jump.
    Return,
    /// It goes on.
    Accept,
    /// It is gone.
    Drop,
    /// It is refused.
    Reject(RejectKind),
    /// It is sent there.
    Dnat(SocketAddr),
    /// It gets the address of the interface it leaves by.
    Masquerade,
    /// A bit of its mark is set.
    SetMark(u32),
    /// A bit of its mark is turned over.
    FlipMark(u32),
}

/// How a packet is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RejectKind {
    /// TCP reset.
    TcpReset,
    /// ICMP port unreachable.
    PortUnreachable,
}

impl From<RejectWith> for RejectKind {
    fn from(with: RejectWith) -> RejectKind {
        match with {
            RejectWith::TcpReset => RejectKind::TcpReset,
            RejectWith::PortUnreachable => RejectKind::PortUnreachable,
        }
    }
}

/// A chain's rules.
pub type Chain = Vec<Rule>;
/// Chains by name.
pub type Table = BTreeMap<String, Chain>;
/// Where a step takes place.
pub type Place = (Family, TableName);

/// Everything that is ours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Chains by family and table.
    pub tables: BTreeMap<Place, Table>,
}

/// One step of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Makes a chain, or writes it anew.
    Write(Place, String, Chain),
    /// Puts a rule before all others of a chain.
    Insert(Place, String, Rule),
    /// Takes a rule out of a chain.
    Delete(Place, String, Rule),
    /// Deletes a chain nothing leads to any more.
    Remove(Place, String),
}

impl Op {
    /// Where it takes place.
    pub fn place(&self) -> Place {
        match self {
            Op::Write(place, ..) | Op::Insert(place, ..) | Op::Delete(place, ..) | Op::Remove(place, _) => *place,
        }
    }
}

/// Why a step is not possible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Invalid {
    /// There is no such chain.
    #[error("there is no chain {0}")]
    NoChain(String),
    /// There is no such rule.
    #[error("there is no such rule in {0}")]
    NoRule(String),
    /// A rule leads to a chain that is not there.
    #[error("a rule of {0} leads to {1}, which is not there")]
    Dangling(String, String),
}

impl Program {
    /// Takes steps, all at once, as `iptables-restore` would.
    pub fn take(&mut self, ops: &[Op]) -> Result<(), Invalid> {
        for op in ops {
            let table = self.tables.entry(op.place()).or_default();
            match op {
                Op::Write(_, name, rules) => drop(table.insert(name.clone(), rules.clone())),
                Op::Insert(_, name, rule) => {
                    table.get_mut(name).ok_or_else(|| Invalid::NoChain(name.clone()))?.insert(0, rule.clone());
                }
                Op::Delete(_, name, rule) => {
                    let chain = table.get_mut(name).ok_or_else(|| Invalid::NoChain(name.clone()))?;
                    let at = chain.iter().position(|other| other == rule);
                    chain.remove(at.ok_or_else(|| Invalid::NoRule(name.clone()))?);
                }
                Op::Remove(_, name) => drop(table.remove(name).ok_or_else(|| Invalid::NoChain(name.clone()))?),
            }
        }
        // Nothing leads there from outside either: who removes the last chain removes the jumps to ours.
        self.tables.retain(|_, table| !table.is_empty());
        self.check()
    }

    /// Whether every rule leads somewhere.
    fn check(&self) -> Result<(), Invalid> {
        for (name, rule, table) in self
            .tables
            .values()
            .flat_map(|table| table.iter().map(move |(name, rules)| (name, rules, table)))
            .flat_map(|(name, rules, table)| rules.iter().map(move |rule| (name, rule, table)))
        {
            match &rule.target {
                Some(Target::Jump(to) | Target::Goto(to)) if !table.contains_key(to) => {
                    return Err(Invalid::Dangling(name.clone(), to.clone()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// One address as a range.
pub(crate) fn single(ip: IpAddr) -> IpNet {
    IpNet::from(ip)
}
