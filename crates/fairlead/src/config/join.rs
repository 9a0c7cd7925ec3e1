//! What `fairlead join` was asked for: which server, with which token, as which Node. What Nodes have in common the server says.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use fairlead_api::Look;
use fairlead_balancer::run::Provisioning;
use serde_json::Value;
use tracing_subscriber::filter::LevelFilter;

use super::flags::{Flags, Text};
use super::{
    Environment, LogFormat, Node, Role, balancer, images, log_format, log_level, machine, node, path, proxy, read_file,
    text, value,
};

/// Where the API of a Node's Pods listens.
const PORT: u16 = 10250;

/// The options of `fairlead join`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct JoinFlags {
    /// Config file, of which the key `images` counts [default: /etc/fairlead/config.yaml, then
    /// $XDG_CONFIG_HOME/fairlead/config.yaml]
    #[arg(long, value_name = "FILE")]
    config: Option<Text>,
    /// The server to join, as https://192.0.2.1:6443, or several; afterwards it is remembered
    #[arg(long, value_name = "URL,...")]
    server: Option<Vec<Text>>,
    /// What `fairlead token` prints there; afterwards it is not needed
    #[arg(long, value_name = "TOKEN")]
    token: Option<Text>,
    /// Where everything is kept [default: /var/lib/fairlead as root, else $XDG_STATE_HOME/fairlead]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<Text>,
    /// The name of the Node this machine is [default: its host name]
    #[arg(long, value_name = "NAME")]
    hostname_override: Option<Text>,
    /// The address at which other machines reach this one [default: the one it has towards the server]
    #[arg(long, value_name = "IP")]
    node_ip: Option<Text>,
    /// Port at which the server asks for logs and commands of Pods [default: 10250]
    #[arg(long, value_name = "PORT")]
    port: Option<Text>,
    /// How Services are served on this machine: nftables, iptables, ipvs, userspace, auto or none [default: auto]
    #[arg(long, value_name = "MODE")]
    proxy_mode: Option<Text>,
    /// Where node ports are served: ranges, or primary [default: primary in mode nftables, everywhere in others]
    #[arg(long, value_name = "CIDR,...")]
    nodeport_addresses: Option<Vec<Text>>,
    /// Where the proxy's /healthz is; empty: nowhere [default: 127.0.0.1:10256]
    #[arg(long, value_name = "IP:PORT")]
    healthz_bind_address: Option<Text>,
    /// Where the proxy's /metrics is; empty: nowhere [default: 127.0.0.1:10249]
    #[arg(long, value_name = "IP:PORT")]
    metrics_bind_address: Option<Text>,
    /// Users of Pods on this machine, one for each Pod [default: 1900000000-1900065535]
    #[arg(long, value_name = "FIRST-LAST")]
    pod_users: Option<Text>,
    /// Who is asked for names outside the cluster [default: the nameservers of /etc/resolv.conf]
    #[arg(long, value_name = "IP[:PORT],...")]
    dns_upstream: Option<Vec<Text>>,
    /// The configuration file of load balancers: the same on all machines of the cluster
    #[arg(long, value_name = "FILE")]
    balancer_config: Option<Text>,
    /// The class of load balancers that Fairlead is [default: fairlead.dev/lb]
    #[arg(long, value_name = "CLASS")]
    load_balancer_class: Option<Text>,
    /// Where `fairlead lb` finds how load balancers do; empty: nowhere [default: 127.0.0.1:10253]
    #[arg(long, value_name = "IP:PORT")]
    balancer_bind_address: Option<Text>,
    /// Logs as text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Text>,
    /// How much to log: error, warn, info, debug, trace, or a number as in kube-apiserver [default: info]
    #[arg(long, short = 'v', alias = "v", value_name = "LEVEL")]
    log_level: Option<Text>,
}

/// What `fairlead join` runs with.
#[derive(Debug, Clone)]
pub(crate) struct Join {
    pub(crate) data_dir: PathBuf,
    /// None: those of the cluster that this machine has joined.
    pub(crate) servers: Vec<String>,
    /// `None`: this machine has joined.
    pub(crate) token: Option<Token>,
    pub(crate) name: String,
    pub(crate) node_ip: Option<IpAddr>,
    pub(crate) port: u16,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: LevelFilter,
    flags: Flags,
}

