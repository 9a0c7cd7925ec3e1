//! Server blocks made from settings: each ready to be asked, and where.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use fairlead_kernel::link::Links;
use fairlead_zone::Name;
use tokio::sync::Semaphore;

use crate::Error;
use crate::bounds::Bounds;
use crate::cache::Cache;
use crate::chain::Chain;
use crate::forward::{Forward, nameservers};
use crate::hosts::Hosts;
use crate::listen;
use crate::looping::Looping;
use crate::metrics::Metrics;
use crate::names::{Names, Wanted};
use crate::settings::{self, Plugins, Reload, Search, Server, Settings, Upstream};

/// The file that says whom this machine asks.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Maximum number of cached answers of a server block that are fetched again at a time while no
/// client waits.
const REFRESHES: usize = 64;

/// Everything settings ask for.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The zones of each address, and who answers.
    pub(crate) places: BTreeMap<SocketAddr, Vec<(Name, Arc<Chain>)>>,
    pub(crate) names: Vec<Arc<Names>>,
    pub(crate) hosts: Vec<Arc<Hosts>>,
    /// Looks for loops, and where to begin.
    pub(crate) loops: Vec<(Arc<Looping>, SocketAddr)>,
    chains: Vec<Arc<Chain>>,
}

impl Blocks {
    /// Caches, with the labels they have.
    pub(crate) fn caches(&self) -> Vec<(String, String, Weak<Cache>)> {
        let one = |chain: &Arc<Chain>| {
            let cache = chain.cache.as_ref()?;
            Some((chain.server.clone(), zones_of(&chain.plugins), Arc::downgrade(cache)))
        };
        self.chains.iter().filter_map(one).collect()
    }
}

/// Makes the blocks. `names` gives the names of a cluster that are wanted.
pub(crate) fn blocks(
    settings: &Settings,
    metrics: &Metrics,
    bounds: &Bounds,
    mut names: impl FnMut(Wanted) -> Result<Arc<Names>, Error>,
) -> Result<Blocks, Error> {
    let mut blocks = Blocks::default();
    for server in &settings.servers {
        let addresses = listen::addresses(&server.plugins.bind, &settings.listen, of_interface);
        let wanted = wanted(server, settings, &addresses);
        let known = wanted.map(&mut names).transpose()?;
        let port = server.keys.first().map_or(53, |key| key.port);
        let first = addresses.first().map(|address| SocketAddr::new(*address, port));
        let label = first.map_or_else(String::new, label);
        let chain = Arc::new(chain(server, label, known.clone(), metrics, bounds)?);
        blocks.names.extend(known.filter(|known| !blocks.names.iter().any(|names| Arc::ptr_eq(names, known))));
        blocks.hosts.extend(chain.hosts.clone());
        blocks.loops.extend(chain.looping.clone().zip(first));
        for key in &server.keys {
            for address in &addresses {
                let place = blocks.places.entry(SocketAddr::new(*address, key.port)).or_default();
                place.push((key.zone.clone(), chain.clone()));
            }
        }
        blocks.chains.push(chain);
    }
    Ok(blocks)
}

/// As metrics name a server: `dns://:53`, or with its address if it has one of its own.
pub(crate) fn label(address: SocketAddr) -> String {
    match address.ip() {
        ip if ip.is_unspecified() => format!("dns://:{}", address.port()),
        _ => format!("dns://{address}"),
    }
}

/// How many sockets each address has.
pub(crate) fn sockets(settings: &Settings) -> usize {
    let said = settings.servers.iter().filter_map(|server| server.plugins.sockets).max();
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    settings.sockets.or(said).unwrap_or_else(cores).max(1)
}

fn wanted(server: &Server, settings: &Settings, listening: &[IpAddr]) -> Option<Wanted> {
    let kubernetes = server.plugins.kubernetes.as_ref()?;
    let cache = server.plugins.cache.as_ref();
    let covered = |cache: &&settings::Cache| {
        let domain = kubernetes.zones.first();
        domain.is_some_and(|domain| cache.zones.iter().any(|zone| domain.is_under(zone)))
    };
    let autopath = server.plugins.autopath.as_ref();
    Some(Wanted {
        settings: kubernetes.clone(),
        max_ttl: cache.filter(covered).map(|cache| cache.success.max_ttl),
        addresses: own_addresses(settings, listening),
        search: autopath.is_some_and(|autopath| autopath.search == Search::Kubernetes),
    })
}

