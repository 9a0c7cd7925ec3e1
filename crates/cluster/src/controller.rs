//! The runtime of controllers. A [`Controller`] says which keys a change concerns and what is to be
//! written about one key; [`run`] does the rest: the queue, concurrency, retries, metrics, and the
//! wait until the cache shows what was written.
//!
//! ```text
//! Mirror --Changes--> enqueue --> WorkQueue --key--> reconcile --Action--> writes
//!    ^                                ^                                      |
//!    |                                +-- confirm_writes: the cache shows <--+-- Outcome
//!    +------------------------------- API server <---------------------------+
//! ```
//! A controller with inputs other than one [`Mirror`] uses a [`WorkQueue`] directly.

mod metrics;
mod queue;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::hash::Hash;
use std::time::Duration;

use fairlead_api::source::Key;
use fairlead_api::view::{Meta, View};
use fairlead_api::{Kind, Look};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Backoff, Changes, Error, Mirror};

pub use metrics::{QueueMeter, QueueMetrics, WorkQueueMetrics};
pub use queue::WorkQueue;

/// Maximum number of keys decided about before changes of the cluster are read again.
const BATCH: usize = 64;

/// Keeps part of the cluster as specified. Runs in one task; a key is in progress at most once.
pub trait Controller: Send + 'static {
    /// The unit of work, such as the namespace and name of an object.
    type Key: Clone + Ord + Hash + Display + Send + Sync + 'static;

    /// Adds the keys that these changes concern. The cost grows with the changes, not with the
    /// cluster.
    fn enqueue(&mut self, cache: &Mirror, changes: &Changes, queue: &mut WorkQueue<Self::Key>);

    /// Decides about one key from the contents of the cache. Does not block.
    fn reconcile(&mut self, cache: &Mirror, key: &Self::Key) -> Action;

    /// Called when an action has ended, after logging, metrics and retry.
    fn finished(&mut self, _cache: &Mirror, _key: &Self::Key, _outcome: &Outcome, _queue: &mut WorkQueue<Self::Key>) {}
}

/// Decision about one key.
pub enum Action {
    /// Nothing is to be written.
    None,
    /// Nothing is to be written before this time.
    RequeueAt(Instant),
    /// Requests to send. The key is not reconciled again before they have ended and the cache shows
    /// their effects.
    Run(BoxFuture<'static, Outcome>),
}

impl Action {
    /// Requests to send.
    pub fn run(action: impl Future<Output = Outcome> + Send + 'static) -> Action {
        Action::Run(Box::pin(action))
    }
}

/// Result of an action.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Objects that were written, in order. The key is reconciled again only when the cache shows
    /// all of them.
    pub written: Vec<ObjectVersion>,
    /// Error that ended the action. It is retried with growing delays.
    pub error: Option<Error>,
    /// Time at which the key is reconciled again if the action succeeded.
    pub requeue: Requeue,
}

impl Outcome {
    /// Success without a write.
    pub fn unchanged() -> Outcome {
        Outcome::default()
    }

    /// Failure without a write.
    pub fn failed(error: Error) -> Outcome {
        Outcome { error: Some(error), ..Outcome::default() }
    }

    /// Result of one request that returns the object it wrote.
    pub fn of_write(kind: &'static Kind, result: Result<Value, Error>) -> Outcome {
        let mut outcome = Outcome::default();
        match result {
            Ok(object) => outcome.written.push(ObjectVersion::of(kind, &object)),
            Err(error) => outcome.error = Some(error),
        }
        outcome
    }
}

/// A version of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectVersion {
    /// Kind of the object.
    pub kind: &'static Kind,
    /// Namespace and name of the object.
    pub key: Key,
    /// The resourceVersion; `None` if the object is deleted.
    pub revision: Option<u64>,
}

