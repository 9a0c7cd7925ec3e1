use serde_json::json;

use super::*;

fn check(spec: Value, expected: Option<(&str, &str)>) {
    let node = json!({
        "metadata": {"labels": {OS_LABEL: "linux"}},
        "status": {"allocatable": {"cpu": "2", "memory": "1Gi"}},
    });
    let said = rejection(&json!({"spec": spec}), &node);
    let said = said.as_ref().map(|refused| (refused.reason, refused.message.as_str()));
    assert_eq!(said, expected, "{spec}");
}

#[test]
fn pods_of_another_operating_system_are_rejected() {
    check(json!({"os": {"name": "linux"}}), None);
    let message = "Failed to admit pod as the OS field doesn't match node OS";
    check(json!({"os": {"name": "windows"}}), Some(("PodOSNotSupported", message)));
    check(json!({"nodeSelector": {OS_LABEL: "linux", "zone": "a"}}), None);
    let message = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
    check(json!({"nodeSelector": {OS_LABEL: "windows"}}), Some(("PodOSSelectorNodeLabelDoesNotMatch", message)));
}

#[test]
fn kernel_parameters_that_are_not_safe_are_forbidden() {
    let sets = |name: &str| json!({"securityContext": {"sysctls": [{"name": name, "value": "1"}]}});
    check(sets("kernel.shm_rmid_forced"), None);
    check(sets("net/ipv4/tcp_syncookies"), None);
    let message = "forbidden sysctl: \"kernel.msgmax\" not allowlisted";
    check(sets("kernel.msgmax"), Some(("SysctlForbidden", message)));
    check(sets("kernel/msgmax"), Some(("SysctlForbidden", message)));
}

#[test]
fn pods_that_request_more_than_the_node_has_are_rejected() {
    let requests = |name: &str, amount: &str| json!({"containers": [{"resources": {"requests": {name: amount}}}]});
    check(requests("cpu", "2"), None);
    check(requests("memory", "1Gi"), None);
    check(requests("ephemeral-storage", "100Gi"), None);
    let message = "Node didn't have enough resource: cpu, requested: 2001, used: 0, capacity: 2000";
    check(requests("cpu", "2001m"), Some(("OutOfcpu", message)));
    let message = "Node didn't have enough resource: memory, requested: 2147483648, used: 0, capacity: 1073741824";
    check(requests("memory", "2Gi"), Some(("OutOfmemory", message)));
    assert_eq!(rejection(&json!({"spec": requests("cpu", "100")}), &Value::Null), None);
}
