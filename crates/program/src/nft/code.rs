//! What the numbers in maps mean. A frontend leads to 32 bits:
//!
//! ```text
//! frontends   31 guarded | 30..23 for each source: masquerade, policy Local | 22..0 the port's number
//! guarded     31 only some sources | 7..0 for each source: 1 refuse, 2 drop
//! pools       by the port's number, with bit 23 for policy Local: 31..15 seconds of affinity, or else 14..0 a size
//! draws       by the same, if there is affinity: a size
//! ```
//!
//! A size is how many slots a chain draws from. Up to 8 there is one for each count of slots. Beyond there are a few, so that
//! hardly any count needs a chain of its own, which the kernel would be slow to add: a slot that nobody has is drawn again.

use std::net::IpAddr;

use fairlead_plan::{Action, Actions, Frontend, FrontendKey, Protocol, Scope, Source};

use super::key::Key;

/// The bits with the number of a port.
pub(crate) const PORT: u32 = (1 << 23) - 1;
/// The highest number a port can have.
pub(crate) const MAX_PORT: u32 = PORT;
/// In the number of a pool: policy Local.
const LOCAL: u32 = 1 << 23;
/// Of a frontend: not all packets may be forwarded.
pub(crate) const GUARDED: u32 = 1 << 31;
/// Of a guarded frontend: only some sources may use it.
pub(crate) const RESTRICTED: u32 = 1 << 31;
/// The sizes that stand for as many slots and no fewer.
const EXACT: u32 = 8;
/// How many slots a pool can have: the last size below 1 << 15.
pub(crate) const MAX_SLOTS: u32 = 3 << 13;
/// The longest affinity, in seconds: more than the API takes.
const MAX_AFFINITY: u32 = (1 << 17) - 1;

/// What a forwarded packet meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Forward {
    pub(crate) scope: Scope,
    pub(crate) masquerade: bool,
}

impl Forward {
    pub(crate) const ALL: [Forward; 4] = [
        Forward { scope: Scope::Cluster, masquerade: false },
        Forward { scope: Scope::Cluster, masquerade: true },
        Forward { scope: Scope::Local, masquerade: false },
        Forward { scope: Scope::Local, masquerade: true },
    ];

    /// Its bits in the value of a frontend.
    pub(crate) fn bits(self, source: Source) -> u32 {
        let bits = u32::from(self.scope == Scope::Local) | u32::from(self.masquerade) << 1;
        bits << shift(source)
    }
}

/// The bits that say how packets from there are forwarded.
pub(crate) fn forward_mask(source: Source) -> u32 {
    3 << shift(source)
}

fn shift(source: Source) -> u32 {
    23 + 2 * source as u32
}

/// How a packet is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Reject = 1,
    Drop = 2,
}

impl Refusal {
    /// Its bits in the value of a guarded frontend.
    pub(crate) fn bits(self, source: Source) -> u32 {
        (self as u32) << (2 * source as u32)
    }
}

/// The bits that say how packets from there are refused.
pub(crate) fn refusal_mask(source: Source) -> u32 {
    3 << (2 * source as u32)
}

/// What a frontend leads to.
pub(crate) fn frontend(frontend: &Frontend, port: u32) -> u32 {
    let forwards = frontend.actions.iter().map(|(source, action)| match action {
        Action::Forward { scope, masquerade } => Forward { scope, masquerade }.bits(source),
        Action::Reject | Action::Drop => 0,
    });
    let guarded = if guard(frontend).is_some() { GUARDED } else { 0 };
    forwards.sum::<u32>() | guarded | port & PORT
}

/// What a frontend that does not forward all packets leads to.
pub(crate) fn guard(frontend: &Frontend) -> Option<u32> {
    let refusals = frontend.actions.iter().map(|(source, action)| match action {
        Action::Forward { .. } => 0,
        Action::Reject => Refusal::Reject.bits(source),
        Action::Drop => Refusal::Drop.bits(source),
    });
    let restricted = if frontend.allowed.is_some() { RESTRICTED } else { 0 };
    let guard = refusals.sum::<u32>() | restricted;
    (guard != 0).then_some(guard)
}

/// What a frontend that refuses everybody leads to.
pub(crate) fn refuse_all() -> u32 {
    Source::ALL.map(|source| Refusal::Reject.bits(source)).iter().sum()
}

/// Whether a frontend forwards at all.
pub(crate) fn forwards(actions: &Actions) -> bool {
    actions.uses(Scope::Cluster) || actions.uses(Scope::Local)
}

/// The number of a pool.
pub(crate) fn pool(port: u32, scope: Scope) -> u32 {
    port & PORT | scope_bit(scope)
}

/// The bit of a scope in the number of a pool.
pub(crate) fn scope_bit(scope: Scope) -> u32 {
    match scope {
        Scope::Cluster => 0,
        Scope::Local => LOCAL,
    }
}

/// How packets are spread over a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Spread {
    pub(crate) size: u32,
    /// For how many seconds clients stay.
    pub(crate) affinity: Option<u32>,
}

impl Spread {
    pub(crate) fn new(slots: usize, affinity: Option<u32>) -> Spread {
        let slots = u32::try_from(slots).unwrap_or(MAX_SLOTS);
        let size = sizes(MAX_SLOTS).find(|size| *size >= slots).unwrap_or(MAX_SLOTS);
        Spread { size, affinity: affinity.map(|seconds| seconds.clamp(1, MAX_AFFINITY)) }
    }

    /// What a pool leads to.
    pub(crate) fn number(self) -> u32 {
        self.affinity.map_or(self.size, affinity)
    }
}

/// What a pool whose clients stay for so long leads to.
pub(crate) fn affinity(seconds: u32) -> u32 {
    seconds << 15
}

/// The sizes there are up to one: 1, 2, 3 ... 8, 12, 16, 24, 32, 48 ...
pub(crate) fn sizes(end: u32) -> impl Iterator<Item = u32> {
    let beyond = (3..=14).flat_map(|bit| [3 << (bit - 1), 1 << (bit + 1)]);
    (1..=EXACT).chain(beyond).take_while(move |size| *size <= end.min(MAX_SLOTS))
}

/// From how many slots to draw, one time after the other until somebody has what is drawn. At least two thirds of what is
/// drawn first is somebody's, and all that is drawn last.
pub(crate) fn tries(size: u32) -> Vec<u32> {
    if size <= EXACT {
        return vec![size];
    }
    let below = sizes(size - 1).last().unwrap_or(EXACT);
    vec![size, size, size, size, size, below]
}

/// The number of a protocol.
pub(crate) fn protocol(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Sctp => 132,
    }
}

/// The key of a frontend in its map.
pub fn frontend_key(key: &FrontendKey) -> Key {
    let name = Key::new();
    let name = if let FrontendKey::Address { ip, .. } = key { name.ip(*ip) } else { name };
    name.proto(protocol(key.protocol())).port(key.port())
}

/// An endpoint as data.
pub(crate) fn endpoint(ip: IpAddr, port: u16) -> Key {
    Key::new().ip(ip).port(port)
}

/// The endpoint that data are, if they are one.
pub(crate) fn read_endpoint(bytes: &[u8]) -> Option<(IpAddr, u16)> {
    let (ip, port) = match *bytes {
        [a, b, c, d, high, low, ..] if bytes.len() == 8 => (IpAddr::from([a, b, c, d]), [high, low]),
        _ if bytes.len() == 20 => (IpAddr::from(<[u8; 16]>::try_from(&bytes[..16]).ok()?), [bytes[16], bytes[17]]),
        _ => return None,
    };
    Some((ip, u16::from_be_bytes(port)))
}
