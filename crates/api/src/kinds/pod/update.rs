//! Changes of a Pod that are not allowed. Almost none are: a Pod is replaced, not changed.

use std::collections::{BTreeSet, HashSet};

use crate::value::Value;

use super::scheduling;
use super::spec::MIRROR;
use crate::field::{FieldError, FieldErrors, MAX_SHOWN};
use crate::look::Look;
use crate::{Path, golang, names};

/// What an update may not change.
pub(super) fn validate(pod: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    validate_annotations(pod, old, &mut errors);
    let path = Path::new("spec");
    let (spec, before) = (pod.at("spec"), old.at("spec"));
    // Where containers differ in number, or the deadline is out of bounds, nothing else is looked at.
    let done = validate_images(spec, before, "containers", &path, &mut errors)
        && validate_images(spec, before, "initContainers", &path, &mut errors)
        && validate_deadline(spec, before, &path.child("activeDeadlineSeconds"), &mut errors);
    if !done {
        return errors;
    }
    validate_tolerations(spec, before, &path.child("tolerations"), &mut errors);
    validate_gates(spec, before, &path.child("schedulingGates"), &mut errors);
    let now = without_changeable(spec, before);
    if now != *before {
        let changes = changes(&now, before);
        let detail = format!("pod updates may not change fields other than {}\n{changes}", CHANGEABLE.join(","));
        errors.push(FieldError::forbidden(&path, detail));
    }
    errors
}

const CHANGEABLE: [&str; 5] = [
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
];

/// The fields that differ, as they were and as they should become.
fn changes(now: &Value, before: &Value) -> String {
    let keys =
        |spec: &Value| spec.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect::<BTreeSet<_>>();
    let mut text = String::new();
    for key in keys(before).union(&keys(now)).filter(|key| before.get(key) != now.get(key)) {
        let short = |spec: &Value| golang::json_short(spec.at(key), MAX_SHOWN);
        text.push_str(&format!("-{key}: {}\n+{key}: {}\n", short(before), short(now)));
    }
    text
}

/// Annotations that are set once.
pub(super) fn validate_annotations(pod: &Value, old: &Value, errors: &mut FieldErrors) {
    let path = Path::new("metadata").child("annotations").key(MIRROR);
    let value = |pod: &Value| pod.at("metadata").at("annotations").text_opt(MIRROR).map(str::to_owned);
    match (value(old), value(pod)) {
        (None, Some(_)) => errors.push(FieldError::forbidden(&path, "may not add mirror pod annotation")),
        (before, now) if before != now => {
            errors.push(FieldError::forbidden(&path, "may not remove or update mirror pod annotation"));
        }
        _ => {}
    }
}

fn validate_images(spec: &Value, before: &Value, list: &str, path: &Path, errors: &mut FieldErrors) -> bool {
    let path = path.child(list);
    if spec.list(list).len() != before.list(list).len() {
        errors.push(FieldError::forbidden(&path, "pod updates may not add or remove containers"));
        return false;
    }
    for (at, container) in spec.list(list).iter().enumerate() {
        let (image, path) = (container.text("image"), path.index(at).child("image"));
        if image.is_empty() {
            errors.push(FieldError::required(&path, ""));
        }
        if image.trim() != image {
            errors.push(FieldError::invalid(&path, image, "must not have leading or trailing whitespace"));
        }
    }
    true
}

/// A deadline may be set, and come nearer.
fn validate_deadline(spec: &Value, before: &Value, path: &Path, errors: &mut FieldErrors) -> bool {
    let old = before.int_opt("activeDeadlineSeconds");
    let Some(new) = spec.int_opt("activeDeadlineSeconds") else {
        if old.is_some() {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(path, &Value::Null, detail));
        }
        return true;
    };
    if let Some(reason) = names::in_range(new, 0, i32::MAX.into()).pop() {
        errors.push(FieldError::invalid(path, new, reason));
        return false;
    }
    if old.is_some_and(|old| old < new) {
        errors.push(FieldError::invalid(path, new, "must be less than or equal to previous value"));
        return false;
    }
    true
}

/// Tolerations may be added, and how long one holds may change.
fn validate_tolerations(spec: &Value, before: &Value, path: &Path, errors: &mut FieldErrors) {
    let timeless = |toleration: &Value| {
        let mut toleration = toleration.clone();
        toleration.unset("tolerationSeconds");
        toleration
    };
    let now: HashSet<Value> = spec.list("tolerations").iter().map(timeless).collect();
    if before.list("tolerations").iter().any(|old| !now.contains(&timeless(old))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        return errors.push(FieldError::forbidden(path, detail));
    }
    scheduling::validate_tolerations(spec.list("tolerations"), path, errors);
}

fn validate_gates(spec: &Value, before: &Value, path: &Path, errors: &mut FieldErrors) {
    let known: HashSet<&str> = before.list("schedulingGates").iter().map(|old| old.text("name")).collect();
    for (at, gate) in spec.list("schedulingGates").iter().enumerate() {
        let name = gate.text("name");
        if !known.contains(name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(&path.index(at).child("name"), detail));
        }
    }
}

/// The new spec with what may change set back.
fn without_changeable(spec: &Value, before: &Value) -> Value {
    let mut spec = spec.clone();
    for list in ["containers", "initContainers"] {
        let old = before.list(list);
        for (container, old) in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().zip(old) {
            restore(container, old, "image");
        }
    }
    for name in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(&mut spec, before, name);
    }
    if before.int("terminationGracePeriodSeconds") < 0 && spec.int("terminationGracePeriodSeconds") == 1 {
        restore(&mut spec, before, "terminationGracePeriodSeconds");
    }
    // A Pod that is held back may still be told where not to go.
    let gated = !before.list("schedulingGates").is_empty();
    let selector = before.map("nodeSelector").cloned().unwrap_or_default();
    if gated && selector.iter().all(|(key, value)| spec.at("nodeSelector").get(key) == Some(value)) {
        restore(&mut spec, before, "nodeSelector");
    }
    spec
}

fn restore(value: &mut Value, from: &Value, name: &'static str) {
    match from.get(name) {
        Some(old) => value.set(name, old.clone()),
        None => {
            value.unset(name);
        }
    }
}
