//! The node proxy: what the plan of this Node says, in the kernel, and nothing else of ours.
//!
//! [`run`] follows the cluster and keeps one [`Dataplane`] up to date: a file for each mode. Beside it are the health ports
//! that load balancers ask, metrics, the kernel's memory of flows, and [`cleanup`], which leaves nothing behind.

pub mod conntrack;
mod dataplane;
mod error;
mod follow;
mod iptables;
mod ipvs;
mod modes;
mod nftables;
mod node;
mod settings;
mod status;
mod worker;

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use fairlead_cluster::Cluster;
use fairlead_plan::{Node, PlanChange, Planner};
use tokio_util::sync::CancellationToken;

pub use dataplane::{Counters, Dataplane, Traffic};
pub use error::Error;
pub use modes::dataplane;
pub use settings::{Conntrack, Detection, Ipvs, Mode, Settings, Userspace};
pub use status::Pages;

use conntrack::{Reconciled, Reconciler};
use follow::Follower;
use worker::{QUEUE, Stamp, Watcher, Work, Worker};

/// Serves the Services of a cluster on this Node until told to stop. Rules stay when it ends: connections live on, and the next
/// run takes over.
pub async fn run(cluster: Cluster, settings: Settings, stop: CancellationToken) -> Result<(), Error> {
    let chosen = modes::open(&settings)?;
    let mode = chosen.dataplane.mode();
    if let Some(why) = &chosen.fallback {
        tracing::warn!("{why}");
    }
    let mut follower = Follower::new(&cluster, &settings, mode);
    let first = tokio::select! {
        first = follower.first() => first,
        () = stop.cancelled() => return Ok(()),
    };
    let worker = Worker {
        planner: Planner::new(Node::default()),
        dataplane: chosen.dataplane,
        reconciler: Reconciler::new(),
        addresses: node::Addresses::open()?,
        watcher: Arc::new(Log),
        pause: modes::pause(&settings, mode),
        sync_period: settings.sync_period,
    };
    let (work, todo) = mpsc::sync_channel(QUEUE);
    let thread = std::thread::Builder::new().name("proxy".to_owned()).spawn(move || worker.run(&todo));
    let thread = thread.map_err(|error| Error::Io { what: "starting a thread".to_owned(), error })?;
    let mut next = first;
    while follow::send(&work, Work::Changes(next)).await.is_ok() {
        next = tokio::select! {
            next = follower.next() => next,
            () = stop.cancelled() => break,
        };
    }
    drop(work);
    // It ends as soon as what it does is done.
    match tokio::task::spawn_blocking(move || thread.join()).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Error::Missing("the thread that programs the kernel ended by mistake".to_owned())),
    }
}

struct Log;

impl Watcher for Log {
    fn programmed(&self, stamps: &[Stamp], change: &PlanChange, took: Duration, full: bool) {
        tracing::debug!(
            ?stamps,
            frontends = change.frontends.len(),
            pools = change.pools.len(),
            ?took,
            full,
            "programmed"
        );
    }

    fn failed(&self, _: &Error) {}

    fn repaired(&self, _: &str) {}

    fn forgotten(&self, done: &Reconciled) {
        if let Some(took) = done.took {
            tracing::debug!(?done.deleted, ?took, "looked at the flows the kernel remembers");
        }
    }
}

/// Removes whatever this machine has of ours in its kernel, of any mode, and says what that was.
pub fn cleanup() -> Result<Vec<String>, Error> {
    let mut removed = nftables::remove()?;
    removed.extend(iptables::remove()?);
    removed.extend(ipvs::remove()?);
    Ok(removed)
}
