//! Answers: what happened, newest first; and what was there at a time.

use std::io::ErrorKind;
use std::sync::Arc;

use jiff::Timestamp;

use crate::record::{Body, Gap};
use crate::replay::{Said, Seen, World, in_order};
use crate::segments::{self, Segment};
use crate::subject::{Members, Subject};
use crate::{Error, Followed, Shared, lines};

mod moment;
mod told;
mod words;

pub(crate) use moment::moment;
pub use moment::{Moment, Place};
pub(crate) use told::Told;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// Whose past; `None`: everything.
    pub subject: Option<Subject>,
    /// Nothing older.
    pub since: Option<Timestamp>,
    /// No more than this.
    pub limit: usize,
}

/// What happened.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// From when on everything is kept; `None`: nothing is yet.
    pub from: Option<Timestamp>,
    /// How many changes are kept.
    pub changes: u64,
    /// Newest first.
    pub items: Vec<Item>,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// When.
    pub at: Timestamp,
    /// It was seen later than it happened, and the time is a guess.
    pub late: bool,
    /// The resourceVersion it made; 0 for a gap.
    pub revision: u64,
    /// `Service`; `Gap` where changes may be missing.
    pub kind: &'static str,
    /// Empty for Nodes, ranges and gaps, and for Events about them.
    pub namespace: String,
    /// Of an Event: of what it is about.
    pub name: String,
    /// What it was.
    pub change: Happened,
    /// Who; empty if nobody knows.
    pub by: String,
    /// In words.
    pub lines: Vec<String>,
}

/// What sort of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// It was made.
    Created,
    /// It was changed.
    Changed,
    /// It was deleted.
    Deleted,
    /// An Event was written.
    Event,
    /// Changes may be missing.
    Gap,
}

/// What happened, newest first.
pub(crate) fn timeline(shared: &Shared, wish: &Wish) -> Result<Timeline, Error> {
    let files = shared.files();
    let oldest = oldest(shared);
    let since = wish.since.map_or(oldest, |since| since.max(oldest));
    let mut items: Vec<Item> = Vec::new();
    for file in files.iter().rev().take_while(|file| file.ends >= since) {
        let sealed = Some(file) != files.last();
        let found = of_file(shared, file, sealed, wish.subject.as_ref())?;
        items.extend(found.iter().filter(|item| item.at >= since).cloned());
        if items.len() >= wish.limit {
            break;
        }
    }
    items.truncate(wish.limit);
    let from = files.first().map(|file| file.begins.max(oldest));
    Ok(Timeline { from, changes: files.iter().map(|file| file.changes).sum(), items })
}

/// What is older may still stand in a file, but is no longer told.
fn oldest(shared: &Shared) -> Timestamp {
    let age = jiff::SignedDuration::try_from(shared.bounds.age).unwrap_or(jiff::SignedDuration::MAX);
    shared.now().checked_sub(age).unwrap_or(Timestamp::MIN)
}

/// A file's bytes; `None` if it has been removed meanwhile.
fn bytes(file: &Segment) -> Result<Option<Vec<u8>>, Error> {
    match segments::read(file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What a file tells about a subject, newest first. What a file that no longer changes has told is remembered.
fn of_file(shared: &Shared, file: &Segment, sealed: bool, subject: Option<&Subject>) -> Result<Arc<Vec<Item>>, Error> {
    let key = subject.filter(|_| sealed).map(|subject| (file.number, subject.to_string()));
    if let Some(known) = key.as_ref().and_then(|key| shared.told.get(key)) {
        return Ok(known);
    }
    let Some(bytes) = bytes(file)? else { return Ok(Arc::default()) };
    let found = Arc::new(newest_first(replayed(&bytes, subject)));
    if let Some(key) = key {
        shared.told.put(key, found.clone());
    }
    Ok(found)
}

/// What was seen late stands where it happened, which its revision tells: its time may be known in whole seconds only. A gap stands
/// behind what came before it.
fn newest_first(items: Vec<Item>) -> Vec<Item> {
    let mut reached = 0;
    let mut ordered: Vec<(u64, Item)> = Vec::with_capacity(items.len());
    for item in items {
        reached = reached.max(item.revision);
        ordered.push((if item.change == Happened::Gap { reached } else { item.revision }, item));
    }
    ordered.reverse();
    ordered.sort_by_key(|(revision, _)| std::cmp::Reverse(*revision));
    ordered.into_iter().map(|(_, item)| item).collect()
}

/// What the bytes of a file tell about a subject, oldest first.
fn replayed(bytes: &[u8], subject: Option<&Subject>) -> Vec<Item> {
    let mut world = World::of(subject.map(Subject::namespaces).as_deref());
    let mut members = subject.map(Members::new);
    let mut items = Vec::new();
    world.replay(in_order(bytes), |world, said| {
        match said {
            Said::Changed(seen) => {
                let ours = members.as_mut().is_none_or(|members| members.include(world, &seen));
                if ours {
                    items.extend(item(&seen));
                }
            }
            Said::Gap(gap) => items.push(gap_item(&gap)),
            Said::Mark(_) | Said::Copies => {}
        }
        true
    });
    items
}

/// A change in words; `None` if there is nothing to be said.
fn item(seen: &Seen) -> Option<Item> {
    let Seen { change, before, after } = seen;
    // Fields in another order make another text, and nothing else.
    if before.is_some() && before == after {
        return None;
    }
    let mut item = Item {
        at: change.at,
        late: change.late,
        revision: change.revision,
        kind: change.kind.kind().kind,
        namespace: change.namespace.clone(),
        name: change.name.clone(),
        change: Happened::Changed,
        by: change.by.clone(),
        lines: lines::lines(change.kind, &change.name, before.as_deref(), after.as_deref()),
    };
    match &change.body {
        Body::New(_) if change.kind == Followed::Event => words::about(&mut item, after.as_deref()?),
        Body::New(_) => item.change = Happened::Created,
        Body::Gone => item.change = Happened::Deleted,
        Body::LeftOut => item.lines = vec!["it is too large for the history".to_owned()],
        // What it was is not known, so neither is what changed.
        Body::Whole(_) if before.is_none() => item.lines = vec!["changed; what it was before is not kept".to_owned()],
        Body::Whole(_) | Body::Difference(_) => {}
    }
    Some(item)
}

fn gap_item(gap: &Gap) -> Item {
    Item {
        at: gap.to,
        late: false,
        revision: 0,
        kind: "Gap",
        namespace: String::new(),
        name: String::new(),
        change: Happened::Gap,
        by: String::new(),
        lines: vec![words::gap(gap)],
    }
}
