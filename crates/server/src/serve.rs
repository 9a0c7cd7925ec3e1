//! The listener: TLS connections in, requests to the API out. Everything a stranger can use up is
//! bounded here: connections in all and per address, time for a handshake, a header and an answer,
//! bytes of answers that wait for their clients.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairlead_runtime::MachineLimits;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls_pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt};

use crate::auth::User;
use crate::auth::certificate::Checked;
use answer::Answer;
use connections::Link;
use greeting::Greeting;

mod answer;
pub mod certificates;
pub mod connections;
pub mod files;
mod greeting;
pub mod in_flight;
pub mod kubeconfig;
#[cfg(test)]
mod tests;
pub mod tls;

pub use answer::HeldBytes;
pub use connections::Connections;

/// The largest request body that is read, as in Kubernetes.
pub const BODY_LIMIT: usize = 3 << 20;

/// The connection of a request; found among the request's extensions.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The client's address.
    pub peer: SocketAddr,
    /// The client's certificate and those that lead to its authority. The client has the key; nothing else is checked yet.
    pub certificates: Arc<[CertificateDer<'static>]>,
    /// The result of checking the certificate, so that it is not checked with every request.
    pub(crate) checked: Arc<OnceLock<Checked>>,
    link: Arc<Link>,
}

impl Connection {
    /// A connection on which nothing was asked yet.
    pub fn new(peer: SocketAddr, certificates: Arc<[CertificateDer<'static>]>) -> Connection {
        Connection { peer, certificates, checked: Arc::default(), link: Link::detached(peer) }
    }

    /// Records that a request on this connection was authenticated. Connections of strangers give
    /// way to others.
    pub(crate) fn vouch(&self, user: &User) {
        self.link.vouch(user);
    }
}

/// Bounds of connections and of what waits on them.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum number of connections. A newcomer displaces the idlest connection of a stranger.
    pub connections: usize,
    /// Connections out of [`Limits::connections`] that only clients have whose credentials were
    /// accepted.
    pub reserved: usize,
    /// Maximum number of connections from one address, or /64 of IPv6. Loopback addresses are
    /// bounded by the total alone.
    pub per_address: usize,
    /// Maximum number of connections that have not finished their handshake; an eighth of it per
    /// address.
    pub handshakes: usize,
    /// Time for the TLS handshake and the first bytes of the protocol it agreed on.
    pub handshake: Duration,
    /// Time for the header of a request.
    pub header: Duration,
    /// Time that a connection may be without a request, as kube-apiserver's `IdleTimeout`.
    pub idle: Duration,
    /// Time in which each piece of an answer (at most [`PIECE`] bytes, and [`SEND_BUFFER`] before
    /// it) must be taken: a least rate of about 1 KB/s.
    pub stall: Duration,
    /// Maximum number of requests on one HTTP/2 connection, watches among them.
    pub streams: u32,
    /// Maximum number of open requests on connections without credentials, an eighth of it per
    /// address.
    pub strangers_requests: usize,
    /// Maximum of bytes of answers that wait for their clients.
    pub answers: u64,
    /// The part of [`Limits::answers`] that one user may hold.
    pub answers_per_user: u64,
    /// Time for requests to end when the server stops.
    pub drain: Duration,
}

/// Maximum length of the pieces in which answers are handed to the protocol, in bytes.
pub const PIECE: usize = 32 << 10;
/// Bytes that HTTP/2 buffers for a stream before it asks for no more. hyper's own default, 400 KiB,
/// would let each of thousands of watches hold as much.
pub const SEND_BUFFER: usize = 16 << 10;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 10_000,
            reserved: 2_000,
            per_address: 1_250,
            handshakes: 1_000,
            handshake: Duration::from_secs(10),
            header: Duration::from_secs(32),
            idle: Duration::from_secs(90),
            stall: Duration::from_secs(30),
            streams: 250,
            strangers_requests: 4_096,
            answers: 96 << 20,
            answers_per_user: 24 << 20,
            drain: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// Returns the defaults for a machine: connections use at most a third of the descriptors that
    /// clients may use, and answers that wait at most an eighth of the memory.
    pub fn of(machine: MachineLimits) -> Limits {
        let usual = Limits::default();
        let descriptors = usize::try_from(machine.client_descriptors() / 3).unwrap_or(usize::MAX);
        let connections = usual.connections.min(descriptors).max(16);
        let answers = usual.answers.min(machine.memory / 8);
        Limits {
            connections,
            reserved: connections / 5,
            per_address: (connections / 8).max(8),
            handshakes: usual.handshakes.min(connections / 4).max(8),
            answers,
            answers_per_user: answers / 4,
            ..usual
        }
    }
}

