//! What can go wrong in a store, by what the caller can do about it.

use thiserror::Error;

use crate::Revision;

/// What went wrong in the store.
#[derive(Debug, Clone, Error)]
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
    /// The data directory belongs to a newer program, or is in use, or was asked for what it cannot do.
    #[error("{0}")]
    Unusable(String),
}
