//! Is this PEM a certificate with its key, whose is it, and until when is it good?

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use ring::digest;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::rsa;

#[cfg(test)]
mod tests;

/// A certificate with its chain and key, ready to be shown to clients.
pub struct Certificate {
    /// What it was asked for by: a name or an ARN.
    pub name: String,
    /// The host names it is for, in lower case; `*.example.com` stands for one label more.
    pub hosts: Vec<String>,
    /// From when to when it is good.
    pub valid: (Timestamp, Timestamp),
    /// Chain and key.
    pub(super) key: Arc<CertifiedKey>,
    /// What it was made of, so that the same is not taken for another.
    digest: [u8; 32],
}

/// Why a text is no certificate with its key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unusable {
    /// There is no certificate in it.
    #[error("there is no PEM certificate in {what}: {why}")]
    NoCertificate {
        /// `tls.crt` or a file.
        what: String,
        /// What is there instead.
        why: String,
    },
    /// There is no private key in it.
    #[error("there is no PEM private key in {what}: {why}")]
    NoKey {
        /// `tls.key` or a file.
        what: String,
        /// What is there instead.
        why: String,
    },
    /// The first certificate cannot be read.
    #[error("the certificate in {what} cannot be read: {why}")]
    Malformed {
        /// `tls.crt` or a file.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The key is another certificate's, or of a kind that is not spoken.
    #[error("the key in {what} cannot be used: {why}")]
    Key {
        /// `tls.key` or a file.
        what: String,
        /// What is wrong with it.
        why: String,
    },
}

/// What a certificate is made of: PEM, with how each part is called in messages.
#[derive(Debug, Clone, Copy)]
pub struct Pem<'a> {
    /// The certificate, then those that lead to its authority.
    pub chain: &'a [u8],
    /// `tls.crt` or a file.
    pub chain_name: &'a str,
    /// Its key.
    pub key: &'a [u8],
    /// `tls.key` or a file.
    pub key_name: &'a str,
}

/// More certificates than this in a chain are no chain.
const LONGEST_CHAIN: usize = 32;

impl Certificate {
    /// Reads it.
    pub fn read(name: &str, pem: Pem<'_>) -> Result<Certificate, Unusable> {
        let chain = read_chain(pem)?;
        let first = chain.first().expect("a chain is not empty, or it was not read");
        let (hosts, valid) = describe(first, pem.chain_name)?;
        let key = PrivateKeyDer::from_pem_slice(pem.key)
            .map_err(|error| Unusable::NoKey { what: pem.key_name.to_owned(), why: reason(&error) })?;
        let key = CertifiedKey::from_der(chain, key, &rsa::provider())
            .map_err(|error| Unusable::Key { what: pem.key_name.to_owned(), why: misfit(&error) })?;
        Ok(Certificate { name: name.to_owned(), hosts, valid, key: Arc::new(key), digest: pem.digest() })
    }

    /// Whether it was made of this.
    pub(super) fn is_of(&self, pem: Pem<'_>) -> bool {
        self.digest == pem.digest()
    }

    /// Whether it can be shown at this time without every client refusing it.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.valid.0 <= now && now <= self.valid.1
    }
}

/// The same name and the same content.
impl PartialEq for Certificate {
    fn eq(&self, other: &Certificate) -> bool {
        self.name == other.name && self.digest == other.digest
    }
}

impl Eq for Certificate {}

/// Never the key.
impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Certificate { name, hosts, valid, .. } = self;
        f.debug_struct("Certificate").field("name", name).field("hosts", hosts).field("valid", valid).finish()
    }
}

impl Pem<'_> {
    fn digest(&self) -> [u8; 32] {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(&(self.chain.len() as u64).to_be_bytes());
        context.update(self.chain);
        context.update(self.key);
        context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
    }
}

fn read_chain(pem: Pem<'_>) -> Result<Vec<CertificateDer<'static>>, Unusable> {
    let no = |why: String| Unusable::NoCertificate { what: pem.chain_name.to_owned(), why };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.chain).take(LONGEST_CHAIN).collect();
    let chain = chain.map_err(|error| no(reason(&error)))?;
    if chain.is_empty() { Err(no(reason(&pem::Error::NoItemsFound))) } else { Ok(chain) }
}

type Described = (Vec<String>, (Timestamp, Timestamp));

fn describe(certificate: &CertificateDer<'_>, what: &str) -> Result<Described, Unusable> {
    let malformed = |why: String| Unusable::Malformed { what: what.to_owned(), why };
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| malformed(error.to_string()))?;
    let time = |seconds: i64| Timestamp::from_second(seconds).map_err(|error| malformed(error.to_string()));
    let validity = parsed.validity();
    let valid = (time(validity.not_before.timestamp())?, time(validity.not_after.timestamp())?);
    Ok((hosts(&parsed), valid))
}

/// The names of a certificate: its subject alternative names, or the common name of one that has none.
fn hosts(parsed: &X509Certificate<'_>) -> Vec<String> {
    let alternative = parsed.subject_alternative_name().ok().flatten();
    let mut names: Vec<String> = Vec::new();
    match alternative {
        Some(alternative) => names.extend(alternative.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(host) => Some(host.to_ascii_lowercase()),
            _ => None,
        })),
        None => {
            let common = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
            names.extend(common.map(str::to_ascii_lowercase));
        }
    }
    names
}

fn reason(error: &pem::Error) -> String {
    match error {
        pem::Error::NoItemsFound => "nothing of that kind".to_owned(),
        other => other.to_string(),
    }
}

fn misfit(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => "it is not the key of the certificate".to_owned(),
        other => other.to_string(),
    }
}
