//! TLS towards clients and towards backends: certificates, versions and suites as rustls takes them.

use std::sync::Arc;

/// How connections of clients are decrypted.
#[derive(Debug)]
pub struct ServerTls {
    /// For each connection.
    pub config: Arc<rustls::ServerConfig>,
}

/// How connections to backends are encrypted.
#[derive(Debug)]
pub struct ClientTls {
    /// For each connection.
    pub config: Arc<rustls::ClientConfig>,
}
