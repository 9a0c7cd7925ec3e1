//! Expressions as attributes: a name, and what the kernel calls its data.

use std::time::Duration;

use super::{Dynset, DynsetOp, Expr, Found, Nat, NatFlags, NatKind, Numgen, Reg, Reject};
use crate::netlink::Writer;
use crate::nft::{Counter, Verdict};

/// The first register of four bytes; below are the old ones of sixteen.
const FIRST_REGISTER: u32 = 8;
const VERDICT_REGISTER: u32 = 0;

/// Writes expressions as the elements of a list.
pub(in crate::nft) fn encode(writer: &mut Writer, exprs: &[Expr]) {
    for expr in exprs {
        writer.nest(1, |writer| one(writer, expr));
    }
}

/// Writes the name and the data of one expression.
fn one(writer: &mut Writer, expr: &Expr) {
    const NAME: u16 = 1;
    const DATA: u16 = 2;
    writer.text(NAME, name(expr));
    writer.nest(DATA, |writer| data(writer, expr));
}

/// A verdict as data.
pub(in crate::nft) fn verdict(writer: &mut Writer, verdict: &Verdict) {
    let (code, chain) = match verdict {
        Verdict::Drop => (0, None),
        Verdict::Accept => (1, None),
        Verdict::Continue => (-1, None),
        Verdict::Jump(chain) => (-3, Some(chain)),
        Verdict::Goto(chain) => (-4, Some(chain)),
        Verdict::Return => (-5, None),
    };
    writer.nest(2, |writer| {
        writer.bytes(1, &i32::to_be_bytes(code));
        if let Some(chain) = chain {
            writer.text(2, chain);
        }
    });
}

fn name(expr: &Expr) -> &str {
    match expr {
        Expr::Meta { .. } | Expr::MetaSet { .. } => "meta",
        Expr::Payload { .. } => "payload",
        Expr::Cmp { .. } => "cmp",
        Expr::Range { .. } => "range",
        Expr::Bitwise { .. } | Expr::Shift { .. } => "bitwise",
        Expr::Byteorder { .. } => "byteorder",
        Expr::Lookup { .. } => "lookup",
        Expr::Immediate { .. } | Expr::Verdict(_) => "immediate",
        Expr::Nat(_) => "nat",
        Expr::Masquerade { .. } => "masq",
        Expr::Redirect { .. } => "redir",
        Expr::Numgen { .. } => "numgen",
        Expr::Jhash { .. } => "hash",
        Expr::Dynset(_) => "dynset",
        Expr::Counter(_) => "counter",
        Expr::NamedCounter(_) | Expr::CounterMap { .. } => "objref",
        Expr::Ct { .. } | Expr::CtSet { .. } => "ct",
        Expr::Fib { .. } => "fib",
        Expr::Reject(_) => "reject",
        Expr::Limit { .. } => "limit",
        Expr::Log { .. } => "log",
        Expr::Socket { .. } => "socket",
        Expr::Notrack => "notrack",
        Expr::Tproxy { .. } => "tproxy",
        Expr::Other(name) => name,
    }
}

fn data(w: &mut Writer, expr: &Expr) {
    match expr {
        Expr::Meta { key, dreg } => {
            reg(w, 1, *dreg);
            w.u32_be(2, key.number());
        }
        Expr::MetaSet { key, sreg } => {
            w.u32_be(2, key.number());
            reg(w, 3, *sreg);
        }
        Expr::Payload { base, offset, len, dreg } => {
            reg(w, 1, *dreg);
            numbers(w, &[(2, base.number()), (3, *offset), (4, *len)]);
        }
        Expr::Cmp { sreg, op, data } => {
            reg(w, 1, *sreg);
            w.u32_be(2, op.number());
            value(w, 3, data);
        }
        Expr::Range { sreg, invert, from, to } => {
            reg(w, 1, *sreg);
            w.u32_be(2, u32::from(*invert));
            value(w, 3, from);
            value(w, 4, to);
        }
        Expr::Bitwise { sreg, dreg, mask, xor } => {
            reg(w, 1, *sreg);
            reg(w, 2, *dreg);
            w.u32_be(3, u32::try_from(mask.len()).unwrap_or(u32::MAX));
            value(w, 4, mask);
            value(w, 5, xor);
        }
        Expr::Shift { sreg, dreg, left, bits, len } => {
            reg(w, 1, *sreg);
            reg(w, 2, *dreg);
            numbers(w, &[(3, *len), (6, if *left { 1 } else { 2 })]);
            value(w, 7, &bits.to_ne_bytes());
        }
        Expr::Byteorder { sreg, dreg, to_network, len, size } => {
            reg(w, 1, *sreg);
            reg(w, 2, *dreg);
            numbers(w, &[(3, u32::from(*to_network)), (4, *len), (5, *size)]);
        }
        Expr::Lookup { set, sreg, found, invert } => lookup(w, set, *sreg, *found, *invert),
        Expr::Immediate { dreg, data } => {
            reg(w, 1, *dreg);
            value(w, 2, data);
        }
        Expr::Verdict(decision) => {
            w.u32_be(1, VERDICT_REGISTER);
            w.nest(2, |w| verdict(w, decision));
        }
        Expr::Counter(counter) => count(w, counter),
        other => more(w, other),
    }
}

