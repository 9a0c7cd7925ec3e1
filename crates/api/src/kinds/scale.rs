//! Scale: how many Pods an object wants, in the same form for every kind that has a count. It is
//! read from the object and written back into it; nothing is stored under its name.

use super::workload;
use super::{Rules, columns};
use crate::field::FieldErrors;
use crate::look::Look;
use crate::meta;
use crate::selector::LabelSelector;
use crate::value::{Map, Value, json};
use crate::{Failure, Kind, Path};

/// The rules.
pub static RULES: Rules = Rules {
    validate: |scale, _, _| validate(scale),
    columns: &[
        columns::NAME,
        workload::number("Desired", "How many Pods are asked for."),
        workload::number("Available", "How many Pods there are."),
        columns::AGE,
    ],
    row: |scale, now| {
        vec![
            columns::name(scale),
            scale.at("spec").int("replicas").into(),
            scale.at("status").int("replicas").into(),
            columns::age_of(scale, now),
        ]
    },
    ..Rules::PLAIN
};

fn validate(scale: &Value) -> FieldErrors {
    let mut errors = meta::validate(scale, &super::SCALE);
    workload::not_negative(scale.at("spec"), &["replicas"], &Path::new("spec"), &mut errors);
    errors
}

/// Returns the Scale of an object. It has no managedFields; [`managed_fields`] has those a write
/// begins with.
pub fn of_object(object: &Value) -> Result<Value, Failure> {
    let metadata = object.at("metadata");
    let spec = object.at("spec");
    let mut of_scale = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(field) {
            of_scale.set(field, value.clone());
        }
    }
    // The selector of a ReplicationController is a map of labels.
    let selector = match object.text("kind") {
        "ReplicationController" => workload::labels_text(spec.at("selector")),
        _ => LabelSelector::from_object(spec.at("selector")).map_err(Failure::bad_request)?.to_string(),
    };
    let mut status = json!({"replicas": object.at("status").int("replicas")});
    if !selector.is_empty() {
        status.set("selector", selector);
    }
    let mut scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1"});
    scale.set("metadata", of_scale);
    let replicas = spec.int("replicas");
    scale.set("spec", if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) });
    scale.set("status", status);
    Ok(scale)
}

/// Returns the managedFields of an object's Scale: an entry for each manager that owns
/// `spec.replicas`.
pub fn managed_fields(object: &Value) -> Vec<Value> {
    let entries = object.at("metadata").list("managedFields").iter();
    entries.filter(|entry| owns_replicas(entry)).map(|entry| replicas_entry(entry, "autoscaling/v1")).collect()
}

/// Writes a Scale into its object: the count, the version it is based on, and who owns the count.
pub fn store(kind: &Kind, object: &mut Value, scale: &Value) {
    let replicas = scale.at("spec").int("replicas");
    if let Some(spec) = object.get_mut("spec") {
        spec.set("replicas", replicas);
    }
    let managers = scale.at("metadata").list("managedFields");
    let same = |a: &Value, b: &Value| ["manager", "operation", "subresource"].iter().all(|f| a.at(f) == b.at(f));
    let mut entries = Vec::new();
    for entry in object.at("metadata").list("managedFields") {
        if !owns_replicas(entry) || managers.iter().any(|manager| same(manager, entry)) {
            entries.push(entry.clone());
        } else {
            entries.extend(without_replicas(entry));
        }
    }
    for manager in managers.iter().filter(|manager| owns_replicas(manager)) {
        let version = kind.api_version();
        match entries.iter_mut().find(|entry| same(entry, manager)) {
            Some(entry) if owns_replicas(entry) => {}
            _ => entries.push(replicas_entry(manager, &version)),
        }
    }
    // The order in which managed fields are written: appliers first, then by time.
    let order = |entry: &Value| {
        let applied = entry.text("operation") == "Apply";
        let names = ["time", "manager", "apiVersion", "subresource"].map(|field| entry.text(field).to_owned());
        (!applied, names)
    };
    entries.sort_by_cached_key(order);
    let version = scale.at("metadata").get("resourceVersion").cloned();
    let metadata = object.map_mut("metadata");
    if entries.is_empty() {
        metadata.shift_remove("managedFields");
    } else {
        metadata.insert("managedFields", entries.into());
    }
    match version {
        Some(version) => metadata.insert("resourceVersion", version),
        None => metadata.shift_remove("resourceVersion"),
    };
}

fn owns_replicas(entry: &Value) -> bool {
    entry.at("fieldsV1").at("f:spec").get("f:replicas").is_some()
}

/// An entry of the same manager that owns nothing but the count.
fn replicas_entry(entry: &Value, api_version: &str) -> Value {
    let mut entry = entry.clone();
    entry.set("apiVersion", api_version);
    entry.set("fieldsV1", json!({"f:spec": {"f:replicas": {}}}));
    entry
}

/// The entry without the count; none if that was all it had.
fn without_replicas(entry: &Value) -> Option<Value> {
    let mut entry = entry.clone();
    let fields = entry.get_mut("fieldsV1")?;
    let spec = fields.map_mut("f:spec");
    spec.shift_remove("f:replicas");
    if spec.is_empty() {
        fields.unset("f:spec");
    }
    let left = !fields.as_object().is_none_or(Map::is_empty);
    left.then_some(entry)
}
