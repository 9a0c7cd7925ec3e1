//! What the types and fields mean, in a sentence each: what `kubectl explain` prints.

use crate::schema::Struct;

pub(super) const API_VERSION: &str = "The group and version of the API that this object is written in.";
pub(super) const KIND: &str = "The kind of this object.";
pub(super) const LIST_METADATA: &str = "The version of the list, and where its next page begins.";
pub(super) const TIME: &str = "A time in the form of RFC 3339, to the second.";
pub(super) const MICRO_TIME: &str = "A time in the form of RFC 3339, to the microsecond.";
pub(super) const FIELDS: &str = "A set of fields, as a tree of their names.";
pub(super) const QUANTITY: &str = "An amount with a unit, such as 100m, 0.5 or 2Gi.";
pub(super) const INT_OR_STRING: &str = "A number or a string.";
pub(super) const ANY: &str = "Any object.";

/// What a type is.
pub fn of_type(_of: &Struct) -> Option<&'static str> {
    None
}

/// What a field means.
pub fn of_field(_of: &Struct, _field: &str) -> Option<&'static str> {
    None
}
