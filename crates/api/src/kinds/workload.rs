//! Rules that the kinds which make Pods share: selectors, replica counts, `maxSurge` and
//! `maxUnavailable`, generations, status, and the columns about containers.

use crate::field::{FieldError, FieldErrors};
use crate::kinds::{Column, columns, pod::template};
use crate::look::Look;
use crate::selector::LabelSelector;
use crate::value::{Value, json};
use crate::{Path, meta, names};

/// The reason for a count below zero.
pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// The reason for a change of a field that is set once.
pub(super) const IMMUTABLE: &str = "field is immutable";

/// Sets a field that is absent.
pub(super) fn absent(value: &mut Value, name: &'static str, default: impl Into<Value>) {
    if value.at(name).is_null() {
        value.set(name, default);
    }
}

/// The object at `name`, made if it is absent.
pub(super) fn object_mut<'a>(value: &'a mut Value, name: &'static str) -> &'a mut Value {
    value.map_mut(name);
    value.get_mut(name).expect("made above")
}

/// Fills in the template of a spec.
pub(super) fn fill_template(spec: &mut Value) {
    template::fill(object_mut(spec, "template"));
}

/// Sets generation 1 and an empty status, as every new object has them. `status` names the fields
/// of a status that are written even when they are zero.
pub(super) fn begin(object: &mut Value, status: &[&'static str]) {
    object.map_mut("metadata").insert("generation", 1.into());
    let mut empty = json!({});
    for field in status {
        empty.set(*field, 0);
    }
    object.set("status", empty);
}

/// Keeps the status, and counts the generation if the spec has changed, or `more`.
pub(super) fn keep_status(object: &mut Value, old: &Value, more: bool) {
    object.set("status", old.at("status").clone());
    let changed = more || object.at("spec") != old.at("spec");
    set_generation(object, old.at("metadata").int("generation") + i64::from(changed));
}

pub(super) fn set_generation(object: &mut Value, generation: i64) {
    object.map_mut("metadata").insert("generation", generation.into());
}

/// Keeps everything but the status.
pub(super) fn keep_spec(object: &mut Value, old: &Value) {
    match old.get("spec") {
        Some(spec) => object.set("spec", spec.clone()),
        None => drop(object.unset("spec")),
    }
}

/// Adds a mistake for each of these fields that is below zero.
pub(super) fn not_negative(value: &Value, fields: &[&str], path: &Path, errors: &mut FieldErrors) {
    for field in fields {
        if let Some(number @ ..0) = value.int_opt(field) {
            errors.push(FieldError::invalid(&path.child(field), number, NOT_NEGATIVE));
        }
    }
}

/// Adds a mistake for each count of a status that is greater than another.
pub(super) fn not_greater(status: &Value, fields: &[&str], than: &str, shown: &str, errors: &mut FieldErrors) {
    for field in fields {
        let count = status.int(field);
        if count > status.int(than) {
            let detail = format!("cannot be greater than {shown}");
            errors.push(FieldError::invalid(&Path::new("status").child(field), count, detail));
        }
    }
}

/// Adds a mistake if `status.collisionCount` has become smaller.
pub(super) fn not_decremented(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let new = object.at("status").int_opt("collisionCount");
    let old = old.at("status").int_opt("collisionCount");
    if old.is_some_and(|old| new.is_none_or(|new| new < old)) {
        let path = Path::new("status").child("collisionCount");
        errors.push(FieldError::invalid(&path, new.unwrap_or_default(), "cannot be decremented"));
    }
}

/// Adds a mistake if a field differs from what is stored.
pub(super) fn unchanged(spec: &Value, old: &Value, field: &str, path: &Path, errors: &mut FieldErrors) {
    if spec.at(field) != old.at(field) {
        errors.push(FieldError::invalid(&path.child(field), spec.at(field), IMMUTABLE));
    }
}

/// Mistakes in a selector that must be there and must select something; `invalid` is the word for
/// one that cannot be used.
pub(super) fn validate_selector(
    selector: &Value,
    path: &Path,
    empty: &str,
    errors: &mut FieldErrors,
) -> Result<LabelSelector, String> {
    if selector.is_null() {
        errors.push(FieldError::required(path, ""));
    } else {
        errors.extend(meta::validate_label_selector(selector, false, path));
        validate_not_empty(selector, path, empty, errors);
    }
    LabelSelector::from_object(selector)
}

/// A selector that is there and selects everything.
pub(super) fn validate_not_empty(selector: &Value, path: &Path, empty: &str, errors: &mut FieldErrors) {
    let labels = selector.map("matchLabels").is_none_or(|labels| labels.is_empty());
    if !selector.is_null() && labels && selector.list("matchExpressions").is_empty() {
        errors.push(FieldError::invalid(path, selector, empty));
    }
}

/// Adds a mistake if the labels of a template are not selected. An empty selector is a mistake of
/// its own.
pub(super) fn validate_selected(selector: &LabelSelector, template: &Value, path: &Path, errors: &mut FieldErrors) {
    if !selector.is_everything() && !selector.selects(template) {
        let labels = template.at("metadata").at("labels");
        let path = path.child("metadata").child("labels");
        errors.push(FieldError::invalid(&path, labels, "`selector` does not match template `labels`"));
    }
}

/// A percentage: digits and `%`. None for anything else.
fn percent(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    let all = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    // A number that does not fit is greater than every bound it is compared with.
    all.then(|| digits.parse().unwrap_or(i64::MAX))
}

/// The number of a count or of a percentage, to be compared with zero.
pub(super) fn amount(value: &Value) -> i64 {
    let number = |text: &str| text.parse().unwrap_or_default();
    percent(value).or(value.as_i64()).or(value.as_str().map(number)).unwrap_or_default()
}

/// Adds a mistake if a value is neither a count nor a percentage.
pub(super) fn validate_amount(value: &Value, path: &Path, errors: &mut FieldErrors) {
    match value {
        Value::String(text) if percent(value).is_none() => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                          '93%', regex used for validation is '[0-9]+%')";
            errors.push(FieldError::invalid(path, text.as_str(), detail));
        }
        Value::String(_) => {}
        _ if amount(value) < 0 => errors.push(FieldError::invalid(path, amount(value), NOT_NEGATIVE)),
        _ => {}
    }
}

