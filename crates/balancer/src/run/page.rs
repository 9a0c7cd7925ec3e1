//! How load balancers of this Node do, for `fairlead lb`: a page with JSON on a loopback port.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ::http::StatusCode;
use ::http::header::ACCEPT;
use fairlead_api::source::Key;
use fairlead_api::view::Protocol;
use fairlead_monitor::{Format, http};
use fairlead_plan::Planner;
use fairlead_runtime::budget::Account;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::balancer::Balancer;
use super::members;
use crate::announce::{Announcer, Owners};
use crate::backends::{BackendStatus, Health, Stage};
use crate::config::Config;
use crate::engine::{Engine, ListenerStatus};
use crate::metrics::{Kind, Metrics, Sample};
use crate::owner::Reach;
use crate::provision::Ours;
use crate::spec::{Carries, Path, Rule, Spec};

/// Where the page is.
pub const PATH: &str = "/lb";

/// What the page says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// The Node.
    pub node: String,
    /// Load balancers, by namespace and name.
    pub balancers: Vec<Balance>,
    /// Whom it serves.
    pub serves: Serves,
}

/// Whom load balancers are for, and with what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Serves {
    /// The class of Services it serves.
    pub class: String,
    /// Whether it serves those without a class, too.
    pub default: bool,
    /// The names of its pools of addresses.
    pub pools: Vec<String>,
}

/// A load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Balance {
    /// The namespace of its Service.
    pub namespace: String,
    /// The name of its Service.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// `kernel` or `userspace`; empty: it was never understood.
    pub path: String,
    /// What is wrong with what its Service asks for now.
    pub refused: Vec<String>,
    /// What a network load balancer lets through to Nodes.
    pub rules: Vec<String>,
    /// Who answers for its addresses.
    pub owners: Vec<OwnerReport>,
    /// Its listeners.
    pub listeners: Vec<ListenerReport>,
}

/// Who answers for an address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReport {
    /// The address.
    pub address: String,
    /// The Node; `None`: none may.
    pub node: Option<String>,
    /// The interfaces by which it is announced; none: only who has a route gets there.
    pub interfaces: Vec<String>,
    /// Why other Nodes do not.
    pub others: BTreeMap<String, String>,
    /// Why this Node may not announce it though it could: what the kernel says of the rules that
    /// guard addresses.
    pub unguarded: Option<String>,
}

impl std::fmt::Display for OwnerReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.node {
            Some(node) if self.interfaces.is_empty() => {
                write!(f, "{} is at {node}, on no network of it", self.address)?
            }
            Some(node) => write!(f, "{} is announced by {node} on {}", self.address, self.interfaces.join(", "))?,
            None => write!(f, "{} is announced by nobody", self.address)?,
        }
        self.others.iter().try_for_each(|(node, why)| write!(f, "; not {node}: {why}"))?;
        self.unguarded.iter().try_for_each(|why| write!(f, "; the rules are not in force here: {why}"))
    }
}

/// A listener of a load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerReport {
    /// Its port.
    pub port: u16,
    /// Its protocol.
    pub protocol: Protocol,
    /// What is wrong with it.
    pub problem: Option<String>,
    /// True if it is not open: connections to it are refused.
    pub unserved: bool,
    /// Connections at the moment, if threads of ours carry them.
    pub active: Option<u64>,
    /// Its backends.
    pub backends: Vec<BackendReport>,
}

/// A backend of a listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackendReport {
    /// Where it is.
    pub address: String,
    /// The Node it is on.
    pub node: Option<String>,
    /// The zone it is in.
    pub zone: Option<String>,
    /// Its share.
    pub weight: u32,
    /// Whether its Pod is on its way out.
    pub draining: bool,
    /// `healthy`, `unhealthy`, `unknown`, `ejected`; where the kernel carries the bytes, `ready`: nobody checks.
    pub health: String,
    /// Whether it gets new connections.
    pub usable: bool,
    /// Connections or requests at the moment.
    pub active: usize,
    /// Connections or requests so far.
    pub total: u64,
    /// Those that failed.
    pub failures: u64,
}

/// What is to be on the page. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Page(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    node: String,
    /// Where health checks of network load balancers come from.
    vpc: Vec<IpNet>,
    serves: Serves,
    balancers: BTreeMap<Key, Balance>,
    engine: Weak<Engine>,
    announcer: Option<Announcer>,
}

