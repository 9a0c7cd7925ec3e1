//! What was asked for, and what holds where nothing was: command line first, then config file, then the defaults, all of
//! which stand here. Nothing else in the program reads the environment.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use fairlead_balancer::run::Provisioning;
use fairlead_control::NodeRanges;
use fairlead_server::audit;
use fairlead_server::auth::Anonymous;
use fairlead_server::serve::Limits;
use fairlead_server::serve::in_flight::Bounds;
use fairlead_server::{Authorization, ExternalIps, WatchBounds};
use ipnet::IpNet;
use tracing_subscriber::filter::LevelFilter;

use crate::gates::{Gates, switch};
use crate::telemetry::Endpoint;
pub(crate) use balancer::{Balancer, BalancerFlags, PAGE};
pub(crate) use control::{Control, ControlFlags, LEASE};
pub(crate) use dns::{Dns, DnsFlags, Served};
pub(crate) use flags::{Flags, Text};
pub(crate) use join::{Join, JoinFlags};
pub(crate) use machine::METRICS;
pub(crate) use node::Node;
pub(crate) use proxy::{Objects, Proxy, ProxyFlags, Task};

mod admission;
mod balancer;
mod control;
mod dns;
mod flags;
mod history;
mod images;
mod join;
mod machine;
mod node;
mod proxy;
#[cfg(test)]
mod tests;
mod value;

const BIND_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const SECURE_PORT: u16 = 6443;
const SERVICE_RANGES: &str = "10.96.0.0/16,fd00:96::/108";
const NODE_PORTS: &str = "30000-32767";
/// Where root keeps everything.
pub(crate) const ROOT_DATA_DIR: &str = "/var/lib/fairlead";
const ETCD_PREFIX: &str = "/registry";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const AUDIT_MEGABYTES: u64 = 100;
const AUDIT_BACKUPS: usize = 10;
const REQUEST_TIMEOUT: &str = "1m0s";
const EVENT_TTL: &str = "1h0m0s";
const CONFIG_FILE: &str = "fairlead/config.yaml";

/// What the program runs with.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) data_dir: PathBuf,
    pub(crate) bind_address: IpAddr,
    /// What the Service `kubernetes` leads to, if the administrator says.
    pub(crate) advertise_address: Option<IpAddr>,
    pub(crate) secure_port: u16,
    pub(crate) tls_sans: Vec<String>,
    /// Certificate and key of the server, if not our own.
    pub(crate) tls_files: Option<(PathBuf, PathBuf)>,
    pub(crate) service_ranges: Vec<IpNet>,
    pub(crate) node_ports: RangeInclusive<u16>,
    /// Users that may write `spec.externalIPs`.
    pub(crate) external_ips: ExternalIps,
    /// Where `spec.externalIPs` may come from; empty: anywhere.
    pub(crate) external_ip_ranges: Vec<IpNet>,
    pub(crate) store: Store,
    pub(crate) gates: Gates,
    /// API versions and whether they are served.
    pub(crate) runtime_config: Vec<(String, bool)>,
    pub(crate) client_ca_file: Option<PathBuf>,
    pub(crate) token_auth_file: Option<PathBuf>,
    pub(crate) anonymous: Anonymous,
    pub(crate) authorization: Authorization,
    pub(crate) issuers: Vec<String>,
    pub(crate) service_account_keys: Vec<PathBuf>,
    pub(crate) service_account_jwks_uri: Option<String>,
    pub(crate) service_account_signing_key: Option<PathBuf>,
    /// True if Pods get their accounts (admission plugin ServiceAccount).
    pub(crate) service_accounts: bool,
    /// Default plugins that are not to be used.
    pub(crate) admission_disabled: Vec<String>,
    pub(crate) audit: Option<audit::Options>,
    pub(crate) in_flight: Bounds,
    pub(crate) watches: WatchBounds,
    pub(crate) connections: ConnectionCounts,
    pub(crate) request_timeout: Duration,
    pub(crate) event_ttl: Duration,
    /// How much of the past is kept; `None`: nothing.
    pub(crate) history: Option<fairlead_history::Bounds>,
    pub(crate) control: fairlead_control::Options,
    /// How this machine serves Services; `None`: it does not.
    pub(crate) proxy: Option<fairlead_proxy::Settings>,
    /// How load balancers are run; `None`: they are not.
    pub(crate) balancer: Option<fairlead_balancer::run::Settings>,
    /// What this machine is in the cluster; `None`: nothing.
    pub(crate) node: Option<Node>,
    /// Where traces of changes go.
    pub(crate) traces: Option<Endpoint>,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: LevelFilter,
}

