//! `metadata`, which every object has: its rules on create and update, and the shapes names may have.

use crate::value::Value;

use crate::field::{FieldError, FieldErrors, Path, invalid};
use crate::names::Reasons;
use crate::{Kind, Look, golang, names};

mod change;
mod owners;

pub use change::{requires_resource_version, validate_update};
pub use owners::validate_owners;

/// Which rules of metadata a kind checks by itself, on top of those that hold for every object. The reference server
/// checks some things twice, and then tells them twice.
#[derive(Debug, Clone, Copy)]
pub struct Checks {
    /// On create.
    pub create: &'static [Check],
    /// On update, in this order.
    pub update: &'static [Check],
    /// On a write to `status`.
    pub status: &'static [Check],
    /// Whether finalizers must be qualified (`example.com/name`) or one of the few standard ones.
    pub qualified_finalizers: bool,
}

/// A set of rules of metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Everything about the new metadata, with the kind's own rule for names.
    Whole,
    /// What may change.
    Change,
}

impl Checks {
    /// What most kinds check.
    pub const USUAL: Checks = Checks {
        create: &[Check::Whole],
        update: &[Check::Change, Check::Whole],
        status: &[Check::Change],
        qualified_finalizers: true,
    };
    /// As usual, but on update only what changed.
    pub const CHANGE_ONLY: Checks = Checks { update: &[Check::Change], ..Checks::USUAL };
    /// As usual, but on update the new metadata is checked before its changes.
    pub const WHOLE_FIRST: Checks = Checks { update: &[Check::Whole, Check::Change], ..Checks::USUAL };
    /// Nothing beyond what holds for every object.
    pub const NONE: Checks = Checks { create: &[], update: &[], status: &[], qualified_finalizers: false };
}

/// Mistakes in the metadata of an object, by the kind's own rule for names.
pub fn validate(object: &Value, kind: &Kind) -> FieldErrors {
    whole(object.at("metadata"), kind.namespaced, kind.rules.name)
}

/// Mistakes in the metadata of an object, with the one rule for names that every kind has: they are a piece of a URL.
pub fn validate_any(object: &Value, kind: &Kind) -> FieldErrors {
    whole(object.at("metadata"), kind.namespaced, path_segment)
}

/// Finalizers that are neither qualified nor standard.
pub fn validate_finalizer_names(object: &Value) -> FieldErrors {
    let path = metadata("finalizers");
    let names = object.at("metadata").texts("finalizers");
    let plain = |name: &str| !name.contains('/') && !["kubernetes", ORPHAN, FOREGROUND].contains(&name);
    names
        .iter()
        .enumerate()
        .filter(|(_, name)| plain(name))
        .map(|(index, name)| {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            FieldError::invalid(&path.index(index), *name, why)
        })
        .collect()
}

/// Mistakes in labels, all told at the same path.
pub fn validate_labels(labels: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        if errors.is_full() {
            break;
        }
        let value = value.as_str().unwrap_or_default();
        errors.extend(invalid(path, key, names::label_key(key)));
        errors.extend(invalid(path, value, names::label_value(value)));
    }
    errors
}

/// Mistakes in a `LabelSelector`. With `any_value` values need not be valid label values.
pub fn validate_label_selector(selector: &Value, any_value: bool, path: &Path) -> FieldErrors {
    let mut errors = validate_labels(selector.at("matchLabels"), &path.child("matchLabels"));
    for (index, expression) in selector.list("matchExpressions").iter().enumerate() {
        errors.extend(selector_requirement(expression, any_value, &path.child("matchExpressions").index(index)));
    }
    errors
}

fn selector_requirement(requirement: &Value, any_value: bool, path: &Path) -> FieldErrors {
    let values = requirement.texts("values");
    let values_path = path.child("values");
    let operator = requirement.text("operator");
    let mut errors = match operator {
        "In" | "NotIn" if values.is_empty() => FieldErrors::from([FieldError::required(
            &values_path,
            "must be specified when `operator` is 'In' or 'NotIn'",
        )]),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            FieldErrors::from([FieldError::forbidden(&values_path, why)])
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => FieldErrors::new(),
        other => {
            FieldErrors::from([FieldError::invalid(&path.child("operator"), other, "not a valid selector operator")])
        }
    };
    let key = requirement.text("key");
    errors.extend(invalid(&path.child("key"), key, names::label_key(key)));
    if !any_value {
        for (index, value) in values.iter().enumerate() {
            errors.extend(invalid(&values_path.index(index), value, names::label_value(value)));
        }
    }
    errors
}

/// Reasons against a name that must be a subdomain, or against the beginning of one.
pub fn subdomain_name(name: &str, prefix: bool) -> Reasons {
    names::subdomain(&if prefix { without_trailing_dash(name) } else { name.to_owned() })
}

/// Reasons against a name that must be a label, or against the beginning of one.
pub fn label_name(name: &str, prefix: bool) -> Reasons {
    names::label(&if prefix { without_trailing_dash(name) } else { name.to_owned() })
}

