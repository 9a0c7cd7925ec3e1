//! The file as it is written: YAML with the names of fields that Kubernetes would give them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use fairlead_api::selector::LabelSelector;
use ipnet::IpNet;
use jiff::SignedDuration;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, de};

use super::{Bucket, Config, ConfigError, Limits};
use crate::announce::Times;
use crate::pools::{Pool, Range};
use crate::spec::Scheme;
use crate::tls::Place;

/// Reads the text.
pub(super) fn parse(text: &str) -> Result<Config, ConfigError> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Config::default());
    }
    let file: File = serde_saphyr::from_str(text).map_err(|error| ConfigError::Text {
        line: error.location().map(|place| place.line()),
        why: mistake(&error),
    })?;
    Ok(file.into())
}

/// What is wrong, without the place, which stands before it, and without the names of all keys there are.
fn mistake(error: &serde_saphyr::Error) -> String {
    let message = error.without_snippet().to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    let message = message.split_once(", expected one of").map_or(message, |(message, _)| message);
    message.replacen("unknown field", "unknown key", 1)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct File {
    pools: Vec<PoolEntry>,
    security_groups: BTreeMap<String, Vec<Parsed<IpNet>>>,
    certificates: BTreeMap<String, CertificateValue>,
    #[serde(rename = "backendCA")]
    backend_ca: Option<PathBuf>,
    buckets: BTreeMap<String, BucketValue>,
    trusted_fronts: Vec<Parsed<IpNet>>,
    vpc_ranges: Vec<Parsed<IpNet>>,
    #[serde(default = "yes")]
    default: bool,
    interfaces: Vec<String>,
    heartbeats: Heartbeats,
    limits: LimitsEntry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PoolEntry {
    name: String,
    addresses: Addresses,
    #[serde(default)]
    scheme: SchemeWord,
    #[serde(default)]
    namespaces: Vec<String>,
    #[serde(default)]
    service_selector: Option<Selector>,
    #[serde(default = "yes")]
    auto_assign: bool,
    #[serde(default = "yes", rename = "avoidBuggyIPs")]
    avoid_buggy_ips: bool,
    #[serde(default)]
    priority: u32,
}

fn yes() -> bool {
    true
}

#[derive(Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SchemeWord {
    #[default]
    Public,
    Internal,
}

/// At least one range.
struct Addresses(Vec<Range>);

impl<'de> Deserialize<'de> for Addresses {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Addresses, D::Error> {
        let ranges = Vec::<Parsed<Range>>::deserialize(input)?;
        if ranges.is_empty() {
            return Err(D::Error::custom("a pool needs addresses"));
        }
        Ok(Addresses(ranges.into_iter().map(|Parsed(range)| range).collect()))
    }
}

/// A text that is read by its type.
struct Parsed<T>(T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Parsed<T>, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);
        impl<T: FromStr<Err: Display>> de::Visitor<'_> for Visitor<T> {
            type Value = Parsed<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Parsed<T>, E> {
                text.trim().parse().map(Parsed).map_err(|error| E::custom(format!("{text:?}: {error}")))
            }
        }
        input.deserialize_str(Visitor(std::marker::PhantomData))
    }
}

/// Which Services: `app=web,tier in (a, b)`.
struct Selector(LabelSelector);

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Selector, D::Error> {
        let text = String::deserialize(input)?;
        LabelSelector::parse(&text).map(Selector).map_err(|failure| D::Error::custom(failure.message))
    }
}

/// A certificate, checked.
#[derive(Deserialize)]
#[serde(try_from = "CertificateEntry")]
struct CertificateValue(Place);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CertificateEntry {
    secret: Option<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl TryFrom<CertificateEntry> for CertificateValue {
    type Error = &'static str;

    fn try_from(entry: CertificateEntry) -> Result<CertificateValue, &'static str> {
        match (entry.secret, entry.certificate, entry.key) {
            (Some(secret), None, None) => {
                let (namespace, name) = match secret.split_once('/') {
                    Some((namespace, name)) => (Some(namespace.to_owned()), name.to_owned()),
                    None => (None, secret),
                };
                if name.is_empty() || namespace.as_ref().is_some_and(String::is_empty) {
                    return Err("secret: want NAMESPACE/NAME, or NAME for one beside the Service");
                }
                Ok(CertificateValue(Place::Secret { namespace, name }))
            }
            (None, Some(chain), Some(key)) => Ok(CertificateValue(Place::Files { chain, key })),
            _ => Err("a certificate is either `secret: NAMESPACE/NAME`, or `certificate: FILE` and `key: FILE`"),
        }
    }
}

/// A bucket, checked.
#[derive(Deserialize)]
#[serde(try_from = "BucketEntry")]
struct BucketValue(Bucket);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BucketEntry {
    directory: Option<PathBuf>,
    s3: Option<String>,
    region: Option<String>,
    credentials: Option<PathBuf>,
}

impl TryFrom<BucketEntry> for BucketValue {
    type Error = &'static str;

