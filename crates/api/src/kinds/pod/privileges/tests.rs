use super::*;
use crate::value::{Value, json};

/// The fields of a Pod spec that ask for privileges.
#[track_caller]
fn check(spec: Value, want: &[&str]) {
    let got: Vec<String> = asked(&json!({"spec": spec})).iter().map(ToString::to_string).collect();
    assert_eq!(got, want);
}

fn container(context: Value) -> Value {
    json!({"containers": [{"name": "c", "securityContext": context}]})
}

#[test]
fn an_ordinary_pod_asks_for_nothing() {
    check(container(json!({})), &[]);
    check(container(json!({"runAsUser": 65534, "runAsGroup": 100_000, "runAsNonRoot": true})), &[]);
    check(
        container(json!({"allowPrivilegeEscalation": false, "privileged": false, "capabilities": {"drop": ["ALL"]}})),
        &[],
    );
    check(json!({"hostNetwork": false, "volumes": [{"name": "v", "emptyDir": {}}]}), &[]);
    check(
        json!({"containers": [{"name": "c", "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8080}]}]}),
        &[],
    );
}

#[test]
fn everything_that_is_more_is_named() {
    let context = |name: &str| format!("spec.containers[0].securityContext.{name}");
    check(container(json!({"runAsUser": 0})), &[&context("runAsUser")]);
    check(container(json!({"runAsUser": 1000})), &[&context("runAsUser")]);
    for users in [1_900_000_000, 1_900_065_535] {
        check(container(json!({"runAsUser": users})), &[&context("runAsUser")]);
        check(json!({"securityContext": {"fsGroup": users}}), &["spec.securityContext.fsGroup"]);
        check(
            json!({"securityContext": {"supplementalGroups": [users]}}),
            &["spec.securityContext.supplementalGroups[0]"],
        );
    }
    check(container(json!({"runAsUser": 1_899_999_999, "runAsGroup": 1_900_065_536})), &[]);
    check(container(json!({"privileged": true})), &[&context("privileged")]);
    check(container(json!({"allowPrivilegeEscalation": true})), &[&context("allowPrivilegeEscalation")]);
    check(container(json!({"capabilities": {"add": ["NET_ADMIN"]}})), &[&context("capabilities.add")]);
    check(
        json!({"hostNetwork": true, "hostPID": true, "hostIPC": true}),
        &["spec.hostNetwork", "spec.hostPID", "spec.hostIPC"],
    );
    check(
        json!({"securityContext": {"runAsUser": 0, "runAsGroup": 6, "fsGroup": 0}}),
        &["spec.securityContext.runAsUser", "spec.securityContext.runAsGroup", "spec.securityContext.fsGroup"],
    );
    check(
        json!({"securityContext": {"supplementalGroups": [70_000, 6]}}),
        &["spec.securityContext.supplementalGroups[1]"],
    );
    check(json!({"volumes": [{"name": "a"}, {"name": "v", "hostPath": {"path": "/"}}]}), &["spec.volumes[1].hostPath"]);
    check(
        json!({"initContainers": [{"name": "i", "securityContext": {"privileged": true}}]}),
        &["spec.initContainers[0].securityContext.privileged"],
    );
    check(
        json!({"containers": [{"name": "c", "ports": [{"containerPort": 8080, "hostPort": 80}]}]}),
        &["spec.containers[0].ports[0].hostPort"],
    );
}
