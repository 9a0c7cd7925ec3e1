//! Messages as tables, chains, rules, sets and elements: the way back from [`super::encode`].

use std::time::Duration;

use super::encode::{VERDICT_TYPE, set_flag};
use super::expr::{decode as exprs, read_counter, read_verdict};
use super::{
    Base, Chain, ChainType, Element, Expr, Family, Hook, Listed, NamedCounter, Policy, Rule, Set, Table, Value,
    ValueType, key, userdata,
};
use crate::error::Error;
use crate::netlink::{Attributes, Message};

/// The length of nfnetlink's own header.
pub(super) const HEADER: usize = 4;

pub(super) fn family(message: &Message<'_>) -> Family {
    Family::from_number(message.payload.first().copied().unwrap_or(0))
}

pub(super) fn table(message: &Message<'_>) -> Result<Listed<Table>, Error> {
    let a = message.attributes(HEADER);
    let name = a.text(1).ok_or(Error::Malformed("a table without a name"))?;
    let comment = a.bytes(6).and_then(userdata::read_comment);
    Ok(Listed { handle: a.u64_be(4).unwrap_or(0), value: Table { family: family(message), name, comment } })
}

pub(super) fn chain(message: &Message<'_>) -> Result<Listed<Chain>, Error> {
    let a = message.attributes(HEADER);
    let name = a.text(3).ok_or(Error::Malformed("a chain without a name"))?;
    let comment = a.bytes(12).and_then(userdata::read_comment);
    Ok(Listed { handle: a.u64_be(2).unwrap_or(0), value: Chain { name, base: base(family(message), a), comment } })
}

fn base(family: Family, a: Attributes<'_>) -> Option<Base> {
    let place = a.find(4)?.nested();
    let hook = match place.u32_be(1)? {
        0 if family == Family::Arp => Hook::Input,
        1 if family == Family::Arp => Hook::Output,
        0 => Hook::Prerouting,
        1 => Hook::Input,
        2 => Hook::Forward,
        3 => Hook::Output,
        4 => Hook::Postrouting,
        _ => return None,
    };
    let kind = match a.text(7)?.as_str() {
        "nat" => ChainType::Nat,
        "route" => ChainType::Route,
        _ => ChainType::Filter,
    };
    let policy = if a.u32_be(5) == Some(0) { Policy::Drop } else { Policy::Accept };
    Some(Base { kind, hook, priority: place.u32_be(2)?.cast_signed(), policy })
}

pub(super) fn rule(message: &Message<'_>) -> Result<Listed<Rule>, Error> {
    let a = message.attributes(HEADER);
    let chain = a.text(2).ok_or(Error::Malformed("a rule without a chain"))?;
    let comment = a.bytes(7).and_then(userdata::read_comment);
    Ok(Listed { handle: a.u64_be(3).unwrap_or(0), value: Rule { chain, exprs: exprs(a.nested(4)), comment } })
}

pub(super) fn set(message: &Message<'_>) -> Result<Listed<Set>, Error> {
    let a = message.attributes(HEADER);
    let name = a.text(2).ok_or(Error::Malformed("a set without a name"))?;
    let flags = a.u32_be(3).unwrap_or(0);
    let has = |flag| flags & flag != 0;
    let value = match (has(set_flag::OBJECT), a.u32_be(6)) {
        (true, _) => ValueType::Counter,
        (false, Some(VERDICT_TYPE)) => ValueType::Verdict,
        (false, Some(number)) if has(set_flag::MAP) => ValueType::Data(key::types(number)),
        (false, _) => ValueType::Nothing,
    };
    let set = Set {
        name,
        key: key::types(a.u32_be(4).unwrap_or(0)),
        value,
        interval: has(set_flag::INTERVAL),
        dynamic: has(set_flag::EVAL),
        timeout: has(set_flag::TIMEOUT).then(|| Duration::from_millis(a.u64_be(11).unwrap_or(0))),
        size: a.nested(9).u32_be(1),
        counter: a.find(17).is_some() || has(set_flag::EXPR),
        comment: a.bytes(13).and_then(userdata::read_set_comment),
    };
    Ok(Listed { handle: a.u64_be(16).unwrap_or(0), value: set })
}

/// The elements of one message of a dump or event.
pub(super) fn elements(message: &Message<'_>) -> Vec<Element> {
    message.attributes(HEADER).nested(3).filter_map(|item| element(item.nested())).collect()
}

fn element(a: Attributes<'_>) -> Option<Element> {
    let data = a.nested(2);
    let value = match (data.bytes(1), a.text(9)) {
        (Some(bytes), _) => Some(Value::Data(bytes.to_vec())),
        (None, Some(name)) => Some(Value::Counter(name)),
        (None, None) => read_verdict(data).map(Value::Verdict),
    };
    // One expression comes alone, several in a list.
    let counter = std::iter::once(a.nested(7))
        .chain(a.nested(11).map(|item| item.nested()))
        .find(|expr| expr.text(1).as_deref() == Some("counter"))
        .map(|expr| read_counter(expr.nested(2)));
    Some(Element {
        key: a.nested(1).bytes(1)?.to_vec(),
        key_end: a.nested(10).bytes(1).map(<[u8]>::to_vec),
        interval_end: a.u32_be(3).unwrap_or(0) & 1 == 1,
        value,
        timeout: a.u64_be(4).map(Duration::from_millis),
        expires: a.u64_be(5).map(Duration::from_millis),
        counter,
        comment: a.bytes(6).and_then(userdata::read_comment),
    })
}

pub(super) fn named_counter(message: &Message<'_>) -> Option<Listed<NamedCounter>> {
    let a = message.attributes(HEADER);
    let counter = (a.u32_be(3)? == 1).then(|| read_counter(a.nested(4)))?;
    Some(Listed { handle: a.u64_be(6).unwrap_or(0), value: NamedCounter { name: a.text(2)?, counter } })
}

impl Rule {
    /// What the rule counted so far, if it counts.
    pub fn counted(&self) -> Option<super::Counter> {
        self.exprs.iter().find_map(|expr| match expr {
            Expr::Counter(counter) => Some(*counter),
            _ => None,
        })
    }
}
