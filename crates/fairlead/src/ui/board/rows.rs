//! The rows in the order in which they last changed, so that whoever has seen some revision gets what changed since, each row
//! once and as it is now. Readers have no queues: one who reads slowly sees fewer of the states in between.

use std::collections::{BTreeMap, VecDeque};

use bytes::{BufMut, Bytes, BytesMut};
use fairlead_api::source::Key;
use fairlead_explain::Verdict;
use serde_json::json;

#[cfg(test)]
mod tests;

/// Rows that are gone are remembered for those who have not heard of it; so many at most.
const MOST_GONE: usize = 10_000;

/// All rows.
#[derive(Debug)]
pub(crate) struct Rows {
    rows: BTreeMap<Key, Row>,
    /// How many rows have which verdict.
    verdicts: BTreeMap<Verdict, usize>,
    /// What changed at a revision: each row once, where it last changed, and rows that are gone.
    order: BTreeMap<u64, Key>,
    gone: VecDeque<u64>,
    revision: u64,
    /// What was gone at or before this revision may be forgotten.
    floor: u64,
}

/// A row as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) json: Bytes,
    pub(crate) verdict: Verdict,
}

#[derive(Debug)]
struct Row {
    made: Made,
    revision: u64,
}

/// What changed since then is not known any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooOld;

impl Rows {
    /// No rows yet, at a revision.
    pub(crate) fn new(revision: u64) -> Rows {
        let (rows, verdicts, order, gone) = Default::default();
        Rows { rows, verdicts, order, gone, revision, floor: revision }
    }

    /// The newest revision.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// How many rows have a verdict.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.verdicts.get(&verdict).copied().unwrap_or_default()
    }

    /// A row, as JSON.
    pub(crate) fn get(&self, key: &Key) -> Option<&Bytes> {
        self.rows.get(key).map(|row| &row.made.json)
    }

    /// A row is so now; `None`: it is gone.
    pub(crate) fn put(&mut self, key: &Key, made: Option<Made>) {
        let before = self.rows.get(key);
        if before.map(|row| &row.made) == made.as_ref() {
            return;
        }
        if let Some(before) = before {
            self.order.remove(&before.revision);
            if let Some(count) = self.verdicts.get_mut(&before.made.verdict) {
                *count -= 1;
            }
        }
        self.revision += 1;
        self.order.insert(self.revision, key.clone());
        match made {
            Some(made) => {
                *self.verdicts.entry(made.verdict).or_default() += 1;
                self.rows.insert(key.clone(), Row { made, revision: self.revision });
            }
            None => {
                self.rows.remove(key);
                self.gone.push_back(self.revision);
                self.forget();
            }
        }
    }

    fn forget(&mut self) {
        while self.gone.len() > MOST_GONE {
            let Some(oldest) = self.gone.pop_front() else { return };
            self.order.remove(&oldest);
            self.floor = oldest;
        }
    }

    /// All rows, by namespace and name.
    pub(crate) fn list(&self) -> Bytes {
        let size: usize = self.rows.values().map(|row| row.made.json.len() + 1).sum();
        let mut out = BytesMut::with_capacity(size + 64);
        out.put_slice(format!("{{\"revision\":\"{}\",\"items\":[", self.revision).as_bytes());
        for (place, row) in self.rows.values().enumerate() {
            if place > 0 {
                out.put_u8(b',');
            }
            out.put_slice(&row.made.json);
        }
        out.put_slice(b"]}");
        out.freeze()
    }

    /// Whether what changed since a revision is known. Since 0 that is everything there is.
    pub(crate) fn knows(&self, since: u64) -> bool {
        since == 0 || (self.floor..=self.revision).contains(&since)
    }

    /// What changed after a revision, as lines of JSON, and the revision that is reached with them: up to so many rows, but
    /// all of them for one who has seen nothing.
    pub(crate) fn since(&self, since: u64, most: usize) -> Result<(Bytes, u64), TooOld> {
        if !self.knows(since) {
            return Err(TooOld);
        }
        let most = if since == 0 { usize::MAX } else { most };
        let (mut out, mut reached) = (BytesMut::new(), self.revision);
        for (count, (revision, key)) in self.order.range(since.saturating_add(1)..).enumerate() {
            if count == most {
                break;
            }
            if count + 1 == most {
                reached = *revision;
            }
            match self.rows.get(key) {
                Some(row) if row.revision == *revision => {
                    out.put_slice(b"{\"type\":\"PUT\",\"row\":");
                    out.put_slice(&row.made.json);
                    out.put_slice(b"}\n");
                }
                // It is there again, which a later line tells, or it is gone.
                _ => {
                    let line = json!({"type": "DELETE", "namespace": &*key.namespace, "name": &*key.name});
                    out.put_slice(line.to_string().as_bytes());
                    out.put_u8(b'\n');
                }
            }
        }
        Ok((out.freeze(), reached))
    }
}
