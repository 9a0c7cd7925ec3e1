//! Gathers what changes in a table, and puts it in an order in which one batch of it is valid.

use std::collections::BTreeMap;

use fairlead_plan::{Family, Scope};

use super::code::Spread;
use super::key::Key;
use super::model::{Element, Op, Verdict};
use super::rules::{Rules, spreads};
use super::sets::Sizes;

/// Changes of a table.
#[derive(Debug)]
pub(crate) struct Batch {
    family: Family,
    chains: Vec<Op>,
    deleted: BTreeMap<&'static str, Vec<Element>>,
    added: BTreeMap<&'static str, Vec<Element>>,
    /// Chains that are no longer led to.
    unused: Vec<(Scope, Spread)>,
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

    /// Makes the chain for pools that are spread like that.
    pub(crate) fn add_spread(&mut self, scope: Scope, spread: Spread) {
        if let Some(at) = self.unused.iter().position(|unused| *unused == (scope, spread)) {
            self.unused.swap_remove(at);
            return;
        }
        let name = spread.chain(scope);
        self.chains.push(Op::AddChain(self.family, name.clone().into(), None));
        for rule in (Rules { family: self.family }).balance(spread, scope) {
            self.chains.push(Op::AddRule(self.family, name.clone().into(), rule));
        }
        self.add(spreads(scope), lead(scope, spread));
    }

    /// Deletes it.
    pub(crate) fn delete_spread(&mut self, scope: Scope, spread: Spread) {
        let name = spread.chain(scope);
        let made = |op: &Op| matches!(op, Op::AddChain(_, made, _) | Op::AddRule(_, made, _) if *made == name);
        if !self.chains.iter().any(made) {
            return self.unused.push((scope, spread));
        }
        // Made by this very batch.
        self.chains.retain(|op| !made(op));
        if let Some(added) = self.added.get_mut(spreads(scope)) {
            added.retain(|element| *element != lead(scope, spread));
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
        for (scope, spread) in &self.unused {
            self.deleted.entry(spreads(*scope)).or_default().push(lead(*scope, *spread));
        }
        ops.append(&mut self.chains);
        let filled = |elements: &(&'static str, Vec<Element>)| !elements.1.is_empty();
        ops.extend(
            self.deleted.into_iter().filter(filled).map(|(set, elements)| Op::DeleteElements(family, set, elements)),
        );
        ops.extend(self.added.into_iter().filter(filled).map(|(set, elements)| Op::AddElements(family, set, elements)));
        for (scope, spread) in self.unused {
            let name = spread.chain(scope);
            ops.push(Op::FlushChain(family, name.clone().into()));
            ops.push(Op::DeleteChain(family, name.into()));
        }
    }
}

/// What leads to the chain of a spread.
fn lead(scope: Scope, spread: Spread) -> Element {
    Element::verdict(Key::new().number(spread.number()), Verdict::Goto(spread.chain(scope).into()))
}
