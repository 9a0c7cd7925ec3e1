//! What a commit is made of: conditions on keys, and the writes that happen when all of them hold.

use crate::{Draft, Revision};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Written, at this revision. Durable and visible to every reader.
    Done(Revision),
    /// Not written: this guard, by its place in the list, did not hold.
    Refused(usize),
}

impl Guard {
    /// The key it is about.
    pub fn key(&self) -> &str {
        match self {
            Guard::Absent(key) | Guard::At(key, _) => key,
        }
    }

    /// Whether it holds for a key last written at `current`; `None` means the key is not there.
    pub(crate) fn holds(&self, current: Option<Revision>) -> bool {
        match self {
            Guard::Absent(_) => current.is_none(),
            Guard::At(_, revision) => current == Some(*revision),
        }
    }
}
