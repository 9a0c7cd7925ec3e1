//! How this machine serves Services when the proxy runs beside the server: with `fairlead up`, or when asked for.

use fairlead_plan::NodePortAddresses;
use fairlead_proxy::{Detection, Mode, Settings};
use ipnet::IpNet;

use super::flags::{Flags, Text};
use super::{Role, proxy, text, value};

const POD_RANGES: &str = "10.244.0.0/16,fd00:244::/48";
const HEALTHZ: &str = "127.0.0.1:10256";
pub(crate) const METRICS: &str = "127.0.0.1:10249";

/// What the proxy of this machine runs with; `None`: there is none.
pub(super) fn settings(flags: &Flags, role: Role) -> anyhow::Result<Option<Settings>> {
    let usual = if role == Role::Up { "auto" } else { "none" };
    let mode = match flags.proxy_mode.as_ref().map_or(usual, |Text(text)| text) {
        "none" => return Ok(None),
        "auto" | "" => None,
        name => Some(mode(name)?),
    };
    Ok(Some(Settings {
        mode,
        node: proxy::node_name(text(&flags.hostname_override))?,
        detection: Detection::ClusterCidr(pod_ranges(flags)?),
        node_port_addresses: node_port_addresses(&value::list(&flags.nodeport_addresses))?,
        healthz: value::address("healthz-bind-address", &flags.healthz_bind_address, HEALTHZ)?,
        metrics: value::address("metrics-bind-address", &flags.metrics_bind_address, METRICS)?,
        ..Settings::default()
    }))
}

/// Ranges of the addresses of Pods.
pub(super) fn pod_ranges(flags: &Flags) -> anyhow::Result<Vec<IpNet>> {
    let ranges = flags.cluster_cidr.clone().or_else(|| Some(vec![POD_RANGES.into()]));
    let ranges = value::networks("cluster-cidr", &value::list(&ranges))?;
    Ok(ranges.into_iter().map(|range| range.trunc()).collect())
}

fn mode(name: &str) -> anyhow::Result<Mode> {
    let found = Mode::ALL.into_iter().find(|mode| mode.as_str() == name);
    let want = "want nftables, iptables, ipvs, userspace, auto or none";
    found.ok_or_else(|| value::invalid("proxy-mode", name, want))
}

fn node_port_addresses(said: &[String]) -> anyhow::Result<Option<NodePortAddresses>> {
    Ok(match said {
        [] => None,
        [only] if only == "primary" => Some(NodePortAddresses::Primary),
        ranges => Some(NodePortAddresses::Ranges(value::networks("nodeport-addresses", ranges)?)),
    })
}
