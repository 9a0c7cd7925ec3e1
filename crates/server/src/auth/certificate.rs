//! Client certificates: the common name is the user, the organisations are the groups.
//!
//! The TLS handshake only proves that the client has the key; whether the certificate is good is asked here, with the
//! requests, so that one that has expired ends with a 401 even on an open connection, and not with a broken handshake.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ring::digest;
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::{CertificateDer, UnixTime};
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{Rejection, User};
use crate::serve::Connection;

/// Authorities whose client certificates are accepted.
#[derive(Debug, Clone)]
pub struct Authorities {
    verifier: Arc<dyn ClientCertVerifier>,
}

/// Authorities that cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// Not a certificate.
    #[error("not a certificate: {0}")]
    Certificate(#[from] rustls::Error),
    /// None at all.
    #[error("no usable authority: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

impl Authorities {
    /// Accepts what these authorities signed.
    pub fn new<'a>(roots: impl IntoIterator<Item = &'a CertificateDer<'static>>) -> Result<Authorities, Error> {
        let mut store = RootCertStore::empty();
        for root in roots {
            store.add(root.clone())?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(store.into(), provider).build()?;
        Ok(Authorities { verifier })
    }

    /// Whom the connection's certificate names, if there is one.
    pub fn identify(&self, connection: &Connection, now: Timestamp) -> Result<Option<User>, Rejection> {
        let Some((leaf, chain)) = connection.certificates.split_first() else { return Ok(None) };
        if let Some(checked) = connection.checked.get().filter(|checked| now.as_second() <= checked.until) {
            return Ok(checked.user.clone());
        }
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        self.verifier.verify_client_cert(leaf, chain, at).map_err(|error| Rejection::Certificate(error.to_string()))?;
        let user = user(leaf)?;
        let until = connection.certificates.iter().map(ends).min().unwrap_or_default();
        let _ = connection.checked.set(Checked { user: user.clone(), until });
        Ok(user)
    }
}

/// A certificate that was good when it was looked at.
#[derive(Debug)]
pub(crate) struct Checked {
    user: Option<User>,
    /// When the first of its chain ends, in seconds since 1970.
    until: i64,
}

fn ends(certificate: &CertificateDer<'_>) -> i64 {
    X509Certificate::from_der(certificate).map_or(0, |(_, parsed)| parsed.validity().not_after.timestamp())
}

/// Whom a certificate names.
pub fn user(certificate: &CertificateDer<'_>) -> Result<Option<User>, Rejection> {
    let (_, parsed) =
        X509Certificate::from_der(certificate).map_err(|error| Rejection::Certificate(error.to_string()))?;
    let subject = parsed.subject();
    let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| attribute.as_str().map(str::to_owned).ok();
    // Of several common names the last counts, as in Go.
    let Some(name) = subject.iter_common_name().filter_map(text).last().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let groups = subject.iter_organization().filter_map(text).collect();
    let fingerprint = digest::digest(&digest::SHA256, certificate);
    let hex: String = fingerprint.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let extra = [("authentication.kubernetes.io/credential-id".to_owned(), vec![format!("X509SHA256={hex}")])];
    Ok(Some(User { name, uid: String::new(), groups, extra: extra.into() }))
}
