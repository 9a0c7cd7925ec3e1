//! Metrics of load balancers: by listener, by backend, and what else parts have to tell. Nothing is counted here: threads count for
//! themselves, and are asked when somebody wants to know.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use fairlead_monitor::Format;
use fairlead_runtime::budget::Account;
use fairlead_runtime::metrics::BudgetMetrics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::backends::{BackendStatus, Health};
use crate::engine::ListenerStatus;
use crate::engine::counters::Totals;

#[cfg(test)]
mod tests;

/// All metrics. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    asked: Asked,
}

/// What a part has to tell beside listeners and backends, such as how many addresses a pool has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Its name without `fairlead_balancer_` before it, and without the `_total` of counters. All samples of a name are told by
    /// one part, one after the other.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Whether it only grows.
    pub kind: Kind,
    /// Whose it is.
    pub labels: Vec<(&'static str, String)>,
    /// How much.
    pub value: u64,
}

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It comes and goes.
    Gauge,
}

/// Who knows how listeners do: `engine.look()`.
type Listeners = Box<dyn Fn() -> Vec<ListenerStatus> + Send + Sync>;
/// Who knows something else.
type Samples = Box<dyn Fn() -> Vec<Sample> + Send + Sync>;

/// Who is asked.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<(Option<Listeners>, Vec<Samples>)>>);

/// Backends that are shown one by one; beyond this a scrape would be megabytes.
const BACKENDS: usize = 20_000;

impl Metrics {
    /// Nobody is asked yet.
    pub fn new() -> Metrics {
        Metrics::made(None)
    }

    /// Returns metrics that also show the budgets of an account.
    pub fn with_budgets(account: Account) -> Metrics {
        Metrics::made(Some(BudgetMetrics::new(account)))
    }

    fn made(budgets: Option<BudgetMetrics>) -> Metrics {
        let (mut registry, asked) = (Registry::default(), Asked::default());
        registry.register_collector(Box::new(asked.clone()));
        registry.register_collector(Box::new(fairlead_monitor::Process));
        if let Some(budgets) = budgets {
            registry.register_collector(Box::new(budgets));
        }
        Metrics { registry: Arc::new(registry), asked }
    }

    /// Asks this for listeners and their backends.
    pub fn ask_listeners(&self, listeners: impl Fn() -> Vec<ListenerStatus> + Send + Sync + 'static) {
        self.asked.lock().0 = Some(Box::new(listeners));
    }

    /// Asks this for something else, too.
    pub fn ask(&self, samples: impl Fn() -> Vec<Sample> + Send + Sync + 'static) {
        self.asked.lock().1.push(Box::new(samples));
    }

    /// All of them as text.
    pub fn text(&self, format: Format) -> String {
        fairlead_monitor::write(&self.registry, format)
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Asked {
    fn lock(&self) -> std::sync::MutexGuard<'_, (Option<Listeners>, Vec<Samples>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").finish_non_exhaustive()
    }
}

impl Collector for Asked {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let asked = self.lock();
        if let Some(listeners) = &asked.0 {
            let listeners = listeners();
            tell_listeners(&listeners, &mut encoder)?;
            tell_backends(&listeners, &mut encoder)?;
        }
        asked.1.iter().try_for_each(|samples| tell(&samples(), &mut encoder))
    }
}

type Of<T> = fn(&T) -> u64;

