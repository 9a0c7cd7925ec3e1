//! A watcher: a cursor over one resource's ring.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::sync::watch as signal;

use super::ring::Found;
use super::{Bell, Event, Topic};
use crate::{Error, Revision};

/// How many events are handed out at once: enough to make a wake-up worth while, few enough to hold the ring's lock only
/// for some microseconds.
const BATCH: usize = 256;

/// Events from elsewhere, older than what the ring has.
pub(crate) type Past = BoxStream<'static, Result<Step, Error>>;

/// Some events, and the revision up to which there are no others.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) events: Vec<Event>,
    pub(crate) upto: Revision,
}

/// Follows changes. Events are read from a window all watchers share, so a slow reader costs nothing; one that falls out of the
/// window gets [`Error::Compacted`].
pub struct Watch {
    topic: Arc<Topic>,
    bell: signal::Receiver<Bell>,
    /// The revision up to which the rings are complete.
    complete: Arc<AtomicU64>,
    prefix: Box<str>,
    cursor: Revision,
    past: Option<Past>,
}

impl Watch {
    pub(super) fn new(topic: Arc<Topic>, complete: Arc<AtomicU64>, prefix: &str, after: Revision) -> Watch {
        let bell = topic.bell.subscribe();
        Watch { topic, bell, complete, prefix: prefix.into(), cursor: after, past: None }
    }

    pub(super) fn preceded_by(mut self, past: Past) -> Watch {
        self.past = Some(past);
        self
    }

    /// Waits for the next changes: at least one, at most a few hundred, in order. A call that is dropped before it is
    /// ready has taken nothing.
    pub async fn next(&mut self) -> Result<Vec<Event>, Error> {
        loop {
            let events = match self.past.is_some() {
                true => self.read_past().await?,
                false => self.read_ring()?,
            };
            if !events.is_empty() {
                return Ok(events);
            }
            if self.past.is_none() {
                self.bell_rings().await?;
            }
        }
    }

    /// Every change up to this revision has been handed out. It grows even if nothing under the prefix changes.
    pub fn progress(&self) -> Revision {
        if self.past.is_some() {
            return self.cursor;
        }
        match self.find() {
            Ok(found) if found.events.is_empty() => self.cursor.max(found.searched),
            _ => self.cursor,
        }
    }

    async fn read_past(&mut self) -> Result<Vec<Event>, Error> {
        let Some(past) = &mut self.past else { return Ok(Vec::new()) };
        let step = past.next().await.unwrap_or_else(|| Err(Error::Unavailable("the watch has ended".into())))?;
        self.cursor = self.cursor.max(step.upto);
        if self.topic.ring.read().unwrap_or_else(PoisonError::into_inner).floor() <= self.cursor {
            self.past = None;
        }
        Ok(step.events)
    }

    fn read_ring(&mut self) -> Result<Vec<Event>, Error> {
        match *self.bell.borrow_and_update() {
            Bell::News => {}
            Bell::Lost(oldest) => return Err(Error::Compacted { requested: self.cursor, oldest }),
            Bell::Closed => return Err(Error::Unavailable("it has been closed".into())),
        }
        let found = self.find()?;
        self.cursor = self.cursor.max(found.searched);
        Ok(found.events)
    }

    async fn bell_rings(&mut self) -> Result<(), Error> {
        self.bell.changed().await.map_err(|_| Error::Unavailable("it has been closed".into()))
    }

    /// Events the rings are still being filled with are left for later: a revision is handed out whole.
    fn find(&self) -> Result<Found, Error> {
        let complete = Revision(self.complete.load(Ordering::Acquire));
        let ring = self.topic.ring.read().unwrap_or_else(PoisonError::into_inner);
        ring.find(&self.prefix, self.cursor, complete, BATCH)
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("prefix", &self.prefix).field("cursor", &self.cursor).finish()
    }
}
