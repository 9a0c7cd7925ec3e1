//! Which of several certificates does a client get? The one for the host it names, with a key of a kind it can check; else the first.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::certificate::Certificate;

#[cfg(test)]
mod tests;

/// The certificates of a listener, by host.
#[derive(Debug)]
pub(super) struct Shown {
    /// In the order of the listener; never empty.
    all: Vec<Arc<CertifiedKey>>,
    /// Indices into `all`. Names with a star have it.
    hosts: HashMap<String, Vec<usize>>,
}

impl Shown {
    pub(super) fn new(certificates: &[Arc<Certificate>]) -> Shown {
        let mut hosts: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, certificate) in certificates.iter().enumerate() {
            for host in &certificate.hosts {
                hosts.entry(host.clone()).or_default().push(at);
            }
        }
        Shown { all: certificates.iter().map(|certificate| certificate.key.clone()).collect(), hosts }
    }

    /// The certificates for a host, best first. Those for everybody come last: a client that is shown another's certificate can
    /// say so, one that is shown none cannot.
    fn candidates(&self, host: Option<&str>) -> impl Iterator<Item = &Arc<CertifiedKey>> {
        let host = host.map(str::to_ascii_lowercase);
        let star = host.as_deref().and_then(|host| host.split_once('.')).map(|(_, rest)| format!("*.{rest}"));
        let of = |name: Option<String>| name.and_then(|name| self.hosts.get(&name)).into_iter().flatten().copied();
        of(host).chain(of(star)).chain(0..self.all.len()).filter_map(|at| self.all.get(at))
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if let [only] = &self.all[..] {
            return Some(only.clone());
        }
        let schemes = hello.signature_schemes();
        let checkable = |key: &&Arc<CertifiedKey>| key.key.choose_scheme(schemes).is_some();
        self.candidates(hello.server_name()).find(checkable).cloned()
    }
}
