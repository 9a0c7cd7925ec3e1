//! The table of annotations: what each is called, what it may say, how that is read and where it goes. An empty text is as good
//! as none, in all of them: the documents leave annotations empty to mean the default.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use ipnet::IpNet;

use super::value::{boolean, bucket, list, number, path, prefix, ranges, seconds, tags, word};
use super::{Choice, Kind, ProxyVersion, names};
use crate::tls::policy::{self, Policy};

/// What annotations say, before anything is made of it.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// One of them asks for an internal load balancer.
    pub(super) internal: bool,
    /// `aws-load-balancer-scheme` asks for one that is not.
    pub(super) public: bool,
    pub(super) kind: Option<Kind>,
    pub(super) certificate: Option<String>,
    pub(super) backend: Option<Backend>,
    pub(super) tls_ports: Option<TlsPorts>,
    pub(super) policy: Option<&'static Policy>,
    pub(super) send_proxy: Option<ProxyVersion>,
    pub(super) send_proxy_by_aws: bool,
    pub(super) accept_proxy: Option<bool>,
    pub(super) log: Option<bool>,
    pub(super) log_interval: Option<Duration>,
    pub(super) bucket: Option<String>,
    pub(super) prefix: Option<String>,
    pub(super) drain: Option<bool>,
    pub(super) drain_timeout: Option<Duration>,
    pub(super) idle: Option<Duration>,
    pub(super) cross_zone: Option<bool>,
    pub(super) tags: Option<BTreeMap<String, String>>,
    pub(super) healthy: Option<u32>,
    pub(super) unhealthy: Option<u32>,
    pub(super) interval: Option<Duration>,
    pub(super) timeout: Option<Duration>,
    pub(super) check: Option<CheckProtocol>,
    pub(super) check_port: Option<CheckPort>,
    pub(super) check_path: Option<String>,
    pub(super) groups: Option<Vec<String>>,
    pub(super) extra_groups: Option<Vec<String>>,
    pub(super) ranges: Option<Vec<IpNet>>,
    pub(super) choice: Option<Choice>,
    pub(super) age: Option<Duration>,
    pub(super) connect: Option<bool>,
    pub(super) layer: Option<Layer>,
}

/// What Pods speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backend {
    Http,
    Https,
    Ssl,
    Tcp,
}

/// Which ports have TLS towards clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TlsPorts {
    All,
    /// By number or name.
    Some(Vec<String>),
}

/// What is spoken in a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckProtocol {
    Tcp,
    Http,
    Https,
}

/// Which port is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckPort {
    Traffic,
    Number(u16),
}

/// How much is understood where nothing else says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    Four,
    Seven,
}

/// A row of the table.
pub(super) struct Annotation {
    pub(super) name: &'static str,
    pub(super) accepted: Accepted,
    pub(super) read: fn(&str, &mut Asked) -> Option<()>,
}

/// What an annotation may say.
#[derive(Clone, Copy)]
pub(super) enum Accepted {
    Words(&'static str),
    /// The names in the table of policies.
    Policies,
}

impl fmt::Display for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Accepted::Words(words) => f.write_str(words),
            Accepted::Policies => {
                write!(f, "a predefined policy: {}, or one with FIPS or PQ in its name", plain_policies())
            }
        }
    }
}

const fn row(name: &'static str, accepted: &'static str, read: fn(&str, &mut Asked) -> Option<()>) -> Annotation {
    Annotation { name, accepted: Accepted::Words(accepted), read }
}

