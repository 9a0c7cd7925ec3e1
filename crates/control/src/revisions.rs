//! Revisions of a DaemonSet or StatefulSet: each template it had is kept in a ControllerRevision,
//! so that `kubectl rollout undo` can return to it and Pods can be told apart by the template they
//! were made from (pkg/controller/history).

use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::view::{Meta, View};
use fairlead_api::{Kind, Look, kinds};
use fairlead_cluster::controller::{ObjectVersion, Outcome, Requeue};
use fairlead_cluster::{Cluster, Delete, Error, Key, Patch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ownership;

/// Label of the Pods of a revision.
pub(crate) const HASH_LABEL: &str = "controller-revision-hash";
/// Maximum length of the part of a revision's name that is taken from its owner
/// (ControllerRevisionName).
const MAX_PREFIX: usize = 223;

/// A ControllerRevision.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ControllerRevision {
    pub(crate) metadata: Meta,
    /// The patch that returns the owner to this revision.
    pub(crate) data: Value,
    /// Number of the revision; the present one has the greatest.
    pub(crate) revision: i64,
}

impl View for ControllerRevision {
    const KIND: &'static Kind = &kinds::CONTROLLER_REVISION;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// The owner of revisions.
pub(crate) struct Owner<'a> {
    pub(crate) kind: &'static Kind,
    pub(crate) meta: &'a Meta,
    /// The present template.
    pub(crate) template: &'a Value,
    /// Label of a revision that holds its hash.
    pub(crate) hash_label: &'static str,
    /// `status.collisionCount`.
    pub(crate) collisions: i32,
}

/// The revision of the present template, or what has to be written to have one.
#[derive(Debug)]
pub(crate) enum Step {
    /// The revision exists and has the greatest number.
    Current(Arc<ControllerRevision>),
    /// The revision exists and others are newer: the owner returned to it. The number is its new one.
    Renumber(Arc<ControllerRevision>, i64),
    /// The revision to create; none has the present template.
    Create(Value),
}

impl Owner<'_> {
    /// Finds the revision of the present template among those that the owner has.
    pub(crate) fn find(&self, owned: &[Arc<ControllerRevision>]) -> Step {
        let data = self.data();
        let greatest = owned.iter().map(|revision| revision.revision).max().unwrap_or_default();
        let next = greatest.saturating_add(1);
        let same = owned.iter().filter(|revision| revision.data == data);
        match same.max_by_key(|revision| revision.revision) {
            Some(found) if found.revision == greatest => Step::Current(found.clone()),
            Some(found) => Step::Renumber(found.clone(), next),
            None => Step::Create(self.new_revision(data, next)),
        }
    }

    /// A strategic merge patch that sets the template.
    fn data(&self) -> Value {
        let mut template = self.template.clone();
        template.set("$patch", "replace");
        json!({"spec": {"template": template}})
    }

    fn new_revision(&self, data: Value, number: i64) -> Value {
        let hash = hash(&data, self.collisions);
        let name = &self.meta.name[..self.meta.name.floor_char_boundary(MAX_PREFIX)];
        let labels = self.template.at("metadata").at("labels").as_object().cloned().unwrap_or_default();
        let mut labels: BTreeMap<String, Value> = labels.into_iter().collect();
        labels.insert(self.hash_label.to_owned(), hash.clone().into());
        json!({
            "apiVersion": kinds::CONTROLLER_REVISION.api_version(), "kind": kinds::CONTROLLER_REVISION.kind,
            "metadata": {
                "name": format!("{name}-{hash}"), "namespace": self.meta.namespace,
                "labels": labels, "annotations": self.meta.annotations,
                "ownerReferences": [ownership::reference(self.kind, self.meta)],
            },
            "data": data, "revision": number,
        })
    }
}

