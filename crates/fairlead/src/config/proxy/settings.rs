//! From a checked configuration to what the node proxy runs with.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use fairlead_plan::NodePortAddresses;
use fairlead_proxy::{Conntrack, Detection, Ipvs, Mode, Settings, Userspace};
use ipnet::IpNet;

use super::configuration::{Configuration, ConntrackSection, IpvsSection};
use super::span::Span;

/// What a configuration asks for. What cannot be read was a mistake before.
pub(super) fn settings(configuration: &Configuration, node: String, topology_keys: bool) -> Settings {
    let mode = mode(&configuration.mode);
    let (sync_period, min_sync_period) = match mode {
        Some(Mode::Ipvs) => (configuration.ipvs.sync_period, configuration.ipvs.min_sync_period),
        Some(Mode::Nftables) => (configuration.nftables.sync_period, configuration.nftables.min_sync_period),
        _ => (configuration.iptables.sync_period, configuration.iptables.min_sync_period),
    };
    let (masquerade_all, masquerade_bit) = match mode {
        Some(Mode::Nftables) => (configuration.nftables.masquerade_all, configuration.nftables.masquerade_bit),
        _ => (configuration.iptables.masquerade_all, configuration.iptables.masquerade_bit),
    };
    let usual = Settings::default();
    Settings {
        mode,
        node,
        node_ips: parse(&configuration.bind_address).into_iter().filter(|ip: &IpAddr| !ip.is_unspecified()).collect(),
        detection: detection(configuration),
        node_port_addresses: node_port_addresses(configuration.node_port_addresses.as_deref().unwrap_or_default()),
        localhost_node_ports: configuration.iptables.localhost_node_ports.unwrap_or(true),
        masquerade_all,
        masquerade_bit: masquerade_bit.and_then(|bit| u8::try_from(bit).ok()).unwrap_or(usual.masquerade_bit),
        sync_period: sync_period.duration(),
        min_sync_period: min_sync_period.some(),
        topology_keys,
        healthz: parse::<SocketAddr>(&configuration.healthz_bind_address),
        metrics: parse::<SocketAddr>(&configuration.metrics_bind_address),
        bind_hard_fail: configuration.bind_address_hard_fail,
        oom_score_adj: configuration.oom_score_adj.and_then(|score| i16::try_from(score).ok()),
        conntrack: conntrack(&configuration.conntrack),
        ipvs: ipvs(&configuration.ipvs),
        userspace: Userspace {
            ports: ports(&configuration.port_range),
            udp_idle: configuration.udp_idle_timeout.some().unwrap_or(usual.userspace.udp_idle),
        },
    }
}

fn parse<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn networks(items: &[String]) -> Vec<IpNet> {
    items.iter().filter_map(|item| parse::<IpNet>(item.trim())).map(|range| range.trunc()).collect()
}

fn mode(text: &str) -> Option<Mode> {
    Mode::ALL.into_iter().find(|mode| mode.as_str() == text)
}

fn detection(configuration: &Configuration) -> Detection {
    match configuration.detect_local_mode.as_str() {
        "NodeCIDR" => Detection::NodeCidr,
        "BridgeInterface" => Detection::Bridge(configuration.detect_local.bridge_interface.clone()),
        "InterfaceNamePrefix" => Detection::InterfacePrefix(configuration.detect_local.interface_name_prefix.clone()),
        _ => {
            let items: Vec<String> = configuration.cluster_cidr.split(',').map(str::to_owned).collect();
            Detection::ClusterCidr(networks(&items))
        }
    }
}

fn node_port_addresses(said: &[String]) -> Option<NodePortAddresses> {
    match said {
        [] => None,
        [only] if only == "primary" => Some(NodePortAddresses::Primary),
        ranges => Some(NodePortAddresses::Ranges(networks(ranges))),
    }
}

fn conntrack(said: &ConntrackSection) -> Conntrack {
    let count = |number: Option<i32>| number.and_then(|number| u32::try_from(number).ok());
    let some = |span: Option<Span>| -> Option<Duration> { span.and_then(Span::some) };
    Conntrack {
        max_per_core: count(said.max_per_core).filter(|count| *count > 0),
        min: count(said.min),
        tcp_established: some(said.tcp_established_timeout),
        tcp_close_wait: some(said.tcp_close_wait_timeout),
        tcp_be_liberal: said.tcp_be_liberal,
        udp: said.udp_timeout.some(),
        udp_stream: said.udp_stream_timeout.some(),
    }
}

fn ipvs(said: &IpvsSection) -> Ipvs {
    let usual = Ipvs::default();
    Ipvs {
        scheduler: if said.scheduler.is_empty() { usual.scheduler } else { said.scheduler.clone() },
        strict_arp: said.strict_arp,
        exclude: networks(said.exclude_cidrs.as_deref().unwrap_or_default()),
        timeouts: [said.tcp_timeout.some(), said.tcp_fin_timeout.some(), said.udp_timeout.some()],
    }
}

/// Ports such as `30000-30100`. `0-0`, as kube-proxy had it, leaves the choice to the kernel.
pub(super) fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    super::super::value::ports("proxy-port-range", text).ok()
}
