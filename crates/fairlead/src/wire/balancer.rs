//! Load balancers, wherever they run: beside the server in this process, on a joined machine, or against a cluster that a
//! kubeconfig names.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use anyhow::anyhow;
use fairlead_balancer::pools::Range;
use fairlead_balancer::provision::Ours;
use fairlead_balancer::run::{Settings, run as balance};
use fairlead_cluster::Cluster;
use fairlead_runtime::budget::Account;
use fairlead_server::auth::User;
use fairlead_server::{LoadBalancer, Server};
use tokio_util::sync::CancellationToken;

use crate::config::{Balancer, Config};

/// Runs load balancers of a cluster until a signal comes.
pub(crate) async fn run(balancer: Balancer) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    super::stop_on_signal(stop.clone())?;
    // The error tells its causes itself.
    let cluster = Cluster::connect_to_all(balancer.kubeconfig.as_deref(), &balancer.masters)
        .await
        .map_err(|error| anyhow!("--kubeconfig, --master: {error}"))?;
    let settings = Settings { account: super::account(), ..balancer.settings };
    balance(cluster, settings, stop).await;
    Ok(())
}

/// Runs load balancers beside the server.
pub(super) async fn beside(server: &Server, config: &Config, account: Account, stop: CancellationToken) {
    let Some(settings) = config.balancer.clone() else { return };
    let settings = Settings { account, ..settings };
    let user = User {
        name: "system:fairlead-balancer".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..User::default()
    };
    let local = server.local(user);
    balance(Cluster::new(local.clone(), Arc::new(local)), settings, stop).await;
}

/// Returns the addresses of all pools, which no Service may have as an external IP.
pub(super) fn pools(settings: &Settings) -> Vec<RangeInclusive<IpAddr>> {
    let ranges = settings.config.pools.iter().flat_map(|pool| &pool.ranges);
    ranges.map(Range::addresses).collect()
}

/// What the server beside them is to know: what they cannot carry need not be asked of them.
pub(super) fn limits(settings: &Settings) -> LoadBalancer {
    let Ours { class, default } = settings.ours();
    LoadBalancer { class, default, lacks: if settings.sctp { Vec::new() } else { vec!["SCTP"] } }
}
