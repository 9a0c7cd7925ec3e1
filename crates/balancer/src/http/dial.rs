//! A connection to a backend: one that waits, or a new one.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::Connection;
use super::buffer::{Buffers, Inlet};
use super::h2c::Lines;
use super::pool::Pool;
use super::refusal::Refusal;
use super::stream::Stream;
use crate::engine::backend_permits::BackendPermit;
use crate::proxy_header;
use crate::serving::Serving;
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
    /// It speaks for one client alone and cannot carry requests of others.
    pub(crate) bound: bool,
    pub(crate) permit: BackendPermit,
}

impl Backend {
    pub(crate) fn reused(stream: Stream, permit: BackendPermit) -> Backend {
        Backend { stream, inlet: Inlet::default(), reused: true, bound: false, permit }
    }

    pub(crate) fn new(stream: Stream, bound: bool, permit: BackendPermit) -> Backend {
        Backend { stream, inlet: Inlet::default(), reused: false, bound, permit }
    }
}

/// What a new connection begins with: the PROXY header of a client, if backends get one.
pub(crate) fn greeting(serving: &Serving, connection: &Connection) -> Vec<u8> {
    let mut greeting = Vec::new();
    if let Some(version) = serving.listener.send_proxy {
        let (client, local) = (connection.ends.client, connection.ends.local);
        proxy_header::write(version, client, local, connection.tls.as_ref(), &mut greeting);
    }
    greeting
}

/// A new connection that begins with this, before TLS.
pub(crate) async fn connect(
    to: SocketAddr,
    tls: Option<&Arc<ClientTls>>,
    greeting: &[u8],
    most: Duration,
) -> Result<Stream, Refusal> {
    let connecting = async {
        let mut stream = tcp::dial::connect(to, most).await?;
        if !greeting.is_empty() {
            stream.write_all(greeting).await?;
        }
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