/// Hash of a revision: FNV-1a of its data and the number of collisions so far, in letters and
/// digits that make no words (rand.SafeEncodeString).
fn hash(data: &Value, collisions: i32) -> String {
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let text = format!("{data}{collisions}");
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.to_string().bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

/// Writes a revision. `status` is the status subresource patch that counts a collision of names.
pub(crate) async fn write(
    cluster: &Cluster,
    kind: &'static Kind,
    owner: &Meta,
    collisions: i32,
    step: Step,
) -> Outcome {
    let revisions = &kinds::CONTROLLER_REVISION;
    let mut outcome = match step {
        Step::Current(_) => Outcome::unchanged(),
        Step::Renumber(found, number) => {
            let Meta { namespace, name, uid, .. } = &found.metadata;
            let patch = Patch::Merge(json!({"metadata": {"uid": uid}, "revision": number}));
            Outcome::of_write(revisions, cluster.patch(revisions, namespace, name, &patch).await)
        }
        Step::Create(revision) => match cluster.create(revisions, &revision).await {
            Err(Error::AlreadyExists(_)) => resolve_collision(cluster, kind, owner, collisions, &revision).await,
            created => Outcome::of_write(revisions, created),
        },
    };
    outcome.requeue = Requeue::Now;
    outcome
}

/// An object with the name of a new revision exists: the cache is behind, or another template has
/// the same hash. Then the owner counts a collision, which is part of the next name.
async fn resolve_collision(
    cluster: &Cluster,
    kind: &'static Kind,
    owner: &Meta,
    collisions: i32,
    revision: &Value,
) -> Outcome {
    let revisions = &kinds::CONTROLLER_REVISION;
    let name = revision.at("metadata").text("name");
    let found = match cluster.get(revisions, &owner.namespace, name).await {
        Ok(found) => found,
        Err(error) if error.is_not_found() => return Outcome::unchanged(),
        Err(error) => return Outcome::failed(error),
    };
    let owned = found.at("metadata").list("ownerReferences").iter().any(|reference| reference.text("uid") == owner.uid);
    if owned && found.at("data") == revision.at("data") {
        return Outcome { written: vec![ObjectVersion::of(revisions, &found)], ..Outcome::default() };
    }
    let collisions = collisions.saturating_add(1);
    let patch = Patch::Merge(json!({"metadata": {"uid": owner.uid}, "status": {"collisionCount": collisions}}));
    Outcome::of_write(kind, cluster.patch_status(kind, &owner.namespace, &owner.name, &patch).await)
}

/// The oldest revisions beyond `limit`, without `current` and those that `is_used`.
pub(crate) fn superfluous(
    owned: &[Arc<ControllerRevision>],
    limit: usize,
    is_used: impl Fn(&ControllerRevision) -> bool,
) -> Vec<Arc<ControllerRevision>> {
    let mut old: Vec<_> = owned.iter().filter(|revision| !is_used(revision)).cloned().collect();
    old.sort_by_key(|revision| revision.revision);
    old.truncate(old.len().saturating_sub(limit));
    old
}

/// Deletes revisions.
pub(crate) async fn delete(cluster: &Cluster, revisions: Vec<Arc<ControllerRevision>>, outcome: &mut Outcome) {
    for revision in revisions {
        let Meta { namespace, name, uid, .. } = &revision.metadata;
        let how = Delete { uid: Some(uid.clone()), ..Delete::default() };
        match cluster.delete(&kinds::CONTROLLER_REVISION, namespace, name, &how).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => {
                outcome.error.get_or_insert(error);
            }
            _ => {
                let key = Key::new(namespace.as_str(), name.as_str());
                outcome.written.push(ObjectVersion::deleted(&kinds::CONTROLLER_REVISION, key));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_number_of_a_revision_is_kept() {
        let template = json!({"metadata": {"labels": {"app": "web"}}});
        let owner = Owner {
            kind: &kinds::DAEMON_SET,
            meta: &Meta::default(),
            template: &template,
            hash_label: HASH_LABEL,
            collisions: i32::MAX,
        };
        let numbered = |revision: i64, data: Value| {
            Arc::new(ControllerRevision { revision, data, ..ControllerRevision::default() })
        };
        let greatest = numbered(i64::MAX, json!({}));
        let Step::Create(created) = owner.find(std::slice::from_ref(&greatest)) else { panic!("no new revision") };
        assert_eq!(created.int("revision"), i64::MAX);
        let Step::Renumber(_, number) = owner.find(&[greatest.clone(), numbered(1, owner.data())]) else {
            panic!("not renumbered")
        };
        assert_eq!(number, i64::MAX);
        let last = [greatest, numbered(i64::MAX, owner.data())];
        assert!(matches!(owner.find(&last), Step::Current(_)), "a revision of that number is written once");
    }
}
