//! Mode userspace: threads of ours carry the bytes. For each pool of the plan there is a portal, a port of the Node on which
//! they listen, and rules of nftables lead to it what is for the Service.
//!
//! ```text
//! load, apply: balancers know the pool -> its portal listens -> one batch of rules -> portals nothing leads to close
//! ```
//!
//! Connections are ours here: they live as long as their ends and this process do, whatever becomes of the Service.

mod budget;
mod dial;
mod flow;
mod portal;
mod slab;
mod target;
mod tcp;
mod token;
mod udp;
mod worker;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use fairlead_api::source::Key;
use fairlead_kernel::relay;
use fairlead_plan::{Endpoint, Family, Plan, PlanChange, Pool, PoolKey, PortKey, Protocol};
use fairlead_program::nft;
use fairlead_program::userspace::serves;

use crate::nftables::Nftables;
use crate::{Counters, Dataplane, Error, Mode};
use budget::Budget;
use portal::{Portal, Portals, Socket};
use target::{Captured, Port, Target};
use worker::{Command, Setup, Worker};

/// More threads than this only get into each other's way.
const MAX_WORKERS: usize = 8;
/// What part of the descriptors UDP sessions may have.
const UDP_SHARE: usize = 4;

/// How the mode is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// The rules.
    pub rules: nft::Options,
    /// How often the rules are counted although nothing seems to have changed.
    pub thorough: Duration,
    /// After how long without a datagram a UDP session ends (`--udp-timeout`).
    pub udp_timeout: Duration,
    /// How many threads carry bytes; `None`: one for each core.
    pub workers: Option<usize>,
    /// Descriptors from which the bounds of connections are derived; `None`: the limit of the
    /// process, which is raised.
    pub descriptors: Option<u64>,
}

/// kube-proxy's time-out was 250 ms, in which a name server that asks others often cannot answer. What bounds the sessions here
/// is their number, so they may be long.
impl Default for Options {
    fn default() -> Options {
        Options {
            rules: nft::Options::default(),
            thorough: Duration::from_secs(30),
            udp_timeout: Duration::from_secs(60),
            workers: None,
            descriptors: None,
        }
    }
}

/// The mode, at work.
#[derive(Debug)]
pub struct Userspace {
    options: Options,
    rules: Nftables,
    budget: Arc<Budget>,
    workers: Vec<Worker>,
    ports: HashMap<PortKey, Arc<Port>>,
    portals: Portals,
    captured: Arc<RwLock<Captured>>,
    start: Instant,
    /// The number of the next portal.
    next: u64,
    /// Services that were said not to be served.
    unserved: HashSet<Arc<Key>>,
    /// Families in which the Node has no address.
    homeless: HashSet<Family>,
    /// Why some pools have no portal.
    closed: HashMap<PoolKey, String>,
    /// When everything was loaded last.
    loaded: Instant,
}

impl Userspace {
    /// Opens the way to the rules, in this thread's network namespace, and starts the threads.
    pub fn open(options: Options) -> Result<Userspace, Error> {
        let rules = Nftables::open(options.rules.clone(), options.thorough)?;
        let raised = relay::raise_descriptor_limit().map_err(failed("raising the limit of descriptors"))?;
        let descriptors = options.descriptors.unwrap_or(raised);
        let budget = Arc::new(Budget::new(usize::try_from(descriptors).unwrap_or(usize::MAX / 2)));
        let mut mode = Userspace {
            options,
            rules,
            budget,
            workers: Vec::new(),
            ports: HashMap::new(),
            portals: Portals::default(),
            captured: Arc::default(),
            start: Instant::now(),
            next: 0,
            unserved: HashSet::new(),
            homeless: HashSet::new(),
            closed: HashMap::new(),
            loaded: Instant::now(),
        };
        mode.start_workers()?;
        Ok(mode)
    }

    /// How many TCP connections and UDP sessions are carried.
    pub fn carried(&self) -> (usize, usize) {
        let loads = || self.workers.iter().map(Worker::load);
        let sessions = loads().map(|load| load.sessions.load(Ordering::Relaxed)).sum();
        (loads().map(|load| load.connections.load(Ordering::Relaxed)).sum(), sessions)
    }

