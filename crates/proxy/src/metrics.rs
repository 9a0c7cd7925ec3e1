//! Metrics, under the names and labels kube-proxy gives them, and our own beside them.
//!
//! kube-proxy has a loop for each address family, we have one for both: what it takes counts for each family.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use fairlead_api::view::Family;
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family as Labelled, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

use crate::Mode;
pub(crate) use fairlead_monitor::Format;
pub use tally::{PortTraffic, Tallies};

mod tally;
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
    mode: Mode,
    families: Vec<Family>,
    sync: Labelled<OfFamily, Histogram, fn() -> Histogram>,
    full: Labelled<OfFamily, Histogram, fn() -> Histogram>,
    partial: Labelled<OfFamily, Histogram, fn() -> Histogram>,
    synced: Labelled<OfFamily, Seconds>,
    queued: Labelled<OfFamily, Seconds>,
    programming: Labelled<OfFamily, Histogram, Programming>,
    services: Counter,
    services_pending: Gauge,
    endpoints: Counter,
    endpoints_pending: Gauge,
    sync_failures: Labelled<OfFamily, Counter>,
    partial_failures: Labelled<OfFamily, Counter>,
    rules: Labelled<OfTable, Gauge>,
    rules_written: Labelled<OfTable, Gauge>,
    no_local: Labelled<OfPolicy, Gauge>,
    conntrack: Labelled<OfFamily, Histogram, fn() -> Histogram>,
    conntrack_deleted: Labelled<OfFamily, Counter>,
    healthz: Labelled<OfCode, Counter>,
    livez: Labelled<OfCode, Counter>,
    repairs: Counter,
    tally: Arc<tally::Tally>,
}

/// How much of the rules is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All.
    Full,
    /// What changed.
    Partial,
}

/// What a Service with a `Local` traffic policy leaves without an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// `internalTrafficPolicy`.
    Internal,
    /// `externalTrafficPolicy`.
    External,
}

/// A question load balancers ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    Healthz,
    Livez,
}

impl Metrics {
    /// The metrics of a mode. `families` are those that are programmed.
    pub fn new(mode: Mode, families: &[Family]) -> Metrics {
        let mut registry = Registry::default();
        let shared = Shared::register(&mut registry, mode, families.to_vec());
        Metrics { shared: Arc::new(Shared { registry, ..shared }) }
    }

    /// Changes of Services and EndpointSlices were seen. They wait until [`Metrics::synced`].
    pub fn changes(&self, services: u64, endpoints: u64) {
        let shared = &*self.shared;
        shared.services.inc_by(services);
        shared.endpoints.inc_by(endpoints);
        shared.services_pending.inc_by(services.cast_signed());
        shared.endpoints_pending.inc_by(endpoints.cast_signed());
        let now = seconds(Timestamp::now());
        self.for_each(|family| {
            shared.queued.get_or_create(&family).set(now);
        });
    }

    /// The kernel has what was seen; writing took so long.
    pub fn synced(&self, extent: Extent, took: Duration) {
        let shared = &*self.shared;
        let (took, now) = (took.as_secs_f64(), seconds(Timestamp::now()));
        self.for_each(|family| {
            shared.sync.get_or_create(&family).observe(took);
            let part = if extent == Extent::Full { &shared.full } else { &shared.partial };
            part.get_or_create(&family).observe(took);
            shared.synced.get_or_create(&family).set(now);
        });
        shared.services_pending.set(0);
        shared.endpoints_pending.set(0);
    }

    /// The kernel refused.
    pub fn sync_failed(&self, extent: Extent) {
        let shared = &*self.shared;
        // Only in mode iptables a change that is refused is something else than a failure: all is written then.
        let partial = extent == Extent::Partial && shared.mode == Mode::Iptables;
        let failures = if partial { &shared.partial_failures } else { &shared.sync_failures };
        self.for_each(|family| {
            failures.get_or_create(&family).inc();
        });
    }

    /// Endpoints of a family are in the kernel, so long after they changed.
    pub fn programmed(&self, family: Family, after: Duration) {
        self.shared.programming.get_or_create(&OfFamily::of(family)).observe(after.as_secs_f64());
    }

