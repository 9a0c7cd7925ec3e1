//! What is kept under a key: the JSON of an object with its resourceVersion in place, and how to move it to another revision.

use std::sync::OnceLock;

use bytes::Bytes;

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
    /// The offset in `json` at which `"resourceVersion":"N",` stands.
    pub gap: usize,
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
        let (before, after) = self.json.split_at(self.gap.min(self.json.len()));
        fill(before, revision, after)
    }
}

impl Entry {
    /// A draft as it is kept once written.
    pub fn new(key: Box<str>, revision: Revision, draft: &Draft) -> Entry {
        let gap = draft.gap.min(draft.json.len());
        Entry { key, revision, json: draft.at(revision), gap, index: OnceLock::new() }
    }

    /// The same object with the resourceVersion of another revision: what a delete leaves behind.
    pub fn at(&self, revision: Revision) -> Entry {
        let (before, after) = self.bare();
        let json = fill(before, revision, after);
        Entry { key: self.key.clone(), revision, json, gap: self.gap, index: OnceLock::new() }
    }

    /// The JSON without its resourceVersion: the parts before and after it.
    pub(crate) fn bare(&self) -> (&[u8], &[u8]) {
        let end = self.gap + field(self.revision).len();
        (&self.json[..self.gap], &self.json[end..])
    }
}

fn fill(before: &[u8], revision: Revision, after: &[u8]) -> Bytes {
    [before, field(revision).as_bytes(), after].concat().into()
}

fn field(revision: Revision) -> String {
    format!("\"resourceVersion\":\"{revision}\",")
}
