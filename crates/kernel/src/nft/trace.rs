//! What does the kernel do to one packet? Rules with `meta nftrace set 1` make it tell, rule by rule and table by table.

use std::time::Duration;

use super::expr::read_verdict_parts;
use super::{Family, Policy, SUBSYSTEM, Verdict, decode, kind};
use crate::error::Error;
use crate::netlink::{Message, Protocol, Socket};

/// The group of traces.
const GROUP: u32 = 9;

/// Listens to traces in the namespace it was opened in.
#[derive(Debug)]
pub struct Tracer {
    socket: Socket,
}

/// One step of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    /// Which packet: all its steps have the number.
    pub id: u32,
    /// The family of the table.
    pub family: Family,
    /// The table.
    pub table: String,
    /// The chain.
    pub chain: String,
    /// What happened.
    pub step: Step,
    /// The mark of the packet then.
    pub mark: Option<u32>,
    /// The network header as it was, told at the first step in each chain that has a hook.
    pub network: Vec<u8>,
    /// The transport header as it was, told with it.
    pub transport: Vec<u8>,
}

/// What happened to a packet in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A rule took it to its end.
    Rule {
        /// The number of the rule.
        handle: u64,
        /// What it decided; `None`: something else than chains and fates.
        verdict: Option<Verdict>,
    },
    /// It came to the end of a chain, and goes back to where that was called.
    Return(Option<Verdict>),
    /// No rule of a hook's chain decided.
    Policy(Policy),
}

impl Tracer {
    /// Listens from now on.
    pub fn open() -> Result<Self, Error> {
        let socket = Socket::open(Protocol::Netfilter)?;
        socket.join(GROUP)?;
        Ok(Tracer { socket })
    }

    /// The steps that are there, after waiting up to `limit` for the first.
    pub fn steps(&mut self, limit: Duration) -> Result<Vec<Traced>, Error> {
        let mut steps = Vec::new();
        if self.socket.wait(limit)? {
            while self.socket.receive(false, |message| steps.extend(traced(message)))? {}
        }
        Ok(steps)
    }
}

/// Reads one message.
pub(crate) fn traced(message: &Message<'_>) -> Option<Traced> {
    const POLICY: u32 = 1;
    const RETURN: u32 = 2;
    const RULE: u32 = 3;
    if message.kind != SUBSYSTEM << 8 | kind::TRACE {
        return None;
    }
    let a = message.attributes(decode::HEADER);
    let verdict = read_verdict_parts(a.nested(5));
    let step = match a.u32_be(4)? {
        RULE => Step::Rule { handle: a.u64_be(3)?, verdict },
        RETURN => Step::Return(verdict),
        POLICY => Step::Policy(if a.u32_be(16)? == 0 { Policy::Drop } else { Policy::Accept }),
        _ => return None,
    };
    let bytes = |number| a.bytes(number).map(<[u8]>::to_vec).unwrap_or_default();
    Some(Traced {
        id: a.u32_be(6)?,
        family: decode::family(message),
        table: a.text(1)?,
        chain: a.text(2)?,
        step,
        mark: a.u32_be(14),
        network: bytes(8),
        transport: bytes(9),
    })
}