impl ObjectVersion {
    /// The version of an object as the API returned it.
    pub fn of(kind: &'static Kind, object: &Value) -> ObjectVersion {
        let metadata = object.at("metadata");
        ObjectVersion {
            kind,
            key: Key::new(metadata.text("namespace"), metadata.text("name")),
            revision: Some(metadata.text("resourceVersion").parse().unwrap_or_default()),
        }
    }

    /// The version of an object with this metadata.
    pub fn of_meta(kind: &'static Kind, meta: &Meta) -> ObjectVersion {
        ObjectVersion {
            kind,
            key: Key::new(meta.namespace.as_str(), meta.name.as_str()),
            revision: Some(meta.resource_version.parse().unwrap_or_default()),
        }
    }

    /// An object that is deleted, or whose deletion has begun.
    pub fn deleted(kind: &'static Kind, key: Key) -> ObjectVersion {
        ObjectVersion { kind, key, revision: None }
    }

    /// The version of a changed object: its new one, or that it is deleted.
    pub fn of_change<T: View>(change: &crate::Change<T>) -> ObjectVersion {
        match &change.new {
            Some(new) => ObjectVersion::of_meta(T::KIND, new.meta()),
            None => ObjectVersion::deleted(T::KIND, change.key.clone()),
        }
    }
}

/// Time of the next reconciliation after a successful action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Requeue {
    /// When something changes that concerns the key.
    #[default]
    OnChange,
    /// As soon as the cache shows what was written.
    Now,
    /// At this time, or when something changes.
    At(Instant),
}

/// Properties of a queue.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Name of the controller in logs.
    pub name: &'static str,
    /// Maximum number of actions in progress.
    pub concurrency: usize,
    /// Delays between attempts that fail.
    pub backoff: Backoff,
    /// True to run each action in a task of its own. An in-process request executes the server's
    /// write path in the caller's task, so controllers that send thousands of requests spread them
    /// over the cores with this. Others save a task switch.
    pub spawn_actions: bool,
}

impl Settings {
    /// Settings of a controller that seldom has more than a few keys to work on.
    pub const fn new(name: &'static str) -> Settings {
        // Most failures are races that are over at the next attempt, so the first delay is short.
        let backoff = Backoff { first: Duration::from_millis(10), most: Duration::from_secs(60), tries: u32::MAX };
        Settings { name, concurrency: 16, backoff, spawn_actions: false }
    }
}

/// Runs a controller until it is told to stop. Actions in progress at that time are completed.
pub async fn run<C: Controller>(
    mut controller: C,
    mut cache: Mirror,
    settings: Settings,
    metrics: QueueMetrics<C::Key>,
    stop: CancellationToken,
) {
    let mut queue = WorkQueue::new(settings, metrics);
    // A decision on half of the objects would be wrong, so the first one waits until all kinds are
    // listed.
    let mut listed = Vec::new();
    while !cache.synced() {
        match stop.run_until_cancelled(cache.next()).await {
            Some(changes) => listed.push(changes),
            None => return,
        }
    }
    for changes in listed {
        controller.enqueue(&cache, &changes, &mut queue);
    }
    loop {
        for _ in 0..BATCH {
            let Some(key) = queue.next_ready() else { break };
            match controller.reconcile(&cache, &key) {
                Action::None => queue.finish(key, &Outcome::unchanged()),
                Action::RequeueAt(at) => {
                    queue.finish(key, &Outcome { requeue: Requeue::At(at), ..Outcome::default() });
                }
                Action::Run(action) => queue.start(key, action),
            }
        }
        let more = queue.has_ready();
        tokio::select! {
            () = stop.cancelled() => break,
            changes = cache.next() => controller.enqueue(&cache, &changes, &mut queue),
            ended = queue.wait() => {
                if let Some((key, outcome)) = ended {
                    controller.finished(&cache, &key, &outcome, &mut queue);
                }
            }
            () = tokio::task::yield_now(), if more => {}
        }
        queue.confirm_writes(|written| cache.shows(written));
    }
    queue.complete_actions().await;
}
