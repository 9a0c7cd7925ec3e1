//! Traffic of Services and endpoints. It is counted in the kernel, and fetched when somebody asks.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fairlead_api::source::Key;
use fairlead_plan::{Plan, PortKey};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::{Counters, Traffic};

/// How old what is shown may be: reading all counters is work for the kernel, and several may ask.
const AGE: Duration = Duration::from_secs(1);
/// Endpoints that are shown one by one; beyond this a scrape would be megabytes.
const ENDPOINTS: usize = 20_000;

/// Traffic by Service and port, and by endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tallies {
    /// By the Service and the name of its port.
    services: BTreeMap<(Arc<Key>, Arc<str>), Traffic>,
    endpoints: BTreeMap<(Arc<Key>, Arc<str>, SocketAddr), Traffic>,
}

impl Tallies {
    /// What was counted, for whom. What the plan does not know any more is left out.
    pub fn of(counters: &Counters, plan: &Plan) -> Tallies {
        let mut tallies = Tallies::default();
        for (key, traffic) in &counters.frontends {
            let Some(frontend) = plan.frontend(key) else { continue };
            let PortKey { service, name, .. } = &frontend.port;
            add(tallies.services.entry((service.clone(), name.clone())).or_default(), traffic);
        }
        for ((PortKey { service, name, .. }, address), traffic) in &counters.endpoints {
            add(tallies.endpoints.entry((service.clone(), name.clone(), *address)).or_default(), traffic);
            if counters.frontends.is_empty() {
                // Counted where it went, not where it came in.
                add(tallies.services.entry((service.clone(), name.clone())).or_default(), traffic);
            }
        }
        tallies
    }
}

fn add(sum: &mut Traffic, traffic: &Traffic) {
    sum.connections = sum.connections.saturating_add(traffic.connections);
    sum.packets = sum.packets.saturating_add(traffic.packets);
    sum.bytes = sum.bytes.saturating_add(traffic.bytes);
}

type Source = Box<dyn Fn() -> Option<Tallies> + Send + Sync>;

/// Fetches tallies and keeps them for a moment.
#[derive(Default)]
pub(super) struct Tally {
    source: Mutex<Option<Source>>,
    last: Mutex<Option<(Instant, Arc<Tallies>)>>,
}

impl Tally {
    pub(super) fn ask(&self, source: Source) {
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }

    /// Fetches what was counted, unless that was done a moment ago.
    pub(super) fn refresh(&self) {
        // Held while the source works: of several who ask at once one does the work.
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(source) = &*source else { return };
        let fresh = matches!(&*self.last(), Some((when, _)) if when.elapsed() < AGE);
        if fresh {
            return;
        }
        if let Some(tallies) = source() {
            *self.last() = Some((Instant::now(), Arc::new(tallies)));
        }
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Option<(Instant, Arc<Tallies>)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Tally {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some((_, tallies)) = self.last().clone() else { return Ok(()) };
        for (unit, what, count) in UNITS {
            let (name, help) = (format!("fairlead_proxy_service_{unit}"), format!("{what} to a Service"));
            let mut metric = encoder.encode_descriptor(&name, &help, None, MetricType::Counter)?;
            for ((service, port), traffic) in &tallies.services {
                let labels = [("namespace", &*service.namespace), ("service", &*service.name), ("port", &**port)];
                ConstCounter::new(count(traffic)).encode(metric.encode_family(&labels)?)?;
            }
        }
        for (unit, what, count) in UNITS {
            let (name, help) = (format!("fairlead_proxy_endpoint_{unit}"), format!("{what} to an endpoint"));
            let mut metric = encoder.encode_descriptor(&name, &help, None, MetricType::Counter)?;
            for ((service, port, address), traffic) in tallies.endpoints.iter().take(ENDPOINTS) {
                let endpoint = address.to_string();
                let labels = [
                    ("namespace", &*service.namespace),
                    ("service", &*service.name),
                    ("port", &**port),
                    ("endpoint", &*endpoint),
                ];
                ConstCounter::new(count(traffic)).encode(metric.encode_family(&labels)?)?;
            }
        }
        let omitted = ConstGauge::new(tallies.endpoints.len().saturating_sub(ENDPOINTS) as u64);
        let help = "Endpoints whose traffic is not shown because there are too many";
        omitted.encode(encoder.encode_descriptor(
            "fairlead_proxy_endpoints_omitted",
            help,
            None,
            omitted.metric_type(),
        )?)
    }
}

type Count = fn(&Traffic) -> u64;

const UNITS: [(&str, &str, Count); 3] = [
    ("connections", "Connections and flows that began", |traffic| traffic.connections),
    ("packets", "Packets that were counted on their way", |traffic| traffic.packets),
    ("bytes", "Bytes that were counted on their way", |traffic| traffic.bytes),
];

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tally").finish_non_exhaustive()
    }
}
