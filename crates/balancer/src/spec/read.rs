//! A Service's annotations and fields put together: contradictions, defaults, and who carries the bytes.

use std::sync::Arc;
use std::time::Duration;

use fairlead_api::ip;
use fairlead_api::load_balancer::Annotations;
use fairlead_api::source::Key;
use fairlead_api::view::{Family, Protocol, Service, SessionAffinity, TrafficPolicy};
use ipnet::IpNet;

use super::listeners::{Listening, has_tls, listeners, tls_ports};
use super::table::{Asked, Backend, CheckPort, CheckProtocol, Layer, TABLE};
use super::{
    AccessLog, Check, How, Kind, Listener, Need, Note, Options, Path, PortId, Refusal, Scheme, Sources, Spec, names,
    value,
};

/// What the documents, or AWS, say holds when nothing is said.
const IDLE: Duration = Duration::from_secs(60);
const DRAIN: Duration = Duration::from_secs(300);
const LOG_INTERVAL: Duration = Duration::from_secs(60 * 60);
const HEALTHY: u32 = 2;
const UNHEALTHY: u32 = 6;
const INTERVAL: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client stays with its backend when only that it does is said.
const AFFINITY: i32 = 10_800;
/// No more names of annotations that mean nothing are repeated.
const MAX_IGNORED: usize = 8;

/// What a Service asks for, or everything that is wrong with it.
pub fn read(service: &Service, options: &Options) -> Result<Spec, Vec<Refusal>> {
    let mut refusals = Vec::new();
    let asked = annotations(service, &mut refusals);
    contradictions(service, &asked, &mut refusals);
    let Listening { listeners, mut notes } = listeners(service, &asked, &mut refusals);
    let sources = sources(service, &asked, options, &mut refusals);
    let check = check(service, &asked, &mut refusals);
    let access_log = access_log(service, &asked, &mut refusals);
    let needs = needs(service, &asked, &listeners);
    protocols(service, options, &needs, &mut refusals);
    if !refusals.is_empty() {
        return Err(refusals);
    }
    more_notes(service, &asked, &listeners, &mut notes);
    let spec = &service.spec;
    let seconds = spec.session_affinity_config.client_ip.timeout_seconds.unwrap_or(AFFINITY);
    let affinity = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    Ok(Spec {
        service: Arc::new(Key::new(&*service.metadata.namespace, &*service.metadata.name)),
        name: name(service),
        families: if spec.ip_families.is_empty() { vec![Family::V4] } else { spec.ip_families.clone() },
        scheme: if asked.internal { Scheme::Internal } else { Scheme::Public },
        kind: asked.kind.unwrap_or(Kind::Classic),
        path: if needs.is_empty() { Path::Kernel } else { Path::Userspace },
        needs,
        listeners,
        unserved: Vec::new(),
        sources,
        local: spec.external_traffic_policy == TrafficPolicy::Local,
        health_check_port: u16::try_from(spec.health_check_node_port).ok().filter(|port| *port > 0),
        cross_zone: asked.cross_zone.unwrap_or(true),
        choice: asked.choice.unwrap_or_default(),
        affinity: (spec.session_affinity == SessionAffinity::ClientIp).then_some(affinity),
        check,
        drain: asked.drain.unwrap_or(true).then(|| asked.drain_timeout.unwrap_or(DRAIN)),
        idle: asked.idle.unwrap_or(IDLE),
        connect: asked.connect.unwrap_or(false),
        age: asked.age,
        access_log,
        tags: asked.tags.unwrap_or_default(),
        notes,
    })
}

/// What a Service without ports and annotations asks for.
pub(super) fn plain(service: Arc<Key>) -> Spec {
    let spec = read(&Service::default(), &Options::default()).expect("nothing is asked for, so nothing is refused");
    Spec { service, ..spec }
}

