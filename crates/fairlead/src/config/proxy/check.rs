//! What a configuration may say: kube-proxy's own rules and words, with fields named as the file names them.

use std::fmt::Display;
use std::net::IpAddr;

use ipnet::IpNet;

use super::configuration::Configuration;
use super::span::Span;

/// A value that will not do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// The field's path.
    pub(super) field: String,
    pub(super) value: String,
    pub(super) why: String,
}

/// The schedulers of the kernel's balancer, by name. A scheduler is a module with such a name.
const SCHEDULERS: [&str; 14] =
    ["rr", "wrr", "lc", "wlc", "lblc", "lblcr", "sh", "dh", "mh", "sed", "nq", "fo", "ovf", "twos"];

/// All that is wrong.
pub(super) fn check(configuration: &Configuration) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    modes(configuration, &mut mistakes);
    periods(configuration, &mut mistakes);
    numbers(configuration, &mut mistakes);
    addresses(configuration, &mut mistakes);
    detection(configuration, &mut mistakes);
    mistakes
}

fn invalid(mistakes: &mut Vec<Mistake>, field: &str, value: impl Display, why: impl Display) {
    mistakes.push(Mistake { field: field.to_owned(), value: value.to_string(), why: why.to_string() });
}

fn modes(configuration: &Configuration, mistakes: &mut Vec<Mistake>) {
    let mode = configuration.mode.as_str();
    if !matches!(mode, "" | "auto" | "iptables" | "ipvs" | "nftables" | "userspace") {
        let why = "must be auto, iptables, ipvs, nftables, userspace or blank (blank and auto mean the best-available proxy: \
                   nftables where the kernel has it, else iptables)";
        invalid(mistakes, "mode", mode, why);
    }
    let scheduler = configuration.ipvs.scheduler.as_str();
    if !scheduler.is_empty() && !SCHEDULERS.contains(&scheduler) {
        invalid(mistakes, "ipvs.scheduler", scheduler, format!("must be one of {}", SCHEDULERS.join(", ")));
    }
    if !matches!(configuration.logging.format.as_str(), "text" | "json") {
        invalid(mistakes, "logging.format", &configuration.logging.format, "must be text or json");
    }
}

fn periods(configuration: &Configuration, mistakes: &mut Vec<Mistake>) {
    let Configuration { iptables, ipvs, nftables, conntrack, .. } = configuration;
    let above = [
        ("configSyncPeriod", configuration.config_sync_period),
        ("iptables.syncPeriod", iptables.sync_period),
        ("ipvs.syncPeriod", ipvs.sync_period),
        ("nftables.syncPeriod", nftables.sync_period),
    ];
    for (field, span) in above.into_iter().filter(|(_, span)| *span <= Span::ZERO) {
        invalid(mistakes, field, span, "must be greater than 0");
    }
    let least = [
        ("iptables.syncPeriod", iptables.sync_period, iptables.min_sync_period),
        ("ipvs.syncPeriod", ipvs.sync_period, ipvs.min_sync_period),
        ("nftables.syncPeriod", nftables.sync_period, nftables.min_sync_period),
    ];
    for (field, period, least) in least.into_iter().filter(|(_, period, least)| least > period) {
        let other = field.replace("syncPeriod", "minSyncPeriod");
        invalid(mistakes, field, period, format!("must be greater than or equal to {other} ({least})"));
    }
    let from_zero = [
        ("iptables.minSyncPeriod", Some(iptables.min_sync_period)),
        ("ipvs.minSyncPeriod", Some(ipvs.min_sync_period)),
        ("nftables.minSyncPeriod", Some(nftables.min_sync_period)),
        ("ipvs.tcpTimeout", Some(ipvs.tcp_timeout)),
        ("ipvs.tcpFinTimeout", Some(ipvs.tcp_fin_timeout)),
        ("ipvs.udpTimeout", Some(ipvs.udp_timeout)),
        ("conntrack.tcpEstablishedTimeout", conntrack.tcp_established_timeout),
        ("conntrack.tcpCloseWaitTimeout", conntrack.tcp_close_wait_timeout),
        ("conntrack.udpTimeout", Some(conntrack.udp_timeout)),
        ("conntrack.udpStreamTimeout", Some(conntrack.udp_stream_timeout)),
        ("udpIdleTimeout", Some(configuration.udp_idle_timeout)),
    ];
    for (field, span) in from_zero {
        if let Some(span) = span.filter(|span| *span < Span::ZERO) {
            invalid(mistakes, field, span, "must be greater than or equal to 0");
        }
    }
}

