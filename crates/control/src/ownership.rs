//! Which objects a controller owns: `metadata.ownerReferences`, adoption of objects that match the
//! selector and have no owner, and release of owned ones that no longer match
//! (pkg/controller/controller_ref_manager.go).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::marker::PhantomData;
use std::sync::Arc;

use fairlead_api::view::{Meta, Owner, View};
use fairlead_api::{Kind, Look};
use fairlead_cluster::controller::{ObjectVersion, Outcome};
use fairlead_cluster::{Change, Cluster, Error, Key, Mirror, Patch, Recorder, Reference, Severity};
use serde_json::{Value, json};

#[cfg(test)]
mod tests;

/// Labels of an object.
pub(crate) type Labels = BTreeMap<String, String>;

/// The objects of a view by the uid of the controller that owns them.
#[derive(Debug)]
pub(crate) struct OwnerIndex<T> {
    owned: HashMap<Box<str>, BTreeSet<Key>>,
    /// Objects without a controller, by namespace and name.
    orphans: BTreeSet<Key>,
    view: PhantomData<fn() -> T>,
}

impl<T: View> OwnerIndex<T> {
    pub(crate) fn new() -> OwnerIndex<T> {
        OwnerIndex { owned: HashMap::new(), orphans: BTreeSet::new(), view: PhantomData }
    }

    /// Follows changes of the cache. Every change must be passed, in order.
    pub(crate) fn update(&mut self, changes: &[Change<T>]) {
        for change in changes {
            if let Some(old) = &change.old {
                self.remove(old.meta(), &change.key);
            }
            if let Some(new) = &change.new {
                match new.meta().controller() {
                    Some(owner) => {
                        self.owned.entry(owner.uid.as_str().into()).or_default().insert(change.key.clone());
                    }
                    None => {
                        self.orphans.insert(change.key.clone());
                    }
                }
            }
        }
    }

    fn remove(&mut self, old: &Meta, key: &Key) {
        let Some(owner) = old.controller() else {
            self.orphans.remove(key);
            return;
        };
        if let Some(keys) = self.owned.get_mut(owner.uid.as_str()) {
            keys.remove(key);
            if keys.is_empty() {
                self.owned.remove(owner.uid.as_str());
            }
        }
    }

    /// The objects that the controller with this uid owns, by namespace and name.
    pub(crate) fn owned_by<'a>(&'a self, cache: &'a Mirror, uid: &str) -> impl Iterator<Item = &'a Arc<T>> {
        let keys = self.owned.get(uid).into_iter().flatten();
        keys.filter_map(|key| cache.get::<T>(&key.namespace, &key.name))
    }

    /// The objects of a namespace that have no controller, by name.
    pub(crate) fn orphans_in<'a>(&'a self, cache: &'a Mirror, namespace: &'a str) -> impl Iterator<Item = &'a Arc<T>> {
        let keys = self.orphans.range(Key::new(namespace, "")..);
        keys.take_while(move |key| &*key.namespace == namespace)
            .filter_map(|key| cache.get::<T>(&key.namespace, &key.name))
    }

    /// Decides which objects belong to an owner. `matches` says whether the owner selects objects
    /// with these labels. An owner that is being deleted neither adopts nor releases.
    pub(crate) fn claim<'a>(
        &'a self,
        cache: &'a Mirror,
        owner: &'a Meta,
        matches: impl Fn(&Labels) -> bool,
        is_active: impl Fn(&T) -> bool,
    ) -> Claims<T> {
        let mut claims = Claims { owned: Vec::new(), adopt: Vec::new(), release: Vec::new() };
        let may_change = owner.deletion_timestamp.is_none();
        for object in self.owned_by(cache, &owner.uid) {
            if matches(&object.meta().labels) {
                claims.owned.push(object.clone());
            } else if may_change && is_active(object) {
                claims.release.push(object.clone());
            }
        }
        if may_change {
            let orphans = self.orphans_in(cache, &owner.namespace);
            let adopted = orphans.filter(|object| {
                let meta = object.meta();
                meta.deletion_timestamp.is_none() && matches(&meta.labels) && is_active(object)
            });
            claims.adopt.extend(adopted.cloned());
        }
        claims
    }
}

/// The objects of an owner.
#[derive(Debug)]
pub(crate) struct Claims<T> {
    /// Objects that it owns and selects.
    pub(crate) owned: Vec<Arc<T>>,
    /// Objects without an owner that it selects.
    pub(crate) adopt: Vec<Arc<T>>,
    /// Objects that it owns and does not select.
    pub(crate) release: Vec<Arc<T>>,
}