/// The entries of an annotation that is a list, such as [`names::ADDRESSES`].
pub fn list<'a>(service: &'a Service, annotation: &str) -> Vec<&'a str> {
    service.metadata.annotations.get(annotation).map(|text| value::entries(text).collect()).unwrap_or_default()
}

/// What an annotation says, if it says anything.
pub(super) fn says<'a>(service: &'a Service, annotation: &str) -> Option<&'a str> {
    service.metadata.annotations.get(annotation).map(String::as_str).filter(|text| !text.is_empty())
}

/// The annotations of a Service that [`read`] reads.
pub fn relevant(service: &Service) -> Annotations {
    let said = |name: &'static str| Some((name.to_owned(), says(service, name)?.to_owned()));
    TABLE.iter().filter_map(|row| said(row.name)).collect()
}

/// True if the annotations of a Service ask for TLS on a port, as far as they can be read: a list
/// of ports that cannot be read, or that names a port the Service does not have, may mean each of
/// them.
pub(super) fn asks_for_tls(service: &Service, id: PortId) -> bool {
    if says(service, names::SSL_CERT).is_none() || id.protocol != Protocol::Tcp {
        return false;
    }
    let asked = annotations(service, &mut Vec::new());
    let mut stray = Vec::new();
    tls_ports(service, &asked, &mut stray);
    let port = service.spec.ports.iter().find(|port| PortId::of(port) == Some(id));
    !stray.is_empty() || port.is_some_and(|port| has_tls(port, &asked))
}

fn annotations(service: &Service, refusals: &mut Vec<Refusal>) -> Asked {
    let mut asked = Asked::default();
    for annotation in TABLE {
        let Some(text) = says(service, annotation.name) else { continue };
        if (annotation.read)(text, &mut asked).is_none() {
            refusals.push(Refusal::new(annotation.name, text, annotation.accepted.to_string()));
        }
    }
    asked
}

fn contradictions(service: &Service, asked: &Asked, refusals: &mut Vec<Refusal>) {
    let mut refuse = |annotation: &str, accepted: &str| {
        refusals.push(Refusal::new(annotation, says(service, annotation).unwrap_or_default(), accepted));
    };
    if asked.public && asked.internal {
        refuse(names::AWS_SCHEME, "internal, since another annotation asks for an internal load balancer");
    }
    let http = matches!(asked.backend, Some(Backend::Http | Backend::Https));
    match (asked.layer, asked.backend) {
        (Some(Layer::Seven), _) if asked.kind == Some(Kind::Network) => {
            refuse(names::LAYER, "4, since a network load balancer carries bytes");
        }
        (Some(Layer::Seven), Some(_)) if !http => {
            refuse(names::LAYER, "4, since the backend protocol is not HTTP");
        }
        (Some(Layer::Four), Some(_)) if http => {
            refuse(names::LAYER, "7, since the backend protocol is HTTP");
        }
        _ => {}
    }
}

fn sources(service: &Service, asked: &Asked, options: &Options, refusals: &mut Vec<Refusal>) -> Sources {
    let mut ranges: Vec<IpNet> = Vec::new();
    for (index, text) in service.spec.load_balancer_source_ranges.iter().enumerate() {
        match ip::cidr::parse(text.trim()) {
            Some(range) => ranges.push(range.trunc()),
            None => {
                let what = format!("spec.loadBalancerSourceRanges[{index}]");
                refusals.push(Refusal::new(what, text, "a range of addresses, as 10.0.0.0/24"));
            }
        }
    }
    // The annotation is older than the field, and counts where the field is empty.
    if service.spec.load_balancer_source_ranges.is_empty() {
        ranges.extend(asked.ranges.iter().flatten());
    }
    let mut groups = Vec::new();
    for (annotation, named) in [(names::GROUPS, &asked.groups), (names::EXTRA_GROUPS, &asked.extra_groups)] {
        let named = named.iter().flatten();
        let unknown: Vec<_> = named.clone().filter(|name| !options.groups.contains(name)).cloned().collect();
        if !unknown.is_empty() {
            refusals.push(Refusal::new(annotation, &unknown.join(","), known_groups(options)));
        }
        groups.extend(named.cloned());
    }
    Sources { ranges, groups }
}