fn more(w: &mut Writer, expr: &Expr) {
    match expr {
        Expr::Nat(translation) => nat(w, translation),
        Expr::Masquerade { flags } => nat_flags(w, 1, *flags),
        Expr::Redirect { port, flags } => {
            maybe_reg(w, 1, *port);
            nat_flags(w, 3, *flags);
        }
        Expr::Numgen { kind, modulus, offset, dreg } => {
            reg(w, 1, *dreg);
            let kind = if *kind == Numgen::Random { 1 } else { 0 };
            numbers(w, &[(2, *modulus), (3, kind), (4, *offset)]);
        }
        Expr::Jhash { sreg, len, modulus, seed, offset, dreg } => {
            reg(w, 1, *sreg);
            reg(w, 2, *dreg);
            numbers(w, &[(3, *len), (4, *modulus)]);
            if let Some(seed) = seed {
                w.u32_be(5, *seed);
            }
            numbers(w, &[(6, *offset), (7, 0)]);
        }
        Expr::Dynset(update) => dynset(w, update),
        Expr::NamedCounter(name) => {
            w.u32_be(1, 1);
            w.text(2, name);
        }
        Expr::CounterMap { map, sreg } => {
            reg(w, 3, *sreg);
            w.text(4, map);
        }
        Expr::Ct { key, direction, dreg } => {
            reg(w, 1, *dreg);
            w.u32_be(2, key.number());
            if let Some(direction) = direction {
                w.u8(3, direction.number().to_le_bytes()[0]);
            }
        }
        Expr::CtSet { key, sreg } => {
            w.u32_be(2, key.number());
            reg(w, 4, *sreg);
        }
        Expr::Fib { result, flags, dreg } => {
            reg(w, 1, *dreg);
            numbers(w, &[(2, result.number()), (3, *flags)]);
        }
        Expr::Reject(answer) => reject(w, *answer),
        Expr::Limit { rate, per, burst, bytes, over } => {
            w.u64_be(1, *rate);
            w.u64_be(2, per.as_secs());
            numbers(w, &[(3, *burst), (4, u32::from(*bytes)), (5, u32::from(*over))]);
        }
        Expr::Log { prefix, group } => {
            if let Some(group) = group {
                w.u16_be(1, *group);
            }
            w.text(2, prefix);
        }
        Expr::Socket { key, level, dreg } => {
            w.u32_be(1, key.number());
            reg(w, 2, *dreg);
            if let Some(level) = level {
                w.u32_be(3, *level);
            }
        }
        Expr::Tproxy { family, addr, port } => {
            w.u32_be(1, family.number().into());
            maybe_reg(w, 2, *addr);
            maybe_reg(w, 3, *port);
        }
        _ => {}
    }
}

/// Packets and bytes as a counter has them.
pub(in crate::nft) fn count(w: &mut Writer, counter: &Counter) {
    w.u64_be(1, counter.bytes);
    w.u64_be(2, counter.packets);
}

fn lookup(w: &mut Writer, set: &str, sreg: Reg, found: Found, invert: bool) {
    w.text(1, set);
    reg(w, 2, sreg);
    match found {
        Found::Continue => {}
        Found::Load(dreg) => reg(w, 3, dreg),
        Found::Verdict => w.u32_be(3, VERDICT_REGISTER),
    }
    w.u32_be(5, u32::from(invert));
}

fn nat(w: &mut Writer, nat: &Nat) {
    w.u32_be(1, if nat.kind == NatKind::Destination { 1 } else { 0 });
    w.u32_be(2, nat.family.number().into());
    for (kind, register) in [(3, nat.addr), (4, nat.addr_max), (5, nat.port), (6, nat.port_max)] {
        maybe_reg(w, kind, register);
    }
    nat_flags(w, 7, nat.flags);
}

fn nat_flags(w: &mut Writer, kind: u16, flags: NatFlags) {
    let bits = u32::from(flags.random) << 2 | u32::from(flags.persistent) << 3 | u32::from(flags.fully_random) << 4;
    if bits != 0 {
        w.u32_be(kind, bits);
    }
}

fn dynset(w: &mut Writer, dynset: &Dynset) {
    let op = match dynset.op {
        DynsetOp::Add => 0,
        DynsetOp::Update => 1,
        DynsetOp::Delete => 2,
    };
    w.text(1, &dynset.set);
    w.u32_be(3, op);
    reg(w, 4, dynset.key);
    maybe_reg(w, 5, dynset.data);
    if let Some(timeout) = dynset.timeout {
        w.u64_be(6, millis(timeout));
    }
}

fn reject(w: &mut Writer, reject: Reject) {
    let (kind, code) = match reject {
        Reject::Icmp(code) => (0, code),
        Reject::TcpReset => (1, 0),
        Reject::Icmpx(code) => (2, code),
    };
    w.u32_be(1, kind);
    if kind != 1 {
        w.u8(2, code);
    }
}

fn numbers(w: &mut Writer, values: &[(u16, u32)]) {
    for (kind, value) in values {
        w.u32_be(*kind, *value);
    }
}

fn value(w: &mut Writer, kind: u16, bytes: &[u8]) {
    w.nest(kind, |w| w.bytes(1, bytes));
}

fn reg(w: &mut Writer, kind: u16, register: Reg) {
    w.u32_be(kind, FIRST_REGISTER + u32::from(register.0));
}

fn maybe_reg(w: &mut Writer, kind: u16, register: Option<Reg>) {
    if let Some(register) = register {
        reg(w, kind, register);
    }
}

/// A time as the kernel counts it here.
pub(in crate::nft) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
