//! What load balancers run with: pools and a configuration file, beside the server, on a joined machine, or as `fairlead balancer`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use fairlead_balancer::config::Config as Balancers;
use fairlead_balancer::run::{CLASS, Provisioning, Settings};
use fairlead_balancer::sctp;
use fairlead_balancer::spec::Scheme;
use fairlead_runtime::budget::Account;
use tracing_subscriber::filter::LevelFilter;

use super::flags::{Flags, Text};
use super::{LogFormat, Role, log_format, log_level, path, proxy, text, value};
use crate::gates::switch;

/// Where to say how load balancers do.
pub(crate) const PAGE: &str = "127.0.0.1:10253";

/// The directory of access logs that wait for object stores, in the data directory.
const SPOOL: &str = "access-logs";

/// The options of `fairlead balancer`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BalancerFlags {
    /// The kubeconfig of the cluster [default: as kubectl finds it, then the account of the Pod we run in]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<Text>,
    /// URLs of API servers, in place of the kubeconfig's; others are learned
    #[arg(long, value_name = "URL,...")]
    master: Option<Vec<Text>>,
    /// The name of the Node this machine is [default: its host name]
    #[arg(long, alias = "hostname-override", value_name = "NAME")]
    node_name: Option<Text>,
    /// Addresses for Services of type LoadBalancer, as 192.0.2.0/28 or lan=192.0.2.10-192.0.2.20; may be given several times
    #[arg(long, value_name = "[NAME=]RANGE,...")]
    pool: Option<Vec<Text>>,
    /// Addresses for internal load balancers; may be given several times
    #[arg(long, value_name = "[NAME=]RANGE,...")]
    internal_pool: Option<Vec<Text>>,
    /// The configuration file: pools, certificates, groups of ranges, buckets
    #[arg(long, value_name = "FILE")]
    balancer_config: Option<Text>,
    /// The class of load balancers that Fairlead is [default: fairlead.dev/lb]
    #[arg(long, value_name = "CLASS")]
    load_balancer_class: Option<Text>,
    /// Give out addresses only while holding a Lease, so that several can run and one does [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    leader_elect: Option<Text>,
    /// Where `fairlead lb` finds how load balancers do; empty: nowhere [default: 127.0.0.1:10253]
    #[arg(long, value_name = "IP:PORT")]
    balancer_bind_address: Option<Text>,
    /// Logs as text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Text>,
    /// How much to log: error, warn, info, debug, trace, or a number as in kube-proxy [default: info]
    #[arg(long, short = 'v', alias = "v", value_name = "LEVEL")]
    log_level: Option<Text>,
}

/// What `fairlead balancer` runs with.
#[derive(Debug, Clone)]
pub(crate) struct Balancer {
    pub(crate) kubeconfig: Option<PathBuf>,
    /// URLs of API servers; none: the kubeconfig's.
    pub(crate) masters: Vec<String>,
    pub(crate) settings: Settings,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: LevelFilter,
}

impl Balancer {
    /// What flags and defaults say.
    pub(crate) fn resolve(flags: &BalancerFlags) -> anyhow::Result<Balancer> {
        let elect = flags.leader_elect.as_ref().map_or("true", |Text(text)| text);
        let elect = switch(elect).ok_or_else(|| value::invalid("leader-elect", elect, "want true or false"))?;
        let said = Said {
            pool: &flags.pool,
            internal_pool: &flags.internal_pool,
            config: &flags.balancer_config,
            class: &flags.load_balancer_class,
            page: &flags.balancer_bind_address,
            node: text(&flags.node_name),
            data_dir: Path::new(super::ROOT_DATA_DIR),
        };
        let provisioning = if elect { Provisioning::Elected } else { Provisioning::Here };
        Ok(Balancer {
            kubeconfig: path(&flags.kubeconfig),
            masters: value::list(&flags.master),
            settings: said.settings(provisioning)?,
            log_format: log_format(&flags.log_format)?,
            log_level: log_level(&flags.log_level)?,
        })
    }
}

/// What load balancers beside the server run with; `None`: there are none.
pub(super) fn settings(
    flags: &Flags,
    role: Role,
    data_dir: &Path,
    provisioning: Provisioning,
) -> anyhow::Result<Option<Settings>> {
    let asked = flags.pool.is_some() || flags.internal_pool.is_some() || flags.balancer_config.is_some();
    if role != Role::Up && !asked {
        return Ok(None);
    }
    let said = Said {
        pool: &flags.pool,
        internal_pool: &flags.internal_pool,
        config: &flags.balancer_config,
        class: &flags.load_balancer_class,
        page: &flags.balancer_bind_address,
        node: text(&flags.hostname_override),
        data_dir,
    };
    said.settings(provisioning).map(Some)
}

/// What was said about load balancers, wherever.
struct Said<'a> {
    pool: &'a Option<Vec<Text>>,
    internal_pool: &'a Option<Vec<Text>>,
    config: &'a Option<Text>,
    class: &'a Option<Text>,
    page: &'a Option<Text>,
    node: &'a str,
    data_dir: &'a Path,
}

impl Said<'_> {
    fn settings(&self, provisioning: Provisioning) -> anyhow::Result<Settings> {
        let mut config = match path(self.config) {
            Some(file) => {
                let text =
                    std::fs::read_to_string(&file).with_context(|| format!("--balancer-config: {}", file.display()))?;
                Balancers::parse(&text).map_err(|error| anyhow!("--balancer-config: {}: {error}", file.display()))?
            }
            None => Balancers::default(),
        };
        for (flag, texts, scheme) in
            [("pool", self.pool, Scheme::Public), ("internal-pool", self.internal_pool, Scheme::Internal)]
        {
            for Text(text) in texts.iter().flatten() {
                config.add_pool(text, scheme).map_err(|error| value::invalid(flag, text, error))?;
            }
        }
        let class = text(self.class);
        Ok(Settings {
            node: proxy::node_name(self.node)?,
            config: Arc::new(config),
            class: if class.is_empty() { CLASS.to_owned() } else { class.to_owned() },
            provisioning,
            sctp: sctp::is_there(),
            spool: self.data_dir.join(SPOOL),
            page: value::address("balancer-bind-address", self.page, PAGE)?,
            account: Account::default(),
        })
    }
}

#[cfg(test)]
mod tests;
