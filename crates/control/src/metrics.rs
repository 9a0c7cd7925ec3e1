//! Metrics of the controllers, under the names kube-controller-manager gives them: what waits in their queues and for how long, how
//! long the work takes, and what the EndpointSlice controller keeps.

use std::sync::Arc;
use std::time::Duration;

use fairlead_monitor::Format;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
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
    depth: Family<OfQueue, Gauge>,
    adds: Family<OfQueue, Counter>,
    retries: Family<OfQueue, Counter>,
    waited: Family<OfQueue, Histogram, fn() -> Histogram>,
    worked: Family<OfQueue, Histogram, fn() -> Histogram>,
    slices: Arc<SliceMeter>,
    leads: Family<OfLease, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfQueue {
    name: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLease {
    name: String,
}

impl Metrics {
    /// Nothing was counted yet.
    pub fn new() -> Metrics {
        let mut registry = Registry::default();
        let (depth, adds, retries) = <(Family<_, Gauge>, Family<_, Counter>, Family<_, Counter>)>::default();
        let waited = Family::new_with_constructor(durations as fn() -> Histogram);
        let worked = Family::new_with_constructor(durations as fn() -> Histogram);
        registry.register("workqueue_depth", "Current depth of workqueue", depth.clone());
        registry.register("workqueue_adds", "Total number of adds handled by workqueue", adds.clone());
        registry.register("workqueue_retries", "Total number of retries handled by workqueue", retries.clone());
        let help = "How long in seconds an item stays in workqueue before being requested";
        registry.register("workqueue_queue_duration_seconds", help, waited.clone());
        let help = "How long in seconds processing an item from workqueue takes";
        registry.register("workqueue_work_duration_seconds", help, worked.clone());
        let slices = SliceMeter::registered(&mut registry);
        let leads = Family::<OfLease, Gauge>::default();
        let help =
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master";
        registry.register("leader_election_master_status", help, leads.clone());
        Metrics { shared: Arc::new(Shared { registry, depth, adds, retries, waited, worked, slices, leads }) }
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

    /// What is counted of a queue.
    pub(crate) fn queue(&self, name: &'static str) -> QueueMeter {
        let (shared, of) = (&*self.shared, OfQueue { name });
        QueueMeter {
            depth: shared.depth.get_or_create_owned(&of),
            adds: shared.adds.get_or_create_owned(&of),
            retries: shared.retries.get_or_create_owned(&of),
            waited: shared.waited.get_or_create_owned(&of),
            worked: shared.worked.get_or_create_owned(&of),
        }
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

/// From 10 microseconds, which a look without a write takes, to 42 seconds.
fn durations() -> Histogram {
    Histogram::new(exponential_buckets(0.000_01, 4.0, 12))
}

/// What is counted of one queue.
#[derive(Debug, Clone)]
pub(crate) struct QueueMeter {
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    waited: Histogram,
    worked: Histogram,
}

impl QueueMeter {
    /// A key waits to be worked on.
    pub(crate) fn added(&self) {
        self.adds.inc();
        self.depth.inc();
    }

    /// It is worked on, after so long.
    pub(crate) fn taken(&self, after: Duration) {
        self.depth.dec();
        self.waited.observe(after.as_secs_f64());
    }

    /// The work has ended, well or not, after so long.
    pub(crate) fn ended(&self, after: Duration) {
        self.worked.observe(after.as_secs_f64());
    }

    /// It will be tried again.
    pub(crate) fn retried(&self) {
        self.retries.inc();
    }

    /// A key that waits is forgotten.
    pub(crate) fn dropped(&self) {
        self.depth.dec();
    }
}