/// Maximum numbers of connections that the administrator chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionCounts {
    total: Option<usize>,
    per_address: Option<usize>,
}

impl ConnectionCounts {
    /// Returns the limits of this machine with the numbers that were chosen.
    pub(crate) fn of(self, usual: Limits) -> Limits {
        let total = self.total.unwrap_or(usual.connections);
        let share = self.total.map_or(usual.per_address, |total| (total / 8).max(8));
        let per_address = self.per_address.unwrap_or(share);
        Limits { connections: total, reserved: total / 5, per_address, ..usual }
    }
}

/// Where objects are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Store {
    /// In one file in the data directory.
    Embedded,
    /// Nowhere: all is gone when the program ends.
    Memory,
    /// In etcd.
    Etcd(Etcd),
}

/// How to reach etcd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Etcd {
    pub(crate) servers: Vec<String>,
    pub(crate) prefix: String,
    pub(crate) ca_file: Option<PathBuf>,
    /// Our certificate and key.
    pub(crate) client_files: Option<(PathBuf, PathBuf)>,
}

/// The form of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// What is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Everything.
    Up,
    /// The API server.
    Server,
}

/// What the program finds around it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    pub(crate) root: bool,
    pub(crate) home: Option<PathBuf>,
    pub(crate) state_home: Option<PathBuf>,
    pub(crate) config_home: Option<PathBuf>,
    /// `/etc`.
    pub(crate) etc: PathBuf,
    /// Where OpenTelemetry's own variables say that traces go, and of which cluster they are.
    pub(crate) collector: Option<String>,
    pub(crate) cluster: Option<String>,
}

impl Environment {
    /// Looks around.
    pub(crate) fn read() -> Environment {
        let path = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let word = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let home = path("HOME");
        let below = |dir: &str| home.as_ref().map(|home| home.join(dir));
        Environment {
            // Our own entry in /proc belongs to whom we run as.
            root: std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0),
            state_home: path("XDG_STATE_HOME").or_else(|| below(".local/state")),
            config_home: path("XDG_CONFIG_HOME").or_else(|| below(".config")),
            home,
            etc: PathBuf::from("/etc"),
            collector: word("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| word("OTEL_EXPORTER_OTLP_ENDPOINT")),
            cluster: word("OTEL_RESOURCE_ATTRIBUTES").as_deref().and_then(cluster_name),
        }
    }

    /// Where traces go, if somewhere.
    pub(crate) fn traces(&self, said: Option<&str>) -> anyhow::Result<Option<Endpoint>> {
        let (name, text) = match (said, &self.collector) {
            (Some(said), _) => ("--otlp-endpoint", said),
            (None, Some(text)) => ("OTEL_EXPORTER_OTLP_ENDPOINT", text.as_str()),
            (None, None) => return Ok(None),
        };
        let endpoint: Endpoint = text.parse().with_context(|| name)?;
        Ok(Some(endpoint.of(self.cluster.clone())))
    }

    /// Whether whoever looks at a terminal wants colours: https://no-color.org
    pub(crate) fn wants_colours() -> bool {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        !refused && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
    }

    pub(crate) fn data_dir(&self) -> anyhow::Result<PathBuf> {
        if self.root {
            return Ok(PathBuf::from(ROOT_DATA_DIR));
        }
        let home = self.state_home.as_ref().or(self.home.as_ref());
        home.map(|home| home.join("fairlead"))
            .ok_or_else(|| anyhow!("no home directory; say --data-dir where to keep data"))
    }

    fn config_file(&self) -> Option<PathBuf> {
        let places = [Some(&self.etc), self.config_home.as_ref()];
        places.into_iter().flatten().map(|dir| dir.join(CONFIG_FILE)).find(|file| file.exists())
    }
}

