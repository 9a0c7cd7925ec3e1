//! Is this proxy well, and which Services have endpoints here? Load balancers ask that before they send traffic.
//!
//! `/healthz` and `/livez` tell of the proxy, a port for each Service with `healthCheckNodePort` tells of that Service. The
//! answers are kube-proxy's. Everything is told to [`Health`] from any thread; [`serve`] answers.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fairlead_api::source::Key;
use fairlead_api::view::{self, Family};
use fairlead_plan::{Delta, HealthCheck, Node, NodePorts, Plan};
use http::StatusCode;
use ipnet::IpNet;
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::Notify;

use crate::http::{Answer, Question, answer, not_found};
use crate::metrics::{Metrics, Probe};
pub(crate) use serve::bind;
pub use serve::{Listeners, serve};

mod serve;
#[cfg(test)]
mod tests;

/// What load balancers are told. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Health {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// An update that waits for longer means that the proxy hangs.
    limit: Duration,
    families: Vec<Family>,
    metrics: Metrics,
    state: Mutex<State>,
    /// Told when ports are to be opened or closed.
    ports: Notify,
}

#[derive(Debug)]
struct State {
    /// Since when something waits that is not in the kernel yet.
    waiting: Option<Instant>,
    /// When the kernel was last as it should be.
    updated: Option<Instant>,
    /// Whether the Node is to get traffic.
    eligible: bool,
    checks: BTreeMap<Arc<Key>, HealthCheck>,
    /// Where ports of health checks listen.
    addresses: Vec<IpAddr>,
}

/// The taint of a Node that the cluster autoscaler is about to remove.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

/// Whether a Node is to get traffic from load balancers: it is there, and is not about to go.
pub fn eligible(node: Option<&view::Node>) -> bool {
    node.is_some_and(|node| {
        let going = node.metadata.deletion_timestamp.is_some();
        !going && node.spec.taints.iter().all(|taint| taint.key != TO_BE_DELETED)
    })
}

impl Health {
    /// A proxy that is starting. It is healthy until an update waits for twice the sync period. `families` are those that are
    /// programmed.
    pub fn new(sync_period: Duration, families: &[Family], metrics: Metrics) -> Health {
        let state =
            State { waiting: None, updated: None, eligible: true, checks: BTreeMap::new(), addresses: Vec::new() };
        let shared = Shared {
            limit: sync_period.saturating_mul(2),
            families: families.to_vec(),
            metrics,
            state: Mutex::new(state),
            ports: Notify::new(),
        };
        Health { shared: Arc::new(shared) }
    }

    /// Something is to be put into the kernel.
    pub fn queued(&self) {
        self.queued_at(Instant::now());
    }

    /// The kernel has all there was.
    pub fn updated(&self) {
        self.updated_at(Instant::now());
    }

    /// Whether the Node is to get traffic; see [`eligible`].
    pub fn node(&self, eligible: bool) {
        self.state().eligible = eligible;
    }

    /// Health checks changed.
    pub fn checks(&self, changes: &[Delta<Arc<Key>, HealthCheck>]) {
        if changes.is_empty() {
            return;
        }
        let mut state = self.state();
        for Delta { key, new, .. } in changes {
            match new {
                Some(check) => state.checks.insert(key.clone(), check.clone()),
                None => state.checks.remove(key),
            };
        }
        drop(state);
        self.shared.ports.notify_one();
    }

    /// Ports of health checks listen where node ports of this Node are served.
    pub fn listen_as(&self, node: &Node) {
        let families = self.shared.families.iter().filter(|family| node.families.contains(family));
        let addresses = families.flat_map(|family| addresses(&node.node_ports(*family), *family));
        self.state().addresses = addresses.collect();
        self.shared.ports.notify_one();
    }

    /// All of a plan, in the place of what was told before.
    pub fn show(&self, plan: &Plan) {
        let checks = plan.health_checks().map(|check| (check.service.clone(), check.clone())).collect();
        self.state().checks = checks;
        self.listen_as(plan.node());
    }

    fn queued_at(&self, now: Instant) {
        self.state().waiting.get_or_insert(now);
    }

