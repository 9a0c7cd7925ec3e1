//! Metrics of work queues, under the names that kube-controller-manager gives them
//! (staging/src/k8s.io/component-base/metrics/prometheus/workqueue).

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The metrics of all queues of a process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WorkQueueMetrics {
    depth: Family<QueueLabels, Gauge>,
    adds: Family<QueueLabels, Counter>,
    retries: Family<QueueLabels, Counter>,
    waiting_time: Family<QueueLabels, Histogram, fn() -> Histogram>,
    working_time: Family<QueueLabels, Histogram, fn() -> Histogram>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    name: &'static str,
}

impl WorkQueueMetrics {
    /// Adds the metrics to a registry.
    pub fn register(registry: &mut Registry) -> WorkQueueMetrics {
        let metrics = WorkQueueMetrics {
            depth: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            waiting_time: Family::new_with_constructor(durations as fn() -> Histogram),
            working_time: Family::new_with_constructor(durations as fn() -> Histogram),
        };
        registry.register("workqueue_depth", "Current depth of workqueue", metrics.depth.clone());
        registry.register("workqueue_adds", "Total number of adds handled by workqueue", metrics.adds.clone());
        registry.register("workqueue_retries", "Total number of retries handled by workqueue", metrics.retries.clone());
        let help = "How long in seconds an item stays in workqueue before being requested";
        registry.register("workqueue_queue_duration_seconds", help, metrics.waiting_time.clone());
        let help = "How long in seconds processing an item from workqueue takes";
        registry.register("workqueue_work_duration_seconds", help, metrics.working_time.clone());
        metrics
    }

    /// The metrics of the queue of this name.
    pub fn queue(&self, name: &'static str) -> QueueMeter {
        let labels = QueueLabels { name };
        QueueMeter {
            depth: self.depth.get_or_create_owned(&labels),
            adds: self.adds.get_or_create_owned(&labels),
            retries: self.retries.get_or_create_owned(&labels),
            waiting_time: self.waiting_time.get_or_create_owned(&labels),
            working_time: self.working_time.get_or_create_owned(&labels),
        }
    }
}

/// Buckets from 10 us, the time of a decision without a write, to 42 s.
fn durations() -> Histogram {
    Histogram::new(exponential_buckets(0.000_01, 4.0, 12))
}

/// The metrics of one queue.
#[derive(Debug, Clone)]
pub struct QueueMeter {
    depth: Gauge,
    adds: Counter,
    retries: Counter,
    waiting_time: Histogram,
    working_time: Histogram,
}

impl QueueMeter {
    /// Counts a key that became ready.
    pub fn added(&self) {
        self.adds.inc();
        self.depth.inc();
    }

    /// Counts a key that was handed out after it waited for this time.
    pub fn started(&self, waited: Duration) {
        self.depth.dec();
        self.waiting_time.observe(waited.as_secs_f64());
    }

    /// Counts work that ended, successfully or not, after this time.
    pub fn ended(&self, worked: Duration) {
        self.working_time.observe(worked.as_secs_f64());
    }

    /// Counts work that failed and is retried.
    pub fn retried(&self) {
        self.retries.inc();
    }

    /// Counts a ready key that was removed without work, because the controller stops.
    pub fn dropped(&self) {
        self.depth.dec();
    }
}

/// The metrics of the queues that share one [`WorkQueue`](super::WorkQueue), and the queue to which
/// each key belongs.
#[derive(Debug, Clone)]
pub struct QueueMetrics<K> {
    meters: Vec<QueueMeter>,
    queue_of: fn(&K) -> usize,
}

impl<K> QueueMetrics<K> {
    /// Counts all keys in one queue.
    pub fn new(meter: QueueMeter) -> QueueMetrics<K> {
        QueueMetrics { meters: vec![meter], queue_of: |_| 0 }
    }

    /// Counts each key in the queue with the index that `queue_of` returns.
    pub fn by_queue(meters: Vec<QueueMeter>, queue_of: fn(&K) -> usize) -> QueueMetrics<K> {
        QueueMetrics { meters, queue_of }
    }

    /// Counts nothing.
    pub fn none() -> QueueMetrics<K> {
        QueueMetrics { meters: Vec::new(), queue_of: |_| 0 }
    }

    pub(super) fn meter(&self, key: &K) -> Option<&QueueMeter> {
        self.meters.get((self.queue_of)(key))
    }
}