/// Adds a mistake if a percentage is over 100.
pub(super) fn validate_at_most_all(value: &Value, path: &Path, errors: &mut FieldErrors) {
    if percent(value).is_some_and(|percent| percent > 100) {
        errors.push(FieldError::invalid(path, value, "must not be greater than 100%"));
    }
}

/// Warns of a name that the names of Pods begin with and that is no DNS label.
pub(super) fn warn_of_name(object: &Value) -> Option<String> {
    let reasons = names::label(object.at("metadata").text("name"));
    let why = "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is \
               recommended";
    (!reasons.is_empty()).then(|| format!("metadata.name: {why}: [{}]", reasons.join(" ")))
}

/// Warnings about the template of a new object, or of one whose generation has changed.
pub(super) fn template_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let generation = |object: &Value| object.at("metadata").int("generation");
    if old.is_some_and(|old| generation(old) == generation(object)) {
        return Vec::new();
    }
    template::warnings(object.at("spec").at("template"), &Path::new("spec").child("template"))
}

/// The column `Containers` of `kubectl get -o wide`.
pub(super) const CONTAINERS: Column = columns::wide("Containers", "Names of each container in the template.");
/// The column `Images`.
pub(super) const IMAGES: Column = columns::wide("Images", "Images referenced by each container in the template.");
/// The column `Selector`.
pub(super) const SELECTOR: Column = columns::wide("Selector", "Which Pods belong to the object.");

/// A column of whole numbers.
pub(super) const fn number(name: &'static str, description: &'static str) -> Column {
    Column { kind: "integer", ..columns::text(name, description) }
}

/// Cells of the columns [`CONTAINERS`] and [`IMAGES`].
pub(super) fn container_cells(template: &Value) -> [Value; 2] {
    let containers = template.at("spec").list("containers");
    let joined = |field: &str| containers.iter().map(|c| c.text(field)).collect::<Vec<_>>().join(",");
    [joined("name").into(), joined("image").into()]
}

/// Cell of the column [`SELECTOR`].
pub(super) fn selector_cell(selector: &Value) -> Value {
    match LabelSelector::from_object(selector).map(|selector| selector.to_string()) {
        Ok(text) if text.is_empty() => "<none>".into(),
        Ok(text) => text.into(),
        Err(_) => "<error>".into(),
    }
}

/// Labels as `key=value`, sorted and joined with commas.
pub(super) fn labels_text(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    let mut pairs: Vec<String> =
        labels.map(|(key, value)| format!("{}={}", key.as_str(), value.as_str().unwrap_or_default())).collect();
    pairs.sort_unstable();
    pairs.join(",")
}

/// Labels in a cell.
pub(super) fn labels_cell(labels: &Value) -> Value {
    let text = labels_text(labels);
    if text.is_empty() { "<none>".into() } else { text.into() }
}

#[cfg(test)]
mod tests;