/// The addresses others know this server by.
fn own_addresses(settings: &Settings, listening: &[IpAddr]) -> Vec<IpAddr> {
    if !settings.addresses.is_empty() {
        return settings.addresses.clone();
    }
    let outside = |address: &IpAddr| match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    };
    let own: Vec<IpAddr> = listening.iter().copied().filter(|ip| !ip.is_unspecified()).filter(outside).collect();
    if !own.is_empty() {
        return own;
    }
    let all = Links::open().and_then(|mut links| links.all_addresses()).unwrap_or_default();
    all.into_iter().map(|(_, prefix)| prefix.address).filter(outside).collect()
}

fn of_interface(name: &str) -> Vec<IpAddr> {
    let addresses = || {
        let mut links = Links::open()?;
        let index = links.index(name)?;
        links.addresses(index)
    };
    match addresses() {
        Ok(prefixes) => prefixes.into_iter().map(|prefix| prefix.address).collect(),
        Err(error) => {
            tracing::warn!(interface = name, "bind: {error}");
            Vec::new()
        }
    }
}

fn chain(
    server: &Server,
    label: String,
    names: Option<Arc<Names>>,
    metrics: &Metrics,
    bounds: &Bounds,
) -> Result<Chain, Error> {
    let plugins = &server.plugins;
    let cache =
        plugins.cache.as_ref().map(|cache| Arc::new(Cache::new(cache, metrics.cache(&label, &zones_of(plugins)))));
    let zone = server.keys.first().map_or_else(Name::root, |key| key.zone.clone());
    let mut forwards = Vec::new();
    for forward in &plugins.forward {
        forwards.push(Forward::new(forward, upstreams(forward)?, metrics.clone(), bounds.sockets.clone()));
    }
    Ok(Chain {
        plugins: plugins.clone(),
        server: label,
        names,
        hosts: plugins.hosts.as_ref().map(|hosts| Arc::new(Hosts::new(hosts))),
        cache,
        forwards,
        looping: plugins.looping.then(|| looping(&zone)).transpose()?,
        outstanding: Arc::default(),
        refreshes: Arc::new(Semaphore::new(REFRESHES)),
        search: search(plugins)?,
    })
}

fn looping(zone: &Name) -> Result<Arc<Looping>, Error> {
    let looping = Looping::new(zone).map_err(|error| Error::System { what: "making a random name", error })?;
    Ok(Arc::new(looping))
}

fn zones_of(plugins: &Plugins) -> String {
    let zones = plugins.cache.iter().flat_map(|cache| &cache.zones).map(Name::to_string);
    zones.collect::<Vec<_>>().join(",")
}

fn upstreams(forward: &settings::Forward) -> Result<Vec<SocketAddr>, Error> {
    let mut addresses = Vec::new();
    for upstream in &forward.to {
        match upstream {
            Upstream::Address(address) => addresses.push(*address),
            Upstream::File(file) => {
                let found = nameservers(&read(file)?);
                if found.is_empty() {
                    return Err(Error::NoNameserver(file.clone()));
                }
                addresses.extend(found);
            }
        }
    }
    Ok(addresses)
}

/// The search path a resolver has: of the file `autopath` names, or of this machine.
fn search(plugins: &Plugins) -> Result<Vec<Name>, Error> {
    let text = match plugins.autopath.as_ref().map(|autopath| &autopath.search) {
        None => return Ok(Vec::new()),
        Some(Search::File(file)) => read(file)?,
        Some(Search::Kubernetes) => std::fs::read_to_string(RESOLV_CONF).unwrap_or_default(),
    };
    let line = text.lines().rev().find_map(|line| line.trim().strip_prefix("search "));
    Ok(line.into_iter().flat_map(str::split_whitespace).filter_map(|name| name.parse().ok()).collect())
}

fn read(file: &str) -> Result<String, Error> {
    std::fs::read_to_string(file).map_err(|error| Error::File { file: file.to_owned(), error })
}

impl Settings {
    /// How often the Corefile is looked at, if at all.
    pub(crate) fn reload(&self) -> Option<Reload> {
        self.servers.iter().find_map(|server| server.plugins.reload)
    }

    /// How long questions are answered after being told to stop.
    pub(crate) fn lameduck(&self) -> Duration {
        let health = self.servers.iter().filter_map(|server| server.plugins.health);
        health.map(|health| health.lameduck).max().unwrap_or_default()
    }
}
