//! The objects of nftables as plain data, and the steps that change them. A [`Program`] takes steps as the kernel would and
//! refuses what the kernel would refuse.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use fairlead_plan::Family;
use thiserror::Error;

use super::expr::{Expr, Found};
use super::key::{DataType, Key};

/// The name of our tables.
pub const TABLE: &str = "fairlead";

/// The name of a chain.
pub type ChainName = Cow<'static, str>;

/// A chain of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Its name, unique in the table.
    pub name: ChainName,
    /// Where packets enter it; `None` for a chain that is only jumped to.
    pub base: Option<Base>,
    /// Its rules, in order.
    pub rules: Vec<Rule>,
}

/// Where packets enter a chain. What no rule decides about goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// What it may do.
    pub kind: ChainType,
    /// The place.
    pub hook: Hook,
    /// The order among chains at one place, lowest first.
    pub priority: i32,
}

/// What a base chain may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainType {
    /// Accept, drop, refuse; sees every packet.
    Filter,
    /// Translate addresses; sees the first packet of each connection.
    Nat,
}

/// The place of a base chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// Everything that comes in, before routing.
    Prerouting,
    /// What this machine sends.
    Output,
    /// Everything that goes out, after routing.
    Postrouting,
}

/// A rule: expressions from left to right, until one does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it does.
    pub exprs: Vec<Expr>,
    /// A remark for people.
    pub comment: &'static str,
}

/// A set of keys, or a map from keys to values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Its name, unique in the table.
    pub name: &'static str,
    /// What a key is made of; several are a concatenation.
    pub key: Vec<DataType>,
    /// What a key leads to.
    pub value: ValueType,
    /// Keys are ranges.
    pub interval: bool,
    /// Packets add elements, and each has a time-out.
    pub dynamic: bool,
    /// How many elements it may hold; `None`: as many as there are.
    pub size: Option<u32>,
    /// Each element counts the packets that found it.
    pub counter: bool,
    /// A remark for people.
    pub comment: &'static str,
}

/// What the keys of a set lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueType {
    /// A set: nothing.
    Nothing,
    /// A verdict.
    Verdict,
    /// Data; several types are a concatenation.
    Data(Vec<DataType>),
}

/// One element of a set or map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// The key, or the first of a range.
    pub key: Key,
    /// The last key of a range. Of a set of ranges, all elements have one.
    pub key_end: Option<Key>,
    /// What the key leads to.
    pub value: Option<Value>,
}

impl Element {
    /// An element that is only a key.
    pub fn new(key: Key) -> Element {
        Element { key, key_end: None, value: None }
    }

    /// An element that leads to data.
    pub fn data(key: Key, data: Key) -> Element {
        Element { value: Some(Value::Data(data)), ..Element::new(key) }
    }

    /// An element that leads to a verdict.
    pub fn verdict(key: Key, verdict: Verdict) -> Element {
        Element { value: Some(Value::Verdict(verdict)), ..Element::new(key) }
    }

    /// A range with both its ends.
    pub fn range(first: Key, last: Key) -> Element {
        Element { key_end: Some(last), ..Element::new(first) }
    }
}

/// What a key leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Bytes for registers.
    Data(Key),
    /// What happens next.
    Verdict(Verdict),
}

/// What happens to a packet next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on to the next base chain.
    Accept,
    /// It is gone.
    Drop,
    /// Back to the rule behind the last jump.
    Return,
    /// Another chain, and back.
    Jump(ChainName),
    /// Another chain, for good.
    Goto(ChainName),
}

