//! What is to be done next. Every key is in here once at most, so the queue is never longer than there are objects; a key that
//! fails comes back later and later.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use fairlead_cluster::Backoff;
use fairlead_cluster::controller::QueueMeter;
use tokio::time::Instant;

/// A failure is often a race that is over in a moment; one that lasts is tried once a minute.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(10), most: Duration::from_secs(60), tries: u32::MAX };

/// Keys with work to do.
#[derive(Debug)]
pub(crate) struct Queue<K: Clone + Eq + Hash + Ord> {
    ready: VecDeque<K>,
    due: BTreeSet<(Instant, K)>,
    items: HashMap<K, Item>,
    /// Where keys are counted, and in which of them a key is.
    meters: Vec<QueueMeter>,
    meter_of: fn(&K) -> usize,
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
    Ready {
        since: Instant,
    },
    Later(Instant),
    Working {
        since: Instant,
        /// When something changed meanwhile.
        again: Option<Instant>,
    },
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    pub(crate) fn new(meter: QueueMeter) -> Queue<K> {
        Queue::shared(vec![meter], |_| 0)
    }

    /// One of several controllers, which are counted apart: `meter_of` says whose a key is.
    pub(crate) fn shared(meters: Vec<QueueMeter>, meter_of: fn(&K) -> usize) -> Queue<K> {
        Queue { ready: VecDeque::new(), due: BTreeSet::new(), items: HashMap::new(), meters, meter_of }
    }

    /// There is something to do about a key, now.
    pub(crate) fn add(&mut self, key: K) {
        let now = Instant::now();
        let item = self.items.entry(key.clone()).or_insert(Item { state: State::Idle, failed: 0 });
        match &mut item.state {
            State::Ready { .. } => return,
            State::Working { again, .. } => return *again = again.or(Some(now)),
            State::Later(at) => drop(self.due.remove(&(*at, key.clone()))),
            State::Idle => {}
        }
        self.make_ready(key, now);
    }

    /// There will be something to do about a key, unless there is earlier.
    pub(crate) fn add_at(&mut self, key: K, at: Instant) {
        let item = self.items.entry(key.clone()).or_insert(Item { state: State::Idle, failed: 0 });
        match item.state {
            State::Ready { .. } | State::Working { .. } => return,
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
            let Some((at, key)) = self.due.pop_first() else { break };
            self.make_ready(key, at);
        }
        let key = self.ready.pop_front()?;
        let before = self.set(&key, State::Working { since: now, again: None });
        if let (Some(State::Ready { since }), Some(meter)) = (before, self.meter(&key)) {
            meter.started(now - since);
        }
        Some(key)
    }

    /// The work is done, unless something has changed meanwhile.
    pub(crate) fn done(&mut self, key: K) {
        let before = self.items.remove(&key).map(|item| item.state);
        self.ended(&key, before);
        if let Some(State::Working { again: Some(since), .. }) = before {
            self.items.insert(key.clone(), Item { state: State::Idle, failed: 0 });
            self.make_ready(key, since);
        }
    }

    /// The work failed: again, after a while.
    pub(crate) fn failed(&mut self, key: K) {
        let Some(item) = self.items.get_mut(&key) else { return };
        let before = std::mem::replace(&mut item.state, State::Idle);
        item.failed = item.failed.saturating_add(1);
        let wait = BACKOFF.wait(item.failed - 1);
        self.ended(&key, Some(before));
        if let Some(meter) = self.meter(&key) {
            meter.retried();
        }
        self.add_at(key, Instant::now() + wait);
    }

    /// When the next key is due that is not ready yet.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// A key that is known can be taken, and could since then.
    fn make_ready(&mut self, key: K, since: Instant) {
        if let Some(meter) = self.meter(&key) {
            meter.added();
        }
        self.set(&key, State::Ready { since });
        self.ready.push_back(key);
    }

    fn ended(&self, key: &K, before: Option<State>) {
        if let (Some(State::Working { since, .. }), Some(meter)) = (before, self.meter(key)) {
            meter.ended(since.elapsed());
        }
    }

    fn meter(&self, key: &K) -> Option<&QueueMeter> {
        self.meters.get((self.meter_of)(key))
    }

    /// Sets the state of a key, and returns the one before.
    fn set(&mut self, key: &K, state: State) -> Option<State> {
        self.items.get_mut(key).map(|item| std::mem::replace(&mut item.state, state))
    }
}

/// Who does not lead any more forgets what waits.
impl<K: Clone + Eq + Hash + Ord> Drop for Queue<K> {
    fn drop(&mut self) {
        self.ready.iter().filter_map(|key| self.meter(key)).for_each(QueueMeter::dropped);
    }
}

#[cfg(test)]
mod tests;
