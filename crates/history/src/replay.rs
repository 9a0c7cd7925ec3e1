//! Reads one file of the history from its beginning, and knows at each record what was there before and after it.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::frame::Frames;
use crate::record::{Body, Change, Copy, Gap, Record};
use crate::{Followed, delta};

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) kind: Followed,
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
}

/// Objects as they were at some moment. Those of other namespaces are not looked at.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// `None`: all namespaces.
    namespaces: Option<Vec<String>>,
    /// Nobody looks at what changes say.
    unread: bool,
    objects: HashMap<Id, Version, foldhash::fast::RandomState>,
}

/// An object at a revision. Most are never looked at again, so they are read when somebody asks.
#[derive(Debug, Clone)]
struct Version {
    revision: u64,
    text: Vec<u8>,
    value: Option<Arc<Value>>,
}

/// What a record says.
#[derive(Debug)]
pub(crate) enum Said {
    /// One object changed.
    Changed(Seen),
    /// Changes may be missing.
    Gap(Gap),
    /// Nothing is missing up to a revision.
    Mark(u64),
    /// These were there.
    Copies,
}

/// A change with what was there before and after it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) change: Change,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Option<Arc<Value>>,
}

impl World {
    /// Nothing yet of these namespaces; `None` is for all.
    pub(crate) fn of(namespaces: Option<&[&str]>) -> World {
        let namespaces = namespaces.map(|some| some.iter().map(|&one| one.to_owned()).collect());
        World { namespaces, ..World::default() }
    }

    /// Nothing yet, of all namespaces, for those who want texts only: what changes were before and after is not read.
    pub(crate) fn unread() -> World {
        World { unread: true, ..World::default() }
    }

    /// Takes in the records of a file while `each` wants more.
    pub(crate) fn replay<'b>(
        &mut self,
        records: impl IntoIterator<Item = &'b [u8]>,
        mut each: impl FnMut(&World, Said) -> bool,
    ) {
        for record in records {
            // Most of a large file is not asked for; it need not even be read.
            if Record::namespace_of_change(record).is_some_and(|namespace| self.foreign(namespace)) {
                continue;
            }
            if let Some(said) = Record::decode(record).and_then(|record| self.take(record))
                && !each(self, said)
            {
                return;
            }
        }
    }

    /// Takes in one record. `None`: it says nothing here.
    pub(crate) fn take(&mut self, record: Record) -> Option<Said> {
        match record {
            Record::Head(..) => None,
            Record::Mark(revision) => Some(Said::Mark(revision)),
            Record::Gap(gap) => Some(Said::Gap(gap)),
            Record::Copies(_, copies) => {
                copies.into_iter().for_each(|copy| self.copy(copy));
                Some(Said::Copies)
            }
            Record::Change(change) => self.change(change).map(Said::Changed),
        }
    }

    /// The objects of a kind, by name within their namespace.
    pub(crate) fn of_kind(&self, kind: Followed) -> Vec<(&Id, Arc<Value>)> {
        let wanted = self.objects.iter().filter(|(id, _)| id.kind == kind);
        let mut found: Vec<_> = wanted.filter_map(|(id, version)| Some((id, version.value()?))).collect();
        found.sort_by_key(|(id, _)| *id);
        found
    }

    /// One object.
    pub(crate) fn get(&self, id: &Id) -> Option<(u64, Arc<Value>)> {
        let version = self.objects.get(id)?;
        Some((version.revision, version.value()?))
    }

    /// All objects with their revisions, as JSON.
    pub(crate) fn into_texts(self) -> impl Iterator<Item = (Id, u64, Vec<u8>)> {
        self.objects.into_iter().map(|(id, version)| (id, version.revision, version.text))
    }

    fn foreign(&self, namespace: &[u8]) -> bool {
        self.namespaces.as_ref().is_some_and(|ours| ours.iter().all(|one| one.as_bytes() != namespace))
    }

    fn copy(&mut self, copy: Copy) {
        if !self.foreign(copy.namespace.as_bytes()) {
            let id = Id { kind: copy.kind, namespace: copy.namespace.into(), name: copy.name.into() };
            self.objects.insert(id, Version { revision: copy.revision, text: copy.json, value: None });
        }
    }

    fn change(&mut self, change: Change) -> Option<Seen> {
        if self.foreign(change.namespace.as_bytes()) {
            return None;
        }
        let (namespace, name) = (change.namespace.as_str().into(), change.name.as_str().into());
        let id = Id { kind: change.kind, namespace, name };
        let known = self.objects.remove(&id);
        let text = match &change.body {
            Body::New(json) | Body::Whole(json) => Some(json.clone()),
            Body::Difference(delta) => Some(delta::apply(&known.as_ref()?.text, delta)?),
            Body::Gone | Body::LeftOut => None,
        };
        let (mut before, mut after) = (None, None);
        if !self.unread {
            before = known.and_then(|version| version.value());
            after = text.as_deref().and_then(read);
        }
        // Events happen; they are not there.
        if let Some(text) = text.filter(|_| change.kind != Followed::Event) {
            self.objects.insert(id, Version { revision: change.revision, text, value: after.clone() });
        }
        Some(Seen { change, before, after })
    }
}

/// The records of a file in the order in which things happened. Each kind comes by a way of its own, so a Pod may stand in the file
/// before the Service that selected it. What was there before goes first: every change is one of that.
pub(crate) fn in_order(bytes: &[u8]) -> Vec<&[u8]> {
    let mut reached = 0;
    let mut placed: Vec<(u64, &[u8])> = Vec::new();
    for record in Frames::new(bytes) {
        let place = match Record::revision_of_change(record) {
            Some(revision) => revision,
            None if Record::has_copies(record) => 0,
            None => reached,
        };
        reached = reached.max(place);
        placed.push((place, record));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, record)| record).collect()
}

impl Version {
    fn value(&self) -> Option<Arc<Value>> {
        self.value.clone().or_else(|| read(&self.text))
    }
}

fn read(text: &[u8]) -> Option<Arc<Value>> {
    serde_json::from_slice(text).ok().map(Arc::new)
}
