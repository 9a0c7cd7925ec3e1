//! RFC 6902: the operations of a JSON patch, one after the other, all or none.

use std::collections::BTreeMap;

use crate::value::Value;

use super::kind;
use crate::Look;
use crate::golang;

/// More operations in one patch are refused.
pub(super) const MAX: usize = 10_000;
/// `copy` may add this many bytes in all, or a short patch could grow an object without end.
const MAX_COPIED: usize = 3 << 20;

/// One operation.
pub(super) struct Operation<'a> {
    op: &'a str,
    path: Option<&'a str>,
    from: Option<&'a str>,
    value: &'a Value,
}

/// Reads a patch. The error is the text of the reference server's decoder.
pub(super) fn read(patch: &Value) -> Result<Vec<Operation<'_>>, String> {
    let list = match patch {
        Value::Array(list) => list,
        Value::Null => return Ok(Vec::new()),
        other => {
            return Err(format!("json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp", kind(other)));
        }
    };
    list.iter().map(read_one).collect()
}

fn read_one(operation: &Value) -> Result<Operation<'_>, String> {
    if !(operation.is_object() || operation.is_null()) {
        return Err(format!("json: cannot unmarshal {} into Go value of type handlers.jsonPatchOp", kind(operation)));
    }
    for name in ["op", "path", "from"] {
        let value = operation.at(name);
        if !(value.is_string() || value.is_null()) {
            let kind = kind(value);
            return Err(format!(
                "json: cannot unmarshal {kind} into Go struct field jsonPatchOp.{name} of type string"
            ));
        }
    }
    Ok(Operation {
        op: operation.text("op"),
        path: operation.text_opt("path"),
        from: operation.text_opt("from"),
        value: operation.at("value"),
    })
}

/// Fields of operations that mean nothing.
pub(super) fn unknown(patch: &Value) -> Vec<String> {
    let operations = patch.as_array().into_iter().flatten().enumerate();
    let fields = operations.flat_map(|(at, operation)| {
        operation.as_object().into_iter().flat_map(move |map| map.keys().map(move |name| (at, name)))
    });
    fields
        .filter(|(_, name)| !matches!(name.as_str(), "op" | "path" | "from" | "value"))
        .map(|(at, name)| format!("unknown field {}", golang::quote(&format!("[{at}].{name}"))))
        .collect()
}

