//! The controllers: each looks at a part of the cluster, asks a pure function what should be there, and writes the difference.
//!
//! They see the cluster through [`fairlead_cluster`] alone, so the same code runs beside the API server in one process and
//! against any Kubernetes. Nothing is remembered that cannot be read again: a controller that is killed goes on where it was.

mod availability;
mod choice;
mod daemon_set;
mod deployment;
mod failures;
mod garbage;
mod health;
mod metrics;
mod namespace;
mod node_ipam;
mod nodes;
mod ownership;
mod pod_garbage;
mod queue;
mod registrations;
mod replica_set;
mod revisions;
mod root_ca;
mod scheduler;
mod service_account;
mod service_cidr;
mod services;
mod stateful_set;

use std::time::Duration;

use fairlead_api::view::{ReplicaSet, ReplicationController};
use fairlead_cluster::Cluster;
use fairlead_cluster::controller::{self, QueueMetrics};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use daemon_set::DaemonSetController;
use replica_set::ReplicaSetController;
use stateful_set::StatefulSetController;

pub use choice::{Choice, Controller, Unknown};
pub use metrics::{Leading, Metrics};
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
    /// Maximum number of Pods that have ended, in all namespaces; the oldest beyond it are deleted.
    pub max_ended_pods: usize,
    /// Where the ranges of Nodes for their Pods come from.
    pub node_ranges: NodeRanges,
    /// Certificates by which Pods know the API server, in PEM; the publisher of the certificate
    /// authority does nothing without.
    pub root_ca: Option<String>,
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
            max_ended_pods: pod_garbage::MAX_ENDED_PODS,
            node_ranges: NodeRanges::default(),
            root_ca: None,
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
    run_measured(cluster, options, Metrics::new(), stop).await
}

/// The same, counting what they do in these metrics.
pub async fn run_measured(
    cluster: Cluster,
    options: Options,
    metrics: Metrics,
    stop: CancellationToken,
) -> Result<(), Defect> {
    let mut tasks = start(&cluster.managed_by("fairlead-control"), &options, &metrics, &stop);
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

/// Each of the chosen controllers is a task. Their queues have the names of kube-controller-manager's that do the same.
fn start(cluster: &Cluster, options: &Options, metrics: &Metrics, stop: &CancellationToken) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let (cluster, stop, host) = (|| cluster.clone(), || stop.clone(), || options.host.clone());
    let queue = |name| metrics.queue(name);
    if options.choice.has(Controller::DaemonSet) {
        let sets = DaemonSetController::new(cluster(), &host());
        let cache = daemon_set::cache(&cluster());
        let metrics = QueueMetrics::new(queue("daemonset"));
        tasks.spawn(controller::run(sets, cache, daemon_set::SETTINGS, metrics, stop()));
    }
    if options.choice.has(Controller::Deployment) {
        let deployments = deployment::DeploymentController::new(cluster(), &host());
        let cache = deployment::cache(&cluster());
        let metrics = QueueMetrics::new(queue("deployment"));
        tasks.spawn(controller::run(deployments, cache, deployment::SETTINGS, metrics, stop()));
    }
    if options.choice.has(Controller::ReplicaSet) {
        let sets = ReplicaSetController::<ReplicaSet>::new(cluster(), &host());
        let cache = replica_set::cache::<ReplicaSet>(&cluster());
        let metrics = QueueMetrics::new(queue("replicaset"));
        tasks.spawn(controller::run(sets, cache, replica_set::SETTINGS, metrics, stop()));
    }
    if options.choice.has(Controller::ReplicationController) {
        let controllers = ReplicaSetController::<ReplicationController>::new(cluster(), &host());
        let cache = replica_set::cache::<ReplicationController>(&cluster());
        let settings = replica_set::REPLICATION_CONTROLLER_SETTINGS;
        let metrics = QueueMetrics::new(queue("replicationmanager"));
        tasks.spawn(controller::run(controllers, cache, settings, metrics, stop()));
    }
    if options.choice.has(Controller::StatefulSet) {
        let sets = StatefulSetController::new(cluster(), &host());
        let cache = stateful_set::cache(&cluster());
        let metrics = QueueMetrics::new(queue("statefulset"));
        tasks.spawn(controller::run(sets, cache, stateful_set::SETTINGS, metrics, stop()));
    }
    if services::wanted(&options.choice) {
        tasks.spawn(services::run(cluster(), options.clone(), metrics.clone(), stop()));
    }
    if options.choice.has(Controller::EndpointSliceHealth) {
        tasks.spawn(health::run(cluster(), host(), queue("endpoint_slice_health"), stop()));
        tasks.spawn(registrations::run(cluster(), host(), queue("endpoint_slice_registrations"), stop()));
    }
    if options.choice.has(Controller::GarbageCollector) {
        tasks.spawn(garbage::run(cluster(), host(), queue("garbage_collector_attempt_to_delete"), stop()));
    }
    if options.choice.has(Controller::Namespace) {
        tasks.spawn(namespace::run(cluster(), queue("namespace"), stop()));
    }
    if options.choice.has(Controller::NodeIpam) {
        let ranges = options.node_ranges.clone();
        tasks.spawn(node_ipam::run(cluster(), ranges, host(), queue("cidrallocator_node"), stop()));
    }
    if options.choice.has(Controller::NodeLifecycle) {
        let queues = [queue("node_lifecycle_controller"), queue("node_lifecycle_controller_taints")];
        tasks.spawn(nodes::run(cluster(), options.node_monitor_grace_period, host(), queues, stop()));
    }
    if options.choice.has(Controller::PodGarbageCollector) {
        let quarantine = options.pod_quarantine;
        let max_ended = options.max_ended_pods;
        tasks.spawn(pod_garbage::run(cluster(), quarantine, max_ended, queue("orphaned_pods_nodes"), stop()));
    }
    if let (true, Some(certificates)) = (options.choice.has(Controller::RootCaPublisher), &options.root_ca) {
        tasks.spawn(root_ca::run(cluster(), certificates.clone(), queue("root_ca_cert_publisher"), stop()));
    }
    if options.choice.has(Controller::Scheduler) {
        tasks.spawn(scheduler::run(cluster(), host(), queue("scheduler"), stop()));
    }
    if options.choice.has(Controller::ServiceAccount) {
        let accounts = service_account::ServiceAccountController { cluster: cluster() };
        let cache = service_account::cache(&cluster());
        let metrics = QueueMetrics::new(queue("serviceaccount"));
        tasks.spawn(controller::run(accounts, cache, service_account::SETTINGS, metrics, stop()));
    }
    if options.choice.has(Controller::ServiceCidr) {
        tasks.spawn(service_cidr::run(cluster(), options.service_cidr_grace_period, queue("service_cidr"), stop()));
    }
    tasks
}