/// Time to wait before accepting again after the system refused, as when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time between two log lines about connections that could not be accepted.
const ACCEPT_LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Interval at which an HTTP/2 client is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum size of the header list of an HTTP/2 request (RFC 9113, 6.5.2), hyper's default.
const HEADER_LIST: u32 = 16 << 10;
/// Maximum size of what HTTP/1 buffers: the head of a request, and answers that are not written.
const HTTP1_BUFFER: usize = 128 << 10;
/// Window of an HTTP/2 request body, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;
/// Window of all request bodies of an HTTP/2 connection, in bytes.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// Streams that the client reset before they were accepted, until the connection ends
/// (CVE-2023-44487), h2's default.
const PENDING_RESETS: usize = 20;
/// Streams that were reset for mistakes of the client, until the connection ends
/// (RUSTSEC-2024-0003), hyper's default.
const LOCAL_RESETS: usize = 1024;

/// Serves connections until told to stop, then lets requests end for a while. Each new connection uses the newest
/// configuration. Listeners that are given clones of the same [`Connections`] share their bounds.
pub async fn serve<S, B>(
    listener: TcpListener,
    tls: watch::Receiver<Arc<ServerConfig>>,
    service: S,
    connections: impl Into<Connections>,
    stop: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let connections = connections.into();
    let mut tasks = JoinSet::new();
    let watchman = tokio::spawn({
        let connections = connections.clone();
        async move { connections.watch().await }
    });
    let mut refusals = 0u64;
    let mut logged: Option<Instant> = None;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        while tasks.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                refusals += 1;
                if logged.is_none_or(|at| at.elapsed() >= ACCEPT_LOG_INTERVAL) {
                    tracing::warn!("api: cannot accept connections, {refusals} times so far: {error}");
                    logged = Some(Instant::now());
                }
                connections.make_room();
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // The budget that is used up has counted and logged the refusal.
        let Some(link) = connections.admit(peer) else { continue };
        let acceptor = TlsAcceptor::from(tls.borrow().clone());
        let (service, connections, stop) = (service.clone(), connections.clone(), stop.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = connect(stream, peer, acceptor, service, &connections, &link, stop) => {}
                () = link.cut() => {}
            }
            connections.remove(&link);
        });
    }
    drop(listener);
    drain(tasks, connections.limits().drain).await;
    watchman.abort();
}

/// Waits for connections to end; cuts those that do not.
async fn drain(mut connections: JoinSet<()>, deadline: Duration) {
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(deadline, all).await.is_err() {
        tracing::info!(connections = connections.len(), "closing connections that did not end in time");
        connections.shutdown().await;
    }
}

async fn connect<S, B>(
    stream: TcpStream,
    peer: SocketAddr,
    tls: TlsAcceptor,
    service: S,
    connections: &Connections,
    link: &Arc<Link>,
    stop: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let limits = connections.limits();
    // Small answers must not wait for more to send.
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(limits.handshake, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%peer, %error, "TLS handshake failed"),
        Err(_) => return tracing::debug!(%peer, "TLS handshake took too long"),
    };
    let certificates = certificates_of(&stream);
    let connection = Connection { peer, certificates, checked: Arc::default(), link: link.clone() };
    let service = service_fn(move |mut request: Request<Incoming>| {
        let open = connection.link.open();
        request.extensions_mut().insert(connection.clone());
        let answer = open.is_some().then(|| service.clone().oneshot(request));
        async move {
            match (open, answer) {
                (Some(open), Some(answer)) => answer.await.map(|answer| Answer::new(answer, open)),
                _ => Ok(Answer::refusal()),
            }
        }
    });
    let two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    if !two {
        // HTTP/1 has a time for the head of the first request.
        link.greet();
    }
    let stream = TokioIo::new(Greeting::new(stream, link.clone()));
    // The protocol is the one agreed on in the handshake: looking for it in the first bytes would wait for ever for a client
    // that sends none.
    let ended = match two {
        true => {
            let connection = http2(limits).serve_connection(stream, service);
            drive(connection, |connection| connection.graceful_shutdown(), stop, link).await
        }
        false => {
            let connection = http1(limits).serve_connection(stream, service).with_upgrades();
            drive(connection, |connection| connection.graceful_shutdown(), stop, link).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended");
    }
}

/// Serves a connection to its end; when told to stop, or idle for too long, only what was begun.
async fn drive<C>(
    connection: C,
    shut_down: impl Fn(Pin<&mut C>),
    stop: CancellationToken,
    link: &Link,
) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    tokio::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stop.cancelled() => {}
        () = link.leave() => {}
    }
    shut_down(connection.as_mut());
    connection.await
}

fn http1(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(HTTP1_BUFFER);
    builder
}

/// Every bound is named: hyper's defaults are not part of its stability promise.
fn http2(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(HEADER_LIST)
        .max_send_buf_size(SEND_BUFFER)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(LOCAL_RESETS)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL);
    builder
}

fn certificates_of(stream: &TlsStream<TcpStream>) -> Arc<[CertificateDer<'static>]> {
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    certificates.iter().map(|certificate| certificate.clone().into_owned()).collect()
}