/// `k8s.cluster.name` of a list such as `a=b,k8s.cluster.name=harbour`.
fn cluster_name(attributes: &str) -> Option<String> {
    let name = attributes.split(',').find_map(|pair| pair.trim().strip_prefix("k8s.cluster.name="))?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The configuration: flags, completed by the config file and the defaults.
pub(crate) fn load(flags: Flags, role: Role, environment: &Environment) -> anyhow::Result<Config> {
    let file = flags.config.as_ref().map(|Text(path)| PathBuf::from(path)).or_else(|| environment.config_file());
    let flags = match file {
        Some(file) => flags.or(read_file(&file)?),
        None => flags,
    };
    resolve(&flags, role, environment)
}

fn read_file(path: &Path) -> anyhow::Result<Flags> {
    let text = std::fs::read_to_string(path).with_context(|| format!("config file {}", path.display()))?;
    parse_file(&text).with_context(|| format!("config file {}", path.display()))
}

/// A mistake begins with its line.
fn parse_file(text: &str) -> anyhow::Result<Flags> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Flags::default());
    }
    let flags: Flags = serde_saphyr::from_str(text).map_err(|error| match error.location() {
        Some(place) => anyhow!("line {}: {}", place.line(), mistake(&error)),
        None => anyhow!("{}", mistake(&error)),
    })?;
    if flags.config.is_some() {
        bail!("a config file cannot name another one (key config)");
    }
    Ok(flags)
}

/// What is wrong, without the place, which stands before it, and without the names of all keys there are.
fn mistake(error: &serde_saphyr::Error) -> String {
    let message = error.without_snippet().to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    let message = message.split_once(", expected one of").map_or(message, |(message, _)| message);
    message.replacen("unknown field", "unknown key", 1)
}

fn resolve(flags: &Flags, role: Role, environment: &Environment) -> anyhow::Result<Config> {
    let ranges = flags.service_cluster_ip_range.clone().or_else(|| Some(vec![SERVICE_RANGES.into()]));
    let service_ranges = value::service_ranges("service-cluster-ip-range", &value::list(&ranges))?;
    let node_ports = flags.service_node_port_range.as_ref().map_or(NODE_PORTS, |Text(text)| text);
    let gates = value::list(&flags.feature_gates).join(",");
    let issuers = value::list(&flags.service_account_issuer);
    let admission_disabled = admission::plugins(flags)?;
    let control = controllers(flags, role)?;
    let store = store(flags)?;
    // Servers that share a store agree on one of them.
    let provisioning = if matches!(store, Store::Etcd(_)) { Provisioning::Elected } else { Provisioning::Here };
    let data_dir = path(&flags.data_dir).map_or_else(|| environment.data_dir(), Ok)?;
    Ok(Config {
        bind_address: value::parse("bind-address", flags.bind_address.as_ref(), BIND_ADDRESS)?,
        advertise_address: match &flags.advertise_address {
            Some(text) => Some(value::parse("advertise-address", Some(text), BIND_ADDRESS)?),
            None => None,
        },
        secure_port: value::parse("secure-port", flags.secure_port.as_ref(), SECURE_PORT)?,
        tls_sans: value::list(&flags.tls_san),
        tls_files: both("tls-cert-file", &flags.tls_cert_file, "tls-private-key-file", &flags.tls_private_key_file)?,
        node: node::settings(flags, role, &service_ranges)?,
        service_ranges,
        node_ports: value::ports("service-node-port-range", node_ports)?,
        external_ips: admission::external_ips(flags),
        external_ip_ranges: value::networks("external-ip-range", &value::list(&flags.external_ip_range))?,
        store,
        gates: Gates::parse(&gates).map_err(|why| value::invalid("feature-gates", &gates, why))?,
        runtime_config: runtime_config(&value::list(&flags.runtime_config))?,
        client_ca_file: path(&flags.client_ca_file),
        token_auth_file: path(&flags.token_auth_file),
        anonymous: anonymous(flags)?,
        authorization: authorization(flags)?,
        issuers: if issuers.is_empty() { vec![ISSUER.to_owned()] } else { issuers },
        service_account_keys: value::list(&flags.service_account_key_file).into_iter().map(PathBuf::from).collect(),
        service_account_jwks_uri: jwks_uri(flags)?,
        service_account_signing_key: path(&flags.service_account_signing_key_file),
        service_accounts: admission::service_accounts(flags, &control.choice),
        admission_disabled,
        audit: audit(flags)?,
        in_flight: in_flight(flags)?,
        watches: watches(flags)?,
        connections: connections(flags)?,
        request_timeout: value::duration(
            "request-timeout",
            flags.request_timeout.as_ref().map_or(REQUEST_TIMEOUT, |Text(text)| text),
        )?,
        event_ttl: value::duration("event-ttl", flags.event_ttl.as_ref().map_or(EVENT_TTL, |Text(text)| text))?,
        history: history::bounds(flags)?,
        control,
        proxy: machine::settings(flags, role)?,
        balancer: balancer::settings(flags, role, &data_dir, provisioning)?,
        data_dir,
        traces: environment.traces(flags.otlp_endpoint.as_ref().map(|Text(text)| text.as_str()))?,
        log_format: log_format(&flags.log_format)?,
        log_level: log_level(&flags.log_level)?,
    })
}

