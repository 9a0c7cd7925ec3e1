//! What `fairlead dns` runs with: a Corefile, and where objects come from.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use fairlead_dns::{Corefile, Settings, nameservers};
use fairlead_zone::Name;
use tracing_subscriber::filter::LevelFilter;

use super::flags::Text;
use super::{LogFormat, Objects, log_format, log_level, path, text, value};

/// The options of `fairlead dns`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DnsFlags {
    /// The Corefile [default: none; the names of cluster.local, and others from /etc/resolv.conf]
    #[arg(long, alias = "conf", value_name = "FILE")]
    corefile: Option<Text>,
    /// The kubeconfig of the cluster [default: as kubectl finds it, then the account of the Pod we run in]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<Text>,
    /// URLs of API servers, in place of the kubeconfig's; others are learned
    #[arg(long, value_name = "URL,...")]
    master: Option<Text>,
    /// Objects from a file or directory instead of a cluster
    #[arg(long, value_name = "FILE|DIR")]
    manifests: Option<Text>,
    /// Addresses to listen at where the Corefile has no `bind` [default: all]
    #[arg(long, value_name = "IP,...")]
    bind_address: Option<Text>,
    /// Sockets, each with a thread, for datagrams of one address [default: one for each processor core]
    #[arg(long, value_name = "COUNT")]
    udp_sockets: Option<Text>,
    /// Logs as text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Text>,
    /// How much to log: error, warn, info, debug, trace, or a number as in CoreDNS' relatives [default: info]
    #[arg(long, short = 'v', alias = "v", value_name = "LEVEL")]
    log_level: Option<Text>,
}

/// What `fairlead dns` runs with.
#[derive(Debug, Clone)]
pub(crate) struct Dns {
    pub(crate) served: Served,
    pub(crate) objects: Objects,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: LevelFilter,
}

/// What is served.
#[derive(Debug, Clone)]
pub(crate) enum Served {
    /// What a Corefile says.
    Corefile(Corefile),
    /// What a cluster needs.
    Cluster(Box<Settings>),
}

/// The file that says whom this machine asks.
const RESOLV_CONF: &str = "/etc/resolv.conf";

impl Dns {
    /// What flags and defaults say.
    pub(crate) fn resolve(flags: &DnsFlags) -> anyhow::Result<Dns> {
        let sockets = value::parse("udp-sockets", flags.udp_sockets.as_ref(), 0_usize)?;
        let listen = addresses(text(&flags.bind_address))?;
        let added = |settings: Settings| Settings {
            sockets: (sockets > 0).then_some(sockets),
            listen: listen.clone(),
            ..settings
        };
        let served = match path(&flags.corefile) {
            Some(path) => {
                let variables: BTreeMap<String, String> = std::env::vars().collect();
                Served::Corefile(Corefile { path, variables, settings: added(Settings::default()) })
            }
            None => {
                let domain: Name = "cluster.local".parse().expect("a plain name");
                let upstreams = nameservers(&std::fs::read_to_string(RESOLV_CONF).unwrap_or_default());
                Served::Cluster(Box::new(added(Settings::cluster(domain, Vec::new(), &upstreams))))
            }
        };
        let objects = match path(&flags.manifests) {
            Some(path) => Objects::Manifests(path),
            None => Objects::Cluster { kubeconfig: path(&flags.kubeconfig), master: url(flags) },
        };
        let log_format = log_format(&flags.log_format)?;
        Ok(Dns { served, objects, log_format, log_level: log_level(&flags.log_level)? })
    }
}

fn url(flags: &DnsFlags) -> Option<String> {
    Some(text(&flags.master)).filter(|url| !url.is_empty()).map(str::to_owned)
}

fn addresses(list: &str) -> anyhow::Result<Vec<IpAddr>> {
    let parse = |text: &str| text.trim().parse().map_err(|error| value::invalid("bind-address", text, error));
    list.split(',').filter(|text| !text.trim().is_empty()).map(parse).collect()
}

impl Dns {
    /// With what the Corefile says of the cluster where the command line says nothing.
    pub(crate) fn objects(&self, settings: &Settings) -> Option<Objects> {
        let mut plugins = settings.servers.iter().filter_map(|server| server.plugins.kubernetes.as_ref());
        let first = plugins.next()?;
        Some(match self.objects.clone() {
            Objects::Cluster { kubeconfig, master } => Objects::Cluster {
                kubeconfig: kubeconfig.or_else(|| first.kubeconfig.as_ref().map(PathBuf::from)),
                master: master.or_else(|| first.endpoint.clone().filter(|_| first.kubeconfig.is_none())),
            },
            manifests => manifests,
        })
    }
}
