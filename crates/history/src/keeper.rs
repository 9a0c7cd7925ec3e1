//! Follows the cluster and writes down what changes. One thread, which nobody waits for; what it has not yet seen waits in the
//! store's own window, and what falls out of that is a gap in the history.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use fairlead_cluster::{Cluster, Event, Key, Object, Selection, Step};
use futures_util::stream::{BoxStream, select_all};
use futures_util::{FutureExt, Stream, StreamExt};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::batch::Batch;
use crate::record::{Body, Change, Gap, Record};
use crate::replay::Id;
use crate::segments::Segments;
use crate::{Followed, Shared, delta, trim};
use listing::Lists;
use starting::until_it_works;
use writing::Trouble;

mod listing;
mod starting;
mod writing;

/// Between two looks at what changed: under load hundreds of changes are taken at once.
const PAUSE: Duration = Duration::from_millis(20);
/// The most steps that are taken before the clock is looked at.
const AT_ONCE: usize = 64;
/// Between two marks, while something changes: of so much, and as much again, a restart asks the store once more.
const ROUND: Duration = Duration::from_millis(250);
/// How long what was written may stay off the disk.
const SYNC: Duration = Duration::from_secs(1);
/// The largest object whose past is kept, trimmed.
const MAX_OBJECT: usize = 1 << 20;
/// How many bytes of copies are packed together.
const BLOCK: usize = 256 << 10;
/// Between two attempts to write what could not be written.
const RETRY: Duration = Duration::from_secs(2);
/// Gaps that follow each other this closely are one.
const ONE_GAP: jiff::SignedDuration = jiff::SignedDuration::from_secs(10);

/// Who wrote last, and when, as far as an object says.
type Newest = (Option<String>, Option<Timestamp>);

/// Keeps the history until told to stop.
pub(crate) fn run(shared: &Shared, dir: &Path, cluster: &Cluster, stop: &CancellationToken) {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(keep(shared, dir, cluster, stop)),
        Err(error) => tracing::warn!(%error, "no history is kept"),
    }
}

async fn keep(shared: &Shared, dir: &Path, cluster: &Cluster, stop: &CancellationToken) {
    let Some(mut keeper) = until_it_works(stop, || Keeper::open(shared, dir)).await else { return };
    let Some(uid) = keeper.ask(cluster, stop).await else { return };
    if until_it_works(stop, || keeper.resume(&uid)).await.is_some() {
        keeper.run(cluster, stop).await;
    }
}

struct Keeper<'s> {
    shared: &'s Shared,
    segments: Segments,
    held: HashMap<Id, Held, foldhash::fast::RandomState>,
    lists: Lists,
    /// On their way into the file.
    waiting: Batch,
    /// The newest revision seen, and the one seen when the last mark was made.
    seen: u64,
    settled: u64,
    marked: u64,
    /// The revision of the oldest of the first lists.
    first: u64,
    /// What is not newer happened before we began.
    began: u64,
    /// When something was written last, before this run.
    last: Option<Timestamp>,
    gap: Option<Timestamp>,
    trouble: Trouble,
    /// Kinds whose changes cannot be had at the moment.
    cut_off: HashSet<Followed>,
    /// What stands in the newest files behind the last mark.
    told: HashSet<(u64, Id)>,
    /// When what is being taken in was seen.
    now: Timestamp,
}

/// An object as it was last seen.
struct Held {
    revision: u64,
    /// The store's own bytes, shared, of objects that are kept whole; of others what is kept.
    json: Bytes,
    /// The file in which it can be read from there on; 0: none.
    file: u64,
}

impl Held {
    fn new(kind: Followed, revision: u64, json: Bytes, kept: Vec<u8>, file: u64) -> Held {
        Held { revision, json: if trim::is_whole(kind) { json } else { kept.into() }, file }
    }

    /// What is kept of it.
    fn kept(&self, kind: Followed) -> Option<Cow<'_, [u8]>> {
        match trim::is_whole(kind) {
            true => trim::trim(kind, &self.json).map(|kept| kept.text.into()),
            false => Some((&*self.json).into()),
        }
    }
}

