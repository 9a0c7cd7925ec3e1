//! Traffic of Services and endpoints. It is counted in the kernel, and fetched when somebody asks.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fairlead_api::source::Key;
use fairlead_plan::{FrontendKey, Plan, PortKey, Protocol};
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
    pub services: BTreeMap<(Arc<Key>, Arc<str>), PortTraffic>,
    /// By the Service, the name of its port and where the endpoint is.
    pub endpoints: BTreeMap<(Arc<Key>, Arc<str>, SocketAddr), Traffic>,
    /// By what packets are addressed to, where that is counted.
    pub frontends: BTreeMap<FrontendKey, Traffic>,
    /// Whether packets and bytes are counted, too.
    pub measured: bool,
}

/// Traffic of a port of a Service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortTraffic {
    /// The protocol of the port.
    pub protocol: Protocol,
    /// What was counted.
    pub traffic: Traffic,
}

impl Tallies {
    /// What was counted, for whom. What the plan does not know any more is left out. `measured`: packets and bytes are there.
    pub fn of(counters: Counters, measured: bool, plan: &Plan) -> Tallies {
        let mut tallies = Tallies { measured, ..Tallies::default() };
        for (key, traffic) in &counters.frontends {
            let Some(frontend) = plan.frontend(key) else { continue };
            tallies.port(&frontend.port).add(traffic);
        }
        let mut sums: BTreeMap<&PortKey, Traffic> = BTreeMap::new();
        for ((port, address), traffic) in &counters.endpoints {
            let PortKey { service, name, .. } = port;
            tallies.endpoints.entry((service.clone(), name.clone(), *address)).or_default().add(traffic);
            sums.entry(port).or_default().add(traffic);
        }
        for (port, sum) in sums {
            let sum_of_port = tallies.port(port);
            if counters.frontends.is_empty() {
                // Counted where it went, not where it came in.
                sum_of_port.add(&sum);
            } else {
                // Endpoints may have counted before it was counted where packets come in.
                sum_of_port.connections = sum_of_port.connections.max(sum.connections);
            }
        }
        tallies.frontends = counters.frontends;
        tallies
    }

    fn port(&mut self, port: &PortKey) -> &mut Traffic {
        let entry = self.services.entry((port.service.clone(), port.name.clone()));
        &mut entry.or_insert(PortTraffic { protocol: port.protocol, traffic: Traffic::default() }).traffic
    }
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

    /// What was fetched last.
    pub(super) fn newest(&self) -> Option<Arc<Tallies>> {
        self.last().as_ref().map(|(_, tallies)| tallies.clone())
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
            for ((service, port), PortTraffic { traffic, .. }) in &tallies.services {
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