/// The controllers of `fairlead up`: all of them.
const UP_CONTROLLERS: &str = "*,daemonset-controller,deployment-controller,node-ipam-controller,replicaset-controller,\
    replicationcontroller-controller,root-ca-certificate-publisher-controller,scheduler,serviceaccount-controller,statefulset-controller";

/// What the controllers beside the server run with.
fn controllers(flags: &Flags, role: Role) -> anyhow::Result<fairlead_control::Options> {
    let options = control::options(&control::Said {
        controllers: flags.controllers.as_ref(),
        usual: if role == Role::Up { UP_CONTROLLERS } else { "" },
        max_endpoints_per_slice: flags.max_endpoints_per_slice.as_ref(),
        mirroring_max_endpoints_per_subset: flags.mirroring_max_endpoints_per_subset.as_ref(),
        node_monitor_grace_period: flags.node_monitor_grace_period.as_ref(),
    })?;
    let node_ranges = NodeRanges { cluster: machine::pod_ranges(flags)?, ..NodeRanges::default() };
    Ok(fairlead_control::Options { node_ranges, ..options })
}

fn text(value: &Option<Text>) -> &str {
    value.as_ref().map(|Text(text)| text.as_str()).unwrap_or_default()
}

fn path(value: &Option<Text>) -> Option<PathBuf> {
    Some(text(value)).filter(|text| !text.is_empty()).map(PathBuf::from)
}

/// Returns the URL of `--service-account-jwks-uri`. OpenID Connect asks for https.
fn jwks_uri(flags: &Flags) -> anyhow::Result<Option<String>> {
    match text(&flags.service_account_jwks_uri) {
        "" => Ok(None),
        url if url.starts_with("https://") => Ok(Some(url.to_owned())),
        url => Err(value::invalid("service-account-jwks-uri", url, "want a URL that begins with https://")),
    }
}

/// Two files that are of use only together.
fn both(
    one: &str,
    first: &Option<Text>,
    other: &str,
    second: &Option<Text>,
) -> anyhow::Result<Option<(PathBuf, PathBuf)>> {
    match (path(first), path(second)) {
        (Some(first), Some(second)) => Ok(Some((first, second))),
        (None, None) => Ok(None),
        (Some(_), None) => bail!("--{one} needs --{other} too"),
        (None, Some(_)) => bail!("--{other} needs --{one} too"),
    }
}

fn store(flags: &Flags) -> anyhow::Result<Store> {
    let servers = value::list(&flags.etcd_servers);
    if servers.is_empty() {
        let needs = [&flags.etcd_prefix, &flags.etcd_cafile, &flags.etcd_certfile, &flags.etcd_keyfile];
        if needs.iter().any(|flag| flag.is_some()) {
            bail!("--etcd-prefix, --etcd-cafile, --etcd-certfile and --etcd-keyfile need --etcd-servers");
        }
        return match text(&flags.store) {
            "" | "embedded" => Ok(Store::Embedded),
            "memory" => Ok(Store::Memory),
            other => Err(value::invalid("store", other, "want embedded or memory")),
        };
    }
    if flags.store.is_some() {
        bail!("--store and --etcd-servers cannot be used together");
    }
    if let Some(bad) = servers.iter().find(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
        return Err(value::invalid("etcd-servers", bad, "want a URL that begins with http:// or https://"));
    }
    Ok(Store::Etcd(Etcd {
        servers,
        prefix: flags.etcd_prefix.as_ref().map_or(ETCD_PREFIX, |Text(text)| text).to_owned(),
        ca_file: path(&flags.etcd_cafile),
        client_files: both("etcd-certfile", &flags.etcd_certfile, "etcd-keyfile", &flags.etcd_keyfile)?,
    }))
}

fn runtime_config(pairs: &[String]) -> anyhow::Result<Vec<(String, bool)>> {
    let read = |pair: &String| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
        let wrong = |why: &str| value::invalid("runtime-config", pair, why);
        if !name.contains('/') && name != "v1" {
            return Err(wrong("want group/version=true or group/version=false"));
        }
        Ok((name.to_owned(), switch(value).ok_or_else(|| wrong("want true or false"))?))
    };
    pairs.iter().map(read).collect()
}

