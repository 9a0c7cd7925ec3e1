//! What the collector does about one object, after a look at how it and its owners are now: what the graph knows may be old.

use fairlead_api::view::Meta;
use fairlead_api::{Kind, Look, kinds};
use fairlead_cluster::{
    Cluster, Delete, Error, Patch, Propagation, Recorder, Reference, Resource, Selection, Severity,
};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Skipped;
use super::graph::{FOREGROUND, Id, Known, ORPHAN, Work};
use super::head::{Head, Owner};

/// So many dependents of one owner are orphaned at a time.
const AT_ONCE: usize = 8;

/// Does it.
pub(super) struct Collect {
    pub(super) cluster: Cluster,
    pub(super) recorder: Recorder,
    /// Kinds nothing can be known of.
    pub(super) skipped: Skipped,
}

/// How an owner does.
enum State {
    /// It is there to stay.
    Solid,
    /// It waits for its dependents to go.
    Waiting,
    /// It is not there.
    Absent,
    /// Nobody can tell.
    Unknown,
}

/// The owners of an object, by how they do; as they stand in the object.
#[derive(Default)]
struct Owners {
    solid: Vec<Value>,
    waiting: Vec<Value>,
    any_absent: bool,
}

impl Collect {
    /// Does what is to be done about an object.
    pub(super) async fn work(&self, id: &Id, work: Work) -> Result<(), Error> {
        let Some(object) = self.find(id).await? else { return Ok(()) };
        match work {
            Work::Check(known) => self.check(id, &object, known).await,
            _ if !self.sees_all_kinds().await? => {
                tracing::debug!(object = %id, "left to a collector that knows all kinds of this cluster");
                Ok(())
            }
            Work::Release => self.remove_finalizer(id, &object, FOREGROUND).await,
            Work::Orphan(dependents) => {
                let uid = object.at("metadata").text("uid");
                let orphaned =
                    stream::iter(dependents).map(|dependent| async move { self.orphan(&dependent, uid).await });
                orphaned.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
                self.remove_finalizer(id, &object, ORPHAN).await
            }
        }
    }

    /// Whether no dependent can be of a kind we do not follow. Who lets an owner go without knowing all its dependents loses them.
    async fn sees_all_kinds(&self) -> Result<bool, Error> {
        let found = self.cluster.discover().await?;
        let seen = |resource: &Resource| {
            let place =
                resource.kind().and_then(|kind| kinds::KINDS.iter().position(|known| std::ptr::eq(*known, kind)));
            place.is_some_and(|place| !self.skipped.has(place))
        };
        Ok(found.failures.is_empty() && found.resources.iter().filter(|resource| resource.can("list")).all(seen))
    }

