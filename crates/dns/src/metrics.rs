//! Metrics, under the names and labels CoreDNS gives them, and our own beside them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use fairlead_monitor::{Format, Process};
use fairlead_runtime::{Account, BudgetMetrics};
use fairlead_zone::message::Rcode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::cache::Cache;
use crate::names::Names;
use crate::words;
pub(crate) use counts::{Counts, Seen};

mod counts;
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
    /// What is counted for each question, by server and zone. They outlive a Corefile.
    counts: Arc<counts::All>,
    /// What is looked at when somebody asks.
    looked_at: Mutex<LookedAt>,
    panics: Counter,
    programming: Family<OfService, Histogram, fn() -> Histogram>,
    forward_requests: Family<OfUpstream, Counter>,
    forward_responses: Family<OfCode, Counter>,
    forward_duration: Family<OfProxy, Histogram, fn() -> Histogram>,
    forward_rejects: Counter,
    healthcheck_broken: Counter,
    healthcheck_failures: Family<OfProxyTo, Counter>,
    connection_hits: Family<OfConnection, Counter>,
    connection_misses: Family<OfConnection, Counter>,
    cache: CacheMetrics,
    cache_entries: Family<OfCache, Gauge>,
    hosts_entries: Gauge,
    hosts_reloaded: Gauge<f64, std::sync::atomic::AtomicU64>,
    autopath: Family<OfServer, Counter>,
    reloads_failed: Counter,
    enabled: Family<OfPlugin, Gauge>,
    full: Counter,
    age: Gauge<f64, std::sync::atomic::AtomicU64>,
}

#[derive(Debug, Default)]
struct LookedAt {
    caches: Vec<(OfServer, String, Weak<Cache>)>,
    names: Vec<Weak<Names>>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// Nothing was counted yet.
    pub fn new() -> Metrics {
        Metrics::in_registry(Registry::default())
    }

