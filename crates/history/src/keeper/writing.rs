//! How what was seen gets into files: appended, marked, synced; and another file begun, with copies of everything, when it is time.

use std::collections::HashSet;
use std::io;
use std::time::Instant;

use jiff::Timestamp;

use super::{BLOCK, Keeper, MAX_OBJECT, RETRY};
use crate::Followed;
use crate::batch::Batch;
use crate::record::{Copy, Gap, Record, encode_copies};
use crate::replay::Id;

/// What keeps the history from being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    /// What was seen waits in memory since the last attempt.
    Waiting(Instant),
    /// What was seen is lost from a time on. Another file, with copies of everything, makes good what can be made good.
    Lost(Timestamp, Instant),
}

impl Keeper<'_> {
    /// Puts what waits into the file, and begins another file when it is time.
    pub(super) fn write(&mut self) {
        let now = self.shared.now();
        let done = match self.trouble {
            Trouble::Waiting(last) | Trouble::Lost(_, last) if last.elapsed() < RETRY => return self.bear(now),
            Trouble::Lost(from, _) => self.begin_after(from, now),
            Trouble::None | Trouble::Waiting(_) => self.append(now),
        };
        match done {
            Ok(()) if self.trouble != Trouble::None => {
                self.trouble = Trouble::None;
                tracing::info!("the history is written again");
            }
            Ok(()) => {}
            Err(error) => self.failed(&error, now),
        }
        self.shared.publish(self.segments.all());
        if self.lists.all_known() && self.trouble == Trouble::None {
            self.shared.starting.send_if_modified(std::mem::take);
        }
    }

    fn append(&mut self, now: Timestamp) -> io::Result<()> {
        if !self.waiting.bytes().is_empty() {
            self.segments.append(now, &self.waiting)?;
            self.waiting.clear();
        }
        if self.segments.full(now) { self.begin(now, None) } else { Ok(()) }
    }

    fn failed(&mut self, error: &io::Error, now: Timestamp) {
        self.trouble = match self.trouble {
            Trouble::None => {
                tracing::warn!(%error, "the history cannot be written");
                Trouble::Waiting(Instant::now())
            }
            Trouble::Waiting(_) => Trouble::Waiting(Instant::now()),
            Trouble::Lost(from, _) => Trouble::Lost(from, Instant::now()),
        };
        self.bear(now);
    }

    /// While nothing can be written: keeps what waits, as long as that is little.
    fn bear(&mut self, now: Timestamp) {
        match self.trouble {
            Trouble::Waiting(last) if self.waiting.bytes().len() > self.segments.room_for_waiting() => {
                let from = self.segments.all().last().map_or(now, |file| file.ends);
                tracing::warn!(%from, "the history has a gap: too much waits to be written");
                self.trouble = Trouble::Lost(from, last);
                self.waiting.clear();
            }
            // Differences to what is not in the file could not be read.
            Trouble::Lost(..) => self.waiting.clear(),
            Trouble::Waiting(_) | Trouble::None => {}
        }
    }

    fn begin_after(&mut self, from: Timestamp, now: Timestamp) -> io::Result<()> {
        self.waiting.clear();
        let why = "they could not be written".to_owned();
        self.begin(now, Some(Gap { from: from.min(now), to: now, why }))
    }

    fn begin(&mut self, now: Timestamp, gap: Option<Gap>) -> io::Result<()> {
        let (copies, left_out) = self.copies(now, |_| true);
        let mut batch = Batch::default();
        batch.extend(&copies);
        gap.into_iter().for_each(|gap| batch.push(&Record::Gap(gap)));
        batch.push(&Record::Mark(self.marked));
        self.segments.begin(now, &batch)?;
        self.copied(self.segments.newest(), &left_out, |_| true);
        Ok(())
    }

    /// Notes in which file objects can be read.
    pub(super) fn copied(&mut self, file: u64, left_out: &HashSet<Id>, wanted: impl Fn(&Id) -> bool) {
        for (id, held) in self.held.iter_mut().filter(|(id, _)| wanted(id)) {
            held.file = if left_out.contains(id) { 0 } else { file };
        }
    }

    /// Copies of what is held, packed, as far as there is room, and what was left out.
    pub(super) fn copies(&self, now: Timestamp, wanted: impl Fn(&Id) -> bool) -> (Vec<Vec<u8>>, HashSet<Id>) {
        let mut room = self.segments.room_for_copies();
        let (mut records, mut block) = (Vec::new(), Vec::new());
        let mut left_out = HashSet::new();
        for kind in Followed::ALL {
            for (id, held) in self.held.iter().filter(|(id, _)| id.kind == kind && wanted(id)) {
                let kept = held.kept(kind).filter(|json| json.len() <= MAX_OBJECT && room > 0);
                let Some(json) = kept else {
                    left_out.insert(id.clone());
                    continue;
                };
                let copy = Copy {
                    kind,
                    revision: held.revision,
                    namespace: id.namespace.to_string(),
                    name: id.name.to_string(),
                    json: json.into_owned(),
                };
                copy.append(&mut block);
                if block.len() >= BLOCK {
                    pack(now, &mut block, &mut records, &mut room);
                }
            }
        }
        pack(now, &mut block, &mut records, &mut room);
        if !left_out.is_empty() {
            tracing::warn!(objects = left_out.len(), "the history has no room for all objects; raise --history-size");
        }
        (records, left_out)
    }

    /// Says up to which revision nothing is missing.
    pub(super) fn mark(&mut self, revision: u64) {
        if revision > self.marked && self.lists.all_known() && self.cut_off.is_empty() {
            self.marked = revision;
            self.waiting.push(&Record::Mark(revision));
        }
    }

    /// Marks how far nothing is missing. A mark lags by one round, since what has been seen of one kind may still be on its way of
    /// another.
    pub(super) fn settle(&mut self) {
        self.mark(self.settled);
        self.settled = self.seen;
        self.write();
    }

    /// Puts it all on disk, and removes what is too old.
    pub(super) fn sync(&mut self) {
        let now = self.shared.now();
        if let Err(error) = self.segments.sync().and_then(|()| self.segments.trim(now)) {
            tracing::warn!(%error, "the history cannot be synced");
        }
    }
}

fn pack(now: Timestamp, block: &mut Vec<u8>, records: &mut Vec<Vec<u8>>, room: &mut u64) {
    if block.is_empty() {
        return;
    }
    let record = encode_copies(now, block);
    *room = room.saturating_sub(record.len() as u64);
    records.push(record);
    block.clear();
}
