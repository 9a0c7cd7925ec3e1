//! Revisions of a Deployment: each is a ReplicaSet, known by its template and numbered by an
//! annotation (pkg/controller/deployment/util/deployment_util.go).

use std::collections::BTreeMap;

use fairlead_api::kinds::pod::privileges;
use serde_json::Value;

/// Label that tells the Pods of one ReplicaSet of a Deployment from those of another.
pub(super) const HASH_LABEL: &str = "pod-template-hash";
/// Number of the revision, on ReplicaSets and on the Deployment.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// Earlier revisions that had the same template, with commas between.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// `spec.replicas` of the Deployment when the ReplicaSet was last scaled.
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// Sum of `spec.replicas` and `maxSurge` of the Deployment at that time.
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// Maximum length of the list of earlier revisions.
const HISTORY_LENGTH: usize = 2000;
/// Annotations of a Deployment that its ReplicaSets do not get.
const NOT_COPIED: [&str; 7] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
    // The server decides about each object.
    privileges::ANNOTATION,
];

type Annotations = BTreeMap<String, String>;

/// True if two templates make the same Pods. The label with the hash does not count, nor do fields
/// that are null.
pub(super) fn same_template(one: &Value, other: &Value) -> bool {
    canonical_template(one) == canonical_template(other)
}

/// A template without the label of the hash and without null fields, with sorted keys.
fn canonical_template(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(HASH_LABEL);
    }
    canonical(&template)
}

fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, Value> = fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name, canonical(value)))
                .collect();
            sorted.into_iter().map(|(name, value)| (name.clone(), value)).collect()
        }
        Value::Array(items) => items.iter().map(canonical).collect(),
        other => other.clone(),
    }
}

/// The hash in the name of a template's ReplicaSet: FNV-1a of 32 bits, written with letters and
/// digits that make no words (k8s.io/apimachinery/pkg/util/rand, SafeEncodeString). `collisions`
/// counts the names that were in use.
pub(super) fn template_hash(template: &Value, collisions: Option<i32>) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut text = canonical_template(template).to_string();
    if let Some(collisions) = collisions {
        text.push_str(&collisions.to_string());
    }
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

/// The number of a revision; 0 if the annotation is absent or not a number.
pub(super) fn revision_of(annotations: &Annotations) -> i64 {
    annotations.get(REVISION).and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Copies the annotations of a Deployment to its ReplicaSet and gives the ReplicaSet at least this
/// revision.
pub(super) fn set_annotations(annotations: &mut Annotations, deployment: &Annotations, revision: i64) {
    for (name, value) in deployment.iter().filter(|(name, _)| !NOT_COPIED.contains(&name.as_str())) {
        annotations.insert(name.clone(), value.clone());
    }
    let old = annotations.get(REVISION).cloned();
    if revision_of(annotations) >= revision {
        return;
    }
    annotations.insert(REVISION.to_owned(), revision.to_string());
    let Some(old) = old else { return };
    let known = annotations.get(REVISION_HISTORY).filter(|history| !history.is_empty());
    let mut history: Vec<&str> = known.map(|history| history.split(',').collect()).unwrap_or_default();
    history.push(&old);
    while history.iter().map(|revision| revision.len() + 1).sum::<usize>() > HISTORY_LENGTH + 1 {
        history.remove(0);
    }
    let history = history.join(",");
    annotations.insert(REVISION_HISTORY.to_owned(), history);
}

/// Records the size of the Deployment on a ReplicaSet.
pub(super) fn set_sizes(annotations: &mut Annotations, desired: i32, max: i32) {
    annotations.insert(DESIRED_REPLICAS.to_owned(), desired.to_string());
    annotations.insert(MAX_REPLICAS.to_owned(), max.to_string());
}

/// The number in an annotation.
pub(super) fn number(annotations: &Annotations, name: &str) -> Option<i32> {
    annotations.get(name)?.parse().ok()
}

#[cfg(test)]
mod tests;
