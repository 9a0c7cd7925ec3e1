//! The plan itself: what this Node must do with packets, as tables.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::ops::Index;
use std::sync::Arc;

use fairlead_api::source::Key;
use fairlead_api::view::Family;
use fairlead_api::weights;
use ipnet::IpNet;

use crate::key::{FrontendKey, PoolKey, PortKey, Scope};
use crate::node::{Node, Source};
use crate::reason::Note;

/// What this Node must do with packets. Two plans of the same cluster for the same Node are equal, however they came about.
/// What is kept by name of a Service is in no order: names are slow to compare, and most of the work is to find one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    pub(crate) node: Node,
    pub(crate) frontends: BTreeMap<FrontendKey, Arc<Frontend>>,
    pub(crate) pools: HashMap<PoolKey, Arc<Pool>>,
    pub(crate) backends: HashMap<PortKey, Arc<[Endpoint]>>,
    pub(crate) cluster_ips: BTreeSet<IpAddr>,
    pub(crate) health_checks: HashMap<Arc<Key>, HealthCheck>,
    pub(crate) notes: HashMap<Arc<Key>, Arc<[Note]>>,
    pub(crate) contested: BTreeMap<FrontendKey, Vec<Arc<Frontend>>>,
}

impl Plan {
    /// The Node it is for.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// What packets may be addressed to, in order.
    pub fn frontends(&self) -> impl ExactSizeIterator<Item = &Arc<Frontend>> {
        self.frontends.values()
    }

    /// What is at an address or node port.
    pub fn frontend(&self, key: &FrontendKey) -> Option<&Arc<Frontend>> {
        self.frontends.get(key)
    }

    /// Lists of endpoints. None is empty, and each is forwarded to by some frontend, unless that lost its address to another.
    pub fn pools(&self) -> impl ExactSizeIterator<Item = &Arc<Pool>> {
        self.pools.values()
    }

    /// The endpoints of a port under a policy; `None`: there are none, and nothing forwards to it.
    pub fn pool(&self, key: &PoolKey) -> Option<&Arc<Pool>> {
        self.pools.get(key)
    }

    /// The endpoints a frontend's packets may reach under a policy.
    pub fn pool_of(&self, frontend: &Frontend, scope: Scope) -> Option<&Arc<Pool>> {
        self.pools.get(&PoolKey { port: frontend.port.clone(), scope })
    }

    /// Every endpoint of a port, chosen or not: what existing connections may stay with.
    pub fn backends(&self, port: &PortKey) -> &[Endpoint] {
        self.backends.get(port).map_or(&[], |backends| backends)
    }

    /// Ports of Services with every endpoint they have.
    pub fn all_backends(&self) -> impl ExactSizeIterator<Item = (&PortKey, &Arc<[Endpoint]>)> {
        self.backends.iter()
    }

    /// Cluster IPs of Services. With [`Node::guard_cluster_ips`] ports of them without a frontend are refused.
    pub fn cluster_ips(&self) -> &BTreeSet<IpAddr> {
        &self.cluster_ips
    }

    /// Ports that tell load balancers whether this Node has endpoints.
    pub fn health_checks(&self) -> impl ExactSizeIterator<Item = &HealthCheck> {
        self.health_checks.values()
    }

    /// What was left out of a Service, or fell back, and why.
    pub fn notes(&self, service: &Key) -> &[Note] {
        self.notes.get(service).map_or(&[], |notes| notes)
    }

    /// All Services of which something was left out, or fell back.
    pub fn all_notes(&self) -> impl ExactSizeIterator<Item = (&Arc<Key>, &Arc<[Note]>)> {
        self.notes.iter()
    }

    /// Frontends that would be at this address if it had not gone to another Service, the next in line first.
    pub fn contested(&self, key: &FrontendKey) -> &[Arc<Frontend>] {
        self.contested.get(key).map_or(&[], Vec::as_slice)
    }

    /// All addresses more than one Service asks for.
    pub fn all_contested(&self) -> impl ExactSizeIterator<Item = &FrontendKey> {
        self.contested.keys()
    }
}

/// Something packets may be addressed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frontend {
    /// The address or node port.
    pub key: FrontendKey,
    /// What kind of address that is.
    pub kind: FrontendKind,
    /// Whose it is.
    pub port: PortKey,
    /// The only sources that may use it; others are dropped. `None`: all may.
    pub allowed: Option<Arc<[IpNet]>>,
    /// What happens to packets, by where they come from.
    pub actions: Actions,
}