/// Name, help, further labels, and where the number is. A name whose labels differ stands several times in a row.
type Row<T> = (&'static str, &'static str, Kind, &'static [(&'static str, &'static str)], Of<T>);

const FAILURES: &str = "Connections of clients that did not come to be, or came to an end early, by reason";
const REQUESTS: &str = "Requests answered, by class of status";

const LISTENER: &[Row<Totals>] = &[
    ("connections", "Connections accepted", Kind::Counter, &[], |of| of.accepted),
    ("active_connections", "Connections open", Kind::Gauge, &[], |of| of.active),
    ("received_bytes", "Bytes from clients", Kind::Counter, &[], |of| of.received),
    ("sent_bytes", "Bytes to clients", Kind::Counter, &[], |of| of.sent),
    ("requests", REQUESTS, Kind::Counter, &[("code", "1xx")], |of| of.answers_1xx),
    ("requests", REQUESTS, Kind::Counter, &[("code", "2xx")], |of| of.answers_2xx),
    ("requests", REQUESTS, Kind::Counter, &[("code", "3xx")], |of| of.answers_3xx),
    ("requests", REQUESTS, Kind::Counter, &[("code", "4xx")], |of| of.answers_4xx),
    ("requests", REQUESTS, Kind::Counter, &[("code", "5xx")], |of| of.answers_5xx),
    ("retries", "Requests sent once more", Kind::Counter, &[], |of| of.retries),
    ("connection_failures", FAILURES, Kind::Counter, &[("reason", "source_range")], |of| of.refused),
    ("connection_failures", FAILURES, Kind::Counter, &[("reason", "proxy_header")], |of| of.bad_proxy_headers),
    ("connection_failures", FAILURES, Kind::Counter, &[("reason", "tls_handshake")], |of| of.bad_handshakes),
    ("connection_failures", FAILURES, Kind::Counter, &[("reason", "slow")], |of| of.slow),
    ("connection_failures", FAILURES, Kind::Counter, &[("reason", "no_backend")], |of| of.no_backend),
    ("connection_failures", FAILURES, Kind::Counter, &[("reason", "idle")], |of| of.idle),
    ("connection_failures", FAILURES, Kind::Counter, &[("reason", "broken")], |of| of.broken),
    ("connection_failures", FAILURES, Kind::Counter, &[("reason", "ended")], |of| of.ended),
    ("backend_dial_failures", "Connections to backends that failed", Kind::Counter, &[], |of| of.dial_failures),
];

const BACKEND: &[Row<BackendStatus>] = &[
    ("backend_up", "Whether a backend is used: 0 if checks say it does not answer", Kind::Gauge, &[], |of| {
        u64::from(of.health != Health::Unhealthy)
    }),
    ("backend_ejected", "Whether a backend is left alone for a while after failures", Kind::Gauge, &[], |of| {
        u64::from(of.ejected.is_some())
    }),
    ("backend_weight", "The share of a backend in proportion to others'", Kind::Gauge, &[], |of| {
        u64::from(of.backend.weight)
    }),
    ("backend_active", "Connections or requests a backend has", Kind::Gauge, &[], |of| of.active as u64),
    ("backend_chosen", "Connections or requests a backend got", Kind::Counter, &[], |of| of.total),
    ("backend_failures", "Connections or requests that failed at a backend", Kind::Counter, &[], |of| of.failures),
];

fn tell_listeners(listeners: &[ListenerStatus], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let mut all = Vec::with_capacity(listeners.len() * LISTENER.len());
    for (name, help, kind, more, value) in LISTENER {
        for listener in listeners {
            let labels = [&labels(listener)[..], &owned(more)].concat();
            all.push(Sample { name, help, kind: *kind, labels, value: value(&listener.totals) });
        }
    }
    tell(&all, encoder)
}

fn tell_backends(listeners: &[ListenerStatus], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let backends = || listeners.iter().flat_map(|listener| listener.backends.iter().map(move |one| (listener, one)));
    for (name, help, kind, _, value) in BACKEND {
        let sample = |(listener, one): (&ListenerStatus, &BackendStatus)| {
            let labels = [&labels(listener)[..], &[("backend", one.backend.address.to_string())]].concat();
            Sample { name, help, kind: *kind, labels, value: value(one) }
        };
        let all: Vec<Sample> = backends().take(BACKENDS).map(sample).collect();
        tell(&all, encoder)?;
    }
    let omitted = Sample {
        name: "backends_omitted",
        help: "Backends that are not shown because there are too many",
        kind: Kind::Gauge,
        labels: Vec::new(),
        value: backends().count().saturating_sub(BACKENDS) as u64,
    };
    tell(&[omitted], encoder)
}

fn tell(samples: &[Sample], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    for same in samples.chunk_by(|one, next| one.name == next.name) {
        let Some(Sample { name, help, kind, .. }) = same.first() else { continue };
        let kind = match kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
        };
        let name = format!("fairlead_balancer_{name}");
        let mut metric = encoder.encode_descriptor(&name, help, None, kind)?;
        if let [only] = same
            && only.labels.is_empty()
        {
            only.encode(metric)?;
            continue;
        }
        for sample in same {
            let labels: Vec<(&str, &str)> = sample.labels.iter().map(|(name, value)| (*name, &**value)).collect();
            sample.encode(metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

impl Sample {
    fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
        match self.kind {
            Kind::Counter => ConstCounter::new(self.value).encode(encoder),
            Kind::Gauge => ConstGauge::new(self.value).encode(encoder),
        }
    }
}

fn labels(listener: &ListenerStatus) -> [(&'static str, String); 3] {
    let service = &listener.key.service;
    let port = format!("{}/{}", listener.key.port, listener.key.protocol);
    [("namespace", service.namespace.to_string()), ("service", service.name.to_string()), ("port", port)]
}

fn owned(labels: &[(&'static str, &'static str)]) -> Vec<(&'static str, String)> {
    labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}
