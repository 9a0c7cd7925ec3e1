//! What `fairlead register` left behind when it was killed is removed: an endpoint whose Lease nobody renews any more.
//!
//! Silence is measured by our own clock, from when we last saw the Lease change. A registration that was only cut off makes its
//! objects again when it is back.

use std::collections::HashMap;
use std::time::Duration;

use fairlead_api::view::{EndpointSlice, Meta, View};
use fairlead_api::{Kind, kinds};
use fairlead_cluster::controller::QueueMeter;
use fairlead_cluster::{Cluster, Delete, Error, Key, Mirror, Recorder, Reference, Selection, Severity};
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::queue::Queue;

/// The slices and Leases of registrations.
const LABELS: &str = "endpointslice.kubernetes.io/managed-by=fairlead-register";
/// How long a slice without a Lease may stay: it was made at the same time, so somebody has removed it.
const USUAL: Duration = Duration::from_secs(30);
const COMPONENT: &str = "endpointslice-health-controller";

/// The Lease of a registration.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lease {
    metadata: Meta,
    spec: LeaseSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<i32>,
    renew_time: Option<String>,
}

impl View for Lease {
    const KIND: &'static Kind = &kinds::LEASE;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// Runs until told to stop.
pub(crate) async fn run(cluster: Cluster, host: String, meter: QueueMeter, stop: CancellationToken) {
    let mirror = Mirror::builder(&cluster)
        .with_only::<EndpointSlice>(Selection::all(&kinds::ENDPOINT_SLICE).with_labels(LABELS))
        .with_only::<Lease>(Selection::all(&kinds::LEASE).with_labels(LABELS))
        .build();
    let recorder = Recorder::new(&cluster, COMPONENT, &host);
    let (heard, queue, removals) = (HashMap::new(), Queue::new(meter), JoinSet::new());
    let mut keeper = Keeper { cluster, mirror, recorder, heard, queue, removals };
    while stop.run_until_cancelled(keeper.step()).await.is_some() {}
}

struct Keeper {
    cluster: Cluster,
    mirror: Mirror,
    recorder: Recorder,
    /// When each registration was last heard of.
    heard: HashMap<Key, Instant>,
    /// Registrations by when their silence is too long, or earlier.
    queue: Queue<Key>,
    removals: JoinSet<(Key, Result<(), Error>)>,
}

impl Keeper {
    async fn step(&mut self) {
        while let Some(key) = self.queue.take() {
            self.judge(key);
        }
        let due = self.queue.due();
        tokio::select! {
            changes = self.mirror.next() => {
                for change in changes.of::<Lease>() {
                    let renewed = |lease: &Lease| lease.spec.renew_time.clone();
                    if change.old.as_deref().map(renewed) != change.new.as_deref().map(renewed) {
                        self.hear(&change.key);
                    }
                }
                for change in changes.of::<EndpointSlice>().iter().filter(|change| change.old.is_none()) {
                    self.hear(&change.key);
                }
            }
            Some(removed) = self.removals.join_next() => match removed {
                Ok((key, Ok(()))) => {
                    // It may have been heard of meanwhile.
                    self.queue.done(key.clone());
                    let again = Instant::now() + self.patience(&key);
                    self.queue.add_at(key, again);
                }
                Ok((key, Err(error))) => {
                    tracing::warn!(registration = %key, %error, "cannot remove a registration");
                    self.queue.failed(key);
                }
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }

    fn hear(&mut self, key: &Key) {
        let now = Instant::now();
        self.heard.insert(key.clone(), now);
        self.queue.add_at(key.clone(), now + self.patience(key));
    }

    /// How long a registration may be silent.
    fn patience(&self, key: &Key) -> Duration {
        let lease = self.mirror.get::<Lease>(&key.namespace, &key.name);
        let seconds = lease.and_then(|lease| lease.spec.lease_duration_seconds);
        seconds
            .map_or(USUAL, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or_default().clamp(1, 86_400)))
    }

    /// Removes a registration if it is silent for too long.
    fn judge(&mut self, key: Key) {
        let slice = self.mirror.get::<EndpointSlice>(&key.namespace, &key.name).cloned();
        let lease = self.mirror.get::<Lease>(&key.namespace, &key.name).cloned();
        let (Some(heard), true) = (self.heard.get(&key).copied(), slice.is_some() || lease.is_some()) else {
            self.heard.remove(&key);
            return self.queue.done(key);
        };
        let patience = self.patience(&key);
        if heard.elapsed() < patience {
            self.queue.done(key.clone());
            return self.queue.add_at(key, heard + patience);
        }
        if let Some(slice) = &slice {
            self.tell(slice, lease.as_deref(), patience);
        }
        let (cluster, slice) = (self.cluster.clone(), slice.map(|slice| slice.metadata.clone()));
        let lease = lease.map(|lease| lease.metadata.clone());
        self.removals.spawn(async move { (key, remove(&cluster, lease, slice).await) });
    }

    /// An Event about the Service, where people look.
    fn tell(&self, slice: &EndpointSlice, lease: Option<&Lease>, silent: Duration) {
        let owner = slice.metadata.owner_references.iter().find(|owner| owner.kind == "Service");
        let about = match owner {
            Some(owner) => {
                let (namespace, name, uid) = (slice.metadata.namespace.clone(), owner.name.clone(), owner.uid.clone());
                Reference::to(&kinds::SERVICE, &Meta { namespace, name, uid, ..Meta::default() })
            }
            None => Reference::of(slice),
        };
        let addresses: Vec<&str> =
            slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses).map(String::as_str).collect();
        let holder = lease.and_then(|lease| lease.spec.holder_identity.as_deref()).unwrap_or("nobody");
        let message =
            format!("{} is removed: {holder} registered it and was not heard of for {silent:?}", addresses.join(", "));
        self.recorder.record(about, Severity::Warning, "RegistrationExpired", message);
    }
}

/// Removes the Lease first, and only as it was seen: whoever renews it meanwhile keeps the slice.
async fn remove(cluster: &Cluster, lease: Option<Meta>, slice: Option<Meta>) -> Result<(), Error> {
    if let Some(Meta { namespace, name, uid, resource_version, .. }) = lease {
        let how = Delete { uid: Some(uid), resource_version: Some(resource_version), ..Delete::default() };
        match cluster.delete(&kinds::LEASE, &namespace, &name, &how).await {
            Err(Error::Conflict(_)) => return Ok(()),
            Ok(_) | Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let Some(Meta { namespace, name, uid, .. }) = slice else { return Ok(()) };
    let how = Delete { uid: Some(uid), ..Delete::default() };
    match cluster.delete(&kinds::ENDPOINT_SLICE, &namespace, &name, &how).await {
        Ok(_) | Err(Error::NotFound(_) | Error::Conflict(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
