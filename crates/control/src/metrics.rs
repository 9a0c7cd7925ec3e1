//! Metrics of the controllers, under the names kube-controller-manager gives them: what waits in their queues and for how long, how
//! long the work takes, and what the EndpointSlice controller keeps.

use std::sync::Arc;

use fairlead_cluster::controller::{QueueMeter, WorkQueueMetrics};
use fairlead_monitor::Format;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

pub(crate) use slices::{Operation, Share, SliceMeter};

mod slices;
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
    queues: WorkQueueMetrics,
    slices: Arc<SliceMeter>,
    leads: Family<OfLease, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLease {
    name: String,
}

impl Metrics {
    /// Nothing was counted yet.
    pub fn new() -> Metrics {
        let mut registry = Registry::default();
        let queues = WorkQueueMetrics::register(&mut registry);
        let slices = SliceMeter::registered(&mut registry);
        let leads = Family::<OfLease, Gauge>::default();
        let help =
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master";
        registry.register("leader_election_master_status", help, leads.clone());
        Metrics { shared: Arc::new(Shared { registry, queues, slices, leads }) }
    }

    /// Everything, as Prometheus reads it.
    pub fn text(&self, format: Format) -> String {
        fairlead_monitor::write(&self.shared.registry, format)
    }

    /// This process wants a Lease, which another may have.
    pub fn waits(&self, lease: &str) {
        self.shared.leads.get_or_create(&OfLease { name: lease.to_owned() }).set(0);
    }

    /// This process is the one that acts, of those that want a Lease.
    pub fn leads(&self, lease: &str) -> Leading {
        let gauge = self.shared.leads.get_or_create_owned(&OfLease { name: lease.to_owned() });
        gauge.set(1);
        Leading(gauge)
    }

    /// The metrics of the queue of this name.
    pub(crate) fn queue(&self, name: &'static str) -> QueueMeter {
        self.shared.queues.queue(name)
    }

    /// What is counted of EndpointSlices.
    pub(crate) fn slices(&self) -> Arc<SliceMeter> {
        self.shared.slices.clone()
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

/// It acts until this is dropped.
#[derive(Debug)]
pub struct Leading(Gauge);

impl Drop for Leading {
    fn drop(&mut self) {
        self.0.set(0);
    }
}
