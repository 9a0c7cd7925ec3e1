//! Strategic merge patch: a merge patch with directives, in which the type says how lists merge.

use std::collections::HashSet;

use crate::value::{Key, Map, Value};

use super::rejected;
use crate::Failure;
use crate::golang;
use crate::schema::{Field, Shape, Strategic, Struct};

mod lists;
mod misfit;

use lists::List;
pub(super) use misfit::misfit;

type Object = Map;
type Result<T> = std::result::Result<T, Failure>;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";

/// The object with the patch merged into it.
pub(super) fn merge(of: &'static Struct, object: &Value, patch: Object) -> Result<Value> {
    let original = object.as_object().cloned().unwrap_or_default();
    merge_objects(Place::Struct(of), original, patch).map(Value::Object)
}

/// What the type says of the place a patch is merged into.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A struct.
    Struct(&'static Struct),
    /// Something without fields, by its kind.
    Other(&'static str),
}

impl Place {
    fn of(shape: &Shape) -> Place {
        match shape {
            Shape::Struct(of) => Place::Struct(of),
            Shape::Map(_) => Place::Other("map"),
            Shape::List(_) => Place::Other("slice"),
            Shape::Text(_) => Place::Other("string"),
            Shape::Int32 => Place::Other("int32"),
            Shape::Int64 => Place::Other("int64"),
            Shape::Float64 => Place::Other("float64"),
            Shape::Bool => Place::Other("bool"),
            _ => Place::Other("struct"),
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Place::Struct(_) => "struct",
            Place::Other(kind) => kind,
        }
    }

    fn field(self, name: &str) -> Result<&'static Field> {
        match self {
            Place::Struct(of) => find(of, name).ok_or_else(|| {
                let name = golang::quote(name);
                broken(format!("unable to find api field in struct {} for the json field {name}", of.name))
            }),
            Place::Other(kind) => {
                Err(broken(format!("merging an object in json but data type is not struct, instead is: {kind}")))
            }
        }
    }

    fn list(self, name: &str) -> Result<List> {
        let field = self.field(name)?;
        let Shape::List(element) = field.shape else {
            return Err(broken(format!("expected slice or array type, but got: {}", self.kind())));
        };
        let (merges, key) = match field.strategic {
            Strategic::Merge(key) | Strategic::MergeRetainKeys(key) => (true, key),
            Strategic::Replace | Strategic::RetainKeys => (false, ""),
        };
        Ok(List { of: Place::of(element), merges, key })
    }
}

/// The field of that name; case counts only if two fields differ by nothing else.
fn find(of: &'static Struct, name: &str) -> Option<&'static Field> {
    of.field(name).or_else(|| {
        of.fields.iter().find_map(|field| match (field.name, &field.shape) {
            ("", Shape::Struct(inner)) => find(inner, name),
            (own, _) => own.eq_ignore_ascii_case(name).then_some(field),
        })
    })
}

fn merge_objects(place: Place, mut original: Object, mut patch: Object) -> Result<Object> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.shift_remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(&patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    set_orders(place, &mut original, &mut patch)?;
    // Fields are removed together: each removal by itself would move all fields behind it.
    let mut gone: HashSet<Key> = HashSet::new();
    for (name, value) in patch {
        merge_field(place, &mut original, &mut gone, name, value)?;
    }
    if !gone.is_empty() {
        original.retain(|name, _| !gone.contains(name));
    }
    Ok(original)
}

/// Merges one field. Fields to be removed are noted in `gone`, and count as absent from then on.
fn merge_field(
    place: Place,
    original: &mut Object,
    gone: &mut HashSet<Key>,
    mut name: Key,
    patch: Value,
) -> Result<()> {
    let deletes = name.starts_with(DELETE_FROM);
    if deletes {
        name = list_name(&name, DELETE_FROM, "invalid patch format of primitive list")?.to_owned().into();
    }
    if patch.is_null() {
        gone.insert(name);
        return Ok(());
    }
    let merged = match (original.get_mut(&name).filter(|_| !gone.remove(&name)).map(Value::take), patch) {
        (Some(Value::Object(old)), Value::Object(new)) => {
            let field = place.field(&name)?;
            Some(Value::Object(merge_objects(Place::of(&field.shape), old, new)?))
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            let list = place.list(&name)?;
            Some(Value::Array(if deletes { list.delete(old, new)? } else { list.merge(old, new)? }))
        }
        (old, _) if deletes => old,
        (_, new) => plain(new),
    };
    match merged {
        Some(value) => {
            original.insert(name, value);
        }
        None => {
            gone.insert(name);
        }
    }
    Ok(())
}

/// Drops the fields that `$retainKeys` does not list. Whatever the patch sets must be listed.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<()> {
    let Some(keys) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    let bad = || Failure::bad_request("invalid patch format of retainKeys");
    let keys = keys.as_array().ok_or_else(bad)?;
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let listed = |name: &str| keys.contains(name);
    let unlisted = |(name, value): (&Key, &Value)| {
        !(value.is_null() || name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER) || listed(name))
    };
    if patch.iter().any(unlisted) {
        return Err(bad());
    }
    original.retain(|name, _| listed(name));
    Ok(())
}

/// Merges the lists for which the patch gives the order of the result.
fn set_orders(place: Place, original: &mut Object, patch: &mut Object) -> Result<()> {
    let ordered: Vec<Key> = patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for directive in ordered {
        let Some(order) = patch.shift_remove(&directive) else { continue };
        let order = as_list(order)?;
        let name = list_name(&directive, SET_ORDER, "invalid patch format of setElementOrder list")?;
        let old = original.get(name).cloned().map(as_list).transpose()?;
        let new = patch.get(name).cloned().map(as_list).transpose()?;
        let merged = place.list(name)?.merge_ordered(old, new, &order)?;
        if let Some(merged) = merged {
            patch.shift_remove(name);
            original.insert(name.to_owned(), Value::Array(merged));
        }
    }
    Ok(())
}

fn list_name<'n>(directive: &'n str, prefix: &str, bad: &str) -> Result<&'n str> {
    match directive.split_once('/') {
        Some((before, name)) if before == prefix => Ok(name),
        _ => Err(Failure::bad_request(bad)),
    }
}

/// A value that is new: nulls in it have nothing to remove, and directives nothing to direct. `None` if nothing is left.
fn plain(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let given = map.into_iter().filter(|(_, value)| !value.is_null());
            Some(Value::Object(given.filter_map(|(name, value)| Some((name, plain(value)?))).collect()))
        }
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(plain).collect())),
        other => Some(other),
    }
}

fn as_list(value: Value) -> Result<Vec<Value>> {
    match value {
        Value::Array(list) => Ok(list),
        other => Err(wrong_type("[]interface {}", &other)),
    }
}

fn wrong_type(wanted: &str, found: &Value) -> Failure {
    let found = match found {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    broken(format!("expected a {wanted}, but received a {found}"))
}

fn unknown_directive(patch: &Object) -> Failure {
    let directive = patch.get(DIRECTIVE).map(golang::plain).unwrap_or_default();
    let patch = golang::plain(&Value::Object(patch.clone()));
    broken(format!("unknown patch type: {directive} in map: {patch}"))
}

/// A patch that breaks the rules of directives: the reference server has no code for these but 500.
fn broken(message: String) -> Failure {
    Failure::new(500, "", message)
}
