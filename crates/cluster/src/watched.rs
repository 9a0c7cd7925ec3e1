//! One kind, followed without being kept: what is read goes straight to who wants it, and only the names stay, to know what is
//! gone when a list comes again.

use std::collections::HashSet;
use std::sync::Arc;

use fairlead_api::source::{Event, Key, Object, Selection};
use fairlead_api::view::View;
use futures_util::stream::{BoxStream, StreamExt};

use crate::{Cluster, Step};

/// What became of an object; `None`: it is gone.
pub type Seen<T> = (Key, Option<Arc<T>>);

/// Objects of one kind.
pub struct Watched<T> {
    steps: BoxStream<'static, Step>,
    known: HashSet<Key>,
    /// What a list that is under way has shown so far.
    listing: HashSet<Key>,
    listed: bool,
    revision: u64,
    failing: bool,
    view: std::marker::PhantomData<fn() -> T>,
}

impl<T: View> Watched<T> {
    /// Begins to follow some objects of the view's kind.
    pub fn new(cluster: &Cluster, selection: Selection) -> Watched<T> {
        let steps = cluster.follow(selection);
        let (known, listing) = (HashSet::new(), HashSet::new());
        Watched { steps, known, listing, listed: false, revision: 0, failing: false, view: std::marker::PhantomData }
    }

    /// Whether it has been listed once.
    pub fn listed(&self) -> bool {
        self.listed
    }

    /// The newest revision seen.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether the source does not answer: what is known is as old as that.
    pub fn failing(&self) -> bool {
        self.failing
    }

    /// Waits for the next step, and says what it changed. A call that is dropped before it is ready has lost nothing.
    pub async fn next(&mut self) -> Vec<Seen<T>> {
        match self.steps.next().await {
            Some(step) => self.take(step),
            None => std::future::pending().await,
        }
    }

    fn take(&mut self, step: Step) -> Vec<Seen<T>> {
        let failure = match step {
            Step::Listing => {
                self.listing.clear();
                return Vec::new();
            }
            Step::Objects(objects) => {
                self.listing.extend(objects.iter().map(|object| object.key.clone()));
                return objects.into_iter().filter_map(|object| self.read(object)).collect();
            }
            Step::Listed(revision) => {
                (self.listed, self.revision, self.failing) = (true, revision, false);
                let seen = std::mem::take(&mut self.listing);
                let gone = self.known.difference(&seen).map(|key| (key.clone(), None)).collect();
                self.known = seen;
                return gone;
            }
            Step::Changed(events, revision) => {
                self.revision = self.revision.max(revision);
                if std::mem::take(&mut self.failing) {
                    tracing::info!(kind = T::KIND.kind, "following changes again");
                }
                return events.into_iter().filter_map(|event| self.event(event)).collect();
            }
            Step::Trouble(failure) => failure,
        };
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(kind = T::KIND.kind, error = failure.message, "cannot follow changes");
        }
        Vec::new()
    }

    fn event(&mut self, event: Event) -> Option<Seen<T>> {
        match event {
            Event::Put(object) => self.read(object),
            Event::Delete(key, _) => {
                self.known.remove(&key);
                Some((key, None))
            }
        }
    }

    /// An object that cannot be read is as it was before.
    fn read(&mut self, object: Object) -> Option<Seen<T>> {
        match serde_json::from_slice::<T>(&object.json) {
            Ok(view) => {
                if !self.known.contains(&object.key) {
                    self.known.insert(object.key.clone());
                }
                Some((object.key, Some(Arc::new(view))))
            }
            Err(error) => {
                tracing::warn!(kind = T::KIND.kind, key = %object.key, %error, "cannot read an object");
                None
            }
        }
    }
}

impl<T> std::fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched")
            .field("listed", &self.listed)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
