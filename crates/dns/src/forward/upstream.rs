//! One server that is asked, and whether it is well.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fairlead_runtime::{Budget, Permit};
use fairlead_zone::message::Message;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::exchange::{self, Datagram};
use crate::ask::{Ask, Transport};
use crate::metrics::Metrics;
use crate::settings::{self, HealthCheck};
use crate::words;

/// Maximum number of idle connections that are kept for an upstream.
const IDLE: usize = 32;

/// A server that is asked.
#[derive(Debug)]
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    max_fails: u32,
    health_check: HealthCheck,
    /// Whether checks are made by TCP.
    force_tcp: bool,
    read_timeout: Duration,
    /// Checks that failed one after the other.
    fails: AtomicU32,
    /// Whether somebody checks.
    checking: AtomicBool,
    tcp: Idle<Connection>,
    /// Sockets to all upstreams of the process.
    sockets: Budget,
    metrics: Metrics,
}

/// A connection to an upstream.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    _socket: Permit,
}

/// Sockets that nobody uses now, and since when.
#[derive(Debug)]
struct Idle<T> {
    sockets: Mutex<Vec<(Instant, T)>>,
    expire: Duration,
}

impl<T> Idle<T> {
    fn new(expire: Duration) -> Idle<T> {
        Idle { sockets: Mutex::default(), expire }
    }

    fn take(&self) -> Option<T> {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.retain(|(since, _)| since.elapsed() < self.expire);
        sockets.pop().map(|(_, socket)| socket)
    }

    fn put(&self, socket: T) {
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        if sockets.len() < IDLE {
            sockets.push((Instant::now(), socket));
        }
    }
}

impl Upstream {
    pub(super) fn new(
        address: SocketAddr,
        settings: &settings::Forward,
        metrics: Metrics,
        sockets: Budget,
    ) -> Upstream {
        Upstream {
            address,
            max_fails: settings.max_fails,
            health_check: settings.health_check.clone(),
            force_tcp: settings.transport == settings::Transport::ForceTcp,
            read_timeout: settings.read_timeout,
            fails: AtomicU32::new(0),
            checking: AtomicBool::new(false),
            tcp: Idle::new(settings.expire),
            sockets,
            metrics,
        }
    }

    /// Whether nobody should ask there.
    pub(super) fn is_down(&self) -> bool {
        self.max_fails > 0 && self.fails.load(Ordering::Relaxed) > self.max_fails
    }

    /// Records an answer to a question: the upstream is well, whatever it says to checks.
    pub(super) fn answered(&self) {
        // Most upstreams are well: the shared word is only written when it changes.
        if self.fails.load(Ordering::Relaxed) > 0 {
            self.fails.store(0, Ordering::Relaxed);
        }
    }

    /// Asks. What does not fit into a datagram, or is about to be forged, is asked for again by
    /// TCP.
    pub(super) async fn ask(&self, ask: &Ask, tcp: bool) -> io::Result<Message> {
        let limit = self.read_timeout;
        if tcp {
            return timed(limit, self.by_tcp(ask)).await;
        }
        match timed(limit, self.by_udp(ask)).await? {
            Datagram::Answer(message) if !message.is_truncated() => Ok(message),
            // Half an answer is better than none.
            Datagram::Answer(message) => Ok(timed(limit, self.by_tcp(ask)).await.unwrap_or(message)),
            Datagram::Flooded => timed(limit, self.by_tcp(ask)).await,
        }
    }

    /// Asks by datagram, with a socket for this question alone: a forger must guess its port as
    /// well as its number.
    async fn by_udp(&self, ask: &Ask) -> io::Result<Datagram> {
        self.metrics.connected(self.address, "udp", false);
        let _socket = self.socket()?;
        let socket = exchange::connect_udp(self.address).await?;
        exchange::udp(&socket, ask).await
    }

    /// Acquires the right to a socket.
    fn socket(&self) -> io::Result<Permit> {
        let permit = self.sockets.acquire_unattributed(1);
        permit.map_err(|_| {
            io::Error::other(format!("all {} sockets to upstreams are in use", self.sockets.limits().total))
        })
    }

    async fn by_tcp(&self, ask: &Ask) -> io::Result<Message> {
        // The other side may have closed one that was idle: that says nothing.
        while let Some(mut connection) = self.tcp.take() {
            self.metrics.connected(self.address, "tcp", true);
            if let Ok(message) = exchange::tcp(&mut connection.stream, ask).await {
                self.tcp.put(connection);
                return Ok(message);
            }
        }
        self.metrics.connected(self.address, "tcp", false);
        let permit = self.socket()?;
        let stream = TcpStream::connect(self.address).await?;
        let mut connection = Connection { stream, _socket: permit };
        let message = exchange::tcp(&mut connection.stream, ask).await?;
        self.tcp.put(connection);
        Ok(message)
    }

    /// Checks it again and again until it answers, unless somebody does already.
    pub(super) fn check(self: Arc<Self>) {
        if self.max_fails == 0 || self.checking.swap(true, Ordering::Relaxed) {
            return;
        }
        // Who is not asked any more is not checked any more either.
        let (weak, interval) = (Arc::downgrade(&self), self.health_check.interval);
        tokio::spawn(async move {
            while let Some(upstream) = weak.upgrade() {
                if upstream.is_well().await {
                    upstream.fails.store(0, Ordering::Relaxed);
                    upstream.checking.store(false, Ordering::Relaxed);
                    return;
                }
                upstream.fails.fetch_add(1, Ordering::Relaxed);
                upstream.metrics.healthcheck_failed(upstream.address);
                drop(upstream);
                tokio::time::sleep(interval).await;
            }
        });
    }

    /// Whether it answers at all, whatever it says.
    async fn is_well(&self) -> bool {
        let ask = Ask {
            name: self.health_check.domain.clone(),
            rtype: words::NS,
            class: words::IN,
            edns: None,
            recursion: self.health_check.recursion,
            unchecked: false,
            client: self.address.ip(),
            transport: Transport::Udp,
            depth: 0,
        };
        let limit = Duration::from_secs(1);
        match self.force_tcp {
            true => timed(limit, self.by_tcp(&ask)).await.is_ok(),
            false => matches!(timed(limit, self.by_udp(&ask)).await, Ok(Datagram::Answer(_))),
        }
    }
}

async fn timed<T>(limit: Duration, exchange: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(limit, exchange).await.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "i/o timeout")))
}
