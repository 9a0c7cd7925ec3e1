//! What a Service asks for, with whatever it names found: certificates in Secrets and files, buckets and groups in the configuration.

use fairlead_api::view::Service;
use jiff::Timestamp;

use super::{Bucket, Config};
use crate::spec::{self, Options, Refusal, Spec, names};
use crate::tls::{Certificates, Secrets, Wanted};

/// Where what Services name is looked for.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Who has the Secrets of the cluster.
    pub secrets: &'a dyn Secrets,
    /// What time it is.
    pub now: Timestamp,
}

impl Config {
    /// How Services are read. `sctp`: whether the kernel has it.
    pub fn options(&self, sctp: bool) -> Options {
        Options { groups: self.security_groups.keys().cloned().collect(), sctp }
    }

    /// Certificates by the names Services have for them.
    pub fn certificates(&self) -> Certificates {
        Certificates::new(self.certificates.clone())
    }

    /// What a Service asks for, or everything that is wrong with it.
    pub fn read(&self, service: &Service, options: &Options, around: Around<'_>) -> Result<Spec, Vec<Refusal>> {
        let spec = spec::read(service, options)?;
        let missing = self.missing_certificates(&spec, around).into_iter().chain(self.missing_bucket(&spec));
        let missing: Vec<Refusal> = missing.collect();
        if missing.is_empty() { Ok(spec) } else { Err(missing) }
    }

    /// Where the access log of a load balancer goes.
    pub fn bucket(&self, spec: &Spec) -> Option<&Bucket> {
        self.buckets.get(&spec.access_log.as_ref()?.bucket)
    }

    /// Certificates without which a listener cannot be served. One that is old is shown all the same.
    fn missing_certificates(&self, spec: &Spec, around: Around<'_>) -> Vec<Refusal> {
        let mut names: Vec<&str> =
            spec.listeners.iter().filter_map(|one| Some(&*one.tls.as_ref()?.certificate)).collect();
        names.dedup();
        let certificates = self.certificates();
        let missing = names.into_iter().flat_map(|name| {
            let wanted = Wanted { namespace: &spec.service.namespace, names: name, before: &[] };
            let found = certificates.find(wanted, around.secrets, around.now);
            if found.certificates.is_empty() { found.mistakes } else { Vec::new() }
        });
        missing.map(|mistake| Refusal::new(names::SSL_CERT, &mistake.name, mistake.why.to_string())).collect()
    }

    fn missing_bucket(&self, spec: &Spec) -> Option<Refusal> {
        let log = spec.access_log.as_ref().filter(|log| !self.buckets.contains_key(&log.bucket))?;
        let known: Vec<&str> = self.buckets.keys().map(String::as_str).collect();
        let known = if known.is_empty() { ", which has none".to_owned() } else { format!(": {}", known.join(", ")) };
        Some(Refusal::new(
            names::ACCESS_LOG_BUCKET,
            &log.bucket,
            format!("want one of buckets in --balancer-config{known}"),
        ))
    }
}
