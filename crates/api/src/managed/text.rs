//! The written form of a field set (`fieldsV1`): `{"f:spec":{"f:ports":{".":{},"k:{\"port\":80}":{}}}}`.

use std::borrow::Cow;

use crate::value::{Map, Value};
use thiserror::Error;

use super::set::{Node, Set, Step};

/// A text that is not a field set.
#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum Error {
    /// Not an object where one must be.
    #[error("expected an object of fields")]
    NotAnObject,
    /// A key that names no step.
    #[error("parsing key as path element: {0}")]
    BadStep(String),
}

/// Reads a field set. Steps of kinds we do not know are left out, as a later version may have written them.
pub(super) fn read(fields: &Value) -> Result<Set<'_>, Error> {
    Ok(read_inner(fields)?.0)
}

/// Writes a field set.
pub(super) fn write(set: &Set<'_>) -> Value {
    Value::Object(write_into(set, Map::new()))
}

/// The set below, and whether the place itself is a member: it is if it says so, or if nothing is below.
fn read_inner(fields: &Value) -> Result<(Set<'_>, bool), Error> {
    let map = match fields {
        Value::Object(map) => map,
        Value::Null => return Ok((Set::default(), true)),
        _ => return Err(Error::NotAnObject),
    };
    let mut nodes: Vec<Node<'_>> = Vec::with_capacity(map.len());
    let mut member = false;
    for (key, below) in map {
        if key == "." {
            member = true;
        } else if let Some(step) = read_step(key)? {
            let (inner, member) = read_inner(below)?;
            nodes.push(Node { step, member, inner });
        }
    }
    let none = nodes.is_empty();
    Ok((Set::of(nodes), member || none))
}

fn read_step(key: &str) -> Result<Option<Step<'_>>, Error> {
    let bad = || Error::BadStep(key.to_owned());
    let (kind, text) = key.split_once(':').filter(|(kind, _)| kind.len() == 1).ok_or_else(bad)?;
    let step = match kind {
        "f" => Step::Field(Cow::Borrowed(text)),
        "v" => Step::Item(Cow::Owned(serde_json::from_str(text).map_err(|_| bad())?)),
        "i" => Step::Index(text.parse().map_err(|_| bad())?),
        "k" => {
            let mut keys: Map = serde_json::from_str(text).map_err(|_| bad())?;
            keys.sort_keys();
            Step::Key(keys.into_iter().map(|(name, value)| (Cow::Owned(name.into()), Cow::Owned(value))).collect())
        }
        _ => return Ok(None),
    };
    Ok(Some(step))
}

fn write_into(set: &Set<'_>, mut out: Map) -> Map {
    for node in set.nodes() {
        let mut below = Map::new();
        if node.member && !node.inner.is_empty() {
            below.insert(".", Value::Object(Map::new()));
        }
        out.insert(write_step(&node.step), Value::Object(write_into(&node.inner, below)));
    }
    out
}

fn write_step(step: &Step<'_>) -> String {
    match step {
        Step::Field(name) => ["f:", name].concat(),
        Step::Item(value) => format!("v:{value}"),
        Step::Index(at) => format!("i:{at}"),
        Step::Key(keys) => {
            let mut out = String::from("k:{");
            for (at, (name, value)) in keys.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                // A string always can be written.
                out.push_str(&serde_json::to_string(name).unwrap_or_default());
                out.push(':');
                out.push_str(&value.to_string());
            }
            out.push('}');
            out
        }
    }
}
