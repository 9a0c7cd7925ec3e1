//! Some kinds of the cluster, as they are now: typed, kept up to date, owned by one task.
//!
//! A mirror moves only in [`Mirror::next`]: between two calls nothing changes under the caller's hands, and what happens
//! meanwhile waits where it is kept anyway, in the store's window or in the connection. There is no queue to fill up.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;

use fairlead_api::source::{Selection, Source};
use fairlead_api::view::View;
use fairlead_api::{Failure, Kind};
use futures_util::stream::{self, BoxStream, SelectAll, StreamExt};
use futures_util::{FutureExt, stream::Stream};
use tokio::time::Instant;

use crate::Cluster;
use crate::controller::ObjectVersion;
use crate::follow::{Step, follow};
pub use changes::{Change, Changes, Problem};
use table::{AnyTable, Table};
pub(crate) use views::Views;

mod changes;
mod table;
mod views;

/// At most about so many changed objects are handed out at once: enough that falling behind costs one look at each object
/// instead of one at each change, few enough that a batch is worked off in a moment.
const BATCH: usize = 1024;

/// Chooses what a mirror follows.
pub struct Builder {
    cluster: Cluster,
    followed: Vec<(TypeId, Selection, Box<dyn AnyTable>)>,
}

/// Some kinds of the cluster.
pub struct Mirror {
    places: BTreeMap<TypeId, usize>,
    kinds: Vec<Followed>,
    steps: SelectAll<BoxStream<'static, (usize, Step)>>,
    /// Something has arrived that was not handed out yet.
    arrived: bool,
    /// Something other than objects changed: a kind is listed, or its source fails, or works again.
    news: bool,
    problems: Vec<Problem>,
}

/// One kind of a mirror.
struct Followed {
    kind: &'static Kind,
    table: Box<dyn AnyTable>,
    state: State,
}

struct State {
    /// What the table shows.
    shown: Progress,
    /// What it will show once everything that has arrived is read.
    arrived: Progress,
    trouble: Option<Failure>,
    since: Instant,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    listed: bool,
    revision: u64,
}

/// How one kind of a mirror does.
#[derive(Debug, Clone)]
pub struct Health {
    /// The kind.
    pub kind: &'static Kind,
    /// Whether it has been listed once.
    pub synced: bool,
    /// The newest revision seen.
    pub revision: u64,
    /// Why it is not up to date, if it is not.
    pub trouble: Option<Failure>,
    /// Since when this is so.
    pub since: Instant,
}

impl Builder {
    /// Follows all objects of a view's kind.
    #[must_use]
    pub fn with<T: View>(self) -> Builder {
        self.with_only::<T>(Selection::all(T::KIND))
    }

    /// Follows some objects of a view's kind. The last selection of a view counts.
    #[must_use]
    pub fn with_only<T: View>(mut self, selection: Selection) -> Builder {
        self.followed.retain(|(view, ..)| *view != TypeId::of::<T>());
        let table = Table::<T>::new(self.cluster.shared.views.of::<T>());
        self.followed.push((TypeId::of::<T>(), Selection { kind: T::KIND, ..selection }, Box::new(table)));
        self
    }

    /// The mirror; empty until [`Mirror::next`] or [`Mirror::sync`] is called.
    pub fn build(self) -> Mirror {
        let (mut places, mut kinds, mut steps) = (BTreeMap::new(), Vec::new(), SelectAll::new());
        for (place, (view, selection, table)) in self.followed.into_iter().enumerate() {
            places.insert(view, place);
            let (shown, arrived) = Default::default();
            let state = State { shown, arrived, trouble: None, since: Instant::now() };
            kinds.push(Followed { kind: selection.kind, table, state });
            steps.push(numbered(place, self.cluster.source().clone(), selection).boxed());
        }
        Mirror { places, kinds, steps, arrived: false, news: false, problems: Vec::new() }
    }
}

fn numbered(place: usize, source: Arc<dyn Source>, selection: Selection) -> impl Stream<Item = (usize, Step)> {
    follow(source, selection, None).zip(stream::repeat(place)).map(|(step, place)| (place, step))
}

impl Mirror {
    /// Chooses what to follow.
    pub fn builder(cluster: &Cluster) -> Builder {
        Builder { cluster: cluster.clone(), followed: Vec::new() }
    }

    /// Waits until something has changed: objects, or how a kind does. What changed several times meanwhile is one change. A call
    /// that is dropped before it is ready has lost nothing. A mirror of no kinds waits for ever.
    pub async fn next(&mut self) -> Changes {
        loop {
            self.gather().await;
            self.settle().await;
            let changes = self.take();
            if std::mem::take(&mut self.news) || !changes.is_empty() {
                return changes;
            }
        }
    }