/// The metadata an object has after a write to its `status`: that of the old object but for what identifies the write.
pub fn keep_for_status(object: &mut Value, old: &Value) {
    const OF_OLD: [&str; 7] =
        ["deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"];
    let old = old.at("metadata");
    let metadata = object.map_mut("metadata");
    for name in OF_OLD {
        match old.get(name) {
            Some(value) => metadata.insert(name, value.clone()),
            None => metadata.shift_remove(name),
        };
    }
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// Keys and values of all annotations together.
const MAX_ANNOTATIONS: usize = 256 * 1024;
const MAX_MANAGER: usize = 128;
const MAX_SUBRESOURCE: usize = 256;

fn metadata(name: &str) -> Path {
    Path::new("metadata").child(name)
}

fn whole(meta: &Value, namespaced: bool, name_rule: fn(&str, bool) -> Reasons) -> FieldErrors {
    let mut errors = name(meta, name_rule);
    errors.extend(namespace(meta, namespaced));
    if meta.int("generation") < 0 {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&metadata("generation"), meta.int("generation"), why));
    }
    errors.extend(free_fields(meta, true));
    errors
}

fn name(meta: &Value, rule: fn(&str, bool) -> Reasons) -> FieldErrors {
    let check = |field: &str, value: &str, prefix: bool| invalid(&metadata(field), value, rule(value, prefix));
    let (prefix, name) = (meta.text("generateName"), meta.text("name"));
    let mut errors = if prefix.is_empty() { FieldErrors::new() } else { check("generateName", prefix, true) };
    if name.is_empty() {
        errors.push(FieldError::required(&metadata("name"), "name or generateName is required"));
    } else {
        errors.extend(check("name", name, false));
    }
    errors
}

fn namespace(meta: &Value, namespaced: bool) -> FieldErrors {
    let (path, value) = (metadata("namespace"), meta.text("namespace"));
    match (namespaced, value) {
        (true, "") => FieldErrors::from([FieldError::required(&path, "")]),
        (true, _) => invalid(&path, value, names::label(value)),
        (false, "") => FieldErrors::new(),
        (false, _) => FieldErrors::from([FieldError::forbidden(&path, "not allowed on this type")]),
    }
}

/// What a user writes freely: labels, annotations, owners, finalizers, managedFields.
fn free_fields(meta: &Value, finalizers_too: bool) -> FieldErrors {
    let mut errors = validate_labels(meta.at("labels"), &metadata("labels"));
    errors.extend(validate_annotations(meta.at("annotations"), &metadata("annotations")));
    errors.extend(validate_owners(meta.list("ownerReferences"), &metadata("ownerReferences")));
    if finalizers_too {
        errors.extend(finalizers(&meta.texts("finalizers"), meta.at("finalizers")));
    }
    errors.extend(managed_fields(meta.list("managedFields")));
    errors
}

/// Mistakes in annotations, all told at the same path.
pub fn validate_annotations(annotations: &Value, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        if errors.is_full() {
            break;
        }
        // Unlike that of a label, the prefix of an annotation's key may have capitals.
        errors.extend(invalid(path, key, names::label_key(&key.to_lowercase())));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATIONS {
        errors.push(FieldError::too_long(path, MAX_ANNOTATIONS));
    }
    errors
}

fn finalizers(names: &[&str], shown: &Value) -> FieldErrors {
    let path = metadata("finalizers");
    let mut errors: FieldErrors = names.iter().flat_map(|name| invalid(&path, name, names::label_key(name))).collect();
    if names.contains(&ORPHAN) && names.contains(&FOREGROUND) {
        let why = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        errors.push(FieldError::invalid(&path, shown, why));
    }
    errors
}

fn managed_fields(entries: &[Value]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (index, entry) in entries.iter().enumerate() {
        if errors.is_full() {
            break;
        }
        let path = metadata("managedFields").index(index);
        let operation = entry.text("operation");
        if !["Apply", "Update"].contains(&operation) {
            errors.push(FieldError::invalid(&path.child("operation"), operation, "must be `Apply` or `Update`"));
        }
        let fields_type = entry.text("fieldsType");
        if !["", "FieldsV1"].contains(&fields_type) {
            errors.push(FieldError::invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(validate_manager(entry.text("manager"), &path.child("manager")));
        if entry.text("subresource").len() > MAX_SUBRESOURCE {
            errors.push(FieldError::too_long(&path.child("subresource"), MAX_SUBRESOURCE));
        }
    }
    errors
}

/// Mistakes in the name of a field manager, in `managedFields` or in the query of a request: its
/// length, or else its first character that cannot be printed. (kube-apiserver lists every such
/// character, each with the whole name.)
pub fn validate_manager(manager: &str, path: &Path) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if manager.len() > MAX_MANAGER {
        errors.push(FieldError::too_long(path, MAX_MANAGER));
        return errors;
    }
    if let Some((at, c)) = manager.char_indices().find(|(_, c)| !golang::is_print(*c)) {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        errors.push(FieldError::invalid(path, manager, why));
    }
    errors
}

fn path_segment(name: &str, prefix: bool) -> Reasons {
    // A prefix of dots becomes a good name by what is appended to it.
    if prefix && (name == "." || name == "..") { Reasons::new() } else { names::path_segment(name) }
}

/// A dash at the end of a prefix is no mistake: what is appended ends the name. The reference server looks at a text in
/// which the dash and the character before it have made way for a letter, so that character may be anything.
fn without_trailing_dash(name: &str) -> String {
    match name.strip_suffix('-').filter(|rest| !rest.is_empty()) {
        Some(rest) => {
            let kept = rest.char_indices().last().map_or(0, |(at, _)| at);
            format!("{}a", &rest[..kept])
        }
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