fn numbers(configuration: &Configuration, mistakes: &mut Vec<Mistake>) {
    let Configuration { iptables, nftables, conntrack, client_connection, .. } = configuration;
    let within = [
        ("iptables.masqueradeBit", iptables.masquerade_bit, 0, 31),
        ("nftables.masqueradeBit", nftables.masquerade_bit, 0, 31),
        ("oomScoreAdj", configuration.oom_score_adj, -1000, 1000),
    ];
    for (field, number, least, most) in within {
        if let Some(number) = number.filter(|number| !(least..=most).contains(number)) {
            invalid(mistakes, field, number, format!("must be within the range [{least}, {most}]"));
        }
    }
    let from_zero = [
        ("conntrack.maxPerCore", conntrack.max_per_core),
        ("conntrack.min", conntrack.min),
        ("clientConnection.burst", Some(client_connection.burst)),
        ("logging.verbosity", Some(configuration.logging.verbosity)),
    ];
    for (field, number) in from_zero {
        if let Some(number) = number.filter(|number| *number < 0) {
            invalid(mistakes, field, number, "must be greater than or equal to 0");
        }
    }
}

fn addresses(configuration: &Configuration, mistakes: &mut Vec<Mistake>) {
    if configuration.bind_address.parse::<IpAddr>().is_err() {
        let why = "not a valid textual representation of an IP address";
        invalid(mistakes, "bindAddress", &configuration.bind_address, why);
    }
    host_port("healthzBindAddress", &configuration.healthz_bind_address, mistakes);
    host_port("metricsBindAddress", &configuration.metrics_bind_address, mistakes);
    let ranges = configuration.node_port_addresses.as_deref().unwrap_or_default();
    let primary = ranges.iter().position(|range| range == "primary");
    if let Some(index) = primary.filter(|_| ranges.len() > 1) {
        invalid(mistakes, &format!("nodePortAddresses[{index}]"), "primary", "can't use both 'primary' and CIDRs");
    }
    let cidrs = ranges.iter().enumerate().filter(|(_, range)| *range != "primary");
    for (index, range) in cidrs.filter(|(_, range)| range.parse::<IpNet>().is_err()) {
        invalid(mistakes, &format!("nodePortAddresses[{index}]"), range, "must be a valid CIDR");
    }
    let excluded = configuration.ipvs.exclude_cidrs.as_deref().unwrap_or_default();
    for (index, range) in excluded.iter().enumerate().filter(|(_, range)| range.parse::<IpNet>().is_err()) {
        invalid(mistakes, &format!("ipvs.excludeCIDRs[{index}]"), range, "must be a valid CIDR");
    }
    let free = matches!(configuration.port_range.as_str(), "" | "0" | "0-0");
    if !free && super::settings::ports(&configuration.port_range).is_none() {
        invalid(
            mistakes,
            "portRange",
            &configuration.port_range,
            "must be ports such as 30000-30100, 30000+100 or 30000",
        );
    }
}

/// An empty one switches the server off.
fn host_port(field: &str, address: &str, mistakes: &mut Vec<Mistake>) {
    if address.is_empty() {
        return;
    }
    let Some((host, port)) = address.rsplit_once(':') else {
        return invalid(mistakes, field, address, "must be IP:port");
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.parse::<IpAddr>().is_err() {
        invalid(mistakes, field, host, "must be a valid IP");
    }
    if !port.parse::<u16>().is_ok_and(|port| port > 0) {
        invalid(mistakes, field, port, "must be a valid port");
    }
    if mistakes.is_empty() && address.parse::<std::net::SocketAddr>().is_err() {
        invalid(mistakes, field, address, "must be IP:port");
    }
}

fn detection(configuration: &Configuration, mistakes: &mut Vec<Mistake>) {
    let detect = &configuration.detect_local;
    match configuration.detect_local_mode.as_str() {
        "BridgeInterface" if detect.bridge_interface.is_empty() => {
            invalid(mistakes, "detectLocal.bridgeInterface", "", "must not be empty");
        }
        "InterfaceNamePrefix" if detect.interface_name_prefix.is_empty() => {
            invalid(mistakes, "detectLocal.interfaceNamePrefix", "", "must not be empty");
        }
        "ClusterCIDR" if !configuration.cluster_cidr.is_empty() => cluster_cidr(&configuration.cluster_cidr, mistakes),
        "" | "NodeCIDR" | "ClusterCIDR" | "BridgeInterface" | "InterfaceNamePrefix" => {}
        other => {
            let why =
                "supported values: \"ClusterCIDR\", \"NodeCIDR\", \"BridgeInterface\", \"InterfaceNamePrefix\", \"\"";
            invalid(mistakes, "detectLocalMode", other, why);
        }
    }
}

fn cluster_cidr(text: &str, mistakes: &mut Vec<Mistake>) {
    let ranges: Vec<Result<IpNet, &str>> = text.split(',').map(|item| item.trim().parse().map_err(|_| item)).collect();
    for item in ranges.iter().filter_map(|range| range.as_ref().err()) {
        let why = "must be a valid CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)";
        invalid(mistakes, "clusterCIDR", item, why);
    }
    let pair = match ranges.as_slice() {
        [Ok(one), Ok(other)] => one.addr().is_ipv4() != other.addr().is_ipv4(),
        ranges => ranges.len() <= 2,
    };
    if !pair {
        let why = "must be either a single CIDR or a dual-stack pair of CIDRs (e.g. 10.100.0.0/16,fde4:8dba:82e1::/48)";
        invalid(mistakes, "clusterCIDR", text, why);
    }
}
