//! Counters whose names do not end in `_total`. Kubernetes has some, and dashboards ask for them by these names; OpenMetrics does not
//! allow them, so there they are of no known kind.

use std::fmt;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::{MetricType, TypedMetric};

/// A number that only grows, under the very name it is registered by.
#[derive(Debug, Clone, Default)]
pub struct PlainCounter(Counter);

impl PlainCounter {
    /// One more.
    pub fn inc(&self) {
        self.0.inc();
    }
}

impl TypedMetric for PlainCounter {
    const TYPE: MetricType = MetricType::Unknown;
}

impl EncodeMetric for PlainCounter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        // Of all kinds only gauges are written without a suffix.
        encoder.encode_gauge(&self.0.get())
    }

    fn metric_type(&self) -> MetricType {
        PlainCounter::TYPE
    }
}
