//! What the node proxy runs with: kube-proxy's options, or its configuration file.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, bail};
use fairlead_proxy::{Pages, Settings};
use tracing_subscriber::filter::LevelFilter;

use super::{LogFormat, log_level, value};
use crate::gates::{GATES, Gates, switch};
use check::check;
use configuration::{Configuration, HEALTHZ_PORT, METRICS_PORT, with_port};
use field::{Findings, Given};
pub(crate) use flags::ProxyFlags;
use flags::{Said, flag_of};

mod check;
mod configuration;
mod field;
mod flags;
mod settings;
mod span;
#[cfg(test)]
mod tests;
mod tree;

/// What `fairlead proxy` runs with.
#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    pub(crate) task: Task,
    pub(crate) objects: Objects,
    pub(crate) settings: Settings,
    /// What `/configz` and `/flagz` show.
    pub(crate) pages: Pages,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: LevelFilter,
    /// What the user should know; for the log, once there is one.
    pub(crate) warnings: Vec<String>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    /// Program the kernel until told to stop.
    Run,
    /// Remove everything of ours from the kernel.
    Cleanup,
    /// Only set kernel parameters.
    Init,
    /// Write this text to this file.
    WriteConfig(PathBuf, String),
    /// Say which version this is.
    Version,
}

/// Where Services and EndpointSlices come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Objects {
    /// A cluster.
    Cluster {
        /// `None`: as kubectl finds it.
        kubeconfig: Option<PathBuf>,
        /// The URL of its API server, in place of the kubeconfig's.
        master: Option<String>,
    },
    /// Files.
    Manifests(PathBuf),
}

impl Proxy {
    /// What flags, the configuration file and defaults say.
    pub(crate) fn resolve(flags: &ProxyFlags) -> anyhow::Result<Proxy> {
        let mut warnings = idle_warnings(flags);
        let from_flags = from_flags(flags)?;
        let page = flags.page(&from_flags);
        let (mut configuration, explicit) = match flags.config.text().filter(|file| !file.is_empty()) {
            Some(file) => {
                let given = flags.filling();
                if !given.is_empty() {
                    let names: Vec<String> = given.iter().map(|name| format!("--{name}")).collect();
                    warnings.push(format!("ignored because --config is given: {}", names.join(", ")));
                }
                (from_file(Path::new(&file), &mut warnings)?, false)
            }
            None => {
                refuse(&from_flags, |field| flag_of(field).map(|flag| Spot::Flag(flag.clone())))?;
                (from_flags, flags.iptables_min_sync_period.is_some() || flags.ipvs_min_sync_period.is_some())
            }
        };
        if let Some(name) = flags.hostname_override.text().filter(|name| !name.is_empty()) {
            configuration.hostname_override = name;
        }
        let node = node_name(&configuration.hostname_override)?;
        useless(&configuration, &mut warnings);
        let gates = gates(&configuration, &mut warnings)?;
        let mut settings = settings::settings(&configuration, node, gates.on("ServiceTopology"));
        if explicit {
            settings.min_sync_period.get_or_insert_default();
        }
        Ok(Proxy {
            task: task(flags, &configuration)?,
            objects: objects(flags, &configuration),
            settings,
            pages: Pages { configuration: configuration.to_json(), flags: page },
            log_format: log_format(flags, &configuration),
            log_level: level(flags, &configuration)?,
            warnings,
        })
    }
}

fn idle_warnings(flags: &ProxyFlags) -> Vec<String> {
    let idle: Vec<String> = flags.idle().iter().map(|name| format!("--{name}")).collect();
    if idle.is_empty() { Vec::new() } else { vec![format!("these options change nothing here: {}", idle.join(", "))] }
}

fn from_flags(flags: &ProxyFlags) -> anyhow::Result<Configuration> {
    let mut configuration = Configuration::default();
    if let Some(address) = flags.bind_address.text() {
        // The usual addresses of the servers are of its family.
        configuration.bind_address = address;
    }
    configuration.complete();
    flags.fill(&mut configuration)?;
    if configuration.bind_address.is_empty() {
        configuration.bind_address = "0.0.0.0".to_owned();
    }
    let address = &mut configuration.healthz_bind_address;
    port("healthz-port", flags.healthz_port.text(), flags.healthz_bind_address.is_some(), address, HEALTHZ_PORT)?;
    let address = &mut configuration.metrics_bind_address;
    port("metrics-port", flags.metrics_port.text(), flags.metrics_bind_address.is_some(), address, METRICS_PORT)?;
    match configuration.mode.as_str() {
        "iptables" | "ipvs" => {}
        // Options have names of iptables where files have a section for each mode.
        _ => {
            configuration.nftables.sync_period = configuration.iptables.sync_period;
            configuration.nftables.min_sync_period = configuration.iptables.min_sync_period;
            configuration.nftables.masquerade_all = configuration.iptables.masquerade_all;
        }
    }
    Ok(configuration)
}

/// The port of an address, if that does not say. 0 switches the server off.
fn port(flag: &str, said: Option<String>, given: bool, address: &mut String, usual: u16) -> anyhow::Result<()> {
    let number = match &said {
        Some(text) => u16::from_str(text).map_err(|error| value::invalid(flag, text, error))?,
        None => usual,
    };
    if said.is_some() && number == 0 {
        address.clear();
    } else if said.is_some() && !given {
        *address = address.rsplit_once(':').map(|(host, _)| format!("{host}:{number}")).unwrap_or_default();
    } else {
        *address = with_port(address, number);
    }
    Ok(())
}

