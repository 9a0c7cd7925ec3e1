//! What the controllers run with: in the process of the API server, or as `fairlead control` against any cluster.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use fairlead_control::{Choice, Options};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tracing_subscriber::filter::LevelFilter;

use super::flags::Text;
use super::{LogFormat, log_format, log_level, path, text, value};
use crate::gates::switch;

/// The options of `fairlead control`; kube-controller-manager's names.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ControlFlags {
    /// The kubeconfig of the cluster [default: as kubectl finds it, then the account of the Pod we run in]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<Text>,
    /// URLs of API servers, in place of the kubeconfig's; others are learned
    #[arg(long, value_name = "URL,...")]
    master: Option<Vec<Text>>,
    /// Controllers to run: names, * for all, -NAME for all but that one [default: *]
    #[arg(long, value_name = "NAME,...", allow_hyphen_values = true)]
    controllers: Option<Text>,
    /// The most endpoints in an EndpointSlice [default: 100]
    #[arg(long, value_name = "COUNT")]
    max_endpoints_per_slice: Option<Text>,
    /// The most addresses of a subset of hand-made Endpoints that are mirrored [default: 1000]
    #[arg(long, value_name = "COUNT")]
    mirroring_max_endpoints_per_subset: Option<Text>,
    /// How long a Node may be silent until it counts as not ready [default: 50s]
    #[arg(long, value_name = "DURATION")]
    node_monitor_grace_period: Option<Text>,
    /// Certificates by which Pods know the API server, published in every namespace by
    /// root-ca-certificate-publisher-controller [default: those of the kubeconfig]
    #[arg(long, value_name = "FILE")]
    root_ca_file: Option<Text>,
    /// Act only while holding a Lease, so that several can run and one works [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    leader_elect: Option<Text>,
    /// The name of that Lease [default: fairlead-control]
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_name: Option<Text>,
    /// The namespace of that Lease [default: kube-system]
    #[arg(long, value_name = "NAMESPACE")]
    leader_elect_resource_namespace: Option<Text>,
    /// Where /metrics and /healthz are; empty: nowhere [default: 127.0.0.1:10252]
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics_bind_address: Option<Text>,
    /// Logs as text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<Text>,
    /// How much to log: error, warn, info, debug, trace, or a number as in kube-controller-manager [default: info]
    #[arg(long, short = 'v', alias = "v", value_name = "LEVEL")]
    log_level: Option<Text>,
}

/// What `fairlead control` runs with.
#[derive(Debug, Clone)]
pub(crate) struct Control {
    pub(crate) kubeconfig: Option<PathBuf>,
    /// URLs of API servers; none: the kubeconfig's.
    pub(crate) masters: Vec<String>,
    pub(crate) options: Options,
    /// Namespace and name of the Lease of whoever acts; `None`: act at once.
    pub(crate) lease: Option<(String, String)>,
    /// Where they tell how they do.
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: LevelFilter,
}

impl Control {
    /// What flags and defaults say.
    pub(crate) fn resolve(flags: &ControlFlags) -> anyhow::Result<Control> {
        let or = |said: &Option<Text>, usual: &str| {
            let said = text(said);
            if said.is_empty() { usual.to_owned() } else { said.to_owned() }
        };
        let elect = or(&flags.leader_elect, "true");
        let elect = switch(&elect).ok_or_else(|| value::invalid("leader-elect", &elect, "want true or false"))?;
        let lease =
            (or(&flags.leader_elect_resource_namespace, LEASE.0), or(&flags.leader_elect_resource_name, LEASE.1));
        let options = options(&Said {
            controllers: flags.controllers.as_ref(),
            usual: "*",
            max_endpoints_per_slice: flags.max_endpoints_per_slice.as_ref(),
            mirroring_max_endpoints_per_subset: flags.mirroring_max_endpoints_per_subset.as_ref(),
            node_monitor_grace_period: flags.node_monitor_grace_period.as_ref(),
        })?;
        anyhow::ensure!(
            !options.choice.is_empty(),
            value::invalid("controllers", text(&flags.controllers), "it leaves nothing to run")
        );
        let root_ca = path(&flags.root_ca_file).map(|file| read_certificates(&file)).transpose()?;
        Ok(Control {
            kubeconfig: path(&flags.kubeconfig),
            masters: value::list(&flags.master),
            options: Options { root_ca, ..options },
            lease: elect.then_some(lease),
            metrics: value::address("metrics-bind-address", &flags.metrics_bind_address, METRICS)?,
            log_format: log_format(&flags.log_format)?,
            log_level: log_level(&flags.log_level)?,
        })
    }
}

/// Reads the file of `--root-ca-file`. kube-controller-manager, too, starts only with a certificate
/// in it.
fn read_certificates(file: &Path) -> anyhow::Result<String> {
    let pem = std::fs::read_to_string(file).with_context(|| format!("--root-ca-file: {}", file.display()))?;
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let found = certificates.with_context(|| format!("--root-ca-file: {}", file.display()))?.len();
    anyhow::ensure!(found > 0, "--root-ca-file: {}: no certificate found", file.display());
    Ok(pem)
}

/// Where kube-controller-manager told its metrics when it still told them to whoever asks.
const METRICS: &str = "127.0.0.1:10252";

/// Namespace and name of the Lease, unless the administrator says otherwise.
pub(crate) const LEASE: (&str, &str) = ("kube-system", "fairlead-control");

/// What was said about controllers, wherever.
pub(super) struct Said<'a> {
    pub(super) controllers: Option<&'a Text>,
    /// What runs when nothing was said.
    pub(super) usual: &'a str,
    pub(super) max_endpoints_per_slice: Option<&'a Text>,
    pub(super) mirroring_max_endpoints_per_subset: Option<&'a Text>,
    pub(super) node_monitor_grace_period: Option<&'a Text>,
}

/// The bounds are kube-controller-manager's.
pub(super) fn options(said: &Said<'_>) -> anyhow::Result<Options> {
    let usual = Options::default();
    let list = said.controllers.map_or(said.usual, |Text(text)| text);
    let grace = said.node_monitor_grace_period;
    Ok(Options {
        choice: Choice::parse(list).map_err(|why| value::invalid("controllers", list, why))?,
        max_endpoints_per_slice: bounded(
            "max-endpoints-per-slice",
            said.max_endpoints_per_slice,
            usual.max_endpoints_per_slice,
        )?,
        mirroring_max_endpoints_per_subset: bounded(
            "mirroring-max-endpoints-per-subset",
            said.mirroring_max_endpoints_per_subset,
            usual.mirroring_max_endpoints_per_subset,
        )?,
        node_monitor_grace_period: match grace {
            Some(Text(text)) => at_least_a_second("node-monitor-grace-period", text)?,
            None => usual.node_monitor_grace_period,
        },
        host: std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned(),
        ..usual
    })
}

fn bounded(flag: &str, said: Option<&Text>, usual: usize) -> anyhow::Result<usize> {
    let count = value::parse(flag, said, usual)?;
    let fine = (1..=1000).contains(&count);
    anyhow::ensure!(fine, value::invalid(flag, &count.to_string(), "want a number from 1 to 1000"));
    Ok(count)
}

fn at_least_a_second(flag: &str, text: &str) -> anyhow::Result<Duration> {
    let duration = value::duration(flag, text)?;
    anyhow::ensure!(duration >= Duration::from_secs(1), value::invalid(flag, text, "want at least 1s"));
    Ok(duration)
}

#[cfg(test)]
mod tests;
