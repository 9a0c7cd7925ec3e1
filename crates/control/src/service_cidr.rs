//! The ServiceCIDR controller: a range is ready when it is made, and stays while addresses of it are in use that no other range
//! has.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::kinds;
use fairlead_cluster::controller::QueueMeter;
use fairlead_cluster::{Cluster, Error, Event, Mirror, Patch, Selection};
use ipnet::IpNet;
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::queue::Queue;
use view::ServiceCidr;

mod view;

/// Keeps a range while its addresses are in use.
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
/// The addresses API servers gave out; those people made by hand hold nothing.
const ALLOCATED: &str = "ipaddress.kubernetes.io/managed-by=ipallocator.k8s.io";
/// A range that is held is looked at again after this time at the latest.
const PATIENCE: Duration = Duration::from_secs(10);
/// Addresses seldom go alone.
const TOGETHER: Duration = Duration::from_millis(50);

/// The Ready condition: status, reason, message.
type Ready = (&'static str, &'static str, &'static str);
const READY: Ready = ("True", "", "Kubernetes Service CIDR is ready");
const HELD: Ready = (
    "False",
    "Terminating",
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
);

/// When to look at a range again.
enum Next {
    /// When it changes.
    Changed,
    At(Timestamp),
    Now,
}

/// Runs until told to stop. A range goes no sooner than `grace` after it was deleted, so that every API server knows by then
/// that nothing may be taken from it any more.
pub(crate) async fn run(cluster: Cluster, grace: Duration, meter: QueueMeter, stop: CancellationToken) {
    let mut mirror = Mirror::builder(&cluster).with::<ServiceCidr>().build();
    let (mut queue, mut tasks, changed) = (Queue::<String>::new(meter), JoinSet::new(), Arc::new(Notify::new()));
    loop {
        while mirror.synced()
            && let Some(name) = queue.take()
        {
            let ranges: Vec<_> = mirror.all::<ServiceCidr>().cloned().collect();
            let keeper = Keeper { cluster: cluster.clone(), ranges, grace, changed: changed.clone() };
            tasks.spawn(async move { (keeper.look(&name).await, name) });
        }
        let due = queue.due().unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        tokio::select! {
            () = stop.cancelled() => return,
            changes = mirror.next() => {
                // A range that comes may free another, so those on their way out are looked at too.
                changed.notify_waiters();
                changes.of::<ServiceCidr>().iter().for_each(|change| queue.add(change.key.name.to_string()));
                let going = mirror.all::<ServiceCidr>().filter(|range| range.is_terminating());
                going.for_each(|range| queue.add(range.metadata.name.clone()));
            }
            Some(ended) = tasks.join_next() => match ended {
                Ok((Ok(next), name)) => {
                    queue.done(name.clone());
                    match next {
                        Next::Changed => {}
                        Next::Now => queue.add(name),
                        Next::At(time) => queue.add_at(name, instant(time)),
                    }
                }
                Ok((Err(error), name)) => {
                    tracing::warn!(name, %error, "a ServiceCIDR cannot be looked after");
                    queue.failed(name);
                }
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            },
            () = sleep_until(due) => {}
        }
    }
}

fn instant(time: Timestamp) -> Instant {
    Instant::now() + Duration::try_from(time.duration_since(Timestamp::now())).unwrap_or_default()
}

/// Looks after one range, knowing all.
struct Keeper {
    cluster: Cluster,
    ranges: Vec<Arc<ServiceCidr>>,
    grace: Duration,
    changed: Arc<Notify>,
}

impl Keeper {
    async fn look(&self, name: &str) -> Result<Next, Error> {
        let Some(range) = self.ranges.iter().find(|range| range.metadata.name == name) else {
            return Ok(Next::Changed);
        };
        if !range.is_terminating() {
            if !range.is_kept() {
                let patch = Patch::Strategic(json!({"metadata": {"finalizers": [FINALIZER]}}));
                self.patch(name, patch).await?;
            }
            return self.tell(range, READY).await.map(|()| Next::Changed);
        }
        if !range.is_kept() {
            return Ok(Next::Changed);
        }
        // Before the look, so that no change after it is missed.
        let changed = self.changed.notified();
        if let Some(revision) = self.is_in_use(range).await? {
            self.tell(range, HELD).await?;
            tokio::select! {
                () = changed => {}
                _ = timeout(PATIENCE, self.address_gone(revision)) => {}
            }
            return Ok(Next::Now);
        }
        let since = range.metadata.deletion_timestamp.as_ref().and_then(|time| time.parse::<Timestamp>().ok());
        let until = since.and_then(|since| since.checked_add(self.grace).ok());
        if let Some(until) = until.filter(|until| *until > Timestamp::now()) {
            return Ok(Next::At(until));
        }
        let patch =
            json!({"metadata": {"uid": range.metadata.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
        self.patch(name, Patch::Strategic(patch)).await.map(|()| Next::Changed)
    }

    async fn patch(&self, name: &str, patch: Patch) -> Result<(), Error> {
        match self.cluster.patch(&kinds::SERVICE_CIDR, "", name, &patch).await {
            Err(Error::NotFound(_)) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Whether an address is in use that only this range has; then at which revision.
    async fn is_in_use(&self, range: &ServiceCidr) -> Result<Option<u64>, Error> {
        let nets = range.nets();
        let others: Vec<IpNet> = self
            .ranges
            .iter()
            .filter(|other| other.metadata.name != range.metadata.name)
            .flat_map(|other| other.nets())
            .collect();
        if nets.iter().all(|net| others.iter().any(|other| other.contains(net))) {
            return Ok(None);
        }
        let selection = Selection::all(&kinds::IP_ADDRESS).with_labels(ALLOCATED);
        let mut more = None;
        loop {
            let page = self.cluster.source().list(&selection, more.as_deref()).await?;
            let mut addresses = page.objects.iter().filter_map(|object| object.key.name.parse::<IpAddr>().ok());
            let has = |nets: &[IpNet], ip: &IpAddr| nets.iter().any(|net| net.contains(ip));
            if addresses.any(|ip| has(&nets, &ip) && !has(&others, &ip)) {
                return Ok(Some(page.revision));
            }
            more = page.more;
            if more.is_none() {
                return Ok(None);
            }
        }
    }

    /// Waits until some address is free again.
    async fn address_gone(&self, revision: u64) {
        let selection = Selection::all(&kinds::IP_ADDRESS).with_labels(ALLOCATED);
        let Ok(mut watch) = self.cluster.source().watch(&selection, revision).await else {
            return std::future::pending().await;
        };
        while let Ok(events) = watch.next().await {
            if events.iter().any(|event| matches!(event, Event::Delete(..))) {
                return tokio::time::sleep(TOGETHER).await;
            }
        }
        std::future::pending().await
    }

    /// Writes the Ready condition, if it is another.
    async fn tell(&self, range: &ServiceCidr, (status, reason, message): Ready) -> Result<(), Error> {
        if range.is_told(status, reason, message) {
            return Ok(());
        }
        let condition = json!({
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "lastTransitionTime": format!("{:.0}", Timestamp::now()),
        });
        let object = json!({
            "apiVersion": kinds::SERVICE_CIDR.api_version(), "kind": kinds::SERVICE_CIDR.kind,
            "metadata": {"name": range.metadata.name}, "status": {"conditions": [condition]},
        });
        let patch = Patch::Apply { object, force: true };
        match self.cluster.patch_status(&kinds::SERVICE_CIDR, "", &range.metadata.name, &patch).await {
            Err(Error::NotFound(_)) => Ok(()),
            other => other.map(drop),
        }
    }
}
