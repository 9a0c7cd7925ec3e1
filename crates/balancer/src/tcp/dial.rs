//! Finds a backend that accepts a connection: when one does not, the next is asked. Nothing has been sent by then, so that is
//! always safe.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use fairlead_kernel::relay;
use tokio::net::TcpStream;

use crate::backends::Chosen;
use crate::engine::backend_permits::BackendPermit;
use crate::engine::context::{Context, Phase};
use crate::engine::deadline::Deadline;
use crate::http;
use crate::serving::Serving;

/// How many backends are asked for one connection.
const TRIES: usize = 3;

/// A connection to a backend.
#[derive(Debug)]
pub(super) struct Dialled {
    /// The connection. It sends at once what is written to it.
    pub(super) stream: TcpStream,
    /// The backend.
    pub(super) chosen: Chosen,
    /// Counts the connection.
    pub(super) permit: BackendPermit,
}

/// Connects to the next backend of a client that accepts before the deadline, which is put off for each but the first. `tried`
/// has those that did not, before and afterwards.
pub(super) async fn dial(
    serving: &Serving,
    client: SocketAddr,
    tried: &mut Vec<SocketAddr>,
    deadline: &mut Deadline,
    context: &Context,
) -> Option<Dialled> {
    while tried.len() < TRIES {
        let Some(chosen) = serving.backends.choose(serving.spec.choice, client, tried) else { break };
        if !tried.is_empty() {
            deadline.put_off(context.thread().options().connect);
        }
        let Some(permit) = permit(chosen.address(), context).await else { break };
        match reach(chosen.address(), deadline, context).await {
            Ok(stream) => {
                chosen.succeeded();
                return Some(Dialled { stream, chosen, permit });
            }
            Err(error) => {
                context.counters().dial_failures.add(1);
                if !is_ours(&error) {
                    chosen.failed();
                }
                tried.push(chosen.address());
            }
        }
    }
    context.counters().no_backend.add(1);
    None
}

/// Waits until there may be a connection to this backend. A connection to a backend that HTTP keeps
/// open gives way.
async fn permit(to: SocketAddr, context: &Context) -> Option<BackendPermit> {
    let thread = context.thread();
    let room = || {
        http::close_idle_backend(context);
        thread.memory.end_stalled(None);
    };
    Box::pin(thread.backends.acquire(to, thread.options().connect, room)).await
}

/// Connects, in so much time.
pub async fn connect(to: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let mut deadline = Deadline::after(limit);
    finish(relay::connect(to)?, |cx| deadline.poll(cx).map(|()| io::ErrorKind::TimedOut.into())).await
}

/// Connects before the deadline, and while the connection it is for goes on.
async fn reach(to: SocketAddr, deadline: &mut Deadline, context: &Context) -> io::Result<TcpStream> {
    let given_up = |cx: &mut Task<'_>| match context.poll_phase(Phase::Over, cx) {
        Poll::Ready(()) => Poll::Ready(io::ErrorKind::Interrupted.into()),
        Poll::Pending => deadline.poll(cx).map(|()| io::ErrorKind::TimedOut.into()),
    };
    finish(relay::connect(to)?, given_up).await
}

/// Waits until a connection is one, unless it is given up before.
async fn finish(
    begun: std::net::TcpStream,
    mut given_up: impl FnMut(&mut Task<'_>) -> Poll<io::Error>,
) -> io::Result<TcpStream> {
    let stream = TcpStream::from_std(begun)?;
    poll_fn(|cx| match stream.poll_write_ready(cx) {
        Poll::Pending => given_up(cx).map(Err),
        ready => ready,
    })
    .await?;
    match stream.take_error()? {
        Some(error) => Err(error),
        None => Ok(stream),
    }
}

/// Whether a failure says nothing of the backend: this machine has no more ports, descriptors (ENFILE, EMFILE) or memory
/// (ENOBUFS), or nobody waits any more.
fn is_ours(error: &io::Error) -> bool {
    use io::ErrorKind::{AddrInUse, AddrNotAvailable, Interrupted, OutOfMemory};
    matches!(error.kind(), AddrNotAvailable | AddrInUse | OutOfMemory | Interrupted)
        || error.raw_os_error().is_some_and(|number| matches!(number, 23 | 24 | 105))
}
