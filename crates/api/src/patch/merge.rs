//! RFC 7386: each key of the patch replaces, descends or, if null, removes.

use crate::value::{Map, Value};

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
    for (name, value) in patch {
        if value.is_null() {
            target.shift_remove(&name);
        } else {
            lay(target.entry(name).or_insert(Value::Null), value);
        }
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
