//! The cluster's names, as one `kubernetes` plugin serves them: followed, kept ready, and never waited for by who asks.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use fairlead_api::selector::LabelSelector;
use fairlead_api::source::Key;
use fairlead_zone::{Options, Zone};
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::settings::Kubernetes;

mod follow;

pub(crate) use follow::follow;

/// What a `kubernetes` plugin serves. Two that are asked for the same are the same one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) settings: Kubernetes,
    /// What a cache in front allows.
    pub(crate) max_ttl: Option<u32>,
    /// This server's own addresses.
    pub(crate) addresses: Vec<IpAddr>,
    /// Whether somebody must know which namespace an address is in.
    pub(crate) search: bool,
}

/// Names that are read for a whole batch of questions: changes wait until it is over, and the lock is taken once.
#[derive(Debug, Default)]
pub(crate) struct Held<'a> {
    zone: Option<(&'a Names, RwLockReadGuard<'a, Zone>)>,
}

impl<'a> Held<'a> {
    /// The names as they are now. Those of another plugin are let go of.
    pub(crate) fn zone(&mut self, names: &'a Names) -> &Zone {
        // The old lock must be free before another is taken: it could be the same one.
        if !self.zone.as_ref().is_some_and(|(held, _)| std::ptr::eq(*held, names)) {
            self.zone = None;
        }
        let (_, zone) = self.zone.get_or_insert_with(|| (names, names.zone()));
        zone
    }
}

/// The names.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) wanted: Wanted,
    zone: RwLock<Zone>,
    /// Whose address is whose; empty unless it is wanted.
    owners: RwLock<Owners>,
    synced: AtomicBool,
    /// Told when everything is known.
    told: Notify,
    /// Since when what is known is not kept up to date, in milliseconds since 1970; 0: it is.
    stale_since: AtomicI64,
}

/// Whose address is whose.
#[derive(Debug, Default)]
struct Owners {
    addresses: HashMap<Key, Vec<IpAddr>>,
    owners: HashMap<IpAddr, Key>,
}

impl Owners {
    /// A Pod has these addresses, and no others.
    fn put(&mut self, pod: &Key, addresses: Vec<IpAddr>) {
        for address in self.addresses.remove(pod).into_iter().flatten() {
            // Somebody else may have got it meanwhile.
            if self.owners.get(&address) == Some(pod) {
                self.owners.remove(&address);
            }
        }
        for address in &addresses {
            self.owners.insert(*address, pod.clone());
        }
        if !addresses.is_empty() {
            self.addresses.insert(pod.clone(), addresses);
        }
    }
}

impl Names {
    pub(crate) fn new(wanted: Wanted) -> Names {
        Names {
            zone: RwLock::new(Zone::new(options(&wanted))),
            wanted,
            owners: RwLock::default(),
            synced: AtomicBool::new(false),
            told: Notify::new(),
            stale_since: AtomicI64::new(0),
        }
    }

    /// The names as they are now. Changes wait while this is held, so it is held briefly.
    pub(crate) fn zone(&self) -> RwLockReadGuard<'_, Zone> {
        self.zone.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether everything was known once.
    pub(crate) fn synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    /// Waits until everything is known, for so long at most.
    pub(crate) async fn wait(&self, limit: Duration) {
        let known = async {
            loop {
                let told = self.told.notified();
                if self.synced() {
                    return;
                }
                told.await;
            }
        };
        let _ = tokio::time::timeout(limit, known).await;
    }

    /// The namespace of the Pod with an address.
    pub(crate) fn namespace(&self, address: IpAddr) -> Option<Box<str>> {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        owners.owners.get(&address.to_canonical()).map(|key| key.namespace.clone())
    }

    /// For how long what is known has not been kept up to date.
    pub(crate) fn age(&self) -> Duration {
        match self.stale_since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => {
                let age = Timestamp::now().as_millisecond().saturating_sub(since);
                Duration::from_millis(u64::try_from(age).unwrap_or_default())
            }
        }
    }

    fn all_known(&self) {
        self.synced.store(true, Ordering::Release);
        self.told.notify_waiters();
    }

    fn stale(&self, failing: bool) {
        let since = if failing { Timestamp::now().as_millisecond() } else { 0 };
        if !failing || self.stale_since.load(Ordering::Relaxed) == 0 {
            self.stale_since.store(since, Ordering::Relaxed);
        }
    }
}

fn options(wanted: &Wanted) -> Options {
    let settings = &wanted.settings;
    let selector = |text: &Option<String>| text.as_deref().and_then(|text| LabelSelector::parse(text).ok());
    Options {
        zones: settings.zones.clone(),
        pods: settings.pods,
        ttl: settings.ttl,
        max_ttl: wanted.max_ttl,
        namespaces: settings.namespaces.clone(),
        namespace_labels: selector(&settings.namespace_labels),
        labels: selector(&settings.labels),
        endpoint_pod_names: settings.endpoint_pod_names,
        noendpoints: settings.noendpoints,
        ignore_empty_service: settings.ignore_empty_service,
        zonal: settings.zonal,
        local_addresses: wanted.addresses.clone(),
    }
}