/// All annotations.
pub(super) static TABLE: &[Annotation] = &[
    row(names::GCP_TYPE, "Internal", |text, asked| internal(asked, gcp(text))),
    row(names::GCP_TYPE_OLD, "Internal", |text, asked| internal(asked, gcp(text))),
    row(names::AWS_INTERNAL, "true, false or 0.0.0.0/0", |text, asked| {
        internal(asked, boolean(text).or_else(|| (text == "0.0.0.0/0").then_some(true)))
    }),
    row(names::AWS_SCHEME, "internal or internet-facing", |text, asked| {
        let says = word(text, &[("internal", true), ("internet-facing", false)])?;
        asked.public = !says;
        internal(asked, Some(says))
    }),
    row(names::AZURE_INTERNAL, "true or false", |text, asked| internal(asked, boolean(text))),
    row(names::OPENSTACK_INTERNAL, "true or false", |text, asked| internal(asked, boolean(text))),
    row(names::BAIDU_INTERNAL, "true or false", |text, asked| internal(asked, boolean(text))),
    row(names::ORACLE_INTERNAL, "true or false", |text, asked| internal(asked, boolean(text))),
    row(names::ALIBABA_ADDRESS_TYPE, "intranet or internet", |text, asked| {
        internal(asked, word(text, &[("intranet", true), ("internet", false)]))
    }),
    row(names::IBM_IP_TYPE, "private or public", |text, asked| {
        internal(asked, word(text, &[("private", true), ("public", false)]))
    }),
    row(names::TENCENT_SUBNET, "the id of a subnet, as subnet-12345", |text, asked| {
        let id = text.strip_prefix("subnet-")?;
        internal(asked, (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(true))
    }),
    row(
        names::TYPE,
        "nlb; nlb-ip and external leave a Service to another controller: that is what spec.loadBalancerClass is for",
        |text, asked| put(&mut asked.kind, (text == "nlb").then_some(Kind::Network)),
    ),
    row(names::SSL_CERT, "the ARN or name of a certificate, or several between commas", |text, asked| {
        put(&mut asked.certificate, list(text).map(|names| names.join(",")))
    }),
    row(names::BACKEND_PROTOCOL, "http, https, ssl or tcp", |text, asked| {
        let words = [("http", Backend::Http), ("https", Backend::Https), ("ssl", Backend::Ssl), ("tcp", Backend::Tcp)];
        put(&mut asked.backend, word(&text.to_ascii_lowercase(), &words))
    }),
    row(names::SSL_PORTS, "numbers or names of ports between commas, or *", |text, asked| {
        let all = (text.trim() == "*").then_some(TlsPorts::All);
        put(&mut asked.tls_ports, all.or_else(|| list(text).map(TlsPorts::Some)))
    }),
    Annotation {
        name: names::SSL_POLICY,
        accepted: Accepted::Policies,
        read: |text, asked| put(&mut asked.policy, policy::find(text).filter(|policy| policy.spoken().is_some())),
    },
    row(names::AWS_PROXY_PROTOCOL, "* (all ports)", |text, asked| {
        asked.send_proxy_by_aws = text == "*";
        asked.send_proxy_by_aws.then_some(())
    }),
    row(names::ACCESS_LOG, "true or false", |text, asked| put(&mut asked.log, boolean(text))),
    row(names::ACCESS_LOG_INTERVAL, "5 or 60 (minutes)", |text, asked| {
        let minutes = number(text, 5..=60).filter(|minutes| matches!(minutes, 5 | 60));
        put(&mut asked.log_interval, minutes.map(|minutes| Duration::from_secs(u64::from(minutes) * 60)))
    }),
    row(
        names::ACCESS_LOG_BUCKET,
        "the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens",
        |text, asked| put(&mut asked.bucket, bucket(text)),
    ),
    row(
        names::ACCESS_LOG_PREFIX,
        "names of directories between slashes, without AWSLogs among them, 512 letters at most",
        |text, asked| put(&mut asked.prefix, prefix(text)),
    ),
    row(names::DRAINING, "true or false", |text, asked| put(&mut asked.drain, boolean(text))),
    row(names::DRAINING_TIMEOUT, "a number of seconds from 1 to 3600", |text, asked| {
        put(&mut asked.drain_timeout, seconds(text, 1..=3600))
    }),
    row(names::IDLE_TIMEOUT, "a number of seconds from 1 to 4000", |text, asked| {
        put(&mut asked.idle, seconds(text, 1..=4000))
    }),
    row(names::CROSS_ZONE, "true or false", |text, asked| put(&mut asked.cross_zone, boolean(text))),
    row(
        names::TAGS,
        "key=value between commas, 50 at most, each key once, keys of 1 to 128 letters, values of 256 at most",
        |text, asked| put(&mut asked.tags, tags(text)),
    ),
    row(names::CHECK_HEALTHY, "a number from 2 to 10", |text, asked| put(&mut asked.healthy, number(text, 2..=10))),
    row(names::CHECK_UNHEALTHY, "a number from 2 to 10", |text, asked| put(&mut asked.unhealthy, number(text, 2..=10))),
    row(names::CHECK_INTERVAL, "a number of seconds from 5 to 300, more than the timeout", |text, asked| {
        put(&mut asked.interval, seconds(text, 5..=300))
    }),
    row(names::CHECK_TIMEOUT, "a number of seconds from 2 to 60, less than the interval", |text, asked| {
        put(&mut asked.timeout, seconds(text, 2..=60))
    }),
    row(names::CHECK_PROTOCOL, "tcp, http or https", |text, asked| {
        let words = [("tcp", CheckProtocol::Tcp), ("http", CheckProtocol::Http), ("https", CheckProtocol::Https)];
        put(&mut asked.check, word(&text.to_ascii_lowercase(), &words))
    }),
    row(names::CHECK_PORT, "traffic-port or a number from 1 to 65535", |text, asked| {
        let port = number(text, 1..=65535).and_then(|port| u16::try_from(port).ok()).map(CheckPort::Number);
        put(&mut asked.check_port, port.or_else(|| (text == "traffic-port").then_some(CheckPort::Traffic)))
    }),
    row(names::CHECK_PATH, "a path that begins with /, 1024 letters at most", |text, asked| {
        put(&mut asked.check_path, path(text))
    }),
    row(names::GROUPS, "names of securityGroups of the configuration between commas", |text, asked| {
        put(&mut asked.groups, list(text))
    }),
    row(names::EXTRA_GROUPS, "names of securityGroups of the configuration between commas", |text, asked| {
        put(&mut asked.extra_groups, list(text))
    }),
    row(names::SOURCE_RANGES, "ranges of addresses between commas, as 10.0.0.0/24,192.168.2.0/24", |text, asked| {
        put(&mut asked.ranges, ranges(text))
    }),
    row(names::PROXY_PROTOCOL, "v1 or v2", |text, asked| {
        put(&mut asked.send_proxy, word(text, &[("v1", ProxyVersion::V1), ("v2", ProxyVersion::V2)]))
    }),
    row(names::ACCEPT_PROXY, "true or false", |text, asked| put(&mut asked.accept_proxy, boolean(text))),
    row(names::BALANCE, "round-robin, least, two-choices or hash", |text, asked| {
        let words = [
            ("round-robin", Choice::RoundRobin),
            ("least", Choice::Least),
            ("two-choices", Choice::TwoChoices),
            ("hash", Choice::Hash),
        ];
        put(&mut asked.choice, word(text, &words))
    }),
    row(names::AGE, "a number of seconds from 1 to 604800", |text, asked| {
        put(&mut asked.age, seconds(text, 1..=604_800))
    }),
    row(names::CONNECT, "true or false", |text, asked| put(&mut asked.connect, boolean(text))),
    row(names::LAYER, "4 or 7", |text, asked| {
        put(&mut asked.layer, word(text, &[("4", Layer::Four), ("7", Layer::Seven)]))
    }),
];

fn put<T>(place: &mut Option<T>, value: Option<T>) -> Option<()> {
    *place = Some(value?);
    Some(())
}

/// An internal load balancer is asked for as soon as one cloud's annotation does: a manifest may carry those of several.
fn internal(asked: &mut Asked, says: Option<bool>) -> Option<()> {
    asked.internal |= says?;
    Some(())
}

/// Small letters are what GCP took in 1.7.0 to 1.7.3.
fn gcp(text: &str) -> Option<bool> {
    word(text, &[("Internal", true), ("internal", true)])
}

/// The names of policies, in words that fit into an Event.
fn plain_policies() -> String {
    const PREFIX: &str = "ELBSecurityPolicy-";
    let spoken = |name: &&str| policy::find(name).is_some_and(|policy| policy.spoken().is_some());
    let names = policy::names().filter(spoken).filter_map(|name| name.strip_prefix(PREFIX));
    let plain: Vec<_> = names.filter(|name| !name.contains("FIPS") && !name.contains("PQ")).collect();
    format!("{PREFIX} and one of {}", plain.join(", "))
}
