//! What a write changed: two objects of one type, as the fields that are new or differ and those that are gone.

use std::borrow::Cow;

use crate::value::{Map, Value};

use super::set::{Node, Set, Step};
use super::types::{Atom, Type, element, steps};
use crate::schema::{Struct, meta};

/// The difference between two objects.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Change<'a> {
    /// Fields that are new or hold another value.
    pub(super) changed: Set<'a>,
    /// Fields that are gone.
    pub(super) removed: Set<'a>,
}

impl Change<'_> {
    /// Whether nothing differs.
    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Compares two objects. Their managedFields are left out.
pub(super) fn compare<'a>(of: &'static Struct, old: &'a Value, new: &'a Value) -> Change<'a> {
    let mut found = Found::default();
    found.fields(of, old.as_object(), new.as_object());
    found.done()
}

/// What happened to a value as a whole.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Same,
    Changed,
    Removed,
}

/// Differences among the children of one value.
#[derive(Default)]
struct Found<'a> {
    changed: Vec<Node<'a>>,
    removed: Vec<Node<'a>>,
}

impl<'a> Found<'a> {
    fn done(self) -> Change<'a> {
        Change { changed: Set::of(self.changed), removed: Set::of(self.removed) }
    }

    fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }

    /// Compares one child and notes what happened to it and inside it.
    fn child(&mut self, of: Type, step: Step<'a>, old: Option<&'a Value>, new: Option<&'a Value>) {
        let mut inside = Found::default();
        let fate = inside.value(of, old, new);
        if fate == Fate::Same && inside.is_empty() {
            return;
        }
        let inside = inside.done();
        self.note(step, fate, inside);
    }

    fn note(&mut self, step: Step<'a>, fate: Fate, inside: Change<'a>) {
        if fate == Fate::Removed || !inside.removed.is_empty() {
            let member = fate == Fate::Removed;
            self.removed.push(Node { step: step.clone(), member, inner: inside.removed });
        }
        if fate == Fate::Changed || !inside.changed.is_empty() {
            self.changed.push(Node { step, member: fate == Fate::Changed, inner: inside.changed });
        }
    }

    /// Collects the differences inside a value and tells what happened to the value itself.
    fn value(&mut self, of: Type, old: Option<&'a Value>, new: Option<&'a Value>) -> Fate {
        let atom = of.atom();
        // Two empty values are one piece, so that null and {} are told apart.
        if matches!(atom, Atom::Leaf) || (is_hollow(old) && is_hollow(new)) {
            return piece(old, new);
        }
        match atom {
            Atom::Leaf => {}
            Atom::Fields(of) => self.fields(of, object(old), object(new)),
            Atom::Entries(of) => self.entries(of, object(old), object(new)),
            Atom::Items | Atom::Keyed { .. } => self.elements(atom, list(old), list(new)),
        }
        match (old, new) {
            (None, _) => Fate::Changed,
            (_, None) => Fate::Removed,
            _ => Fate::Same,
        }
    }

    fn fields(&mut self, of: &'static Struct, old: Option<&'a Map>, new: Option<&'a Map>) {
        let is_meta = std::ptr::eq(of, &meta::OBJECT_META);
        zip(old, new, |name, old, new| {
            if let Some(field) = of.field(name).filter(|_| !(is_meta && name == "managedFields")) {
                self.child(Type::of_field(field), Step::Field(Cow::Borrowed(name)), old, new);
            }
        });
    }

    fn entries(&mut self, of: Type, old: Option<&'a Map>, new: Option<&'a Map>) {
        zip(old, new, |name, old, new| self.child(of, Step::Field(Cow::Borrowed(name)), old, new));
    }

    fn elements(&mut self, atom: Atom, old: &'a [Value], new: &'a [Value]) {
        let of = element(atom);
        let mut old = sorted(atom, old).into_iter().peekable();
        let mut new = sorted(atom, new).into_iter().peekable();
        loop {
            let next = match (old.peek(), new.peek()) {
                (Some((a, _)), Some((b, _))) => a.min(b).clone(),
                (Some((step, _)), None) | (None, Some((step, _))) => step.clone(),
                (None, None) => break,
            };
            let mut before = Vec::new();
            while let Some((_, item)) = old.next_if(|(step, _)| *step == next) {
                before.push(item);
            }
            let mut after = Vec::new();
            while let Some((_, item)) = new.next_if(|(step, _)| *step == next) {
                after.push(item);
            }
            self.element(of, next, &before, &after);
        }
    }

    /// Elements of one key. Several of them are one piece.
    fn element(&mut self, of: Type, step: Step<'a>, old: &[&'a Value], new: &[&'a Value]) {
        match (old, new) {
            ([_, _, ..], [_, _, ..]) if old == new => {}
            ([_, _, ..], [_, _, ..]) => self.note(step, Fate::Changed, Change::default()),
            ([_, _, ..], _) => {
                if let Some(new) = new.first() {
                    self.child(of, step.clone(), None, Some(new));
                }
                self.removed.push(Node { step, member: true, inner: Set::default() });
            }
            (_, [_, _, ..]) => {
                if let Some(old) = old.first() {
                    self.child(of, step.clone(), Some(old), None);
                }
                self.changed.push(Node { step, member: true, inner: Set::default() });
            }
            _ => self.child(of, step, old.first().copied(), new.first().copied()),
        }
    }
}

fn piece(old: Option<&Value>, new: Option<&Value>) -> Fate {
    match (old, new) {
        (Some(old), Some(new)) if old != new => Fate::Changed,
        (None, Some(_)) => Fate::Changed,
        (Some(_), None) => Fate::Removed,
        _ => Fate::Same,
    }
}

/// Elements with their steps, sorted by step; those of one step stay in the list's order.
fn sorted<'a>(atom: Atom, list: &'a [Value]) -> Vec<(Step<'a>, &'a Value)> {
    let mut all = steps(atom, list).unwrap_or_default();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// Every key of either map once, with both values.
fn zip<'a>(
    old: Option<&'a Map>,
    new: Option<&'a Map>,
    mut each: impl FnMut(&'a str, Option<&'a Value>, Option<&'a Value>),
) {
    for (name, value) in old.into_iter().flatten() {
        each(name, Some(value), new.and_then(|new| new.get(name)));
    }
    for (name, value) in new.into_iter().flatten() {
        if old.is_none_or(|old| !old.contains_key(name)) {
            each(name, None, Some(value));
        }
    }
}

fn is_hollow(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(_) => false,
    }
}

fn object(value: Option<&Value>) -> Option<&Map> {
    value.and_then(Value::as_object)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
