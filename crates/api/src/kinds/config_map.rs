//! ConfigMap: configuration that is no secret.

use crate::value::{Map, Value};

use super::{Rules, columns};
use crate::field::{FieldError, FieldErrors, Path, invalid};
use crate::{Look, Settings, names};

/// The rules.
pub static RULES: Rules = Rules {
    validate,
    validate_update: |object, old, _| frozen(object, old, &["data", "binaryData"]),
    columns: &[columns::NAME, columns::text("Data", "How many keys it has."), columns::AGE],
    row: |object, now| {
        let count = size(object.map("data")) + size(object.map("binaryData"));
        vec![columns::name(object), count.into(), columns::age_of(object, now)]
    },
    ..Rules::PLAIN
};

/// What all values of a ConfigMap or Secret may have together, in bytes.
pub(super) const MAX_SIZE: usize = 1024 * 1024;

fn validate(object: &Value, _: Option<&Value>, _: &Settings) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut total = 0;
    for (key, value) in object.map("data").into_iter().flatten() {
        let path = Path::new("data").key(key);
        errors.extend(invalid(&path, key, names::config_key(key)));
        if !object.at("binaryData").at(key).is_null() {
            errors.push(FieldError::invalid(&path, key, "duplicate of key present in binaryData"));
        }
        total += value.as_str().map_or(0, str::len);
    }
    for (key, value) in object.map("binaryData").into_iter().flatten() {
        errors.extend(invalid(&Path::new("binaryData").key(key), key, names::config_key(key)));
        total += bytes(value);
    }
    if total > MAX_SIZE {
        // The path of the whole object is empty.
        errors.push(FieldError::too_long(&Path::new(""), MAX_SIZE));
    }
    errors
}

/// Changes to what was declared immutable.
pub(super) fn frozen(object: &Value, old: &Value, fields: &[&str]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if !old.flag("immutable") {
        return errors;
    }
    let why = "field is immutable when `immutable` is set";
    if !object.flag("immutable") {
        errors.push(FieldError::forbidden(&Path::new("immutable"), why));
    }
    for field in fields.iter().filter(|field| object.at(field) != old.at(field)) {
        errors.push(FieldError::forbidden(&Path::new(field), why));
    }
    errors
}

/// How many bytes a text in base64 stands for.
pub(super) fn bytes(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|c| *c == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

/// How many entries a map has.
pub(super) fn size(map: Option<&Map>) -> usize {
    map.map_or(0, Map::len)
}
