//! Leases by which the components of all Nodes report the revision that they have programmed.
//!
//! `kube-system/fairlead-proxy-NODE` is the Lease of the proxy of a Node. A component that waits for a revision, on any Node,
//! raises [`AWAITS`] there; the proxy answers with [`PROGRAMMED`]. Crate `cluster` implements both sides, and crate `server` decides
//! which Node may write which of these Leases.

/// Namespace of the Leases.
pub const NAMESPACE: &str = "kube-system";
/// Annotation: the highest revision that is waited for.
pub const AWAITS: &str = "fairlead.dev/awaits-revision";
/// Annotation: the revision up to which everything is programmed.
pub const PROGRAMMED: &str = "fairlead.dev/programmed-revision";
/// Label: the component that reports.
pub const COMPONENT: &str = "fairlead.dev/component";

/// Components that report.
pub const COMPONENTS: [&str; 1] = ["proxy"];

/// Returns the name of the Lease of a component of a Node.
pub fn lease_name(component: &str, node: &str) -> String {
    format!("fairlead-{component}-{node}")
}

/// Returns the Node that a Lease of this component belongs to.
pub fn node_of_lease<'a>(component: &str, lease: &'a str) -> Option<&'a str> {
    lease.strip_prefix("fairlead-")?.strip_prefix(component)?.strip_prefix('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_belongs_to_one_node_of_one_component() {
        for node in ["a", "a-b", "proxy-a"] {
            assert_eq!(node_of_lease("proxy", &lease_name("proxy", node)), Some(node));
        }
        assert_eq!(node_of_lease("proxy", "fairlead-announcer-a"), None);
        assert_eq!(node_of_lease("proxy", "fairlead-proxya"), None);
    }
}
