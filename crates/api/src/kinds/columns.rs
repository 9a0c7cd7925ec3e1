//! The columns of `kubectl get` that many kinds share, and what stands in them.

use crate::value::Value;

use super::Column;
use crate::Look;
use crate::age::age;

/// The first column of most kinds.
pub(crate) const NAME: Column =
    Column { name: "Name", kind: "string", format: "name", description: "Name of the object.", priority: 0 };
/// How long ago the object was made.
pub(crate) const AGE: Column = text("Age", "Time since the object was made.");

/// A column of text.
pub(crate) const fn text(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", format: "", description, priority: 0 }
}

/// A column of text that only `-o wide` shows.
pub(crate) const fn wide(name: &'static str, description: &'static str) -> Column {
    Column { priority: 1, ..text(name, description) }
}

/// What stands under [`NAME`].
pub(crate) fn name(object: &Value) -> Value {
    object.at("metadata").text("name").into()
}

/// What stands under [`AGE`].
pub(crate) fn age_of(object: &Value, now: i64) -> Value {
    age(object.at("metadata").text("creationTimestamp"), now).into()
}

/// How many elements of a list a cell shows.
const SHOWN: usize = 3;

/// The first few of a list, and how many there are beyond them.
pub(crate) fn first_few<T: AsRef<str>>(items: &[T]) -> String {
    let shown: Vec<&str> = items.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let shown = shown.join(",");
    match items.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{shown} + {more} more..."),
        _ => shown,
    }
}
