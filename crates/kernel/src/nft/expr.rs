//! The expressions rules are made of, as the kernel has them: each reads or writes registers. No cleverness here; who
//! builds rules decides which register holds what.

mod decode;
mod encode;

pub(super) use decode::{
    counter as read_counter, decode, verdict as read_verdict, verdict_parts as read_verdict_parts,
};
pub(super) use encode::{count, encode, millis, verdict};

use std::time::Duration;

use super::{Counter, Family, Verdict};

/// One of sixteen registers of four bytes; longer values take several in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reg(pub u8);

/// One step of a rule.
#[allow(missing_docs, reason = "fields have the names the kernel gives them; each variant says what they mean")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// Loads something the kernel knows about the packet.
    Meta { key: MetaKey, dreg: Reg },
    /// Sets it.
    MetaSet { key: MetaKey, sreg: Reg },
    /// Loads bytes of the packet.
    Payload { base: PayloadBase, offset: u32, len: u32, dreg: Reg },
    /// Goes on only if the comparison holds.
    Cmp { sreg: Reg, op: CmpOp, data: Vec<u8> },
    /// Goes on only if the value is within, or with `invert` not within, the range.
    Range { sreg: Reg, invert: bool, from: Vec<u8>, to: Vec<u8> },
    /// `dreg = (sreg & mask) ^ xor`
    Bitwise { sreg: Reg, dreg: Reg, mask: Vec<u8>, xor: Vec<u8> },
    /// `dreg = sreg >> bits`, or `<<` with `left`, over `len` bytes.
    Shift { sreg: Reg, dreg: Reg, left: bool, bits: u32, len: u32 },
    /// Turns numbers of `size` bytes from the machine's order into the network's, or back.
    Byteorder { sreg: Reg, dreg: Reg, to_network: bool, len: u32, size: u32 },
    /// Goes on only if the key is in the set; with a destination, loads what it leads to.
    Lookup { set: String, sreg: Reg, found: Found, invert: bool },
    /// Loads a constant.
    Immediate { dreg: Reg, data: Vec<u8> },
    /// Decides.
    Verdict(Verdict),
    /// Translates an address.
    Nat(Nat),
    /// Takes the address of the interface the packet leaves by.
    Masquerade { flags: NatFlags },
    /// Sends the packet to this machine.
    Redirect { port: Option<Reg>, flags: NatFlags },
    /// Loads a number below `modulus`, plus `offset`.
    Numgen { kind: Numgen, modulus: u32, offset: u32, dreg: Reg },
    /// Loads a hash of `len` bytes, below `modulus`, plus `offset`.
    Jhash { sreg: Reg, len: u32, modulus: u32, seed: Option<u32>, offset: u32, dreg: Reg },
    /// Adds an element to a set, or renews it.
    Dynset(Dynset),
    /// Counts.
    Counter(Counter),
    /// Counts with a counter that has a name.
    NamedCounter(String),
    /// Counts with the counter a map leads to.
    CounterMap { map: String, sreg: Reg },
    /// Loads something of the connection.
    Ct { key: CtKey, direction: Option<Direction>, dreg: Reg },
    /// Sets something of the connection.
    CtSet { key: CtKey, sreg: Reg },
    /// Asks the routing table.
    Fib { result: FibResult, flags: u32, dreg: Reg },
    /// Answers that there is nobody.
    Reject(Reject),
    /// Goes on only up to a rate, or with `over` only beyond it.
    Limit { rate: u64, per: Duration, burst: u32, bytes: bool, over: bool },
    /// Tells the log, or a group of listeners.
    Log { prefix: String, group: Option<u16> },
    /// Loads something of the local socket the packet is for.
    Socket { key: SocketKey, level: Option<u32>, dreg: Reg },
    /// Leaves the packet out of connection tracking.
    Notrack,
    /// Hands the packet to a local socket without changing it.
    Tproxy { family: Family, addr: Option<Reg>, port: Option<Reg> },
    /// One we do not know; only ever read.
    Other(String),
}

impl Expr {
    /// Loads bytes of the network header.
    pub fn network(offset: u32, len: u32, dreg: Reg) -> Self {
        Expr::Payload { base: PayloadBase::Network, offset, len, dreg }
    }

    /// Loads bytes of the transport header.
    pub fn transport(offset: u32, len: u32, dreg: Reg) -> Self {
        Expr::Payload { base: PayloadBase::Transport, offset, len, dreg }
    }

