//! Cluster DNS, wherever its objects come from: a cluster that a kubeconfig names, or files.

use anyhow::anyhow;
use fairlead_cluster::Cluster;
use fairlead_dns::Settings;
use tokio_util::sync::CancellationToken;

use super::proxy::open;
use crate::config::{Dns, Served};

/// Answers questions until a signal comes.
pub(crate) async fn run(dns: Dns) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    super::stop_on_signal(stop.clone())?;
    let account = super::account();
    match &dns.served {
        Served::Corefile(corefile) => {
            let settings = corefile.read().map_err(|error| anyhow!("--corefile: {error}"))?;
            let cluster = cluster(&dns, &settings).await?;
            let mut corefile = corefile.clone();
            corefile.settings.account = account;
            Ok(fairlead_dns::run_file(cluster, corefile, stop).await?)
        }
        Served::Cluster(settings) => {
            let cluster = cluster(&dns, settings).await?;
            let settings = Settings { account, ..(**settings).clone() };
            Ok(fairlead_dns::run(cluster, settings, stop).await?)
        }
    }
}

/// The door to the cluster, if its names are served at all.
async fn cluster(dns: &Dns, settings: &Settings) -> anyhow::Result<Option<Cluster>> {
    match dns.objects(settings) {
        Some(objects) => Ok(Some(open(&objects).await?.managed_by("fairlead-dns"))),
        None => Ok(None),
    }
}
