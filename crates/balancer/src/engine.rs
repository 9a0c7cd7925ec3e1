//! Who listens, on which threads, and how is that changed while connections come? A [`Serving`] a listener in, sockets out.
//!
//! ```text
//! serve(key, Serving) --> sockets of each address, one a thread (SO_REUSEPORT) --> thread 0: accept --> opening --> tcp | http
//!                    \--> Current, which every thread reads                   \--> thread 1: ...
//! ```
//! A connection stays on the thread that accepted it, so nothing it does needs a lock. A change leaves alone what it does not
//! concern: sockets of addresses that stay are never closed, and a socket that goes accepts first what waits in it.

mod accepting;
pub(crate) mod backend_permits;
pub(crate) mod bond;
pub mod context;
pub mod counters;
pub mod deadline;
mod listener;
pub(crate) mod memory;
mod opening;
pub(crate) mod orders;
mod quotas;
pub(crate) mod secure;
mod slots;
pub(crate) mod sources;
mod thread;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fairlead_api::source::Key;
use fairlead_api::view::Protocol;
use fairlead_kernel::relay;
use fairlead_runtime::budget::Account;
use tokio::time::Instant;

use crate::backends::{BackendStatus, Rules};
use crate::health::Checks;
use crate::serving::{Current, Serving};
pub use context::Context;
use counters::Totals;
use listener::Shared;
use quotas::Quotas;
use thread::{Command, Commands};

/// How an engine is to be.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many threads carry bytes.
    pub threads: usize,
    /// How many connections of clients there may be at once, as far as the process may have descriptors. More wait until they
    /// are accepted.
    pub connections: usize,
    /// How many of them one listener may have.
    pub listener_connections: usize,
    /// Maximum number of connections to backends, as far as the process may have descriptors.
    pub backend_connections: usize,
    /// Maximum bytes held for requests under way and for clients and backends that are slow.
    pub buffers: u64,
    /// Least bytes a second, over a minute, that a client must send of a body it announced, or take
    /// of an answer, while the client is the one that is waited for. 0: no least rate.
    pub least_rate: u64,
    /// How long a client may take for what has to come first: its PROXY header and the TLS handshake.
    pub opening: Duration,
    /// How long a backend may take to accept a connection.
    pub connect: Duration,
    /// How long the body of a request of HTTP may be; `None`: as long as it likes.
    pub body: Option<u64>,
    /// The zone this Node is in, for load balancers that do not cross zones.
    pub zone: Option<String>,
    /// The account of the process, which has its limits and the budgets of all components.
    pub account: Account,
}

/// Maximum bytes held for slow clients and backends, unless configured.
const BUFFERS: u64 = 96 << 20;
/// Least rate of bodies in bytes a second, unless configured: half of what Apache's
/// `RequestReadTimeout` asks for.
const LEAST_RATE: u64 = 240;

impl Default for Options {
    fn default() -> Options {
        Options {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            connections: 200_000,
            listener_connections: 100_000,
            backend_connections: 200_000,
            buffers: BUFFERS,
            least_rate: LEAST_RATE,
            opening: Duration::from_secs(10),
            connect: Duration::from_secs(5),
            body: None,
            zone: None,
            account: Account::default(),
        }
    }
}

/// Which listener: a port of a Service.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerKey {
    /// The Service.
    pub service: Arc<Key>,
    /// Its port.
    pub port: u16,
    /// The port's protocol.
    pub protocol: Protocol,
}

/// Where a listener could not listen. At its other addresses it does.
#[derive(Debug, thiserror::Error)]
#[error("{}", told(.failed))]
pub struct ListenError {
    /// Which addresses, and why.
    pub failed: Vec<(SocketAddr, io::Error)>,
}

fn told(failed: &[(SocketAddr, io::Error)]) -> String {
    let each: Vec<String> = failed.iter().map(|(at, why)| format!("listening at {at}: {why}")).collect();
    each.join("; ")
}

/// How a listener does.
#[derive(Debug, Clone)]
pub struct ListenerStatus {
    /// Which one.
    pub key: ListenerKey,
    /// Where it listens.
    pub addresses: Vec<SocketAddr>,
    /// What it did so far.
    pub totals: Totals,
    /// Its backends.
    pub backends: Vec<BackendStatus>,
    /// Backends are used though none of them is healthy.
    pub fails_open: bool,
}

/// Threads that carry bytes, and what they listen at.
#[derive(Debug)]
pub struct Engine {
    options: Arc<Options>,
    threads: Vec<(Commands, Option<JoinHandle<()>>)>,
    listeners: Mutex<Listeners>,
    checks: Checks,
}

#[derive(Debug, Default)]
struct Listeners {
    all: BTreeMap<ListenerKey, Entry>,
    /// Who listens at an address.
    owners: HashMap<SocketAddr, ListenerKey>,
}

/// Those of each address, one a thread.
type Sockets = HashMap<SocketAddr, Vec<TcpListener>>;

#[derive(Debug)]
struct Entry {
    shared: Arc<Shared>,
    addresses: BTreeSet<SocketAddr>,
}

impl Engine {
    /// Starts the threads. They run in the network namespace of the caller.
    pub fn start(options: Options) -> io::Result<Engine> {
        let options = Arc::new(Options { threads: options.threads.max(1), ..options });
        let quotas = Arc::new(Quotas::new(&options));
        let checks = Checks::start()?;
        let threads = (0..options.threads).map(|index| thread::start(index, options.clone(), quotas.clone()));
        let threads = threads.map(|made| made.map(|(commands, thread)| (commands, Some(thread))));
        let threads = threads.collect::<io::Result<Vec<_>>>()?;
        Ok(Engine { options, threads, listeners: Mutex::default(), checks })
    }

