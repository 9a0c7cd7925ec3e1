//! `fairlead stop`: ends Pods in order: they get no new connections first, then are told to end, then are gone.

use std::io::Write;

use anyhow::Context;
use clap::Args;
use fairlead_api::kinds;
use fairlead_cluster::{Cluster, Delete, Error};
use futures_util::StreamExt;

use super::{Place, follow, pod_name};

/// The options of `fairlead stop`.
#[derive(Debug, Clone, Args)]
pub(crate) struct StopFlags {
    #[command(flatten)]
    place: Place,
    /// The Pods: NAME or pod/NAME
    #[arg(value_name = "POD", required = true, value_parser = pod_name)]
    pods: Vec<String>,
    /// How long each may take to end, in seconds [default: what the Pod says]
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u64>,
    /// Do not wait until they are gone
    #[arg(long)]
    no_wait: bool,
}

/// Stops Pods, and waits until they are gone.
pub(crate) async fn run(flags: StopFlags) -> anyhow::Result<()> {
    let cluster = flags.place.cluster().await?;
    let how = Delete { grace_seconds: flags.grace, ..Delete::default() };
    let stops = flags.pods.iter().map(async |name| {
        if flags.no_wait {
            delete(&cluster, &flags.place, name, &how).await?;
        } else {
            stop(&cluster, &flags.place, name, &how).await?;
        }
        writeln!(std::io::stdout(), "pod/{name} {}", if flags.no_wait { "is being stopped" } else { "stopped" })?;
        anyhow::Ok(())
    });
    // All are told, whatever becomes of one.
    let ended = futures_util::future::join_all(stops).await;
    ended.into_iter().collect()
}

/// Stops a Pod, and waits until it is gone.
pub(super) async fn stop(cluster: &Cluster, place: &Place, name: &str, how: &Delete) -> anyhow::Result<()> {
    // Followed from before, so that another Pod that takes its name is not waited for.
    let mut states = follow(cluster, place.pod(name));
    delete(cluster, place, name, how).await?;
    while let Some(pod) = states.next().await {
        if pod.is_none() {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether that went wrong because there is no such Pod.
pub(super) fn is_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(|error| matches!(error, Error::NotFound(_)))
}

async fn delete(cluster: &Cluster, place: &Place, name: &str, how: &Delete) -> anyhow::Result<()> {
    cluster.delete(&kinds::POD, &place.namespace, name, how).await.map(drop).with_context(|| format!("pod/{name}"))
}
