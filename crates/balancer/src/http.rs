//! HTTP between clients and backends.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::engine::Context;
use crate::engine::secure::TlsFacts;
use crate::serving::{Current, Ends};

/// Serves one connection of a client to its end.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: S,
    ends: Ends,
    tls: Option<TlsFacts>,
    current: Arc<Current>,
    context: Context,
) {
    let _ = (stream, ends, tls, current, context);
}
