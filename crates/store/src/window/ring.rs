//! The bounded past of one resource: its newest events in order, and from which revision on nothing is missing.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Event;
use crate::{Entry, Error, Revision};

/// How much past is kept for one resource.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

impl Limits {
    /// Enough events that a client which pages through thousands of objects, or was away for a minute of a busy
    /// roll-out, can go on where it was; and few enough bytes that twenty resources with large objects fit a small machine.
    pub(crate) const USUAL: Limits = Limits { events: 8_192, bytes: 32 << 20 };
}

/// What an event costs besides its JSON: the entry, its key, and the place in the ring.
const EVENT_OVERHEAD: usize = 256;

/// So many of the newest events are kept as they are handed out, for the watchers that are about to read them. Of an older
/// delete only what it deleted is kept: the object with another resourceVersion is made again for whoever is that late.
const AT_HAND: usize = 256;

/// Events in the order they happened.
#[derive(Debug)]
pub(crate) struct Ring {
    events: VecDeque<Kept>,
    bytes: usize,
    limits: Limits,
    /// Every event after this revision is in `events`.
    floor: Revision,
}

/// An event, without what can be worked out.
#[derive(Debug)]
struct Kept {
    revision: Revision,
    /// `None` for an older delete.
    entry: Option<Arc<Entry>>,
    previous: Option<Arc<Entry>>,
    deleted: bool,
}

/// Events found for a cursor, and the revision up to which the ring has been searched.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) events: Vec<Event>,
    pub(crate) searched: Revision,
}

impl Ring {
    pub(crate) fn new(floor: Revision, limits: Limits) -> Ring {
        Ring { events: VecDeque::new(), bytes: 0, limits, floor }
    }

    pub(crate) fn push(&mut self, event: Event) {
        let kept = Kept::from(event);
        self.bytes += kept.cost();
        self.events.push_back(kept);
        if let Some(at) = self.events.len().checked_sub(AT_HAND + 1) {
            self.bytes -= self.events[at].shrink();
        }
        while self.events.len() > self.limits.events || self.bytes > self.limits.bytes {
            let Some(oldest) = self.events.pop_front() else { return };
            self.bytes -= oldest.cost();
            self.floor = oldest.revision;
        }
    }

    pub(crate) fn floor(&self) -> Revision {
        self.floor
    }

    /// The key of every event after a revision and what was there before it, oldest first.
    pub(crate) fn before(&self, after: Revision) -> Result<impl Iterator<Item = (&str, Option<&Arc<Entry>>)>, Error> {
        Ok(self.since(after)?.map(|event| (event.key(), event.previous.as_ref())))
    }

    /// Whether every event after a revision is here.
    pub(crate) fn reaches(&self, after: Revision) -> Result<(), Error> {
        if after < self.floor {
            return Err(Error::Compacted { requested: after, oldest: self.floor });
        }
        Ok(())
    }

    fn since(&self, after: Revision) -> Result<impl Iterator<Item = &Kept>, Error> {
        self.reaches(after)?;
        let start = self.events.partition_point(|event| event.revision <= after);
        Ok(self.events.range(start..))
    }

    /// The events of keys under a prefix after a revision and up to another: about `limit` of them, never a part of a
    /// revision.
    pub(crate) fn find(&self, prefix: &str, after: Revision, upto: Revision, limit: usize) -> Result<Found, Error> {
        let mut events: Vec<Event> = Vec::new();
        for event in self.since(after)?.take_while(|event| event.revision <= upto) {
            if let Some(last) = events.last()
                && events.len() >= limit
                && last.revision != event.revision
            {
                let searched = last.revision;
                return Ok(Found { events, searched });
            }
            if event.key().starts_with(prefix) {
                events.extend(event.whole());
            }
        }
        Ok(Found { events, searched: upto })
    }
}

impl Kept {
    /// Forgets what can be worked out; returns how many bytes that saves.
    fn shrink(&mut self) -> usize {
        let before = self.cost();
        if self.deleted && self.previous.is_some() {
            self.entry = None;
        }
        before - self.cost()
    }

    fn key(&self) -> &str {
        self.entry.as_ref().or(self.previous.as_ref()).map_or("", |entry| &entry.key)
    }

    /// The event as it happened. It has an entry, or one to make it from.
    fn whole(&self) -> Option<Event> {
        let made = || self.previous.as_ref().map(|previous| Arc::new(previous.at(self.revision)));
        let entry = self.entry.clone().or_else(made)?;
        Some(Event { revision: self.revision, entry, previous: self.previous.clone(), deleted: self.deleted })
    }

    /// The objects it alone may keep in memory: the one before it, and of a delete the one it made.
    fn cost(&self) -> usize {
        let size = |entry: &Option<Arc<Entry>>| entry.as_ref().map_or(0, |entry| entry.json.len());
        EVENT_OVERHEAD + size(&self.entry).max(size(&self.previous)) + if self.deleted { size(&self.entry) } else { 0 }
    }
}

impl From<Event> for Kept {
    fn from(event: Event) -> Kept {
        let Event { revision, entry, previous, deleted } = event;
        Kept { revision, entry: Some(entry), previous, deleted }
    }
}
