//! The expressions rules are made of, as the kernel has them: each reads or writes registers.

use super::Verdict;
use super::key::Key;

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
    Cmp { sreg: Reg, op: CmpOp, data: Key },
    /// `dreg = (sreg & mask) ^ xor`
    Bitwise { sreg: Reg, dreg: Reg, mask: Key, xor: Key },
    /// Goes on only if the key is in the set, or with `invert` only if it is not.
    Lookup { set: &'static str, sreg: Reg, found: Found, invert: bool },
    /// Decides.
    Verdict(Verdict),
    /// Translates the destination: an address and a port.
    Dnat { addr: Reg, port: Reg },
    /// Takes the address of the interface the packet leaves by, and a port at random.
    Masquerade,
    /// Loads a number at random below `modulus`.
    Numgen { modulus: u32, dreg: Reg },
    /// Adds an element to a map for so many seconds; one that is there stays as it is, for so many seconds more.
    Update { map: &'static str, key: Reg, data: Reg, timeout: u32 },
    /// Takes an element out of a map. The kernel wants to be told a value, and does not look at it.
    Forget { map: &'static str, key: Reg, data: Reg },
    /// Loads something of the connection.
    Ct { key: CtKey, dreg: Reg },
    /// Loads what kind of address the routing table says it is; see [`LOCAL`].
    Addrtype { of: End, dreg: Reg },
    /// Answers that there is nobody.
    Reject(Reject),
}

/// What [`Expr::Addrtype`] loads for an address of this machine.
pub const LOCAL: u32 = 2;
/// What it loads for an address reached through a route.
pub const UNICAST: u32 = 1;
/// The bit of [`CtKey::State`] of a first packet.
pub const CT_NEW: u32 = 8;
/// The bit of [`CtKey::Status`] of a connection whose destination is translated.
pub const CT_DNAT: u32 = 0x20;

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

/// What the kernel knows about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaKey {
    /// The mark.
    Mark,
    /// The name of the interface it came by.
    Iifname,
    /// The transport protocol.
    L4proto,
}

/// Where bytes of the packet are counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadBase {
    /// The network header.
    Network,
    /// The transport header.
    Transport,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmpOp {
    /// The same.
    Equal,
    /// Not the same.
    NotEqual,
}

/// What can be known of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CtKey {
    /// The state, as bits; see [`CT_NEW`].
    State,
    /// The status, as bits; see [`CT_DNAT`].
    Status,
}

/// An end of a packet's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Where it is from.
    Source,
    /// Where it goes.
    Destination,
}

/// What a refusal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reject {
    /// A TCP reset.
    TcpReset,
    /// ICMP port unreachable, of the table's family.
    PortUnreachable,
}
