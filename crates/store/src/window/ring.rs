//! The bounded past of one resource: its newest events in order, and from which revision on nothing is missing.

use std::collections::VecDeque;

use super::Event;
use crate::{Error, Revision};

/// How much past is kept for one resource.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

impl Limits {
    /// Enough events that a client which pages through ten thousand objects, or was away for a minute of a busy
    /// roll-out, can go on where it was; and few enough bytes that twenty resources with large objects fit a small machine.
    pub(crate) const USUAL: Limits = Limits { events: 16_384, bytes: 32 << 20 };
}

/// What an event costs besides its JSON: the entry, its key, and the place in the ring.
const EVENT_OVERHEAD: usize = 256;

/// Events in the order they happened.
#[derive(Debug)]
pub(crate) struct Ring {
    events: VecDeque<Event>,
    bytes: usize,
    limits: Limits,
    /// Every event after this revision is in `events`.
    floor: Revision,
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
        self.bytes += cost(&event);
        self.events.push_back(event);
        while self.events.len() > self.limits.events || self.bytes > self.limits.bytes {
            let Some(oldest) = self.events.pop_front() else { return };
            self.bytes -= cost(&oldest);
            self.floor = oldest.revision;
        }
    }

    pub(crate) fn floor(&self) -> Revision {
        self.floor
    }

    /// Every event after a revision, oldest first.
    pub(crate) fn since(&self, after: Revision) -> Result<impl DoubleEndedIterator<Item = &Event>, Error> {
        if after < self.floor {
            return Err(Error::Compacted { requested: after, oldest: self.floor });
        }
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
            if event.entry.key.starts_with(prefix) {
                events.push(event.clone());
            }
        }
        Ok(Found { events, searched: upto })
    }
}

fn cost(event: &Event) -> usize {
    event.entry.json.len() + EVENT_OVERHEAD
}
