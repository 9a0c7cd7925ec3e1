//! The options of `fairlead proxy`: kube-proxy's names. Most say what a field of the configuration is.

use clap::Args;

use super::super::flags::Text;
use super::super::value;
use super::configuration::Configuration;
use super::field::Given;

/// Makes the struct of options. `values`, `lists` and `switches` fill the field named behind them; `own` ones are looked at by
/// name, and have what holds without them behind them; `idle` ones are taken so that a command line written for kube-proxy works, and change nothing.
macro_rules! flags {
    (
        values { $($(#[$va:meta])+ $value:ident => $($vp:ident).+ $vj:literal,)* }
        lists { $($(#[$la:meta])+ $list:ident => $($lp:ident).+ $lj:literal,)* }
        switches { $($(#[$sa:meta])+ $switch:ident => $($sp:ident).+ $sj:literal,)* }
        own { $($(#[$oa:meta])+ $own:ident = $usual:literal,)* }
        idle_values { $($(#[$iva:meta])* $idle:ident,)* }
        idle_switches { $($(#[$isa:meta])* $idle_switch:ident,)* }
    ) => {
        /// The options. `None` where nobody said anything.
        #[derive(Debug, Clone, Default, Args)]
        #[command(next_display_order = None)]
        pub(crate) struct ProxyFlags {
            $($(#[$va])+ #[arg(long)] pub(super) $value: Option<Text>,)*
            $($(#[$la])+ #[arg(long)] pub(super) $list: Option<Vec<Text>>,)*
            $(
                $(#[$sa])+
                #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
                pub(super) $switch: Option<Text>,
            )*
            $($(#[$oa])+ #[arg(long)] pub(super) $own: Option<Text>,)*
            $(#[arg(long, hide = true, value_name = "VALUE")] $(#[$iva])* pub(super) $idle: Option<Text>,)*
            $(
                #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
                $(#[$isa])*
                pub(super) $idle_switch: Option<Text>,
            )*
        }

        impl ProxyFlags {
            /// Puts what was said into the fields it is about.
            pub(super) fn fill(&self, configuration: &mut Configuration) -> anyhow::Result<()> {
                $(set(&mut configuration.$($vp).+, stringify!($value), self.$value.text())?;)*
                $(set(&mut configuration.$($lp).+, stringify!($list), self.$list.text())?;)*
                $(set(&mut configuration.$($sp).+, stringify!($switch), self.$switch.text())?;)*
                Ok(())
            }

            /// Options that fill fields and were given.
            pub(super) fn filling(&self) -> Vec<String> {
                let mut given = Vec::new();
                $(if self.$value.is_some() { given.push(name(stringify!($value))); })*
                $(if self.$list.is_some() { given.push(name(stringify!($list))); })*
                $(if self.$switch.is_some() { given.push(name(stringify!($switch))); })*
                given
            }

            /// Options that were given and change nothing.
            pub(super) fn idle(&self) -> Vec<String> {
                let mut given = Vec::new();
                $(if self.$idle.is_some() { given.push(name(stringify!($idle))); })*
                $(if self.$idle_switch.is_some() { given.push(name(stringify!($idle_switch))); })*
                given
            }

            /// Every option and its value, by name, as `/flagz` shows them.
            pub(super) fn page(&self, configuration: &Configuration) -> Vec<(String, String)> {
                let mut page = vec![
                    $((name(stringify!($value)), configuration.$($vp).+.show()),)*
                    $((name(stringify!($list)), configuration.$($lp).+.show()),)*
                    $((name(stringify!($switch)), configuration.$($sp).+.show()),)*
                    $((name(stringify!($own)), self.$own.text().unwrap_or_else(|| $usual.to_owned())),)*
                ];
                $(if let Some(text) = self.$idle.text() { page.push((name(stringify!($idle)), text)); })*
                $(if let Some(text) = self.$idle_switch.text() { page.push((name(stringify!($idle_switch)), text)); })*
                page.sort();
                page
            }
        }

        /// Which option fills a field.
        pub(super) fn flag_of(field: &str) -> Option<String> {
            match field.split('[').next().unwrap_or(field) {
                $($vj => Some(name(stringify!($value))),)*
                $($lj => Some(name(stringify!($list))),)*
                $($sj => Some(name(stringify!($switch))),)*
                _ => None,
            }
        }
    };
}

flags! {
    values {
        /// An address of this node, if the Node object does not have the right one; its family is then the primary one [default: 0.0.0.0, ask the Node object]
        #[arg(value_name = "IP")]
        bind_address => bind_address "bindAddress",
        /// Ranges of the addresses of Pods, at most one for each family
        #[arg(value_name = "CIDR,...")]
        cluster_cidr => cluster_cidr "clusterCIDR",
        /// Flows the kernel remembers for each core; 0 leaves the bound as it is [default: 32768]
        #[arg(value_name = "COUNT", allow_hyphen_values = true)]
        conntrack_max_per_core => conntrack.max_per_core "conntrack.maxPerCore",
        /// Flows the kernel remembers at least [default: 131072]
        #[arg(value_name = "COUNT", allow_hyphen_values = true)]
        conntrack_min => conntrack.min "conntrack.min",
        /// How long a TCP connection is remembered that one side has closed; 0 leaves it as it is [default: 1h0m0s]
        #[arg(value_name = "DURATION", allow_hyphen_values = true)]
        conntrack_tcp_timeout_close_wait => conntrack.tcp_close_wait_timeout "conntrack.tcpCloseWaitTimeout",
        /// How long an idle TCP connection is remembered; 0 leaves it as it is [default: 24h0m0s]
        #[arg(value_name = "DURATION", allow_hyphen_values = true)]
        conntrack_tcp_timeout_established => conntrack.tcp_established_timeout "conntrack.tcpEstablishedTimeout",
        /// How long an unanswered UDP flow is remembered; 0 leaves it as it is [default: 0s]
        #[arg(value_name = "DURATION", allow_hyphen_values = true)]
        conntrack_udp_timeout => conntrack.udp_timeout "conntrack.udpTimeout",
        /// How long an answered UDP flow is remembered; 0 leaves it as it is [default: 0s]
        #[arg(value_name = "DURATION", allow_hyphen_values = true)]
        conntrack_udp_timeout_stream => conntrack.udp_stream_timeout "conntrack.udpStreamTimeout",
        /// How packets of Pods are known: ClusterCIDR, NodeCIDR, BridgeInterface, InterfaceNamePrefix [default: ClusterCIDR]
        #[arg(value_name = "MODE")]
        detect_local_mode => detect_local_mode "detectLocalMode",
        /// Where /healthz and /livez are; empty: nowhere [default: 0.0.0.0:10256]
        #[arg(value_name = "IP:PORT")]
        healthz_bind_address => healthz_bind_address "healthzBindAddress",
        /// Which bit of a packet's mark says that it is to be masqueraded (iptables and ipvs) [default: 14]
        #[arg(value_name = "BIT", allow_hyphen_values = true)]
        iptables_masquerade_bit => iptables.masquerade_bit "iptables.masqueradeBit",
        /// The least time between two changes of the kernel [default: as is good for the mode]
        #[arg(value_name = "DURATION", allow_hyphen_values = true)]
        iptables_min_sync_period => iptables.min_sync_period "iptables.minSyncPeriod",
        /// How often the kernel is looked at even though nothing changed [default: 30s]
        #[arg(value_name = "DURATION", allow_hyphen_values = true)]
        iptables_sync_period => iptables.sync_period "iptables.syncPeriod",
        /// The same as --iptables-min-sync-period, for mode ipvs
        #[arg(value_name = "DURATION", allow_hyphen_values = true)]
        ipvs_min_sync_period => ipvs.min_sync_period "ipvs.minSyncPeriod",
        /// Who gets the next connection in mode ipvs: rr, lc, dh, sh, sed, nq, wrr, wlc, lblc, lblcr, mh [default: rr]
        #[arg(value_name = "NAME")]
        ipvs_scheduler => ipvs.scheduler "ipvs.scheduler",
        /// The same as --iptables-sync-period, for mode ipvs
        #[arg(value_name = "DURATION", allow_hyphen_values = true)]
        ipvs_sync_period => ipvs.sync_period "ipvs.syncPeriod",
        /// How long mode ipvs keeps an idle TCP connection; 0 leaves it as it is
        #[arg(value_name = "DURATION", allow_hyphen_values = true)]
        ipvs_tcp_timeout => ipvs.tcp_timeout "ipvs.tcpTimeout",
        /// How long mode ipvs keeps a TCP connection after a FIN; 0 leaves it as it is
        #[arg(value_name = "DURATION", allow_hyphen_values = true)]
        ipvs_tcpfin_timeout => ipvs.tcp_fin_timeout "ipvs.tcpFinTimeout",
        /// How long mode ipvs keeps an idle UDP flow; 0 leaves it as it is
        #[arg(value_name = "DURATION", allow_hyphen_values = true)]
        ipvs_udp_timeout => ipvs.udp_timeout "ipvs.udpTimeout",
        /// The kubeconfig of the cluster [default: as kubectl finds it, then the account of the Pod we run in]
        #[arg(value_name = "FILE")]
        kubeconfig => client_connection.kubeconfig "clientConnection.kubeconfig",
        /// Logs as text or json [default: text]
        #[arg(value_name = "FORMAT", alias = "log-format")]
        logging_format => logging.format "logging.format",
        /// Where /metrics, /proxyMode, /configz, /flagz and /statusz are; empty: nowhere [default: 127.0.0.1:10249]
        #[arg(value_name = "IP:PORT")]
        metrics_bind_address => metrics_bind_address "metricsBindAddress",
        /// How unlikely the kernel ends us when memory runs out, -1000 to 1000 [default: -999]
        #[arg(value_name = "SCORE", allow_hyphen_values = true)]
        oom_score_adj => oom_score_adj "oomScoreAdj",
        /// The bridge Pods' packets come in on (BridgeInterface)
        #[arg(value_name = "NAME")]
        pod_bridge_interface => detect_local.bridge_interface "detectLocal.bridgeInterface",
        /// How names of interfaces begin that Pods' packets come in on (InterfaceNamePrefix)
        #[arg(value_name = "PREFIX")]
        pod_interface_name_prefix => detect_local.interface_name_prefix "detectLocal.interfaceNamePrefix",
        /// nftables, iptables, ipvs, userspace or auto [default: auto, nftables where the kernel has it, else iptables]
        #[arg(value_name = "MODE")]
        proxy_mode => mode "mode",
        /// Local ports mode userspace may take, as 30000-30100; 0-0 leaves the choice to the kernel [default: 0-0]
        #[arg(value_name = "FIRST-LAST")]
        proxy_port_range => port_range "portRange",
        /// How long mode userspace keeps an idle UDP flow [default: 60s]
        #[arg(value_name = "DURATION", allow_hyphen_values = true)]
        udp_timeout => udp_idle_timeout "udpIdleTimeout",
        /// Taken as kube-proxy does; nothing is read again from the API server that did not change [default: 15m0s]
        #[arg(hide = true, value_name = "DURATION", allow_hyphen_values = true)]
        config_sync_period => config_sync_period "configSyncPeriod",
        /// Taken as kube-proxy does; requests are not held back
        #[arg(hide = true, value_name = "COUNT", allow_hyphen_values = true)]
        kube_api_burst => client_connection.burst "clientConnection.burst",
        /// Taken as kube-proxy does; JSON is spoken
        #[arg(hide = true, value_name = "TYPE")]
        kube_api_content_type => client_connection.content_type "clientConnection.contentType",
        /// Taken as kube-proxy does; requests are not held back
        #[arg(hide = true, value_name = "NUMBER", allow_hyphen_values = true)]
        kube_api_qps => client_connection.qps "clientConnection.qps",
        /// Taken as kube-proxy does; no metric is hidden
        #[arg(hide = true, value_name = "VERSION")]
        show_hidden_metrics_for_version => show_hidden_metrics_for_version "showHiddenMetricsForVersion",
    }
    lists {
        /// Features to switch on or off, as NAME=true
        #[arg(value_name = "NAME=BOOL,...")]
        feature_gates => feature_gates "featureGates",
        /// Services of the kernel's balancer in these ranges are left alone (ipvs)
        #[arg(value_name = "CIDR,...")]
        ipvs_exclude_cidrs => ipvs.exclude_cidrs "ipvs.excludeCIDRs",
        /// Where node ports are served: primary, or ranges of the node's addresses [default: primary in mode nftables, else all]
        #[arg(value_name = "CIDR,...|primary")]
        nodeport_addresses => node_port_addresses "nodePortAddresses",
    }
    switches {
        /// End if a port cannot be bound [default: false]
        bind_address_hard_fail => bind_address_hard_fail "bindAddressHardFail",
        /// Let packets outside of the TCP window through [default: false]
        conntrack_tcp_be_liberal => conntrack.tcp_be_liberal "conntrack.tcpBeLiberal",
        /// Whether mode iptables serves node ports on 127.0.0.0/8 too [default: true]
        iptables_localhost_nodeports => iptables.localhost_node_ports "iptables.localhostNodePorts",
        /// Whether the node keeps quiet about cluster IPs when asked by ARP (ipvs) [default: false]
        ipvs_strict_arp => ipvs.strict_arp "ipvs.strictARP",
        /// Give everything that is sent to a cluster IP the node's address [default: false]
        masquerade_all => iptables.masquerade_all "iptables.masqueradeAll",
        /// Taken as kube-proxy does; there is nothing to see
        #[arg(hide = true)]
        profiling => enable_profiling "enableProfiling",
    }
    own {
        /// Configuration file: a KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1). Most options are ignored beside it
        #[arg(value_name = "FILE")]
        config = "",
        /// Objects come from a file or a directory of manifests, not from a cluster
        #[arg(value_name = "FILE|DIR", conflicts_with = "kubeconfig")]
        manifests = "",
        /// URLs of API servers, in place of the kubeconfig's; others are learned
        #[arg(value_name = "URL,...")]
        master = "",
        /// The name of the Node this is [default: the name of the machine]
        #[arg(value_name = "NAME")]
        hostname_override = "",
        /// Write the configuration to a file, and end
        #[arg(value_name = "FILE")]
        write_config_to = "",
        /// Remove what all modes leave in the kernel, and end [default: false]
        #[arg(value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", alias = "cleanup-iptables", alias = "cleanup-and-exit")]
        cleanup = "false",
        /// Do what needs all of root's rights, and end [default: false]
        #[arg(value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        init_only = "false",
        /// How much to log: error, warn, info, debug, trace, or a number as in kube-proxy [default: info]
        #[arg(short = 'v', alias = "log-level", value_name = "LEVEL")]
        v = "info",
        /// Show the version
        #[arg(hide = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        version = "false",
        /// The port of --healthz-bind-address, if that does not say; 0: nowhere
        #[arg(hide = true, value_name = "PORT")]
        healthz_port = "10256",
        /// The port of --metrics-bind-address, if that does not say; 0: nowhere
        #[arg(hide = true, value_name = "PORT")]
        metrics_port = "10249",
    }
    idle_values {
        boot_id_file,
        conntrack_max,
        healthz_bind_port,
        log_backtrace_at,
        log_dir,
        log_file,
        log_file_max_size,
        log_flush_frequency,
        log_json_info_buffer_size,
        log_text_info_buffer_size,
        machine_id_file,
        resource_container,
        stderrthreshold,
        vmodule,
    }
    idle_switches {
        add_dir_header,
        alsologtostderr,
        cleanup_ipvs,
        log_json_split_stream,
        log_text_split_stream,
        logtostderr,
        one_output,
        skip_headers,
        skip_log_headers,
    }
}

/// What was said, whether once or several times.
pub(super) trait Said {
    fn text(&self) -> Option<String>;
}

impl Said for Option<Text> {
    fn text(&self) -> Option<String> {
        self.as_ref().map(|Text(text)| text.clone())
    }
}

impl Said for Option<Vec<Text>> {
    fn text(&self) -> Option<String> {
        let texts = self.as_ref()?;
        Some(texts.iter().map(|Text(text)| text.as_str()).collect::<Vec<_>>().join(","))
    }
}

fn name(field: &str) -> String {
    field.replace('_', "-")
}

fn set<T: Given>(field: &mut T, flag: &str, said: Option<String>) -> anyhow::Result<()> {
    if let Some(text) = said {
        let read = T::from_text(text.trim());
        *field = read.ok_or_else(|| value::invalid(&name(flag), &text, format!("want {}", T::WANT)))?;
    }
    Ok(())
}
