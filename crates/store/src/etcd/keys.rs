//! How keys, values and revisions of ours look in etcd, and back.

use std::sync::Arc;

use bytes::Bytes;

use super::messages::{KeyValue, WatchEvent, WatchEventType};
use crate::{Draft, Entry, Error, Event, Revision};

/// Reads a stored value: JSON without a resourceVersion, or whatever else other programs put there.
pub type Decode = fn(key: &str, value: &[u8]) -> Result<Draft, String>;

/// The root of all keys, as kube-apiserver and this program name it.
const ROOT: &str = "/registry";

/// Translates between etcd and us.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    /// What stands in etcd where our keys have `/registry`.
    prefix: String,
    decode: Decode,
}

/// Keys from one up to, and without, another.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) start: Bytes,
    pub(super) end: Bytes,
}

impl Reader {
    pub(super) fn new(prefix: &str, decode: Decode) -> Reader {
        let prefix = format!("/{}", prefix.trim_matches('/'));
        Reader { prefix: if prefix == "/" { String::new() } else { prefix }, decode }
    }

    /// A key of ours as it is in etcd.
    pub(super) fn outside(&self, key: &str) -> Bytes {
        match key.strip_prefix(ROOT) {
            Some(rest) => format!("{}{rest}", self.prefix).into(),
            None => key.to_owned().into(),
        }
    }

    /// The keys that begin with a prefix of ours, or those of them after another.
    pub(super) fn span(&self, prefix: &str, after: Option<&str>) -> Span {
        let start = self.outside(prefix);
        let end = successor(&start);
        match after {
            Some(after) if after >= prefix => Span { start: [&self.outside(after)[..], &[0]].concat().into(), end },
            _ => Span { start, end },
        }
    }

    /// Everything of ours.
    pub(super) fn all(&self) -> Span {
        self.span("/registry/", None)
    }

    /// The key of ours that a key in etcd is; `None` if it is not ours.
    pub(super) fn inside(&self, key: &[u8]) -> Option<Box<str>> {
        let rest = std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?;
        rest.starts_with('/').then(|| format!("{ROOT}{rest}").into())
    }

    /// A stored value as an object.
    pub(super) fn entry(&self, kv: &KeyValue) -> Result<Entry, Error> {
        let name = || String::from_utf8_lossy(&kv.key).into_owned();
        let key = self.inside(&kv.key).ok_or_else(|| Error::Damaged { key: name(), why: "a foreign key".into() })?;
        let draft = (self.decode)(&key, &kv.value).map_err(|why| Error::Damaged { key: name(), why })?;
        Ok(Entry::new(key, revision(kv.mod_revision), &draft))
    }

    /// A change. A delete shows the object as it was, with the delete's revision.
    pub(super) fn event(&self, event: &WatchEvent) -> Result<Event, Error> {
        let damaged = |why: &str| {
            let key = event.kv.as_ref().map(|kv| String::from_utf8_lossy(&kv.key).into_owned());
            Error::Damaged { key: key.unwrap_or_default(), why: why.into() }
        };
        let kv = event.kv.as_ref().ok_or_else(|| damaged("an event without a key"))?;
        let previous = event.prev_kv.as_ref().map(|kv| self.entry(kv)).transpose()?.map(Arc::new);
        let revision = revision(kv.mod_revision);
        if event.r#type() == WatchEventType::Put {
            let entry = Arc::new(self.entry(kv)?);
            return Ok(Event { revision, entry, previous, deleted: false });
        }
        let gone = previous.ok_or_else(|| damaged("a delete without the object it deleted"))?;
        Ok(Event { revision, entry: Arc::new(gone.at(revision)), previous: Some(gone), deleted: true })
    }
}

/// A revision as etcd writes it.
pub(super) fn wire(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

/// A revision as we write it.
pub(super) fn revision(wire: i64) -> Revision {
    Revision(u64::try_from(wire).unwrap_or(0))
}

/// The first key that does not begin with a prefix.
fn successor(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end.into();
        }
    }
    // For etcd a single zero byte means: to the last key there is.
    Bytes::from_static(&[0])
}
