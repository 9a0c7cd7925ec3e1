//! What may not change in `metadata` when an object is updated.

use std::collections::{BTreeSet, HashSet};

use crate::value::Value;

use super::{free_fields, metadata};
use crate::field::{FieldError, FieldErrors, MAX_MISTAKES};
use crate::{Look, golang};

/// Changes of metadata that are not allowed, and mistakes in what is free to change.
pub fn validate_update(object: &Value, old: &Value) -> FieldErrors {
    let (new, old) = (object.at("metadata"), old.at("metadata"));
    let mut errors = FieldErrors::new();
    if !old.at("deletionTimestamp").is_null() {
        errors.extend(new_finalizers(new, old));
    }
    if new.text("resourceVersion").is_empty() {
        errors.push(FieldError::invalid(&metadata("resourceVersion"), "", MUST_BE_SPECIFIED));
    }
    if new.int("generation") < old.int("generation") {
        errors.push(FieldError::invalid(&metadata("generation"), new.int("generation"), "must not be decremented"));
    }
    for field in ["name", "namespace", "uid"] {
        if new.text(field) != old.text(field) {
            errors.push(FieldError::invalid(&metadata(field), new.text(field), IMMUTABLE));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if new.at(field) != old.at(field) {
            errors.push(FieldError::invalid(&metadata(field), new.at(field), IMMUTABLE));
        }
    }
    errors.extend(free_fields(new, false));
    errors
}

/// What an update without resourceVersion is told by a kind that takes only conditional updates.
pub fn requires_resource_version() -> FieldError {
    FieldError::invalid(&metadata("resourceVersion"), 0, MUST_BE_SPECIFIED)
}

const IMMUTABLE: &str = "field is immutable";
const MUST_BE_SPECIFIED: &str = "must be specified for an update";

/// An object that is being deleted may lose finalizers, not gain them.
fn new_finalizers(new: &Value, old: &Value) -> Option<FieldError> {
    let had: HashSet<&str> = old.texts("finalizers").into_iter().collect();
    let added: BTreeSet<String> =
        new.texts("finalizers").into_iter().filter(|name| !had.contains(name)).map(golang::quote).collect();
    if added.is_empty() {
        return None;
    }
    let added: Vec<String> = added.into_iter().take(MAX_MISTAKES).collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    Some(FieldError::forbidden(&metadata("finalizers"), why))
}
