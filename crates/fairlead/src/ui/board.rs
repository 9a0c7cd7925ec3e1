//! All Services at a glance, always ready: follows the cluster from the first question on, and makes a row anew only when
//! something changed that concerns its Service.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use fairlead_api::Failure;
use fairlead_api::source::Key;
use fairlead_api::view::{EndpointSlice, Endpoints, Namespace, Node, Service, View};
use fairlead_cluster::{Changes, Cluster, Mirror};
use fairlead_explain::{Change, Event, Objects, Pod, check};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(super) use rows::{Rows, TooOld};

mod row;
mod rows;
#[cfg(test)]
mod tests;

/// How long the first question of somebody may wait, and how long a program's that asks for numbers, which gives up soon.
const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(3);
/// So many rows are made at once; in between, others may read.
const AT_ONCE: usize = 128;

/// The board. It follows nothing until it is opened.
pub(crate) struct Board {
    cluster: Cluster,
    stop: CancellationToken,
    shared: OnceLock<Arc<Shared>>,
}

/// What is known of the cluster, and the rows made of it.
pub(crate) struct Shared {
    objects: RwLock<Objects>,
    rows: RwLock<Rows>,
    /// The revision of the newest row; 0: not everything was listed yet.
    moved: watch::Sender<u64>,
}

impl Board {
    /// A board of a cluster, until told to stop.
    pub(crate) fn new(cluster: &Cluster, stop: &CancellationToken) -> Board {
        Board { cluster: cluster.clone(), stop: stop.clone(), shared: OnceLock::new() }
    }

    /// Begins to follow the cluster, unless that was done.
    pub(crate) fn begin(&self) -> &Arc<Shared> {
        self.shared.get_or_init(|| {
            let shared = Arc::new(Shared::new(Timestamp::now()));
            tokio::spawn(shared.clone().follow(mirror(&self.cluster), self.stop.clone()));
            shared
        })
    }

    /// What is on it, as soon as everything was listed once.
    pub(crate) async fn open(&self) -> Result<&Arc<Shared>, Failure> {
        let still =
            || Failure::new(503, "ServiceUnavailable", "the cluster is still being read: try again in a moment");
        self.within(PATIENCE).await.ok_or_else(still)
    }

    /// The same for who would rather know nothing of it than wait.
    pub(crate) async fn soon(&self) -> Option<&Arc<Shared>> {
        self.within(SHORT).await
    }

    async fn within(&self, patience: Duration) -> Option<&Arc<Shared>> {
        let shared = self.begin();
        shared.listed(patience).await.then_some(shared)
    }
}

fn mirror(cluster: &Cluster) -> Mirror {
    Mirror::builder(cluster)
        .with::<Service>()
        .with::<EndpointSlice>()
        .with::<Pod>()
        .with::<Endpoints>()
        .with::<Node>()
        .with::<Namespace>()
        .with::<Event>()
        .build()
}

impl Shared {
    fn new(now: Timestamp) -> Shared {
        // Revisions of an earlier run are lower than all of this one.
        let first = u64::try_from(now.as_millisecond()).unwrap_or(1).max(1);
        Shared { objects: RwLock::default(), rows: RwLock::new(Rows::new(first)), moved: watch::Sender::new(0) }
    }

    /// Whether everything was listed once, or is before the patience is at its end.
    async fn listed(&self, patience: Duration) -> bool {
        let mut moved = self.moved.subscribe();
        let listed = tokio::time::timeout(patience, moved.wait_for(|revision| *revision > 0)).await;
        listed.is_ok_and(|listed| listed.is_ok())
    }

    /// The rows.
    pub(crate) fn rows(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What they are made of.
    pub(crate) fn objects(&self) -> RwLockReadGuard<'_, Objects> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells when rows have changed.
    pub(super) fn moved(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    async fn follow(self: Arc<Shared>, mut mirror: Mirror, stop: CancellationToken) {
        let mut open = BTreeSet::new();
        loop {
            let changes = tokio::select! {
                changes = mirror.next() => changes,
                () = stop.cancelled() => return,
            };
            open.append(&mut self.objects_mut().apply(read(&changes)));
            if mirror.synced() {
                self.refresh(std::mem::take(&mut open)).await;
            }
        }
    }

    /// Makes the rows of these Services anew.
    async fn refresh(&self, keys: BTreeSet<Key>) {
        let keys: Vec<Key> = keys.into_iter().collect();
        for some in keys.chunks(AT_ONCE) {
            self.make(some);
            tokio::task::yield_now().await;
        }
        let revision = self.rows().revision();
        self.moved.send_if_modified(|moved| std::mem::replace(moved, revision) != revision);
    }

    fn make(&self, keys: &[Key]) {
        let objects = self.objects();
        let made: Vec<_> = keys.iter().map(|key| (key, row::row(key, &objects, &check(key, &objects)))).collect();
        drop(objects);
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        made.into_iter().for_each(|(key, row)| rows.put(key, row));
    }

    fn objects_mut(&self) -> RwLockWriteGuard<'_, Objects> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The changes of a mirror, as the objects of explanations take them.
fn read(changes: &Changes) -> Vec<Change> {
    let mut read = Vec::with_capacity(changes.len());
    each::<Service>(changes, &mut read, Change::Service);
    each::<EndpointSlice>(changes, &mut read, Change::EndpointSlice);
    each::<Pod>(changes, &mut read, Change::Pod);
    each::<Endpoints>(changes, &mut read, Change::Endpoints);
    each::<Node>(changes, &mut read, Change::Node);
    each::<Namespace>(changes, &mut read, Change::Namespace);
    each::<Event>(changes, &mut read, Change::Event);
    read
}

fn each<T: View>(changes: &Changes, into: &mut Vec<Change>, made: impl Fn(Key, Option<Arc<T>>) -> Change) {
    into.extend(changes.of::<T>().iter().map(|change| made(change.key.clone(), change.new.clone())));
}
