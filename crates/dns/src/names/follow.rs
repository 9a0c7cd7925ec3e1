//! Follows the cluster for its names: Services, EndpointSlices, Namespaces, and Pods where somebody needs them.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use fairlead_api::view::{EndpointSlice, Namespace, Pod, Service, View};
use fairlead_cluster::{Cluster, Seen, Selection, Watched};
use fairlead_zone::{Change, PodRecords};
use futures_util::FutureExt;
use jiff::Timestamp;

use super::Names;
use crate::metrics::Metrics;

/// At most so many changes are made while others wait to read.
const PART: usize = 64;
/// At most about so many are gathered before they are made.
const BATCH: usize = 1024;
/// When the endpoint change that led to a slice was asked for.
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// Slices of headless Services.
const HEADLESS: &str = "service.kubernetes.io/headless";

/// Keeps names up to date for ever.
pub(crate) async fn follow(names: Arc<Names>, cluster: Cluster, metrics: Metrics) {
    let mut follower = Follower::new(&names, &cluster);
    loop {
        follower.gather().await;
        while follower.changes.len() < BATCH && follower.gather().now_or_never().is_some() {}
        let changes = std::mem::take(&mut follower.changes);
        let serial = u32::try_from(Timestamp::now().as_second()).unwrap_or_default();
        make(&names, changes, serial).await;
        names.stale(follower.failing());
        if !names.synced() && follower.listed() {
            tracing::info!(zones = ?names.wanted.settings.zones, "the cluster's names are known");
            names.all_known();
        }
        for trigger in follower.triggers.drain(..) {
            let after = Timestamp::now().as_millisecond().saturating_sub(trigger);
            metrics.programmed(Duration::from_millis(u64::try_from(after).unwrap_or_default()));
        }
    }
}

/// Makes changes, a few at a time: who asks meanwhile waits for those few at most.
async fn make(names: &Names, changes: Vec<Change>, serial: u32) {
    if names.wanted.search {
        note_namespaces(names, &changes);
    }
    let mut changes = changes.into_iter().peekable();
    while changes.peek().is_some() {
        {
            let mut zone = names.zone.write().unwrap_or_else(PoisonError::into_inner);
            zone.apply(changes.by_ref().take(PART));
            zone.set_serial(serial);
        }
        tokio::task::yield_now().await;
    }
}

/// Remembers whose addresses are whose. Addresses of the Node are nobody's in particular.
fn note_namespaces(names: &Names, changes: &[Change]) {
    let mut owners = names.owners.write().unwrap_or_else(PoisonError::into_inner);
    for change in changes {
        let Change::Pod(key, pod) = change else { continue };
        let pod = pod.as_ref().filter(|pod| !pod.is_terminal() && !pod.spec.host_network);
        let addresses = pod.iter().flat_map(|pod| pod.addresses()).filter_map(fairlead_api::ip::parse);
        owners.put(key, addresses.collect());
    }
}

struct Follower {
    services: Watched<Service>,
    slices: Option<Watched<EndpointSlice>>,
    namespaces: Watched<Namespace>,
    pods: Option<Watched<Pod>>,
    /// Whether changes are news, and not what was there before.
    started: bool,
    changes: Vec<Change>,
    triggers: Vec<i64>,
}

impl Follower {
    fn new(names: &Names, cluster: &Cluster) -> Follower {
        let settings = &names.wanted.settings;
        let pods = names.wanted.search || settings.pods == PodRecords::Verified;
        Follower {
            services: all(cluster),
            slices: (!settings.noendpoints).then(|| all(cluster)),
            namespaces: all(cluster),
            pods: pods.then(|| all(cluster)),
            started: false,
            changes: Vec::new(),
            triggers: Vec::new(),
        }
    }

    fn listed(&self) -> bool {
        let slices = self.slices.as_ref().is_none_or(Watched::listed);
        slices && self.services.listed() && self.namespaces.listed() && self.pods.as_ref().is_none_or(Watched::listed)
    }

    fn failing(&self) -> bool {
        let slices = self.slices.as_ref().is_some_and(Watched::failing);
        slices
            || self.services.failing()
            || self.namespaces.failing()
            || self.pods.as_ref().is_some_and(Watched::failing)
    }

    /// Waits for something, and keeps it.
    async fn gather(&mut self) {
        tokio::select! {
            seen = self.services.next() => {
                self.changes.extend(seen.into_iter().map(|(key, new)| Change::Service(key, new)));
            }
            seen = next(&mut self.slices) => {
                if self.started {
                    self.triggers.extend(seen.iter().filter_map(|(_, new)| triggered(new.as_deref()?)));
                }
                self.changes.extend(seen.into_iter().map(|(key, new)| Change::EndpointSlice(key, new)));
            }
            seen = self.namespaces.next() => {
                self.changes.extend(seen.into_iter().map(|(key, new)| Change::Namespace(key, new)));
            }
            seen = next(&mut self.pods) => {
                self.changes.extend(seen.into_iter().map(|(key, new)| Change::Pod(key, new)));
            }
        }
        self.started = self.started || self.listed();
    }
}

fn all<T: View>(cluster: &Cluster) -> Watched<T> {
    Watched::new(cluster, Selection::all(T::KIND))
}

async fn next<T: View>(watched: &mut Option<Watched<T>>) -> Vec<Seen<T>> {
    match watched {
        Some(watched) => watched.next().await,
        None => std::future::pending().await,
    }
}

/// When what a slice of a headless Service shows was asked for.
fn triggered(slice: &EndpointSlice) -> Option<i64> {
    let text = slice.metadata.annotations.get(TRIGGER).filter(|_| slice.metadata.labels.contains_key(HEADLESS))?;
    text.parse::<Timestamp>().ok().map(|time| time.as_millisecond())
}
