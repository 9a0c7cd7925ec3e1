//! What a list asks for and what it gets.

use std::sync::Arc;

use crate::{Entry, Revision};

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

impl Page {
    /// Takes the first `limit` of the entries (0 means all) and counts the rest.
    pub(crate) fn cut<I: Iterator>(
        mut entries: I,
        share: impl FnMut(I::Item) -> Arc<Entry>,
        limit: usize,
        revision: Revision,
    ) -> Page {
        let limit = if limit == 0 { usize::MAX } else { limit };
        let first = entries.by_ref().take(limit).map(share).collect();
        Page { entries: first, revision, remaining: entries.count() }
    }
}
