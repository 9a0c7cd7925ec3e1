//! What the types and fields mean, in a sentence each: what `kubectl explain` prints.

use crate::schema::Struct;

mod apps;
mod endpoints;
mod meta;
mod service;
mod workloads;

pub(super) const API_VERSION: &str = "The group and version of the API that this object is written in.";
pub(super) const KIND: &str = "The kind of this object.";
pub(super) const LIST_METADATA: &str = "The version of the list, and where its next page begins.";
pub(super) const TIME: &str = "A time in the form of RFC 3339, to the second.";
pub(super) const MICRO_TIME: &str = "A time in the form of RFC 3339, to the microsecond.";
pub(super) const FIELDS: &str = "A set of fields, as a tree of their names.";
pub(super) const QUANTITY: &str = "An amount with a unit, such as 100m, 0.5 or 2Gi.";
pub(super) const INT_OR_STRING: &str = "A number or a string.";
pub(super) const ANY: &str = "Any object.";

/// The texts of one type.
#[derive(Debug)]
pub struct Text {
    /// The type, with the last two parts of its package: `core.v1.Service`.
    pub of: &'static str,
    /// What it is.
    pub text: &'static str,
    /// What its fields mean, by name.
    pub fields: &'static [(&'static str, &'static str)],
}

const fn of(of: &'static str, text: &'static str, fields: &'static [(&'static str, &'static str)]) -> Text {
    Text { of, text, fields }
}

/// Every text there is.
pub fn all() -> impl Iterator<Item = &'static Text> {
    [service::TEXTS, endpoints::TEXTS, meta::TEXTS, apps::TEXTS, workloads::TEXTS].into_iter().flatten()
}

/// What a type is.
pub fn of_type(of: &Struct) -> Option<&'static str> {
    find(of).map(|text| text.text)
}

/// What a field means.
pub fn of_field(of: &Struct, field: &str) -> Option<&'static str> {
    find(of)?.fields.iter().find(|(name, _)| *name == field).map(|(_, text)| *text)
}

fn find(of: &Struct) -> Option<&'static Text> {
    all().find(|text| is_about(text, of))
}

/// Whether the text is about that type.
pub(super) fn is_about(text: &Text, of: &Struct) -> bool {
    let Some((package, name)) = text.of.rsplit_once('.') else { return false };
    name == of.name && of.package.strip_suffix(package).is_some_and(|rest| rest.ends_with('.'))
}
