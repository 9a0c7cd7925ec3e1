//! A program's steps as messages for the kernel: the same words on both sides.

use std::borrow::Borrow;
use std::time::Duration;

use fairlead_kernel::nft as kernel;
use fairlead_plan::Family;
use fairlead_program::nft::{self as program, Op};

/// Puts steps into a batch. Who hands them over need not hold both at once.
pub(crate) fn batch<O: Borrow<Op>>(ops: impl IntoIterator<Item = O>) -> kernel::Batch {
    batch_for(program::TABLE, ops)
}

/// The same for tables of another name.
pub(crate) fn batch_for<O: Borrow<Op>>(name: &str, ops: impl IntoIterator<Item = O>) -> kernel::Batch {
    let mut batch = kernel::Batch::new();
    ops.into_iter().for_each(|op| add(&mut batch, name, op.borrow()));
    batch
}

fn add(batch: &mut kernel::Batch, name: &str, op: &Op) {
    let table = |family: Family| table_named(name, family);
    match op {
        Op::AddTable(family) => batch.add_table(&table(*family)),
        Op::DeleteTable(family) => batch.delete_table(&table(*family)),
        Op::AddSet(family, it) => batch.add_set(&table(*family), &set(it)),
        Op::AddChain(family, name, base) => batch.add_chain(&table(*family), &chain(name, *base)),
        Op::AddRule(family, chain, it) => batch.add_rule(&table(*family), &rule(*family, chain, it)),
        Op::FlushChain(family, name) => batch.flush_chain(&table(*family), name),
        Op::DeleteChain(family, name) => batch.delete_chain(&table(*family), name),
        Op::AddElements(family, set, it) => batch.add_elements(&table(*family), set, elements(set, it)),
        Op::DeleteElements(family, set, it) => batch.delete_elements(&table(*family), set, elements(set, it)),
    }
}

pub(crate) fn table(family: Family) -> kernel::Table {
    table_named(program::TABLE, family)
}

pub(crate) fn table_named(name: &str, family: Family) -> kernel::Table {
    kernel::Table::new(family_of(family), name)
}

fn family_of(family: Family) -> kernel::Family {
    match family {
        Family::V4 => kernel::Family::Ip,
        Family::V6 => kernel::Family::Ip6,
    }
}

fn comment(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn set(set: &program::Set) -> kernel::Set {
    let value = match &set.value {
        program::ValueType::Nothing => kernel::ValueType::Nothing,
        program::ValueType::Verdict => kernel::ValueType::Verdict,
        program::ValueType::Data(types) => kernel::ValueType::Data(types.iter().map(data_type).collect()),
    };
    kernel::Set {
        name: set.name.to_owned(),
        key: set.key.iter().map(data_type).collect(),
        value,
        interval: set.interval,
        dynamic: set.dynamic,
        timeout: set.dynamic.then_some(Duration::ZERO),
        size: set.size,
        counter: set.counter,
        comment: comment(set.comment),
    }
}

fn data_type(part: &program::DataType) -> kernel::DataType {
    match part {
        program::DataType::Ipv4Addr => kernel::DataType::Ipv4Addr,
        program::DataType::Ipv6Addr => kernel::DataType::Ipv6Addr,
        program::DataType::InetProto => kernel::DataType::InetProto,
        program::DataType::InetService => kernel::DataType::InetService,
        program::DataType::Mark => kernel::DataType::Mark,
    }
}

fn chain(name: &str, base: Option<program::Base>) -> kernel::Chain {
    let Some(base) = base else { return kernel::Chain::regular(name) };
    let hook = match base.hook {
        program::Hook::Prerouting => kernel::Hook::Prerouting,
        program::Hook::Output => kernel::Hook::Output,
        program::Hook::Postrouting => kernel::Hook::Postrouting,
    };
    match base.kind {
        program::ChainType::Filter => kernel::Chain::filter(name, hook, base.priority),
        program::ChainType::Nat => kernel::Chain::nat(name, hook, base.priority),
    }
}

fn rule(family: Family, chain: &str, rule: &program::Rule) -> kernel::Rule {
    let exprs: Vec<_> = rule.exprs.iter().map(|it| expr(family, it)).collect();
    kernel::Rule { chain: chain.to_owned(), exprs, comment: comment(rule.comment) }
}

/// One by one: all of them at once would be as much memory again.
fn elements<'a>(set: &str, elements: &'a [program::Element]) -> impl Iterator<Item = kernel::Element> + use<'a> {
    let whole = program::is_concatenation_of_ranges(set);
    elements.iter().flat_map(move |it| element(it, whole))
}

fn key(key: &program::Key) -> kernel::Key {
    kernel::Key::new().part(key.as_bytes())
}

/// A range of single addresses is two elements for the kernel: where it begins, and where it no longer is.
fn element(element: &program::Element, whole: bool) -> Vec<kernel::Element> {
    let first = key(&element.key);
    let value = element.value.as_ref();
    let mut it = match (value, &element.key_end) {
        (Some(program::Value::Data(data)), _) => kernel::Element::data(first, key(data)),
        (Some(program::Value::Verdict(it)), _) => kernel::Element::verdict(first, verdict(it)),
        (None, Some(_)) | (None, None) => kernel::Element::new(first),
    };
    match element.key_end {
        None => vec![it],
        Some(end) if !whole => {
            let next = next(end.as_bytes());
            std::iter::once(it).chain(next.map(|next| kernel::Element::end(kernel::Key::new().part(&next)))).collect()
        }
        Some(end) => {
            it.key_end = Some(end.as_bytes().to_vec());
            vec![it]
        }
    }
}