    /// How many Services of a family have a `Local` policy and no endpoint for it.
    pub fn no_local_endpoints(&self, policy: Policy, family: Family, services: usize) {
        let traffic_policy = if policy == Policy::Internal { "internal" } else { "external" };
        let labels = OfPolicy { traffic_policy, ip_family: family.as_str() };
        self.shared.no_local.get_or_create(&labels).set(i64::try_from(services).unwrap_or(i64::MAX));
    }

    /// The kernel's memory of flows was compared with the plan.
    pub fn flows_reconciled(&self, family: Family, took: Duration, deleted: u64) {
        let family = OfFamily::of(family);
        self.shared.conntrack.get_or_create(&family).observe(took.as_secs_f64());
        self.shared.conntrack_deleted.get_or_create(&family).inc_by(deleted);
    }

    /// Rules of a table: how many there are and how many were written last.
    pub fn iptables_rules(&self, table: &'static str, family: Family, total: usize, written: usize) {
        let labels = OfTable { table, ip_family: family.as_str() };
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.shared.rules.get_or_create(&labels).set(count(total));
        self.shared.rules_written.get_or_create(&labels).set(count(written));
    }

    /// What somebody else changed in the kernel was mended.
    pub fn repaired(&self) {
        self.shared.repairs.inc();
    }

    /// Who says what packets were counted, when somebody asks. It may block; it is asked at most once a second.
    pub fn count_with(&self, source: impl Fn() -> Option<Tallies> + Send + Sync + 'static) {
        self.shared.tally.ask(Box::new(source));
    }

    /// Everything, as Prometheus reads it. Blocks as long as [`Metrics::count_with`] does.
    pub(crate) fn text(&self, format: Format) -> String {
        self.shared.tally.refresh();
        fairlead_monitor::write(&self.shared.registry, format)
    }

    /// What was counted, at most a second ago. Blocks as long as [`Metrics::count_with`] does.
    pub(crate) fn tallies(&self) -> Option<Arc<Tallies>> {
        self.shared.tally.refresh();
        self.shared.tally.newest()
    }

    pub(crate) fn probed(&self, probe: Probe, code: u16) {
        let counter = if probe == Probe::Healthz { &self.shared.healthz } else { &self.shared.livez };
        counter.get_or_create(&OfCode { code }).inc();
    }

    fn for_each(&self, act: impl Fn(OfFamily)) {
        self.shared.families.iter().for_each(|family| act(OfFamily::of(*family)));
    }
}

/// A number of seconds with a fraction.
type Seconds = Gauge<f64, AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFamily {
    ip_family: &'static str,
}

