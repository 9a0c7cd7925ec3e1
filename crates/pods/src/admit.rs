//! Which Pods this Node rejects for good, with the kubelet's reasons: Pods of another operating
//! system, that set kernel parameters they may not set, or that request more than the Node has.
//! Pure.

use fairlead_api::Look;
use fairlead_api::kinds::pod::requests;
use fairlead_api::quantity::Quantity;
use serde_json::Value;

use crate::refuse::Refused;

#[cfg(test)]
mod tests;

/// Label of a Node with its operating system.
const OS_LABEL: &str = "kubernetes.io/os";
/// Operating system of this Node.
const OS: &str = "linux";

/// Kernel parameters that a Pod may set: the kernel has them for each network or IPC namespace, and
/// they cannot harm others (pkg/kubelet/sysctl/safe_sysctls.go).
const SAFE_SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

/// Resources of a Node that a Pod may not request more of than there is, with the reason of the
/// rejection and the number of thousandths in the unit of its message.
const RESOURCES: [(&str, &str, i128); 3] =
    [("cpu", "OutOfcpu", 1), ("memory", "OutOfmemory", 1000), ("ephemeral-storage", "OutOfephemeral-storage", 1000)];

/// Returns why this Node rejects a Pod, if it does. A Node that is not known yet (null) has enough
/// of everything.
pub(crate) fn rejection(pod: &Value, node: &Value) -> Option<Refused> {
    let spec = pod.at("spec");
    let wanted = spec.at("nodeSelector").text_opt(OS_LABEL);
    let label = node.at("metadata").at("labels").text_opt(OS_LABEL);
    if wanted.is_some() && label.is_some() && wanted != label {
        let message = format!("Failed to admit pod as the `{OS_LABEL}` label doesn't match node label");
        return Some(Refused { reason: "PodOSSelectorNodeLabelDoesNotMatch", message });
    }
    if spec.at("os").text_opt("name").is_some_and(|name| name != OS) {
        let message = "Failed to admit pod as the OS field doesn't match node OS".to_owned();
        return Some(Refused { reason: "PodOSNotSupported", message });
    }
    if let Some((name, _)) = sysctls(pod).into_iter().find(|(name, _)| !SAFE_SYSCTLS.contains(&name.as_str())) {
        return Some(Refused {
            reason: "SysctlForbidden",
            message: format!("forbidden sysctl: {name:?} not allowlisted"),
        });
    }
    let allocatable = node.at("status").at("allocatable");
    RESOURCES.into_iter().find_map(|(resource, reason, unit)| {
        let capacity = allocatable.text_opt(resource).and_then(|text| Quantity::parse(text).ok())?.milli();
        let requested = requests::of(pod, resource);
        let message = format!(
            "Node didn't have enough resource: {resource}, requested: {}, used: 0, capacity: {}",
            requested / unit,
            capacity / unit
        );
        (requested > capacity).then_some(Refused { reason, message })
    })
}

/// Returns the kernel parameters a Pod sets, by names with dots. `kernel/shm_rmid_forced` is
/// another way to write `kernel.shm_rmid_forced`.
pub(crate) fn sysctls(pod: &Value) -> Vec<(String, String)> {
    let all = pod.at("spec").at("securityContext").list("sysctls").iter();
    all.map(|sysctl| (sysctl.text("name").replace('/', "."), sysctl.text("value").to_owned())).collect()
}
