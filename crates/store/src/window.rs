//! The past that all watchers share: one ring of events for each resource, and cursors over it.
//!
//! A watcher has no queue of its own: it remembers a revision and reads on from there. One that falls out of the ring
//! gets [`Error::Compacted`]. An event wakes only the watchers of its resource.

pub(crate) mod ring;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch as signal;

use crate::{Entry, Error, Revision};
use ring::{Limits, Ring};
pub use watch::Watch;
pub(crate) use watch::{Past, Step};

/// One change of one key.
#[derive(Debug, Clone)]
pub struct Event {
    /// When it happened.
    pub revision: Revision,
    /// The object after a put; before a delete, with its resourceVersion set to the delete's.
    pub entry: Arc<Entry>,
    /// The object before, if there was one.
    pub previous: Option<Arc<Entry>>,
    /// Whether the key is gone.
    pub deleted: bool,
}

/// Which resources get a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All of them, from the first revision on.
    Everything,
    /// Those somebody has watched, from the first watch on.
    Watched,
}

/// The rings of all resources.
#[derive(Debug)]
pub(crate) struct Windows {
    topics: RwLock<HashMap<Box<str>, Arc<Topic>>>,
    /// Every event up to this revision is in its ring.
    revision: Arc<AtomicU64>,
    /// Events up to this revision are on their way; those of unwatched resources have been left out already.
    arriving: AtomicU64,
    /// The revision the windows began with.
    start: Revision,
    keep: Keep,
    limits: Limits,
}

/// One resource's ring and the bell that tells of news in it.
#[derive(Debug)]
pub(crate) struct Topic {
    ring: RwLock<Ring>,
    bell: signal::Sender<Bell>,
}

/// What the bell says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bell {
    /// There may be new events.
    News,
    /// Events were missed; only what follows this revision can be had, from another topic.
    Lost(Revision),
    /// The store is gone.
    Closed,
}

impl Windows {
    pub(crate) fn new(start: Revision, keep: Keep) -> Windows {
        Windows::with_limits(start, keep, Limits::USUAL)
    }

    fn with_limits(start: Revision, keep: Keep, limits: Limits) -> Windows {
        let revision = Arc::new(AtomicU64::new(start.0));
        Windows { topics: RwLock::default(), revision, arriving: AtomicU64::new(start.0), start, keep, limits }
    }

    /// Events up to a revision will be published next; returns whether a key's event will be wanted.
    pub(crate) fn announce(&self, upto: Revision) -> impl Fn(&str) -> bool + use<> {
        let topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        self.arriving.store(upto.0, Ordering::Release);
        let names: HashSet<Box<str>> = topics.keys().cloned().collect();
        move |key| names.contains(topic_of(key))
    }

