//! What is to be done next. Every key is in here once at most, so the queue is never longer than there are objects; a key that
//! fails comes back later and later.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use fairlead_cluster::Backoff;
use tokio::time::Instant;

/// A failure is often a race that is over in a moment; one that lasts is tried once a minute.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(10), most: Duration::from_secs(60), tries: u32::MAX };

/// Keys with work to do.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    ready: VecDeque<K>,
    due: BTreeSet<(Instant, K)>,
    items: HashMap<K, Item>,
}

#[derive(Debug)]
struct Item {
    state: State,
    failed: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Remembered only for how often it failed.
    Idle,
    Ready,
    Later(Instant),
    Working {
        /// Something has changed meanwhile.
        again: bool,
    },
}

impl<K: Clone + Eq + Hash + Ord> Default for Queue<K> {
    fn default() -> Queue<K> {
        Queue::new()
    }
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    pub(crate) fn new() -> Queue<K> {
        Queue { ready: VecDeque::new(), due: BTreeSet::new(), items: HashMap::new() }
    }

    /// There is something to do about a key, now.
    pub(crate) fn add(&mut self, key: K) {
        let item = self.items.entry(key.clone()).or_insert(Item { state: State::Idle, failed: 0 });
        match &mut item.state {
            State::Ready => return,
            State::Working { again } => return *again = true,
            State::Later(at) => drop(self.due.remove(&(*at, key.clone()))),
            State::Idle => {}
        }
        item.state = State::Ready;
        self.ready.push_back(key);
    }

    /// There will be something to do about a key, unless there is earlier.
    pub(crate) fn add_at(&mut self, key: K, at: Instant) {
        let item = self.items.entry(key.clone()).or_insert(Item { state: State::Idle, failed: 0 });
        match item.state {
            State::Ready | State::Working { .. } => return,
            State::Later(known) if known <= at => return,
            State::Later(known) => drop(self.due.remove(&(known, key.clone()))),
            State::Idle => {}
        }
        item.state = State::Later(at);
        self.due.insert((at, key));
    }

    /// The next key to work on; it is the caller's until it says how that went.
    pub(crate) fn take(&mut self) -> Option<K> {
        let now = Instant::now();
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, key)) = self.due.pop_first() else { break };
            self.set(&key, State::Ready);
            self.ready.push_back(key);
        }
        let key = self.ready.pop_front()?;
        self.set(&key, State::Working { again: false });
        Some(key)
    }

    /// The work is done, unless something has changed meanwhile.
    pub(crate) fn done(&mut self, key: K) {
        if let Some(State::Working { again: true }) = self.items.remove(&key).map(|item| item.state) {
            self.add(key);
        }
    }

    /// The work failed: again, after a while.
    pub(crate) fn failed(&mut self, key: K) {
        let Some(item) = self.items.get_mut(&key) else { return };
        item.state = State::Idle;
        item.failed = item.failed.saturating_add(1);
        let wait = BACKOFF.wait(item.failed - 1);
        self.add_at(key, Instant::now() + wait);
    }

    /// When the next key is due that is not ready yet.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    fn set(&mut self, key: &K, state: State) {
        if let Some(item) = self.items.get_mut(key) {
            item.state = state;
        }
    }
}

#[cfg(test)]
mod tests;
