//! `/metrics`: how many requests, how they ended, how long they took, in the names kube-apiserver uses; the store, watches, this
//! process, and what the parts beside the server measure.

use std::time::Duration;

use fairlead_api::Failure;
use fairlead_monitor::Format;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::options::Query;
use crate::repair::Counters;
use crate::reply::{self, Body};
use crate::route::Route;
use crate::{Inner, not_allowed};

/// Where they are.
pub(crate) const PATH: &str = "/metrics";

/// Everything that is measured in this process.
pub(crate) async fn answer(server: &Inner, parts: &Parts) -> Result<Response<Body>, Failure> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(not_allowed());
    }
    // A store that does not answer is told of by `/readyz`.
    if let Ok(revision) = server.store.revision().await {
        server.metrics.revision.set(i64::try_from(revision.0).unwrap_or(i64::MAX));
    }
    let mut text = fairlead_monitor::write(&server.metrics.registry, Format::Prometheus);
    text.push_str(&server.shares().measured());
    if let Some(pages) = server.pages.get() {
        text.push_str(&pages.measured().await);
    }
    let mut answer = reply::plain(200, text);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(Format::Prometheus.media()));
    Ok(answer)
}

/// What a request is counted under.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Labels {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    subresource: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabels {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    code: u16,
}

impl Labels {
    pub(crate) fn of(method: &Method, route: &Route, query: &Query) -> Labels {
        let none = Labels { verb: verb(method, false, false), group: "", resource: "", subresource: String::new() };
        let Route::Resource(target) = route else { return none };
        let watch = target.watch || query.flag("watch").unwrap_or_default();
        // Subresources come from the URL; only those of the kind are counted by name.
        let known = matches!(
            target.subresource.as_str(),
            "status" | "proxy" | "finalize" | "binding" | "token" | "log" | "exec" | "attach" | "portforward"
        );
        Labels {
            verb: verb(method, target.name.is_empty(), watch),
            group: target.kind.group,
            resource: target.kind.resource,
            subresource: if known { target.subresource.clone() } else { String::new() },
        }
    }
}

fn verb(method: &Method, all: bool, watch: bool) -> &'static str {
    match (method.as_str(), all) {
        ("GET", true) if watch => "WATCH",
        ("GET", true) => "LIST",
        ("GET", false) => "GET",
        ("POST", _) => "POST",
        ("PUT", _) => "PUT",
        ("PATCH", _) => "PATCH",
        ("DELETE", true) => "DELETECOLLECTION",
        ("DELETE", false) => "DELETE",
        _ => "OTHER",
    }
}

/// Counters of this server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<CodeLabels, Counter>,
    durations: Family<Labels, Histogram, fn() -> Histogram>,
    revision: Gauge,
    watches: Gauge,
    pub(crate) repair: Counters,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let requests = Family::default();
        let durations = Family::new_with_constructor(histogram as fn() -> Histogram);
        let mut registry = Registry::default();
        registry.register("apiserver_request", "Requests by verb, resource and code", requests.clone());
        let help = "How long requests took until their answer began, in seconds";
        registry.register("apiserver_request_duration_seconds", help, durations.clone());
        let (revision, watches) = (Gauge::default(), Gauge::default());
        registry.register("fairlead_store_revision", "The revision of the last write", revision.clone());
        registry.register("fairlead_watches", "Watches that are open", watches.clone());
        let repair = Counters::registered(&mut registry);
        registry.register_collector(Box::new(fairlead_monitor::Process));
        Metrics { registry, requests, durations, revision, watches, repair }
    }
}

fn histogram() -> Histogram {
    Histogram::new([0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0])
}

impl Metrics {
    /// Counts a request.
    pub(crate) fn request(&self, labels: Labels, code: StatusCode, took: Duration) {
        let code =
            CodeLabels { verb: labels.verb, group: labels.group, resource: labels.resource, code: code.as_u16() };
        self.requests.get_or_create(&code).inc();
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A watch is open as long as this is kept.
    pub(crate) fn watching(&self) -> Watching {
        self.watches.inc();
        Watching(self.watches.clone())
    }
}

/// An open watch.
pub(crate) struct Watching(Gauge);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.dec();
    }
}
