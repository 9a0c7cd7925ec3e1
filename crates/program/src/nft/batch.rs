//! Gathers what changes in a table, and puts it in an order in which one batch of it is valid.

use std::collections::BTreeMap;

use fairlead_plan::{Family, Scope};

use super::code;
use super::key::Key;
use super::model::{Element, Op, Rule, Verdict};
use super::rules::{Rules, draws, spreads};
use super::sets::Sizes;

const SCOPES: [Scope; 2] = [Scope::Cluster, Scope::Local];

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

    /// Makes the chains for sizes.
    pub(crate) fn add_sizes(&mut self, sizes: impl Iterator<Item = u32>) {
        let rules = Rules { family: self.family };
        for (size, scope) in sizes.flat_map(|size| SCOPES.map(|scope| (size, scope))) {
            let (name, key) = (named("lb", size, scope), Key::new().number(size));
            self.add_chain(&name, rules.balance(size, scope));
            self.add(spreads(scope), Element::verdict(key, Verdict::Goto(name.into())));
            let name = named("draw", size, scope);
            self.add_chain(&name, rules.draw(size, scope));
            self.add(draws(scope), Element::verdict(key, Verdict::Jump(name.into())));
        }
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
        for scope in SCOPES {
            self.add_chain(&named("stick", seconds, scope), Rules { family: self.family }.stick(seconds, scope));
            self.add(spreads(scope), lead(seconds, scope));
        }
    }

    /// Deletes them.
    pub(crate) fn delete_affinity(&mut self, seconds: u32) {
        let names = SCOPES.map(|scope| named("stick", seconds, scope));
        let made = |op: &Op| matches!(op, Op::AddChain(_, made, _) | Op::AddRule(_, made, _) if names.iter().any(|name| name == made));
        if !self.chains.iter().any(made) {
            return self.unused.push(seconds);
        }
        // Made by this very batch.
        self.chains.retain(|op| !made(op));
        for scope in SCOPES {
            if let Some(added) = self.added.get_mut(spreads(scope)) {
                added.retain(|element| *element != lead(seconds, scope));
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
        let unused: Vec<_> = self.unused.iter().flat_map(|seconds| SCOPES.map(|scope| (*seconds, scope))).collect();
        for (seconds, scope) in &unused {
            self.deleted.entry(spreads(*scope)).or_default().push(lead(*seconds, *scope));
        }
        ops.append(&mut self.chains);
        let filled = |elements: &(&'static str, Vec<Element>)| !elements.1.is_empty();
        ops.extend(
            self.deleted.into_iter().filter(filled).map(|(set, elements)| Op::DeleteElements(family, set, elements)),
        );
        ops.extend(self.added.into_iter().filter(filled).map(|(set, elements)| Op::AddElements(family, set, elements)));
        for (seconds, scope) in unused {
            let name = named("stick", seconds, scope);
            ops.push(Op::FlushChain(family, name.clone().into()));
            ops.push(Op::DeleteChain(family, name.into()));
        }
    }
}

/// What leads to the chain for clients that stay.
fn lead(seconds: u32, scope: Scope) -> Element {
    let name = named("stick", seconds, scope);
    Element::verdict(Key::new().number(code::affinity(seconds)), Verdict::Goto(name.into()))
}

fn named(what: &str, number: u32, scope: Scope) -> String {
    match scope {
        Scope::Cluster => format!("{what}-{number}"),
        Scope::Local => format!("{what}-{number}-local"),
    }
}
