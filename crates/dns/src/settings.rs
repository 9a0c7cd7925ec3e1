//! What a DNS server runs with: server blocks and the settings of their plugins, as a Corefile names them. Defaults are
//! CoreDNS'.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fairlead_runtime::Account;
use fairlead_zone::{Name, PodRecords};

pub use pattern::{Matcher, Pattern};
pub use remote::{Cache, Forward, HealthCheck, Policy, Prefetch, Share, Stale, Transport, Upstream};
pub use rewrite::{AnswerRule, Rewrite, Rule};

mod pattern;
mod remote;
mod rewrite;

/// What a DNS server runs with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Server blocks.
    pub servers: Vec<Server>,
    /// Where blocks without `bind` listen (`--bind-address`). None: everywhere.
    pub listen: Vec<IpAddr>,
    /// How many sockets, each with a thread, take datagrams of one address. `None`: one for each processor core.
    pub sockets: Option<usize>,
    /// Addresses of this server that others know it by, for NS records. Empty: those of its interfaces.
    pub addresses: Vec<IpAddr>,
    /// Account of the process, which bounds connections, waiting questions and sockets.
    pub account: Account,
}

/// A server block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Server {
    /// What it serves, and where.
    pub keys: Vec<Key>,
    /// What is done with a question.
    pub plugins: Plugins,
}

/// A zone at a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Names that end so.
    pub zone: Name,
    /// The port.
    pub port: u16,
}

/// The plugins of a server block. They are asked in a fixed order, whatever the order of lines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plugins {
    /// `bind`: where to listen.
    pub bind: Vec<Bind>,
    /// `multisocket`.
    pub sockets: Option<usize>,
    /// `reload`.
    pub reload: Option<Reload>,
    /// `health`.
    pub health: Option<Health>,
    /// `ready`.
    pub ready: Option<Ready>,
    /// `prometheus`: where metrics are.
    pub prometheus: Option<Listen>,
    /// Questions are counted for a page that this server does not serve itself.
    pub counted: bool,
    /// `errors`.
    pub errors: Option<Errors>,
    /// `log`.
    pub log: Vec<Log>,
    /// `loadbalance`: addresses take turns in being first.
    pub loadbalance: bool,
    /// `rewrite`, in order.
    pub rewrite: Vec<Rewrite>,
    /// `autopath`.
    pub autopath: Option<Autopath>,
    /// `cache`.
    pub cache: Option<Cache>,
    /// `template`, in order.
    pub template: Vec<Template>,
    /// `hosts`.
    pub hosts: Option<Hosts>,
    /// `kubernetes`.
    pub kubernetes: Option<Kubernetes>,
    /// `loop`: questions that come back end the program.
    pub looping: bool,
    /// `forward`, in order.
    pub forward: Vec<Forward>,
}

impl Plugins {
    /// Those that are there, by name.
    pub(crate) fn enabled(&self) -> Vec<&'static str> {
        let plugins = [
            ("autopath", self.autopath.is_some()),
            ("cache", self.cache.is_some()),
            ("errors", self.errors.is_some()),
            ("forward", !self.forward.is_empty()),
            ("hosts", self.hosts.is_some()),
            ("kubernetes", self.kubernetes.is_some()),
            ("loadbalance", self.loadbalance),
            ("log", !self.log.is_empty()),
            ("loop", self.looping),
            ("prometheus", self.prometheus.is_some()),
            ("rewrite", !self.rewrite.is_empty()),
            ("template", !self.template.is_empty()),
        ];
        plugins.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
    }
}

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bind {
    /// At an address.
    Address(IpAddr),
    /// At all addresses of an interface.
    Interface(String),
    /// Not at this one, whatever else is said.
    Except(Box<Bind>),
}

/// An address to listen at; without one, everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Listen {
    /// `None`: everywhere.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
}

/// `reload`: how often the Corefile is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reload {
    /// So often.
    pub interval: Duration,
    /// Give or take up to this much.
    pub jitter: Duration,
}

/// `health`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Where.
    pub listen: Listen,
    /// How long questions are answered after being told to stop.
    pub lameduck: Duration,
}

/// `ready`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// Where.
    pub listen: Listen,
    /// Whether what was ready once may be unready again.
    pub continuously: bool,
}

/// `errors`: which are told together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Errors {
    /// In order; the first that matches counts.
    pub consolidate: Vec<Consolidate>,
}

/// Errors that are told together.
#[derive(Debug, Clone, PartialEq)]
pub struct Consolidate {
    /// So often.
    pub period: Duration,
    /// Those that match.
    pub pattern: Pattern,
    /// `error`, `warning`, `info` or `debug`.
    pub level: String,
    /// Whether the first is told at once.
    pub show_first: bool,
}

/// `log`.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// For names under these.
    pub names: Vec<Name>,
    /// What a line looks like, with `{placeholders}`.
    pub format: String,
    /// Which replies.
    pub classes: Vec<Class>,
}

/// Kinds of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// All.
    All,
    /// There are records.
    Success,
    /// There is no such name, or no such record.
    Denial,
    /// Anything that went wrong.
    Error,
}

/// Which zones a name error is passed on for, to the next plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Fallthrough {
    /// For none.
    #[default]
    Never,
    /// For these.
    Zones(Vec<Name>),
}

impl Fallthrough {
    /// Whether it is for a name.
    pub fn through(&self, name: &Name) -> bool {
        match self {
            Fallthrough::Never => false,
            Fallthrough::Zones(zones) => zones.iter().any(|zone| name.is_under(zone)),
        }
    }

