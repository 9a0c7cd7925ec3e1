//! What a Service asks for, with whatever it names found: certificates in Secrets and files, buckets and groups in the configuration.

use std::collections::BTreeMap;

use fairlead_api::view::Service;
use jiff::Timestamp;

use super::{Bucket, Config};
use crate::spec::{self, Options, PortId, Refusal, Spec, names};
use crate::tls::{Certificates, Mistake, Secrets, Wanted};

/// Where what Services name is looked for.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Who has the Secrets of the cluster.
    pub secrets: &'a dyn Secrets,
    /// What time it is.
    pub now: Timestamp,
}

/// A Service as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The request of the Service. Its `unserved` lists the listeners that lack something they
    /// need.
    pub spec: Spec,
    /// The reasons why those ports are not served.
    pub unserved: Vec<Refusal>,
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

    /// Reads what a Service asks for, or everything that is wrong with it. A listener whose
    /// certificate is missing is not served, and does not keep its siblings from being served.
    pub fn read(&self, service: &Service, options: &Options, around: Around<'_>) -> Result<Reading, Vec<Refusal>> {
        let mut spec = spec::read(service, options)?;
        let unserved = self.missing_certificates(&spec, around);
        if let Some(bucket) = self.missing_bucket(&spec) {
            return Err(unserved.into_iter().chain([bucket]).collect());
        }
        spec.unserved = unserved.iter().flat_map(|refusal| refusal.ports.iter().copied()).collect();
        spec.unserved.sort();
        spec.unserved.dedup();
        if !unserved.is_empty() && spec.served().next().is_none() {
            return Err(unserved);
        }
        Ok(Reading { spec, unserved })
    }

    /// Where the access log of a load balancer goes.
    pub fn bucket(&self, spec: &Spec) -> Option<&Bucket> {
        self.buckets.get(&spec.access_log.as_ref()?.bucket)
    }

    /// Certificates without which a listener cannot be served. One that is old is shown all the same.
    fn missing_certificates(&self, spec: &Spec, around: Around<'_>) -> Vec<Refusal> {
        let mut wanting: BTreeMap<&str, Vec<PortId>> = BTreeMap::new();
        for listener in &spec.listeners {
            if let Some(tls) = &listener.tls {
                wanting.entry(&tls.certificate).or_default().push(listener.id());
            }
        }
        let certificates = self.certificates();
        let mut missing = Vec::new();
        for (name, ports) in wanting {
            let wanted = Wanted { namespace: &spec.service.namespace, names: name, before: &[] };
            let found = certificates.find(wanted, around.secrets, around.now);
            if found.certificates.is_empty() {
                let refusal = |mistake: Mistake| Refusal {
                    ports: ports.clone(),
                    ..Refusal::new(names::SSL_CERT, &mistake.name, mistake.why.to_string())
                };
                missing.extend(found.mistakes.into_iter().map(refusal));
            }
        }
        missing
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
