//! How often allocations had to be repaired, in the names of the reference server.

use fairlead_api::repair::{Count, Problem};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Type {
    r#type: &'static str,
}

/// Counters of repairs.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    cluster_ips: Family<Type, Counter>,
    node_ports: Family<Type, Counter>,
    cluster_ip_failures: Counter,
    node_port_failures: Counter,
}

impl Counters {
    /// Counters that are shown with others.
    pub(crate) fn registered(registry: &mut Registry) -> Counters {
        let counters = Counters::default();
        let help = "Mistakes found in cluster IPs: leak, repair, outOfRange, duplicate, invalid";
        registry.register("apiserver_clusterip_repair_ip_errors", help, counters.cluster_ips.clone());
        let help = "Mistakes found in node ports: leak, repair, outOfRange, duplicate, unknown";
        registry.register("apiserver_nodeport_repair_port_errors", help, counters.node_ports.clone());
        let help = "Repairs of cluster IPs that failed";
        registry.register("apiserver_clusterip_repair_reconcile_errors", help, counters.cluster_ip_failures.clone());
        let help = "Repairs of node ports that failed";
        registry.register("apiserver_nodeport_repair_reconcile_errors", help, counters.node_port_failures.clone());
        counters
    }

    /// Counts a finding.
    pub(super) fn count(&self, problem: &Problem) {
        let (family, r#type) = match problem.count() {
            Count::ClusterIp(r#type) => (&self.cluster_ips, r#type),
            Count::NodePort(r#type) => (&self.node_ports, r#type),
            Count::None => return,
        };
        family.get_or_create(&Type { r#type }).inc();
    }

    /// Counts a cluster IP that could not be repaired.
    pub(super) fn failed_address(&self) {
        self.cluster_ip_failures.inc();
    }

    /// Counts a node-port map that could not be repaired.
    pub(super) fn failed_ports(&self) {
        self.node_port_failures.inc();
    }

    /// Counts a pass that could not begin.
    pub(super) fn failed(&self) {
        self.failed_address();
        self.failed_ports();
    }
}
