//! Gathers what changes in a table, and puts it in an order in which one batch of it is valid.

use std::collections::BTreeMap;

use fairlead_plan::Family;

use super::code;
use super::expr::Expr;
use super::key::Key;
use super::model::{Element, Op, Rule, Verdict};
use super::rules::{Place, Rules};
use super::sets::Sizes;

/// Changes of a table.
#[derive(Debug)]
pub(crate) struct Batch {
    family: Family,
    chains: Vec<Op>,
    deleted: BTreeMap<&'static str, Vec<Element>>,
    added: BTreeMap<&'static str, Vec<Element>>,
    /// Affinities nobody has any more.
    unused: Vec<u32>,
}

impl Batch {
    pub(crate) fn new(family: Family) -> Batch {
        Batch { family, chains: Vec::new(), deleted: BTreeMap::new(), added: BTreeMap::new(), unused: Vec::new() }
    }

    pub(crate) fn add(&mut self, set: &'static str, element: Element) {
        self.added.entry(set).or_default().push(element);
    }

    pub(crate) fn delete(&mut self, set: &'static str, element: Element) {
        self.deleted.entry(set).or_default().push(element);
    }

    /// Puts an element in the place of another.
    pub(crate) fn change(&mut self, set: &'static str, old: Option<Element>, new: Option<Element>) {
        if old == new {
            return;
        }
        if let Some(old) = old {
            self.delete(set, old);
        }
        if let Some(new) = new {
            self.add(set, new);
        }
    }

    /// Makes the chains for sizes, of which those between `made` and `end` are new.
    pub(crate) fn add_sizes(&mut self, made: u32, end: u32) {
        let rules = Rules { family: self.family };
        for size in code::sizes(end).filter(|size| *size > made) {
            for place in Place::ALL {
                let key = Key::new().number(size);
                let name = self.add_balance(place, size, rules.choose(place, size));
                self.add(place.spreads(), Element::verdict(key, Verdict::Goto(name.into())));
                let name = place.chain("draw", size);
                self.add_chain(&name, rules.draw(place, size));
                self.add(place.draws(), Element::verdict(key, Verdict::Jump(name.into())));
            }
        }
    }

    /// The chain that sends packets to one of so many slots. A rule that may draw in vain has a chain of its own, to which
    /// that goes as often as it takes: each rule that uses a map makes every change of the map a little slower.
    ///
    /// A packet between two lookups may meet a pool that has just become smaller, and draw a slot that is gone: it takes the
    /// first one, which every pool has. If even that is gone, it is dropped, and the client's next try sees the new state: a
    /// packet that goes its way untranslated would leave a connection behind that never will be.
    fn add_balance(&mut self, place: Place, size: u32, once: Rule) -> String {
        let name = place.chain("lb", size);
        let last = match size {
            1 => Verdict::Drop,
            _ => Verdict::Goto(place.chain("lb", 1).into()),
        };
        let last = Rule { exprs: vec![Expr::Verdict(last)], comment: "" };
        let tries = code::tries(size);
        if tries.len() == 1 {
            self.add_chain(&name, vec![once, last]);
            return name;
        }
        let try_chain = |size| place.chain("lb-once", size);
        self.add_chain(&try_chain(size), vec![once]);
        let jump = |size| {
            // Exact sizes have no chain that draws just once: whoever draws in vain there is done.
            let exact = code::tries(size).len() == 1;
            let to = if exact {
                Verdict::Goto(place.chain("lb", size).into())
            } else {
                Verdict::Jump(try_chain(size).into())
            };
            Rule { exprs: vec![Expr::Verdict(to)], comment: "" }
        };
        self.add_chain(&name, tries.into_iter().map(jump).chain([last]).collect());
        name
    }

    fn add_chain(&mut self, name: &str, rules: Vec<Rule>) {
        self.chains.push(Op::AddChain(self.family, name.to_owned().into(), None));
        self.chains.extend(rules.into_iter().map(|rule| Op::AddRule(self.family, name.to_owned().into(), rule)));
    }

    /// Makes the chains for clients that stay for so long.
    pub(crate) fn add_affinity(&mut self, seconds: u32) {
        if let Some(at) = self.unused.iter().position(|unused| *unused == seconds) {
            self.unused.swap_remove(at);
            return;
        }
        for place in Place::ALL {
            self.add_chain(&place.chain("stick", seconds), Rules { family: self.family }.stick(place, seconds));
            self.add(place.spreads(), lead(place, seconds));
        }
    }

    /// Deletes them.
    pub(crate) fn delete_affinity(&mut self, seconds: u32) {
        let names = Place::ALL.map(|place| place.chain("stick", seconds));
        let made = |op: &Op| matches!(op, Op::AddChain(_, made, _) | Op::AddRule(_, made, _) if names.iter().any(|name| name == made));
        if !self.chains.iter().any(made) {
            return self.unused.push(seconds);
        }
        // Made by this very batch.
        self.chains.retain(|op| !made(op));
        for place in Place::ALL {
            if let Some(added) = self.added.get_mut(place.spreads()) {
                added.retain(|element| *element != lead(place, seconds));
            }
        }
    }

    /// Counts what comes and goes.
    pub(crate) fn count(&self, sizes: &mut Sizes) {
        self.deleted.iter().for_each(|(set, elements)| sizes.count(set, -(elements.len() as i64)));
        self.added.iter().for_each(|(set, elements)| sizes.count(set, elements.len() as i64));
    }

    /// The steps: what is led to is made first, what leads there goes before it does.
    pub(crate) fn into_ops(mut self, ops: &mut Vec<Op>) {
        let family = self.family;
        let unused: Vec<_> = self.unused.iter().flat_map(|seconds| Place::ALL.map(|place| (*seconds, place))).collect();
        for (seconds, place) in &unused {
            self.deleted.entry(place.spreads()).or_default().push(lead(*place, *seconds));
        }
        ops.append(&mut self.chains);
        let filled = |elements: &(&'static str, Vec<Element>)| !elements.1.is_empty();
        ops.extend(
            self.deleted.into_iter().filter(filled).map(|(set, elements)| Op::DeleteElements(family, set, elements)),
        );
        ops.extend(self.added.into_iter().filter(filled).map(|(set, elements)| Op::AddElements(family, set, elements)));
        for (seconds, place) in unused {
            let name = place.chain("stick", seconds);
            ops.push(Op::FlushChain(family, name.clone().into()));
            ops.push(Op::DeleteChain(family, name.into()));
        }
    }
}

/// What leads to the chain for clients that stay.
fn lead(place: Place, seconds: u32) -> Element {
    let name = place.chain("stick", seconds);
    Element::verdict(Key::new().number(code::affinity(seconds)), Verdict::Goto(name.into()))
}
