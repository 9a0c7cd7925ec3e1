//! Views of objects: the table `kubectl get` prints, and metadata alone.

use fairlead_api::value::{Map, Value, json};
use fairlead_api::{Kind, Look};

/// How much of each object a table row carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Include {
    /// Nothing.
    None,
    /// Its metadata, the default.
    Metadata,
    /// The whole object.
    Object,
}

impl Include {
    /// Reads `includeObject`; `None` for what it cannot be.
    pub(crate) fn parse(text: &str) -> Option<Include> {
        match text {
            "None" => Some(Include::None),
            "" | "Metadata" => Some(Include::Metadata),
            "Object" => Some(Include::Object),
            _ => None,
        }
    }
}

/// The objects as a `Table`.
pub(crate) fn table(
    kind: &Kind,
    version: &str,
    revision: &str,
    objects: &[Value],
    include: Include,
    now: i64,
) -> Value {
    let rows: Vec<Value> = objects.iter().map(|object| row(kind, version, object, include, now)).collect();
    json!({
        "kind": "Table",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": {"resourceVersion": revision},
        "columnDefinitions": columns(kind),
        "rows": rows,
    })
}

fn columns(kind: &Kind) -> Vec<Value> {
    let column = |c: &fairlead_api::kinds::Column| json!({"name": c.name, "type": c.kind, "format": c.format, "description": c.description, "priority": c.priority});
    kind.rules.columns.iter().map(column).collect()
}

/// Returns an object as a row of a `Table`.
pub(crate) fn row(kind: &Kind, version: &str, object: &Value, include: Include, now: i64) -> Value {
    let mut row = Map::new();
    row.insert("cells", (kind.rules.row)(object, now).into());
    match include {
        Include::None => {
            row.insert("object", Value::Null);
        }
        Include::Metadata => {
            row.insert("object", metadata(object, version));
        }
        Include::Object => {
            row.insert("object", object.clone());
        }
    }
    Value::Object(row)
}

/// The metadata of an object as `PartialObjectMetadata`.
pub(crate) fn metadata(object: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": object.at("metadata"),
    })
}

/// The metadata of many objects.
pub(crate) fn metadata_list(objects: &[Value], version: &str, revision: &str) -> Value {
    let items: Vec<Value> = objects.iter().map(|object| metadata(object, version)).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": {"resourceVersion": revision},
        "items": items,
    })
}
