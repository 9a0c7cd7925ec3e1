//! The configuration file of load balancers: pools of addresses and whatever annotations name. A mistake in it begins with its line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ipnet::IpNet;

use crate::announce::Times;
use crate::engine;
use crate::pools::{Pool, Range, overlap};
use crate::spec::Scheme;
use crate::tls::Place;

mod file;
mod named;
#[cfg(test)]
mod tests;

pub use named::{Around, Reading};

/// What load balancers are made of. Without a file: no pools, and every Service without a class is ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where addresses come from.
    pub pools: Vec<Pool>,
    /// Ranges of clients, by the name that `extra-security-groups` has for them.
    pub security_groups: BTreeMap<String, Vec<IpNet>>,
    /// Certificates, by ARN or whatever `ssl-cert` calls them.
    pub certificates: BTreeMap<String, Place>,
    /// Authorities of the certificates of backends; `None`: any certificate will do.
    pub backend_ca: Option<PathBuf>,
    /// Places for access logs, by the name that `access-log-s3-bucket-name` has for them.
    pub buckets: BTreeMap<String, Bucket>,
    /// Load balancers in front of us: whose word on a client's address is taken.
    pub trusted_fronts: Vec<IpNet>,
    /// Where health checks of network load balancers come from.
    pub vpc_ranges: Vec<IpNet>,
    /// Whether Services without a class are ours.
    pub default: bool,
    /// The interfaces on which addresses are announced; empty: those that have the subnet.
    pub interfaces: Vec<String>,
    /// How Nodes that announce addresses tell each other that they live.
    pub heartbeats: Times,
    /// Resource limits of the threads that carry bytes.
    pub limits: Limits,
}

/// Resource limits of the threads that carry bytes. Connections are also bounded by the
/// process's descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum connections of clients.
    pub connections: usize,
    /// Maximum connections to backends.
    pub backend_connections: usize,
    /// Maximum bytes held for requests under way and for clients and backends that are slow.
    pub buffers: u64,
    /// Least bytes a second of bodies while the client is the one that is waited for; 0: no least
    /// rate.
    pub least_rate: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        let engine::Options { connections, backend_connections, buffers, least_rate, .. } = engine::Options::default();
        Limits { connections, backend_connections, buffers, least_rate }
    }
}

/// Where access logs go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bucket {
    /// A directory.
    Directory(PathBuf),
    /// An object store that speaks S3's protocol.
    S3 {
        /// Its URL.
        endpoint: String,
        /// Its region, for signatures.
        region: String,
        /// A file with `access-key-id` and `secret-access-key`.
        credentials: PathBuf,
    },
}

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A text that makes no sense, with its line if that is known.
    #[error("{}{why}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
    Text {
        /// The line, from 1.
        line: Option<u64>,
        /// What is wrong.
        why: String,
    },
    /// Two pools have an address in common.
    #[error("pools {0:?} and {1:?} have addresses in common")]
    Overlap(String, String),
    /// Two pools have the same name.
    #[error("there are two pools with the name {0:?}")]
    Twice(String),
}

impl Default for Config {
    fn default() -> Config {
        Config {
            pools: Vec::new(),
            security_groups: BTreeMap::new(),
            certificates: BTreeMap::new(),
            backend_ca: None,
            buckets: BTreeMap::new(),
            trusted_fronts: Vec::new(),
            vpc_ranges: Vec::new(),
            default: true,
            interfaces: Vec::new(),
            heartbeats: Times::default(),
            limits: Limits::default(),
        }
    }
}

impl Config {
    /// Reads the text of a file. Paths in it are as they stand there.
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        let config = file::parse(text)?;
        config.check()?;
        Ok(config)
    }

    /// Adds a pool that a flag names: `[NAME=]RANGE[,RANGE...]`. Several flags of one name are one pool.
    pub fn add_pool(&mut self, text: &str, scheme: Scheme) -> Result<(), ConfigError> {
        let usual = match scheme {
            Scheme::Public => "default",
            Scheme::Internal => "internal",
        };
        let (name, ranges) = text.split_once('=').map_or((usual, text), |(name, ranges)| (name.trim(), ranges));
        let wrong = |why: String| ConfigError::Text { line: None, why };
        if name.is_empty() {
            return Err(wrong(format!("{text:?}: want [NAME=]RANGE[,RANGE]")));
        }
        let ranges = ranges.split(',').map(str::parse::<Range>).collect::<Result<Vec<_>, _>>();
        let ranges = ranges.map_err(|error| wrong(error.to_string()))?;
        match self.pools.iter_mut().find(|pool| pool.name == name) {
            Some(pool) if pool.scheme == scheme => pool.ranges.extend(ranges),
            Some(pool) => return Err(ConfigError::Twice(pool.name.clone())),
            None => self.pools.push(Pool::new(name, ranges, scheme)),
        }
        self.check()
    }

    /// Whether the pools can be told apart.
    fn check(&self) -> Result<(), ConfigError> {
        let mut names = std::collections::BTreeSet::new();
        if let Some(twice) = self.pools.iter().find(|pool| !names.insert(&pool.name)) {
            return Err(ConfigError::Twice(twice.name.clone()));
        }
        match overlap(&self.pools) {
            Some((one, other)) => Err(ConfigError::Overlap(one.name.clone(), other.name.clone())),
            None => Ok(()),
        }
    }
}
