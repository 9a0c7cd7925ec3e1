//! What a load balancer does and why, fact by fact, for whoever describes it to people.

use std::fmt::Write as _;
use std::time::Duration;

use fairlead_api::view::{Protocol, Service};

use super::read::says;
use super::{Choice, How, Kind, Listener, Path, ProxyVersion, Scheme, Speaks, Spec, names};

/// One thing a load balancer does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is about.
    pub label: &'static str,
    /// What holds.
    pub value: String,
    /// The annotations or field that say so; `default` if none does.
    pub why: String,
}

/// Annotations that ask for an internal load balancer.
const INTERNAL: [&str; 11] = [
    names::GCP_TYPE,
    names::GCP_TYPE_OLD,
    names::AWS_INTERNAL,
    names::AWS_SCHEME,
    names::AZURE_INTERNAL,
    names::OPENSTACK_INTERNAL,
    names::BAIDU_INTERNAL,
    names::ORACLE_INTERNAL,
    names::ALIBABA_ADDRESS_TYPE,
    names::IBM_IP_TYPE,
    names::TENCENT_SUBNET,
];
/// Annotations about checks.
const CHECK: [&str; 7] = [
    names::CHECK_PROTOCOL,
    names::CHECK_PORT,
    names::CHECK_PATH,
    names::CHECK_HEALTHY,
    names::CHECK_UNHEALTHY,
    names::CHECK_INTERVAL,
    names::CHECK_TIMEOUT,
];
/// Annotations about what is spoken on ports.
const LISTENERS: [&str; 8] = [
    names::SSL_CERT,
    names::SSL_PORTS,
    names::SSL_POLICY,
    names::BACKEND_PROTOCOL,
    names::LAYER,
    names::AWS_PROXY_PROTOCOL,
    names::PROXY_PROTOCOL,
    names::ACCEPT_PROXY,
];

impl Spec {
    /// What it does and why, in the order in which people ask; what is strange about it is in `notes`. `service` is what it was
    /// read from.
    pub fn facts(&self, service: &Service) -> Vec<Fact> {
        let mut facts = vec![
            self.scheme_fact(service),
            fact("Type", kind(self.kind), why(service, &[names::TYPE])),
            self.path_fact(),
        ];
        for listener in &self.listeners {
            facts.push(fact("Listener", listener_words(listener), why(service, &LISTENERS)));
        }
        facts.push(self.sources_fact(service));
        let policy = if self.local { "endpoints of the Node that answers" } else { "endpoints of all Nodes" };
        facts.push(fact("Traffic policy", policy, "spec.externalTrafficPolicy"));
        if let Some(affinity) = self.affinity {
            facts.push(fact(
                "Session affinity",
                format!("by client address, {}", words(affinity)),
                "spec.sessionAffinity",
            ));
        }
        match self.path {
            Path::Kernel => {}
            Path::Userspace => facts.extend(self.userspace_facts(service)),
        }
        if !self.tags.is_empty() {
            let tags: Vec<_> = self.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
            facts.push(fact("Tags", tags.join(","), why(service, &[names::TAGS])));
        }
        facts
    }

    fn scheme_fact(&self, service: &Service) -> Fact {
        let scheme = match self.scheme {
            Scheme::Public => "public",
            Scheme::Internal => "internal",
        };
        fact("Scheme", scheme, why(service, &INTERNAL))
    }

    fn path_fact(&self) -> Fact {
        let needs: Vec<_> = self.needs.iter().map(ToString::to_string).collect();
        match self.path {
            Path::Kernel => fact("Path", "kernel (ipMode VIP): clients keep their addresses", "nothing needs more"),
            Path::Userspace => fact("Path", "through the balancer (ipMode Proxy)", needs.join(", ")),
        }
    }

    fn sources_fact(&self, service: &Service) -> Fact {
        let ranges = self.client_ranges().into_iter().map(|range| range.to_string());
        let groups = self.sources.groups.iter().map(|group| format!("group {group}"));
        let sources: Vec<_> = ranges.chain(groups).collect();
        let field =
            if service.spec.load_balancer_source_ranges.is_empty() { "" } else { "spec.loadBalancerSourceRanges" };
        let range = if field.is_empty() { names::SOURCE_RANGES } else { "" };
        let said = why(service, &[range, names::GROUPS, names::EXTRA_GROUPS]);
        let why = match (field, said.as_str()) {
            ("", said) => said.to_owned(),
            (field, "default") => field.to_owned(),
            (field, said) => format!("{field}, {said}"),
        };
        fact("Sources", sources.join(", "), why)
    }

