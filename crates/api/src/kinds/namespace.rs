//! Rules of Namespace.

use crate::value::{Value, json};

use super::{Column, Rules};
use crate::age::age;
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::schema::core::NAMESPACE;
use crate::{Path, Settings, names};

/// The rules. The server calls `default` once more when a generated name is known.
pub static RULES: Rules = Rules {
    metadata: crate::meta::Checks::CHANGE_ONLY,
    name: |name, prefix| {
        let name = if prefix { name.strip_suffix('-').unwrap_or(name) } else { name };
        names::label(name)
    },
    default: |namespace, _| default(namespace),
    prepare_create,
    prepare_update,
    prepare_status,
    validate: |namespace, _, _| validate(namespace),
    validate_status: |namespace, _, _| validate_status(namespace),
    selectable: &[("status.phase", |namespace| namespace.at("status").text("phase").to_owned())],
    columns: COLUMNS,
    row: |namespace, now| {
        let metadata = namespace.at("metadata");
        let age = age(metadata.text("creationTimestamp"), now);
        vec![metadata.at("name").clone(), namespace.at("status").text("phase").into(), age.into()]
    },
    ..Rules::PLAIN
};

/// Begins the end of a namespace: nothing new is made in it, and it stays until [`is_finalized`]. `now` is the time in the
/// form of the API.
pub fn terminate(namespace: &mut Value, now: &str) {
    let metadata = namespace.map_mut("metadata");
    metadata.entry("deletionTimestamp").or_insert_with(|| now.into());
    namespace.map_mut("status").insert("phase", "Terminating".into());
    NAMESPACE.arrange(namespace);
}

/// What the `finalize` subresource writes: the finalizers of the spec, and no status.
pub fn prepare_finalize(namespace: &mut Value, old: &Value) {
    namespace.set("status", old.at("status").clone());
    NAMESPACE.arrange(namespace);
}

/// Mistakes in a write to `finalize`.
pub fn validate_finalize(namespace: &Value) -> FieldErrors {
    let path = Path::new("spec").child("finalizers");
    let mut errors = FieldErrors::new();
    for (at, name) in namespace.at("spec").texts("finalizers").iter().enumerate() {
        validate_finalizer(name, &path.index(at), &mut errors);
    }
    errors
}

/// Whether nothing holds a deleted namespace any more, so that it can go.
pub fn is_finalized(namespace: &Value) -> bool {
    !namespace.at("metadata").at("deletionTimestamp").is_null()
        && namespace.at("spec").list("finalizers").is_empty()
        && namespace.at("metadata").list("finalizers").is_empty()
}

/// Namespaces that are always there.
pub const KEPT: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The label that always is the name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

fn default(namespace: &mut Value) {
    if namespace.at("status").text("phase").is_empty() {
        namespace.map_mut("status").insert("phase", "Active".into());
    }
    let name = namespace.at("metadata").text("name").to_owned();
    if name.is_empty() {
        return;
    }
    let mut labels = namespace.at("metadata").map("labels").cloned().unwrap_or_default();
    labels.insert(NAME_LABEL.to_owned(), name.into());
    labels.sort_keys();
    namespace.map_mut("metadata").insert("labels", labels.into());
}

fn prepare_create(namespace: &mut Value, _: &Settings) {
    namespace.set("status", json!({"phase": "Active"}));
    let mut finalizers = namespace.at("spec").list("finalizers").to_vec();
    if !finalizers.iter().any(|name| name == "kubernetes") {
        finalizers.push("kubernetes".into());
    }
    namespace.map_mut("spec").insert("finalizers", finalizers.into());
    NAMESPACE.arrange(namespace);
}

fn prepare_update(namespace: &mut Value, old: &Value, _: &Settings) {
    namespace.set("status", old.at("status").clone());
    match old.at("spec").get("finalizers") {
        Some(finalizers) => namespace.map_mut("spec").insert("finalizers", finalizers.clone()),
        None => namespace.map_mut("spec").shift_remove("finalizers"),
    };
    NAMESPACE.arrange(namespace);
}

fn prepare_status(namespace: &mut Value, old: &Value, _: &Settings) {
    namespace.set("spec", old.at("spec").clone());
    NAMESPACE.arrange(namespace);
}

fn validate(namespace: &Value) -> FieldErrors {
    let path = Path::new("spec").child("finalizers");
    let mut errors = FieldErrors::new();
    for name in namespace.at("spec").texts("finalizers") {
        validate_finalizer(name, &path, &mut errors);
    }
    errors
}

fn validate_finalizer(name: &str, path: &Path, errors: &mut FieldErrors) {
    errors.extend(names::label_key(name).into_iter().map(|reason| FieldError::invalid(path, name, reason)));
    if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
    }
}

/// The phase follows from whether the namespace is being deleted.
fn validate_status(namespace: &Value) -> FieldErrors {
    let phase = namespace.at("status").text("phase");
    let (wanted, when) = match namespace.at("metadata").at("deletionTimestamp").is_null() {
        true => ("Active", "is empty"),
        false => ("Terminating", "is not empty"),
    };
    if phase == wanted {
        return FieldErrors::new();
    }
    let detail = format!("may only be '{wanted}' if `deletionTimestamp` {when}");
    FieldErrors::from([FieldError::invalid(&Path::new("status").child("Phase"), phase, detail)])
}

const COLUMNS: &[Column] = &[
    Column { name: "Name", kind: "string", format: "name", description: "Name of the object.", priority: 0 },
    Column { name: "Status", kind: "string", format: "", description: "The status of the namespace.", priority: 0 },
    Column { name: "Age", kind: "string", format: "", description: "The time since the object was made.", priority: 0 },
];

#[cfg(test)]
mod tests;
