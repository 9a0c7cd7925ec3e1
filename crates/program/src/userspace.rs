//! Mode userspace: which endpoint a process of the Node sends a connection to. Packets get to that process by a program of
//! nftables in which each pool has one endpoint, the process ([`crate::nft::Nft::with_portals`]).
//!
//! One after the other, by weight; a client that stays goes where it was, and where it begins does not follow from the order
//! in which clients come; when an endpoint does not answer, to the next. There is no SCTP here: what is sent to such a port is
//! refused.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fairlead_plan::{Endpoint, Node, Packet, PlanChange, Pool, PoolKey, PortKey, Protocol};

use crate::nft::{self, Fate, Memory, Portals, Program};
use crate::outcome::Outcome;

/// How many clients of a port are remembered at most; then those go that were not seen for longest.
const MAX_CLIENTS: usize = 1 << 16;
/// How many turns a client that will stay passes over, less than. Few are enough to mix clients, and each costs a look at all
/// endpoints.
const MAX_PASSED: u64 = 8;

/// Pools in turn.
#[derive(Debug, Default)]
pub struct Balancer {
    pools: HashMap<PoolKey, Rotation>,
    clients: HashMap<PortKey, HashMap<IpAddr, Client>>,
    /// What makes this one choose other than another would.
    seed: u64,
}

/// What is remembered of a client.
#[derive(Debug, Clone, Copy)]
struct Client {
    endpoint: SocketAddr,
    /// When it was last seen.
    seen: Duration,
}

/// A pool and how far each endpoint's turn is.
#[derive(Debug)]
struct Rotation {
    pool: Arc<Pool>,
    credits: Vec<i64>,
}

/// Whether a mode without SCTP can serve a pool.
pub fn serves(key: &PoolKey) -> bool {
    key.port.protocol != Protocol::Sctp
}

impl Balancer {
    /// Where clients that stay begin depends on the number.
    pub fn with_seed(seed: u64) -> Balancer {
        Balancer { seed, ..Balancer::default() }
    }

    /// Takes a change of the plan.
    pub fn apply(&mut self, change: &PlanChange) {
        for delta in change.pools.iter().filter(|delta| serves(&delta.key)) {
            match &delta.new {
                Some(pool) => self.set(pool),
                None => self.remove(&delta.key),
            }
        }
    }

    /// Takes a pool away; with the last one of a port, what is remembered of its clients.
    pub fn remove(&mut self, key: &PoolKey) {
        self.pools.remove(key);
        if !self.pools.keys().any(|other| other.port == key.port) {
            self.clients.remove(&key.port);
        }
    }

    /// Puts a pool in the place of the one there was. Whose turn it is stays as it is.
    pub fn set(&mut self, pool: &Arc<Pool>) {
        let rotation = Rotation { pool: pool.clone(), credits: vec![0; pool.endpoints.len()] };
        let Some(old) = self.pools.insert(pool.key.clone(), rotation) else { return };
        let before: HashMap<SocketAddr, i64> = old.pool.endpoints.iter().map(address).zip(old.credits).collect();
        if let Some(new) = self.pools.get_mut(&pool.key) {
            for (endpoint, credit) in pool.endpoints.iter().zip(&mut new.credits) {
                *credit = before.get(&address(endpoint)).copied().unwrap_or(0);
            }
        }
    }

    /// Where a new connection goes, at a time since some other. `failed` are endpoints that just did not answer: they are passed
    /// over, even by a client that stays. `None`: there is nobody left.
    pub fn pick(&mut self, key: &PoolKey, client: IpAddr, failed: &[SocketAddr], now: Duration) -> Option<SocketAddr> {
        let rotation = self.pools.get_mut(key)?;
        let usable =
            |at: &SocketAddr| !failed.contains(at) && rotation.pool.endpoints.iter().any(|it| address(it) == *at);
        let Some(seconds) = rotation.pool.affinity else { return rotation.next(failed) };
        let clients = self.clients.entry(key.port.clone()).or_default();
        let known =
            clients.get(&client).filter(|known| now.saturating_sub(known.seen) < Duration::from_secs(seconds.into()));
        let endpoint = match known.map(|known| known.endpoint).filter(usable) {
            Some(endpoint) => endpoint,
            None => {
                rotation.pass(chance(self.seed, key, client, now));
                rotation.next(failed)?
            }
        };
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(&client) {
            make_room(clients);
        }
        clients.insert(client, Client { endpoint, seen: now });
        Some(endpoint)
    }
}

/// Forgets the half that was not seen for longest.
fn make_room(clients: &mut HashMap<IpAddr, Client>) {
    let mut seen: Vec<Duration> = clients.values().map(|client| client.seen).collect();
    let half = seen.len() / 2;
    let (_, median, _) = seen.select_nth_unstable(half);
    let median = *median;
    clients.retain(|_, client| client.seen > median);
}

/// A number that looks like chance, and is another for each port, client and time: clients that come again in the same order
/// must not all find the endpoints they had, nor those of another port.
fn chance(seed: u64, key: &PoolKey, client: IpAddr, now: Duration) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, &key.port, client, now).hash(&mut hasher);
    hasher.finish()
}

impl Rotation {
    /// Passes over some turns.
    fn pass(&mut self, chance: u64) {
        let most = MAX_PASSED.min(self.pool.endpoints.len() as u64).max(1);
        for _ in 0..chance % most {
            self.next(&[]);
        }
    }

    /// The endpoint whose turn it is: all gain what they weigh, the one that has most goes and pays for all.
    fn next(&mut self, failed: &[SocketAddr]) -> Option<SocketAddr> {
        let mut total = 0;
        let mut best: Option<usize> = None;
        for (at, endpoint) in self.pool.endpoints.iter().enumerate() {
            if failed.contains(&address(endpoint)) {
                continue;
            }
            self.credits[at] += i64::from(endpoint.weight);
            total += i64::from(endpoint.weight);
            if best.is_none_or(|best| self.credits[at] > self.credits[best]) {
                best = Some(at);
            }
        }
        self.credits[best?] -= total;
        Some(address(&self.pool.endpoints[best?]))
    }
}

fn address(endpoint: &Endpoint) -> SocketAddr {
    SocketAddr::new(endpoint.ip, endpoint.port)
}

/// What happens to a packet: the program leads it to a portal, and that to the endpoints of its pool, for as many turns as
/// there are. All of them see the Node's address.
pub fn outcome(
    program: &Program,
    portals: &Portals,
    pools: impl Fn(&PoolKey) -> Option<Arc<Pool>>,
    node: &Node,
    packet: &Packet,
) -> Outcome {
    let traced = nft::trace(program, node, packet, 0, &mut Memory::default(), &mut |_| 0);
    let to = match traced.fate {
        Fate::Drops => return Outcome::Drops,
        Fate::Rejects(with) => return Outcome::Rejects(with),
        Fate::Passes { dnat: None, .. } => return Outcome::Passes,
        Fate::Passes { dnat: Some(to), .. } => to,
    };
    let portal = portals.iter().find(|(_, at)| **at == to);
    let Some(pool) = portal.and_then(|(key, _)| pools(key)) else { return Outcome::Passes };
    let mut rotation = Rotation { pool: pool.clone(), credits: vec![0; pool.endpoints.len()] };
    let turns = (0..pool.total_weight()).filter_map(|_| rotation.next(&[]));
    let ways: Vec<_> = turns.map(|to| (to, true)).collect();
    Outcome::forwards(ways, pool.affinity)
}

#[cfg(test)]
mod tests;
