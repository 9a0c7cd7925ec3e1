//! Events as watches send them, written once for all watches of the same form: thousands of watches
//! that do not read then hold one copy of an event and not thousands.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use fairlead_api::Kind;
use fairlead_store::Revision;
use foldhash::fast::RandomState;

use crate::negotiate::{Media, Shape};
use crate::table::Include;

/// Number of events that are remembered. Watches read an event within moments of each other.
const SLOTS: usize = 256;
/// Maximum of bytes that are remembered.
const MOST_BYTES: usize = 16 << 20;

/// Identity of a written event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameKey<'a> {
    /// Key of the object in the store.
    pub(crate) object: &'a str,
    pub(crate) revision: Revision,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub(crate) event: &'static str,
    pub(crate) form: FrameForm,
}

/// The form of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FrameForm {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) media: Media,
    pub(crate) shape: Shape,
    pub(crate) include: Include,
    /// True if the columns of a table were sent before.
    pub(crate) columns_sent: bool,
    /// Second in which a row of a table is made, for the ages in it; 0 in other forms.
    pub(crate) second: i64,
}

impl FrameForm {
    pub(crate) fn of(
        kind: &'static Kind,
        media: Media,
        shape: Shape,
        include: Include,
        columns_sent: bool,
    ) -> FrameForm {
        let second = if matches!(shape, Shape::Table(_)) { crate::clock::seconds() } else { 0 };
        FrameForm { group: kind.group, version: kind.version, media, shape, include, columns_sent, second }
    }
}

/// Written events, the newest of each slot.
#[derive(Debug)]
pub(crate) struct Frames {
    slots: Vec<Mutex<Option<Slot>>>,
    bytes: AtomicUsize,
    hasher: RandomState,
}

#[derive(Debug)]
struct Slot {
    object: Box<str>,
    revision: Revision,
    event: &'static str,
    form: FrameForm,
    frame: Bytes,
}

impl Default for Frames {
    fn default() -> Frames {
        let slots = (0..SLOTS).map(|_| Mutex::default()).collect();
        Frames { slots, bytes: AtomicUsize::new(0), hasher: RandomState::default() }
    }
}

impl Frames {
    /// Returns an event, written by `write` if no watch has asked for it before. Watches that ask
    /// at the same time wait for the one that writes.
    pub(crate) fn get(&self, key: &FrameKey<'_>, write: impl FnOnce() -> Bytes) -> Bytes {
        let hash = self.hasher.hash_one((key.object, key.revision.0, key.event, key.form));
        let mut slot = lock(&self.slots[hash as usize % SLOTS]);
        if let Some(slot) = slot.as_ref().filter(|slot| slot.is(key)) {
            return slot.frame.clone();
        }
        let frame = write();
        let before = slot.as_ref().map_or(0, |slot| slot.frame.len());
        let object = key.object.into();
        let new = Slot { object, revision: key.revision, event: key.event, form: key.form, frame: frame.clone() };
        *slot = Some(new);
        self.bytes.fetch_sub(before, Ordering::Relaxed);
        let bytes = self.bytes.fetch_add(frame.len(), Ordering::Relaxed) + frame.len();
        drop(slot);
        if bytes > MOST_BYTES {
            self.forget();
        }
        frame
    }

    fn forget(&self) {
        for slot in &self.slots {
            if let Some(slot) = lock(slot).take() {
                self.bytes.fetch_sub(slot.frame.len(), Ordering::Relaxed);
            }
        }
    }
}

impl Slot {
    fn is(&self, key: &FrameKey<'_>) -> bool {
        self.revision == key.revision && self.event == key.event && self.form == key.form && *self.object == *key.object
    }
}

/// Locks even after a panic in another thread: a slot is replaced whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