impl Keeper<'_> {
    async fn run(mut self, cluster: &Cluster, stop: &CancellationToken) {
        let mut steps = self.follow(cluster);
        let [mut round, mut tick] = [ROUND, SYNC].map(tokio::time::interval);
        round.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some((kind, step)) = steps.next() => {
                    self.now = self.shared.now();
                    // More may come meanwhile, and who wrote it is known when the writer has its answer.
                    tokio::time::sleep(PAUSE).await;
                    self.take(kind, step);
                    self.take_ready(&mut steps);
                    self.write();
                }
                _ = round.tick(), if self.seen > self.marked => {
                    // A mark must not pass by what is there already.
                    self.take_ready(&mut steps);
                    self.settle();
                }
                _ = tick.tick() => {
                    self.write();
                    self.sync();
                }
            }
        }
        self.settle();
        self.sync();
    }

    /// Takes what is there without waiting.
    fn take_ready(&mut self, steps: &mut (impl Stream<Item = (Followed, Step)> + Unpin)) {
        for _ in 0..AT_ONCE {
            let Some(Some((kind, step))) = steps.next().now_or_never() else { break };
            self.now = self.shared.now();
            self.take(kind, step);
        }
    }

    fn follow(&self, cluster: &Cluster) -> impl Stream<Item = (Followed, Step)> + Unpin + use<> {
        let after = (self.marked > 0).then_some(self.marked);
        let one = |kind: Followed| -> BoxStream<'static, (Followed, Step)> {
            let steps = cluster.follow_after(Selection::all(kind.kind()), after);
            steps.map(move |step| (kind, step)).boxed()
        };
        select_all(Followed::ALL.map(one))
    }

    fn take(&mut self, kind: Followed, step: Step) {
        match step {
            Step::Listing => {
                if self.lists.begin(kind) {
                    self.missed("the store no longer had the changes that followed what was kept last");
                }
            }
            Step::Objects(objects) => objects.into_iter().for_each(|object| self.listed(kind, object)),
            Step::Listed(revision) => {
                self.cut_off.remove(&kind);
                self.complete(kind, revision);
            }
            Step::Changed(events, revision) => {
                self.cut_off.remove(&kind);
                for event in events {
                    self.event(kind, event);
                    if self.waiting.bytes().len() >= self.segments.portion() {
                        self.write();
                    }
                }
                self.seen = self.seen.max(revision);
            }
            Step::Trouble(failure) => {
                self.cut_off.insert(kind);
                tracing::debug!(kind = kind.kind().kind, error = failure.message, "the history waits for the store");
            }
        }
    }

    fn event(&mut self, kind: Followed, event: Event) {
        let late = event.revision() <= self.began;
        if late && self.was_told(kind, &event) {
            return;
        }
        match event {
            Event::Put(object) => self.put(kind, object, late),
            Event::Delete(key, revision) => {
                let id = Id { kind, namespace: key.namespace, name: key.name };
                self.gone(&id, revision, late);
            }
        }
    }

    /// Whether it stands in the file already: a mark lags behind what is written.
    fn was_told(&mut self, kind: Followed, event: &Event) -> bool {
        let Key { namespace, name } = event.key().clone();
        self.told.remove(&(event.revision(), Id { kind, namespace, name }))
    }

    /// An object of a list: news only if we knew the kind before.
    fn listed(&mut self, kind: Followed, object: Object) {
        if kind == Followed::Event {
            return;
        }
        let key = object.key.clone();
        let id = Id { kind, namespace: key.namespace, name: key.name };
        if self.lists.is_known(kind) {
            self.lists.shown(&id);
            self.put(kind, object, true);
        } else if let Some(kept) = trim::trim(kind, &object.json).map(|kept| kept.text) {
            self.held.insert(id, Held::new(kind, object.revision, object.json, kept, 0));
        }
    }

    /// A list is complete: what was not in it is gone; what we first heard of gets its copies.
    fn complete(&mut self, kind: Followed, revision: u64) {
        self.seen = self.seen.max(revision);
        if !self.lists.is_known(kind) {
            self.lists.end(kind);
            let (copies, left_out) = self.copies(self.shared.now(), |id| id.kind == kind);
            self.waiting.extend(&copies);
            self.copied(self.segments.newest(), &left_out, |id| id.kind == kind);
            self.first = self.first.min(revision);
            if self.lists.all_known() {
                self.mark(self.first);
            }
            return;
        }
        let shown = self.lists.end(kind);
        let gone: Vec<Id> = self.held.keys().filter(|id| id.kind == kind && !shown.contains(id)).cloned().collect();
        gone.iter().for_each(|id| self.gone(id, revision, true));
    }

    fn put(&mut self, kind: Followed, object: Object, late: bool) {
        let Object { key, revision, json } = object;
        let id = Id { kind, namespace: key.namespace, name: key.name };
        let held = self.held.get(&id);
        if held.is_some_and(|held| held.revision >= revision) {
            return;
        }
        let Some(kept) = trim::trim(kind, &json) else { return };
        let before = held.and_then(|held| held.kept(kind));
        if before.as_deref() == Some(&kept.text) {
            let file = held.map_or(0, |held| held.file);
            self.held.insert(id, Held::new(kind, revision, json.clone(), kept.text, file));
            return;
        }
        let newest = self.segments.newest();
        let body = match &before {
            _ if kept.text.len() > MAX_OBJECT => Body::LeftOut,
            None => Body::New(kept.text.clone()),
            Some(before) if held.is_some_and(|held| held.file == newest) => difference_or_whole(before, &kept.text),
            Some(_) => Body::Whole(kept.text.clone()),
        };
        drop(before);
        let file = if body == Body::LeftOut { 0 } else { newest };
        self.record(&id, revision, body, late, || kept.newest());
        if kind != Followed::Event {
            self.held.insert(id, Held::new(kind, revision, json.clone(), kept.text, file));
        }
    }

    fn gone(&mut self, id: &Id, revision: u64, late: bool) {
        // One that was made anew since is not gone.
        if self.held.get(id).is_some_and(|held| held.revision <= revision) {
            self.held.remove(id);
            self.record(id, revision, Body::Gone, late, || (None, None));
        }
    }

    /// Notes a change. `newest` reads from the object who wrote it last, and when, if nobody knows better.
    fn record(&mut self, id: &Id, revision: u64, body: Body, late: bool, newest: impl Fn() -> Newest) {
        let told = self.shared.who.as_ref().and_then(|who| who(revision));
        let (by, time) = if late || told.is_none() { newest() } else { (None, None) };
        self.waiting.push(&Record::Change(Change {
            at: self.when(late, time),
            late,
            kind: id.kind,
            revision,
            namespace: id.namespace.to_string(),
            name: id.name.to_string(),
            by: told.or(by).unwrap_or_default(),
            body,
        }));
    }

    /// Now, or for what was seen late what the object says, if that is possible.
    fn when(&self, late: bool, said: Option<Timestamp>) -> Timestamp {
        let now = self.now;
        let possible = |said: &Timestamp| *said <= now && self.last.is_none_or(|last| *said >= last);
        said.filter(|said| late && possible(said)).unwrap_or(now)
    }

    /// Changes were missed.
    fn missed(&mut self, why: &str) {
        let now = self.shared.now();
        if self.gap.is_some_and(|last| now.duration_since(last) < ONE_GAP) {
            return;
        }
        self.gap = Some(now);
        let from = self.segments.all().last().map_or(now, |file| file.ends);
        self.last = Some(from);
        tracing::warn!(%from, to = %now, why, "the history has a gap");
        self.waiting.push(&Record::Gap(Gap { from: from.min(now), to: now, why: why.to_owned() }));
    }
}

/// The difference, unless the whole is no longer.
fn difference_or_whole(before: &[u8], after: &[u8]) -> Body {
    let difference = delta::between(before, after);
    if difference.len() < after.len() { Body::Difference(difference) } else { Body::Whole(after.to_vec()) }
}