    /// Goes on only if the register holds these bytes.
    pub fn equal(sreg: Reg, data: impl Into<Vec<u8>>) -> Self {
        Expr::Cmp { sreg, op: CmpOp::Equal, data: data.into() }
    }

    /// Goes on only if the register does not hold these bytes.
    pub fn not_equal(sreg: Reg, data: impl Into<Vec<u8>>) -> Self {
        Expr::Cmp { sreg, op: CmpOp::NotEqual, data: data.into() }
    }

    /// Goes on only if the key is in the set.
    pub fn is_in(set: impl Into<String>, sreg: Reg) -> Self {
        Expr::Lookup { set: set.into(), sreg, found: Found::Continue, invert: false }
    }

    /// Goes on only if the key is not in the set.
    pub fn is_not_in(set: impl Into<String>, sreg: Reg) -> Self {
        Expr::Lookup { set: set.into(), sreg, found: Found::Continue, invert: true }
    }

    /// Loads what the key leads to; goes on only if it leads anywhere.
    pub fn map(map: impl Into<String>, sreg: Reg, dreg: Reg) -> Self {
        Expr::Lookup { set: map.into(), sreg, found: Found::Load(dreg), invert: false }
    }

    /// Does what the key leads to.
    pub fn verdict_map(map: impl Into<String>, sreg: Reg) -> Self {
        Expr::Lookup { set: map.into(), sreg, found: Found::Verdict, invert: false }
    }
}

/// What a lookup does with what it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Goes on.
    Continue,
    /// Loads the value.
    Load(Reg),
    /// The value is a verdict: does it.
    Verdict,
}

/// A translation of addresses; the registers hold the lowest and highest to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nat {
    /// Which address.
    pub kind: NatKind,
    /// The family of the addresses.
    pub family: Family,
    /// The address, or the lowest.
    pub addr: Option<Reg>,
    /// The highest address.
    pub addr_max: Option<Reg>,
    /// The port, or the lowest.
    pub port: Option<Reg>,
    /// The highest port.
    pub port_max: Option<Reg>,
    /// How to choose.
    pub flags: NatFlags,
}

impl Nat {
    /// To one address, and one port if given.
    pub fn to(kind: NatKind, family: Family, addr: Reg, port: Option<Reg>) -> Self {
        Nat { kind, family, addr: Some(addr), addr_max: None, port, port_max: None, flags: NatFlags::default() }
    }
}

/// Which address is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NatKind {
    /// Where the packet comes from.
    Source,
    /// Where the packet goes to.
    Destination,
}

/// How a translation chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NatFlags {
    /// The port at random.
    pub random: bool,
    /// The port at random, whatever others have.
    pub fully_random: bool,
    /// The same address for the same client.
    pub persistent: bool,
}

/// How numgen chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numgen {
    /// One after the other.
    Incremental,
    /// At random.
    Random,
}

/// A set changed by a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dynset {
    /// The set or map.
    pub set: String,
    /// What happens to it.
    pub op: DynsetOp,
    /// The key.
    pub key: Reg,
    /// What the key shall lead to, in a map.
    pub data: Option<Reg>,
    /// After which the element expires, if not the set's own time-out.
    pub timeout: Option<Duration>,
}

/// What a packet does to a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DynsetOp {
    /// Adds; what is there stays as it is.
    Add,
    /// Adds, or renews the time-out.
    Update,
    /// Takes away.
    Delete,
}

/// What a reject answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reject {
    /// A TCP reset.
    TcpReset,
    /// ICMP of the table's family, with its code.
    Icmp(u8),
    /// ICMP of whichever family the packet is, by nftables' own codes: 0 no route, 1 port, 2 host, 3 prohibited.
    Icmpx(u8),
}

/// Defines enums that stand for the kernel's numbers.
macro_rules! numbered {
    ($($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $number:literal),+ $(,)? })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_meta])* $variant),+ }
        impl $name {
            pub(super) fn number(self) -> u32 {
                match self { $($name::$variant => $number),+ }
            }
            pub(super) fn from_number(number: u32) -> Option<Self> {
                match number { $($number => Some($name::$variant),)+ _ => None }
            }
        }
    )+};
}

