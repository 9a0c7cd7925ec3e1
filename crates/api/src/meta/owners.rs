//! `metadata.ownerReferences`: who an object belongs to.

use crate::value::Value;

use crate::Look;
use crate::field::{FieldError, FieldErrors, Path};

/// Mistakes in references to owners. They are told without the index of the reference, as the reference server does.
pub fn validate_owners(owners: &[Value], path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut controller: Option<String> = None;
    let mut all: Option<Value> = None;
    for owner in owners {
        if errors.is_full() {
            break;
        }
        errors.extend(reference(owner, path));
        if !owner.flag("controller") {
            continue;
        }
        let name = format!("{}/{}", owner.text("kind"), owner.text("name"));
        match &controller {
            None => controller = Some(name),
            Some(first) => {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                errors.push(FieldError::invalid(path, &*all.get_or_insert_with(|| Value::from(owners)), why));
            }
        }
    }
    errors
}

fn reference(owner: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (group, version) = group_version(owner.text("apiVersion"));
    if version.is_empty() {
        let why = "version must not be empty";
        errors.push(FieldError::invalid(&path.child("apiVersion"), owner.text("apiVersion"), why));
    }
    for field in ["kind", "name", "uid"] {
        if owner.text(field).is_empty() {
            errors.push(FieldError::invalid(&path.child(field), "", "must not be empty"));
        }
    }
    // Events are gone after an hour; what they own would be gone with them.
    if (group, version, owner.text("kind")) == ("", "v1", "Event") {
        errors.push(FieldError::invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"));
    }
    errors
}

/// Group and version of an `apiVersion`; neither when it has more than one slash.
fn group_version(text: &str) -> (&str, &str) {
    match text.split_once('/') {
        None => ("", text),
        Some((_, version)) if version.contains('/') => ("", ""),
        Some((group, version)) => (group, version),
    }
}
