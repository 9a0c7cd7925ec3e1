//! What `fairlead register` is told.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{bail, ensure};
use clap::Args;
use fairlead_api::view::Protocol;
use fairlead_api::{ip, names};
use fairlead_probe::{Schedule, Wish};

use super::checker::Check;

#[cfg(test)]
mod tests;

/// The options of `fairlead register`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RegisterFlags {
    /// The Service; it is made if there is none
    #[arg(value_name = "NAME")]
    name: String,
    /// The namespace of the Service
    #[arg(long, short = 'n', value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// The address of what is registered
    #[arg(long, value_name = "IP")]
    address: String,
    /// A port of it: [NAME=]PORT[/TCP|/UDP|/SCTP]; may be repeated [default: the target ports of the Service]
    #[arg(long, value_name = "PORT")]
    port: Vec<Port>,
    /// How to see whether it is ready: http:/PATH, https:/PATH, tcp, grpc, grpc:SERVICE, exec:COMMAND [default: it always is]
    #[arg(long, value_name = "CHECK")]
    check: Option<Wish>,
    /// From one look to the next
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    interval: Duration,
    /// How long a look may take
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    timeout: Duration,
    /// So many good looks in a row make it ready
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    healthy_threshold: u32,
    /// So many bad looks in a row make it not ready
    #[arg(long, value_name = "COUNT", default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    unhealthy_threshold: u32,
    /// Its share of the connections, from 0 to 100 [default: 1]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(0..=100))]
    weight: Option<u32>,
    /// Its own name below the Service's in DNS
    #[arg(long, value_name = "NAME")]
    hostname: Option<String>,
    /// How long connections may go on after nobody opens new ones
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    drain: Duration,
    /// How long the command may take to end after SIGTERM
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    grace: Duration,
    /// The endpoint is removed by a controller if this program was silent for so long
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    expires_after: Duration,
    /// Register only for as long as this process lives
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pub(super) pid: Option<u32>,
    /// The kubeconfig of the cluster [default: $KUBECONFIG, or that of `fairlead up` on this machine, or as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Start a command, and register only for as long as it runs
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

impl RegisterFlags {
    pub(super) fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref()
    }
}

fn duration(text: &str) -> Result<Duration, &'static str> {
    fairlead_probe::duration(text).ok_or("want a duration such as 5s or 1m30s")
}

/// A port as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    /// Empty: not said.
    pub(super) name: String,
    pub(super) number: u16,
    pub(super) protocol: Protocol,
}

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Port, String> {
        let (name, rest) = text.split_once('=').unwrap_or(("", text));
        let (number, protocol) = rest.split_once('/').unwrap_or((rest, "TCP"));
        let number = number.parse().ok().filter(|number| *number > 0);
        let number = number.ok_or("want [NAME=]PORT[/TCP|/UDP|/SCTP] with a port from 1 to 65535")?;
        let protocol = match protocol.to_ascii_uppercase().as_str() {
            "TCP" => Protocol::Tcp,
            "UDP" => Protocol::Udp,
            "SCTP" => Protocol::Sctp,
            other => return Err(format!("{other:?} is no protocol; want TCP, UDP or SCTP")),
        };
        let wrong = names::label(name);
        if !name.is_empty() && !wrong.is_empty() {
            return Err(wrong.join("; "));
        }
        Ok(Port { name: name.to_owned(), number, protocol })
    }
}

/// What is to be registered.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) namespace: String,
    /// The Service.
    pub(super) name: String,
    pub(super) address: IpAddr,
    pub(super) ports: Vec<Port>,
    pub(super) check: Option<Check>,
    pub(super) schedule: Schedule,
    pub(super) weight: Option<u32>,
    pub(super) hostname: Option<String>,
    pub(super) drain: Duration,
    pub(super) grace: Duration,
    pub(super) expires_after: Duration,
}

impl Wanted {
    pub(super) fn read(flags: &RegisterFlags) -> anyhow::Result<Wanted> {
        let address = address(&flags.address)?;
        let named = flags.port.iter().filter(|port| !port.name.is_empty()).count();
        ensure!(
            flags.port.len() < 2 || named == flags.port.len(),
            "--port: several ports need names, as in --port http=8080 --port metrics=9090"
        );
        ensure!(!flags.interval.is_zero() && !flags.timeout.is_zero(), "--interval, --timeout: want more than 0");
        ensure!(flags.expires_after >= Duration::from_secs(3), "--expires-after: want at least 3s");
        if let Some(hostname) = flags.hostname.as_deref() {
            let wrong = names::label(hostname);
            ensure!(wrong.is_empty(), "--hostname: {}", wrong.join("; "));
        }
        Ok(Wanted {
            namespace: flags.namespace.clone(),
            name: flags.name.clone(),
            address,
            ports: flags.port.clone(),
            check: flags.check.as_ref().map(|wish| Check::new(wish, address, &flags.port)).transpose()?,
            schedule: Schedule {
                initial_delay: Duration::ZERO,
                period: flags.interval,
                timeout: flags.timeout,
                success_threshold: flags.healthy_threshold,
                failure_threshold: flags.unhealthy_threshold,
            },
            weight: flags.weight,
            hostname: flags.hostname.clone(),
            drain: flags.drain,
            grace: flags.grace,
            expires_after: flags.expires_after,
        })
    }

    /// The endpoint as people read it.
    pub(super) fn endpoint(&self) -> String {
        let address = match self.address {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let ports: Vec<String> = self.ports.iter().map(|port| port.number.to_string()).collect();
        if ports.is_empty() { self.address.to_string() } else { format!("{address}:{}", ports.join(",")) }
    }
}

/// An address others can reach.
fn address(text: &str) -> anyhow::Result<IpAddr> {
    let Some(address) = ip::parse(text) else {
        bail!("--address: {text:?} is no IP address; names are not looked up, as their addresses may change");
    };
    let wrong = ip::endpoint_reasons(text);
    ensure!(wrong.is_empty(), "--address: {text} cannot be an endpoint: {}", wrong.join("; "));
    Ok(address)
}
