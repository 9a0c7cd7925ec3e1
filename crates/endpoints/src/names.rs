//! The labels, annotations and names that the API gives a meaning to.

/// Which Service a slice belongs to.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Who keeps a slice.
pub(crate) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// Marks the endpoints of Services without a cluster IP; proxies do not look at them.
pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";
/// Who keeps an Endpoints object.
pub(crate) const ENDPOINTS_MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
/// Whether not all addresses found a place in an Endpoints object.
pub(crate) const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
/// When the change happened that led to the last write.
pub(crate) const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// What `kubectl apply` remembers.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Keeps an Endpoints object from being mirrored.
pub(crate) const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Marks an Endpoints object that is a lock and has no endpoints.
pub(crate) const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Asks for topology hints.
pub(crate) const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
/// The same by its old name, which wins.
pub(crate) const TOPOLOGY_AWARE_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
/// The reason of Events about weights that cannot be read.
pub(crate) const INVALID_WEIGHT: &str = "InvalidWeight";