    /// What only the path through this process does.
    fn userspace_facts(&self, service: &Service) -> Vec<Fact> {
        let zones = if self.cross_zone { "all" } else { "the answering Node's, while it has endpoints" };
        let drain = self.drain.map_or_else(|| "none: connections end with their backend".to_owned(), words);
        let mut facts = vec![
            fact("Balance", choice(self.choice), why(service, &[names::BALANCE])),
            fact("Zones", zones, why(service, &[names::CROSS_ZONE])),
            fact("Health check", self.check_words(), why(service, &CHECK)),
            fact("Draining", drain, why(service, &[names::DRAINING, names::DRAINING_TIMEOUT])),
            fact("Idle timeout", words(self.idle), why(service, &[names::IDLE_TIMEOUT])),
        ];
        if let Some(age) = self.age {
            facts.push(fact("Connection age", words(age), why(service, &[names::AGE])));
        }
        if let Some(log) = &self.access_log {
            let slash = if log.prefix.is_empty() { "" } else { "/" };
            let place = format!("{}{slash}{}, every {}", log.bucket, log.prefix, words(log.interval));
            facts.push(fact("Access log", place, why(service, &[names::ACCESS_LOG])));
        }
        facts
    }

    fn check_words(&self) -> String {
        let check = &self.check;
        let how = match &check.how {
            How::Tcp => "tcp".to_owned(),
            How::Http { tls: false, path } => format!("http {path}"),
            How::Http { tls: true, path } => format!("https {path}"),
        };
        let port = check.port.map_or_else(|| "the traffic's port".to_owned(), |port| format!("port {port}"));
        format!(
            "{how} on {port} every {}, {} for an answer, healthy after {}, unhealthy after {}",
            words(check.interval),
            words(check.timeout),
            check.healthy,
            check.unhealthy
        )
    }
}

fn fact(label: &'static str, value: impl Into<String>, why: impl Into<String>) -> Fact {
    Fact { label, value: value.into(), why: why.into() }
}

/// The annotations of these that say something.
fn why(service: &Service, annotations: &[&str]) -> String {
    let said: Vec<_> = annotations.iter().copied().filter(|name| says(service, name).is_some()).collect();
    if said.is_empty() { "default".to_owned() } else { said.join(", ") }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Classic => "classic",
        Kind::Network => "network (nlb)",
    }
}

fn choice(choice: Choice) -> &'static str {
    match choice {
        Choice::RoundRobin => "round-robin",
        Choice::Least => "least",
        Choice::TwoChoices => "two-choices",
        Choice::Hash => "hash",
    }
}

/// `443/TCP (https): TLS ELBSecurityPolicy-2016-08, certificate NAME; HTTP; to backends: TLS, PROXY v1`.
fn listener_words(listener: &Listener) -> String {
    let mut text = format!("{}/{}", listener.port, listener.protocol);
    if !listener.name.is_empty() {
        let _ = write!(text, " ({})", listener.name);
    }
    let mut front = Vec::new();
    if let Some(tls) = &listener.tls {
        let policy = if tls.policy.name.is_empty() { String::new() } else { format!(" by {}", tls.policy.name) };
        front.push(format!("TLS{policy} with certificate {}", tls.certificate));
    }
    front.extend(listener.accept_proxy.then(|| "PROXY headers of trusted fronts".to_owned()));
    front.push(match (listener.protocol, listener.speaks) {
        (Protocol::Tcp, Speaks::Http) => "HTTP".to_owned(),
        (Protocol::Tcp, Speaks::H2c) => "HTTP, HTTP/2 to backends".to_owned(),
        _ => "bytes".to_owned(),
    });
    let mut behind = Vec::new();
    behind.extend(listener.reencrypt.then_some("TLS"));
    behind.extend(listener.send_proxy.map(|version| match version {
        ProxyVersion::V1 => "PROXY v1",
        ProxyVersion::V2 => "PROXY v2",
    }));
    let _ = write!(text, ": {}", front.join(", "));
    if !behind.is_empty() {
        let _ = write!(text, "; to backends: {}", behind.join(", "));
    }
    text
}

fn words(time: Duration) -> String {
    format!("{} s", time.as_secs())
}
