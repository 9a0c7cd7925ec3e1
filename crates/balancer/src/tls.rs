//! TLS towards clients and towards backends: certificates, versions and suites as rustls takes them.
//!
//! [`Certificates::find`] says which certificates a listener has, [`ServerTls::renewed`] makes of them what connections need, and
//! [`ServerTls::accept`] and [`ClientTls::connect`] turn a connection into a [`Stream`].

use std::io;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::server::ServerSessionMemoryCache;
use rustls::{ServerConfig, ServerConnection};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

pub use certificate::{Certificate, Pem, Unusable};
pub use certificates::{ANNOTATION, Certificates, Found, Mistake, Place, SECRET_TYPE, Secret, Secrets, Wanted, Why};
pub use client::{ClientTls, Identity, NoAuthority};
pub use stream::{Stream, TlsFacts};

mod certificate;
mod certificates;
mod client;
pub mod policy;
mod rsa;
mod sni;
mod stream;

use crate::spec::TlsPolicy;

/// How connections of clients are decrypted.
#[derive(Debug)]
pub struct ServerTls {
    /// For each connection.
    pub config: Arc<ServerConfig>,
    /// What is shown to clients; the first to those that name nobody.
    pub certificates: Vec<Arc<Certificate>>,
    policy: String,
    alpn: Vec<&'static str>,
}

/// Why TLS cannot be served.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Unservable {
    /// A policy nobody knows.
    #[error("{0:?} is no predefined negotiation policy")]
    UnknownPolicy(String),
    /// A policy of which nothing is spoken.
    #[error("policy {0:?} has only versions of TLS that are not safe and not spoken here")]
    UnspokenPolicy(String),
    /// No certificate to show.
    #[error("there is no certificate to show")]
    NoCertificate,
    /// What rustls says of the whole.
    #[error("{0}")]
    Refused(#[from] rustls::Error),
}

/// Sessions that are remembered for clients of TLS 1.2 that do not take tickets.
const SESSIONS: usize = 4096;

/// HTTP on a TLS listener: what its clients may choose from.
pub const ALPN_HTTP: &[&str] = &["h2", "http/1.1"];

impl ServerTls {
    /// Shows these certificates and speaks what the policy allows. `alpn` are the protocols clients may choose from; empty:
    /// whatever they like.
    pub fn new(
        certificates: &[Arc<Certificate>],
        policy: &TlsPolicy,
        alpn: &[&'static str],
    ) -> Result<ServerTls, Unservable> {
        if certificates.is_empty() {
            return Err(Unservable::NoCertificate);
        }
        let known = policy::find(&policy.name).ok_or_else(|| Unservable::UnknownPolicy(policy.name.clone()))?;
        let spoken = known.spoken().ok_or_else(|| Unservable::UnspokenPolicy(policy.name.clone()))?;
        let mut provider = default_provider();
        provider.cipher_suites = spoken.suites;
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&spoken.versions)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(sni::Shown::new(certificates)));
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.ignore_client_order = true;
        config.ticketer = rustls::crypto::ring::Ticketer::new()?;
        config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
        // One is what a client needs to come back; each more costs every new connection a sealed message.
        config.send_tls13_tickets = 1;
        let (certificates, policy) = (certificates.to_vec(), policy.name.clone());
        Ok(ServerTls { config: Arc::new(config), certificates, policy, alpn: alpn.to_vec() })
    }

    /// The same as [`ServerTls::new`], but takes over what `before` has: itself if nothing changed, else the keys of its tickets,
    /// so that clients that were here come back without a full handshake.
    pub fn renewed(
        before: Option<&Arc<ServerTls>>,
        certificates: &[Arc<Certificate>],
        policy: &TlsPolicy,
        alpn: &[&'static str],
    ) -> Result<Arc<ServerTls>, Unservable> {
        let Some(before) = before else {
            return ServerTls::new(certificates, policy, alpn).map(Arc::new);
        };
        if before.certificates == certificates && before.policy == policy.name && before.alpn == alpn {
            return Ok(before.clone());
        }
        let mut new = ServerTls::new(certificates, policy, alpn)?;
        let config = Arc::get_mut(&mut new.config).expect("it was just made, and nobody else has it");
        config.ticketer = before.config.ticketer.clone();
        config.session_storage = before.config.session_storage.clone();
        Ok(Arc::new(new))
    }

    /// Begins TLS with a client. How long that may take is the caller's to say; what a client can make us keep meanwhile is
    /// bounded. A client that speaks something else gets an alert, and the error says what it did.
    pub async fn accept<T: AsyncRead + AsyncWrite + Unpin>(&self, socket: T) -> io::Result<Stream<T>> {
        let connection = ServerConnection::new(self.config.clone()).map_err(io::Error::other)?;
        stream::shake(socket, connection.into()).await
    }
}
