//! The node proxy, wherever its objects come from: a cluster that a kubeconfig names, files, or the server of this process.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use fairlead_cluster::Cluster;
use fairlead_proxy::{Mode, Pages, View};
use fairlead_server::Server;
use fairlead_server::auth::User;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Objects, Proxy, Task};

/// Time between two attempts to start the proxy.
const RETRY: Duration = Duration::from_millis(500);

/// Does what the options say.
pub(crate) async fn run(proxy: Proxy) -> anyhow::Result<()> {
    for warning in &proxy.warnings {
        tracing::warn!("{warning}");
    }
    match proxy.task {
        Task::Run => {}
        Task::Cleanup => return super::report_removed(fairlead_proxy::cleanup().context("cleaning up")?),
        Task::Init => {
            fairlead_proxy::sysctls::set(&proxy.settings, proxy.settings.mode.unwrap_or(Mode::Nftables));
            return Ok(());
        }
        Task::WriteConfig(file, text) => {
            return std::fs::write(&file, text).with_context(|| format!("--write-config-to: {}", file.display()));
        }
        Task::Version => return Ok(writeln!(std::io::stdout(), "fairlead {}", env!("CARGO_PKG_VERSION"))?),
    }
    if let Some(score) = proxy.settings.oom_score_adj {
        tracing::debug!("{}", fairlead_proxy::sysctls::set_oom_score(score));
    }
    let stop = CancellationToken::new();
    super::stop_on_signal(stop.clone())?;
    let cluster = open(&proxy.objects).await?;
    Ok(fairlead_proxy::run(cluster, proxy.settings, proxy.pages, stop).await?)
}

/// Serves the Services of the server of this process. A machine on which that cannot be is still good for the API.
pub(super) async fn beside(server: &Server, config: &Config, view: &View, stop: CancellationToken) {
    let Some(mut settings) = config.proxy.clone() else { return };
    settings.topology_keys = config.gates.on("ServiceTopology");
    if settings.node_ips.is_empty() {
        settings.node_ips = super::machine::addresses(super::reachable(config));
    }
    let user = User {
        name: "system:kube-proxy".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..User::default()
    };
    let local = server.local(user);
    let cluster = Cluster::new(local.clone(), Arc::new(local));
    let run = || fairlead_proxy::run_in_view(cluster.clone(), settings.clone(), Pages::default(), view, stop.clone());
    keep(run, &stop).await;
}

/// Runs the proxy of a process that has other parts. A start that fails for want of descriptors,
/// memory or buffers is tried again until told to stop; other errors are logged.
pub(super) async fn keep<F>(run: impl Fn() -> F, stop: &CancellationToken)
where
    F: Future<Output = Result<(), fairlead_proxy::Error>>,
{
    let mut told = false;
    while let Err(error) = run().await {
        if !error.is_temporary() {
            return tracing::warn!("addresses of Services do not answer on this machine: {error}");
        }
        if !std::mem::replace(&mut told, true) {
            tracing::warn!("addresses of Services do not answer on this machine yet, which is tried again: {error}");
        }
        if stop.run_until_cancelled(tokio::time::sleep(RETRY)).await.is_none() {
            return;
        }
    }
}

/// The door to where objects are.
pub(super) async fn open(objects: &Objects) -> anyhow::Result<Cluster> {
    match objects {
        Objects::Cluster { kubeconfig, master } => {
            // The error tells its causes itself.
            let urls = master.as_deref().unwrap_or_default().split(',').map(str::trim).filter(|url| !url.is_empty());
            let urls: Vec<String> = urls.map(str::to_owned).collect();
            let cluster = Cluster::connect_to_all(kubeconfig.as_deref(), &urls).await;
            cluster.map_err(|error| anyhow!("--kubeconfig, --master: {error}"))
        }
        Objects::Manifests(path) => {
            let (cluster, skipped) = Cluster::from_manifests(path).map_err(|error| anyhow!("--manifests: {error}"))?;
            for one in skipped {
                tracing::warn!("--manifests: {}: {} {} is of no kind known here", one.file, one.kind, one.name);
            }
            Ok(cluster)
        }
    }
}
