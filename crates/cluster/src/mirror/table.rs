//! The objects of one view: what has arrived and is not read yet, what is there, what has changed since the last look.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairlead_api::source::{Event, Key, Object};
use fairlead_api::view::View;

use super::changes::{Change, Problem, Taken};
use super::views::Shared;

/// A table whatever its view.
pub(super) trait AnyTable: Send + Sync {
    /// A list begins to come in.
    fn listing(&mut self);
    /// A part of it has come.
    fn list(&mut self, objects: Vec<Object>);
    /// The list was complete: what is not in it is gone.
    fn listed(&mut self);
    /// Changes have come.
    fn changed(&mut self, events: Vec<Event>);
    /// How many objects wait to be read.
    fn waiting(&self) -> usize;
    /// Reads one object that waits; `None` if none does.
    fn settle_one(&mut self) -> Option<Option<Problem>>;
    /// What has changed since this was last asked.
    fn take(&mut self) -> Taken;
    /// True if there is no such object, or its deletion has begun.
    fn is_deleted(&self, key: &Key) -> bool;
    /// The table itself.
    fn as_any(&self) -> &dyn Any;
}

/// The objects of one view.
pub(super) struct Table<T> {
    shared: Arc<Shared<T>>,
    namespaces: BTreeMap<Box<str>, BTreeMap<Box<str>, Held<T>>>,
    /// The last thing heard of each object that is not read yet.
    arrived: BTreeMap<Key, Event>,
    /// What each changed object was when last looked at.
    before: BTreeMap<Key, Option<Arc<T>>>,
    /// The objects of the list that is coming in.
    listed: BTreeSet<Key>,
}

struct Held<T> {
    revision: u64,
    /// `None`: it was never readable.
    view: Option<Arc<T>>,
}

impl<T: View> Table<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Table<T> {
        let (namespaces, arrived, before, listed) = Default::default();
        Table { shared, namespaces, arrived, before, listed }
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Arc<T>> {
        self.namespaces.get(namespace)?.get(name)?.view.as_ref()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<T>> {
        self.namespaces.values().flat_map(BTreeMap::values).filter_map(|held| held.view.as_ref())
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Arc<T>> {
        let names = self.namespaces.get(namespace).into_iter();
        names.flat_map(BTreeMap::values).filter_map(|held| held.view.as_ref())
    }

    fn held(&self, key: &Key) -> Option<&Held<T>> {
        self.namespaces.get(&key.namespace)?.get(&key.name)
    }

    fn put(&mut self, object: &Object) -> Option<Problem> {
        let (known, old) = match self.held(&object.key) {
            Some(held) => (held.revision, held.view.clone()),
            None => (0, None),
        };
        if known == object.revision {
            return None;
        }
        let (view, problem) = match self.shared.read(object) {
            Ok(view) => (Some(view), None),
            // What it was is a better guess than nothing.
            Err(why) => (old.clone(), Some(problem::<T>(object, why))),
        };
        let names = self.namespaces.entry(object.key.namespace.clone()).or_default();
        names.insert(object.key.name.clone(), Held { revision: object.revision, view });
        if problem.is_none() {
            self.before.entry(object.key.clone()).or_insert(old);
        }
        problem
    }

    fn delete(&mut self, key: Key) {
        let Some(names) = self.namespaces.get_mut(&key.namespace) else { return };
        let held = names.remove(&key.name);
        if names.is_empty() {
            self.namespaces.remove(&key.namespace);
        }
        self.shared.forget(&key);
        if let Some(old) = held.and_then(|held| held.view) {
            self.before.entry(key).or_insert(Some(old));
        }
    }
}

impl<T: View> AnyTable for Table<T> {
    fn listing(&mut self) {
        self.listed.clear();
    }

    fn list(&mut self, objects: Vec<Object>) {
        for object in objects {
            self.listed.insert(object.key.clone());
            self.arrived.insert(object.key.clone(), Event::Put(object));
        }
    }

    fn listed(&mut self) {
        let list = std::mem::take(&mut self.listed);
        let held = self.namespaces.iter().flat_map(|(namespace, names)| {
            names.iter().map(|(name, held)| (Key::new(namespace.clone(), name.clone()), held.revision))
        });
        let gone: Vec<_> = held.filter(|(key, _)| !list.contains(key)).collect();
        self.arrived.retain(|key, _| list.contains(key));
        self.arrived.extend(gone.into_iter().map(|(key, revision)| (key.clone(), Event::Delete(key, revision))));
    }

    fn changed(&mut self, events: Vec<Event>) {
        self.arrived.extend(events.into_iter().map(|event| (event.key().clone(), event)));
    }

    fn waiting(&self) -> usize {
        self.arrived.len()
    }

    fn settle_one(&mut self) -> Option<Option<Problem>> {
        match self.arrived.pop_first()? {
            (_, Event::Put(object)) => Some(self.put(&object)),
            (_, Event::Delete(key, _)) => {
                self.delete(key);
                Some(None)
            }
        }
    }

    fn take(&mut self) -> Taken {
        let before = std::mem::take(&mut self.before);
        let changes = before.into_iter().map(|(key, old)| {
            let new = self.held(&key).and_then(|held| held.view.clone());
            Change { key, old, new }
        });
        // What came and went between two looks never was.
        let changes: Vec<_> = changes.filter(|change| change.old.is_some() || change.new.is_some()).collect();
        Taken { count: changes.len(), changes: Box::new(changes) }
    }

    fn is_deleted(&self, key: &Key) -> bool {
        self.get(&key.namespace, &key.name).is_none_or(|view| view.meta().deletion_timestamp.is_some())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn problem<T: View>(object: &Object, why: String) -> Problem {
    Problem { kind: T::KIND, key: object.key.clone(), revision: object.revision, why }
}
