//! Tables, chains, rules, sets and elements as attributes.

use std::time::Duration;

use super::expr::{count, millis, verdict};
use super::{
    Base, Chain, ChainType, Counter, Element, Family, Hook, NamedCounter, Policy, Rule, Set, Table, Value, ValueType,
    key, userdata,
};
use crate::netlink::Writer;

/// The type of data that is a verdict.
pub(super) const VERDICT_TYPE: u32 = 0xffff_ff00;
const COUNTER_OBJECT: u32 = 1;

/// The bits of a set.
pub(super) mod set_flag {
    pub(crate) const INTERVAL: u32 = 0x4;
    pub(crate) const MAP: u32 = 0x8;
    pub(crate) const TIMEOUT: u32 = 0x10;
    pub(crate) const EVAL: u32 = 0x20;
    pub(crate) const OBJECT: u32 = 0x40;
    pub(crate) const CONCAT: u32 = 0x80;
    pub(crate) const EXPR: u32 = 0x100;
}

impl Family {
    /// The number the kernel knows it by.
    pub(super) fn number(self) -> u8 {
        match self {
            Family::Inet => 1,
            Family::Ip => 2,
            Family::Ip6 => 10,
            Family::Arp => 3,
            Family::Other(number) => number,
        }
    }

    pub(super) fn from_number(number: u8) -> Self {
        match number {
            1 => Family::Inet,
            2 => Family::Ip,
            10 => Family::Ip6,
            3 => Family::Arp,
            other => Family::Other(other),
        }
    }
}

pub(super) fn table(w: &mut Writer, table: &Table) {
    table_with(w, table, 0);
}

pub(super) fn owned_table(w: &mut Writer, table: &Table) {
    const OWNER: u32 = 2;
    table_with(w, table, OWNER);
}

fn table_with(w: &mut Writer, table: &Table, flags: u32) {
    w.text(1, &table.name);
    w.u32_be(2, flags);
    put_userdata(w, 6, &userdata::comment(table.comment.as_deref()));
}

pub(super) fn chain(w: &mut Writer, table: &Table, chain: &Chain) {
    w.text(1, &table.name);
    w.text(3, &chain.name);
    if let Some(base) = &chain.base {
        base_chain(w, table.family, base);
    }
    put_userdata(w, 12, &userdata::comment(chain.comment.as_deref()));
}

fn base_chain(w: &mut Writer, family: Family, base: &Base) {
    w.nest(4, |w| {
        w.u32_be(1, hook_number(family, base.hook));
        w.u32_be(2, base.priority.cast_unsigned());
    });
    w.u32_be(5, if base.policy == Policy::Accept { 1 } else { 0 });
    let kind = match base.kind {
        ChainType::Filter => "filter",
        ChainType::Nat => "nat",
        ChainType::Route => "route",
    };
    w.text(7, kind);
}

fn hook_number(family: Family, hook: Hook) -> u32 {
    match hook {
        // ARP has numbers of its own.
        Hook::Input if family == Family::Arp => 0,
        Hook::Output if family == Family::Arp => 1,
        Hook::Prerouting => 0,
        Hook::Input => 1,
        Hook::Forward => 2,
        Hook::Output => 3,
        Hook::Postrouting => 4,
    }
}

pub(super) fn rule(w: &mut Writer, table: &Table, rule: &Rule) {
    w.text(1, &table.name);
    w.text(2, &rule.chain);
    w.nest(4, |w| super::expr::encode(w, &rule.exprs));
    put_userdata(w, 7, &userdata::comment(rule.comment.as_deref()));
}

pub(super) fn set(w: &mut Writer, table: &Table, set: &Set, id: u32) {
    w.text(1, &table.name);
    w.text(2, &set.name);
    w.u32_be(3, flags(set));
    w.u32_be(4, key::number(&set.key));
    w.u32_be(5, key::length(&set.key));
    match &set.value {
        ValueType::Nothing => {}
        ValueType::Verdict => {
            w.u32_be(6, VERDICT_TYPE);
            w.u32_be(7, 16);
        }
        ValueType::Data(types) => {
            w.u32_be(6, key::number(types));
            w.u32_be(7, key::length(types));
        }
        ValueType::Counter => w.u32_be(15, COUNTER_OBJECT),
    }
    w.nest(9, |w| description(w, set));
    w.u32_be(10, id);
    if let Some(timeout) = set.timeout.filter(|timeout| *timeout != Duration::ZERO) {
        w.u64_be(11, millis(timeout));
    }
    put_userdata(w, 13, &userdata::set(set));
    if set.counter {
        w.nest(17, |w| counter_expr(w, &Counter::default()));
    }
}

/// The size, and the lengths of the parts where a range of a concatenation needs them.
fn description(w: &mut Writer, set: &Set) {
    if let Some(size) = set.size {
        w.u32_be(1, size);
    }
    if set.interval && set.key.len() > 1 {
        w.nest(2, |w| {
            for part in &set.key {
                w.nest(1, |w| w.u32_be(1, part.len()));
            }
        });
    }
}

fn flags(set: &Set) -> u32 {
    let value = match set.value {
        ValueType::Nothing => 0,
        ValueType::Verdict | ValueType::Data(_) => set_flag::MAP,
        ValueType::Counter => set_flag::OBJECT,
    };
    let mut flags = value;
    for (wanted, flag) in [
        (set.interval, set_flag::INTERVAL),
        (set.interval && set.key.len() > 1, set_flag::CONCAT),
        (set.timeout.is_some(), set_flag::TIMEOUT),
        (set.dynamic, set_flag::EVAL),
    ] {
        flags |= if wanted { flag } else { 0 };
    }
    flags
}

pub(super) fn element(w: &mut Writer, element: &Element) {
    w.nest(1, |w| {
        w.nest(1, |w| w.bytes(1, &element.key));
        if let Some(end) = &element.key_end {
            w.nest(10, |w| w.bytes(1, end));
        }
        match &element.value {
            None => {}
            Some(Value::Data(bytes)) => w.nest(2, |w| w.bytes(1, bytes)),
            Some(Value::Verdict(decision)) => w.nest(2, |w| verdict(w, decision)),
            Some(Value::Counter(name)) => w.text(9, name),
        }
        if element.interval_end {
            w.u32_be(3, 1);
        }
        if let Some(timeout) = element.timeout {
            w.u64_be(4, millis(timeout));
        }
        if let Some(comment) = &element.comment {
            w.bytes(6, &userdata::comment(Some(comment)));
        }
        if let Some(counter) = &element.counter {
            w.nest(7, |w| counter_expr(w, counter));
        }
    });
}

/// Elements are deleted by their key alone.
pub(super) fn element_key(w: &mut Writer, element: &Element) {
    w.nest(1, |w| {
        w.nest(1, |w| w.bytes(1, &element.key));
        if let Some(end) = &element.key_end {
            w.nest(10, |w| w.bytes(1, end));
        }
        if element.interval_end {
            w.u32_be(3, 1);
        }
    });
}

pub(super) fn named_counter(w: &mut Writer, table: &Table, object: &NamedCounter) {
    w.text(1, &table.name);
    w.text(2, &object.name);
    w.u32_be(3, COUNTER_OBJECT);
    w.nest(4, |w| count(w, &object.counter));
}

fn counter_expr(w: &mut Writer, counter: &Counter) {
    w.text(1, "counter");
    w.nest(2, |w| count(w, counter));
}

fn put_userdata(w: &mut Writer, kind: u16, bytes: &[u8]) {
    if !bytes.is_empty() {
        w.bytes(kind, bytes);
    }
}