fn anonymous(flags: &Flags) -> anyhow::Result<Anonymous> {
    let Some(Text(text)) = &flags.anonymous_auth else { return Ok(Anonymous::Health) };
    match switch(text) {
        Some(true) => Ok(Anonymous::Everywhere),
        Some(false) => Ok(Anonymous::Nowhere),
        None => Err(value::invalid("anonymous-auth", text, "want true or false")),
    }
}

/// One mode that allows is enough. The Node mode only narrows what RBAC gives to nodes, so it never stands alone.
fn authorization(flags: &Flags) -> anyhow::Result<Authorization> {
    let modes = value::list(&flags.authorization_mode);
    for mode in &modes {
        if !matches!(mode.as_str(), "AlwaysAllow" | "RBAC" | "Node") {
            return Err(value::invalid("authorization-mode", mode, "want RBAC, AlwaysAllow, or Node beside RBAC"));
        }
    }
    let has = |wanted: &str| modes.iter().any(|mode| mode == wanted);
    match (has("AlwaysAllow"), has("RBAC"), modes.is_empty()) {
        (true, _, _) => Ok(Authorization::AlwaysAllow),
        (_, true, _) | (_, _, true) => Ok(Authorization::Rbac),
        _ => Err(value::invalid("authorization-mode", "Node", "Node needs RBAC too")),
    }
}

fn audit(flags: &Flags) -> anyhow::Result<Option<audit::Options>> {
    let megabytes: u64 = value::parse("audit-log-maxsize", flags.audit_log_maxsize.as_ref(), AUDIT_MEGABYTES)?;
    let max_backup = value::parse("audit-log-maxbackup", flags.audit_log_maxbackup.as_ref(), AUDIT_BACKUPS)?;
    let max_size = megabytes.saturating_mul(1 << 20);
    Ok(path(&flags.audit_log_path).map(|path| audit::Options { path, max_size, max_backup }))
}

fn in_flight(flags: &Flags) -> anyhow::Result<Bounds> {
    let usual = Bounds::default();
    Ok(Bounds {
        reading: value::parse("max-requests-inflight", flags.max_requests_inflight.as_ref(), usual.reading)?,
        writing: value::parse(
            "max-mutating-requests-inflight",
            flags.max_mutating_requests_inflight.as_ref(),
            usual.writing,
        )?,
    })
}

fn watches(flags: &Flags) -> anyhow::Result<WatchBounds> {
    let usual = WatchBounds::default();
    let bound = |name: &str, said: Option<&Text>, usual: u64| -> anyhow::Result<u64> {
        let count = value::parse(name, said, usual)?;
        Ok(if count == 0 { u64::MAX } else { count })
    };
    Ok(WatchBounds {
        total: bound("max-watches", flags.max_watches.as_ref(), usual.total)?,
        per_user: bound("max-watches-per-user", flags.max_watches_per_user.as_ref(), usual.per_user)?,
    })
}

fn connections(flags: &Flags) -> anyhow::Result<ConnectionCounts> {
    let count = |name: &str, said: Option<&Text>| -> anyhow::Result<Option<usize>> {
        let count: usize = value::parse(name, said, 0)?;
        match (said, count) {
            (Some(_), 0) => Err(value::invalid(name, "0", "want 1 or more")),
            (_, count) => Ok((count > 0).then_some(count)),
        }
    };
    Ok(ConnectionCounts {
        total: count("max-connections", flags.max_connections.as_ref())?,
        per_address: count("max-connections-per-address", flags.max_connections_per_address.as_ref())?,
    })
}

fn log_format(said: &Option<Text>) -> anyhow::Result<LogFormat> {
    match text(said) {
        "" | "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        other => Err(value::invalid("log-format", other, "want text or json")),
    }
}

/// Names, or the numbers of kube-apiserver's `-v`.
fn log_level(said: &Option<Text>) -> anyhow::Result<LevelFilter> {
    let text = text(said);
    match text.parse::<u32>() {
        Ok(0..=3) => return Ok(LevelFilter::INFO),
        Ok(4..=5) => return Ok(LevelFilter::DEBUG),
        Ok(_) => return Ok(LevelFilter::TRACE),
        Err(_) if text.is_empty() => return Ok(LevelFilter::INFO),
        Err(_) => {}
    }
    text.parse().map_err(|_| value::invalid("log-level", text, "want error, warn, info, debug, trace or a number"))
}
