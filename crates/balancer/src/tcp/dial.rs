//! Finds a backend that accepts a connection: when one does not, the next is asked. Nothing has been sent by then, so that is
//! always safe.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use fairlead_kernel::relay;
use tokio::net::TcpStream;

use crate::backends::Chosen;
use crate::engine::context::{Context, Phase};
use crate::serving::Serving;

/// How many backends are asked for one connection.
pub const TRIES: usize = 3;

/// A connection to a backend.
#[derive(Debug)]
pub struct Dialled {
    /// The connection. It sends at once what is written to it.
    pub stream: TcpStream,
    /// The backend.
    pub chosen: Chosen,
}

/// Connects to the next backend of a client that accepts. `tried` has those that did not, before and afterwards.
pub async fn dial(
    serving: &Serving,
    client: SocketAddr,
    tried: &mut Vec<SocketAddr>,
    limit: Duration,
    context: &Context,
) -> Option<Dialled> {
    while tried.len() < TRIES {
        let Some(chosen) = serving.backends.choose(serving.spec.choice, client, tried) else { break };
        let connected = tokio::select! {
            biased;
            connected = connect(chosen.address(), limit) => connected,
            () = poll_fn(|cx| context.poll_phase(Phase::Over, cx)) => return None,
        };
        match connected {
            Ok(stream) => {
                chosen.succeeded();
                return Some(Dialled { stream, chosen });
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

/// Connects, in so much time.
pub async fn connect(to: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::from_std(relay::connect(to)?)?;
    match tokio::time::timeout(limit, stream.writable()).await {
        Ok(ready) => ready?,
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    }
    match stream.take_error()? {
        Some(error) => Err(error),
        None => Ok(stream),
    }
}

/// Whether a failure says nothing of the backend: this machine has no more ports, descriptors or memory.
fn is_ours(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse | io::ErrorKind::OutOfMemory)
        || error.raw_os_error().is_some_and(|number| matches!(number, 23 | 24 | 105))
}