    /// Returns metrics that show the budgets of an account as well, for a process without other
    /// metrics.
    pub fn with_account(account: &Account) -> Metrics {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(BudgetMetrics::new(account.clone())));
        Metrics::in_registry(registry)
    }

    fn in_registry(mut registry: Registry) -> Metrics {
        let shared = Shared::register(&mut registry);
        Metrics { shared: Arc::new(Shared { registry, ..shared }) }
    }

    /// Where questions of a server and zone are counted.
    pub(crate) fn counts(&self, server: &str, zone: &str) -> Arc<Counts> {
        self.shared.counts.of(server, zone)
    }

    /// What a cache counts.
    pub(crate) fn cache(&self, server: &str, zones: &str) -> CacheCounts {
        let labels = OfZones { server: server.to_owned(), zones: zones.to_owned(), view: "" };
        CacheCounts { labels, metrics: self.shared.cache.clone() }
    }

    /// What is looked at when somebody asks, in the place of what was before.
    pub(crate) fn look_at(&self, caches: Vec<(String, String, Weak<Cache>)>, names: Vec<Weak<Names>>) {
        let caches = caches.into_iter().map(|(server, zones, cache)| (OfServer { server }, zones, cache)).collect();
        self.shared.enabled.clear();
        *self.shared.looked_at.lock().unwrap_or_else(PoisonError::into_inner) = LookedAt { caches, names };
    }

    /// Endpoints of a headless Service are known, so long after they changed.
    pub(crate) fn programmed(&self, after: Duration) {
        let labels = OfService { service_kind: "headless_with_selector" };
        self.shared.programming.get_or_create(&labels).observe(after.as_secs_f64());
    }

    /// An upstream answered.
    pub(crate) fn forwarded(&self, to: SocketAddr, rcode: Rcode, took: Duration) {
        let (to, rcode) = (to.to_string(), words::code_name(rcode.0));
        let shared = &*self.shared;
        shared.forward_requests.get_or_create(&OfUpstream { to: to.clone() }).inc();
        shared.forward_responses.get_or_create(&OfCode { to: to.clone(), rcode: rcode.clone() }).inc();
        let labels = OfProxy { proxy_name: "forward", to, rcode };
        shared.forward_duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A socket to an upstream was needed; whether one was there.
    pub(crate) fn connected(&self, to: SocketAddr, proto: &'static str, kept: bool) {
        let labels = OfConnection { proxy_name: "forward", to: to.to_string(), proto };
        let counters = if kept { &self.shared.connection_hits } else { &self.shared.connection_misses };
        counters.get_or_create(&labels).inc();
    }

    /// Nobody is well.
    pub(crate) fn healthcheck_broken(&self) {
        self.shared.healthcheck_broken.inc();
    }

    /// An upstream did not answer a check.
    pub(crate) fn healthcheck_failed(&self, to: SocketAddr) {
        let labels = OfProxyTo { proxy_name: "forward", to: to.to_string() };
        self.shared.healthcheck_failures.get_or_create(&labels).inc();
    }

    /// More questions at once than are allowed.
    pub(crate) fn rejected(&self) {
        self.shared.forward_rejects.inc();
    }

    /// More questions at once than can be kept.
    pub(crate) fn full(&self) {
        self.shared.full.inc();
    }

    /// A question was answered by a defect.
    pub(crate) fn panicked(&self) {
        self.shared.panics.inc();
    }

    /// A hosts file was read.
    pub(crate) fn hosts(&self, entries: usize) {
        self.shared.hosts_entries.set(i64::try_from(entries).unwrap_or(i64::MAX));
        self.shared.hosts_reloaded.set(jiff::Timestamp::now().as_duration().as_secs_f64());
    }

    /// A search path was walked.
    pub(crate) fn walked(&self, server: &str) {
        self.shared.autopath.get_or_create(&OfServer { server: server.to_owned() }).inc();
    }

    /// A Corefile that changed makes no sense.
    pub(crate) fn reload_failed(&self) {
        self.shared.reloads_failed.inc();
    }

    /// These plugins are asked for a zone.
    pub(crate) fn enabled(&self, server: &str, zone: &str, plugins: &[&'static str]) {
        for name in plugins {
            let labels = OfPlugin { server: server.to_owned(), zone: zone.to_owned(), view: "", name };
            self.shared.enabled.get_or_create(&labels).set(1);
        }
    }

    /// Everything, as Prometheus reads it.
    pub fn text(&self, format: Format) -> String {
        self.look();
        fairlead_monitor::write(&self.shared.registry, format)
    }

    fn look(&self) {
        let looked_at = self.shared.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        for (server, zones, cache) in &looked_at.caches {
            let Some(cache) = cache.upgrade() else { continue };
            let (success, denial) = cache.len();
            for (kind, count) in [("success", success), ("denial", denial)] {
                let labels = OfCache { server: server.server.clone(), r#type: kind, zones: zones.clone(), view: "" };
                self.shared.cache_entries.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
        let oldest = looked_at.names.iter().filter_map(Weak::upgrade).map(|names| names.age()).max();
        self.shared.age.set(oldest.unwrap_or_default().as_secs_f64());
    }
}

/// What a cache counts.
#[derive(Debug, Clone)]
pub(crate) struct CacheCounts {
    labels: OfZones,
    metrics: CacheMetrics,
}

#[derive(Debug, Clone, Default)]
struct CacheMetrics {
    requests: Family<OfZones, Counter>,
    hits: Family<OfCache, Counter>,
    misses: Family<OfZones, Counter>,
    prefetches: Family<OfZones, Counter>,
    stale: Family<OfZones, Counter>,
    evictions: Family<OfCache, Counter>,
}

impl CacheCounts {
    fn of(&self, kind: &'static str) -> OfCache {
        let OfZones { server, zones, view } = self.labels.clone();
        OfCache { server, r#type: kind, zones, view }
    }

    /// It was asked.
    pub(crate) fn asked(&self) {
        self.metrics.requests.get_or_create(&self.labels).inc();
    }

    /// It had the answer.
    pub(crate) fn hit(&self, kind: &'static str) {
        self.metrics.hits.get_or_create(&self.of(kind)).inc();
    }

    /// It had none.
    pub(crate) fn missed(&self) {
        self.metrics.misses.get_or_create(&self.labels).inc();
    }

    /// An answer is fetched before it expires.
    pub(crate) fn prefetched(&self) {
        self.metrics.prefetches.get_or_create(&self.labels).inc();
    }

    /// An expired answer was given.
    pub(crate) fn served_stale(&self) {
        self.metrics.stale.get_or_create(&self.labels).inc();
    }

    /// Answers had to make room.
    pub(crate) fn evicted(&self, kind: &'static str, count: u64) {
        if count > 0 {
            self.metrics.evictions.get_or_create(&self.of(kind)).inc_by(count);
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfServer {
    server: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfZones {
    server: String,
    zones: String,
    view: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCache {
    server: String,
    r#type: &'static str,
    zones: String,
    view: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPlugin {
    server: String,
    zone: String,
    view: &'static str,
    name: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfService {
    service_kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfUpstream {
    to: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCode {
    to: String,
    rcode: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfProxy {
    proxy_name: &'static str,
    to: String,
    rcode: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfProxyTo {
    proxy_name: &'static str,
    to: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfConnection {
    proxy_name: &'static str,
    to: String,
    proto: &'static str,
}

impl Shared {
    fn register(registry: &mut Registry) -> Shared {
        let counts = Arc::new(counts::All::default());
        let build: Family<[(&'static str, &'static str); 3], Gauge> = Family::default();
        build.get_or_create(&[("version", env!("CARGO_PKG_VERSION")), ("revision", ""), ("goversion", "")]).set(1);
        let help =
            "A metric with a constant '1' value labeled by version, revision, and goversion from which it was built";
        registry.register("coredns_build_info", help, build);
        registry.register_collector(Box::new(counts.clone()));
        registry.register_collector(Box::new(Process));
        let shared = Shared {
            registry: Registry::default(),
            counts,
            looked_at: Mutex::default(),
            panics: Counter::default(),
            programming: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 20))),
            forward_requests: Family::default(),
            forward_responses: Family::default(),
            forward_duration: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.00025, 2.0, 16))),
            forward_rejects: Counter::default(),
            healthcheck_broken: Counter::default(),
            healthcheck_failures: Family::default(),
            connection_hits: Family::default(),
            connection_misses: Family::default(),
            cache: CacheMetrics::default(),
            cache_entries: Family::default(),
            hosts_entries: Gauge::default(),
            hosts_reloaded: Gauge::default(),
            autopath: Family::default(),
            reloads_failed: Counter::default(),
            enabled: Family::default(),
            full: Counter::default(),
            age: Gauge::default(),
        };
        shared.register_forward(registry);
        shared.register_cache(registry);
        shared.register_rest(registry);
        shared
    }

    fn register_forward(&self, registry: &mut Registry) {
        let help = "Counter of requests made per upstream";
        registry.register("coredns_forward_requests", help, self.forward_requests.clone());
        let help = "Counter of responses received per upstream";
        registry.register("coredns_forward_responses", help, self.forward_responses.clone());
        let help = "Histogram of the time each request took";
        registry.register("coredns_proxy_request_duration_seconds", help, self.forward_duration.clone());
        let help = "Counter of the number of queries rejected because the concurrent queries were at maximum";
        registry.register("coredns_forward_max_concurrent_rejects", help, self.forward_rejects.clone());
        let help = "Counter of the number of complete failures of the healthchecks";
        registry.register("coredns_forward_healthcheck_broken", help, self.healthcheck_broken.clone());
        let help = "Counter of the number of failed healthchecks";
        registry.register("coredns_proxy_healthcheck_failures", help, self.healthcheck_failures.clone());
        let help = "Counter of connection cache hits per upstream and protocol";
        registry.register("coredns_proxy_conn_cache_hits", help, self.connection_hits.clone());
        let help = "Counter of connection cache misses per upstream and protocol";
        registry.register("coredns_proxy_conn_cache_misses", help, self.connection_misses.clone());
    }

    fn register_cache(&self, registry: &mut Registry) {
        let cache = &self.cache;
        registry.register("coredns_cache_entries", "The number of elements in the cache", self.cache_entries.clone());
        registry.register("coredns_cache_requests", "The count of cache requests", cache.requests.clone());
        registry.register("coredns_cache_hits", "The count of cache hits", cache.hits.clone());
        registry.register("coredns_cache_misses", "The count of cache misses", cache.misses.clone());
        let help = "The number of times the cache has prefetched a cached item";
        registry.register("coredns_cache_prefetch", help, cache.prefetches.clone());
        let help = "The number of requests served from stale cache entries";
        registry.register("coredns_cache_served_stale", help, cache.stale.clone());
        registry.register("coredns_cache_evictions", "The count of cache evictions", cache.evictions.clone());
    }

    fn register_rest(&self, registry: &mut Registry) {
        registry.register("coredns_panics", "A metrics that counts the number of panics", self.panics.clone());
        let help = "Histogram of the time (in seconds) it took to program a dns instance";
        registry.register("coredns_kubernetes_dns_programming_duration_seconds", help, self.programming.clone());
        let help = "The combined number of entries in hosts and Corefile";
        registry.register("coredns_hosts_entries", help, self.hosts_entries.clone());
        let help = "The timestamp of the last reload of hosts file";
        registry.register("coredns_hosts_reload_timestamp_seconds", help, self.hosts_reloaded.clone());
        let help = "Counter of requests that did autopath";
        registry.register("coredns_autopath_success", help, self.autopath.clone());
        let help = "Counter of the number of failed reload attempts";
        registry.register("coredns_reload_failed", help, self.reloads_failed.clone());
        let help = "A metric that indicates whether a plugin is enabled on per server and zone basis";
        registry.register("coredns_plugin_enabled", help, self.enabled.clone());
        let help = "How many questions were answered SERVFAIL because too many waited for others";
        registry.register("fairlead_dns_overload", help, self.full.clone());
        let help = "For how long the cluster's names have not been kept up to date";
        registry.register("fairlead_dns_stale_seconds", help, self.age.clone());
    }
}

/// Labels of a map's order, for tests and pages that do not change by themselves.
pub(crate) type Labels = BTreeMap<(String, String), Arc<Counts>>;
