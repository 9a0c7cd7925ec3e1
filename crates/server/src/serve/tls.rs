//! The TLS side of a server: which certificate it shows, and that clients may show one.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use thiserror::Error;

/// A configuration that cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// Not PEM.
    #[error("not a PEM file: {0}")]
    Pem(String),
    /// Certificate and key do not fit, or cannot be used.
    #[error("{0}")]
    Unusable(#[from] rustls::Error),
    /// No authority for client certificates.
    #[error("{0}")]
    Authorities(#[from] VerifierBuilderError),
}

/// The certificates of a PEM text.
pub fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| Error::Pem(error.to_string()))
}

/// A configuration that shows a certificate and asks clients for theirs, naming the authorities whose are of use.
pub fn server_config(
    certificate_pem: &str,
    key_pem: &str,
    authorities: &[CertificateDer<'static>],
) -> Result<ServerConfig, Error> {
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).map_err(|error| Error::Pem(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let inner = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(Possession { inner }))
        .with_single_cert(certificates(certificate_pem)?, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Lets every client certificate in whose key the client has. Whether it is good is asked with each request
/// (`auth::certificate`), so that a bad one gets an answer that says so.
#[derive(Debug)]
struct Possession {
    inner: Arc<dyn ClientCertVerifier>,
}

impl ClientCertVerifier for Possession {
    fn client_auth_mandatory(&self) -> bool {
        false
    }
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }
    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
