//! The queue of a controller: keys with work to do, each at most once, so that the queue is never
//! longer than there are objects.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::{self, Display};
use std::hash::Hash;
use std::time::Duration;

use fairlead_api::source::Key;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep_until};

use super::{ObjectVersion, Outcome, QueueMetrics, Requeue, Settings};
use crate::Error;

/// Maximum time a key waits for the cache to show what was written for it. It ends the wait for an
/// object that was created again by another client under the name of one deleted here. client-go
/// waits as long (pkg/controller, ExpectationsTimeout).
const CONFIRMATION_TIMEOUT: Duration = Duration::from_mins(5);

/// Keys with work to do, the actions in progress, and the writes that the cache does not show yet.
pub struct WorkQueue<K> {
    settings: Settings,
    metrics: QueueMetrics<K>,
    ready: VecDeque<K>,
    delayed: BTreeSet<(Instant, K)>,
    /// Keys whose action has ended and whose writes the cache does not show, with the time at which
    /// the wait ends.
    unconfirmed: BTreeSet<(Instant, K)>,
    items: HashMap<K, Item>,
    actions: FuturesUnordered<BoxFuture<'static, (K, Outcome)>>,
}

#[derive(Debug)]
struct Item {
    state: State,
    /// Number of failures since the last success.
    failures: u32,
    /// True if an error of this key was logged since the last success.
    warned: bool,
}

#[derive(Debug)]
enum State {
    /// The key has no work. It is kept for the number of its failures.
    Idle,
    Ready {
        since: Instant,
    },
    Delayed(Instant),
    InProgress(Box<Progress>),
}

/// A key in progress: from `next_ready` until its writes are confirmed.
#[derive(Debug)]
struct Progress {
    started: Instant,
    /// Time of the first change since the start that this controller did not make.
    changed: Option<Instant>,
    /// Time at which the key was to be reconciled again, if it was added with a delay since the
    /// start.
    delayed: Option<Instant>,
    /// Changes since the start that this controller may have made itself.
    observed: HashSet<VersionId>,
    result: Option<ActionResult>,
}

/// A version of an object: group, kind, key and resourceVersion (`None` if deleted).
type VersionId = (&'static str, &'static str, Key, Option<u64>);

/// Result of an action whose writes are to be confirmed.
#[derive(Debug)]
struct ActionResult {
    written: Vec<ObjectVersion>,
    /// Number of `written` that the cache shows.
    confirmed: usize,
    failure: Option<Failure>,
    requeue: Requeue,
}

#[derive(Debug)]
struct Failure {
    /// Delay that the server asked for.
    retry_after: Option<Duration>,
}