numbered! {
    /// What the kernel knows about a packet.
    MetaKey {
        /// Its length.
        Length = 0,
        /// The link's protocol.
        Protocol = 1,
        /// The priority for the queue.
        Priority = 2,
        /// The mark.
        Mark = 3,
        /// The index of the interface it came by.
        Iif = 4,
        /// The index of the interface it leaves by.
        Oif = 5,
        /// The name of the interface it came by.
        Iifname = 6,
        /// The name of the interface it leaves by.
        Oifname = 7,
        /// The user whose socket sent it.
        SkUid = 10,
        /// Whether it is traced.
        Nftrace = 12,
        /// IPv4 or IPv6.
        Nfproto = 15,
        /// The transport protocol.
        L4proto = 16,
        /// The processor.
        Cpu = 20,
        /// A random number.
        Random = 24,
    }
    /// Where bytes of the packet are counted from.
    PayloadBase {
        /// The link's header.
        Link = 0,
        /// The network header.
        Network = 1,
        /// The transport header.
        Transport = 2,
    }
    /// How two values are compared, as if in network order.
    CmpOp {
        /// The same.
        Equal = 0,
        /// Not the same.
        NotEqual = 1,
        /// Less.
        Less = 2,
        /// Less or the same.
        LessOrEqual = 3,
        /// Greater.
        Greater = 4,
        /// Greater or the same.
        GreaterOrEqual = 5,
    }
    /// What can be known of a connection.
    CtKey {
        /// The state, as bits; see [`ct_state`].
        State = 0,
        /// The direction of this packet.
        Direction = 1,
        /// The status, as bits; see [`ct_status`].
        Status = 2,
        /// The mark of the connection.
        Mark = 3,
        /// The network protocol.
        L3proto = 7,
        /// The source, in the table's family.
        Source = 8,
        /// The destination, in the table's family.
        Destination = 9,
        /// The transport protocol.
        Protocol = 10,
        /// The source port.
        SourcePort = 11,
        /// The destination port.
        DestinationPort = 12,
        /// Packets so far.
        Packets = 14,
        /// Bytes so far.
        Bytes = 15,
        /// The zone.
        Zone = 17,
        /// The source, IPv4.
        SourceIp = 19,
        /// The destination, IPv4.
        DestinationIp = 20,
        /// The source, IPv6.
        SourceIp6 = 21,
        /// The destination, IPv6.
        DestinationIp6 = 22,
    }
    /// The direction of a connection.
    Direction {
        /// As it was opened.
        Original = 0,
        /// The answers.
        Reply = 1,
    }
    /// What the routing table is asked for.
    FibResult {
        /// The index of an interface.
        Oif = 1,
        /// The name of an interface.
        Oifname = 2,
        /// The type of an address; see [`addrtype`].
        Addrtype = 3,
    }
    /// What can be known of a local socket.
    SocketKey {
        /// Whether it is transparent.
        Transparent = 0,
        /// Its mark.
        Mark = 1,
        /// Whether it listens on any address.
        Wildcard = 2,
        /// Its cgroup, up to a level.
        Cgroupv2 = 3,
    }
}

/// The bits of [`CtKey::State`], in the machine's order.
pub mod ct_state {
    /// Not trackable.
    pub const INVALID: u32 = 1;
    /// Has seen both directions.
    pub const ESTABLISHED: u32 = 2;
    /// Belongs to another connection.
    pub const RELATED: u32 = 4;
    /// The first packet.
    pub const NEW: u32 = 8;
    /// Left out on purpose.
    pub const UNTRACKED: u32 = 64;
}

/// The bits of [`CtKey::Status`], in the machine's order.
pub mod ct_status {
    /// The source is translated.
    pub const SNAT: u32 = 0x10;
    /// The destination is translated.
    pub const DNAT: u32 = 0x20;
}

/// The flags of [`Expr::Fib`].
pub mod fib {
    /// Asks for the source address.
    pub const SADDR: u32 = 1;
    /// Asks for the destination address.
    pub const DADDR: u32 = 2;
    /// Takes the mark into account.
    pub const MARK: u32 = 4;
    /// Takes the incoming interface into account.
    pub const IIF: u32 = 8;
    /// Takes the outgoing interface into account.
    pub const OIF: u32 = 16;
}

/// What [`FibResult::Addrtype`] answers, in the machine's order.
pub mod addrtype {
    /// Reached through a route.
    pub const UNICAST: u32 = 1;
    /// An address of this machine.
    pub const LOCAL: u32 = 2;
    /// All machines of a link.
    pub const BROADCAST: u32 = 3;
    /// A group.
    pub const MULTICAST: u32 = 5;
}