fn known_groups(options: &Options) -> String {
    match options.groups.as_slice() {
        [] => "names of securityGroups of the configuration, which has none".to_owned(),
        groups => {
            let some: Vec<_> = groups.iter().take(16).map(String::as_str).collect();
            format!("names of securityGroups of the configuration: {}", some.join(", "))
        }
    }
}

fn check(service: &Service, asked: &Asked, refusals: &mut Vec<Refusal>) -> Check {
    let (interval, timeout) = (asked.interval.unwrap_or(INTERVAL), asked.timeout.unwrap_or(TIMEOUT));
    if timeout >= interval {
        let (what, accepted) = match asked.timeout {
            Some(_) => (names::CHECK_TIMEOUT, format!("less than the interval of {} seconds", interval.as_secs())),
            None => (names::CHECK_INTERVAL, format!("more than the timeout of {} seconds", timeout.as_secs())),
        };
        refusals.push(Refusal::new(what, says(service, what).unwrap_or_default(), accepted));
    }
    let path = || asked.check_path.clone().unwrap_or_else(|| "/".to_owned());
    let how = match asked.check {
        None | Some(CheckProtocol::Tcp) => How::Tcp,
        Some(CheckProtocol::Http) => How::Http { tls: false, path: path() },
        Some(CheckProtocol::Https) => How::Http { tls: true, path: path() },
    };
    let port = match asked.check_port {
        Some(CheckPort::Number(port)) => Some(port),
        Some(CheckPort::Traffic) | None => None,
    };
    let (healthy, unhealthy) = (asked.healthy.unwrap_or(HEALTHY), asked.unhealthy.unwrap_or(UNHEALTHY));
    Check { how, port, healthy, unhealthy, interval, timeout }
}

fn access_log(service: &Service, asked: &Asked, refusals: &mut Vec<Refusal>) -> Option<AccessLog> {
    if asked.log != Some(true) {
        return None;
    }
    let Some(bucket) = asked.bucket.clone() else {
        // A name that cannot be one has been refused already.
        if says(service, names::ACCESS_LOG_BUCKET).is_none() {
            refusals.push(Refusal::new(
                names::ACCESS_LOG_BUCKET,
                "",
                "the name of a bucket, since access logs are enabled",
            ));
        }
        return None;
    };
    let prefix = asked.prefix.clone().unwrap_or_default();
    Some(AccessLog { bucket, prefix, interval: asked.log_interval.unwrap_or(LOG_INTERVAL) })
}

/// What the kernel cannot do. What the kernel's path does by itself, such as going on with the connections of an endpoint that
/// leaves, is no need.
fn needs(service: &Service, asked: &Asked, listeners: &[Listener]) -> Vec<Need> {
    let any = |what: fn(&Listener) -> bool| listeners.iter().any(what);
    let check = asked.healthy.is_some() || asked.unhealthy.is_some() || asked.interval.is_some();
    let groups = asked.groups.is_some() || asked.extra_groups.is_some();
    let check = check || asked.timeout.is_some() || asked.check.is_some() || asked.check_port.is_some();
    let all = [
        (Need::Tls, any(|listener| listener.tls.is_some())),
        (Need::Reencrypt, any(|listener| listener.reencrypt)),
        (Need::Http, any(|listener| listener.speaks != super::Speaks::Bytes)),
        (Need::SendProxy, asked.send_proxy_by_aws || asked.send_proxy.is_some()),
        (Need::AcceptProxy, asked.accept_proxy == Some(true)),
        (Need::AccessLog, asked.log == Some(true)),
        (Need::Idle, asked.idle.is_some()),
        (Need::Drain, asked.drain == Some(true)),
        (Need::Check, check || asked.check_path.is_some()),
        (Need::Choice, asked.choice.is_some()),
        (Need::Zone, asked.cross_zone == Some(false)),
        (Need::Sources, groups && !service.spec.load_balancer_source_ranges.is_empty()),
    ];
    all.into_iter().filter_map(|(need, is)| is.then_some(need)).collect()
}

