//! What an administrator chose that the rules depend on.

use ipnet::IpNet;
use std::ops::RangeInclusive;

/// Passed to every rule that depends on how the server was started.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `--service-cluster-ip-range`, primary family first.
    pub service_ranges: Vec<IpNet>,
    /// `--service-node-port-range`.
    pub node_ports: RangeInclusive<u16>,
    /// Gate `ServiceTopology`: `spec.topologyKeys` is accepted.
    pub service_topology: bool,
}
