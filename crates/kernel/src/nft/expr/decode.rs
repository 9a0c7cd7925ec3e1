//! Attributes as expressions: the way back from [`super::encode`]. What is unknown or incomplete becomes
//! [`Expr::Other`], so that a foreign rule never stops a reader.

use std::time::Duration;

use super::{
    CmpOp, CtKey, Direction, Dynset, DynsetOp, Expr, FibResult, Found, MetaKey, Nat, NatFlags, NatKind, Numgen,
    PayloadBase, Reg, Reject, SocketKey,
};
use crate::netlink::Attributes;
use crate::nft::{Counter, Family, Verdict};

/// Reads a list of expressions.
pub(in crate::nft) fn decode(list: Attributes<'_>) -> Vec<Expr> {
    list.map(|item| {
        let name = item.nested().text(1).unwrap_or_default();
        one(&name, item.nested().nested(2)).unwrap_or(Expr::Other(name))
    })
    .collect()
}

/// Reads data that is a verdict.
pub(in crate::nft) fn verdict(data: Attributes<'_>) -> Option<Verdict> {
    verdict_parts(data.find(2)?.nested())
}

/// Reads the parts of a verdict.
pub(in crate::nft) fn verdict_parts(parts: Attributes<'_>) -> Option<Verdict> {
    let chain = || parts.text(2);
    match parts.u32_be(1)?.cast_signed() {
        0 => Some(Verdict::Drop),
        1 => Some(Verdict::Accept),
        -1 => Some(Verdict::Continue),
        -3 => chain().map(Verdict::Jump),
        -4 => chain().map(Verdict::Goto),
        -5 => Some(Verdict::Return),
        _ => None,
    }
}

/// Reads packets and bytes.
pub(in crate::nft) fn counter(data: Attributes<'_>) -> Counter {
    Counter { bytes: data.u64_be(1).unwrap_or(0), packets: data.u64_be(2).unwrap_or(0) }
}

fn one(name: &str, a: Attributes<'_>) -> Option<Expr> {
    Some(match name {
        "meta" => match reg(a, 1) {
            Some(dreg) => Expr::Meta { key: MetaKey::from_number(a.u32_be(2)?)?, dreg },
            None => Expr::MetaSet { key: MetaKey::from_number(a.u32_be(2)?)?, sreg: reg(a, 3)? },
        },
        "payload" => Expr::Payload {
            base: PayloadBase::from_number(a.u32_be(2)?)?,
            offset: a.u32_be(3)?,
            len: a.u32_be(4)?,
            dreg: reg(a, 1)?,
        },
        "cmp" => Expr::Cmp { sreg: reg(a, 1)?, op: CmpOp::from_number(a.u32_be(2)?)?, data: value(a, 3)? },
        "range" => Expr::Range { sreg: reg(a, 1)?, invert: a.u32_be(2)? == 1, from: value(a, 3)?, to: value(a, 4)? },
        "bitwise" if matches!(a.u32_be(6), Some(1 | 2)) => Expr::Shift {
            sreg: reg(a, 1)?,
            dreg: reg(a, 2)?,
            left: a.u32_be(6)? == 1,
            bits: u32::from_ne_bytes(value(a, 7)?.try_into().ok()?),
            len: a.u32_be(3)?,
        },
        "bitwise" => Expr::Bitwise { sreg: reg(a, 1)?, dreg: reg(a, 2)?, mask: value(a, 4)?, xor: value(a, 5)? },
        "byteorder" => Expr::Byteorder {
            sreg: reg(a, 1)?,
            dreg: reg(a, 2)?,
            to_network: a.u32_be(3)? == 1,
            len: a.u32_be(4)?,
            size: a.u32_be(5)?,
        },
        "lookup" => lookup(a)?,
        "immediate" => match a.u32_be(1)? {
            0 => Expr::Verdict(verdict(a.nested(2))?),
            _ => Expr::Immediate { dreg: reg(a, 1)?, data: value(a, 2)? },
        },
        "counter" => Expr::Counter(counter(a)),
        "notrack" => Expr::Notrack,
        _ => return more(name, a),
    })
}