impl Page {
    pub(super) fn new(node: &str, vpc: &[IpNet]) -> Page {
        Page(Arc::new(Mutex::new(State { node: node.to_owned(), vpc: vpc.to_vec(), ..State::default() })))
    }

    /// It serves these.
    pub(super) fn serves(&self, ours: Ours, config: &Config) {
        let pools = config.pools.iter().map(|pool| pool.name.clone()).collect();
        self.state().serves = Serves { class: ours.class, default: ours.default, pools };
    }

    /// A load balancer is so now.
    pub(super) fn put(&self, balancer: &Balancer, planner: &Planner) {
        let mut state = self.state();
        let balance = balance(balancer, planner, &state.vpc);
        state.balancers.insert((*balancer.key).clone(), balance);
    }

    /// It is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.state().balancers.remove(key);
    }

    /// These threads know how backends do.
    pub(super) fn watch(&self, engine: Arc<Engine>) {
        self.state().engine = Arc::downgrade(&engine);
    }

    /// This tells who answers for addresses.
    pub(super) fn follow(&self, announcer: Announcer) {
        self.state().announcer = Some(announcer);
    }

    /// Returns the samples of the announcer, and for each listener whether it is served.
    fn samples(&self) -> Vec<Sample> {
        let state = self.state();
        let mut samples = state.announcer.as_ref().map(Announcer::samples).unwrap_or_default();
        for balance in state.balancers.values() {
            samples.extend(balance.listeners.iter().map(|listener| Sample {
                name: "listener_served",
                help: "Whether a port of a load balancer is served: 0 if something it needs is missing, such as its certificate",
                kind: Kind::Gauge,
                labels: vec![
                    ("namespace", balance.namespace.clone()),
                    ("service", balance.name.clone()),
                    ("port", format!("{}/{}", listener.port, listener.protocol)),
                ],
                value: u64::from(!listener.unserved),
            }));
        }
        samples
    }

    /// How listeners do.
    pub(super) fn listeners(&self) -> Vec<ListenerStatus> {
        let engine = self.state().engine.upgrade();
        engine.map(|engine| engine.look()).unwrap_or_default()
    }

    /// The threads are about to end.
    pub(super) fn close(&self) {
        self.state().engine = Weak::new();
    }

    /// What the page says at the moment.
    pub(super) fn report(&self) -> Report {
        let (node, mut balancers, owners) = {
            let state = self.state();
            let owners = state.announcer.as_ref().map(|one| one.owners().borrow().clone()).unwrap_or_default();
            (state.node.clone(), state.balancers.clone(), owners)
        };
        for balance in balancers.values_mut() {
            balance.owners = balance.addresses.iter().filter_map(|address| owner(&owners, *address)).collect();
        }
        for status in self.listeners() {
            if let Some(balance) = balancers.get_mut(&*status.key.service) {
                overlay(balance, &status);
            }
        }
        Report { node, balancers: balancers.into_values().collect(), serves: self.state().serves.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows the page until told to stop.
pub(super) async fn serve(page: Page, address: SocketAddr, account: Account, stop: CancellationToken) {
    let listener = match http::listen(address) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!("--balancer-bind-address: cannot listen at {address}: {error}; `fairlead lb` shows less");
            return;
        }
    };
    let metrics = Metrics::with_budgets(account);
    let listeners = page.clone();
    metrics.ask_listeners(move || listeners.listeners());
    let announcer = page.clone();
    metrics.ask(move || announcer.samples());
    let reply = move |question: http::Question| {
        let (page, metrics) = (page.clone(), metrics.clone());
        async move {
            match question.path.as_str() {
                PATH => {
                    let body = serde_json::to_vec(&page.report()).unwrap_or_default();
                    http::answer(StatusCode::OK, "application/json", body)
                }
                "/metrics" => {
                    let accept = question.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
                    let format = Format::wanted(accept.unwrap_or_default());
                    http::answer(StatusCode::OK, format.media(), metrics.text(format))
                }
                _ => http::not_found(),
            }
        }
    };
    http::serve(listener, stop, reply).await;
}

