//! Which log records are only history, and which of them to forget with the next batch.

use std::collections::VecDeque;

use crate::{Event, Revision};

/// How many superseded records the log keeps, and how many bytes of them: what a watcher can catch up on after a restart.
/// The file grows by this much over the objects themselves.
const KEPT_RECORDS: usize = 10_000;
const KEPT_BYTES: usize = 64 << 20;

/// Fewer records than this are not worth forgetting: neighbours share pages, so a portion costs little more than one
/// record.
const PORTION: usize = 128;

/// A record that a later one made history.
#[derive(Debug)]
struct Superseded {
    by: Revision,
    record: (Revision, Box<str>),
    bytes: usize,
}

/// Superseded records, those superseded first in front.
#[derive(Debug, Default)]
pub(crate) struct History {
    records: VecDeque<Superseded>,
    bytes: usize,
}

/// Records to forget, and the revision from which on the log is complete without them.
#[derive(Debug, Default)]
pub(crate) struct Portion {
    pub(crate) records: Vec<(Revision, Box<str>)>,
    pub(crate) history: Option<Revision>,
}

impl History {
    /// Takes note of what an event supersedes: the record before it, and with a delete its own.
    pub(crate) fn add(&mut self, event: &Event) {
        let key = &event.entry.key;
        if let Some(previous) = &event.previous {
            self.push(event.revision, (previous.revision, key.clone()), previous.json.len());
        }
        if event.deleted {
            self.push(event.revision, (event.revision, key.clone()), 0);
        }
    }

    /// What to forget now: nothing until a portion's worth is too much.
    pub(crate) fn portion(&mut self) -> Portion {
        let mut portion = Portion::default();
        if self.records.len() < KEPT_RECORDS + PORTION && self.bytes <= KEPT_BYTES {
            return portion;
        }
        while self.records.len() > KEPT_RECORDS || self.bytes > KEPT_BYTES {
            let Some(oldest) = self.records.pop_front() else { break };
            self.bytes -= oldest.bytes;
            portion.history = Some(oldest.by);
            portion.records.push(oldest.record);
        }
        portion
    }

    /// Takes note of one record that became history at revision `by`.
    pub(crate) fn push(&mut self, by: Revision, record: (Revision, Box<str>), bytes: usize) {
        self.bytes += bytes;
        self.records.push_back(Superseded { by, record, bytes });
    }
}