/// The object after all operations, or nothing if one of them cannot be done.
pub(super) fn run(object: &Value, operations: &[Operation<'_>]) -> Option<Value> {
    let mut out = object.clone();
    let mut copied = 0;
    let mut touched = Touched::default();
    for operation in operations {
        step(&mut out, operation, &mut copied)?;
        touched.note(operation.path);
        touched.note(operation.from);
    }
    touched.sort(&mut out);
    Some(out)
}

/// The objects that paths lead through. Their keys end sorted: the reference server lists unknown fields, and shows a result it
/// cannot decode, in that order.
#[derive(Default)]
struct Touched(BTreeMap<String, Touched>);

impl Touched {
    fn note(&mut self, path: Option<&str>) {
        let steps: Vec<String> = path.unwrap_or_default().split('/').skip(1).map(unescape).collect();
        let mut at = self;
        // The last step is what an operation changes, not what it passes through.
        for step in steps.into_iter().rev().skip(1).rev() {
            at = at.0.entry(step).or_default();
        }
    }

    fn sort(&self, value: &mut Value) {
        if let Value::Object(map) = value {
            map.sort_keys();
        }
        for (step, below) in &self.0 {
            let next = match &mut *value {
                Value::Object(map) => map.get_mut(step),
                Value::Array(list) => index(step, list.len()).and_then(|at| list.get_mut(at)),
                _ => None,
            };
            if let Some(next) = next {
                below.sort(next);
            }
        }
    }
}

fn step(object: &mut Value, operation: &Operation<'_>, copied: &mut usize) -> Option<()> {
    let path = operation.path?;
    match operation.op {
        "add" => add(object, path, operation.value.clone()),
        "remove" => remove(object, path).map(drop),
        "replace" if path.is_empty() => {
            // Only an object or a list can be a document.
            if !(operation.value.is_object() || operation.value.is_array()) {
                return None;
            }
            *object = operation.value.clone();
            Some(())
        }
        "replace" => replace(object, path, operation.value.clone()),
        "move" => {
            let value = remove(object, operation.from?)?;
            add(object, path, value)
        }
        "copy" => {
            let (parent, key) = find(object, operation.from?)?;
            let value = get(parent, &key)?.cloned().unwrap_or_default();
            *copied += value.to_string().len();
            if *copied > MAX_COPIED {
                return None;
            }
            add(object, path, value)
        }
        "test" if path.is_empty() => (object == operation.value).then_some(()),
        "test" => {
            let (parent, key) = find(object, path)?;
            (get(parent, &key)?.unwrap_or(&Value::Null) == operation.value).then_some(())
        }
        _ => None,
    }
}

/// The container a path leads into and the last step. What stands before the first `/` is not looked at.
fn find<'v>(object: &'v mut Value, path: &str) -> Option<(&'v mut Value, String)> {
    let mut steps = path.split('/').skip(1).map(unescape).peekable();
    let mut at = object;
    loop {
        let step = steps.next()?;
        if steps.peek().is_none() {
            return (at.is_object() || at.is_array()).then_some((at, step));
        }
        at = match at {
            Value::Object(map) => map.get_mut(&step)?,
            Value::Array(list) => {
                let at = index(&step, list.len())?;
                list.get_mut(at)?
            }
            _ => return None,
        };
    }
}

fn unescape(step: &str) -> String {
    // One pass from the left: `~01` is `~1`, not `/`.
    let mut out = String::with_capacity(step.len());
    let mut rest = step;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        rest = match &rest[at..] {
            tail if tail.starts_with("~1") => {
                out.push('/');
                &tail[2..]
            }
            tail if tail.starts_with("~0") => {
                out.push('~');
                &tail[2..]
            }
            tail => {
                out.push('~');
                &tail[1..]
            }
        };
    }
    out.push_str(rest);
    out
}

/// A place in a list of `len` elements; negative ones count from the end.
fn index(step: &str, len: usize) -> Option<usize> {
    let at: i64 = step.parse().ok()?;
    let at = if at < 0 { i64::try_from(len).ok()?.checked_add(at)? } else { at };
    usize::try_from(at).ok()
}

/// What is at a key: an absent key of an object is nothing, a place beyond a list is an error.
fn get<'v>(parent: &'v Value, key: &str) -> Option<Option<&'v Value>> {
    match parent {
        Value::Object(map) => Some(map.get(key)),
        Value::Array(list) => list.get(index(key, list.len())?).map(Some),
        _ => None,
    }
}

fn add(object: &mut Value, path: &str, value: Value) -> Option<()> {
    match find(object, path)? {
        (Value::Object(map), key) => {
            map.insert(key, value);
        }
        (Value::Array(list), key) if key == "-" => list.push(value),
        (Value::Array(list), key) => {
            let at = index(&key, list.len() + 1).filter(|at| *at <= list.len())?;
            list.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn replace(object: &mut Value, path: &str, value: Value) -> Option<()> {
    match find(object, path)? {
        (Value::Object(map), key) => {
            map.insert(key, value);
        }
        (Value::Array(list), key) => {
            let at = index(&key, list.len())?;
            *list.get_mut(at)? = value;
        }
        _ => return None,
    }
    Some(())
}

fn remove(object: &mut Value, path: &str) -> Option<Value> {
    match find(object, path)? {
        (Value::Object(map), key) => map.shift_remove(&key),
        (Value::Array(list), key) => {
            let at = index(&key, list.len()).filter(|at| *at < list.len())?;
            Some(list.remove(at))
        }
        _ => None,
    }
}