impl<K: Clone + Ord + Hash + Display + Send + Sync + 'static> WorkQueue<K> {
    /// Creates an empty queue.
    pub fn new(settings: Settings, metrics: QueueMetrics<K>) -> WorkQueue<K> {
        WorkQueue {
            settings,
            metrics,
            ready: VecDeque::new(),
            delayed: BTreeSet::new(),
            unconfirmed: BTreeSet::new(),
            items: HashMap::new(),
            actions: FuturesUnordered::new(),
        }
    }

    /// Adds a key to work on now. If it is in progress, it is worked on again afterwards.
    pub fn add(&mut self, key: K) {
        let now = Instant::now();
        let item = self.items.entry(key.clone()).or_insert_with(Item::new);
        match &mut item.state {
            State::Ready { .. } => return,
            State::InProgress(progress) => {
                progress.changed.get_or_insert(now);
                return;
            }
            State::Delayed(at) => {
                self.delayed.remove(&(*at, key.clone()));
            }
            State::Idle => {}
        }
        self.make_ready(key, now);
    }

    /// Adds a key to work on at this time, unless it is worked on earlier.
    pub fn add_at(&mut self, key: K, at: Instant) {
        let item = self.items.entry(key.clone()).or_insert_with(Item::new);
        match &mut item.state {
            State::Ready { .. } => return,
            State::InProgress(progress) => {
                progress.delayed = Some(progress.delayed.map_or(at, |earlier| earlier.min(at)));
                return;
            }
            State::Delayed(earlier) if *earlier <= at => return,
            State::Delayed(later) => {
                self.delayed.remove(&(*later, key.clone()));
            }
            State::Idle => {}
        }
        item.state = State::Delayed(at);
        self.delayed.insert((at, key));
    }

    /// Adds a key because an object changed, unless the object has the version that the key's own
    /// action wrote.
    pub fn add_for_version(&mut self, key: K, changed: ObjectVersion) {
        let Some(Item { state: State::InProgress(progress), .. }) = self.items.get_mut(&key) else {
            return self.add(key);
        };
        // The change may be known before the answer to the request that made it, so it is judged
        // when the action has ended.
        progress.observed.insert(version_id(&changed));
    }

    /// True if [`WorkQueue::next_ready`] returns a key.
    pub fn has_ready(&self) -> bool {
        let due = self.delayed.first().is_some_and(|(at, _)| *at <= Instant::now());
        self.has_capacity() && (due || !self.ready.is_empty())
    }

    /// Returns the next key to work on. It is in progress until [`WorkQueue::finish`] is called or
    /// the action that [`WorkQueue::start`] was given has ended. Returns `None` while the maximum
    /// number of actions is running.
    pub fn next_ready(&mut self) -> Option<K> {
        if !self.has_capacity() {
            return None;
        }
        let now = Instant::now();
        while let Some((at, _)) = self.delayed.first()
            && *at <= now
            && let Some((at, key)) = self.delayed.pop_first()
        {
            self.make_ready(key, at);
        }
        let key = self.ready.pop_front()?;
        let item = self.items.get_mut(&key)?;
        if let (State::Ready { since }, Some(meter)) = (&item.state, self.metrics.meter(&key)) {
            meter.started(now - *since);
        }
        item.state = State::InProgress(Box::new(Progress {
            started: now,
            changed: None,
            delayed: None,
            observed: HashSet::new(),
            result: None,
        }));
        Some(key)
    }

    /// Starts the action of a key that [`WorkQueue::next_ready`] returned.
    pub fn start(&mut self, key: K, action: impl Future<Output = Outcome> + Send + 'static) {
        if !self.settings.spawn_actions {
            self.actions.push(Box::pin(async move { (key, action.await) }));
            return;
        }
        let task = AbortOnDrop(tokio::spawn(action));
        self.actions.push(Box::pin(async move { (key, task.join().await) }));
    }

    /// Waits until an action has ended and returns its key and outcome, or returns `None` when a
    /// delayed key is due. The outcome is logged and counted, and a retry is planned. A call that
    /// is dropped has lost nothing.
    pub async fn wait(&mut self) -> Option<(K, Outcome)> {
        let delayed = self.delayed.first().filter(|_| self.has_capacity()).map(|(at, _)| *at);
        let timeout = self.unconfirmed.first().map(|(at, _)| *at);
        let due = delayed.into_iter().chain(timeout).min();
        let ended = tokio::select! {
            biased;
            Some(ended) = self.actions.next() => Some(ended),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => None,
            else => std::future::pending().await,
        };
        match ended {
            Some((key, outcome)) => {
                self.finish(key.clone(), &outcome);
                Some((key, outcome))
            }
            None => {
                self.end_overdue_confirmations();
                None
            }
        }
    }

    /// Records that a key's work has ended, for a key whose action was not given to
    /// [`WorkQueue::start`].
    pub fn finish(&mut self, key: K, outcome: &Outcome) {
        let now = Instant::now();
        let Some(item) = self.items.get_mut(&key) else { return };
        let State::InProgress(progress) = &mut item.state else { return };
        if let Some(meter) = self.metrics.meter(&key) {
            meter.ended(now - progress.started);
        }
        // Nothing can be created in a namespace that is being deleted, so a retry is useless.
        let error = outcome.error.as_ref().filter(|error| !error.is_namespace_terminating());
        if let Some(error) = error {
            let controller = self.settings.name;
            // Another client was faster, which the next attempt takes into account.
            let race = error.is_conflict() || error.is_not_found();
            if race || std::mem::replace(&mut item.warned, true) {
                tracing::debug!(controller, %key, %error, "reconciliation failed");
            } else {
                tracing::warn!(controller, %key, %error, "reconciliation failed, and is retried");
            }
        }
        let retry_after = |error: &Error| match error {
            Error::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        };
        let deadline = now + CONFIRMATION_TIMEOUT;
        progress.result = Some(ActionResult {
            written: outcome.written.clone(),
            confirmed: 0,
            failure: error.map(|error| Failure { retry_after: retry_after(error) }),
            requeue: outcome.requeue,
        });
        if outcome.written.is_empty() {
            self.complete(&key);
        } else {
            self.unconfirmed.insert((deadline, key));
        }
    }

    /// Completes the keys of which `is_visible` says that the cache shows every version written for
    /// them.
    pub fn confirm_writes(&mut self, is_visible: impl Fn(&ObjectVersion) -> bool) {
        let mut confirmed = Vec::new();
        for (deadline, key) in &self.unconfirmed {
            let Some(Item { state: State::InProgress(progress), .. }) = self.items.get_mut(key) else { continue };
            let Some(result) = &mut progress.result else { continue };
            let visible = result.written[result.confirmed..].iter().take_while(|written| is_visible(written)).count();
            result.confirmed += visible;
            if result.confirmed == result.written.len() {
                confirmed.push((*deadline, key.clone()));
            }
        }
        for entry in confirmed {
            self.unconfirmed.remove(&entry);
            self.complete(&entry.1);
        }
    }

    /// Waits until all actions in progress have ended, and starts nothing new.
    pub async fn complete_actions(mut self) {
        while let Some((key, outcome)) = self.actions.next().await {
            self.finish(key, &outcome);
        }
    }

    fn has_capacity(&self) -> bool {
        self.actions.len() < self.settings.concurrency
    }

    fn end_overdue_confirmations(&mut self) {
        let now = Instant::now();
        while let Some((deadline, _)) = self.unconfirmed.first()
            && *deadline <= now
            && let Some((_, key)) = self.unconfirmed.pop_first()
        {
            tracing::debug!(controller = self.settings.name, %key, "the cache does not show what was written");
            if let Some(Item { state: State::InProgress(progress), .. }) = self.items.get_mut(&key) {
                progress.changed.get_or_insert(now);
            }
            self.complete(&key);
        }
    }

    /// Ends the progress of a key and plans what follows.
    fn complete(&mut self, key: &K) {
        let Some(item) = self.items.get_mut(key) else { return };
        let State::InProgress(progress) = std::mem::replace(&mut item.state, State::Idle) else { return };
        let Some(result) = progress.result else { return };
        if let Some(failure) = result.failure {
            let backoff = self.settings.backoff;
            let asked = failure.retry_after.unwrap_or_default().min(backoff.most);
            let delay = backoff.wait(item.failures).max(asked);
            item.failures = item.failures.saturating_add(1);
            if let Some(meter) = self.metrics.meter(key) {
                meter.retried();
            }
            return self.add_at(key.clone(), Instant::now() + delay);
        }
        let written: HashSet<VersionId> = match progress.observed.is_empty() {
            true => HashSet::new(),
            false => result.written.iter().map(version_id).collect(),
        };
        let disturbed = !progress.observed.is_subset(&written);
        self.items.remove(key);
        if disturbed || progress.changed.is_some() || result.requeue == Requeue::Now {
            self.items.insert(key.clone(), Item::new());
            return self.make_ready(key.clone(), progress.changed.unwrap_or_else(Instant::now));
        }
        let requeue_at = match result.requeue {
            Requeue::At(at) => Some(at),
            Requeue::OnChange | Requeue::Now => None,
        };
        if let Some(at) = requeue_at.into_iter().chain(progress.delayed).min() {
            self.add_at(key.clone(), at);
        }
    }

    /// Makes a known key ready, which it has been since this time.
    fn make_ready(&mut self, key: K, since: Instant) {
        if let Some(meter) = self.metrics.meter(&key) {
            meter.added();
        }
        if let Some(item) = self.items.get_mut(&key) {
            item.state = State::Ready { since };
        }
        self.ready.push_back(key);
    }
}

impl Item {
    fn new() -> Item {
        Item { state: State::Idle, failures: 0, warned: false }
    }
}

impl<K> Drop for WorkQueue<K> {
    fn drop(&mut self) {
        for key in &self.ready {
            if let Some(meter) = self.metrics.meter(key) {
                meter.dropped();
            }
        }
    }
}

impl<K> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue")
            .field("name", &self.settings.name)
            .field("ready", &self.ready.len())
            .field("delayed", &self.delayed.len())
            .field("actions", &self.actions.len())
            .finish_non_exhaustive()
    }
}

fn version_id(version: &ObjectVersion) -> VersionId {
    (version.kind.group, version.kind.kind, version.key.clone(), version.revision)
}

/// A task that ends with the queue that started it.
struct AbortOnDrop(tokio::task::JoinHandle<Outcome>);

impl AbortOnDrop {
    async fn join(mut self) -> Outcome {
        match (&mut self.0).await {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The tokio runtime is shutting down, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
