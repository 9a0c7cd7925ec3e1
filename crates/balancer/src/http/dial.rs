//! A connection to a backend: one that waits, or a new one.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::buffer::{Buffers, Inlet};
use super::h2c::Lines;
use super::pool::Pool;
use super::refusal::Refusal;
use super::stream::Stream;
use crate::tcp;
use crate::tls::ClientTls;

/// What all HTTP connections of a thread share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) buffers: Buffers,
    pub(crate) pool: Rc<Pool>,
    pub(crate) lines: Rc<Lines>,
}

/// A connection to a backend, with what was read from it.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) stream: Stream,
    pub(crate) inlet: Inlet,
    /// It was used before: that it is closed says nothing of the backend.
    pub(crate) reused: bool,
}

impl Backend {
    pub(crate) fn reused(stream: Stream) -> Backend {
        Backend { stream, inlet: Inlet::default(), reused: true }
    }

    pub(crate) fn new(stream: Stream) -> Backend {
        Backend { stream, inlet: Inlet::default(), reused: false }
    }
}

/// A new connection.
pub(crate) async fn connect(to: SocketAddr, tls: Option<&Arc<ClientTls>>, most: Duration) -> Result<Stream, Refusal> {
    let connecting = async {
        let stream = tcp::dial::connect(to, most).await?;
        match tls {
            None => Ok::<_, std::io::Error>(Stream::Plain(stream)),
            Some(tls) => Ok(Stream::Tls(Box::new(tls.connect(stream, to.ip()).await?))),
        }
    };
    match timeout(most, connecting).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) if error.kind() != std::io::ErrorKind::TimedOut => Err(Refusal::UNREACHABLE),
        _ => Err(Refusal::LATE),
    }
}
