//! How objects are read, whoever keeps them: a list at a revision, then every change after it. The API server answers this in
//! process from its store; against a real cluster, or for files, others do. One contract holds for all of them.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;

use crate::{Failure, Kind};

/// What will be there later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Reads objects.
pub trait Source: Send + Sync + 'static {
    /// What is there now: the first page, or the one that `more` of the page before names. A failure of 410 means that the
    /// pages must be asked for from the first one on.
    fn list<'a>(&'a self, selection: &'a Selection, more: Option<&'a str>) -> Later<'a, Result<List, Failure>>;

    /// Every change after a revision, in order, none left out.
    fn watch<'a>(&'a self, selection: &'a Selection, after: u64) -> Later<'a, Result<Box<dyn Watch>, Failure>>;
}

/// Follows changes.
pub trait Watch: Send {
    /// Waits for the next changes: at least one, at most some hundreds. A failure ends the watch: 410 means that changes were
    /// missed and only a new list helps; after any other the watch can be opened again after `progress`. A call that is dropped
    /// before it is ready has taken nothing.
    fn next(&mut self) -> Later<'_, Result<Vec<Event>, Failure>>;

    /// Every change up to this revision has been handed out. It may grow though nothing was handed out.
    fn progress(&self) -> u64;
}

/// Which objects.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The kind.
    pub kind: &'static Kind,
    /// Empty: all namespaces, or a kind without them.
    pub namespace: String,
    /// A label selector as in URLs; empty selects everything.
    pub labels: String,
    /// A field selector as in URLs; empty selects everything.
    pub fields: String,
}

impl Selection {
    /// All objects of a kind.
    pub fn all(kind: &'static Kind) -> Selection {
        Selection { kind, namespace: String::new(), labels: String::new(), fields: String::new() }
    }

    /// Those in one namespace.
    pub fn in_namespace(self, namespace: impl Into<String>) -> Selection {
        Selection { namespace: namespace.into(), ..self }
    }

    /// Those whose labels match.
    pub fn with_labels(self, labels: impl Into<String>) -> Selection {
        Selection { labels: labels.into(), ..self }
    }

    /// Those whose fields match.
    pub fn with_fields(self, fields: impl Into<String>) -> Selection {
        Selection { fields: fields.into(), ..self }
    }
}

/// What was there at a revision, or a page of it.
#[derive(Debug, Clone, Default)]
pub struct List {
    /// The objects, in the order of the API.
    pub objects: Vec<Object>,
    /// A watch after the revision of the first page misses nothing.
    pub revision: u64,
    /// How to ask for the next page, if there is one.
    pub more: Option<String>,
}

/// One object as it is read.
#[derive(Debug, Clone)]
pub struct Object {
    /// Where it is.
    pub key: Key,
    /// Its resourceVersion.
    pub revision: u64,
    /// The whole object. `kind` and `apiVersion` may be missing, as they are in the items of a list.
    pub json: Bytes,
}

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for kinds without namespaces.
    pub namespace: Box<str>,
    /// The name.
    pub name: Box<str>,
}

impl Key {
    /// A key.
    pub fn new(namespace: impl Into<Box<str>>, name: impl Into<Box<str>>) -> Key {
        Key { namespace: namespace.into(), name: name.into() }
    }
}

/// `default/web`; without a namespace only the name.
impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// One change of one object.
#[derive(Debug, Clone)]
pub enum Event {
    /// It is new, or it came to be selected, or it is another now.
    Put(Object),
    /// It is gone, or no longer selected.
    Delete(Key, u64),
}

impl Event {
    /// Which object changed.
    pub fn key(&self) -> &Key {
        match self {
            Event::Put(object) => &object.key,
            Event::Delete(key, _) => key,
        }
    }

    /// When.
    pub fn revision(&self) -> u64 {
        match self {
            Event::Put(object) => object.revision,
            Event::Delete(_, revision) => *revision,
        }
    }
}
