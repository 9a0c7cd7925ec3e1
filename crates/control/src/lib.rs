//! The controllers: each looks at a part of the cluster, asks a pure function what should be there, and writes the difference.
//!
//! They see the cluster through [`fairlead_cluster`] alone, so the same code runs beside the API server in one process and
//! against any Kubernetes. Nothing is remembered that cannot be read again: a controller that is killed goes on where it was.

mod choice;
mod garbage;
mod health;
mod namespace;
mod node_ipam;
mod nodes;
mod pod_garbage;
mod queue;
mod registrations;
mod scheduler;
mod service_account;
mod service_cidr;
mod services;

use std::time::Duration;

use fairlead_cluster::Cluster;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use choice::{Choice, Controller, Unknown};
pub use node_ipam::NodeRanges;

/// How the controllers do their work.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which of them run.
    pub choice: Choice,
    /// The most endpoints in an EndpointSlice.
    pub max_endpoints_per_slice: usize,
    /// The most addresses of a subset of hand-made Endpoints that are mirrored.
    pub mirroring_max_endpoints_per_subset: usize,
    /// A Node whose agent was silent for so long is not ready.
    pub node_monitor_grace_period: Duration,
    /// A deleted ServiceCIDR stays for so long, until every API server knows.
    pub service_cidr_grace_period: Duration,
    /// Pods of a Node that has been missing for so long are deleted.
    pub pod_quarantine: Duration,
    /// Where the ranges of Nodes for their Pods come from.
    pub node_ranges: NodeRanges,
    /// Where we run, for Events.
    pub host: String,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            choice: Choice::all(),
            max_endpoints_per_slice: fairlead_endpoints::slices::MAX_ENDPOINTS,
            mirroring_max_endpoints_per_subset: fairlead_endpoints::mirror::MAX_ADDRESSES,
            node_monitor_grace_period: Duration::from_secs(50),
            service_cidr_grace_period: Duration::from_secs(10),
            pod_quarantine: Duration::from_secs(40),
            node_ranges: NodeRanges::default(),
            host: String::new(),
        }
    }
}

/// A controller ended by a defect of ours, and took the others with it: a new process is better than half of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a controller ended by a defect; the log says which. Start the program again")]
pub struct Defect;

/// Runs the chosen controllers until told to stop.
pub async fn run(cluster: Cluster, options: Options, stop: CancellationToken) -> Result<(), Defect> {
    let cluster = cluster.managed_by("fairlead-control");
    let mut tasks = JoinSet::new();
    if services::wanted(&options.choice) {
        tasks.spawn(services::run(cluster.clone(), options.clone(), stop.clone()));
    }
    if options.choice.has(Controller::EndpointSliceHealth) {
        tasks.spawn(health::run(cluster.clone(), options.host.clone(), stop.clone()));
        tasks.spawn(registrations::run(cluster.clone(), options.host.clone(), stop.clone()));
    }
    if options.choice.has(Controller::GarbageCollector) {
        tasks.spawn(garbage::run(cluster.clone(), options.host.clone(), stop.clone()));
    }
    if options.choice.has(Controller::Namespace) {
        tasks.spawn(namespace::run(cluster.clone(), stop.clone()));
    }
    if options.choice.has(Controller::NodeIpam) {
        let ranges = options.node_ranges.clone();
        tasks.spawn(node_ipam::run(cluster.clone(), ranges, options.host.clone(), stop.clone()));
    }
    if options.choice.has(Controller::NodeLifecycle) {
        let grace = options.node_monitor_grace_period;
        tasks.spawn(nodes::run(cluster.clone(), grace, options.host.clone(), stop.clone()));
    }
    if options.choice.has(Controller::PodGarbageCollector) {
        tasks.spawn(pod_garbage::run(cluster.clone(), options.pod_quarantine, stop.clone()));
    }
    if options.choice.has(Controller::Scheduler) {
        tasks.spawn(scheduler::run(cluster.clone(), options.host.clone(), stop.clone()));
    }
    if options.choice.has(Controller::ServiceAccount) {
        tasks.spawn(service_account::run(cluster.clone(), stop.clone()));
    }
    if options.choice.has(Controller::ServiceCidr) {
        tasks.spawn(service_cidr::run(cluster.clone(), options.service_cidr_grace_period, stop.clone()));
    }
    let mut all = Ok(());
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a controller has ended");
            all = Err(Defect);
            stop.cancel();
        }
    }
    all
}
