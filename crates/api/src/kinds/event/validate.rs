//! What is wrong with an Event.

use crate::value::{Value, json};

use crate::field::{FieldError, FieldErrors, Path, invalid};
use crate::{Look, names};

const MAX_WORD: usize = 128;
const MAX_MESSAGE: usize = 1024;

/// What every event must have. Only events with an `eventTime`, which older clients do not send, need much.
/// `reporter` is the field of the reporting component in the group that was asked.
pub(super) fn lenient(event: &Value, reporter: &str) -> FieldErrors {
    let namespace = event.at("metadata").text("namespace");
    let newer = !event.text("eventTime").is_empty();
    let mut errors = FieldErrors::new();
    if !namespaces_agree(event, namespace, newer) {
        let path = Path::new("involvedObject").child("namespace");
        let why = "does not match event.namespace";
        errors.push(FieldError::invalid(&path, event.at("involvedObject").text("namespace"), why));
    }
    if newer {
        errors.extend(complete(event, reporter));
    }
    errors.extend(invalid(&Path::new("namespace"), namespace, names::subdomain(namespace)));
    errors
}

/// What `events.k8s.io` demands beyond that, for new events.
pub(super) fn strict(event: &Value, new: bool) -> FieldErrors {
    let mut errors = lenient(event, "reportingController");
    if !new {
        return errors;
    }
    errors.extend(series(event.at("series")));
    if event.text("eventTime").is_empty() {
        errors.push(FieldError::required(&Path::new("eventTime"), ""));
    }
    let kind = event.text("type");
    if !["Normal", "Warning"].contains(&kind) {
        errors.push(FieldError::invalid(&Path::new("type"), "", format!("has invalid value: {kind}")));
    }
    let source = event.at("source");
    let set = [
        ("firstTimestamp", !event.text("firstTimestamp").is_empty()),
        ("lastTimestamp", !event.text("lastTimestamp").is_empty()),
        ("count", event.int("count") != 0),
        ("source", !(source.text("component").is_empty() && source.text("host").is_empty())),
    ];
    for (field, _) in set.into_iter().filter(|(_, set)| *set) {
        errors.push(FieldError::invalid(&Path::new(field), "", "needs to be unset"));
    }
    errors
}

/// What `events.k8s.io` lets change: the series and the metadata.
pub(super) fn change(event: &Value, old: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if event.at("series") != old.at("series") {
        errors.extend(series(event.at("series")));
    }
    // `reason` is told twice, as the reference server does.
    let fields = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ];
    for field in fields.into_iter().filter(|field| event.at(field) != old.at(field)) {
        let path = Path::new(if field == "reportingComponent" { "reportingController" } else { field });
        errors.push(FieldError::invalid(&path, &shown(field, event.at(field)), "field is immutable"));
    }
    errors
}

fn namespaces_agree(event: &Value, namespace: &str, newer: bool) -> bool {
    match (event.at("involvedObject").text("namespace"), newer) {
        // Events about objects outside of namespaces are kept in these.
        ("", true) => ["default", "kube-system"].contains(&namespace),
        ("", false) => ["default", ""].contains(&namespace),
        (_, true) => true,
        (involved, false) => involved == namespace,
    }
}

fn complete(event: &Value, reporter: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let component = event.text("reportingComponent");
    if component.is_empty() {
        errors.push(FieldError::required(&Path::new(reporter), ""));
    }
    errors.extend(invalid(&Path::new(reporter), component, names::label_key(component)));
    for field in ["reportingInstance", "action", "reason"] {
        if event.text(field).is_empty() {
            errors.push(FieldError::required(&Path::new(field), ""));
        }
        errors.extend(at_most(event, field, MAX_WORD));
    }
    errors.extend(at_most(event, "message", MAX_MESSAGE));
    errors
}

fn at_most(event: &Value, field: &str, max: usize) -> Option<FieldError> {
    let why = || format!("can have at most {max} characters");
    (event.text(field).len() > max).then(|| FieldError::invalid(&Path::new(field), "", why()))
}

fn series(series: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if series.is_null() {
        return errors;
    }
    if series.int("count") < 2 {
        errors.push(FieldError::invalid(&Path::new("series.count"), "", "should be at least 2"));
    }
    if series.text("lastObservedTime").is_empty() {
        errors.push(FieldError::required(&Path::new("series.lastObservedTime"), ""));
    }
    errors
}

/// A value as the reference server shows it: by the names of its internal types.
fn shown(field: &str, value: &Value) -> Value {
    match (field, value) {
        ("related", Value::Null) => Value::Null,
        ("involvedObject" | "related", _) => json!({
            "Kind": value.text("kind"), "Namespace": value.text("namespace"), "Name": value.text("name"),
            "UID": value.text("uid"), "APIVersion": value.text("apiVersion"),
            "ResourceVersion": value.text("resourceVersion"), "FieldPath": value.text("fieldPath"),
        }),
        ("source", _) => json!({"Component": value.text("component"), "Host": value.text("host")}),
        ("count", _) => value.as_i64().unwrap_or_default().into(),
        ("firstTimestamp" | "lastTimestamp" | "eventTime", _) => value.clone(),
        _ => value.as_str().unwrap_or_default().into(),
    }
}
