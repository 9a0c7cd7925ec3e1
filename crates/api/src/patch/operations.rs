//! RFC 6902: the operations of a JSON patch, one after the other, all or none.

use std::collections::BTreeMap;

use crate::value::Value;

use super::kind;
use crate::Look;
use crate::field::MAX_SHOWN;
use crate::golang;

/// More operations in one patch are refused.
pub(super) const MAX: usize = 10_000;
/// Maximum number of list elements, fields and values that one patch may move, copy or walk over.
/// Taking the first element out of a list of a million moves all others, and a patch may do so
/// 10,000 times.
const MAX_WORK: usize = 20_000_000;
/// Maximum depth of a patched object; a body may be as deep (`json::parse`). Patches could make an
/// object deeper by adding to what was added before, and formatting and dropping an object call
/// themselves for each level.
const MAX_DEPTH: usize = 128;
/// Maximum number of unknown fields that are named.
const MAX_UNKNOWN: usize = 100;
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
        .take(MAX_UNKNOWN)
        .map(|(at, name)| format!("unknown field {}", golang::quote_short(&format!("[{at}].{name}"), MAX_SHOWN)))
        .collect()
}

/// The object after all operations, or nothing if one of them cannot be done.
pub(super) fn run(object: &Value, operations: &[Operation<'_>]) -> Option<Value> {
    let mut out = object.clone();
    let mut work = PatchCost { copied: 0, left: MAX_WORK };
    let mut touched = Touched::default();
    for operation in operations {
        step(&mut out, operation, &mut work)?;
        touched.note(operation.path);
        touched.note(operation.from);
    }
    touched.sort(&mut out, &mut work)?;
    Some(out)
}

/// The work of one patch so far.
struct PatchCost {
    /// The number of bytes that `copy` added.
    copied: usize,
    /// The number of list elements, fields and values that may still be moved or walked over.
    left: usize,
}

impl PatchCost {
    /// Takes an amount of work. Returns `None` if the patch is too much work.
    fn spend(&mut self, amount: usize) -> Option<()> {
        self.left = self.left.checked_sub(amount)?;
        Some(())
    }

    /// Checks the depth of a value that is to stand below `above` levels.
    fn check_depth(&mut self, value: &Value, above: usize) -> Option<()> {
        if above > MAX_DEPTH {
            return None;
        }
        match value {
            Value::Array(list) => {
                self.spend(list.len())?;
                list.iter().try_for_each(|item| self.check_depth(item, above + 1))
            }
            Value::Object(map) => {
                self.spend(map.len())?;
                map.values().try_for_each(|item| self.check_depth(item, above + 1))
            }
            _ => Some(()),
        }
    }
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

    /// Many paths may lead to one object, as `/0`, `/00` and `/-1` name one element.
    fn sort(&self, value: &mut Value, work: &mut PatchCost) -> Option<()> {
        if let Value::Object(map) = value {
            work.spend(map.len())?;
            map.sort_keys();
        }
        for (step, below) in &self.0 {
            let next = match &mut *value {
                Value::Object(map) => map.get_mut(step),
                Value::Array(list) => index(step, list.len()).and_then(|at| list.get_mut(at)),
                _ => None,
            };
            if let Some(next) = next {
                below.sort(next, work)?;
            }
        }
        Some(())
    }
}

fn step(object: &mut Value, operation: &Operation<'_>, work: &mut PatchCost) -> Option<()> {
    let path = operation.path?;
    match operation.op {
        "add" => add(object, path, operation.value.clone(), work),
        "remove" => remove(object, path, work).map(drop),
        "replace" if path.is_empty() => {
            // Only an object or a list can be a document.
            if !(operation.value.is_object() || operation.value.is_array()) {
                return None;
            }
            *object = operation.value.clone();
            Some(())
        }
        "replace" => replace(object, path, operation.value.clone(), work),
        "move" => {
            let value = remove(object, operation.from?, work)?;
            add(object, path, value, work)
        }
        "copy" => {
            let (parent, key) = find(object, operation.from?)?;
            let value = get(parent, &key)?.cloned().unwrap_or_default();
            work.copied += value.to_string().len();
            if work.copied > MAX_COPIED {
                return None;
            }
            add(object, path, value, work)
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

/// The number of levels above the value at a path.
fn depth_of(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}

/// The cost of a field that moves in a map, in list elements: it is hashed again.
const MAP_WORK: usize = 20;

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

fn add(object: &mut Value, path: &str, value: Value, work: &mut PatchCost) -> Option<()> {
    work.check_depth(&value, depth_of(path))?;
    match find(object, path)? {
        (Value::Object(map), key) => {
            map.insert(key, value);
        }
        (Value::Array(list), key) if key == "-" => list.push(value),
        (Value::Array(list), key) => {
            let at = index(&key, list.len() + 1).filter(|at| *at <= list.len())?;
            work.spend(list.len() - at)?;
            list.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn replace(object: &mut Value, path: &str, value: Value, work: &mut PatchCost) -> Option<()> {
    work.check_depth(&value, depth_of(path))?;
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

fn remove(object: &mut Value, path: &str, work: &mut PatchCost) -> Option<Value> {
    match find(object, path)? {
        (Value::Object(map), key) => {
            // The fields behind it move up, and a map of many is hashed anew.
            work.spend(MAP_WORK * map.len())?;
            map.shift_remove(&key)
        }
        (Value::Array(list), key) => {
            let at = index(&key, list.len()).filter(|at| *at < list.len())?;
            work.spend(list.len() - at)?;
            Some(list.remove(at))
        }
        _ => None,
    }
}