/// What lets a machine join, and by what it knows the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) secret: String,
    /// Of the server's authorities.
    pub(crate) pin: String,
}

impl Token {
    /// Reads `SECRET@PIN`.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Token> {
        let Some((secret, pin)) = text.trim().split_once('@').filter(|(_, pin)| pin.starts_with("sha256:")) else {
            bail!("--token: want TOKEN@sha256:HASH, as `fairlead token` prints it on the server");
        };
        if fairlead_server::auth::bootstrap_token::parse(secret).is_none() {
            bail!("--token: want six letters or digits, a dot and sixteen more before the @");
        }
        Ok(Token { secret: secret.to_owned(), pin: pin.to_owned() })
    }
}

impl Join {
    /// What the options mean.
    pub(crate) fn resolve(flags: &JoinFlags, environment: &Environment) -> anyhow::Result<Join> {
        let node_ip = flags
            .node_ip
            .as_ref()
            .map(|Text(text)| text.parse::<IpAddr>().map_err(|error| value::invalid("node-ip", text, error)));
        let servers: Vec<String> =
            value::list(&flags.server).iter().map(|url| url.trim_end_matches('/').to_owned()).collect();
        if let Some(url) = servers.iter().find(|url| !url.starts_with("https://")) {
            return Err(value::invalid("server", url, "want a URL that begins with https://"));
        }
        let file = path(&flags.config).or_else(|| environment.config_file());
        let images = file.map(|file| read_file(&file)).transpose()?.and_then(|file| file.images);
        images::images(images.as_deref())?;
        Ok(Join {
            data_dir: path(&flags.data_dir).map_or_else(|| environment.data_dir(), Ok)?,
            servers,
            token: flags.token.as_ref().map(|Text(text)| Token::parse(text)).transpose()?,
            name: proxy::node_name(text(&flags.hostname_override))?,
            node_ip: node_ip.transpose()?,
            port: value::parse("port", flags.port.as_ref(), PORT)?,
            log_format: log_format(&flags.log_format)?,
            log_level: log_level(&flags.log_level)?,
            flags: Flags {
                images,
                hostname_override: flags.hostname_override.clone(),
                proxy_mode: flags.proxy_mode.clone(),
                nodeport_addresses: flags.nodeport_addresses.clone(),
                healthz_bind_address: flags.healthz_bind_address.clone(),
                metrics_bind_address: flags.metrics_bind_address.clone(),
                dns_upstream: flags.dns_upstream.clone(),
                pod_users: flags.pod_users.clone(),
                balancer_config: flags.balancer_config.clone(),
                load_balancer_class: flags.load_balancer_class.clone(),
                balancer_bind_address: flags.balancer_bind_address.clone(),
                ..Flags::default()
            },
        })
    }

    /// What this machine is and how it serves Services, in a cluster that says this of itself.
    pub(crate) fn parts(&self, cluster: &Value) -> anyhow::Result<(Node, Option<fairlead_proxy::Settings>)> {
        let listed = |name: &str| Some(vec![Text(cluster.texts(name).join(","))]);
        let flags = Flags {
            cluster_cidr: listed("podRanges"),
            cluster_dns: listed("dns"),
            cluster_domain: Some(Text(cluster.text("domain").to_owned())),
            ..self.flags.clone()
        };
        let node = node::settings(&flags, Role::Up, &[])?.context("the server says nothing of the cluster")?;
        let proxy = machine::settings(&flags, Role::Up)?;
        let topology_keys = cluster.flag("topologyKeys");
        Ok((node, proxy.map(|proxy| fairlead_proxy::Settings { topology_keys, ..proxy })))
    }

    /// How load balancers are run: addresses are given out where the server is.
    pub(crate) fn balancer(&self) -> anyhow::Result<Option<fairlead_balancer::run::Settings>> {
        balancer::settings(&self.flags, Role::Up, &self.data_dir, Provisioning::Elsewhere)
    }
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn a_token_names_the_server_it_is_for() {
        let check = |text: &str, fine: bool| assert_eq!(Token::parse(text).is_ok(), fine, "{text}");
        check("abcdef.0123456789abcdef@sha256:00ff", true);
        check("abcdef.0123456789abcdef@sha256:00ff\n", true);
        check("abcdef.0123456789abcdef", false);
        check("abcdef.0123456789abcdef@md5:00ff", false);
        check("abcdef.0123@sha256:00ff", false);
    }
}
