//! Which fields a configuration names: what its sender owns once it is applied.

use std::borrow::Cow;

use crate::value::Value;

use super::set::{Node, Set, Step};
use super::types::{Atom, Type, element, steps};

/// The fields a value of a type names. Structs and lists count only through what is in them, elements of lists and
/// entries of maps also by themselves.
pub(super) fn owned(of: Type, value: &Value) -> Set<'_> {
    inside(of, value).0
}

/// The set below a value, and whether the value itself is a member as far as its own type goes.
fn inside(of: Type, value: &Value) -> (Set<'_>, bool) {
    let atom = of.atom();
    let nodes = match (atom, value) {
        (Atom::Leaf, _) => return (Set::default(), true),
        (Atom::Fields(of), Value::Object(map)) => map
            .iter()
            .filter_map(|(name, value)| {
                let (inner, piece) = inside(Type::of_field(of.field(name)?), value);
                let member = piece || value.is_null() || value.as_object().is_some_and(|map| map.is_empty());
                Some(Node { step: Step::Field(Cow::Borrowed(name)), member, inner })
            })
            .collect(),
        (Atom::Entries(of), Value::Object(map)) => map
            .iter()
            .map(|(name, value)| Node {
                step: Step::Field(Cow::Borrowed(name)),
                member: true,
                inner: inside(of, value).0,
            })
            .collect(),
        (Atom::Items | Atom::Keyed { .. }, Value::Array(list)) => elements(atom, list),
        _ => return (Set::default(), false),
    };
    (Set::of(nodes), false)
}

/// Elements that share a key are one piece.
fn elements(atom: Atom, list: &[Value]) -> Vec<Node<'_>> {
    let of = element(atom);
    let mut all = steps(atom, list).unwrap_or_default();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let mut nodes: Vec<Node<'_>> = Vec::with_capacity(all.len());
    for (step, item) in all {
        match nodes.last_mut() {
            Some(last) if last.step == step => last.inner = Set::default(),
            _ => nodes.push(Node { step, member: true, inner: inside(of, item).0 }),
        }
    }
    nodes
}