/// One step of a change. Steps are in such an order that one batch of them is valid, and takes effect at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Makes the table.
    AddTable(Family),
    /// Deletes the table and all it holds.
    DeleteTable(Family),
    /// Makes a set or map, without elements.
    AddSet(Family, Set),
    /// Makes a chain, without its rules.
    AddChain(Family, ChainName, Option<Base>),
    /// Adds a rule behind all others of a chain.
    AddRule(Family, ChainName, Rule),
    /// Deletes the rules of a chain.
    FlushChain(Family, ChainName),
    /// Deletes a chain, which has no rules and is named nowhere by then.
    DeleteChain(Family, ChainName),
    /// Adds elements, none of which is there.
    AddElements(Family, &'static str, Vec<Element>),
    /// Deletes elements, all of which are there. Only their keys count.
    DeleteElements(Family, &'static str, Vec<Element>),
}

/// A table with all it holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Chains, by name.
    pub chains: BTreeMap<ChainName, Chain>,
    /// Sets and maps with their elements by key, by name.
    pub sets: BTreeMap<&'static str, (Set, BTreeMap<Key, Element>)>,
}

/// Our tables: all that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// By family.
    pub tables: BTreeMap<Family, Table>,
}

/// Why a step is not possible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Invalid {
    /// It is about something that is not there.
    #[error("there is no {0}")]
    Absent(String),
    /// It makes something that is there.
    #[error("{0} is there already")]
    Present(String),
    /// What is to be deleted is used.
    #[error("chain {0} is used")]
    Used(String),
    /// A set has no room.
    #[error("set {0} is full")]
    Full(&'static str),
    /// A range overlaps another.
    #[error("an element of {0} overlaps another")]
    Overlap(&'static str),
}

impl Program {
    /// Takes steps, as the kernel would. After a mistake the program is of no use: the kernel would have taken none.
    pub fn take(&mut self, ops: &[Op]) -> Result<(), Invalid> {
        ops.iter().try_for_each(|op| self.take_one(op))
    }

    fn take_one(&mut self, op: &Op) -> Result<(), Invalid> {
        match op {
            Op::AddTable(family) => drop(self.tables.entry(*family).or_default()),
            Op::DeleteTable(family) => {
                self.tables.remove(family).ok_or_else(|| Invalid::Absent(format!("{family} table")))?;
            }
            Op::AddSet(family, set) => {
                let old = self.table(*family)?.sets.insert(set.name, (set.clone(), BTreeMap::new()));
                return old.map_or(Ok(()), |_| Err(Invalid::Present(set.name.to_owned())));
            }
            Op::AddChain(family, name, base) => {
                let chain = Chain { name: name.clone(), base: *base, rules: Vec::new() };
                let old = self.table(*family)?.chains.insert(name.clone(), chain);
                return old.map_or(Ok(()), |_| Err(Invalid::Present(name.to_string())));
            }
            Op::AddRule(family, chain, rule) => return self.table(*family)?.add_rule(chain, rule),
            Op::FlushChain(family, chain) => self.table(*family)?.chain(chain)?.rules.clear(),
            Op::DeleteChain(family, chain) => return self.table(*family)?.delete_chain(chain),
            Op::AddElements(family, set, elements) => return self.table(*family)?.add_elements(set, elements),
            Op::DeleteElements(family, set, elements) => return self.table(*family)?.delete_elements(set, elements),
        }
        Ok(())
    }

    fn table(&mut self, family: Family) -> Result<&mut Table, Invalid> {
        self.tables.get_mut(&family).ok_or_else(|| Invalid::Absent(format!("{family} table")))
    }
}

impl Table {
    fn chain(&mut self, name: &ChainName) -> Result<&mut Chain, Invalid> {
        self.chains.get_mut(name).ok_or_else(|| Invalid::Absent(format!("chain {name}")))
    }

    fn add_rule(&mut self, chain: &ChainName, rule: &Rule) -> Result<(), Invalid> {
        for expr in &rule.exprs {
            match expr {
                Expr::Lookup { set, .. } | Expr::Update { map: set, .. } | Expr::Forget { map: set, .. }
                    if !self.sets.contains_key(set) =>
                {
                    return Err(Invalid::Absent(format!("set {set}")));
                }
                Expr::Verdict(verdict) => self.check(verdict)?,
                _ => {}
            }
        }
        self.chain(chain)?.rules.push(rule.clone());
        Ok(())
    }

    fn check(&self, verdict: &Verdict) -> Result<(), Invalid> {
        match verdict {
            Verdict::Jump(chain) | Verdict::Goto(chain) if !self.chains.contains_key(chain) => {
                Err(Invalid::Absent(format!("chain {chain}")))
            }
            _ => Ok(()),
        }
    }

    fn delete_chain(&mut self, name: &ChainName) -> Result<(), Invalid> {
        if !self.chain(name)?.rules.is_empty() || self.targets().contains(name) {
            return Err(Invalid::Used(name.to_string()));
        }
        self.chains.remove(name);
        Ok(())
    }

    /// The chains that rules and elements lead to.
    fn targets(&self) -> BTreeSet<&ChainName> {
        let exprs = self.chains.values().flat_map(|chain| &chain.rules).flat_map(|rule| &rule.exprs);
        let ruled = exprs.filter_map(|expr| if let Expr::Verdict(verdict) = expr { Some(verdict) } else { None });
        let verdicts = self.sets.values().filter(|(set, _)| set.value == ValueType::Verdict);
        let values = verdicts.flat_map(|(_, elements)| elements.values()).filter_map(|element| match &element.value {
            Some(Value::Verdict(verdict)) => Some(verdict),
            _ => None,
        });
        ruled.chain(values).filter_map(Verdict::target).collect()
    }

    fn add_elements(&mut self, name: &'static str, new: &[Element]) -> Result<(), Invalid> {
        let verdicts = new.iter().filter_map(|element| element.value.as_ref());
        for value in verdicts {
            if let Value::Verdict(verdict) = value {
                self.check(verdict)?;
            }
        }
        let (set, elements) = self.sets.get_mut(name).ok_or_else(|| Invalid::Absent(format!("set {name}")))?;
        for element in new {
            let covers = |other: &Element| overlap(other, element, &set.key);
            if set.interval && elements.values().any(covers) {
                return Err(Invalid::Overlap(name));
            }
            if elements.insert(element.key, element.clone()).is_some() {
                return Err(Invalid::Present(format!("{:?} in {name}", element.key)));
            }
        }
        let full = set.size.is_some_and(|size| elements.len() > size as usize);
        if full { Err(Invalid::Full(name)) } else { Ok(()) }
    }

    fn delete_elements(&mut self, name: &'static str, old: &[Element]) -> Result<(), Invalid> {
        let (_, elements) = self.sets.get_mut(name).ok_or_else(|| Invalid::Absent(format!("set {name}")))?;
        for element in old {
            let found = elements.remove(&element.key);
            if found.is_none_or(|found| found.key_end != element.key_end) {
                return Err(Invalid::Absent(format!("{:?} in {name}", element.key)));
            }
        }
        Ok(())
    }
}

impl Verdict {
    fn target(&self) -> Option<&ChainName> {
        match self {
            Verdict::Jump(chain) | Verdict::Goto(chain) => Some(chain),
            _ => None,
        }
    }
}

impl Expr {
    /// Does what the key leads to.
    pub(crate) fn verdict_map(set: &'static str, sreg: super::Reg) -> Expr {
        Expr::Lookup { set, sreg, found: Found::Verdict, invert: false }
    }
}

/// Whether a key is covered by an element of a set of ranges: each part must be.
pub(crate) fn covers(element: &Element, key: &Key, types: &[DataType]) -> bool {
    let end = element.key_end.unwrap_or(element.key);
    let ends = element.key.parts(types).zip(end.parts(types));
    ends.zip(key.parts(types)).all(|(((_, first), (_, last)), (_, part))| first <= part && part <= last)
}

fn overlap(one: &Element, other: &Element, types: &[DataType]) -> bool {
    let (end, other_end) = (one.key_end.unwrap_or(one.key), other.key_end.unwrap_or(other.key));
    let mine = one.key.parts(types).zip(end.parts(types));
    let others = other.key.parts(types).zip(other_end.parts(types));
    mine.zip(others).all(|(((_, first), (_, last)), ((_, from), (_, to)))| first <= to && from <= last)
}