fn balance(balancer: &Balancer, planner: &Planner, vpc: &[IpNet]) -> Balance {
    let path = |spec: &Arc<Spec>| match spec.path {
        Path::Kernel => "kernel".to_owned(),
        Path::Userspace => "userspace".to_owned(),
    };
    let listener = |one: &crate::spec::Listener| {
        let same = |key: &crate::engine::ListenerKey| (key.port, key.protocol) == (one.port, one.protocol);
        let served = balancer.listeners.iter().find(|(key, _)| same(key));
        let failed = balancer.failed.iter().find(|(key, _)| same(key));
        ListenerReport {
            port: one.port,
            protocol: one.protocol,
            problem: served.and_then(|(_, served)| served.problem.clone()).or(failed.map(|(_, why)| why.clone())),
            unserved: failed.is_some(),
            active: None,
            backends: members::backends(planner, one, &balancer.addresses).iter().map(known).collect(),
        }
    };
    let unserved = balancer.unserved.iter().map(|(port, why)| ListenerReport {
        port: port.number,
        protocol: port.protocol,
        problem: Some(why.clone()),
        unserved: true,
        ..ListenerReport::default()
    });
    let mut listeners: Vec<ListenerReport> =
        balancer.spec.iter().flat_map(|spec| spec.served()).map(listener).chain(unserved).collect();
    let order = crate::spec::PortId::all(&balancer.service);
    listeners.sort_by_key(|one| order.iter().position(|id| (id.number, id.protocol) == (one.port, one.protocol)));
    let rules = balancer.spec.iter().flat_map(|spec| spec.rules(vpc, &spec.name));
    Balance {
        rules: rules.map(|one| rule(&one)).collect(),
        owners: Vec::new(),
        namespace: balancer.key.namespace.to_string(),
        name: balancer.key.name.to_string(),
        addresses: balancer.addresses.clone(),
        path: balancer.spec.as_ref().map(path).unwrap_or_default(),
        refused: balancer.refused.clone(),
        listeners,
    }
}

/// Who answers for an address.
fn owner(owners: &Owners, address: IpAddr) -> Option<OwnerReport> {
    let ownership = owners.addresses.get(&address)?;
    let interfaces = match &ownership.reach {
        Reach::Announced(links) => links.clone(),
        Reach::Routed => Vec::new(),
    };
    let others = ownership.others.iter().map(|(node, why)| (node.clone(), why.to_string())).collect();
    let unguarded = owners.unguarded.clone();
    Some(OwnerReport { address: address.to_string(), node: ownership.owner.clone(), interfaces, others, unguarded })
}

/// A rule of a network load balancer in words.
pub fn rule(rule: &Rule) -> String {
    let what = match &rule.carries {
        Carries::Ports(protocol, ports) => {
            let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
            format!("{protocol} {}", ports.join(","))
        }
        Carries::Icmp(kind, code) => format!("ICMP {kind},{code}"),
        Carries::Icmpv6(kind, code) => format!("ICMPv6 {kind},{code}"),
    };
    let from: Vec<String> = rule.ranges.iter().map(ToString::to_string).chain(rule.groups.iter().cloned()).collect();
    let from = if from.is_empty() { "anywhere".to_owned() } else { from.join(",") };
    format!("{what} from {from}: {}", rule.description)
}

/// A backend nobody checks.
fn known(backend: &crate::backends::Backend) -> BackendReport {
    BackendReport {
        address: backend.address.to_string(),
        node: backend.node.clone(),
        zone: backend.zone.clone(),
        weight: backend.weight,
        draining: backend.stage == Stage::Draining,
        health: "ready".to_owned(),
        usable: backend.stage == Stage::Ready && backend.weight > 0,
        ..BackendReport::default()
    }
}

/// What the threads know of a listener.
fn overlay(balance: &mut Balance, status: &ListenerStatus) {
    let same = |one: &&mut ListenerReport| (one.port, one.protocol) == (status.key.port, status.key.protocol);
    let Some(listener) = balance.listeners.iter_mut().find(same) else { return };
    listener.active = Some(status.totals.active);
    listener.backends = status.backends.iter().map(checked).collect();
}

fn checked(status: &BackendStatus) -> BackendReport {
    let health = match (status.ejected.is_some(), status.health) {
        (true, _) => "ejected",
        (false, Health::Healthy) => "healthy",
        (false, Health::Unhealthy) => "unhealthy",
        (false, Health::Unknown) => "unknown",
    };
    let plain = known(&status.backend);
    BackendReport {
        health: health.to_owned(),
        usable: plain.usable && !matches!(health, "ejected" | "unhealthy"),
        active: status.active,
        total: status.total,
        failures: status.failures,
        ..plain
    }
}
