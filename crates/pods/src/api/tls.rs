//! The API of a node over the network: TLS, and only for who has a certificate of the cluster's authority that names the API
//! server.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Api;

/// Connections at a time.
const CONNECTIONS: usize = 1000;
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

/// Serves connections until told to stop.
pub async fn serve(listener: TcpListener, tls: Arc<ServerConfig>, api: Api, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = stop.cancelled() => return,
        };
        let Some((stream, place)) = accepted else { continue };
        let (acceptor, api) = (TlsAcceptor::from(tls.clone()), api.clone());
        connections.spawn(async move {
            let _place = place;
            connect(stream, acceptor, api).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn connect(stream: TcpStream, acceptor: TlsAcceptor, api: Api) {
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => return tracing::debug!("a TLS handshake took too long"),
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    if certificate.is_some_and(is_api_server) {
        api.serve_connection(stream).await;
    } else {
        tracing::warn!("refused a client whose certificate does not name the API server");
    }
}

/// Whether a certificate, whose authority was checked, is the API server's.
fn is_api_server(certificate: &CertificateDer<'_>) -> bool {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return false };
    let subject = parsed.subject();
    let named = subject.iter_common_name().filter_map(|name| name.as_str().ok()).last() == Some(API_SERVER);
    named || subject.iter_organization().any(|group| group.as_str().is_ok_and(|group| group == MASTERS))
}
