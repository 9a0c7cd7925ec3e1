//! Small HTTP servers for machines that ask whether all is well: bounded in connections, header sizes and time.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Connections of one port at a time. Who asks about health asks briefly; more is somebody who means no good.
const CONNECTIONS: usize = 128;
/// How long the head of a request may take to come.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a connection lives at most, whatever it does.
const LIFETIME: Duration = Duration::from_secs(60);
/// The largest head that is read. hyper takes no smaller bound.
const HEAD_SIZE: usize = 8192;
/// Connections the kernel keeps until they are taken.
const BACKLOG: i32 = 128;
/// How long to wait when no connection can be taken, as when all file descriptors are in use.
const BREATH: Duration = Duration::from_millis(100);

/// What is asked for.
#[derive(Debug)]
pub struct Question {
    /// The path, without a query.
    pub path: String,
    /// Headers.
    pub headers: HeaderMap,
}

/// The answer.
pub type Answer = Response<Full<Bytes>>;

/// An answer with a body of a type, as Go servers write it.
pub fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer.headers_mut().insert(NO_SNIFF, HeaderValue::from_static("nosniff"));
    answer
}

const NO_SNIFF: HeaderName = HeaderName::from_static("x-content-type-options");

/// What is answered where there is nothing.
pub fn not_found() -> Answer {
    answer(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", "404 page not found\n")
}

/// Listens. An IPv6 address stands for IPv6 alone: IPv4 has a listener of its own.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Answers until told to stop; connections end with it.
pub async fn serve<F>(
    listener: TcpListener,
    stop: CancellationToken,
    reply: impl Fn(Question) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%error, "a connection cannot be taken");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            },
        };
        // A connection too many is closed: waiting would make everybody wait.
        let Ok(place) = room.clone().try_acquire_owned() else { continue };
        let (stop, reply) = (stop.clone(), reply.clone());
        tokio::spawn(async move {
            let served = tokio::time::timeout(LIFETIME, connection(stream, reply));
            stop.run_until_cancelled(served).await;
            drop(place);
        });
    }
}

async fn connection<F>(stream: TcpStream, reply: impl Fn(Question) -> F)
where
    F: Future<Output = Answer>,
{
    let service = service_fn(|request: Request<Incoming>| {
        let question = Question { path: request.uri().path().to_owned(), headers: request.headers().clone() };
        let answer = reply(question);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_SIZE)
        // As kube-proxy writes them: some scripts compare.
        .title_case_headers(true)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::trace!(%error, "a connection ended badly");
    }
}

#[cfg(test)]
mod tests;
