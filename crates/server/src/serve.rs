//! The listener: TLS connections in, requests to the API out. Everything a stranger can use up is bounded here: connections,
//! time for a handshake, time for a header, requests at a time.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls_pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt};

use crate::auth::certificate::Checked;

pub mod certificates;
pub mod files;
pub mod in_flight;
pub mod kubeconfig;
#[cfg(test)]
mod tests;
pub mod tls;

/// The largest request body that is read, as in Kubernetes.
pub const BODY_LIMIT: usize = 3 << 20;

/// What a request knows of its connection; found among the request's extensions.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The client's address.
    pub peer: SocketAddr,
    /// The client's certificate and those that lead to its authority. The client has the key; nothing else is checked yet.
    pub certificates: Arc<[CertificateDer<'static>]>,
    /// What was found out about the certificate, so that it is not checked with every request.
    pub(crate) checked: Arc<OnceLock<Checked>>,
}

impl Connection {
    /// A connection on which nothing was asked yet.
    pub fn new(peer: SocketAddr, certificates: Arc<[CertificateDer<'static>]>) -> Connection {
        Connection { peer, certificates, checked: Arc::default() }
    }
}

/// What a stranger may use up.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at a time. Further ones wait in the kernel's queue.
    pub connections: usize,
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// Time for the header of a request.
    pub header: Duration,
    /// Requests at a time on one HTTP/2 connection, watches among them.
    pub streams: u32,
    /// Time for requests to end when the server stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 10_000,
            handshake: Duration::from_secs(10),
            header: Duration::from_secs(32),
            streams: 250,
            drain: Duration::from_secs(10),
        }
    }
}

/// How long to wait before accepting again after the system refused, as when file descriptors run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often an HTTP/2 client is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Serves connections until told to stop, then lets requests end for a while. Each new connection uses the newest
/// configuration.
pub async fn serve<S, B>(
    listener: TcpListener,
    tls: watch::Receiver<Arc<ServerConfig>>,
    service: S,
    limits: Limits,
    stop: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let limits = Arc::new(limits);
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let place = tokio::select! {
            place = places.clone().acquire_owned() => place.expect("the semaphore is never closed"),
            () = stop.cancelled() => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let tls = TlsAcceptor::from(tls.borrow().clone());
        let (service, limits, stop) = (service.clone(), limits.clone(), stop.clone());
        connections.spawn(async move {
            let _place = place;
            connect(stream, peer, tls, service, &limits, stop).await;
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    drain(connections, limits.drain).await;
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
    limits: &Limits,
    stop: CancellationToken,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    // Small answers must not wait for more to send.
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(limits.handshake, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%peer, %error, "TLS handshake failed"),
        Err(_) => return tracing::debug!(%peer, "TLS handshake took too long"),
    };
    let connection = Connection::new(peer, certificates_of(&stream));
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        service.clone().oneshot(request)
    });
    let two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let stream = TokioIo::new(stream);
    // The protocol is the one agreed on in the handshake: looking for it in the first bytes would wait for ever for a client
    // that sends none.
    let ended = match two {
        true => {
            let connection = http2(limits).serve_connection(stream, service);
            drive(connection, |connection| connection.graceful_shutdown(), stop).await
        }
        false => {
            let connection = http1(limits).serve_connection(stream, service).with_upgrades();
            drive(connection, |connection| connection.graceful_shutdown(), stop).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended");
    }
}

/// Serves a connection to its end; when told to stop, only what was begun.
async fn drive<C>(connection: C, shut_down: impl Fn(Pin<&mut C>), stop: CancellationToken) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    tokio::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            shut_down(connection.as_mut());
            connection.await
        }
    }
}

fn http1(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.header);
    builder
}

fn http2(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL);
    builder
}

fn certificates_of(stream: &TlsStream<TcpStream>) -> Arc<[CertificateDer<'static>]> {
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    certificates.iter().map(|certificate| certificate.clone().into_owned()).collect()
}
