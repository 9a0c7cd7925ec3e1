//! RFC 7386: each key of the patch replaces, descends or, if null, removes.

use std::collections::HashSet;

use crate::value::{Key, Map, Value};

/// The object with the patch laid over it.
pub(super) fn merge(object: &Value, patch: Map) -> Value {
    let mut out = object.clone();
    lay(&mut out, Value::Object(patch));
    out
}

/// Keys end sorted wherever the patch reaches: the reference server lists unknown fields, and shows a result it cannot decode,
/// in that order.
fn lay(target: &mut Value, patch: Value) {
    let patch = match patch {
        Value::Object(patch) => patch,
        mut other => {
            sort(&mut other);
            *target = other;
            return;
        }
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else { return };
    // Fields are removed together: each removal by itself would move all fields behind it.
    let mut gone: HashSet<Key> = HashSet::new();
    for (name, value) in patch {
        if value.is_null() {
            gone.insert(name);
        } else {
            lay(target.entry(name).or_insert(Value::Null), value);
        }
    }
    if !gone.is_empty() {
        target.retain(|name, _| !gone.contains(name));
    }
    target.sort_keys();
}

fn sort(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(sort),
        Value::Object(map) => {
            map.values_mut().for_each(sort);
            map.sort_keys();
        }
        _ => {}
    }
}
