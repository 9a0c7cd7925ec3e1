//! TLS around accepted connections and connections to backends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;

use crate::tls::{ClientTls, ServerTls, Stream};

pub(crate) use crate::tls::TlsFacts;

/// A client's connection with TLS taken off.
pub(crate) type ClientStream = Stream<TcpStream>;
/// A backend's connection with TLS put on.
pub(crate) type BackendStream = Stream<TcpStream>;

/// Takes TLS off.
pub(crate) async fn accept(tls: &Arc<ServerTls>, stream: TcpStream) -> io::Result<(ClientStream, TlsFacts)> {
    let stream = tls.accept(stream).await?;
    let facts = stream.facts().clone();
    Ok((stream, facts))
}

/// Puts TLS on.
pub(crate) async fn connect(tls: &Arc<ClientTls>, stream: TcpStream, to: SocketAddr) -> io::Result<BackendStream> {
    tls.connect(stream, to.ip()).await
}
