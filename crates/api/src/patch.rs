//! Three of the four ways to patch an object: JSON patch, merge patch, strategic merge patch. (The fourth, server-side
//! apply, is in [`crate::managed`].) Each takes the stored object and the patch and gives the result, before decoding.

use serde_json::Value;

use crate::Failure;
use crate::schema::Struct;

/// RFC 6902: a list of operations.
pub fn json(_object: &Value, _patch: &[u8]) -> Result<Value, Failure> {
    Err(Failure::internal("not there yet"))
}

/// RFC 7386: an object laid over another.
pub fn merge(_object: &Value, _patch: &[u8]) -> Result<Value, Failure> {
    Err(Failure::internal("not there yet"))
}

/// A merge patch that knows which lists merge by which key, with `$patch`, `$setElementOrder`, `$deleteFromPrimitiveList`, `$retainKeys`.
pub fn strategic(_of: &'static Struct, _object: &Value, _patch: &[u8]) -> Result<Value, Failure> {
    Err(Failure::internal("not there yet"))
}