    /// Waits until every kind has been listed once.
    pub async fn sync(&mut self) {
        while !self.synced() {
            self.next().await;
        }
    }

    /// Whether every kind has been listed once.
    pub fn synced(&self) -> bool {
        self.kinds.iter().all(|kind| kind.state.shown.listed)
    }

    /// How the kinds do.
    pub fn health(&self) -> impl Iterator<Item = Health> {
        self.kinds.iter().map(|Followed { kind, state, .. }| Health {
            kind,
            synced: state.shown.listed,
            revision: state.shown.revision,
            trouble: state.trouble.clone(),
            since: state.since,
        })
    }

    /// The newest revision of a view's kind.
    pub fn revision<T: View>(&self) -> u64 {
        self.kinds[self.place::<T>()].state.shown.revision
    }

    /// One object. The namespace is empty for kinds without.
    pub fn get<T: View>(&self, namespace: &str, name: &str) -> Option<&Arc<T>> {
        self.table::<T>().get(namespace, name)
    }

    /// All objects of a view, by namespace and name.
    pub fn all<T: View>(&self) -> impl Iterator<Item = &Arc<T>> {
        self.table::<T>().all()
    }

    /// All objects of a view in a namespace, by name.
    pub fn in_namespace<T: View>(&self, namespace: &str) -> impl Iterator<Item = &Arc<T>> {
        self.table::<T>().in_namespace(namespace)
    }

    /// True if the mirror shows this version of an object or a later one, or does not follow its
    /// kind. An object that a finalizer holds counts as deleted.
    pub fn shows(&self, version: &ObjectVersion) -> bool {
        self.kinds.iter().filter(|followed| followed.kind == version.kind).all(|followed| match version.revision {
            Some(revision) => followed.state.shown.revision >= revision,
            None => followed.table.is_deleted(&version.key),
        })
    }

    fn table<T: View>(&self) -> &Table<T> {
        let table = self.kinds[self.place::<T>()].table.as_any();
        table.downcast_ref().expect("the builder put a table of this view at this place")
    }

    fn place<T: View>(&self) -> usize {
        let place = self.places.get(&TypeId::of::<T>());
        *place.unwrap_or_else(|| panic!("a mirror was asked for a {} it does not follow", T::KIND.kind))
    }

    /// Waits for the first step, then takes what else is there, up to a bound.
    async fn gather(&mut self) {
        if !self.arrived {
            match self.steps.next().await {
                Some((place, step)) => self.arrive(place, step),
                None => std::future::pending().await,
            }
        }
        while self.waiting() < BATCH {
            let Some((place, step)) = self.steps.next().now_or_never().flatten() else { return };
            self.arrive(place, step);
        }
    }

    /// How many objects wait to be read.
    fn waiting(&self) -> usize {
        self.kinds.iter().map(|followed| followed.table.waiting()).sum()
    }

    fn arrive(&mut self, place: usize, step: Step) {
        self.arrived = true;
        let Followed { kind, table, state } = &mut self.kinds[place];
        let trouble = match step {
            Step::Listing => return table.listing(),
            Step::Objects(objects) => return table.list(objects),
            Step::Listed(revision) => {
                table.listed();
                state.arrived = Progress { listed: true, revision };
                None
            }
            Step::Changed(events, revision) => {
                table.changed(events);
                state.arrived.revision = state.arrived.revision.max(revision);
                None
            }
            Step::Trouble(failure) => Some(failure),
        };
        if state.trouble.is_some() == trouble.is_some() {
            return;
        }
        match &trouble {
            Some(failure) => tracing::warn!(kind = kind.kind, error = failure.message, "cannot follow changes"),
            None => tracing::info!(kind = kind.kind, "following changes again"),
        }
        (state.trouble, state.since, self.news) = (trouble, Instant::now(), true);
    }

    /// Reads what has arrived.
    async fn settle(&mut self) {
        for followed in &mut self.kinds {
            while let Some(problem) = followed.table.settle_one() {
                if let Some(problem) = problem {
                    tracing::warn!(kind = followed.kind.kind, key = %problem.key, why = problem.why, "cannot read an object");
                    self.problems.push(problem);
                }
                // A thousand large objects take a while to read; others may run in between.
                tokio::task::coop::consume_budget().await;
            }
        }
    }

    /// Everything has been read: this is what the mirror shows now, and what has changed.
    fn take(&mut self) -> Changes {
        self.arrived = false;
        for State { shown, arrived, .. } in self.kinds.iter_mut().map(|followed| &mut followed.state) {
            self.news |= shown.listed != arrived.listed;
            *shown = *arrived;
        }
        let taken = self.kinds.iter_mut().map(|followed| followed.table.take()).collect();
        Changes::new(&self.places, taken, std::mem::take(&mut self.problems))
    }
}

impl std::fmt::Debug for Mirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.health()).finish()
    }
}
