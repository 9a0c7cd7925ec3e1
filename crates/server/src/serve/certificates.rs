//! Our own certificate authority and what it signs: the server's certificate and the administrator's. They live in a
//! directory, are made when missing, and made anew when two thirds of their time are over, without a restart.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
};
use rustls_pki_types::CertificateDer;
use thiserror::Error;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{files, tls};
use crate::auth::nodes;

pub mod renewal;
#[cfg(test)]
mod tests;

const DAY: i64 = 86_400;
/// How long the authority lasts: ten years.
const AUTHORITY_LIFETIME: i64 = 3650 * DAY;
/// How long what it signs lasts: a year.
const LIFETIME: i64 = 365 * DAY;
/// Certificates begin a little before now, for clocks that are behind.
const EARLIER: i64 = 300;

/// What went wrong with certificates.
#[derive(Debug, Error)]
pub enum Error {
    /// A file.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A certificate or key that cannot be made or read.
    #[error("{what}: {source}")]
    Certificate {
        /// Which.
        what: String,
        /// Why.
        source: rcgen::Error,
    },
    /// A certificate or key that cannot be used for TLS.
    #[error("{what}: {source}")]
    Tls {
        /// Which.
        what: String,
        /// Why.
        source: tls::Error,
    },
}

/// A certificate and its key, as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate; it may be followed by those that lead to the authority.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// Our own authority.
#[derive(Debug)]
pub struct Authority {
    /// Its certificate as PEM.
    pub pem: String,
    /// Its certificate.
    pub certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// What a certificate is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// A server of these names and addresses.
    Server(BTreeSet<String>),
    /// A client in this group.
    Client(String),
    /// A Node: a client in the group of Nodes, and a server of this name.
    Node(String),
}

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The common name.
    pub name: String,
    /// What it is for.
    pub purpose: Purpose,
}

impl Subject {
    /// The administrator, who may do everything.
    pub fn admin() -> Subject {
        let purpose = Purpose::Client(crate::auth::rbac::MASTERS.to_owned());
        Subject { name: "kubernetes-admin".to_owned(), purpose }
    }

    /// A Node, who may do little.
    pub fn node(name: &str) -> Subject {
        Subject { name: format!("{}{name}", nodes::PREFIX), purpose: Purpose::Node(name.to_owned()) }
    }

    /// The API server as a client of Nodes, who may do nothing here.
    pub fn node_client() -> Subject {
        let purpose = Purpose::Client("fairlead:servers".to_owned());
        Subject { name: "kube-apiserver-kubelet-client".to_owned(), purpose }
    }

