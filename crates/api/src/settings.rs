//! What an administrator chose that the rules depend on.

use std::ops::RangeInclusive;

use ipnet::IpNet;

use crate::schema::Gate;

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

impl Settings {
    /// Whether a gate is open.
    pub fn allows(&self, gate: Gate) -> bool {
        match gate {
            Gate::ServiceTopology => self.service_topology,
        }
    }
}
