//! KubeProxyConfiguration (`kubeproxy.config.k8s.io/v1alpha1`): every field, what it is without a word, and how a file is read.
//! Flags fill the same structure, so that all that follows sees one thing.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::field::{Field, Findings, Gone, Whatever};
use super::span::Span;
use super::tree::{Node, Place};

pub(super) const API_VERSION: &str = "kubeproxy.config.k8s.io/v1alpha1";
pub(super) const KIND: &str = "KubeProxyConfiguration";

/// Makes a group of fields that can be read from a file, and written.
macro_rules! section {
    (
        $(#[$doc:meta])+ $name:ident {
            $($(#[$attribute:meta])* $field:ident: $type:ty = $json:literal,)*
        }
        $(gone $($gone:literal)*)?
    ) => {
        $(#[$doc])+
        #[derive(Debug, Clone, Default, Serialize)]
        pub(super) struct $name {
            $($(#[$attribute])* #[serde(rename = $json)] pub(super) $field: $type,)*
        }

        impl Field for $name {
            fn read(&mut self, place: &Place, path: &str, found: &mut Findings) {
                let entries = match &place.node {
                    Node::Map(entries) => entries,
                    Node::Null => return,
                    other => {
                        let path = if path.is_empty() { KIND } else { path };
                        let mistake = format!("line {}: {path}: want a map, found {}", place.line, other.kind());
                        return found.mistakes.push(mistake);
                    }
                };
                for (key, line, value) in entries {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    found.lines.insert(path.clone(), *line);
                    match key.as_str() {
                        $($json => self.$field.read(value, &path, found),)*
                        $($($gone)|* => Gone.read(value, &path, found),)?
                        _ => found.mistakes.push(format!("line {line}: unknown field \"{path}\"")),
                    }
                }
            }
        }
    };
}

section! {
    /// What a node proxy is configured with.
    Configuration {
        kind: String = "kind",
        api_version: String = "apiVersion",
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        feature_gates: BTreeMap<String, bool> = "featureGates",
        client_connection: ClientConnection = "clientConnection",
        logging: Logging = "logging",
        hostname_override: String = "hostnameOverride",
        bind_address: String = "bindAddress",
        healthz_bind_address: String = "healthzBindAddress",
        metrics_bind_address: String = "metricsBindAddress",
        bind_address_hard_fail: bool = "bindAddressHardFail",
        enable_profiling: bool = "enableProfiling",
        show_hidden_metrics_for_version: String = "showHiddenMetricsForVersion",
        mode: String = "mode",
        iptables: Iptables = "iptables",
        ipvs: IpvsSection = "ipvs",
        nftables: Nftables = "nftables",
        winkernel: Winkernel = "winkernel",
        detect_local_mode: String = "detectLocalMode",
        detect_local: DetectLocal = "detectLocal",
        cluster_cidr: String = "clusterCIDR",
        node_port_addresses: Option<Vec<String>> = "nodePortAddresses",
        oom_score_adj: Option<i32> = "oomScoreAdj",
        conntrack: ConntrackSection = "conntrack",
        config_sync_period: Span = "configSyncPeriod",
        port_range: String = "portRange",
        #[serde(skip_serializing_if = "is_zero")]
        udp_idle_timeout: Span = "udpIdleTimeout",
        #[serde(skip_serializing_if = "is_false")]
        windows_run_as_service: bool = "windowsRunAsService",
    }
    gone "resourceContainer" "healthzPort" "metricsPort" "cleanupIPVS" "cleanup"
}

section! {
    /// How the API server is reached.
    ClientConnection {
        kubeconfig: String = "kubeconfig",
        accept_content_types: String = "acceptContentTypes",
        content_type: String = "contentType",
        #[serde(serialize_with = "number")]
        qps: f32 = "qps",
        burst: i32 = "burst",
    }
}

section! {
    /// How much is logged, and in which form.
    Logging {
        format: String = "format",
        #[serde(skip_serializing_if = "Whatever::is_null")]
        flush_frequency: Whatever = "flushFrequency",
        verbosity: i32 = "verbosity",
        #[serde(skip_serializing_if = "Whatever::is_null")]
        vmodule: Whatever = "vmodule",
        #[serde(skip_serializing_if = "Whatever::is_null")]
        options: Whatever = "options",
    }
}

section! {
    /// Mode iptables, and what mode ipvs shares with it.
    Iptables {
        masquerade_bit: Option<i32> = "masqueradeBit",
        masquerade_all: bool = "masqueradeAll",
        localhost_node_ports: Option<bool> = "localhostNodePorts",
        sync_period: Span = "syncPeriod",
        min_sync_period: Span = "minSyncPeriod",
    }
}

section! {
    /// Mode ipvs.
    IpvsSection {
        sync_period: Span = "syncPeriod",
        min_sync_period: Span = "minSyncPeriod",
        scheduler: String = "scheduler",
        exclude_cidrs: Option<Vec<String>> = "excludeCIDRs",
        strict_arp: bool = "strictARP",
        tcp_timeout: Span = "tcpTimeout",
        tcp_fin_timeout: Span = "tcpFinTimeout",
        udp_timeout: Span = "udpTimeout",
    }
}

section! {
    /// Mode nftables.
    Nftables {
        masquerade_bit: Option<i32> = "masqueradeBit",
        masquerade_all: bool = "masqueradeAll",
        sync_period: Span = "syncPeriod",
        min_sync_period: Span = "minSyncPeriod",
    }
}

section! {
    /// What only Windows has.
    Winkernel {
        network_name: String = "networkName",
        source_vip: String = "sourceVip",
        enable_dsr: bool = "enableDSR",
        root_hns_endpoint_name: String = "rootHnsEndpointName",
        forward_health_check_vip: bool = "forwardHealthCheckVip",
    }
}

section! {
    /// What the modes of knowing Pods' packets need.
    DetectLocal {
        bridge_interface: String = "bridgeInterface",
        interface_name_prefix: String = "interfaceNamePrefix",
    }
}

section! {
    /// The kernel's memory of flows.
    ConntrackSection {
        max_per_core: Option<i32> = "maxPerCore",
        min: Option<i32> = "min",
        tcp_established_timeout: Option<Span> = "tcpEstablishedTimeout",
        tcp_close_wait_timeout: Option<Span> = "tcpCloseWaitTimeout",
        tcp_be_liberal: bool = "tcpBeLiberal",
        udp_timeout: Span = "udpTimeout",
        udp_stream_timeout: Span = "udpStreamTimeout",
    }
    gone "max"
}

/// A whole number is written without a fraction.
fn number<S: Serializer>(value: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    let whole = *value as i64;
    if whole as f32 == *value { serializer.serialize_i64(whole) } else { serializer.serialize_f32(*value) }
}

fn is_zero(span: &Span) -> bool {
    *span == Span::ZERO
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Configuration {
    /// Reads a file. What is wrong in it is all told at once.
    pub(super) fn parse(text: &str) -> (Configuration, Findings) {
        let (mut configuration, mut found) = (Configuration::default(), Findings::default());
        match Place::parse(text) {
            Ok(place) => configuration.read(&place, "", &mut found),
            Err(mistake) => found.mistakes.push(mistake),
        }
        if found.mistakes.is_empty() {
            for (field, said, want) in
                [("apiVersion", &configuration.api_version, API_VERSION), ("kind", &configuration.kind, KIND)]
            {
                if said != want {
                    let line = found.line(field).unwrap_or(1);
                    found.mistakes.push(format!("line {line}: {field}: want {want}, found {said:?}"));
                }
            }
        }
        configuration.complete();
        (configuration, found)
    }

    /// Fills in what nobody said anything about.
    pub(super) fn complete(&mut self) {
        (self.kind, self.api_version) = (KIND.to_owned(), API_VERSION.to_owned());
        text(&mut self.bind_address, "0.0.0.0");
        let six = self.bind_address.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6());
        let (everywhere, loopback) = if six { ("[::]", "[::1]") } else { ("0.0.0.0", "127.0.0.1") };
        address(&mut self.healthz_bind_address, everywhere, HEALTHZ_PORT);
        address(&mut self.metrics_bind_address, loopback, METRICS_PORT);
        self.oom_score_adj.get_or_insert(OOM_SCORE_ADJ);
        for period in [&mut self.iptables.sync_period, &mut self.ipvs.sync_period, &mut self.nftables.sync_period] {
            span(period, Span::seconds(30));
        }
        self.iptables.localhost_node_ports.get_or_insert(true);
        self.iptables.masquerade_bit.get_or_insert(MASQUERADE_BIT);
        self.nftables.masquerade_bit.get_or_insert(MASQUERADE_BIT);
        let conntrack = &mut self.conntrack;
        conntrack.max_per_core.get_or_insert(32 * 1024);
        conntrack.min.get_or_insert(128 * 1024);
        conntrack.tcp_established_timeout.get_or_insert(Span::seconds(24 * 3600));
        conntrack.tcp_close_wait_timeout.get_or_insert(Span::seconds(3600));
        span(&mut self.config_sync_period, Span::seconds(15 * 60));
        let client = &mut self.client_connection;
        text(&mut client.content_type, "application/json");
        client.qps = if client.qps == 0.0 { 5.0 } else { client.qps };
        client.burst = if client.burst == 0 { 10 } else { client.burst };
        text(&mut self.logging.format, "text");
        text(&mut self.detect_local_mode, "ClusterCIDR");
    }

    /// As `/configz` shows it.
    pub(super) fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// As a file, fields by name.
    pub(super) fn to_yaml(&self) -> Result<String, serde_saphyr::ser::Error> {
        serde_saphyr::to_string(&sorted(self.to_json()))
    }
}

pub(super) const HEALTHZ_PORT: u16 = 10256;
pub(super) const METRICS_PORT: u16 = 10249;
/// The kernel ends others first when memory runs out.
const OOM_SCORE_ADJ: i32 = -999;
const MASQUERADE_BIT: i32 = 14;

fn text(field: &mut String, usual: &str) {
    if field.is_empty() {
        *field = usual.to_owned();
    }
}

fn span(field: &mut Span, usual: Span) {
    if *field == Span::ZERO {
        *field = usual;
    }
}

/// Completes an address: the usual one if there is none, the usual port if there is only an IP.
fn address(field: &mut String, usual: &str, port: u16) {
    if field.is_empty() {
        *field = format!("{usual}:{port}");
    }
    *field = with_port(field, port);
}

/// An address with a port, unless it has one. What is no address is left for who checks it.
pub(super) fn with_port(address: &str, port: u16) -> String {
    match address.parse::<IpAddr>() {
        Ok(ip) => std::net::SocketAddr::new(ip, port).to_string(),
        Err(_) => address.to_owned(),
    }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<String, Value> =
                fields.into_iter().map(|(name, value)| (name, self::sorted(value))).collect();
            sorted.into_iter().collect()
        }
        other => other,
    }
}