impl<T: View> Claims<T> {
    /// True if no object has to be adopted or released.
    pub(crate) fn is_settled(&self) -> bool {
        self.adopt.is_empty() && self.release.is_empty()
    }

    /// Adopts and releases objects.
    pub(crate) async fn write(self, cluster: &Cluster, owner_kind: &'static Kind, owner: &Meta) -> Outcome {
        let mut outcome = Outcome::default();
        for object in &self.release {
            let released = release(cluster, T::KIND, object.meta(), owner).await;
            record(&mut outcome, released);
        }
        if !self.adopt.is_empty()
            && let Err(error) = check_adopter(cluster, owner_kind, owner).await
        {
            outcome.error = Some(error);
            return outcome;
        }
        for object in &self.adopt {
            let adopted = adopt(cluster, T::KIND, object.meta(), owner_kind, owner).await;
            record(&mut outcome, adopted);
        }
        outcome
    }
}

/// Keeps the first error. An object that is gone, or is another one under the same name, needs no
/// owner.
fn record(outcome: &mut Outcome, written: Result<ObjectVersion, Error>) {
    match written {
        Ok(version) => outcome.written.push(version),
        Err(error) if error.is_not_found() || error.is_conflict() => {}
        Err(error) => {
            outcome.error.get_or_insert(error);
        }
    }
}

/// Checks that an owner still exists and is not being deleted. The cache may be older than its
/// deletion, and an object that is adopted afterwards would be deleted with it.
async fn check_adopter(cluster: &Cluster, kind: &Kind, owner: &Meta) -> Result<(), Error> {
    let found = cluster.get(kind, &owner.namespace, &owner.name).await?;
    let metadata = found.at("metadata");
    if metadata.text("uid") == owner.uid && metadata.text("deletionTimestamp").is_empty() {
        return Ok(());
    }
    let what = format!("{} {}/{} is being deleted, or is another one by now", kind.kind, owner.namespace, owner.name);
    Err(Error::Conflict(fairlead_api::Failure::new(409, "Conflict", what)))
}

async fn adopt(
    cluster: &Cluster,
    kind: &'static Kind,
    object: &Meta,
    owner_kind: &Kind,
    owner: &Meta,
) -> Result<ObjectVersion, Error> {
    let reference = reference(owner_kind, owner);
    let patch = json!({"metadata": {"uid": object.uid, "ownerReferences": [reference]}});
    let written = cluster.patch(kind, &object.namespace, &object.name, &Patch::Strategic(patch)).await?;
    Ok(ObjectVersion::of(kind, &written))
}

async fn release(cluster: &Cluster, kind: &'static Kind, object: &Meta, owner: &Meta) -> Result<ObjectVersion, Error> {
    let reference = json!({"$patch": "delete", "uid": owner.uid});
    let patch = json!({"metadata": {"uid": object.uid, "ownerReferences": [reference]}});
    let written = cluster.patch(kind, &object.namespace, &object.name, &Patch::Strategic(patch)).await?;
    Ok(ObjectVersion::of(kind, &written))
}

/// True if an owner selects an object that it is about to create; if not, an Event says so. An
/// object that its owner does not select would be released at once, and another one created,
/// without end. That happens if the selector has a label which the controller sets, such as
/// `pod-template-hash`: the API server compares the selector with the template alone.
pub(crate) fn selects_child<T: View>(
    recorder: &Recorder,
    owner: &T,
    matches: impl Fn(&Labels) -> bool,
    child: &Value,
) -> bool {
    let labels = child.at("metadata").at("labels").as_object().into_iter().flatten();
    let labels: Labels = labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    if matches(&labels) {
        return true;
    }
    let listed: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let message = format!(
        "spec.selector does not match the labels of a new {} ({}), so none is created: \
         it must not select by labels that the controller sets",
        child.text("kind"),
        listed.join(",")
    );
    recorder.record(Reference::of(owner), Severity::Warning, "SelectorMismatch", message);
    false
}

/// The reference by which an owner manages an object.
pub(crate) fn reference(kind: &Kind, owner: &Meta) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": owner.name, "uid": owner.uid,
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// The controller of an object, if it is of this kind.
pub(crate) fn controller_of_kind<'a>(object: &'a Meta, kind: &Kind) -> Option<&'a Owner> {
    object.controller().filter(|owner| owner.kind == kind.kind && owner.api_version == kind.api_version())
}