fn from_file(file: &Path, warnings: &mut Vec<String>) -> anyhow::Result<Configuration> {
    let name = || format!("configuration file {}", file.display());
    let text = std::fs::read_to_string(file).with_context(name)?;
    let (configuration, found) = parse_file(&text).with_context(name)?;
    warnings.extend(found.warnings.into_iter().map(|warning| format!("{}: {warning}", file.display())));
    Ok(configuration)
}

/// Reads a configuration file and checks what it says. A mistake begins with its line and names its field.
fn parse_file(text: &str) -> anyhow::Result<(Configuration, Findings)> {
    let (configuration, found) = Configuration::parse(text);
    if !found.mistakes.is_empty() {
        bail!("{}", found.mistakes.join("; "));
    }
    refuse(&configuration, |field| found.line(field).map(Spot::Line))?;
    Ok((configuration, found))
}

/// Where a value was given.
enum Spot {
    Line(u64),
    Flag(String),
}

/// Fails if something in the configuration will not do; `spot` says where a field was given.
fn refuse(configuration: &Configuration, spot: impl Fn(&str) -> Option<Spot>) -> anyhow::Result<()> {
    let told = |mistake: check::Mistake| {
        let check::Mistake { field, value, why } = mistake;
        match spot(&field) {
            Some(Spot::Flag(flag)) => value::invalid(&flag, &value, why).to_string(),
            Some(Spot::Line(line)) => format!("line {line}: {field}: Invalid value: {value:?}: {why}"),
            None => format!("{field}: Invalid value: {value:?}: {why}"),
        }
    };
    let mistakes: Vec<String> = check(configuration).into_iter().map(told).collect();
    if mistakes.is_empty() { Ok(()) } else { bail!("{}", mistakes.join("; ")) }
}

pub(super) fn node_name(said: &str) -> anyhow::Result<String> {
    let machine = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = if said.is_empty() { machine() } else { said.to_owned() };
    let name = name.trim().to_lowercase();
    if name.is_empty() {
        bail!("empty hostname is invalid; say the name of the Node with --hostname-override");
    }
    Ok(name)
}

/// Fields that ask for what is not here.
fn useless(configuration: &Configuration, warnings: &mut Vec<String>) {
    let mut say = |asked: bool, what: &str| {
        if asked {
            warnings.push(what.to_owned());
        }
    };
    say(configuration.enable_profiling, "profiling is not served here");
    say(configuration.windows_run_as_service, "windowsRunAsService means nothing on Linux");
    let winkernel = &configuration.winkernel;
    let windows = !winkernel.network_name.is_empty() || !winkernel.source_vip.is_empty() || winkernel.enable_dsr;
    say(windows, "winkernel means nothing on Linux");
    let ranges = configuration.node_port_addresses.as_deref().unwrap_or_default();
    let unset = ranges.is_empty() && matches!(configuration.mode.as_str(), "iptables" | "ipvs");
    say(
        unset,
        "nodePortAddresses is unset; NodePort connections will be accepted on all local IPs. Consider using \
         `--nodeport-addresses primary`",
    );
}

/// Gates nobody knows here are told, not refused: kube-proxy has many that have nothing to do with Services.
fn gates(configuration: &Configuration, warnings: &mut Vec<String>) -> anyhow::Result<Gates> {
    let (known, unknown): (Vec<_>, Vec<_>) = configuration.feature_gates.iter().partition(|(name, _)| {
        matches!(name.as_str(), "AllAlpha" | "AllBeta") || GATES.iter().any(|gate| gate.name == *name)
    });
    if !unknown.is_empty() {
        let names: Vec<&str> = unknown.iter().map(|(name, _)| name.as_str()).collect();
        warnings.push(format!("these feature gates are not known here and change nothing: {}", names.join(", ")));
    }
    let text: Vec<String> = known.iter().map(|(name, on)| format!("{name}={on}")).collect();
    let text = text.join(",");
    Gates::parse(&text).map_err(|why| value::invalid("feature-gates", &text, why))
}

fn task(flags: &ProxyFlags, configuration: &Configuration) -> anyhow::Result<Task> {
    let on = |flag: &str, said: Option<String>| match said {
        Some(text) => switch(&text).ok_or_else(|| value::invalid(flag, &text, format!("want {}", bool::WANT))),
        None => Ok(false),
    };
    // `--version=raw` asks for it too.
    if flags.version.text().is_some_and(|text| switch(&text) != Some(false)) {
        return Ok(Task::Version);
    }
    if let Some(file) = flags.write_config_to.text().filter(|file| !file.is_empty()) {
        let text = configuration.to_yaml().context("writing the configuration")?;
        return Ok(Task::WriteConfig(PathBuf::from(file), text));
    }
    if on("cleanup", flags.cleanup.text())? {
        return Ok(Task::Cleanup);
    }
    Ok(if on("init-only", flags.init_only.text())? { Task::Init } else { Task::Run })
}

fn objects(flags: &ProxyFlags, configuration: &Configuration) -> Objects {
    let full = |text: Option<String>| text.filter(|text| !text.is_empty());
    match full(flags.manifests.text()) {
        Some(path) => Objects::Manifests(PathBuf::from(path)),
        None => Objects::Cluster {
            kubeconfig: full(Some(configuration.client_connection.kubeconfig.clone())).map(PathBuf::from),
            master: full(flags.master.text()),
        },
    }
}

/// Options about logs count beside a file, too.
fn log_format(flags: &ProxyFlags, configuration: &Configuration) -> LogFormat {
    let said = flags.logging_format.text().unwrap_or_else(|| configuration.logging.format.clone());
    if said == "json" { LogFormat::Json } else { LogFormat::Text }
}

fn level(flags: &ProxyFlags, configuration: &Configuration) -> anyhow::Result<LevelFilter> {
    let file = Some(super::Text(configuration.logging.verbosity.to_string()));
    log_level(if flags.v.is_some() { &flags.v } else { &file })
}
