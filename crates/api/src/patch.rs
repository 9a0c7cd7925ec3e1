//! Three of the four ways to patch an object: JSON patch, merge patch, strategic merge patch. (The fourth, server-side
//! apply, is in [`crate::managed`].) Each takes the stored object, with apiVersion and kind, and the patch, and gives the
//! result. The server decodes it (a failure of that is [`Patched::undecodable`]), sets defaults, calls
//! [`crate::managed::update`], compares name, namespace and uid with the URL and the stored object, and goes on as for an update.

use crate::value::Value;

use crate::field::{FieldError, FieldErrors, MAX_SHOWN, Path};
use crate::json::{Parsed, parse};
use crate::schema::Struct;
use crate::status::Subject;
use crate::{Failure, golang};

mod merge;
mod operations;
mod strategic;

/// A patched object, and what a careful server tells the client about the patch.
#[derive(Debug)]
pub struct Patched {
    /// The result, before decoding.
    pub value: Value,
    /// What is unknown or repeated in the patch itself (`duplicate field "spec.type"`); warnings or errors as
    /// `fieldValidation` says, before those of decoding.
    pub doubts: Vec<String>,
    /// How the failure to decode the result shows it.
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    /// As the resulting object.
    Result,
    /// As the patch of an object of this type, in this text.
    Patch(&'static Struct, String),
}

impl Patched {
    /// The failure for a result that `why` says cannot be decoded, or that `fieldValidation=Strict` refuses.
    pub fn undecodable(&self, why: &str) -> Failure {
        let (shown, why) = match &self.shown {
            Shown::Result => (golang::json_short(&self.value, MAX_SHOWN), why.to_owned()),
            Shown::Patch(of, patch) => {
                (patch.clone(), strategic::misfit(of, &self.value).unwrap_or_else(|| why.to_owned()))
            }
        };
        let error = FieldError::invalid(&Path::new("patch"), shown, why);
        Failure::invalid(Subject { group: "", kind: "", name: "" }, &FieldErrors::from([error]))
    }
}

/// RFC 6902: a list of operations. Unlike the RFC, `replace` of an absent key adds it, `test` of an absent key against null
/// holds, and negative indexes count from the end.
pub fn json(object: &Value, patch: &[u8]) -> Result<Patched, Failure> {
    let parsed = parse(patch).map_err(undecoded)?;
    let operations = operations::read(&parsed.value).map_err(undecoded)?;
    if operations.len() > operations::MAX {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {}, got {}",
            operations::MAX,
            operations.len()
        );
        return Err(Failure::new(413, "RequestEntityTooLarge", message));
    }
    let mut doubts = operations::unknown(&parsed.value);
    doubts.extend(duplicates(&parsed));
    let doubts = doubts.into_iter().map(|doubt| format!("json patch {doubt}")).collect();
    match operations::run(object, &operations) {
        Some(value) => Ok(Patched { value, doubts, shown: Shown::Result }),
        None => Err(rejected()),
    }
}

/// RFC 7386: an object laid over another.
pub fn merge(object: &Value, patch: &[u8]) -> Result<Patched, Failure> {
    let parsed = parse(patch).map_err(undecoded)?;
    let doubts = duplicates(&parsed);
    match parsed.value {
        Value::Object(patch) => Ok(Patched { value: merge::merge(object, patch), doubts, shown: Shown::Result }),
        Value::Null => Err(Failure::bad_request("Invalid JSON Patch")),
        other => Err(undecoded(not_an_object(&other))),
    }
}

/// A merge patch that knows which lists merge by which key, with `$patch`, `$setElementOrder`, `$deleteFromPrimitiveList`, `$retainKeys`.
pub fn strategic(of: &'static Struct, object: &Value, patch: &[u8]) -> Result<Patched, Failure> {
    let parsed = parse(patch).map_err(Failure::bad_request)?;
    let doubts = duplicates(&parsed);
    let shown = Shown::Patch(of, golang::display_short(&golang::Plain(&parsed.value), MAX_SHOWN));
    match parsed.value {
        Value::Object(patch) => Ok(Patched { value: strategic::merge(of, object, patch)?, doubts, shown }),
        Value::Null => Ok(Patched { value: object.clone(), doubts, shown }),
        other => Err(Failure::bad_request(not_an_object(&other))),
    }
}

fn duplicates(parsed: &Parsed) -> Vec<String> {
    parsed.duplicates.iter().map(|path| format!("duplicate field {}", golang::quote(path))).collect()
}

fn undecoded(why: String) -> Failure {
    Failure::bad_request(format!("error decoding patch: {why}"))
}

/// A patch that is well-formed but cannot be applied. Why is not told.
fn rejected() -> Failure {
    let message = "the server rejected our request due to an error in our request";
    Failure::new(422, "Invalid", message).with(crate::value::Map::new())
}

fn not_an_object(value: &Value) -> String {
    format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", kind(value))
}

/// The kind of a JSON value, as decoding errors name it.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests;
