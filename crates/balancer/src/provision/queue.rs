//! Services that must be looked at: each at most once, a few written at a time, and none again before the API shows what was
//! written for it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::source::Key;
use fairlead_cluster::{Backoff, Error};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::Instant;

use super::Task;
use super::write::Ended;

/// So many Services are written at a time.
const AT_ONCE: usize = 16;
/// When to try again what failed.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(50), most: Duration::from_secs(30), tries: u32::MAX };
/// How long writes may go on when we are told to stop.
const LAST: Duration = Duration::from_secs(2);

/// What is to do, and what is under way.
#[derive(Default)]
pub(super) struct Queue {
    waiting: VecDeque<Arc<Key>>,
    queued: HashSet<Arc<Key>>,
    /// Services that are written at the moment, and whether they must be looked at again.
    busy: HashMap<Arc<Key>, bool>,
    /// The revision that was written for a Service and not seen yet.
    written: HashMap<Arc<Key>, u64>,
    failed: HashMap<Arc<Key>, u32>,
    /// When Services are looked at again, each once however often it fails meanwhile.
    later: HashMap<Arc<Key>, Instant>,
    flights: FuturesUnordered<BoxFuture<'static, Landed>>,
    writing: usize,
}

enum Landed {
    Wrote(Box<Task>, Ended),
    Again(Arc<Key>, Instant),
}

impl Queue {
    /// These must be looked at.
    pub(super) fn add(&mut self, keys: impl IntoIterator<Item = Arc<Key>>) {
        for key in keys {
            if let Some(again) = self.busy.get_mut(&key) {
                *again = true;
            } else if self.queued.insert(key.clone()) {
                self.waiting.push_back(key);
            }
        }
    }

    /// A Service is gone: nothing of it is waited for.
    pub(super) fn forget(&mut self, key: &Key) {
        self.written.remove(key);
        self.failed.remove(key);
    }

    /// The next to look at, if there is room for what may come of it. `seen` says at which revision a Service was seen last: what
    /// we wrote is waited for, and its coming queues the Service again.
    pub(super) fn pop(&mut self, seen: impl Fn(&Key) -> Option<u64>) -> Option<Arc<Key>> {
        while self.writing < AT_ONCE {
            let key = self.waiting.pop_front()?;
            self.queued.remove(&key);
            match (self.written.get(&key), seen(&key)) {
                (Some(written), Some(seen)) if seen < *written => {}
                _ => {
                    self.written.remove(&key);
                    return Some(key);
                }
            }
        }
        None
    }

    /// A Service is written from now on.
    pub(super) fn start(&mut self, key: Arc<Key>, work: impl Future<Output = (Task, Ended)> + Send + 'static) {
        self.busy.insert(key, false);
        self.writing += 1;
        self.flights.push(Box::pin(async move {
            let (task, ended) = work.await;
            Landed::Wrote(Box::new(task), ended)
        }));
    }

    /// Waits until a Service is written. `None`: one that failed may have to be looked at again.
    pub(super) async fn next(&mut self) -> Option<(Task, Ended)> {
        match self.flights.next().await {
            None => std::future::pending().await,
            Some(Landed::Again(key, when)) => {
                // Unless it was looked at sooner than was thought then.
                if self.later.get(&key) == Some(&when) {
                    self.later.remove(&key);
                    self.add([key]);
                }
                None
            }
            Some(Landed::Wrote(task, ended)) => {
                self.writing -= 1;
                Some((*task, ended))
            }
        }
    }

    /// A Service was written; returns whether that went well. If not, it is tried again.
    pub(super) fn ended(&mut self, task: &Task, ended: Ended) -> bool {
        let key = task.key.clone();
        let again = self.busy.remove(&key).unwrap_or_default();
        let fine = match ended {
            Ok(revision) => {
                self.failed.remove(&key);
                if let Some(revision) = revision {
                    self.written.insert(key.clone(), revision);
                }
                true
            }
            // It is gone, and so is its load balancer.
            Err(Error::NotFound(_)) => true,
            Err(error) => {
                let failed = self.failed.entry(key.clone()).or_default();
                if !error.is_conflict() || *failed > 3 {
                    tracing::warn!(service = %key, %error, "the status of a load balancer cannot be written; trying again");
                }
                let wait = BACKOFF.wait((*failed).min(16));
                *failed += 1;
                self.look_later(key.clone(), wait);
                false
            }
        };
        if again {
            self.add([key]);
        }
        fine
    }

    /// Looks at a Service again in a while, or sooner if that was to be.
    fn look_later(&mut self, key: Arc<Key>, wait: Duration) {
        let when = Instant::now() + wait;
        if self.later.get(&key).is_some_and(|before| *before <= when) {
            return;
        }
        self.later.insert(key.clone(), when);
        self.flights.push(Box::pin(async move {
            tokio::time::sleep_until(when).await;
            Landed::Again(key, when)
        }));
    }

    /// Waits for what is under way, but not for long.
    pub(super) async fn finish(mut self) {
        let rest = async {
            while self.writing > 0 {
                self.next().await;
            }
        };
        let _ = tokio::time::timeout(LAST, rest).await;
    }
}

#[cfg(test)]
mod tests;
