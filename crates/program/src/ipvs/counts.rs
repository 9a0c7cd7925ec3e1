//! What is counted: how often something is there, and which numbers are taken.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use super::code::MAX_PORT;

/// How often things are there, and which came or went.
#[derive(Debug)]
pub(crate) struct Counts<K> {
    pub(crate) counts: HashMap<K, u32>,
    /// Those that changed, and whether they were there.
    before: BTreeMap<K, bool>,
}

impl<K> Default for Counts<K> {
    fn default() -> Counts<K> {
        Counts { counts: HashMap::new(), before: BTreeMap::new() }
    }
}

impl<K: Copy + Ord + Hash> Counts<K> {
    pub(crate) fn add(&mut self, key: K) {
        let count = self.counts.entry(key).or_default();
        self.before.entry(key).or_insert(*count > 0);
        *count += 1;
    }

    pub(crate) fn remove(&mut self, key: K) {
        let Some(count) = self.counts.get_mut(&key) else { return };
        self.before.entry(key).or_insert(true);
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&key);
        }
    }

    pub(crate) fn settle(&mut self) -> Vec<(K, bool)> {
        let changed = std::mem::take(&mut self.before).into_iter();
        let now = changed.map(|(key, before)| (key, before, self.counts.contains_key(&key)));
        now.filter(|(_, before, now)| before != now).map(|(key, _, now)| (key, now)).collect()
    }
}

/// Numbers for ports: the lowest that is free.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    taken: BTreeSet<u32>,
    free: BTreeSet<u32>,
    next: u32,
}

impl Numbers {
    pub(crate) fn take(&mut self) -> u32 {
        let number = self.free.pop_first().unwrap_or_else(|| {
            while self.taken.contains(&self.next) {
                self.next += 1;
            }
            self.next
        });
        self.taken.insert(number);
        number.min(MAX_PORT - 1)
    }

    pub(crate) fn take_this(&mut self, number: u32) -> bool {
        self.free.remove(&number);
        self.taken.insert(number)
    }

    pub(crate) fn give_back(&mut self, number: u32) {
        if self.taken.remove(&number) {
            self.free.insert(number);
        }
    }
}
