//! Questions every rule of Service asks about a spec.

use crate::value::Value;

use crate::Look;

pub(crate) const CLUSTER_IP: &str = "ClusterIP";
pub(crate) const NODE_PORT: &str = "NodePort";
pub(crate) const LOAD_BALANCER: &str = "LoadBalancer";
pub(crate) const EXTERNAL_NAME: &str = "ExternalName";
/// The cluster IP of a headless Service.
pub(crate) const NONE: &str = "None";

/// Whether it asks for no cluster IP.
pub(crate) fn is_headless(spec: &Value) -> bool {
    spec.texts("clusterIPs") == [NONE]
}

/// Whether its type goes with cluster IPs (of which `None` is one).
pub(crate) fn needs_cluster_ip(spec: &Value) -> bool {
    spec.text("type") != EXTERNAL_NAME
}

/// Whether its type goes with node ports.
pub(crate) fn may_have_node_ports(spec: &Value) -> bool {
    [NODE_PORT, LOAD_BALANCER].contains(&spec.text("type"))
}

/// Whether each of its ports gets a node port.
pub(crate) fn needs_node_ports(spec: &Value) -> bool {
    match spec.text("type") {
        NODE_PORT => true,
        LOAD_BALANCER => spec.flag_opt("allocateLoadBalancerNodePorts").unwrap_or(true),
        _ => false,
    }
}

/// Whether its nodes answer health checks of the load balancer, on a port of their own. Takes a `spec`.
pub fn needs_health_check(spec: &Value) -> bool {
    spec.text("type") == LOAD_BALANCER && spec.text("externalTrafficPolicy") == "Local"
}

/// Whether traffic may reach it from outside the cluster.
pub(crate) fn externally_accessible(spec: &Value) -> bool {
    may_have_node_ports(spec) || (spec.text("type") == CLUSTER_IP && !spec.list("externalIPs").is_empty())
}

/// The node ports of its ports, in their order.
pub(crate) fn node_ports(spec: &Value) -> Vec<i64> {
    spec.list("ports").iter().map(|port| port.int("nodePort")).filter(|port| *port != 0).collect()
}

/// Its ports, to be changed.
pub(crate) fn ports_mut(spec: &mut Value) -> &mut [Value] {
    spec.get_mut("ports").and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}
