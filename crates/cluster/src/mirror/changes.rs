//! What changed in a mirror between two looks.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::Kind;
use fairlead_api::source::Key;
use fairlead_api::view::View;

/// What changed, view by view.
#[derive(Debug, Default)]
pub struct Changes {
    /// Each a `Vec<Change<T>>`.
    views: BTreeMap<TypeId, Taken>,
    /// Objects that could not be read. The mirror still shows them as they were before, or not at all.
    pub problems: Vec<Problem>,
}

/// The changes of one view, and how many.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) changes: Box<dyn Any + Send + Sync>,
    pub(super) count: usize,
}

/// One object that changed. Both sides are there if it was modified, or deleted and made again: then the uids differ.
#[derive(Debug)]
pub struct Change<T> {
    /// Which object.
    pub key: Key,
    /// As it was when last looked at; `None`: it is new.
    pub old: Option<Arc<T>>,
    /// As it is; `None`: it is gone.
    pub new: Option<Arc<T>>,
}

/// An object that could not be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Its kind.
    pub kind: &'static Kind,
    /// Which.
    pub key: Key,
    /// Its resourceVersion.
    pub revision: u64,
    /// What is wrong with it.
    pub why: String,
}

impl Changes {
    pub(super) fn new(places: &BTreeMap<TypeId, usize>, taken: Vec<Taken>, problems: Vec<Problem>) -> Changes {
        let mut taken: Vec<Option<Taken>> = taken.into_iter().map(Some).collect();
        let views = places.iter().filter_map(|(view, place)| Some((*view, taken.get_mut(*place)?.take()?)));
        Changes { views: views.collect(), problems }
    }

    /// The changes of a view, by namespace and name; none if the mirror does not follow it.
    pub fn of<T: View>(&self) -> &[Change<T>] {
        let changes = self.views.get(&TypeId::of::<T>());
        changes.and_then(|taken| taken.changes.downcast_ref::<Vec<Change<T>>>()).map_or(&[], Vec::as_slice)
    }

    /// How many objects changed.
    pub fn len(&self) -> usize {
        self.views.values().map(|taken| taken.count).sum()
    }

    /// Whether no object changed and none was unreadable.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.problems.is_empty()
    }
}
