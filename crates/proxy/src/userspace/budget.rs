//! How many descriptors may be used: what is bounded cannot take the whole process down.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Descriptors that are left to the rest of the process: netlink, the API, logs, health ports.
const RESERVED: usize = 256;

/// Descriptors, shared by all workers.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
    full: AtomicBool,
}

impl Budget {
    /// From how many descriptors the process may have.
    pub(crate) fn new(descriptors: usize) -> Budget {
        // Even a process that may have few must serve somebody.
        let limit = descriptors.saturating_sub(RESERVED).max(descriptors / 2);
        Budget { limit, used: AtomicUsize::new(0), full: AtomicBool::new(false) }
    }

    /// How many there are in all.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes so many, if they are there.
    pub(crate) fn take(&self, count: usize) -> bool {
        let before = self.used.fetch_add(count, Ordering::Relaxed);
        if before + count <= self.limit {
            return true;
        }
        self.used.fetch_sub(count, Ordering::Relaxed);
        false
    }

    /// Takes so many, whether they are there or not.
    pub(crate) fn need(&self, count: usize) {
        self.used.fetch_add(count, Ordering::Relaxed);
    }

    /// Gives back so many.
    pub(crate) fn give(&self, count: usize) {
        self.used.fetch_sub(count, Ordering::Relaxed);
    }

    /// Somebody had to be turned away; true if that is news.
    pub(crate) fn is_news(&self) -> bool {
        !self.full.swap(true, Ordering::Relaxed)
    }

    /// There is room again; true if that is news.
    pub(crate) fn has_room(&self) -> bool {
        let half = self.used.load(Ordering::Relaxed) < self.limit / 4 * 3;
        half && self.full.load(Ordering::Relaxed) && self.full.swap(false, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_given() {
        let budget = Budget::new(RESERVED * 2 + 3);
        assert_eq!(budget.limit(), RESERVED + 3);
        assert!(budget.take(RESERVED + 2));
        assert!(!budget.take(2));
        assert!(budget.take(1));
        budget.give(2);
        assert!(budget.take(2));
    }

    #[test]
    fn that_it_is_full_is_said_once_until_there_is_room() {
        let budget = Budget::new(RESERVED * 2);
        assert!(budget.take(RESERVED));
        assert!(budget.is_news() && !budget.is_news());
        assert!(!budget.has_room());
        budget.give(RESERVED);
        assert!(budget.has_room() && !budget.has_room());
        assert!(budget.is_news());
    }
}
