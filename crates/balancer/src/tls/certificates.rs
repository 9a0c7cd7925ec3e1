//! Which certificate does a Service mean by a name or an ARN, and where is it? In a Secret or in files; looked at anew whenever
//! either changes. What cannot be used any more does not push out what is in service.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairlead_api::Kind;
use fairlead_api::kinds;
use fairlead_api::source::Key;
use fairlead_api::view::{Meta, View};
use jiff::Timestamp;
use serde::Deserialize;
use thiserror::Error;

use super::certificate::{Certificate, Pem, Unusable};

#[cfg(test)]
mod tests;

/// An annotation of Secrets: the ARN or name by which Services of its namespace mean it.
pub const ANNOTATION: &str = "fairlead.dev/certificate";

/// The type a Secret with a certificate has.
pub const SECRET_TYPE: &str = "kubernetes.io/tls";

/// Where the certificates of the configuration are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificates {
    places: BTreeMap<String, Place>,
}

/// Where a certificate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a Secret of type `kubernetes.io/tls`; without a namespace, in that of the Service.
    Secret {
        /// Its namespace.
        namespace: Option<String>,
        /// Its name.
        name: String,
    },
    /// In two PEM files.
    Files {
        /// The certificate, then those that lead to its authority.
        chain: PathBuf,
        /// Its key.
        key: PathBuf,
    },
}

/// What a listener wants to show.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The namespace of its Service.
    pub namespace: &'a str,
    /// What the Service calls its certificates: names or ARNs with commas between.
    pub names: &'a str,
    /// What the listener shows so far: what did not change is taken from here, and what became unusable is kept.
    pub before: &'a [Arc<Certificate>],
}

/// The certificates of a listener, the first of which is for clients that name no other, and what is wrong with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// What can be shown. Empty: the listener cannot be served.
    pub certificates: Vec<Arc<Certificate>>,
    /// What is to be said.
    pub mistakes: Vec<Mistake>,
}

/// What is wrong with a certificate that a Service names.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("certificate {name:?}: {why}{}", if *.kept { "; the one in service is kept" } else { "" })]
pub struct Mistake {
    /// The name or ARN.
    pub name: String,
    /// What is wrong.
    pub why: Why,
    /// Whether an older one is still in service.
    pub kept: bool,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Why {
    /// Nobody knows the name.
    #[error(
        "it is neither in the configuration nor a Secret of type kubernetes.io/tls in namespace {namespace}, \
         and no Secret there has the annotation fairlead.dev/certificate with it"
    )]
    Unknown {
        /// Where a Secret was looked for.
        namespace: String,
    },
    /// The configuration names a Secret that is not there.
    #[error("there is no Secret {0} of type kubernetes.io/tls")]
    NoSecret(Key),
    /// A Secret of another namespace, which the configuration does not allow.
    #[error("Secret {0} is in another namespace than the Service, and the configuration does not name it")]
    Foreign(Key),
    /// A Secret of another type.
    #[error("Secret {secret} is of type {found:?}, not kubernetes.io/tls")]
    WrongType {
        /// Which.
        secret: Key,
        /// Its type.
        found: String,
    },
    /// A Secret whose data is not base64.
    #[error("Secret {0} has data that is not base64")]
    NotBase64(Key),
    /// A file that cannot be read.
    #[error("{path}: {reason}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// No certificate with its key.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// Shown all the same, but clients will refuse it.
    #[error("it is good from {0} to {1} only; clients will refuse it")]
    NotValidNow(Timestamp, Timestamp),
}

/// A Secret, as far as certificates are concerned.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Secret {
    /// Where it is, and its annotations.
    pub metadata: Meta,
    /// `kubernetes.io/tls`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `tls.crt` and `tls.key` in base64.
    pub data: BTreeMap<String, String>,
}

impl View for Secret {
    const KIND: &'static Kind = &kinds::SECRET;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

/// Who has the Secrets of the cluster.
pub trait Secrets {
    /// The Secret of this name.
    fn secret(&self, key: &Key) -> Option<Arc<Secret>>;

    /// The Secrets of a namespace, in the order of their names.
    fn secrets_in(&self, namespace: &str) -> Vec<Arc<Secret>>;
}

impl Secrets for fairlead_cluster::Mirror {
    fn secret(&self, key: &Key) -> Option<Arc<Secret>> {
        self.get::<Secret>(&key.namespace, &key.name).cloned()
    }

    fn secrets_in(&self, namespace: &str) -> Vec<Arc<Secret>> {
        self.in_namespace::<Secret>(namespace).cloned().collect()
    }
}

impl Secrets for BTreeMap<Key, Arc<Secret>> {
    fn secret(&self, key: &Key) -> Option<Arc<Secret>> {
        self.get(key).cloned()
    }

