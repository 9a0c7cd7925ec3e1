//! The roles and bindings every cluster begins with, as `builtin.json` lists them: Kubernetes' own names and rules for the
//! kinds of clients that talk to us, and a few of ours.

use fairlead_api::value::{Value, json};
use fairlead_api::{Kind, Look, kinds};

use super::GROUP;

const TABLE: &str = include_str!("builtin.json");

/// The objects to write at start where they are missing, complete but for uid and creationTimestamp.
pub fn objects() -> Vec<(&'static Kind, Value)> {
    let rows: Vec<Value> = serde_json::from_str(TABLE).expect("builtin.json is part of the program and tested");
    rows.iter().filter_map(object).collect()
}

fn object(row: &Value) -> Option<(&'static Kind, Value)> {
    let kind = kinds::KINDS.iter().copied().find(|k| k.group == GROUP && k.kind == row.text("kind"))?;
    let mut labels = row.at("labels").clone();
    labels.set("kubernetes.io/bootstrapping", "rbac-defaults");
    let mut metadata = json!({"name": row.text("name")});
    if let Some(namespace) = row.text_opt("namespace") {
        metadata.set("namespace", namespace);
    }
    metadata.set("labels", labels);
    metadata.set("annotations", json!({"rbac.authorization.kubernetes.io/autoupdate": "true"}));
    let mut object = json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata});
    for field in ["aggregationRule", "rules", "roleRef", "subjects"] {
        if let Some(value) = row.get(field).filter(|value| field != "subjects" || **value != json!([])) {
            object.set(field, value.clone());
        }
    }
    Some((kind, object))
}