    async fn find(&self, id: &Id) -> Result<Option<Value>, Error> {
        let (namespace, name) = id.parts();
        match self.cluster.get(id.kind(), namespace, name).await {
            Err(Error::NotFound(_)) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Deletes an object none of whose owners is there to stay; one that has others only loses those that are not.
    async fn check(&self, id: &Id, object: &Value, known: Known) -> Result<(), Error> {
        let metadata = object.at("metadata");
        if !metadata.text("deletionTimestamp").is_empty() || metadata.list("ownerReferences").is_empty() {
            return Ok(());
        }
        let Some(owners) = self.owners(id, metadata, known.fresh).await? else { return Ok(()) };
        match (owners.solid.is_empty(), owners.waiting.is_empty()) {
            (false, true) if !owners.any_absent => Ok(()),
            (false, _) => self.patch(id, metadata, "ownerReferences", owners.solid).await.map(drop),
            (true, false) if known.has_dependents => {
                let unblocked = if known.in_circle { Some(self.unblock(id, metadata).await?) } else { None };
                let metadata = unblocked.as_ref().map_or(metadata, |object| object.at("metadata"));
                self.delete(id, metadata, Propagation::Foreground).await
            }
            (true, _) => self.delete(id, metadata, propagation(metadata)).await,
        }
    }

    /// How the owners of an object do; `None` if it is to be left alone.
    async fn owners(&self, id: &Id, metadata: &Value, fresh: bool) -> Result<Option<Owners>, Error> {
        let mut owners = Owners::default();
        for reference in metadata.list("ownerReferences") {
            let owner = Owner::deserialize(reference).unwrap_or_default();
            match self.state(id, metadata, &owner, fresh).await? {
                State::Unknown => return Ok(None),
                State::Solid => owners.solid.push(reference.clone()),
                State::Waiting => owners.waiting.push(reference.clone()),
                State::Absent => owners.any_absent = true,
            }
        }
        Ok(Some(owners))
    }

    async fn state(&self, id: &Id, metadata: &Value, owner: &Owner, fresh: bool) -> Result<State, Error> {
        let Some(place) = super::followed(&owner.api_version, &owner.kind) else { return Ok(State::Unknown) };
        let kind = kinds::KINDS[place];
        let (namespace, _) = id.parts();
        if self.skipped.has(place) {
            return Ok(State::Unknown);
        }
        // Nothing outside the namespaces can belong to something in one: which one would that be?
        if kind.namespaced && namespace.is_empty() {
            self.tell_if_elsewhere(id, metadata, kind, owner, fresh).await;
            return Ok(State::Unknown);
        }
        let namespace = if kind.namespaced { namespace } else { "" };
        let Some(object) = self.find(&Id::new(place, namespace, &owner.name)).await? else {
            self.tell_if_elsewhere(id, metadata, kind, owner, fresh).await;
            return Ok(State::Absent);
        };
        let found = object.at("metadata");
        if found.text("uid") != owner.uid {
            return Ok(State::Absent);
        }
        let waits = !found.text("deletionTimestamp").is_empty() && found.texts("finalizers").contains(&FOREGROUND);
        Ok(if waits { State::Waiting } else { State::Solid })
    }

    /// An owner in another namespace is a mistake worth an Event.
    async fn tell_if_elsewhere(&self, id: &Id, metadata: &Value, kind: &'static Kind, owner: &Owner, fresh: bool) {
        if !fresh || !kind.namespaced {
            return;
        }
        let selection = Selection::all(kind).with_fields(format!("metadata.name={}", owner.name));
        let Ok(list) = self.cluster.list(&selection).await else { return };
        if !list.objects.iter().any(|object| Head::read(&object.json).is_some_and(|head| head.uid() == owner.uid)) {
            return;
        }
        let namespace = id.parts().0;
        let Owner { api_version, kind, name, uid, .. } = owner;
        let message = format!(
            "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in namespace {namespace:?}"
        );
        let about = Reference::to(id.kind(), &Meta::deserialize(metadata).unwrap_or_default());
        self.recorder.record(about, Severity::Warning, "OwnerRefInvalidNamespace", message);
    }

    async fn delete(&self, id: &Id, metadata: &Value, propagation: Propagation) -> Result<(), Error> {
        let (namespace, name) = id.parts();
        let how = Delete {
            uid: Some(metadata.text("uid").to_owned()),
            resource_version: Some(metadata.text("resourceVersion").to_owned()),
            propagation: Some(propagation),
            grace_seconds: None,
        };
        tracing::debug!(object = %id, ?propagation, "its owners are gone");
        unless_gone(self.cluster.delete(id.kind(), namespace, name, &how)).await
    }

    /// Takes an owner from an object.
    async fn orphan(&self, id: &Id, uid: &str) -> Result<(), Error> {
        let Some(object) = self.find(id).await? else { return Ok(()) };
        let metadata = object.at("metadata");
        let mut owners = metadata.list("ownerReferences").to_vec();
        owners.retain(|owner| owner.text("uid") != uid);
        if owners.len() == metadata.list("ownerReferences").len() {
            return Ok(());
        }
        unless_gone(self.patch(id, metadata, "ownerReferences", owners)).await
    }

    /// Nobody waits for the object any more.
    async fn unblock(&self, id: &Id, metadata: &Value) -> Result<Value, Error> {
        let mut owners = metadata.list("ownerReferences").to_vec();
        owners.iter_mut().for_each(|owner| owner.set("blockOwnerDeletion", false));
        self.patch(id, metadata, "ownerReferences", owners).await
    }

    async fn remove_finalizer(&self, id: &Id, object: &Value, finalizer: &str) -> Result<(), Error> {
        let metadata = object.at("metadata");
        let mut finalizers = metadata.list("finalizers").to_vec();
        finalizers.retain(|name| name != finalizer);
        if metadata.text("deletionTimestamp").is_empty() || finalizers.len() == metadata.list("finalizers").len() {
            return Ok(());
        }
        unless_gone(self.patch(id, metadata, "finalizers", finalizers)).await
    }

    /// Replaces a list in the metadata of the object as it was read.
    async fn patch(&self, id: &Id, metadata: &Value, field: &str, list: Vec<Value>) -> Result<Value, Error> {
        let (namespace, name) = id.parts();
        let list = if list.is_empty() { Value::Null } else { list.into() };
        let changes = json!({
            "uid": metadata.at("uid"), "resourceVersion": metadata.at("resourceVersion"), field: list,
        });
        self.cluster.patch(id.kind(), namespace, name, &Patch::Merge(json!({"metadata": changes}))).await
    }
}

/// The way its finalizers ask for.
fn propagation(metadata: &Value) -> Propagation {
    match metadata.texts("finalizers") {
        finalizers if finalizers.contains(&ORPHAN) => Propagation::Orphan,
        finalizers if finalizers.contains(&FOREGROUND) => Propagation::Foreground,
        _ => Propagation::Background,
    }
}

async fn unless_gone(answer: impl Future<Output = Result<Value, Error>>) -> Result<(), Error> {
    match answer.await {
        Err(Error::NotFound(_)) => Ok(()),
        other => other.map(drop),
    }
}
