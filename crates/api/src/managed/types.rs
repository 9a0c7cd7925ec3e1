//! How a value of a type is taken apart for ownership: as one piece, field by field, entry by entry or element by element.

use std::borrow::Cow;

use crate::value::Value;

use super::set::Step;
use crate::schema::{Field, Merge, Shape, Struct};

/// The type of a value together with the way its place merges it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Type {
    /// What it holds.
    pub(super) shape: Shape,
    /// How its field says to merge it.
    pub(super) merge: Merge,
}

/// How a value of a type is taken apart.
#[derive(Debug, Clone, Copy)]
pub(super) enum Atom {
    /// As one piece.
    Leaf,
    /// Field by field.
    Fields(&'static Struct),
    /// Entry by entry.
    Entries(Type),
    /// Element by element, by value.
    Items,
    /// Element by element, by the key fields.
    Keyed {
        /// The type of the elements.
        of: Type,
        /// The names of the key fields.
        keys: &'static [&'static str],
    },
}

impl Type {
    /// The type of what a field holds.
    pub(super) fn of_field(field: &'static Field) -> Type {
        Type { shape: field.shape, merge: field.merge }
    }

    /// A type that merges by its shape.
    pub(super) fn of_shape(shape: &'static Shape) -> Type {
        Type { shape: *shape, merge: Merge::ByShape }
    }

    /// The type of a whole object.
    pub(super) fn of_object(of: &'static Struct) -> Type {
        Type { shape: Shape::Struct(of), merge: Merge::ByShape }
    }

    /// How a value is taken apart.
    pub(super) fn atom(self) -> Atom {
        match (self.merge, self.shape) {
            (Merge::Atomic, _) => Atom::Leaf,
            (_, Shape::Struct(of)) if !of.atomic => Atom::Fields(of),
            (_, Shape::Map(item)) => Atom::Entries(Type::of_shape(item)),
            (Merge::Set, Shape::List(_)) => Atom::Items,
            (Merge::Keyed(keys), Shape::List(item)) => Atom::Keyed { of: Type::of_shape(item), keys },
            _ => Atom::Leaf,
        }
    }
}

/// The step to an element of a keyed list. A key field that is absent counts with its default, or not at all.
pub(super) fn key_step<'a>(of: Type, keys: &'static [&'static str], item: &'a Value) -> Step<'a> {
    let mut found: Vec<(Cow<'a, str>, Cow<'a, Value>)> = Vec::with_capacity(keys.len());
    for name in keys {
        if let Some(value) = item.get(name) {
            found.push((Cow::Borrowed(*name), Cow::Borrowed(value)));
        } else if let Some(value) = default(of, name) {
            found.push((Cow::Borrowed(*name), Cow::Owned(value.into())));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Step::Key(found)
}

/// The step to an element of a list of unique values.
pub(super) fn item_step(item: &Value) -> Step<'_> {
    Step::Item(Cow::Borrowed(item))
}

/// The steps to the elements of a list, each with its element, in the list's order; `None` if elements have no steps.
pub(super) fn steps<'a>(atom: Atom, list: &'a [Value]) -> Option<Vec<(Step<'a>, &'a Value)>> {
    match atom {
        Atom::Items => Some(list.iter().map(|item| (item_step(item), item)).collect()),
        Atom::Keyed { of, keys } => Some(list.iter().map(|item| (key_step(of, keys, item), item)).collect()),
        _ => None,
    }
}

/// The type of the elements of a list that [`steps`] goes through.
pub(super) fn element(atom: Atom) -> Type {
    match atom {
        Atom::Keyed { of, .. } => of,
        _ => Type { shape: Shape::Any, merge: Merge::Atomic },
    }
}

fn default(of: Type, name: &str) -> Option<&'static str> {
    match of.shape {
        Shape::Struct(of) => of.field(name).and_then(|field| field.default),
        _ => None,
    }
}
