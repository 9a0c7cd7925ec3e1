//! The node proxy: what the plan of this Node says, in the kernel, and nothing else of ours.
//!
//! [`run`] follows the cluster and keeps one [`Dataplane`] up to date: a file for each mode. Beside it are the health ports
//! that load balancers ask, metrics, the kernel's memory of flows, and [`cleanup`], which leaves nothing behind.

pub mod conntrack;
mod dataplane;
mod error;
mod follow;
pub mod health;
pub mod held;
mod iptables;
mod ipvs;
#[cfg(test)]
mod lab;
mod metrics;
mod modes;
mod nftables;
mod node;
mod report;
mod settings;
pub mod status;
pub mod sysctls;
pub mod trace;
pub mod userspace;
mod view;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;

use fairlead_api::kinds;
use fairlead_api::view::{Family, Meta};
use fairlead_cluster::programmed::{self, Component};
use fairlead_cluster::{Cluster, Recorder, Reference, Severity};
use fairlead_monitor::http;
use fairlead_plan::{Change, Node, Planner};
use tokio_util::sync::CancellationToken;

pub use dataplane::{Counters, Dataplane, RulesWritten, Traffic, Volume};
pub use error::Error;
pub use metrics::{Extent, Metrics, Policy, PortTraffic, Tallies};
pub use modes::dataplane;
pub use settings::{Conntrack, Detection, Ipvs, Mode, Settings, Userspace};
pub use status::Pages;
pub use view::{Programmed, View};

use conntrack::Reconciler;
use follow::Follower;
use health::{Health, Listeners};
use modes::Chosen;
use report::Report;
use status::Status;
use worker::{QUEUE, Work, Worker};

/// Families every proxy serves.
const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// Serves the Services of a cluster on this Node until told to stop. Rules stay when it ends: connections live on, and the next
/// run takes over.
pub async fn run(cluster: Cluster, settings: Settings, pages: Pages, stop: CancellationToken) -> Result<(), Error> {
    run_in_view(cluster, settings, pages, &View::default(), stop).await
}

/// The same, in view of a part of this process.
pub async fn run_in_view(
    cluster: Cluster,
    settings: Settings,
    pages: Pages,
    view: &View,
    stop: CancellationToken,
) -> Result<(), Error> {
    let cluster = cluster.managed_by("fairlead-proxy");
    let recorder = Recorder::new(&cluster, "fairlead-proxy", &settings.node);
    let chosen = modes::open(&settings)?;
    tell(&chosen, &settings, &recorder);
    let mode = chosen.dataplane.mode();
    let metrics = Metrics::new(mode, &FAMILIES);
    let health = Health::new(settings.sync_period, &FAMILIES, metrics.clone());
    let status = Status::new(mode, pages, metrics.clone());
    status.parameters(sysctls::set(&settings, mode));
    sysctls::forwarding().iter().for_each(|problem| tracing::warn!("{problem}"));

    let report = Arc::new(Report::new(metrics.clone(), health.clone()));
    view.show(&settings.node, mode, metrics.clone(), report.clone());
    let listeners = Listeners {
        healthz: settings.healthz,
        hard_fail: settings.bind_hard_fail,
        node: settings.node.clone(),
        recorder: Some(recorder.clone()),
    };
    let component = Component { name: "proxy", node: settings.node.clone(), uid: None };
    let servers = async {
        let metrics = async {
            match settings.metrics {
                Some(address) => status::serve(status, address, settings.bind_hard_fail, stop.clone()).await,
                None => Ok(()),
            }
        };
        tokio::try_join!(health::serve(health.clone(), listeners, stop.clone()), metrics)?;
        stop.cancelled().await;
        Ok::<(), Error>(())
    };
    let mut ended = std::pin::pin!(serve(&cluster, &settings, chosen, report.clone(), stop.clone()));
    // Whatever ends first when told to stop: the thread that programs the kernel is waited for.
    tokio::select! {
        ended = &mut ended => ended,
        served = servers => {
            served?;
            ended.await
        }
        () = programmed::announce(cluster.clone(), component, report.progress(), stop.clone()) => ended.await,
    }
}

/// Says which mode runs.
fn tell(chosen: &Chosen, settings: &Settings, recorder: &Recorder) {
    let about = || Reference::to(&kinds::NODE, &Meta { name: settings.node.clone(), ..Meta::default() });
    let mode = chosen.dataplane.mode();
    tracing::info!(node = settings.node, %mode, "serving Services");
    recorder.record(about(), Severity::Normal, "Starting", format!("serving Services in mode {mode}"));
    if let Some(why) = &chosen.fallback {
        tracing::warn!("{why}");
        recorder.record(about(), Severity::Warning, "FallbackProxyMode", why.as_str());
    }
}

/// Follows the cluster, and hands what changes to the thread that programs the kernel.
async fn serve(
    cluster: &Cluster,
    settings: &Settings,
    chosen: Chosen,
    report: Arc<Report>,
    stop: CancellationToken,
) -> Result<(), Error> {
    let mode = chosen.dataplane.mode();
    let mut follower = Follower::new(cluster, settings, mode);
    let (mut planner, addresses) = (Planner::new(Node::default()), node::Addresses::open()?);
    // What the plan needs of a list is much less than the list: it is read in parts.
    let mut take = |changes: Vec<Change>| drop(planner.apply(changes.into_iter().map(|change| addresses.fill(change))));
    let mut next = tokio::select! {
        first = follower.first(&mut take) => first,
        () = stop.cancelled() => return Ok(()),
    };
    let (work, thread) = start(chosen.dataplane, settings, (planner, addresses), report.clone())?;
    report.count_with(&work);
    loop {
        report.seen(&next.stamp, follower.object().map(|node| &**node));
        if follow::send(&work, Work::Changes(next)).await.is_err() {
            break;
        }
        next = tokio::select! {
            next = follower.next() => next,
            () = stop.cancelled() => break,
        };
    }
    report.count_no_more();
    drop(work);
    // It ends as soon as what it does is done.
    match tokio::task::spawn_blocking(move || thread.join()).await {
        Ok(Ok(())) if stop.is_cancelled() => Ok(()),
        _ => Err(Error::Missing("the thread that programs the kernel ended by mistake".to_owned())),
    }
}

/// Starts the thread that programs the kernel.
fn start(
    dataplane: Box<dyn Dataplane>,
    settings: &Settings,
    (planner, addresses): (Planner, node::Addresses),
    report: Arc<Report>,
) -> Result<(SyncSender<Work>, JoinHandle<()>), Error> {
    let pause = modes::pause(settings, dataplane.mode());
    let worker = Worker {
        planner,
        dataplane,
        reconciler: Reconciler::new(),
        meter: None,
        addresses,
        watcher: report,
        pause,
        sync_period: settings.sync_period,
        others: true,
        owed: None,
    };
    let (work, todo) = mpsc::sync_channel(QUEUE);
    let thread = std::thread::Builder::new().name("proxy".to_owned()).spawn(move || worker.run(&todo));
    let thread = thread.map_err(|error| Error::Io { what: "starting a thread".to_owned(), error })?;
    Ok((work, thread))
}

/// Removes whatever this machine has of ours in its kernel, of any mode, and says what that was.
pub fn cleanup() -> Result<Vec<String>, Error> {
    let mut removed = nftables::remove()?;
    removed.extend(iptables::remove()?);
    removed.extend(ipvs::remove()?);
    Ok(removed)
}
