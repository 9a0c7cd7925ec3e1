//! How load balancers of this Node do, for `fairlead lb`: a page with JSON on a loopback port.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ::http::StatusCode;
use fairlead_api::source::Key;
use fairlead_api::view::Protocol;
use fairlead_monitor::http;
use fairlead_plan::Planner;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::balancer::Balancer;
use super::members;
use crate::backends::{BackendStatus, Health, Stage};
use crate::engine::{Engine, ListenerStatus};
use crate::spec::{Path, Spec};

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
    /// Its listeners.
    pub listeners: Vec<ListenerReport>,
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
    balancers: BTreeMap<Key, Balance>,
    engine: Weak<Engine>,
}

impl Page {
    pub(super) fn new(node: &str) -> Page {
        Page(Arc::new(Mutex::new(State { node: node.to_owned(), ..State::default() })))
    }

    /// A load balancer is so now.
    pub(super) fn put(&self, balancer: &Balancer, planner: &Planner) {
        let balance = balance(balancer, planner);
        self.state().balancers.insert((*balancer.key).clone(), balance);
    }

    /// It is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.state().balancers.remove(key);
    }

    /// These threads know how backends do.
    pub(super) fn watch(&self, engine: Arc<Engine>) {
        self.state().engine = Arc::downgrade(&engine);
    }

    /// The threads are about to end.
    pub(super) fn close(&self) {
        self.state().engine = Weak::new();
    }

    /// What the page says at the moment.
    pub(super) fn report(&self) -> Report {
        let (node, mut balancers, engine) = {
            let state = self.state();
            (state.node.clone(), state.balancers.clone(), state.engine.upgrade())
        };
        for status in engine.iter().flat_map(|engine| engine.look()) {
            if let Some(balance) = balancers.get_mut(&*status.key.service) {
                overlay(balance, &status);
            }
        }
        Report { node, balancers: balancers.into_values().collect() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows the page until told to stop.
pub(super) async fn serve(page: Page, address: SocketAddr, stop: CancellationToken) {
    let listener = match http::listen(address) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!("--balancer-bind-address: cannot listen at {address}: {error}; `fairlead lb` shows less");
            return;
        }
    };
    let reply = move |question: http::Question| {
        let page = page.clone();
        async move {
            if question.path != PATH {
                return http::not_found();
            }
            let body = serde_json::to_vec(&page.report()).unwrap_or_default();
            http::answer(StatusCode::OK, "application/json", body)
        }
    };
    http::serve(listener, stop, reply).await;
}

fn balance(balancer: &Balancer, planner: &Planner) -> Balance {
    let path = |spec: &Arc<Spec>| match spec.path {
        Path::Kernel => "kernel".to_owned(),
        Path::Userspace => "userspace".to_owned(),
    };
    let listener = |one: &crate::spec::Listener| {
        let served = balancer.listeners.iter().find(|(key, _)| (key.port, key.protocol) == (one.port, one.protocol));
        ListenerReport {
            port: one.port,
            protocol: one.protocol,
            problem: served.and_then(|(_, served)| served.problem.clone()),
            active: None,
            backends: members::backends(planner, one, &balancer.addresses).iter().map(known).collect(),
        }
    };
    Balance {
        namespace: balancer.key.namespace.to_string(),
        name: balancer.key.name.to_string(),
        addresses: balancer.addresses.clone(),
        path: balancer.spec.as_ref().map(path).unwrap_or_default(),
        refused: balancer.refused.iter().map(ToString::to_string).collect(),
        listeners: balancer.spec.iter().flat_map(|spec| &spec.listeners).map(listener).collect(),
    }
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
