//! What is wrong with Services, as Events, beside the server of a machine that runs everything.

use fairlead_cluster::Cluster;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::explain::events;

/// Writes Events about Services until told to stop, where this machine is a Node with Pods: elsewhere others run them, and know.
pub(super) async fn beside(cluster: &Cluster, config: &Config, stop: CancellationToken) {
    let Some(node) = config.node.as_ref().filter(|node| node.pods) else { return };
    events::run(cluster.managed_by("fairlead-explain"), &node.name, &node.domain.to_string(), stop).await;
}
