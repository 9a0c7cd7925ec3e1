//! Objects with revisions and a watchable past. A [`Backend`] keeps them: in memory, in one file, or in etcd.
//!
//! Keys are laid out as kube-apiserver lays them out (`/registry/services/specs/default/web`). Values are JSON objects; the
//! revision at which a key was last written is the object's `metadata.resourceVersion`, and the store puts it into
//! the JSON it hands out.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use thiserror::Error;

/// A point in the store's history. Every commit has one of its own; they only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// An object as it is kept. Shared, never copied: a list or a watch of ten thousand objects is ten thousand `Arc`s.
#[derive(Debug)]
pub struct Entry {
    /// Where it is kept.
    pub key: Box<str>,
    /// When it was written last.
    pub revision: Revision,
    /// The object, with `metadata.resourceVersion` set to `revision`.
    pub json: Bytes,
    /// What selectors look at, worked out on first use.
    pub index: OnceLock<Index>,
}

/// What selectors look at.
#[derive(Debug, Default)]
pub struct Index {
    /// `metadata.labels`.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// The selectable fields of the kind.
    pub fields: Vec<(&'static str, String)>,
}

/// An object about to be written: JSON without a resourceVersion, and the place where it goes.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The JSON text.
    pub json: Bytes,
    /// The offset at which `"resourceVersion":"N",` fits.
    pub gap: usize,
}

impl Draft {
    /// The JSON with a resourceVersion.
    pub fn at(&self, revision: Revision) -> Bytes {
        let field = format!("\"resourceVersion\":\"{revision}\",");
        let mut json = Vec::with_capacity(self.json.len() + field.len());
        json.extend_from_slice(&self.json[..self.gap]);
        json.extend_from_slice(field.as_bytes());
        json.extend_from_slice(&self.json[self.gap..]);
        json.into()
    }
}

/// Writes that happen together or not at all.
#[derive(Debug, Clone, Default)]
pub struct Txn {
    /// What must hold for the writes to happen.
    pub guards: Vec<Guard>,
    /// The writes; no two of the same key.
    pub writes: Vec<Write>,
}

/// A condition on one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// It is not there.
    Absent(Box<str>),
    /// It was last written at this revision.
    At(Box<str>, Revision),
}

/// A change of one key.
#[derive(Debug, Clone)]
pub enum Write {
    /// Create or replace.
    Put(Box<str>, Draft),
    /// Remove. Removing what is not there changes nothing.
    Delete(Box<str>),
}

/// How a transaction went.
#[derive(Debug)]
pub enum Outcome {
    /// Written, at this revision. Durable and visible to every reader.
    Done(Revision),
    /// Not written: this guard, by its place in the list, did not hold.
    Refused(usize),
}

/// Which keys to list.
#[derive(Debug, Clone, Default)]
pub struct Range {
    /// Keys that begin with this (it ends with `/`).
    pub prefix: Box<str>,
    /// Only keys after this one.
    pub after: Option<Box<str>>,
    /// At most so many; 0 means all.
    pub limit: usize,
    /// As things were at this revision; `None` means now.
    pub at: Option<Revision>,
}

/// A part of a list.
#[derive(Debug)]
pub struct Page {
    /// The objects, by key.
    pub entries: Vec<Arc<Entry>>,
    /// The revision the list shows.
    pub revision: Revision,
    /// How many more keys of the prefix follow.
    pub remaining: usize,
}

/// One change of one key.
#[derive(Debug, Clone)]
pub struct Event {
    /// When it happened.
    pub revision: Revision,
    /// The object after a put; before a delete, with its resourceVersion set to the delete's.
    pub entry: Arc<Entry>,
    /// The object before, if there was one.
    pub previous: Option<Arc<Entry>>,
    /// Whether the key is gone.
    pub deleted: bool,
}

/// Follows changes. Events are read from a window all watchers share, so a slow reader costs nothing; one that falls out of the
/// window gets [`Error::Compacted`].
pub struct Watch {}

impl Watch {
    /// Waits for the next changes: at least one, at most a few hundred, in order.
    pub async fn next(&mut self) -> Result<Vec<Event>, Error> {
        std::future::pending().await
    }
    /// Every change up to this revision has been handed out.
    pub fn progress(&self) -> Revision {
        Revision(0)
    }
}

/// What went wrong in the store.
#[derive(Debug, Error)]
pub enum Error {
    /// The revision asked for is no longer kept.
    #[error("revision {requested} has been compacted, the oldest kept is {oldest}")]
    Compacted {
        /// Asked for.
        requested: Revision,
        /// The oldest that can be asked for.
        oldest: Revision,
    },
    /// The revision asked for has not happened yet.
    #[error("revision {requested} is in the future, the newest is {current}")]
    Future {
        /// Asked for.
        requested: Revision,
        /// The newest.
        current: Revision,
    },
    /// The store cannot be reached or answered too late; the write may or may not have happened.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// A stored value cannot be read.
    #[error("the value at {key} is damaged: {why}")]
    Damaged {
        /// Where.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// The data directory belongs to a newer program, or is in use.
    #[error("{0}")]
    Unusable(String),
}

/// Keeps objects. Implementations behave alike: the contract suite holds them to it.
pub trait Backend: Send + Sync + 'static {
    /// One object as it is now.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Entry>>, Error>>;
    /// Many objects.
    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>>;
    /// Writes; returns when the writes are durable and visible.
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>>;
    /// Every change of keys under a prefix after a revision, in order, none left out.
    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Watch, Error>>;
    /// The newest revision.
    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>>;
}
