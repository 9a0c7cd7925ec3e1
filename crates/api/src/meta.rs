//! `metadata`, which every object has: its rules on create and update.

use serde_json::Value;

use crate::Kind;
use crate::field::FieldErrors;

/// Mistakes in the metadata of an object (name, namespace, labels, annotations, finalizers, owners, managedFields).
pub fn validate(_object: &Value, _kind: &Kind) -> FieldErrors {
    FieldErrors::new()
}

/// Changes of metadata that are not allowed.
pub fn validate_update(_object: &Value, _old: &Value) -> FieldErrors {
    FieldErrors::new()
}