    /// The server, by the names every cluster knows it by and further ones.
    pub fn server(further: impl IntoIterator<Item = String>) -> Subject {
        const NAMES: &[&str] = &[
            "localhost",
            "127.0.0.1",
            "::1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ];
        let names = NAMES.iter().map(|name| (*name).to_owned()).chain(further).filter(|name| !name.is_empty());
        Subject { name: "kube-apiserver".to_owned(), purpose: Purpose::Server(names.collect()) }
    }
}

/// The authority in a directory, made if it is missing.
pub fn authority(dir: &Path, now: Timestamp) -> Result<Authority, Error> {
    files::make_dir(dir).map_err(|source| Error::File { path: dir.to_owned(), source })?;
    let pair = match read(dir, "ca")? {
        Some(pair) => pair,
        // A new authority would make every certificate of the old one worthless: only somebody who removes both wants that.
        None if dir.join("ca.crt").exists() => {
            let source = io::Error::new(io::ErrorKind::NotFound, "missing, while ca.crt is there");
            return Err(Error::File { path: dir.join("ca.key"), source });
        }
        None => {
            let pair = make_authority(now).map_err(failed("making the authority"))?;
            write(dir, "ca", &pair)?;
            pair
        }
    };
    let what = || failed(&dir.join("ca.key").display().to_string());
    let key = KeyPair::from_pem(&pair.key).map_err(what())?;
    let issuer = Issuer::from_ca_cert_pem(&pair.certificate, key).map_err(what())?;
    let path = dir.join("ca.crt");
    let unusable = |source| Error::Tls { what: path.display().to_string(), source };
    let certificate = tls::certificates(&pair.certificate).map_err(unusable)?.into_iter().next();
    let certificate = certificate.ok_or_else(|| unusable(tls::Error::Pem("no certificate found".to_owned())))?;
    Ok(Authority { pem: pair.certificate, certificate, issuer })
}

/// A certificate in a directory; made if it is missing, says something else, was signed by another
/// authority, or has lived two thirds of its time. Where it cannot be written, on a full disk say,
/// it is used for the life of the process.
pub fn ensure(dir: &Path, file: &str, subject: &Subject, authority: &Authority, now: Timestamp) -> Result<Pair, Error> {
    if let Some(pair) = read(dir, file)?.filter(|pair| still_good(pair, subject, authority, now)) {
        return Ok(pair);
    }
    let pair = make(subject, authority, now).map_err(failed(&format!("making {file}.crt")))?;
    if let Err(error) = write(dir, file, &pair) {
        tracing::warn!("a new certificate is used that is not kept, and the next start makes another: {error}");
    }
    Ok(pair)
}

/// The key that signs ServiceAccount tokens, as PEM; made if it is missing.
pub fn token_key(dir: &Path) -> Result<String, Error> {
    let path = dir.join("sa.key");
    let file = |source| Error::File { path: path.clone(), source };
    files::make_dir(dir).map_err(file)?;
    if let Some(pem) = files::read_if_there(&path).map_err(file)? {
        return Ok(pem);
    }
    let pem = KeyPair::generate().map_err(failed("making sa.key"))?.serialize_pem();
    files::write_secret(&path, pem.as_bytes()).map_err(file)?;
    Ok(pem)
}

fn failed(what: &str) -> impl Fn(rcgen::Error) -> Error + use<> {
    let what = what.to_owned();
    move |source| Error::Certificate { what: what.clone(), source }
}

/// Both halves, or none if one is missing.
fn read(dir: &Path, file: &str) -> Result<Option<Pair>, Error> {
    let half = |ending: &str| {
        let path = dir.join(format!("{file}.{ending}"));
        files::read_if_there(&path).map_err(|source| Error::File { path, source })
    };
    Ok(half("crt")?.zip(half("key")?).map(|(certificate, key)| Pair { certificate, key }))
}

/// Writes both halves or none. After a crash in between, the certificate is not that of the key,
/// and is made again.
fn write(dir: &Path, file: &str, pair: &Pair) -> Result<(), Error> {
    let key = dir.join(format!("{file}.key"));
    let certificate = dir.join(format!("{file}.crt"));
    let both = [(&*key, pair.key.as_bytes()), (&*certificate, pair.certificate.as_bytes())];
    files::write_secrets(&both).map_err(|source| Error::File { path: key.clone(), source })
}

fn make_authority(now: Timestamp) -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    // Two authorities must not be mistaken for one another: the name says when it was made.
    params.distinguished_name.push(DnType::CommonName, format!("fairlead-ca@{}", now.as_second()));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    last(&mut params, now, AUTHORITY_LIFETIME);
    Ok(Pair { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
}

/// A new certificate.
pub fn make(subject: &Subject, authority: &Authority, now: Timestamp) -> Result<Pair, rcgen::Error> {
    let key = KeyPair::generate()?;
    let certificate = params(subject, now)?.signed_by(&key, &authority.issuer)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// A certificate for whoever has the key of a request (PEM). Of the request nothing but the key counts.
pub fn sign(subject: &Subject, request: &str, authority: &Authority, now: Timestamp) -> Result<String, rcgen::Error> {
    let mut request = CertificateSigningRequestParams::from_pem(request)?;
    request.params = params(subject, now)?;
    Ok(request.signed_by(&authority.issuer)?.pem())
}

/// A new key and the request for a certificate of it, both as PEM. The certificate's place is still empty.
pub fn request() -> Result<(Pair, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let request = CertificateParams::default().serialize_request(&key)?.pem()?;
    Ok((Pair { certificate: String::new(), key: key.serialize_pem() }, request))
}

fn params(subject: &Subject, now: Timestamp) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, subject.name.as_str());
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    match &subject.purpose {
        Purpose::Server(names) => {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            params.subject_alt_names = names.iter().map(|name| alt_name(name)).collect::<Result<_, _>>()?;
        }
        Purpose::Client(group) => {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            params.distinguished_name.push(DnType::OrganizationName, group.as_str());
        }
        Purpose::Node(name) => {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
            params.distinguished_name.push(DnType::OrganizationName, nodes::GROUP);
            params.subject_alt_names = vec![alt_name(name)?];
        }
    }
    last(&mut params, now, LIFETIME);
    Ok(params)
}

fn alt_name(name: &str) -> Result<SanType, rcgen::Error> {
    match name.parse::<IpAddr>() {
        Ok(ip) => Ok(SanType::IpAddress(ip)),
        Err(_) => Ok(SanType::DnsName(name.try_into()?)),
    }
}

fn last(params: &mut CertificateParams, now: Timestamp, lifetime: i64) {
    let at = |seconds: i64| {
        let seconds = u64::try_from(seconds).unwrap_or_default();
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    params.not_before = at(now.as_second() - EARLIER);
    params.not_after = at(now.as_second() + lifetime);
}

/// Whether a certificate (PEM) holds and has not lived two thirds of its time.
pub fn is_fresh(pem: &str, now: Timestamp) -> bool {
    let Ok(certificates) = tls::certificates(pem) else { return false };
    let Some(Ok((_, found))) = certificates.first().map(|der| X509Certificate::from_der(der)) else { return false };
    let (begin, end) = (found.validity().not_before.timestamp(), found.validity().not_after.timestamp());
    now.as_second() >= begin && now.as_second() < begin + (end - begin) / 3 * 2
}

fn still_good(pair: &Pair, subject: &Subject, authority: &Authority, now: Timestamp) -> bool {
    let Ok(certificates) = tls::certificates(&pair.certificate) else { return false };
    let Some(Ok((_, found))) = certificates.first().map(|der| X509Certificate::from_der(der)) else { return false };
    let key = KeyPair::from_pem(&pair.key);
    is_fresh(&pair.certificate, now)
        && says(&found, subject)
        && signed_by(&found, authority)
        && key.is_ok_and(|key| key.subject_public_key_info() == found.public_key().raw)
}

fn says(certificate: &X509Certificate<'_>, subject: &Subject) -> bool {
    let name = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok()).last();
    let purpose = match &subject.purpose {
        Purpose::Server(_) => Purpose::Server(alt_names(certificate)),
        Purpose::Client(_) => {
            let group = certificate.subject().iter_organization().filter_map(|group| group.as_str().ok()).last();
            Purpose::Client(group.unwrap_or_default().to_owned())
        }
        Purpose::Node(_) => Purpose::Node(alt_names(certificate).into_iter().collect()),
    };
    name == Some(&subject.name) && purpose == subject.purpose
}

fn alt_names(certificate: &X509Certificate<'_>) -> BTreeSet<String> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return BTreeSet::new() };
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(ip) => <[u8; 4]>::try_from(*ip)
            .map(IpAddr::from)
            .or_else(|_| <[u8; 16]>::try_from(*ip).map(IpAddr::from))
            .map(|ip| ip.to_string())
            .ok(),
        _ => None,
    };
    names.value.general_names.iter().filter_map(text).collect()
}

/// Compares key identifiers, which are digests of the authority's key.
fn signed_by(certificate: &X509Certificate<'_>, authority: &Authority) -> bool {
    let Ok((_, ca)) = X509Certificate::from_der(&authority.certificate) else { return false };
    let own = ca.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
        _ => None,
    });
    let named = certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|id| id.0.to_vec()),
        _ => None,
    });
    own.is_some() && own == named
}
