//! How the history begins, and goes on where the last run ended: what stands in the files, and whether they are of this store.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use fairlead_api::view::Meta;
use fairlead_api::{head, kinds};
use fairlead_cluster::{Backoff, Cluster, Selection, retry};
use tokio_util::sync::CancellationToken;

use super::writing::Trouble;
use super::{Held, Keeper, Lists, RETRY};
use crate::Shared;
use crate::batch::Batch;
use crate::frame::Frames;
use crate::record::{Change, Record};
use crate::replay::{Id, Said, World};
use crate::segments::Segments;

impl<'s> Keeper<'s> {
    pub(super) fn open(shared: &'s Shared, dir: &Path) -> io::Result<Keeper<'s>> {
        let (segments, found) = Segments::open(dir, shared.bounds)?;
        if found.cut > 0 {
            tracing::warn!(bytes = found.cut, "the end of the history was not whole and has been cut off");
        }
        if found.outdated {
            tracing::info!("the history of an earlier version cannot be read; it begins anew");
        }
        for file in &found.damaged {
            tracing::warn!(file = %file.display(), "the history is damaged; a part of it cannot be read");
        }
        let mut keeper = Keeper {
            shared,
            segments,
            held: HashMap::default(),
            lists: Lists::default(),
            waiting: Batch::default(),
            seen: 0,
            settled: 0,
            marked: 0,
            first: u64::MAX,
            began: 0,
            last: None,
            gap: None,
            trouble: Trouble::None,
            cut_off: HashSet::new(),
            told: HashSet::new(),
            now: shared.now(),
        };
        keeper.remember()?;
        shared.publish(keeper.segments.all());
        Ok(keeper)
    }

    /// Reads from the newest file what was there when we last ran, and from the one before what the last mark does not cover.
    fn remember(&mut self) -> io::Result<()> {
        let [older @ .., newest] = self.segments.all() else { return Ok(()) };
        let (older, newest) = (older.last().cloned(), newest.clone());
        let mut world = World::unread();
        world.replay(Frames::new(&crate::segments::read(&newest)?), |_, said| {
            match said {
                Said::Mark(revision) => self.marked = revision,
                Said::Changed(seen) => drop(self.told.insert(key_of(seen.change))),
                Said::Gap(_) | Said::Copies => {}
            }
            true
        });
        if let Some(older) = older {
            let bytes = crate::segments::read(&older)?;
            let told = Record::changes_after(&bytes, self.marked);
            self.told.extend(told.into_iter().map(key_of));
        }
        self.told.retain(|(revision, _)| *revision > self.marked);
        self.seen = self.marked;
        self.last = Some(newest.ends);
        let held = world
            .into_texts()
            .map(|(id, revision, json)| (id, Held { revision, json: json.into(), file: newest.number }));
        self.held = held.collect();
        Ok(())
    }

    /// Asks which store this is: for the uid that people take for the identity of a cluster. `None`: nobody wants to know any more.
    pub(super) async fn ask(&mut self, cluster: &Cluster, stop: &CancellationToken) -> Option<String> {
        let selection = Selection::all(&kinds::NAMESPACE).with_fields("metadata.name=kube-system");
        let patient = Backoff { tries: u32::MAX, ..Backoff::default() };
        let list = retry(patient, |_| true, || cluster.list(&selection));
        let list = tokio::select! {
            () = stop.cancelled() => return None,
            list = list => list.unwrap_or_default(),
        };
        self.began = list.revision;
        let meta: Option<Meta> = list.objects.first().and_then(|namespace| head::read(&namespace.json));
        Some(meta.unwrap_or_default().uid)
    }

    /// Goes on where the last run ended, if what is kept is of this store.
    pub(super) fn resume(&mut self, uid: &str) -> io::Result<()> {
        let same = self.segments.is_of(uid);
        if self.segments.newest() > 0 && (!same || self.began < self.marked) {
            tracing::info!("the history is of another store, or of one that was set back; it begins anew");
            self.segments.forget()?;
            self.held.clear();
            self.told.clear();
            (self.marked, self.seen, self.last) = (0, 0, None);
        }
        if !same {
            self.segments.claim(uid)?;
        }
        if self.segments.newest() == 0 {
            self.segments.begin(self.shared.now(), &Batch::default())?;
        } else {
            self.lists.known();
        }
        self.settled = self.marked;
        Ok(())
    }
}

/// Tries until it goes well, the disk has room again for instance. `None`: it never will, or nobody wants it any more.
pub(super) async fn until_it_works<T>(
    stop: &CancellationToken,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> Option<T> {
    let mut said = false;
    loop {
        match attempt() {
            Ok(done) => return Some(done),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!(%error, "no history is kept");
                return None;
            }
            Err(error) if !std::mem::replace(&mut said, true) => {
                tracing::warn!(%error, "the history cannot be written")
            }
            Err(_) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return None,
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}

fn key_of(change: Change) -> (u64, Id) {
    (change.revision, Id { kind: change.kind, namespace: change.namespace.into(), name: change.name.into() })
}
