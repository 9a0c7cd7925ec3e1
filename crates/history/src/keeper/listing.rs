//! Which kinds have been listed, and what a list that is under way has shown.

use std::collections::{HashMap, HashSet};

use crate::Followed;
use crate::replay::Id;

/// Lists.
#[derive(Debug, Default)]
pub(super) struct Lists {
    known: HashSet<Followed>,
    shown: HashMap<Followed, HashSet<Id>>,
}

impl Lists {
    /// All kinds are known from before.
    pub(super) fn known(&mut self) {
        self.known.extend(Followed::ALL);
    }

    pub(super) fn is_known(&self, kind: Followed) -> bool {
        self.known.contains(&kind)
    }

    /// Whether all kinds are known.
    pub(super) fn all_known(&self) -> bool {
        self.known.len() == Followed::ALL.len()
    }

    /// A list begins. Whether that means that changes were missed.
    pub(super) fn begin(&mut self, kind: Followed) -> bool {
        self.shown.insert(kind, HashSet::new());
        self.is_known(kind)
    }

    /// The list has this object.
    pub(super) fn shown(&mut self, id: &Id) {
        self.shown.entry(id.kind).or_default().insert(id.clone());
    }

    /// A list is complete: what it showed.
    pub(super) fn end(&mut self, kind: Followed) -> HashSet<Id> {
        self.known.insert(kind);
        self.shown.remove(&kind).unwrap_or_default()
    }
}
