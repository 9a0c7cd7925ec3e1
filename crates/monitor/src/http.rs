//! Small HTTP servers for machines that ask whether all is well: bounded in connections, header sizes and time.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use fairlead_runtime::{Account, AtLimit, Limits, Slot, SlotTable};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use deadline::WriteDeadline;

mod deadline;

/// Maximum number of connections to all such servers of a process, where descriptors allow it.
/// Health checks and scrapes are short.
const CONNECTIONS: u64 = 512;
/// Part of the connections that one client may hold.
const CLIENT_PART: u64 = 8;
/// Time without progress after which a client that does not read its answer is disconnected.
const WRITE_TIME: Duration = Duration::from_secs(10);
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

/// Connections to the servers of this process.
static PROCESS: OnceLock<SlotTable> = OnceLock::new();

/// Counts connections to all servers of this process in its account, as budget `monitor
/// connections`. Without a call, or after the first server has begun, they are bounded without
/// being counted there.
pub fn bound_by(account: &Account) {
    let _ = PROCESS.set(connections(account));
}

/// Returns a table for connections of health checks and scrapes: a 16th of the descriptors that
/// clients may use.
fn connections(account: &Account) -> SlotTable {
    let total = (account.machine().client_descriptors() / 16).clamp(CLIENT_PART, CONNECTIONS);
    let limits = Limits { total, per_sender: (total / CLIENT_PART).max(CLIENT_PART) };
    SlotTable::new(account.budget("monitor connections", limits), AtLimit::ReplaceIdlest)
}

/// Answers until told to stop; connections end with it. All servers of the process share the places
/// for connections: when all are in use, the idlest connection of the client with most of them is
/// closed.
pub async fn serve<F>(
    listener: TcpListener,
    stop: CancellationToken,
    reply: impl Fn(Question) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    let table = PROCESS.get_or_init(|| connections(&Account::default())).clone();
    serve_within(listener, table, stop, reply).await;
}

async fn serve_within<F>(
    listener: TcpListener,
    table: SlotTable,
    stop: CancellationToken,
    reply: impl Fn(Question) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    loop {
        let (stream, from) = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%error, "a connection cannot be taken");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            },
        };
        let closed = stop.child_token();
        let evicted = closed.clone();
        // Without a place the connection is closed: waiting would make all clients wait.
        let Ok(slot) = table.admit(from.ip(), move || evicted.cancel()) else { continue };
        let reply = reply.clone();
        tokio::spawn(async move {
            let served = tokio::time::timeout(LIFETIME, connection(stream, &slot, reply));
            closed.run_until_cancelled(served).await;
            drop(slot);
        });
    }
}

async fn connection<F>(stream: TcpStream, slot: &Slot, reply: impl Fn(Question) -> F)
where
    F: Future<Output = Answer>,
{
    let service = service_fn(|request: Request<Incoming>| {
        slot.touch();
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
        .serve_connection(TokioIo::new(WriteDeadline::new(stream, WRITE_TIME)), service);
    if let Err(error) = served.await {
        tracing::trace!(%error, "a connection ended badly");
    }
}

#[cfg(test)]
mod tests;
