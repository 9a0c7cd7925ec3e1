//! TLS around accepted connections and connections to backends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use crate::tls::{ClientTls, ServerTls};

/// A client's connection with TLS taken off.
pub(crate) type ClientStream = server::TlsStream<TcpStream>;
/// A backend's connection with TLS put on.
pub(crate) type BackendStream = client::TlsStream<TcpStream>;

/// What was agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFacts {
    /// By OpenSSL's name, as access logs have it: `ECDHE-RSA-AES128-GCM-SHA256`.
    pub suite: &'static str,
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// `h2` or `http/1.1`, if the client chose.
    pub alpn: Option<&'static str>,
    /// The host the client named.
    pub sni: Option<Box<str>>,
    /// Whether an earlier session was taken up again.
    pub resumed: bool,
}

/// Takes TLS off.
pub(crate) async fn accept(tls: &Arc<ServerTls>, stream: TcpStream) -> io::Result<(ClientStream, TlsFacts)> {
    let stream = TlsAcceptor::from(tls.config.clone()).accept(stream).await?;
    let sni = stream.get_ref().1.server_name().map(Box::from);
    Ok((stream, TlsFacts { suite: "", version: "", alpn: None, sni, resumed: false }))
}

/// Puts TLS on.
pub(crate) async fn connect(tls: &Arc<ClientTls>, stream: TcpStream, to: SocketAddr) -> io::Result<BackendStream> {
    TlsConnector::from(tls.config.clone()).connect(ServerName::from(to.ip()), stream).await
}