fn next(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut next = bytes.to_vec();
    for byte in next.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return Some(next);
        }
    }
    None
}

fn verdict(verdict: &program::Verdict) -> kernel::Verdict {
    match verdict {
        program::Verdict::Accept => kernel::Verdict::Accept,
        program::Verdict::Drop => kernel::Verdict::Drop,
        program::Verdict::Return => kernel::Verdict::Return,
        program::Verdict::Jump(chain) => kernel::Verdict::Jump(chain.to_string()),
        program::Verdict::Goto(chain) => kernel::Verdict::Goto(chain.to_string()),
    }
}

fn reg(reg: program::Reg) -> kernel::Reg {
    kernel::Reg(reg.0)
}

fn expr(family: Family, expr: &program::Expr) -> kernel::Expr {
    use fairlead_kernel::nft::Expr as K;
    use fairlead_program::nft::Expr as P;
    match expr {
        P::Meta { key, dreg } => K::Meta { key: meta(*key), dreg: reg(*dreg) },
        P::MetaSet { key, sreg } => K::MetaSet { key: meta(*key), sreg: reg(*sreg) },
        P::Payload { base, offset, len, dreg } => {
            let base = match base {
                program::PayloadBase::Network => kernel::PayloadBase::Network,
                program::PayloadBase::Transport => kernel::PayloadBase::Transport,
            };
            K::Payload { base, offset: *offset, len: *len, dreg: reg(*dreg) }
        }
        P::Cmp { sreg, op, data } => {
            let op = match op {
                program::CmpOp::Equal => kernel::CmpOp::Equal,
                program::CmpOp::NotEqual => kernel::CmpOp::NotEqual,
            };
            K::Cmp { sreg: reg(*sreg), op, data: data.as_bytes().to_vec() }
        }
        P::Bitwise { sreg, dreg, mask, xor } => {
            let (mask, xor) = (mask.as_bytes().to_vec(), xor.as_bytes().to_vec());
            K::Bitwise { sreg: reg(*sreg), dreg: reg(*dreg), mask, xor }
        }
        P::Lookup { set, sreg, found, invert } => {
            let found = match found {
                program::Found::Continue => kernel::Found::Continue,
                program::Found::Load(dreg) => kernel::Found::Load(reg(*dreg)),
                program::Found::Verdict => kernel::Found::Verdict,
            };
            K::Lookup { set: (*set).to_owned(), sreg: reg(*sreg), found, invert: *invert }
        }
        P::Verdict(it) => K::Verdict(verdict(it)),
        P::Dnat { addr, port } => {
            let kind = kernel::NatKind::Destination;
            K::Nat(kernel::Nat::to(kind, family_of(family), reg(*addr), Some(reg(*port))))
        }
        P::Masquerade => {
            K::Masquerade { flags: kernel::NatFlags { fully_random: true, ..kernel::NatFlags::default() } }
        }
        P::Numgen { modulus, dreg } => {
            K::Numgen { kind: kernel::Numgen::Random, modulus: *modulus, offset: 0, dreg: reg(*dreg) }
        }
        P::Update { map, key, data, timeout } => K::Dynset(kernel::Dynset {
            set: (*map).to_owned(),
            op: kernel::DynsetOp::Update,
            key: reg(*key),
            data: Some(reg(*data)),
            timeout: Some(Duration::from_secs((*timeout).into())),
        }),
        P::Forget { map, key, data } => K::Dynset(kernel::Dynset {
            set: (*map).to_owned(),
            op: kernel::DynsetOp::Delete,
            key: reg(*key),
            data: Some(reg(*data)),
            timeout: None,
        }),
        P::Ct { key, dreg } => {
            let key = match key {
                program::CtKey::State => kernel::CtKey::State,
                program::CtKey::Status => kernel::CtKey::Status,
            };
            K::Ct { key, direction: None, dreg: reg(*dreg) }
        }
        P::Addrtype { of, dreg } => {
            let flags = match of {
                program::End::Source => kernel::fib::SADDR,
                program::End::Destination => kernel::fib::DADDR,
            };
            K::Fib { result: kernel::FibResult::Addrtype, flags, dreg: reg(*dreg) }
        }
        P::Reject(program::Reject::TcpReset) => K::Reject(kernel::Reject::TcpReset),
        P::Reject(program::Reject::PortUnreachable) => {
            let code = if family == Family::V4 { 3 } else { 4 };
            K::Reject(kernel::Reject::Icmp(code))
        }
    }
}

fn meta(key: program::MetaKey) -> kernel::MetaKey {
    match key {
        program::MetaKey::Mark => kernel::MetaKey::Mark,
        program::MetaKey::Iifname => kernel::MetaKey::Iifname,
        program::MetaKey::L4proto => kernel::MetaKey::L4proto,
    }
}