    /// Adds events, and says that nothing else happened up to `upto`.
    pub(crate) fn publish(&self, events: Vec<Event>, upto: Revision) {
        if self.keep == Keep::Everything {
            events.iter().for_each(|event| drop(self.topic(topic_of(&event.entry.key), self.start)));
        }
        let mut touched: Vec<Arc<Topic>> = Vec::new();
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            let Some(topic) = topics.get(topic_of(&event.entry.key)) else { continue };
            topic.ring.write().unwrap_or_else(PoisonError::into_inner).push(event);
            if !touched.iter().any(|known| Arc::ptr_eq(known, topic)) {
                touched.push(topic.clone());
            }
        }
        // After the events: who sees the revision sees them all.
        self.revision.store(upto.0, Ordering::Release);
        drop(topics);
        touched.iter().for_each(|topic| topic.ring(Bell::News));
    }

    /// Events have been missed: everything before `at` is forgotten, and all watchers learn so.
    pub(crate) fn reset(&self, at: Revision) {
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        self.arriving.store(at.0, Ordering::Release);
        self.revision.store(at.0, Ordering::Release);
        topics.drain().for_each(|(_, topic)| topic.ring(Bell::Lost(at)));
    }

    /// As [`Windows::reset`], but only for the resource a key belongs to.
    pub(crate) fn lose(&self, key: &str) {
        let lost = self.topics.write().unwrap_or_else(PoisonError::into_inner).remove(topic_of(key));
        if let Some(topic) = lost {
            topic.ring(Bell::Lost(Revision(self.arriving.load(Ordering::Acquire))));
        }
    }

    /// A cursor after a revision.
    pub(crate) fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, Error> {
        let topic = self.topic_to_watch(prefix)?;
        // Only to learn whether it reaches back that far.
        topic.ring.read().unwrap_or_else(PoisonError::into_inner).reaches(after)?;
        Ok(Watch::new(topic, self.revision.clone(), prefix, after))
    }

    /// A cursor that first reads older events from elsewhere, until the ring can serve it.
    pub(crate) fn watch_from(&self, prefix: &str, after: Revision, past: Past) -> Result<Watch, Error> {
        let topic = self.topic_to_watch(prefix)?;
        Ok(Watch::new(topic, self.revision.clone(), prefix, after).preceded_by(past))
    }

    /// What must be put back over the present to see a prefix as it was: the older entry, or that there was none.
    pub(crate) fn undo(&self, prefix: &str, at: Revision) -> Result<BTreeMap<Box<str>, Option<Arc<Entry>>>, Error> {
        if at < self.start {
            return Err(Error::Compacted { requested: at, oldest: self.start });
        }
        let mut older = BTreeMap::new();
        let topics = self.topics.read().unwrap_or_else(PoisonError::into_inner);
        let concerned = topics.iter().filter(|(name, _)| name.starts_with(prefix) || prefix.starts_with(&***name));
        for (_, topic) in concerned {
            let ring = topic.ring.read().unwrap_or_else(PoisonError::into_inner);
            for (key, previous) in ring.before(at)?.filter(|(key, _)| key.starts_with(prefix)) {
                older.entry(key.into()).or_insert_with(|| previous.cloned());
            }
        }
        Ok(older)
    }

    fn topic_to_watch(&self, prefix: &str) -> Result<Arc<Topic>, Error> {
        match resource_of(prefix) {
            Some(name) => Ok(self.topic(name, self.start)),
            None => Err(Error::Unusable(format!("{prefix} is not the prefix of one resource and cannot be watched"))),
        }
    }

    fn topic(&self, name: &str, start: Revision) -> Arc<Topic> {
        if let Some(topic) = self.topics.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return topic.clone();
        }
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
        let floor = match self.keep {
            Keep::Everything => start,
            Keep::Watched => Revision(self.arriving.load(Ordering::Acquire)),
        };
        topics.entry(name.into()).or_insert_with(|| Arc::new(Topic::new(floor, self.limits))).clone()
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        let topics = self.topics.get_mut().unwrap_or_else(PoisonError::into_inner);
        topics.values().for_each(|topic| topic.ring(Bell::Closed));
    }
}

impl Topic {
    fn new(floor: Revision, limits: Limits) -> Topic {
        Topic { ring: RwLock::new(Ring::new(floor, limits)), bell: signal::Sender::new(Bell::News) }
    }

    fn ring(&self, bell: Bell) {
        self.bell.send_replace(bell);
    }
}

/// The ring a key belongs to. Keys that belong to no resource share one.
fn topic_of(key: &str) -> &str {
    resource_of(key).unwrap_or("/")
}

/// `/registry/pods/` of `/registry/pods/default/web`: everything up to the resource. Two segments name the resource for
/// `services` (`specs`, `endpoints`) and where the first is an API group, recognised by its dot.
fn resource_of(key: &str) -> Option<&str> {
    let mut ends = key.match_indices('/').map(|(at, _)| at).skip(1);
    let root = ends.next()?;
    let end = ends.next()?;
    let segment = &key[root + 1..end];
    let end = if segment == "services" || segment.contains('.') { ends.next()? } else { end };
    Some(&key[..=end])
}