    fn try_from(entry: BucketEntry) -> Result<BucketValue, &'static str> {
        match (entry.directory, entry.s3, entry.region, entry.credentials) {
            (Some(directory), None, None, None) => Ok(BucketValue(Bucket::Directory(directory))),
            (None, Some(endpoint), region, Some(credentials)) => {
                if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
                    return Err("s3: want a URL that begins with http:// or https://");
                }
                let region = region.unwrap_or_else(|| "us-east-1".to_owned());
                Ok(BucketValue(Bucket::S3 { endpoint, region, credentials }))
            }
            _ => Err("a bucket is either `directory: DIR`, or `s3: URL`, `credentials: FILE` and perhaps `region`"),
        }
    }
}

/// Heartbeats, checked.
#[derive(Default, Deserialize)]
#[serde(try_from = "HeartbeatsEntry")]
struct Heartbeats(Times);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct HeartbeatsEntry {
    interval: Option<Parsed<SignedDuration>>,
    limit: Option<Parsed<SignedDuration>>,
    alone: Option<Parsed<SignedDuration>>,
}

/// Heartbeats more often than this would be all the API does; more seldom, nobody would take over.
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(30);

impl TryFrom<HeartbeatsEntry> for Heartbeats {
    type Error = &'static str;

    fn try_from(entry: HeartbeatsEntry) -> Result<Heartbeats, &'static str> {
        let usual = Times::default();
        let read = |given: Option<Parsed<SignedDuration>>, usual: Duration| match given {
            Some(Parsed(given)) => Duration::try_from(given).unwrap_or_default(),
            None => usual,
        };
        let interval = read(entry.interval, usual.interval);
        let limit = read(entry.limit, usual.limit);
        let alone = read(entry.alone, usual.alone);
        if [interval, limit, alone].iter().any(|time| !(SHORTEST..=LONGEST).contains(time)) {
            return Err("heartbeats: times are from 50ms to 30s");
        }
        if limit < interval * 2 {
            return Err("heartbeats: want a limit of at least two intervals");
        }
        if alone < interval {
            return Err("heartbeats: want a time alone that is not shorter than the interval");
        }
        Ok(Heartbeats(Times { interval, limit, alone }))
    }
}

/// Resource limits of threads.
#[derive(Default, Deserialize)]
#[serde(try_from = "LimitsFile")]
struct LimitsEntry(Limits);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LimitsFile {
    connections: Option<usize>,
    backend_connections: Option<usize>,
    buffers: Option<u64>,
    least_rate: Option<u64>,
}

/// Least bytes of buffers: less would not hold one request of each thread.
const LEAST_BUFFERS: u64 = 4 << 20;

impl TryFrom<LimitsFile> for LimitsEntry {
    type Error = &'static str;

    fn try_from(file: LimitsFile) -> Result<LimitsEntry, &'static str> {
        let usual = Limits::default();
        let limits = Limits {
            connections: file.connections.unwrap_or(usual.connections),
            backend_connections: file.backend_connections.unwrap_or(usual.backend_connections),
            buffers: file.buffers.unwrap_or(usual.buffers),
            least_rate: file.least_rate.unwrap_or(usual.least_rate),
        };
        if limits.connections == 0 || limits.backend_connections == 0 {
            return Err("limits: connections and backendConnections are at least 1");
        }
        if limits.buffers < LEAST_BUFFERS {
            return Err("limits: buffers are at least 4194304 bytes (4 MiB)");
        }
        Ok(LimitsEntry(limits))
    }
}

impl From<File> for Config {
    fn from(file: File) -> Config {
        let plain =
            |ranges: Vec<Parsed<IpNet>>| -> Vec<IpNet> { ranges.into_iter().map(|Parsed(range)| range).collect() };
        Config {
            pools: file.pools.into_iter().map(Pool::from).collect(),
            security_groups: file.security_groups.into_iter().map(|(name, ranges)| (name, plain(ranges))).collect(),
            certificates: file.certificates.into_iter().map(|(name, value)| (name, value.0)).collect(),
            backend_ca: file.backend_ca,
            buckets: file.buckets.into_iter().map(|(name, value)| (name, value.0)).collect(),
            trusted_fronts: plain(file.trusted_fronts),
            vpc_ranges: plain(file.vpc_ranges),
            default: file.default,
            interfaces: file.interfaces,
            heartbeats: file.heartbeats.0,
            limits: file.limits.0,
        }
    }
}

impl From<PoolEntry> for Pool {
    fn from(entry: PoolEntry) -> Pool {
        let scheme = match entry.scheme {
            SchemeWord::Public => Scheme::Public,
            SchemeWord::Internal => Scheme::Internal,
        };
        Pool {
            name: entry.name,
            ranges: entry.addresses.0,
            scheme,
            namespaces: entry.namespaces,
            selectors: entry.service_selector.into_iter().map(|Selector(selector)| selector).collect(),
            auto_assign: entry.auto_assign,
            avoid_buggy: entry.avoid_buggy_ips,
            priority: entry.priority,
        }
    }
}