/// What kind of address a frontend is. The order is the order in which Services get an address that several ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrontendKind {
    /// `spec.clusterIPs`.
    ClusterIp,
    /// `spec.ports[*].nodePort`.
    NodePort,
    /// `status.loadBalancer.ingress[*].ip` with mode `VIP`.
    LoadBalancerIp,
    /// `spec.externalIPs`.
    ExternalIp,
}

impl FrontendKind {
    /// `cluster IP`, ...
    pub fn as_str(self) -> &'static str {
        match self {
            FrontendKind::ClusterIp => "cluster IP",
            FrontendKind::NodePort => "node port",
            FrontendKind::LoadBalancerIp => "load balancer IP",
            FrontendKind::ExternalIp => "external IP",
        }
    }
}

/// What happens to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// It goes to an endpoint of the port's pool of that scope, which has at least one.
    Forward {
        /// Which pool.
        scope: Scope,
        /// Whether it gets the Node's address as its source. It also does when an endpoint would be its own client.
        masquerade: bool,
    },
    /// It is refused: nobody could serve it.
    Reject,
    /// It is dropped: another Node could serve it, this one may not.
    Drop,
}

/// An action for each source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Actions([Action; 4]);

impl Actions {
    /// From a rule.
    pub(crate) fn by(rule: impl Fn(Source) -> Action) -> Actions {
        Actions(Source::ALL.map(rule))
    }

    /// With each changed by a rule: for modes that cannot do all of it.
    pub fn map(self, rule: impl Fn(Action) -> Action) -> Actions {
        Actions(self.0.map(rule))
    }

    /// With their sources.
    pub fn iter(&self) -> impl Iterator<Item = (Source, Action)> {
        Source::ALL.into_iter().zip(self.0)
    }

    /// The one action there is for all sources, if it is one.
    pub fn only(&self) -> Option<Action> {
        self.0.iter().all(|action| *action == self.0[0]).then_some(self.0[0])
    }

    /// Whether a packet may go to that pool.
    pub fn uses(&self, wanted: Scope) -> bool {
        self.0.iter().any(|action| matches!(action, Action::Forward { scope, .. } if *scope == wanted))
    }
}

impl Index<Source> for Actions {
    type Output = Action;

    fn index(&self, source: Source) -> &Action {
        &self.0[source as usize]
    }
}

/// Endpoints to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Whose and which.
    pub key: PoolKey,
    /// At least one, by address and port, none twice, each with a weight above 0.
    pub endpoints: Arc<[Endpoint]>,
    /// For how many seconds after its last new connection a client stays with its endpoint. `None`: it does not. What is
    /// remembered belongs to the port: both pools of it see the same.
    pub affinity: Option<u32>,
}

impl Pool {
    /// The weights of all endpoints together.
    pub fn total_weight(&self) -> u32 {
        self.endpoints.iter().map(|endpoint| u32::from(endpoint.weight)).sum()
    }
}

/// One endpoint of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// Its address.
    pub ip: IpAddr,
    /// Its port.
    pub port: u16,
    /// Whether it is on this Node.
    pub local: bool,
    /// How many new connections it gets for one of an endpoint with weight 1.
    pub weight: u8,
    /// May get traffic.
    pub ready: bool,
    /// Answers, even if it is on its way out.
    pub serving: bool,
    /// Is on its way out.
    pub terminating: bool,
}

impl Endpoint {
    /// The weight of an endpoint nothing is said of.
    pub const WEIGHT: u8 = weights::DEFAULT;
    /// The highest weight. What renders a pool may need so many entries for one endpoint.
    pub const MAX_WEIGHT: u8 = weights::MAX;
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", std::net::SocketAddr::new(self.ip, self.port))
    }
}

/// A port that tells load balancers whether this Node has endpoints of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// The Service.
    pub service: Arc<Key>,
    /// `spec.healthCheckNodePort`.
    pub port: u16,
    /// How many ready endpoints are on this Node, for each family the Service has here. Terminating ones do not count, so
    /// that the load balancer turns away before they are gone.
    pub local_endpoints: BTreeMap<Family, usize>,
}
