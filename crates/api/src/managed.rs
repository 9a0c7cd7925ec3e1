//! Who owns which field: `metadata.managedFields`, kept on every write, and server-side apply built on it.

use serde_json::Value;

use crate::Failure;
use crate::schema::Struct;

/// Who writes, and how.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// The field manager: the `fieldManager` parameter, or the User-Agent up to its first `/`.
    pub manager: &'a str,
    /// The apiVersion the object was written in.
    pub api_version: &'a str,
    /// The subresource written to, empty for the object itself.
    pub subresource: &'a str,
    /// The present time as RFC 3339 with seconds.
    pub now: &'a str,
}

/// Sets `metadata.managedFields` of `new` after a create, update or patch that is not an apply. `old` is what is stored. Both
/// are canonical; what `new` carries in managedFields is what the client sent.
pub fn update(_of: &'static Struct, _old: Option<&Value>, _new: &mut Value, _writer: Writer<'_>) {}

/// Server-side apply: lays `config` (what the client sent, decoded but without defaults) over `live` (`None`: it is created), and
/// gives the merged object with its managedFields. Conflicts are a 409 unless `force`.
pub fn apply(
    _of: &'static Struct,
    _live: Option<&Value>,
    _config: &Value,
    _force: bool,
    _writer: Writer<'_>,
) -> Result<Value, Failure> {
    Err(Failure::internal("not there yet"))
}
