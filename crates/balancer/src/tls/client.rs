//! TLS towards backends. With an authority in the configuration a backend must have a certificate of it; without, any will do as
//! long as the backend has its key, which is what AWS' classic load balancers ask for.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore};
use rustls_pki_types::pem::PemObject;
use tokio::io::{AsyncRead, AsyncWrite};

use super::stream::{self, Stream};

/// How connections to backends are encrypted.
#[derive(Debug)]
pub struct ClientTls {
    /// For each connection.
    pub config: Arc<ClientConfig>,
    /// Who backends must be.
    pub identity: Identity,
    /// What backends are told they are asked for.
    host: Option<ServerName<'static>>,
}

/// Who a backend must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// Anybody with a certificate and its key.
    Anybody,
    /// One with a certificate of an authority, for the backend's address or one of these host names.
    Verified {
        /// `web.default.svc`.
        hosts: Vec<String>,
    },
}

/// An authority that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the authority for certificates of backends cannot be used: {0}")]
pub struct NoAuthority(String);

/// Sessions with backends that are remembered, to begin the next connection sooner.
const SESSIONS: usize = 256;

impl ClientTls {
    /// Encrypts connections to the backends of a Service. `authority` is PEM; `hosts` are the names of the Service, the first of
    /// which backends are told (SNI); `alpn` what is spoken inside.
    pub fn new(authority: Option<&[u8]>, hosts: &[String], alpn: &[&'static str]) -> Result<ClientTls, NoAuthority> {
        let provider = Arc::new(ring::default_provider());
        let roots = authority.map(read_authority).transpose()?;
        let identity = match roots {
            Some(_) => Identity::Verified { hosts: hosts.to_vec() },
            None => Identity::Anybody,
        };
        let verifier = Verifier { provider: provider.clone(), roots };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| NoAuthority(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        let host = hosts.first().and_then(|host| ServerName::try_from(host.clone()).ok());
        Ok(ClientTls { config: Arc::new(config), identity, host })
    }

    /// Begins TLS with the backend at this address.
    pub async fn connect<T: AsyncRead + AsyncWrite + Unpin>(
        &self,
        socket: T,
        address: IpAddr,
    ) -> io::Result<Stream<T>> {
        let name = self.host.clone().unwrap_or_else(|| ServerName::IpAddress(address.into()));
        let connection = ClientConnection::new(self.config.clone(), name).map_err(io::Error::other)?;
        let stream = stream::shake(socket, connection.into()).await?;
        match &self.identity {
            Identity::Anybody => {}
            Identity::Verified { hosts } => check_names(stream.shown(), hosts, address)?,
        }
        Ok(stream)
    }
}

fn read_authority(pem: &[u8]) -> Result<RootCertStore, NoAuthority> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| NoAuthority(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in found {
        roots.add(certificate).map_err(|error| NoAuthority(error.to_string()))?;
    }
    if roots.is_empty() { Err(NoAuthority("there is no PEM certificate in it".to_owned())) } else { Ok(roots) }
}

/// Whether the certificate a backend showed names it.
fn check_names(shown: Option<&CertificateDer<'_>>, hosts: &[String], address: IpAddr) -> io::Result<()> {
    let refuse = |error: Error| io::Error::new(io::ErrorKind::InvalidData, error);
    let shown = shown.ok_or_else(|| refuse(Error::NoCertificatesPresented))?;
    let parsed = ParsedCertificate::try_from(shown).map_err(refuse)?;
    let named = |name: &ServerName<'_>| verify_server_name(&parsed, name).is_ok();
    let by_host = hosts.iter().filter_map(|host| ServerName::try_from(host.as_str()).ok()).any(|name| named(&name));
    if by_host || named(&ServerName::IpAddress(address.into())) {
        return Ok(());
    }
    Err(refuse(Error::InvalidCertificate(CertificateError::NotValidForName)))
}

/// Checks who signed a certificate, if that matters, and always that the backend has its key.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    roots: Option<RootCertStore>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let parsed = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, roots, intermediates, now, algorithms)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
