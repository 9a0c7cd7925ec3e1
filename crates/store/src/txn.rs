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

impl Txn {
    /// Returns whether the transaction cannot be applied twice, however often it is sent: it writes
    /// a key that it requires to be at a revision, which the key never has again after that.
    pub(crate) fn applies_once(&self) -> bool {
        let written = |key: &str| {
            self.writes.iter().any(|write| match write {
                Write::Put(written, _) | Write::Delete(written) => **written == *key,
            })
        };
        self.guards.iter().any(|guard| matches!(guard, Guard::At(key, _) if written(key)))
    }
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

#[cfg(test)]
mod tests {
    use super::{Guard, Txn, Write};
    use crate::{Draft, Revision};

    #[test]
    fn a_transaction_applies_once_if_it_changes_a_key_of_known_revision() {
        let check = |guards: &[Guard], writes: &[Write], expect| {
            let txn = Txn { guards: guards.to_vec(), writes: writes.to_vec() };
            assert_eq!(txn.applies_once(), expect, "{txn:?}");
        };
        let put = |key: &str| Write::Put(key.into(), Draft { json: "{}".into(), gap: 1 });
        let delete = |key: &str| Write::Delete(key.into());
        let at = |key: &str| Guard::At(key.into(), Revision(7));
        let absent = |key: &str| Guard::Absent(key.into());
        check(&[at("/a")], &[put("/a")], true);
        check(&[at("/a")], &[delete("/a")], true);
        check(&[absent("/b"), at("/a")], &[put("/b"), put("/a")], true);
        // The key may be deleted, and the second one would bring it back.
        check(&[absent("/a")], &[put("/a")], false);
        // Nothing changes the revision that is required.
        check(&[at("/a")], &[put("/b")], false);
        check(&[], &[put("/a")], false);
    }
}