    fn updated_at(&self, now: Instant) {
        let mut state = self.state();
        (state.waiting, state.updated) = (None, Some(now));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ports that should be open, and whose they are.
    fn wanted(&self) -> BTreeMap<SocketAddr, Arc<Key>> {
        let state = self.state();
        let of = |check: &HealthCheck| {
            let (service, port) = (check.service.clone(), check.port);
            let has = |ip: &&IpAddr| check.local_endpoints.contains_key(&fairlead_plan::family_of(**ip));
            let places = state.addresses.iter().filter(has);
            places.map(|ip| (SocketAddr::new(*ip, port), service.clone())).collect::<Vec<_>>()
        };
        state.checks.values().flat_map(of).collect()
    }

    /// The answer of the port for the proxy itself.
    fn answer(&self, question: &Question) -> Answer {
        let probe = match question.path.as_str() {
            "/healthz" => Probe::Healthz,
            "/livez" => Probe::Livez,
            _ => return not_found(),
        };
        let (status, body) = self.report(probe, Instant::now(), Timestamp::now());
        self.shared.metrics.probed(probe, status.as_u16());
        answer(status, "application/json", body)
    }

    fn report(&self, probe: Probe, now: Instant, time: Timestamp) -> (StatusCode, String) {
        let state = self.state();
        let healthy = self.is_healthy(&state, now);
        let good = healthy && (state.eligible || probe == Probe::Livez);
        // Whoever is well is up to date, even if nothing happened for long.
        let long_ago = Timestamp::UNIX_EPOCH;
        let updated = state.updated.map(|at| time - now.saturating_duration_since(at));
        let report = Report {
            last_updated: if good { time } else { updated.unwrap_or(long_ago) },
            current_time: time,
            node_eligible: (probe == Probe::Healthz).then_some(state.eligible),
            healthy,
            status: updated
                .into_iter()
                .flat_map(|last_updated| {
                    let status = FamilyStatus { last_updated, healthy };
                    self.shared.families.iter().map(move |family| (family.as_str(), status))
                })
                .collect(),
        };
        let status = if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (status, serde_json::to_string(&report).unwrap_or_default())
    }

    /// While nothing was ever put into the kernel, the proxy is starting, and well.
    fn is_healthy(&self, state: &State, now: Instant) -> bool {
        let late = |since: Instant| now.saturating_duration_since(since) >= self.shared.limit;
        state.updated.is_none() || !state.waiting.is_some_and(late)
    }

    /// The answer of the port of a Service, whatever the path.
    fn answer_for(&self, service: &Key, family: Family) -> Answer {
        let state = self.state();
        let check = state.checks.get(service);
        let endpoints = check.and_then(|check| check.local_endpoints.get(&family)).copied().unwrap_or_default();
        let healthy = self.is_healthy(&state, Instant::now());
        let status = if endpoints > 0 && healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let mut answer = answer(status, "application/json", service_report(service, endpoints, healthy));
        answer.headers_mut().insert("x-load-balancing-endpoint-weight", endpoints.into());
        answer
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    last_updated: Timestamp,
    current_time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_eligible: Option<bool>,
    healthy: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    status: BTreeMap<&'static str, FamilyStatus>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct FamilyStatus {
    last_updated: Timestamp,
    healthy: bool,
}

/// Byte for byte as kube-proxy writes it: some compare it.
fn service_report(service: &Key, endpoints: usize, healthy: bool) -> String {
    let Key { namespace, name } = service;
    format!(
        "{{\n\t\"service\": {{\n\t\t\"namespace\": \"{namespace}\",\n\t\t\"name\": \"{name}\"\n\t}},\n\t\"localEndpoints\": \
         {endpoints},\n\t\"serviceProxyHealthy\": {healthy}\n}}"
    )
}

/// The addresses to listen at.
fn addresses(places: &NodePorts, family: Family) -> Vec<IpAddr> {
    let all = match family {
        Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    match places {
        NodePorts::All { .. } => vec![all],
        NodePorts::Only(ranges) => ranges.iter().map(one_of).collect(),
    }
}

/// Ranges are single addresses but for those of loopback, in which one is usual.
fn one_of(range: &IpNet) -> IpAddr {
    let usual = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if range.prefix_len() < range.max_prefix_len() && range.contains(&usual) { usual } else { range.addr() }
}
