//! Do backends answer? One thread looks at all of them in turn, as each load balancer asks, and tells their [`Backends`].
//!
//! Cloud load balancers stand in front of Nodes. There the check of a Service with `externalTrafficPolicy: Cluster` is the
//! node proxy's `:10256/healthz`, and with `Local` the Service's `healthCheckNodePort`, which says whether (and by the header
//! `X-Load-Balancing-Endpoint-Weight` how often) the Node has an endpoint. The node proxy answers both for such balancers.
//! This one goes to Pods directly, with no node port in between: who is ready comes from the EndpointSlices, and what is
//! checked is the Pod itself.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fairlead_probe::{Check as Look, Http, Schedule, Scheme, State, Tally};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::Instant;

use crate::backends::{Backends, Health};
use crate::engine::ListenerKey;
use crate::engine::orders::{Giver, Taker, orders};
use crate::proxy_header;
use crate::serving::Serving;
use crate::spec::{Check, How, ProxyVersion};

/// How many looks are under way at once. Each takes a descriptor; what waits for its turn is late, not lost.
const LOOKS: usize = 256;
/// A backend that is new is looked at within this time, however long the interval is.
const FIRST: Duration = Duration::from_secs(1);

/// The thread that looks.
#[derive(Debug)]
pub struct Checks {
    orders: Giver<ListenerKey, Order>,
}

#[derive(Debug)]
enum Order {
    /// Look at it; `new`: the thread has not heard of it.
    Watch {
        watched: Watched,
        new: bool,
    },
    Forget,
}

/// How the backends of a listener are looked at.
#[derive(Debug, Clone)]
struct Watched {
    backends: Arc<Backends>,
    check: Check,
    /// The header backends await before anything else.
    proxy: Option<ProxyVersion>,
}

impl Checks {
    /// Starts the thread. It ends when this is dropped.
    pub fn start() -> io::Result<Checks> {
        let (orders, taker) = orders();
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let work = move || LocalSet::new().block_on(&runtime, obey(taker));
        std::thread::Builder::new().name("balancer-checks".to_owned()).spawn(work)?;
        Ok(Checks { orders })
    }

    /// Looks at the backends of a listener, which may be a new one, from now on, and as it says now.
    pub fn watch(&self, key: &ListenerKey, serving: &Serving, new: bool) {
        let watched = Watched {
            backends: serving.backends.clone(),
            check: serving.spec.check.clone(),
            proxy: serving.listener.send_proxy,
        };
        self.orders.give(key.clone(), |waits| {
            let new = match waits {
                None => new,
                Some(Order::Watch { new, .. }) => new,
                Some(Order::Forget) => false,
            };
            Some(Order::Watch { watched, new })
        });
    }

    /// Looks at them no more.
    pub fn forget(&self, key: &ListenerKey) {
        let known = |order: &Order| !matches!(order, Order::Watch { new: true, .. });
        self.orders.give(key.clone(), |waits| waits.is_none_or(|order| known(&order)).then_some(Order::Forget));
    }
}

async fn obey(orders: Taker<ListenerKey, Order>) {
    let looks = Rc::new(Semaphore::new(LOOKS));
    let mut listeners: HashMap<ListenerKey, (Watched, Task)> = HashMap::new();
    while let Some(all) = orders.take().await {
        for (key, order) in all {
            match order {
                Order::Forget => drop(listeners.remove(&key)),
                Order::Watch { watched, .. } => {
                    let same = listeners.get(&key).is_some_and(|(old, _)| old.is(&watched));
                    if !same {
                        let task = Task(spawn_local(follow(watched.clone(), looks.clone())));
                        listeners.insert(key, (watched, task));
                    }
                }
            }
        }
    }
}

impl Watched {
    fn is(&self, other: &Watched) -> bool {
        Arc::ptr_eq(&self.backends, &other.backends) && self.check == other.check && self.proxy == other.proxy
    }

    /// What is looked at for a backend.
    fn look(&self, backend: SocketAddr) -> Look {
        let host = backend.ip().to_string();
        let port = self.check.port.unwrap_or(backend.port());
        match &self.check.how {
            How::Tcp => Look::Tcp { host, port },
            How::Http { tls, path } => Look::Http(Http {
                scheme: if *tls { Scheme::Https } else { Scheme::Http },
                host,
                port,
                path: path.clone(),
                headers: Vec::new(),
            }),
        }
    }
}

/// A task that ends with this.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Has a task for each backend of a listener.
async fn follow(watched: Watched, looks: Rc<Semaphore>) {
    let watched = Rc::new(watched);
    let mut changes = watched.backends.subscribe();
    let mut tasks: HashMap<SocketAddr, Task> = HashMap::new();
    loop {
        let now: Vec<SocketAddr> = watched.backends.all().into_iter().map(|backend| backend.address).collect();
        tasks.retain(|address, _| now.contains(address));
        for address in now {
            let task = || Task(spawn_local(watch(watched.clone(), address, looks.clone())));
            tasks.entry(address).or_insert_with(task);
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Looks at a backend again and again.
async fn watch(watched: Rc<Watched>, backend: SocketAddr, looks: Rc<Semaphore>) {
    let check = &watched.check;
    let first = FIRST.min(check.interval).mul_f64(fastrand::f64());
    let schedule = Schedule {
        initial_delay: first,
        period: check.interval,
        timeout: check.timeout,
        success_threshold: check.healthy,
        failure_threshold: check.unhealthy,
    };
    let (begun, look) = (Instant::now(), watched.look(backend));
    let mut tally = Tally::new(schedule, State::Unknown);
    loop {
        // A tenth of the interval early or late, so that looks begun together drift apart.
        let jitter = check.interval.mul_f64(fastrand::f64() * 0.1);
        tokio::time::sleep_until(begun + tally.due() + jitter).await;
        let Ok(turn) = looks.acquire().await else { return };
        let outcome = look_once(&watched, &look, backend).await;
        drop(turn);
        match tally.count(begun.elapsed(), outcome.is_success()) {
            Some(State::Healthy) => watched.backends.report(backend, Health::Healthy),
            Some(State::Unhealthy) => {
                tracing::info!(%backend, why = outcome.message(), "a backend is unhealthy");
                watched.backends.report(backend, Health::Unhealthy);
            }
            _ => {}
        }
    }
}

async fn look_once(watched: &Watched, look: &Look, backend: SocketAddr) -> fairlead_probe::Outcome {
    let timeout = watched.check.timeout;
    let Some(version) = watched.proxy else { return fairlead_probe::look(look, timeout).await };
    let dial = |host: String, port: u16| async move {
        let mut stream = TcpStream::connect((host, port)).await?;
        // A look leaves nothing behind.
        stream.set_zero_linger()?;
        stream.set_nodelay(true)?;
        // Only where traffic goes a header is awaited.
        if port == backend.port() {
            let mut header = Vec::new();
            proxy_header::write_own(version, &mut header);
            stream.write_all(&header).await?;
        }
        io::Result::Ok(stream)
    };
    fairlead_probe::look_with(look, timeout, dial).await
}
