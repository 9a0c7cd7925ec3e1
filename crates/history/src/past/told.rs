//! What files that no longer change have told: a page asks for the same again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Item;

/// How many answers are remembered, and how many items each may have: a few megabytes at most.
const ANSWERS: usize = 256;
const ITEMS: usize = 100;

/// A file and whose past.
type Key = (u64, String);

/// Answers.
#[derive(Debug, Default)]
pub(crate) struct Told {
    answers: Mutex<HashMap<Key, Arc<Vec<Item>>>>,
}

impl Told {
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Vec<Item>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Remembers an answer, unless it is long.
    pub(super) fn put(&self, key: Key, items: Arc<Vec<Item>>) {
        if items.len() > ITEMS {
            return;
        }
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= ANSWERS {
            answers.clear();
        }
        answers.insert(key, items);
    }
}