    fn start_workers(&mut self) -> Result<(), Error> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS);
        let count = self.options.workers.unwrap_or(cores).max(1);
        let setup = Setup {
            budget: self.budget.clone(),
            udp_timeout: self.options.udp_timeout,
            udp_sessions: (self.budget.limit() / UDP_SHARE / count).max(1),
        };
        let start = |number| Worker::start(format!("userspace-{number}"), setup.clone());
        self.workers = (0..count).map(start).collect::<Result<_, _>>().map_err(failed("starting threads"))?;
        Ok(())
    }

    /// Lets connections of a pool arrive, and lets them be spread.
    fn serve(&mut self, plan: &Plan, pool: &Arc<Pool>) {
        let key = &pool.key;
        let port = self.ports.entry(key.port.clone()).or_insert_with(|| Arc::new(Port::new(key.port.clone())));
        port.set(pool);
        if self.portals.get(key).is_some() {
            return;
        }
        let Some(ip) = portal::address(plan.node(), key.port.family) else {
            if self.homeless.insert(key.port.family) {
                let family = key.port.family;
                tracing::warn!(%family, "the Node has no address of that family to listen on: its Services are not served");
            }
            return;
        };
        self.homeless.remove(&key.port.family);
        match portal::open(key, ip, plan, self.next) {
            Ok(portal) => {
                self.next += 1;
                self.closed.remove(key);
                self.introduce(key, &portal);
                self.budget.need(1);
                self.portals.insert(key.clone(), portal);
            }
            Err(error) => {
                let why = format!("listening on {ip}: {error}");
                if self.closed.insert(key.clone(), why.clone()).is_none() {
                    tracing::error!(pool = %key, "not served: {why}");
                }
            }
        }
    }

    /// Tells workers of a portal: of TCP all of them, of UDP the one that has all its sessions.
    fn introduce(&self, key: &PoolKey, portal: &Portal) {
        let Some(port) = self.ports.get(&key.port) else { return };
        let (captured, start) = (self.captured.clone(), self.start);
        let target = Arc::new(Target { pool: key.clone(), port: port.clone(), captured, start });
        let number = portal.number;
        match &portal.socket {
            Socket::Tcp(listener) => self.tell(|| Command::Tcp(number, listener.clone(), target.clone())),
            Socket::Udp(socket) => {
                let worker = &self.workers[number as usize % self.workers.len()];
                worker.tell(Command::Udp(number, socket.clone(), target));
            }
        }
    }

    fn tell(&self, command: impl Fn() -> Command) {
        for worker in &self.workers {
            // Who is no more is found by `drift`.
            worker.tell(command());
        }
    }

    /// Closes the portal of a pool nothing leads to any more. With the last pool of a port goes what is known of it.
    fn close(&mut self, key: &PoolKey, plan: &Plan) {
        if let Some(portal) = self.portals.remove(key) {
            self.tell(|| Command::Close(portal.number));
            self.budget.give(1);
        }
        self.closed.remove(key);
        if plan.pool(key).is_some() {
            return;
        }
        if let Some(port) = self.ports.get(&key.port) {
            port.remove(key);
        }
        let scopes = [fairlead_plan::Scope::Cluster, fairlead_plan::Scope::Local];
        let pools = scopes.map(|scope| PoolKey { port: key.port.clone(), scope });
        if pools.iter().all(|pool| plan.pool(pool).is_none()) {
            self.ports.remove(&key.port);
        }
    }

    /// Endpoints of a port are others: UDP sessions with those that are gone end, TCP connections are left alone.
    fn follow_endpoints(&self, port: &PortKey, endpoints: &[Endpoint]) {
        let place = |endpoint: &Endpoint| SocketAddr::new(endpoint.ip, endpoint.port);
        if let Some(known) = self.ports.get(port) {
            known.forget(|at| endpoints.iter().any(|endpoint| place(endpoint) == at));
        }
        if port.protocol == Protocol::Udp {
            let serving = endpoints.iter().filter(|endpoint| endpoint.serving);
            let serving: Arc<HashSet<_>> = Arc::new(serving.map(place).collect());
            self.tell(|| Command::Retain(port.clone(), serving.clone()));
        }
    }

    /// Says once of each Service that it has ports nobody serves here.
    fn report_sctp(&mut self, plan: &Plan) {
        let unserved = plan.frontends().filter(|frontend| frontend.key.protocol() == Protocol::Sctp);
        let unserved: HashSet<Arc<Key>> = unserved.map(|frontend| frontend.port.service.clone()).collect();
        for service in unserved.difference(&self.unserved) {
            tracing::warn!(%service, "mode userspace has no SCTP: such ports of the Service are refused");
        }
        self.unserved = unserved;
    }

    /// Whether a change can only be made by loading everything: the Node has another address, or a Service wants the place of
    /// a portal.
    fn is_radical(&self, plan: &Plan, change: &PlanChange) -> bool {
        let moved = change.node.as_ref().is_some_and(|old| {
            let families = [Family::V4, Family::V6];
            let address = |node, family| portal::address(node, family);
            old.families != plan.node().families
                || families.into_iter().any(|family| address(old, family) != address(plan.node(), family))
        });
        let collides = |key: &fairlead_plan::FrontendKey| {
            portal::address(plan.node(), key.family()).is_some_and(|ip| self.portals.collides(key, ip))
        };
        moved || change.frontends.iter().any(|delta| delta.new.is_some() && collides(&delta.key))
    }

    fn capture(&self, change: impl FnOnce(&mut Captured)) {
        change(&mut self.captured.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Dataplane for Userspace {
    fn mode(&self) -> Mode {
        Mode::Userspace
    }

    fn load(&mut self, plan: &Plan) -> Result<(), Error> {
        let restarted = !self.workers.iter().all(Worker::is_alive);
        if restarted {
            self.start_workers()?;
        }
        // Portals that cannot stay are replaced by others first, and closed when nothing leads to them.
        let node = plan.node();
        let stays = |key: &PoolKey, portal: &Portal| {
            let at_home = portal::address(node, key.port.family) == Some(portal.at.ip());
            !restarted && at_home && plan.pool(key).is_some() && !portal::is_taken(plan, key.port.protocol, portal.at)
        };
        let leaving = self.portals.iter().filter(|(key, portal)| !stays(key, portal));
        let leaving: Vec<PoolKey> = leaving.map(|(key, _)| key.clone()).collect();
        let old: Vec<Portal> = leaving.iter().filter_map(|key| self.portals.remove(key)).collect();
        self.capture(|captured| *captured = Captured::of(plan));
        let families = &node.families;
        for pool in plan.pools().filter(|pool| serves(&pool.key) && families.contains(&pool.key.port.family)) {
            self.serve(plan, pool);
        }
        let portals = self.portals.iter().map(|(key, portal)| (key.clone(), portal.at)).collect();
        self.rules.load_portals(plan, portals)?;
        for portal in old {
            self.tell(|| Command::Close(portal.number));
            self.budget.give(1);
        }
        leaving.iter().filter(|key| plan.pool(key).is_none()).for_each(|key| self.close(key, plan));
        self.closed.retain(|key, _| plan.pool(key).is_some());
        for (port, endpoints) in plan.all_backends() {
            self.follow_endpoints(port, endpoints);
        }
        self.report_sctp(plan);
        self.loaded = Instant::now();
        Ok(())
    }

    fn apply(&mut self, plan: &Plan, change: &PlanChange) -> Result<(), Error> {
        if self.rules.portals().is_none() || self.is_radical(plan, change) {
            return self.load(plan);
        }
        self.capture(|captured| captured.apply(plan, change));
        for pool in change.pools.iter().filter_map(|delta| delta.new.as_ref()) {
            if serves(&pool.key) && plan.node().families.contains(&pool.key.port.family) {
                self.serve(plan, pool);
            }
        }
        let new = change.pools.iter().filter_map(|delta| Some((&delta.key, self.portals.get(&delta.key)?.at)));
        let new: Vec<_> = new.map(|(key, at)| (key.clone(), at)).collect();
        if let Some(portals) = self.rules.portals() {
            portals.extend(new);
        }
        self.rules.apply(plan, change)?;
        for delta in change.pools.iter().filter(|delta| delta.new.is_none()) {
            if let Some(portals) = self.rules.portals() {
                portals.remove(&delta.key);
            }
            self.close(&delta.key, plan);
        }
        for delta in &change.backends {
            self.follow_endpoints(&delta.key, delta.new.as_deref().unwrap_or_default());
        }
        if change.frontends.iter().any(|delta| delta.key.protocol() == Protocol::Sctp) {
            self.report_sctp(plan);
        }
        Ok(())
    }

    fn drift(&mut self, plan: &Plan) -> Result<Option<String>, Error> {
        if !self.workers.iter().all(Worker::is_alive) {
            return Ok(Some("a thread that carries bytes ended".to_owned()));
        }
        // What could not be opened may be possible later, but not every time somebody looks.
        if let Some((key, why)) = self.closed.iter().next().filter(|_| self.loaded.elapsed() >= self.options.thorough) {
            return Ok(Some(format!("{key} is not served: {why}")));
        }
        self.rules.drift(plan)
    }

    fn stand_ins(&self) -> Option<HashSet<(PortKey, SocketAddr)>> {
        Some(self.portals.iter().map(|(key, portal)| (key.port.clone(), portal.at)).collect())
    }

    /// What endpoints got and gave, all of it.
    fn counters(&mut self, _: &Plan) -> Result<Counters, Error> {
        let of = |port: &Arc<Port>| port.counts().into_iter().map(|(at, got)| ((port.key.clone(), at), got)).collect();
        let endpoints = self.ports.values().flat_map(|port| -> Vec<_> { of(port) }).collect();
        Ok(Counters { endpoints, ..Counters::default() })
    }
}

/// Removes the rules. What listened for them ends with its process.
pub fn remove() -> Result<Vec<String>, Error> {
    crate::nftables::remove()
}

fn failed(what: &str) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.to_owned();
    move |error| Error::Io { what, error }
}
