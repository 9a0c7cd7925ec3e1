//! Metrics of the Pods of a Node, under the names a kubelet gives them: what runs, what was started and how long that took, and what
//! probes found.

use std::sync::Arc;
use std::time::Duration;

use fairlead_monitor::Format;
use fairlead_probe::Outcome;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::probes::Kind;
use crate::unit::{Role, Unit};

#[cfg(test)]
mod tests;

/// All metrics. Cheap to clone, and to be counted in from any thread.
#[derive(Debug, Clone)]
pub struct Metrics {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    registry: Registry,
    pods: Gauge,
    containers: Family<OfState, Gauge>,
    started_pods: Counter,
    failed_pods: Counter,
    started: Family<OfRole, Counter>,
    failed: Family<OfFailure, Counter>,
    restarts: Counter,
    terminated: Family<OfExit, Counter>,
    start: Histogram,
    probes: Family<OfProbe, Counter>,
    looks: Family<OfKind, Histogram, fn() -> Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfState {
    container_state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRole {
    container_type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFailure {
    container_type: &'static str,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfExit {
    container_type: &'static str,
    exit_code: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfProbe {
    probe_type: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    probe_type: &'static str,
}

impl Metrics {
    /// Nothing was counted yet.
    pub fn new() -> Metrics {
        let mut registry = Registry::default();
        let shared = Shared::registered(&mut registry);
        Metrics { shared: Arc::new(Shared { registry, ..shared }) }
    }

    /// Everything, as Prometheus reads it.
    pub fn text(&self, format: Format) -> String {
        fairlead_monitor::write(&self.shared.registry, format)
    }

    /// The part of one more Pod in what runs.
    pub(crate) fn share(&self) -> Share {
        Share { metrics: self.clone(), counted: Running::default() }
    }

    /// A Pod has its network.
    pub(crate) fn pod_started(&self) {
        self.shared.started_pods.inc();
    }

    /// A Pod did not get its network.
    pub(crate) fn pod_failed(&self) {
        self.shared.failed_pods.inc();
    }

    /// All containers of a Pod ran for the first time, so long after it was seen.
    pub(crate) fn pod_ran(&self, after: Duration) {
        self.shared.start.observe(after.as_secs_f64());
    }

    /// A container was started.
    pub(crate) fn container_started(&self, role: Role, again: bool) {
        self.shared.started.get_or_create(&OfRole { container_type: kind(role) }).inc();
        if again {
            self.shared.restarts.inc();
        }
    }

    /// Counts a container that has ended.
    pub(crate) fn container_terminated(&self, role: Role, exit_code: i32) {
        self.shared.terminated.get_or_create(&OfExit { container_type: kind(role), exit_code }).inc();
    }

    /// A container was not started, for a reason.
    pub(crate) fn container_failed(&self, role: Role, code: &'static str) {
        self.shared.failed.get_or_create(&OfFailure { container_type: kind(role), code }).inc();
    }

    /// A probe looked, which took so long.
    pub(crate) fn probed(&self, probe: Kind, outcome: &Outcome, took: Duration) {
        let (probe_type, result) = (probe.name(), if outcome.is_success() { "successful" } else { "failed" });
        self.shared.probes.get_or_create(&OfProbe { probe_type, result }).inc();
        self.shared.looks.get_or_create(&OfKind { probe_type }).observe(took.as_secs_f64());
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Shared {
    fn registered(registry: &mut Registry) -> Shared {
        let shared = Shared {
            registry: Registry::default(),
            pods: Gauge::default(),
            containers: Family::default(),
            started_pods: Counter::default(),
            failed_pods: Counter::default(),
            started: Family::default(),
            failed: Family::default(),
            restarts: Counter::default(),
            terminated: Family::default(),
            start: Histogram::new([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0]),
            probes: Family::default(),
            looks: Family::new_with_constructor(looks as fn() -> Histogram),
        };
        registry.register("kubelet_running_pods", "Number of pods that have a running container", shared.pods.clone());
        let help = "Number of containers currently running or exited";
        registry.register("kubelet_running_containers", help, shared.containers.clone());
        registry.register("kubelet_started_pods", "Cumulative number of pods started", shared.started_pods.clone());
        let help = "Cumulative number of errors when starting pods";
        registry.register("kubelet_started_pods_errors", help, shared.failed_pods.clone());
        let help = "Cumulative number of containers started";
        registry.register("kubelet_started_containers", help, shared.started.clone());
        let help = "Cumulative number of errors when starting containers";
        registry.register("kubelet_started_containers_errors", help, shared.failed.clone());
        let help = "Cumulative number of containers started again";
        registry.register("fairlead_pods_container_restarts", help, shared.restarts.clone());
        let help = "Cumulative number of containers that have ended by exit code";
        registry.register("kubelet_terminated_containers", help, shared.terminated.clone());
        let help = "Duration in seconds from seeing a pod for the first time to the pod starting to run";
        registry.register("kubelet_pod_start_duration_seconds", help, shared.start.clone());
        let help = "Cumulative number of looks of a liveness, readiness or startup probe by result";
        registry.register("prober_probe", help, shared.probes.clone());
        registry.register("prober_probe_duration_seconds", "Duration in seconds of a look", shared.looks.clone());
        shared
    }
}

/// On one machine a look takes a millisecond; one that takes longer than a second is a failure unless told otherwise.
fn looks() -> Histogram {
    Histogram::new([0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0])
}

fn kind(role: Role) -> &'static str {
    match role {
        Role::Init | Role::Sidecar => "init_container",
        Role::Main => "container",
    }
}

/// The part of one Pod in what runs. It leaves the sums with the Pod.
#[derive(Debug)]
pub(crate) struct Share {
    metrics: Metrics,
    counted: Running,
}

/// What runs of a Pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Running {
    pods: i64,
    running: i64,
    exited: i64,
}

impl Share {
    /// The containers are these now.
    pub(crate) fn set(&mut self, units: &[Unit]) {
        let count = |of: fn(&Unit) -> bool| i64::try_from(units.iter().filter(|unit| of(unit)).count()).unwrap_or(0);
        let running = count(Unit::is_running);
        self.put(Running { pods: running.min(1), running, exited: count(|unit| unit.ended().is_some()) });
    }

    fn put(&mut self, now: Running) {
        let (before, shared) = (std::mem::replace(&mut self.counted, now), &*self.metrics.shared);
        shared.pods.inc_by(now.pods - before.pods);
        let state = |container_state| shared.containers.get_or_create_owned(&OfState { container_state });
        state("running").inc_by(now.running - before.running);
        state("exited").inc_by(now.exited - before.exited);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.put(Running::default());
    }
}