    /// Listens, or changes what a listener does: addresses that stay keep their sockets, connections go on. Call it from the
    /// network namespace the engine was started in.
    pub fn serve(&self, key: ListenerKey, serving: Arc<Serving>) -> Result<(), ListenError> {
        let mut state = self.listeners();
        let Listeners { all, owners } = &mut *state;
        let wanted: BTreeSet<SocketAddr> =
            serving.addresses.iter().map(|ip| SocketAddr::new(*ip, serving.listener.port)).collect();
        let new = !all.contains_key(&key);
        self.rule(&serving);
        self.checks.watch(&key, &serving, new);
        let entry = all.entry(key.clone()).or_insert_with(|| Entry {
            shared: Arc::new(Shared::new(Current::new(serving.clone()), self.threads.len())),
            addresses: BTreeSet::new(),
        });
        entry.shared.current.set(serving);
        let left: Vec<SocketAddr> = entry.addresses.difference(&wanted).copied().collect();
        let (opened, failed) = self.open(wanted.difference(&entry.addresses), owners);
        left.iter().for_each(|at| drop((entry.addresses.remove(at), owners.remove(at))));
        entry.addresses.extend(opened.keys());
        owners.extend(opened.keys().map(|at| (*at, key.clone())));
        self.tell(&entry.shared, new, opened, &left);
        if failed.is_empty() { Ok(()) } else { Err(ListenError { failed }) }
    }

    /// Takes no more connections. Those it has go on as long as its load balancer lets them. Fine if there is none.
    pub fn stop(&self, key: &ListenerKey) {
        let mut state = self.listeners();
        let Some(entry) = state.all.remove(key) else { return };
        entry.addresses.iter().for_each(|at| drop(state.owners.remove(at)));
        self.checks.forget(key);
        for (commands, _) in &self.threads {
            Command::stop(entry.shared.clone()).give(commands);
        }
    }

    /// How all listeners do, in their order.
    pub fn look(&self) -> Vec<ListenerStatus> {
        let listeners = self.listeners();
        let status = |(key, entry): (&ListenerKey, &Entry)| {
            let backends = entry.shared.current.get().backends.clone();
            ListenerStatus {
                key: key.clone(),
                addresses: entry.addresses.iter().copied().collect(),
                totals: entry.shared.totals(),
                backends: backends.look(),
                fails_open: backends.fails_open(),
            }
        };
        listeners.all.iter().map(status).collect()
    }

    /// Stops all listeners and waits until their connections have ended, but no longer than this.
    pub async fn shutdown(mut self, most: Duration) {
        let until = Instant::now() + most;
        let stopped: Vec<(ListenerKey, Arc<Shared>)> =
            self.listeners().all.iter().map(|(key, entry)| (key.clone(), entry.shared.clone())).collect();
        stopped.iter().for_each(|(key, _)| self.stop(key));
        let idle = || stopped.iter().all(|(_, shared)| shared.totals().active == 0);
        // The threads have to hear of it before there is nothing to wait for.
        tokio::time::sleep(LOOK.min(most)).await;
        while !idle() && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
        let threads = std::mem::take(&mut self.threads);
        let ended = tokio::task::spawn_blocking(|| threads.into_iter().for_each(end));
        // A panic of theirs is told by them.
        let _ = ended.await;
    }

    /// What a Service says of the choice among its backends.
    fn rule(&self, serving: &Serving) {
        let zone = if serving.spec.cross_zone { None } else { self.options.zone.clone() };
        serving.backends.rule(Rules { affinity: serving.spec.affinity, zone });
    }

    /// For each address a socket a thread.
    fn open<'a>(
        &self,
        addresses: impl Iterator<Item = &'a SocketAddr>,
        owners: &HashMap<SocketAddr, ListenerKey>,
    ) -> (Sockets, Vec<(SocketAddr, io::Error)>) {
        let (mut opened, mut failed) = (HashMap::new(), Vec::new());
        for at in addresses.copied() {
            // The kernel would let two listeners of one process share the port, each with half of the connections.
            let sockets = match owners.contains_key(&at) {
                true => Err(io::ErrorKind::AddrInUse.into()),
                false => self.threads.iter().map(|_| relay::listen_beside(at)).collect::<io::Result<Vec<_>>>(),
            };
            match sockets {
                Ok(sockets) => drop(opened.insert(at, sockets)),
                Err(error) => failed.push((at, error)),
            }
        }
        (opened, failed)
    }

    /// Hands every thread its sockets.
    fn tell(&self, shared: &Arc<Shared>, new: bool, mut opened: Sockets, left: &[SocketAddr]) {
        for (commands, _) in &self.threads {
            let mine = opened.iter_mut().filter_map(|(at, sockets)| Some((*at, sockets.pop()?))).collect();
            Command::serve(shared.clone(), new, mine, left.to_vec()).give(commands);
        }
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often the end of connections is looked for.
const LOOK: Duration = Duration::from_millis(20);

fn end((commands, thread): (Commands, Option<JoinHandle<()>>)) {
    drop(commands);
    // A panic of a thread has been reported by the thread.
    let _ = thread.map(JoinHandle::join);
}

impl Drop for Engine {
    /// Ends everything at once.
    fn drop(&mut self) {
        // The threads end when nobody can command them any more; waiting for them here could block an async caller.
        self.threads.clear();
    }
}
