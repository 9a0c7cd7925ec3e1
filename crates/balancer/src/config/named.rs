//! What a Service asks for, with whatever it names found in the configuration: certificates, buckets, groups.

use fairlead_api::source::Key;
use fairlead_api::view::Service;

use super::{Bucket, Certificate, Config};
use crate::spec::{self, Options, Refusal, Spec, names};

impl Config {
    /// How Services are read. `sctp`: whether the kernel has it.
    pub fn options(&self, sctp: bool) -> Options {
        Options { groups: self.security_groups.keys().cloned().collect(), sctp }
    }

    /// What a Service asks for, or everything that is wrong with it.
    pub fn read(&self, service: &Service, options: &Options) -> Result<Spec, Vec<Refusal>> {
        let spec = spec::read(service, options)?;
        let missing: Vec<Refusal> = self.missing_certificate(&spec).into_iter().chain(self.missing_bucket(&spec)).collect();
        if missing.is_empty() { Ok(spec) } else { Err(missing) }
    }

    /// Where a certificate is: as the configuration says, or, for a plain name, in the Secret of that name beside the Service.
    pub fn certificate(&self, name: &str, namespace: &str) -> Option<Certificate> {
        let beside = || {
            let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b));
            plain.then(|| Certificate::Secret(Key::new(namespace, name)))
        };
        self.certificates.get(name).cloned().or_else(beside)
    }

    /// Where the access log of a load balancer goes.
    pub fn bucket(&self, spec: &Spec) -> Option<&Bucket> {
        self.buckets.get(&spec.access_log.as_ref()?.bucket)
    }

    fn missing_certificate(&self, spec: &Spec) -> Option<Refusal> {
        let used = spec.listeners.iter().filter_map(|listener| listener.tls.as_ref());
        let missing = used.map(|tls| &tls.certificate).find(|name| self.certificate(name, &spec.service.namespace).is_none())?;
        let accepted = format!(
            "want the name of a Secret of type kubernetes.io/tls beside the Service, or one of certificates in --balancer-config{}",
            listed(self.certificates.keys())
        );
        Some(Refusal::new(names::SSL_CERT, missing, accepted))
    }

    fn missing_bucket(&self, spec: &Spec) -> Option<Refusal> {
        let log = spec.access_log.as_ref().filter(|log| !self.buckets.contains_key(&log.bucket))?;
        let accepted = format!("want one of buckets in --balancer-config{}", listed(self.buckets.keys()));
        Some(Refusal::new(names::ACCESS_LOG_BUCKET, &log.bucket, accepted))
    }
}

/// `: a, b`, or that there are none.
fn listed<'a>(all: impl Iterator<Item = &'a String>) -> String {
    let all: Vec<&str> = all.map(String::as_str).collect();
    if all.is_empty() { ", which has none".to_owned() } else { format!(": {}", all.join(", ")) }
}
