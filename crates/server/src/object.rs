//! Objects as they are kept: where (the key), and how (JSON whose first fields are always kind and apiVersion).

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::schema::{self, Struct};
use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind, Look, decode, json, proto};
use fairlead_store::{Draft, Entry, Index};

/// The key of an object. A namespaced kind always has a namespace here.
pub(crate) fn key(kind: &'static Kind, namespace: &str, name: &str) -> Box<str> {
    format!("{}{name}", prefix(kind, namespace)).into()
}

/// The prefix of all objects of a kind, in one namespace or in all.
pub(crate) fn prefix(kind: &'static Kind, namespace: &str) -> String {
    let stored = stored(kind);
    if stored.namespaced && !namespace.is_empty() {
        format!("/registry/{}/{namespace}/", stored.store_prefix)
    } else {
        format!("/registry/{}/", stored.store_prefix)
    }
}

/// The kind an object of this kind is stored as.
pub(crate) fn stored(kind: &'static Kind) -> &'static Kind {
    match &kind.conversion {
        Some(conversion) => conversion.stored,
        None => kind,
    }
}

/// The text of an object for the store, in the stored kind's form. `resourceVersion` is left out; the store fills it in.
pub(crate) fn draft(kind: &Kind, object: &Value) -> Draft {
    match &kind.conversion {
        Some(conversion) => encode(&(conversion.store)(object)),
        None => encode(object),
    }
}

/// An object of a kind in the form it is stored in.
pub(crate) fn to_stored(kind: &Kind, object: Value) -> Value {
    match &kind.conversion {
        Some(conversion) => (conversion.store)(&object),
        None => object,
    }
}

/// A stored object in the form of the kind asked for.
pub(crate) fn from_stored(kind: &Kind, object: &Value) -> Value {
    match &kind.conversion {
        Some(conversion) => (conversion.load)(object),
        None => object.clone(),
    }
}

/// Writes an object with a gap for its resourceVersion: after the uid, where the reference server has it.
pub(crate) fn encode(object: &Value) -> Draft {
    let mut out = Vec::with_capacity(1024);
    let mut gap = 0;
    out.push(b'{');
    let fields = object.as_object().into_iter().flatten();
    for (name, value) in fields {
        if out.len() > 1 {
            out.push(b',');
        }
        write_name(&mut out, name);
        match value {
            Value::Object(metadata) if name == "metadata" => gap = encode_metadata(&mut out, metadata),
            other => write(&mut out, other),
        }
    }
    out.push(b'}');
    Draft { json: out.into(), gap }
}

/// Fields that stand before the resourceVersion.
const BEFORE: [&str; 5] = ["name", "generateName", "namespace", "selfLink", "uid"];

fn encode_metadata(out: &mut Vec<u8>, metadata: &fairlead_api::value::Map) -> usize {
    out.push(b'{');
    let before = metadata.iter().filter(|(name, _)| BEFORE.contains(&name.as_str()));
    for (name, value) in before {
        write_name(out, name);
        write(out, value);
        out.push(b',');
    }
    let gap = out.len();
    let mut rest = metadata
        .iter()
        .filter(|(name, _)| !BEFORE.contains(&name.as_str()) && name.as_str() != "resourceVersion")
        .peekable();
    if rest.peek().is_none() {
        // Something must follow the gap's comma.
        out.extend_from_slice(b"\"creationTimestamp\":null");
    }
    while let Some((name, value)) = rest.next() {
        write_name(out, name);
        write(out, value);
        if rest.peek().is_some() {
            out.push(b',');
        }
    }
    out.push(b'}');
    gap
}

/// A field's name and the colon after it.
fn write_name(out: &mut Vec<u8>, name: &str) {
    serde_json::to_writer(&mut *out, name).expect("text and memory do not fail");
    out.push(b':');
}

fn write(out: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(out, value).expect("JSON values and memory do not fail");
}

/// A stored object as a value of the kind asked for.
pub(crate) fn load(kind: &Kind, entry: &Entry) -> Result<Value, Failure> {
    let value: Value = serde_json::from_slice(&entry.json)
        .map_err(|error| Failure::internal(format!("the object at {} cannot be read: {error}", entry.key)))?;
    Ok(match &kind.conversion {
        Some(conversion) => (conversion.load)(&value),
        None => value,
    })
}

/// Whether a stored object may be on its way out. If its text does not speak of it, it is not.
pub(crate) fn may_be_leaving(entry: &Entry) -> bool {
    std::str::from_utf8(&entry.json).map_or(true, |text| text.contains("\"deletionTimestamp\""))
}

/// A stored object as text of the kind asked for: without work, if it is stored as that kind.
pub(crate) fn text(kind: &Kind, entry: &Entry) -> Result<Bytes, Failure> {
    match &kind.conversion {
        None => Ok(entry.json.clone()),
        Some(_) => Ok(serde_json::to_vec(&load(kind, entry)?).unwrap_or_default().into()),
    }
}

/// How every stored object of a kind begins.
pub(crate) fn head(kind: &Kind) -> String {
    format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", kind.kind, kind.api_version())
}

/// What selectors look at in an object of this kind, remembered in the entry where possible.
pub(crate) fn with_index<T>(kind: &Kind, entry: &Arc<Entry>, look: impl FnOnce(&Index) -> T) -> T {
    if kind.conversion.is_some() {
        return look(&index(kind, entry));
    }
    look(entry.index.get_or_init(|| index(kind, entry)))
}

fn index(kind: &Kind, entry: &Entry) -> Index {
    // The kind reads its fields from the stored form, whichever version is asked for.
    let Ok(object) = serde_json::from_slice::<Value>(&entry.json) else { return Index::default() };
    let labels = object.at("metadata").map("labels").into_iter().flatten();
    Index {
        labels: labels.map(|(k, v)| (k.as_str().into(), v.as_str().unwrap_or_default().into())).collect(),
        fields: kind.rules.selectable.iter().map(|(name, value)| (*name, value(&object))).collect(),
    }
}

/// Reads a value that another program wrote to the store: JSON or Kubernetes protobuf. For the etcd backend.
pub fn read_foreign(key: &str, value: &[u8]) -> Result<Draft, String> {
    let Some((schema, kind, api_version)) = schema_of(key) else {
        return json::parse(value).map(|parsed| encode(&parsed.value));
    };
    let object = if value.starts_with(b"k8s\0") {
        let envelope = proto::unwrap(value).map_err(|e| e.to_string())?;
        proto::read(schema, envelope.raw).map_err(|e| e.to_string())?
    } else {
        json::parse(value)?.value
    };
    let mut object = decode::decode(schema, object).map_err(|e| e.to_string())?.value;
    crate::body::set_type(&mut object, &crate::body::Expected::message(kind, &api_version, schema));
    Ok(encode(&object))
}

/// What is kept under a key.
fn schema_of(key: &str) -> Option<(&'static Struct, &'static str, String)> {
    let (_, rest) = key.split_once("/registry/")?;
    if rest.starts_with("ranges/") {
        return Some((&schema::core::RANGE_ALLOCATION, "RangeAllocation", "v1".to_owned()));
    }
    // The leases of API servers have the form of Endpoints (pkg/controlplane/reconcilers/lease.go).
    if rest.starts_with("masterleases/") {
        return Some((fairlead_api::kinds::ENDPOINTS.schema, "Endpoints", "v1".to_owned()));
    }
    let kinds = fairlead_api::kinds::KINDS.iter().filter(|k| k.conversion.is_none() && !k.store_prefix.is_empty());
    let mut of_key = kinds.filter(|k| rest.strip_prefix(k.store_prefix).is_some_and(|rest| rest.starts_with('/')));
    of_key.next().map(|kind| (kind.schema, kind.kind, kind.api_version()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_api::kinds;
    use fairlead_api::value::json;
    use fairlead_store::Revision;

    #[test]
    fn the_resource_version_stands_after_the_uid() {
        let object = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "a", "uid": "u", "creationTimestamp": "t"}});
        let text = encode(&object).at(Revision(7));
        let expected = r#"{"kind":"Service","apiVersion":"v1","metadata":{"name":"a","uid":"u","resourceVersion":"7","creationTimestamp":"t"}}"#;
        assert_eq!(text, expected);
        assert!(expected.starts_with(&head(&kinds::SERVICE)));
    }

    #[test]
    fn an_old_resource_version_is_not_written() {
        let object = json!({"metadata": {"resourceVersion": "3"}});
        let text = encode(&object).at(Revision(4));
        assert_eq!(text, r#"{"metadata":{"resourceVersion":"4","creationTimestamp":null}}"#);
    }
}