    fn secrets_in(&self, namespace: &str) -> Vec<Arc<Secret>> {
        self.iter().filter(|(key, _)| &*key.namespace == namespace).map(|(_, secret)| secret.clone()).collect()
    }
}

impl Certificates {
    /// Those of the configuration: names and ARNs, with where each is.
    pub fn new(places: BTreeMap<String, Place>) -> Certificates {
        Certificates { places }
    }

    /// The certificates that a listener wants.
    pub fn find(&self, wanted: Wanted<'_>, secrets: &dyn Secrets, now: Timestamp) -> Found {
        let mut found = Found::default();
        for name in wanted.names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let old = wanted.before.iter().find(|certificate| certificate.name == name);
            let (certificate, why) = match self.look(wanted.namespace, name, secrets, old) {
                Ok(new) if new.is_valid(now) => (Some(new), None),
                Ok(new) => {
                    let why = Why::NotValidNow(new.valid.0, new.valid.1);
                    (Some(new), Some((why, false)))
                }
                Err(why) => (old.cloned(), Some((why, old.is_some()))),
            };
            found.certificates.extend(certificate);
            found.mistakes.extend(why.map(|(why, kept)| Mistake { name: name.to_owned(), why, kept }));
        }
        found
    }

    /// When the files of the configuration were last changed, and how long they are: another value means that listeners must
    /// look again.
    pub fn files(&self) -> Vec<Option<(SystemTime, u64)>> {
        let state = |path: &PathBuf| fs::metadata(path).ok().and_then(|meta| Some((meta.modified().ok()?, meta.len())));
        let files = self.places.values().flat_map(|place| match place {
            Place::Files { chain, key } => vec![chain, key],
            Place::Secret { .. } => Vec::new(),
        });
        files.map(state).collect()
    }

    fn look(
        &self,
        namespace: &str,
        name: &str,
        secrets: &dyn Secrets,
        old: Option<&Arc<Certificate>>,
    ) -> Result<Arc<Certificate>, Why> {
        match self.places.get(name) {
            Some(Place::Files { chain, key }) => from_files(name, chain, key, old),
            Some(Place::Secret { namespace: its, name: secret }) => {
                let key = Key::new(its.as_deref().unwrap_or(namespace), &**secret);
                let secret = secrets.secret(&key).ok_or(Why::NoSecret(key))?;
                from_secret(name, &secret, old)
            }
            None => from_secret(name, &*in_namespace(namespace, name, secrets)?, old),
        }
    }
}

/// The Secret a Service means by a name that the configuration does not have: one of its own namespace, by its name or its
/// annotation. Others' keys are not its to use.
fn in_namespace(namespace: &str, name: &str, secrets: &dyn Secrets) -> Result<Arc<Secret>, Why> {
    let key = match name.split_once('/') {
        Some((other, secret)) if other == namespace => Key::new(other, secret),
        Some((other, secret)) if secrets.secret(&Key::new(other, secret)).is_some() => {
            return Err(Why::Foreign(Key::new(other, secret)));
        }
        _ => Key::new(namespace, name),
    };
    let annotated =
        |secret: &Arc<Secret>| secret.metadata.annotations.get(ANNOTATION).is_some_and(|value| value == name);
    let unknown = || Why::Unknown { namespace: namespace.to_owned() };
    let by_annotation = || secrets.secrets_in(namespace).into_iter().find(annotated);
    secrets.secret(&key).or_else(by_annotation).ok_or_else(unknown)
}

fn from_secret(name: &str, secret: &Secret, old: Option<&Arc<Certificate>>) -> Result<Arc<Certificate>, Why> {
    let key = Key::new(&*secret.metadata.namespace, &*secret.metadata.name);
    if secret.kind != SECRET_TYPE {
        return Err(Why::WrongType { secret: key, found: secret.kind.clone() });
    }
    let part = |part: &str| {
        let text = secret.data.get(part).map(String::as_str).unwrap_or_default();
        STANDARD.decode(text).map_err(|_| Why::NotBase64(key.clone()))
    };
    let (chain, private) = (part("tls.crt")?, part("tls.key")?);
    let names = [format!("tls.crt of Secret {key}"), format!("tls.key of Secret {key}")];
    read(name, Pem { chain: &chain, chain_name: &names[0], key: &private, key_name: &names[1] }, old)
}

fn from_files(name: &str, chain: &Path, key: &Path, old: Option<&Arc<Certificate>>) -> Result<Arc<Certificate>, Why> {
    let content =
        |path: &Path| fs::read(path).map_err(|error| Why::File { path: path.to_owned(), reason: error.to_string() });
    let contents = [content(chain)?, content(key)?];
    let names = [chain.display().to_string(), key.display().to_string()];
    let [chain, key] = &contents;
    read(name, Pem { chain, chain_name: &names[0], key, key_name: &names[1] }, old)
}

fn read(name: &str, pem: Pem<'_>, old: Option<&Arc<Certificate>>) -> Result<Arc<Certificate>, Why> {
    match old {
        Some(old) if old.is_of(pem) => Ok(old.clone()),
        _ => Ok(Arc::new(Certificate::read(name, pem)?)),
    }
}