fn more(name: &str, a: Attributes<'_>) -> Option<Expr> {
    Some(match name {
        "nat" => nat(a)?,
        "masq" => Expr::Masquerade { flags: nat_flags(a, 1) },
        "redir" => Expr::Redirect { port: reg(a, 1), flags: nat_flags(a, 3) },
        "numgen" => Expr::Numgen {
            kind: if a.u32_be(3)? == 1 { Numgen::Random } else { Numgen::Incremental },
            modulus: a.u32_be(2)?,
            offset: a.u32_be(4).unwrap_or(0),
            dreg: reg(a, 1)?,
        },
        "hash" => Expr::Jhash {
            sreg: reg(a, 1)?,
            len: a.u32_be(3)?,
            modulus: a.u32_be(4)?,
            seed: a.u32_be(5),
            offset: a.u32_be(6).unwrap_or(0),
            dreg: reg(a, 2)?,
        },
        "dynset" => dynset(a)?,
        "objref" => match a.text(2) {
            Some(name) => Expr::NamedCounter(name),
            None => Expr::CounterMap { map: a.text(4)?, sreg: reg(a, 3)? },
        },
        "ct" => {
            let key = CtKey::from_number(a.u32_be(2)?)?;
            let direction = a.find(3).and_then(|direction| direction.u8());
            match (reg(a, 1), direction) {
                (None, _) => Expr::CtSet { key, sreg: reg(a, 4)? },
                (Some(dreg), None) => Expr::Ct { key, direction: None, dreg },
                (Some(dreg), Some(number)) => {
                    Expr::Ct { key, direction: Some(Direction::from_number(number.into())?), dreg }
                }
            }
        }
        "fib" => Expr::Fib { result: FibResult::from_number(a.u32_be(2)?)?, flags: a.u32_be(3)?, dreg: reg(a, 1)? },
        "reject" => Expr::Reject(reject(a)?),
        "limit" => Expr::Limit {
            rate: a.u64_be(1)?,
            per: Duration::from_secs(a.u64_be(2)?),
            burst: a.u32_be(3).unwrap_or(0),
            bytes: a.u32_be(4) == Some(1),
            over: a.u32_be(5) == Some(1),
        },
        "log" => Expr::Log {
            prefix: a.text(2).unwrap_or_default(),
            group: a.find(1).and_then(|attribute| attribute.u16_be()),
        },
        "socket" => Expr::Socket { key: SocketKey::from_number(a.u32_be(1)?)?, level: a.u32_be(3), dreg: reg(a, 2)? },
        "tproxy" => Expr::Tproxy { family: family(a, 1)?, addr: reg(a, 2), port: reg(a, 3) },
        _ => return None,
    })
}

fn lookup(a: Attributes<'_>) -> Option<Expr> {
    let found = match a.u32_be(3) {
        None => Found::Continue,
        Some(0) => Found::Verdict,
        Some(_) => Found::Load(reg(a, 3)?),
    };
    Some(Expr::Lookup { set: a.text(1)?, sreg: reg(a, 2)?, found, invert: a.u32_be(5).unwrap_or(0) & 1 == 1 })
}

fn nat(a: Attributes<'_>) -> Option<Expr> {
    let (addr, port) = (reg(a, 3), reg(a, 5));
    // The kernel reports a single address or port as a range of one.
    Some(Expr::Nat(Nat {
        kind: if a.u32_be(1)? == 1 { NatKind::Destination } else { NatKind::Source },
        family: family(a, 2)?,
        addr,
        addr_max: reg(a, 4).filter(|max| Some(*max) != addr),
        port,
        port_max: reg(a, 6).filter(|max| Some(*max) != port),
        flags: nat_flags(a, 7),
    }))
}

/// The flags users set; the kernel adds others for itself.
fn nat_flags(a: Attributes<'_>, kind: u16) -> NatFlags {
    let bits = a.u32_be(kind).unwrap_or(0);
    NatFlags { random: bits & 4 != 0, persistent: bits & 8 != 0, fully_random: bits & 16 != 0 }
}

fn dynset(a: Attributes<'_>) -> Option<Expr> {
    let op = match a.u32_be(3)? {
        0 => DynsetOp::Add,
        1 => DynsetOp::Update,
        2 => DynsetOp::Delete,
        _ => return None,
    };
    let timeout = a.u64_be(6).filter(|millis| *millis != 0).map(Duration::from_millis);
    Some(Expr::Dynset(Dynset { set: a.text(1)?, op, key: reg(a, 4)?, data: reg(a, 5), timeout }))
}

fn reject(a: Attributes<'_>) -> Option<Reject> {
    let code = a.find(2).and_then(|code| code.u8());
    match a.u32_be(1)? {
        0 => Some(Reject::Icmp(code?)),
        1 => Some(Reject::TcpReset),
        2 => Some(Reject::Icmpx(code?)),
        _ => None,
    }
}

fn family(a: Attributes<'_>, kind: u16) -> Option<Family> {
    u8::try_from(a.u32_be(kind)?).ok().map(Family::from_number)
}

fn value(a: Attributes<'_>, kind: u16) -> Option<Vec<u8>> {
    a.nested(kind).bytes(1).map(<[u8]>::to_vec)
}

/// A register by either of its two names: the kernel reports the first of each four by the old one.
fn reg(a: Attributes<'_>, kind: u16) -> Option<Reg> {
    match a.u32_be(kind)? {
        old @ 1..=4 => u8::try_from((old - 1) * 4).ok().map(Reg),
        new @ 8..=23 => u8::try_from(new - 8).ok().map(Reg),
        _ => None,
    }
}
