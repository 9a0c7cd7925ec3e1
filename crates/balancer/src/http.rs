//! HTTP between clients and backends: which version a client speaks, and who serves it.
//!
//! ```text
//! serve --+-- h1: requests of HTTP/1 one by one --+-- exchange --> a backend that speaks HTTP/1, kept open in pool
//!         |                                       +-- bridge ----> a backend that speaks HTTP/2, in streams of shared connections
//!         +-- h2: streams of HTTP/2 side by side --- (both)
//! ```
//! What may be passed on is decided by `request`, `response`, `target`, `chunks` and `forwarded`, which know no sockets; how bytes
//! move is in `pump`, `buffer` and `tunnel`.

mod attempts;
mod body;
mod buffer;
pub mod chunks;
mod dial;
mod downgrade;
pub mod forwarded;
mod h1;
mod h2;
mod h2c;
pub mod head;
mod name;
mod pool;
mod pump;
mod record;
pub mod refusal;
pub mod request;
pub mod response;
mod rewound;
mod splice;
mod stream;
mod target;
mod tunnel;
mod watch;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use self::dial::Shared;
use self::forwarded::Forwarded;
use self::rewound::Rewound;
use crate::engine::Context;
use crate::serving::{Current, Ends};
use crate::tls::TlsFacts;

/// What is known of a client's connection.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) ends: Ends,
    pub(crate) forwarded: Forwarded,
    pub(crate) tls: Option<TlsFacts>,
    pub(crate) current: Arc<Current>,
    pub(crate) context: Context,
}

/// Serves one connection of a client to its end: HTTP/2 where it was agreed on in TLS, or begins with it; else HTTP/1.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: S,
    ends: Ends,
    tls: Option<TlsFacts>,
    current: Arc<Current>,
    context: Context,
) {
    let shared = context.own::<Shared>();
    shared.buffers.count_pipes(&context.thread().pipe_count);
    let forwarded = Forwarded::new(&ends, tls.is_some());
    let connection = Connection { ends, forwarded, tls, current, context };
    if connection.tls.as_ref().is_some_and(|tls| tls.alpn == Some("h2")) {
        return Box::pin(h2::serve(stream, connection, shared)).await;
    }
    let mut session = h1::Session::new(stream, connection, shared);
    match session.opening().await {
        Opening::Other => session.run().await,
        Opening::Http2 => {
            let (first, stream, connection, shared) = session.into_parts();
            Box::pin(h2::serve(Rewound::new(first, stream), connection, shared)).await;
        }
    }
}

/// Closes a connection to a backend that waits for a request on this thread.
pub(crate) fn close_idle_backend(context: &Context) {
    context.own::<Shared>().pool.close_one();
}

/// What a client begins with.
enum Opening {
    /// The words of HTTP/2.
    Http2,
    /// Something else, perhaps nothing.
    Other,
}

#[cfg(test)]
mod tests;
