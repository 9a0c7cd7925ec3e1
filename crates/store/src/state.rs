//! The present in memory, shared by the stores that keep it there: objects by key, and how transactions change them.
//!
//! A batch of transactions is planned first and applied later, so that a store can make it durable in between.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};

use crate::window::{Keep, Windows};
use crate::{Entry, Error, Event, Outcome, Page, Range, Revision, Txn, Watch, Write};

/// Objects by key, and their past.
#[derive(Debug)]
pub(crate) struct State {
    present: RwLock<Present>,
    windows: Windows,
}

/// What is there now.
#[derive(Debug, Default)]
pub(crate) struct Present {
    entries: BTreeSet<ByKey>,
    pub(crate) revision: Revision,
}

/// An entry in the order of keys: the key it bears is the only copy.
#[derive(Debug)]
struct ByKey(Arc<Entry>);

/// What a batch of transactions will change.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// In order.
    pub(crate) events: Vec<Event>,
    /// The revision after the batch.
    pub(crate) revision: Revision,
    /// One for each transaction.
    pub(crate) outcomes: Vec<Outcome>,
}

impl State {
    /// What is present, and the events that led to it after `start`.
    pub(crate) fn new(present: Present, start: Revision, events: Vec<Event>) -> State {
        let windows = Windows::new(start, Keep::Everything);
        windows.publish(events, present.revision);
        State { present: RwLock::new(present), windows }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<Arc<Entry>> {
        self.read(|present| present.entry(key).cloned())
    }

    pub(crate) fn revision(&self) -> Revision {
        self.read(|present| present.revision)
    }

    pub(crate) fn page(&self, range: &Range) -> Result<Page, Error> {
        self.read(|present| {
            let current = present.revision;
            let at = range.at.unwrap_or(current);
            if at > current {
                return Err(Error::Future { requested: at, current });
            }
            if at == current {
                return Ok(Page::cut(present.under(range), Arc::clone, range.limit, at));
            }
            let mut older = self.windows.undo(&range.prefix, at)?;
            if let Some(after) = &range.after {
                older = older.split_off(after);
                older.remove(after);
            }
            Ok(Page::cut(overlay(present.under(range), older), |entry| entry, range.limit, at))
        })
    }

    pub(crate) fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, Error> {
        self.windows.watch(prefix, after)
    }

    /// Works out what transactions do, one after the other, each seeing those before it.
    pub(crate) fn plan<'a>(&self, txns: impl IntoIterator<Item = &'a Txn>) -> Plan {
        self.read(|present| {
            let mut planning = Planning::over(present);
            txns.into_iter().for_each(|txn| planning.add(txn));
            planning.plan
        })
    }

    /// Makes a plan the present. Only the one who planned may apply, and nobody else may have applied since.
    pub(crate) fn apply(&self, events: Vec<Event>, revision: Revision) {
        let mut present = self.present.write().unwrap_or_else(PoisonError::into_inner);
        for event in &events {
            match event.deleted {
                true => present.remove(&event.entry.key),
                false => present.put(event.entry.clone()),
            }
        }
        present.revision = revision;
        // Still under the lock: a list of an older revision needs the present and the past to agree.
        self.windows.publish(events, revision);
    }

    fn read<T>(&self, look: impl FnOnce(&Present) -> T) -> T {
        look(&self.present.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Present {
    /// Nothing, at a revision.
    pub(crate) fn at(revision: Revision) -> Present {
        Present { entries: BTreeSet::new(), revision }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Arc<Entry>> {
        self.entries.get(key).map(|ByKey(entry)| entry)
    }

    pub(crate) fn put(&mut self, entry: Arc<Entry>) {
        self.entries.replace(ByKey(entry));
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.entries.remove(key);
    }

    fn under(&self, range: &Range) -> impl Iterator<Item = &Arc<Entry>> {
        let prefix = &*range.prefix;
        let start = match range.after.as_deref() {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let from = self.entries.range::<str, _>((start, Bound::Unbounded));
        from.map(|ByKey(entry)| entry).take_while(move |entry| entry.key.starts_with(prefix))
    }
}

impl Borrow<str> for ByKey {
    fn borrow(&self) -> &str {
        &self.0.key
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &ByKey) -> bool {
        self.0.key == other.0.key
    }
}

impl Eq for ByKey {}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &ByKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &ByKey) -> Ordering {
        self.0.key.cmp(&other.0.key)
    }
}

/// The present with some keys put back to what they were.
fn overlay<'a>(
    present: impl Iterator<Item = &'a Arc<Entry>>,
    older: BTreeMap<Box<str>, Option<Arc<Entry>>>,
) -> impl Iterator<Item = Arc<Entry>> {
    let mut present = present.peekable();
    let mut older = older.into_iter().peekable();
    std::iter::from_fn(move || {
        loop {
            let take_older = match (present.peek(), older.peek()) {
                (Some(entry), Some((key, _))) => *key <= entry.key,
                (None, Some(_)) => true,
                (_, None) => return present.next().cloned(),
            };
            if !take_older {
                return present.next().cloned();
            }
            let (key, entry) = older.next()?;
            present.next_if(|same| same.key == key);
            if entry.is_some() {
                return entry;
            }
        }
    })
}

struct Planning<'a> {
    present: &'a Present,
    changed: HashMap<&'a str, Option<Arc<Entry>>>,
    plan: Plan,
}

impl<'a> Planning<'a> {
    fn over(present: &'a Present) -> Planning<'a> {
        let plan = Plan { revision: present.revision, ..Plan::default() };
        Planning { present, changed: HashMap::new(), plan }
    }

    fn add<'t: 'a>(&mut self, txn: &'t Txn) {
        let refused = txn.guards.iter().position(|guard| !guard.holds(self.current(guard.key()).map(|e| e.revision)));
        let outcome = match refused {
            Some(guard) => Outcome::Refused(guard),
            None => Outcome::Done(self.write(&txn.writes)),
        };
        self.plan.outcomes.push(outcome);
    }

    fn write<'t: 'a>(&mut self, writes: &'t [Write]) -> Revision {
        let revision = Revision(self.plan.revision.0 + 1);
        for write in writes {
            match write {
                Write::Put(key, draft) => {
                    let entry = Arc::new(Entry::new(key.clone(), revision, draft));
                    let previous = self.current(key).cloned();
                    self.changed.insert(key, Some(entry.clone()));
                    self.push(Event { revision, entry, previous, deleted: false });
                }
                Write::Delete(key) => {
                    let Some(previous) = self.current(key).cloned() else { continue };
                    let entry = Arc::new(previous.at(revision));
                    self.changed.insert(key, None);
                    self.push(Event { revision, entry, previous: Some(previous), deleted: true });
                }
            }
        }
        self.plan.revision
    }

    /// The first change of a transaction is what takes its revision.
    fn push(&mut self, event: Event) {
        self.plan.revision = event.revision;
        self.plan.events.push(event);
    }

    fn current(&self, key: &str) -> Option<&Arc<Entry>> {
        match self.changed.get(key) {
            Some(changed) => changed.as_ref(),
            None => self.present.entry(key),
        }
    }
}
