//! The controllers, wherever they run: beside the server in this process, or against a cluster that a kubeconfig names.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use fairlead_cluster::{Cluster, leader};
use fairlead_control::{Controller, Defect, Metrics, Options};
use fairlead_server::Server;
use fairlead_server::auth::User;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Control, LEASE, Store};

mod page;

/// Runs controllers against a cluster until a signal comes.
pub(crate) async fn run(control: Control) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    super::stop_on_signal(stop.clone())?;
    // The error tells its causes itself.
    let cluster = Cluster::connect_to_all(control.kubeconfig.as_deref(), &control.masters)
        .await
        .map_err(|error| anyhow!("--kubeconfig, --master: {error}"))?;
    let mut options = control.options;
    if options.choice.has(Controller::RootCaPublisher) && options.root_ca.is_none() {
        let certificates = cluster.authorities().ok_or_else(|| {
            anyhow!(
                "{} needs --root-ca-file: the kubeconfig has no certificate authority",
                Controller::RootCaPublisher.name()
            )
        })?;
        options.root_ca = Some(certificates.to_owned());
    }
    tracing::info!(controllers = %options.choice, "starting");
    let metrics = Metrics::new();
    let page = control.metrics.map(|address| tokio::spawn(page::serve(metrics.clone(), address, stop.clone())));
    let ended = elected(cluster, options, metrics, control.lease, stop.clone()).await;
    stop.cancel();
    if let Some(page) = page {
        page.await?;
    }
    Ok(ended?)
}

/// Runs controllers beside the server, as a user who may do everything. Servers that share a store agree on one of them.
/// `certificates` are those by which clients know the server, in PEM.
pub(super) async fn beside(
    server: &Server,
    config: &Config,
    certificates: String,
    metrics: Metrics,
    stop: CancellationToken,
) -> Result<(), Defect> {
    if config.control.choice.is_empty() {
        return Ok(());
    }
    let user = User {
        name: "system:kube-controller-manager".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..User::default()
    };
    let local = server.local(user);
    let cluster = Cluster::new(local.clone(), Arc::new(local));
    let shared = matches!(config.store, Store::Etcd(_));
    let lease = shared.then(|| (LEASE.0.to_owned(), LEASE.1.to_owned()));
    let options = Options { root_ca: Some(certificates), ..config.control.clone() };
    elected(cluster, options, metrics, lease, stop).await
}

/// Runs controllers, while holding the Lease if there is one to hold. A defect ends it for good: nobody is to lead who cannot.
async fn elected(
    cluster: Cluster,
    options: Options,
    metrics: Metrics,
    lease: Option<(String, String)>,
    stop: CancellationToken,
) -> Result<(), Defect> {
    let Some((namespace, name)) = lease else {
        return fairlead_control::run_measured(cluster, options, metrics, stop).await;
    };
    let config = leader::Config::new(&namespace, &name, &identity(&options.host));
    let failed = AtomicBool::new(false);
    metrics.waits(&name);
    let lead = async |leading| {
        let _leading = metrics.leads(&name);
        let ended = fairlead_control::run_measured(cluster.clone(), options.clone(), metrics.clone(), leading).await;
        if ended.is_err() {
            failed.store(true, Ordering::Relaxed);
            stop.cancel();
        }
    };
    leader::run(cluster.clone(), config, stop.clone(), lead).await;
    if failed.into_inner() { Err(Defect) } else { Ok(()) }
}

/// A name no other process has.
fn identity(host: &str) -> String {
    format!("{host}_{}_{}", std::process::id(), Timestamp::now().as_nanosecond())
}
