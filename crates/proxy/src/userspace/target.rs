//! Where connections of a port go: whose turn it is, what each endpoint got, and which endpoints would lead back here.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use fairlead_plan::{FrontendKey, Plan, PlanChange, Pool, PoolKey, PortKey, Protocol, family_of};
use fairlead_program::userspace::Balancer;

use crate::Traffic;

/// One port of a Service. Its pools share what is remembered of clients.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) key: PortKey,
    turns: Mutex<Turns>,
}

#[derive(Debug)]
struct Turns {
    balancer: Balancer,
    counts: HashMap<SocketAddr, Arc<Count>>,
}

/// What an endpoint got.
#[derive(Debug, Default)]
pub(crate) struct Count {
    connections: AtomicU64,
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    /// One connection more.
    pub(crate) fn connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// One datagram more, of so many bytes.
    pub(crate) fn datagram(&self, bytes: usize) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.bytes(bytes);
    }

    /// So many bytes more.
    pub(crate) fn bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn read(&self) -> Traffic {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (connections, packets) = (read(&self.connections), read(&self.packets));
        Traffic { connections, packets, bytes: read(&self.bytes), back: None }
    }
}

impl Port {
    pub(crate) fn new(key: PortKey) -> Port {
        // So that nobody outside knows where clients begin.
        let balancer = Balancer::with_seed(RandomState::new().build_hasher().finish());
        Port { key, turns: Mutex::new(Turns { balancer, counts: HashMap::new() }) }
    }

    /// Puts a pool in the place of the one there was.
    pub(crate) fn set(&self, pool: &Arc<Pool>) {
        self.turns().balancer.set(pool);
    }

    /// Takes a pool away.
    pub(crate) fn remove(&self, pool: &PoolKey) {
        self.turns().balancer.remove(pool);
    }

    /// Forgets what was counted for endpoints that are no more.
    pub(crate) fn forget(&self, keep: impl Fn(SocketAddr) -> bool) {
        self.turns().counts.retain(|endpoint, _| keep(*endpoint));
    }

    /// What was counted.
    pub(crate) fn counts(&self) -> Vec<(SocketAddr, Traffic)> {
        self.turns().counts.iter().map(|(endpoint, count)| (*endpoint, count.read())).collect()
    }

    fn turns(&self) -> std::sync::MutexGuard<'_, Turns> {
        // Nothing that panics can leave it half done.
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where one pool's connections go.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) pool: PoolKey,
    pub(crate) port: Arc<Port>,
    pub(crate) captured: Arc<RwLock<Captured>>,
    pub(crate) start: Instant,
}

/// An endpoint that was chosen.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) endpoint: SocketAddr,
    pub(crate) count: Arc<Count>,
}

impl Target {
    /// Whose turn it is, without those that failed.
    pub(crate) fn pick(&self, client: IpAddr, failed: &[SocketAddr]) -> Option<Choice> {
        let now = self.start.elapsed();
        let mut turns = self.port.turns();
        let mut endpoint = turns.balancer.pick(&self.pool, client, failed, now)?;
        if self.is_captured(endpoint) {
            let mut failed = failed.to_vec();
            while self.is_captured(endpoint) {
                failed.push(endpoint);
                endpoint = turns.balancer.pick(&self.pool, client, &failed, now)?;
            }
        }
        let count = turns.counts.entry(endpoint).or_default().clone();
        Some(Choice { endpoint, count })
    }

    fn is_captured(&self, endpoint: SocketAddr) -> bool {
        let captured = self.captured.read().unwrap_or_else(PoisonError::into_inner);
        captured.has(endpoint, self.pool.port.protocol)
    }
}

/// What the rules lead to us. An endpoint that is among it would make connections go round in circles, so it is passed over.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    frontends: HashSet<FrontendKey>,
    addresses: BTreeSet<IpAddr>,
}

impl Captured {
    /// All of a plan.
    pub(crate) fn of(plan: &Plan) -> Captured {
        let frontends = plan.frontends().map(|frontend| frontend.key).collect();
        Captured { frontends, addresses: plan.node().addresses.clone() }
    }

    /// Follows a change.
    pub(crate) fn apply(&mut self, plan: &Plan, change: &PlanChange) {
        for delta in &change.frontends {
            match delta.new {
                Some(_) => self.frontends.insert(delta.key),
                None => self.frontends.remove(&delta.key),
            };
        }
        if change.node.is_some() {
            self.addresses = plan.node().addresses.clone();
        }
    }

    fn has(&self, at: SocketAddr, protocol: Protocol) -> bool {
        let (ip, port) = (at.ip(), at.port());
        self.frontends.contains(&FrontendKey::Address { ip, protocol, port })
            || self.addresses.contains(&ip)
                && self.frontends.contains(&FrontendKey::NodePort { family: family_of(ip), protocol, port })
    }
}