/// Ports whose protocol cannot be served. The `ipMode` is an address's, so one port that is not TCP would have to be carried by
/// threads of ours too, and they carry streams only.
fn protocols(service: &Service, options: &Options, needs: &[Need], refusals: &mut Vec<Refusal>) {
    for (index, port) in service.spec.ports.iter().enumerate() {
        let accepted = match port.protocol {
            Protocol::Tcp => continue,
            Protocol::Sctp if !options.sctp => "TCP or UDP; the kernel of this machine has no SCTP".to_owned(),
            Protocol::Udp | Protocol::Sctp if needs.is_empty() => continue,
            Protocol::Udp | Protocol::Sctp => {
                let needs: Vec<_> = needs.iter().map(ToString::to_string).collect();
                format!(
                    "TCP, since this Service asks for {}; a second Service may have this port at the same address ({})",
                    needs.join(", "),
                    names::SHARED
                )
            }
        };
        let refusal = Refusal::new(format!("spec.ports[{index}].protocol"), port.protocol.as_str(), accepted);
        refusals.push(Refusal { ports: PortId::of(port).into_iter().collect(), ..refusal });
    }
}

fn more_notes(service: &Service, asked: &Asked, listeners: &[Listener], notes: &mut Vec<Note>) {
    let tls = listeners.iter().any(|listener| listener.tls.is_some());
    if let Some(policy) = asked.policy.filter(|_| tls) {
        notes.extend(policy.unspoken().map(|unspoken| Note::Policy { policy: policy.name, unspoken }));
        notes.extend(policy.name.contains("FIPS").then_some(Note::NotValidated { policy: policy.name }));
    }
    let http = listeners.iter().any(|listener| listener.speaks != super::Speaks::Bytes);
    let check = matches!(asked.check, Some(CheckProtocol::Http | CheckProtocol::Https));
    let idle = [
        (names::SSL_PORTS, asked.certificate.is_some(), names::SSL_CERT),
        (names::SSL_POLICY, asked.certificate.is_some(), names::SSL_CERT),
        (names::ACCESS_LOG_INTERVAL, asked.log == Some(true), names::ACCESS_LOG),
        (names::ACCESS_LOG_BUCKET, asked.log == Some(true), names::ACCESS_LOG),
        (names::ACCESS_LOG_PREFIX, asked.log == Some(true), names::ACCESS_LOG),
        (names::DRAINING_TIMEOUT, asked.drain == Some(true), names::DRAINING),
        (names::CHECK_PATH, check, names::CHECK_PROTOCOL),
        (names::AGE, http, "HTTP"),
        (names::CONNECT, http, "HTTP"),
    ];
    for (annotation, has_effect, without) in idle {
        if says(service, annotation).is_some() && !has_effect {
            notes.push(Note::NoEffect { annotation, without });
        }
    }
    let known = |name: &str| TABLE.iter().any(|row| row.name == name) || names::READ_ELSEWHERE.contains(&name);
    let ours = |name: &&String| name.starts_with(names::AWS) || name.starts_with(names::OWN);
    let ignored = service.metadata.annotations.keys().filter(ours).filter(|name| !known(name)).take(MAX_IGNORED);
    notes.extend(ignored.map(|name| Note::Ignored { annotation: name.clone() }));
}

/// As clouds make one: names there begin with a letter and are short.
fn name(service: &Service) -> String {
    let uid = service.metadata.uid.chars().filter(|char| *char != '-');
    std::iter::once('a').chain(uid).take(32).collect()
}