impl OfFamily {
    fn of(family: Family) -> OfFamily {
        OfFamily { ip_family: family.as_str() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTable {
    table: &'static str,
    ip_family: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPolicy {
    traffic_policy: &'static str,
    ip_family: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCode {
    code: u16,
}

impl Shared {
    fn register(registry: &mut Registry, mode: Mode, families: Vec<Family>) -> Shared {
        let tally = Arc::new(tally::Tally::default());
        let mut names = Names(registry);
        let shared = Shared {
            registry: Registry::default(),
            sync: names.add("sync_proxy_rules_duration_seconds", "SyncProxyRules latency in seconds", latencies()),
            queued: names.default(
                "sync_proxy_rules_last_queued_timestamp_seconds",
                "The last time a sync of proxy rules was queued",
            ),
            synced: names.default(
                "sync_proxy_rules_last_timestamp_seconds",
                "The last time proxy rules were successfully synced",
            ),
            endpoints_pending: names
                .default("sync_proxy_rules_endpoint_changes_pending", "Pending proxy rules Endpoint changes"),
            endpoints: names.default("sync_proxy_rules_endpoint_changes", "Cumulative proxy rules Endpoint changes"),
            services_pending: names
                .default("sync_proxy_rules_service_changes_pending", "Pending proxy rules Service changes"),
            services: names.default("sync_proxy_rules_service_changes", "Cumulative proxy rules Service changes"),
            healthz: names.default("proxy_healthz", "Cumulative proxy healthz HTTP status"),
            livez: names.default("proxy_livez", "Cumulative proxy livez HTTP status"),
            programming: names.add(
                "network_programming_duration_seconds",
                "In Cluster Network Programming Latency in seconds",
                Labelled::new_with_constructor(Programming),
            ),
            no_local: names.default(
                "sync_proxy_rules_no_local_endpoints_total",
                "Number of services with a Local traffic policy and no endpoints",
            ),
            full: latencies(),
            partial: latencies(),
            sync_failures: Labelled::default(),
            partial_failures: Labelled::default(),
            rules: Labelled::default(),
            rules_written: Labelled::default(),
            conntrack: latencies(),
            conntrack_deleted: Labelled::default(),
            repairs: Counter::default(),
            tally: tally.clone(),
            mode,
            families,
        };
        names.of_mode(&shared, mode);
        let help = "How often rules that somebody else changed were mended";
        registry.register("fairlead_proxy_drift_repairs", help, shared.repairs.clone());
        registry.register_collector(Box::new(tally));
        registry.register_collector(Box::new(fairlead_monitor::Process));
        shared
    }
}

/// Gives metrics the names kube-proxy's have.
struct Names<'a>(&'a mut Registry);

impl Names<'_> {
    fn add<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(format!("kubeproxy_{name}"), help, metric.clone());
        metric
    }

    fn default<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        self.add(name, help, M::default())
    }

    /// Metrics only some modes have.
    fn of_mode(&mut self, shared: &Shared, mode: Mode) {
        if matches!(mode, Mode::Nftables | Mode::Iptables) {
            let (full, partial) = (shared.full.clone(), shared.partial.clone());
            self.add(
                "sync_full_proxy_rules_duration_seconds",
                "SyncProxyRules latency in seconds for full resyncs",
                full,
            );
            let help = "SyncProxyRules latency in seconds for partial resyncs";
            self.add("sync_partial_proxy_rules_duration_seconds", help, partial);
        }
        if mode == Mode::Nftables {
            let failures = shared.sync_failures.clone();
            self.add("sync_proxy_rules_nftables_sync_failures", "Cumulative proxy nftables sync failures", failures);
            // Nothing is cleaned up apart from a sync, but dashboards have it.
            let none = shared.partial_failures.clone();
            self.add("sync_proxy_rules_nftables_cleanup_failures", "Cumulative proxy nftables cleanup failures", none);
        }
        if matches!(mode, Mode::Iptables | Mode::Ipvs) {
            let failures = shared.sync_failures.clone();
            self.add(
                "sync_proxy_rules_iptables_restore_failures",
                "Cumulative proxy iptables restore failures",
                failures,
            );
        }
        if mode == Mode::Iptables {
            let failures = shared.partial_failures.clone();
            let help = "Cumulative proxy iptables partial restore failures";
            self.add("sync_proxy_rules_iptables_partial_restore_failures", help, failures);
            let (rules, written) = (shared.rules.clone(), shared.rules_written.clone());
            self.add("sync_proxy_rules_iptables_total", "Total number of iptables rules owned by kube-proxy", rules);
            let help = "Number of iptables rules written by kube-proxy in last sync";
            self.add("sync_proxy_rules_iptables_last", help, written);
        }
        if mode != Mode::Userspace {
            let (took, deleted) = (shared.conntrack.clone(), shared.conntrack_deleted.clone());
            self.add(
                "conntrack_reconciler_sync_duration_seconds",
                "ReconcileConntrackFlowsLatency latency in seconds",
                took,
            );
            let help = "Cumulative conntrack flows deleted by conntrack reconciler";
            self.add("conntrack_reconciler_deleted_entries", help, deleted);
        }
    }
}

fn latencies() -> Labelled<OfFamily, Histogram, fn() -> Histogram> {
    Labelled::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 15)))
}

/// Buckets up to five minutes, finest where it should be.
#[derive(Debug, Clone)]
struct Programming;

impl MetricConstructor<Histogram> for Programming {
    fn new_metric(&self) -> Histogram {
        let steps = |first: u32, step: u32, count: u32| (0..count).map(move |index| f64::from(first + index * step));
        let buckets = [0.25, 0.5].into_iter().chain(steps(1, 1, 59)).chain(steps(60, 5, 12)).chain(steps(120, 30, 7));
        Histogram::new(buckets)
    }
}

fn seconds(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}
