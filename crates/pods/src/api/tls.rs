//! The API of a node over the network: TLS, and only for who has a certificate of the cluster's authority that names the API
//! server.

use std::sync::Arc;
use std::time::Duration;

use fairlead_runtime::{Account, AtLimit, Limits, SlotTable};
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Api;

/// Maximum number of connections of API servers.
const CONNECTIONS: usize = 1000;
/// Maximum number of connections whose client has not shown its certificate yet, where descriptors
/// allow it.
const HANDSHAKES: u64 = 512;
/// Part of the handshakes that one client may have in progress.
const CLIENT_PART: u64 = 4;
/// Time for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The user API servers come as, by kubeadm's name.
const API_SERVER: &str = "kube-apiserver-kubelet-client";
/// Who may do everything.
const MASTERS: &str = "system:masters";

/// Why there is no TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The certificate, the key or an authority cannot be used.
    #[error("the node's certificate or authority cannot be used: {0}")]
    Certificate(#[from] rustls::Error),
    /// There is no authority.
    #[error("no usable authority: {0}")]
    Authority(#[from] rustls::server::VerifierBuilderError),
}

/// Who may come, and with what the node shows itself.
#[derive(Debug)]
pub struct Peers {
    /// The authorities of client certificates.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The node's certificate, and those that lead to its authority.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its key.
    pub key: rustls::pki_types::PrivateKeyDer<'static>,
}

impl Peers {
    /// The configuration of TLS.
    pub fn config(self) -> Result<Arc<ServerConfig>, TlsError> {
        let mut roots = RootCertStore::empty();
        for authority in self.authorities {
            roots.add(authority)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build()?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(self.chain, self.key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Returns a table for connections whose client is not known yet: a 16th of the descriptors that
/// clients may use. API servers share it with strangers, and need it for the time of a handshake
/// only.
pub(super) fn handshakes(account: &Account) -> SlotTable {
    let total = (account.machine().client_descriptors() / 16).clamp(CLIENT_PART, HANDSHAKES);
    let limits = Limits { total, per_sender: (total / CLIENT_PART).max(1) };
    SlotTable::new(account.budget("pods handshakes", limits), AtLimit::ReplaceIdlest)
}

/// Serves connections until told to stop. When too many handshakes are in progress, the oldest of
/// the client with most of them ends.
pub async fn serve(listener: TcpListener, tls: Arc<ServerConfig>, api: Api, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let evicted = CancellationToken::new();
        let evict = evicted.clone();
        let Ok(slot) = api.handshakes.admit(from.ip(), move || evict.cancel()) else { continue };
        let acceptor = TlsAcceptor::from(tls.clone());
        let api = api.clone();
        let places = places.clone();
        connections.spawn(async move {
            let known = evicted.run_until_cancelled(handshake(stream, acceptor)).await.flatten();
            drop(slot);
            let Some(stream) = known else { return };
            match places.try_acquire() {
                Ok(_place) => api.serve_connection(stream).await,
                Err(_) => tracing::debug!("refused a connection of an API server: there are {CONNECTIONS}"),
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Returns the stream of a client that is the API server, or `None` for any other.
async fn handshake(stream: TcpStream, acceptor: TlsAcceptor) -> Option<TlsStream<TcpStream>> {
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            return None;
        }
        Err(_) => {
            tracing::debug!("a TLS handshake took too long");
            return None;
        }
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    if certificate.is_some_and(is_api_server) {
        return Some(stream);
    }
    tracing::debug!("refused a client whose certificate does not name the API server");
    None
}

/// Whether a certificate, whose authority was checked, is the API server's.
fn is_api_server(certificate: &CertificateDer<'_>) -> bool {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return false };
    let subject = parsed.subject();
    let named = subject.iter_common_name().filter_map(|name| name.as_str().ok()).last() == Some(API_SERVER);
    named || subject.iter_organization().any(|group| group.as_str().is_ok_and(|group| group == MASTERS))
}