    /// The same for a name in a zone. The name is made only if the zone does not decide.
    pub(crate) fn through_in(&self, zone: &Name, name: impl FnOnce() -> Name) -> bool {
        match self {
            Fallthrough::Never => false,
            Fallthrough::Zones(zones) if zones.iter().any(|other| zone.is_under(other)) => true,
            Fallthrough::Zones(zones) => zones.iter().any(|other| other.is_under(zone)) && self.through(&name()),
        }
    }
}

/// `autopath`.
#[derive(Debug, Clone, PartialEq)]
pub struct Autopath {
    /// For names under these.
    pub zones: Vec<Name>,
    /// Where the search path comes from.
    pub search: Search,
}

/// Where a search path comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Search {
    /// From the namespace of the Pod that asks.
    Kubernetes,
    /// From a file like `resolv.conf`.
    File(String),
}

/// `template`.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// For names under these.
    pub zones: Vec<Name>,
    /// For this class; `None`: any.
    pub class: Option<u16>,
    /// For this type; `None`: any.
    pub rtype: Option<u16>,
    /// For names that match one of these; none: any name.
    pub matches: Vec<Pattern>,
    /// Records of the answer.
    pub answer: Vec<crate::template::Text>,
    /// Records of the additional section.
    pub additional: Vec<crate::template::Text>,
    /// Records of the authority section.
    pub authority: Vec<crate::template::Text>,
    /// The code of the reply.
    pub rcode: u8,
    /// What happens to a name of the zone that does not match.
    pub fallthrough: Fallthrough,
}

/// `hosts`.
#[derive(Debug, Clone, PartialEq)]
pub struct Hosts {
    /// The file; with lines of its own and no file named, none.
    pub file: Option<String>,
    /// For names under these.
    pub zones: Vec<Name>,
    /// Lines of the Corefile.
    pub inline: Vec<String>,
    /// The time to live.
    pub ttl: u32,
    /// How often the file is looked at; zero: never again.
    pub reload: Duration,
    /// Whether addresses have names.
    pub reverse: bool,
    /// What happens to a name that is not in it.
    pub fallthrough: Fallthrough,
    /// Whether that goes for types other than addresses of a name that is in it, too.
    pub fallthrough_unsupported: bool,
}

/// `kubernetes`.
#[derive(Debug, Clone, PartialEq)]
pub struct Kubernetes {
    /// The cluster domain first; reverse zones.
    pub zones: Vec<Name>,
    /// Records of Pods.
    pub pods: PodRecords,
    /// The time to live.
    pub ttl: u32,
    /// Only these namespaces; empty: all.
    pub namespaces: Vec<String>,
    /// Only namespaces with these labels.
    pub namespace_labels: Option<String>,
    /// Only Services and EndpointSlices with these labels.
    pub labels: Option<String>,
    /// Whether endpoints have the names of their Pods.
    pub endpoint_pod_names: bool,
    /// Whether there are no endpoints.
    pub noendpoints: bool,
    /// Whether a Service without endpoints has no name.
    pub ignore_empty_service: bool,
    /// Whether names of zones are served.
    pub zonal: bool,
    /// What happens to a name that is not there.
    pub fallthrough: Fallthrough,
    /// How long questions wait for the cluster at the start.
    pub startup_timeout: Duration,
    /// A kubeconfig, in place of the one of the command line.
    pub kubeconfig: Option<String>,
    /// The URL of the API server.
    pub endpoint: Option<String>,
}

impl Settings {
    /// What a cluster's own DNS server runs with, without a Corefile: names of the domain and of addresses, everything else
    /// from these upstreams. Pods that ask with a search path get the answer at once.
    pub fn cluster(domain: Name, listen: Vec<IpAddr>, upstreams: &[SocketAddr]) -> Settings {
        let root = Name::root();
        let reverse = ["in-addr.arpa.", "ip6.arpa."].map(|zone| zone.parse::<Name>().expect("a plain name"));
        let zones = [&[domain], reverse.as_slice()].concat();
        // Without anybody else to ask, an address that is not ours has no name.
        let fallthrough = match upstreams {
            [] => Fallthrough::Never,
            _ => Fallthrough::Zones(reverse.to_vec()),
        };
        let kubernetes = Kubernetes { zones, pods: PodRecords::Insecure, fallthrough, ..Kubernetes::default() };
        let to = upstreams.iter().map(|address| Upstream::Address(*address)).collect();
        let forward = Forward { to, ..Forward::default() };
        let plugins = Plugins {
            errors: Some(Errors::default()),
            loadbalance: true,
            autopath: Some(Autopath { zones: vec![root.clone()], search: Search::Kubernetes }),
            cache: Some(Cache { zones: vec![root.clone()], ..Cache::default() }),
            kubernetes: Some(kubernetes),
            counted: true,
            forward: if upstreams.is_empty() { Vec::new() } else { vec![forward] },
            ..Plugins::default()
        };
        let server = Server { keys: vec![Key { zone: root, port: 53 }], plugins };
        Settings { servers: vec![server], listen, ..Settings::default() }
    }
}

impl Default for Kubernetes {
    fn default() -> Kubernetes {
        Kubernetes {
            zones: Vec::new(),
            pods: PodRecords::Disabled,
            ttl: fairlead_zone::DEFAULT_TTL,
            namespaces: Vec::new(),
            namespace_labels: None,
            labels: None,
            endpoint_pod_names: false,
            noendpoints: false,
            ignore_empty_service: false,
            zonal: false,
            fallthrough: Fallthrough::Never,
            startup_timeout: Duration::from_secs(5),
            kubeconfig: None,
            endpoint: None,
        }
    }
}
