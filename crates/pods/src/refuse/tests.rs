use serde_json::json;

use super::*;

/// A Pod with one container, and what is said of it: a reason, and a part of the message.
fn check(spec: Value, container: Value, expected: Option<(&str, &str)>) {
    for granted in [false, true] {
        let pod = pod(&spec, &container, granted);
        let said = refused(&pod, UserRange::default());
        let expected = expected.filter(|(reason, _)| !granted || *reason != "HostPrivilegesNotGranted");
        match (&said, expected) {
            (None, None) => {}
            (Some(said), Some((reason, part))) => {
                assert_eq!(said.reason, reason, "{pod}");
                assert!(said.message.contains(part), "{}", said.message);
            }
            _ => panic!("{pod}: {said:?} instead of {expected:?}"),
        }
    }
}

fn pod(spec: &Value, container: &Value, granted: bool) -> Value {
    let mut one = json!({"name": "c", "image": "host", "command": ["true"]});
    for (key, value) in container.as_object().into_iter().flatten() {
        one.set(key.clone(), value.clone());
    }
    let mut spec = spec.clone();
    spec.set("containers", vec![one]);
    let annotations = if granted { json!({privileges::ANNOTATION: GRANTED}) } else { json!({}) };
    json!({"metadata": {"annotations": annotations}, "spec": spec})
}

#[test]
fn only_commands_of_the_host_run() {
    check(json!({}), json!({}), None);
    check(json!({}), json!({"image": "nginx"}), Some(("ImageNotSupported", "\"nginx\"")));
    check(json!({}), json!({"command": []}), Some(("CreateContainerError", "no command")));
    check(json!({}), json!({"command": [], "args": ["true"]}), None);
}

#[test]
fn privileges_need_a_grant() {
    let asks = |field| Some(("HostPrivilegesNotGranted", field));
    check(json!({"hostNetwork": true}), json!({}), asks("spec.hostNetwork"));
    check(
        json!({"volumes": [{"name": "v", "hostPath": {"path": "/etc"}}]}),
        json!({}),
        asks("spec.volumes[0].hostPath"),
    );
    check(
        json!({}),
        json!({"securityContext": {"runAsUser": 0}}),
        asks("spec.containers[0].securityContext.runAsUser"),
    );
    check(json!({"securityContext": {"runAsUser": 100_000, "fsGroup": 100_000}}), json!({}), None);
    check(json!({}), json!({"securityContext": {"capabilities": {"drop": ["ALL"]}}}), None);
}

#[test]
fn a_container_runs_as_the_user_of_its_pod_unless_it_says_otherwise() {
    let who = |spec: Value, container: Value| {
        let pod = pod(&spec, &container, true);
        who(&pod, &pod.at("spec").list("containers")[0].clone(), (65534, 65533)).map_err(|refused| refused.message)
    };
    let plain = who(json!({}), json!({})).expect("someone");
    assert_eq!((plain.user, plain.group, plain.capabilities, plain.escalation), (65534, 65533, 0, false));
    let security = json!({"runAsUser": 1000, "runAsGroup": 1001, "supplementalGroups": [7], "fsGroup": 8});
    let asked = who(json!({"securityContext": security}), json!({})).expect("someone");
    assert_eq!((asked.user, asked.group, asked.groups), (1000, 1001, vec![7, 8]));
    let able = json!({"securityContext": {"capabilities": {"add": ["NET_ADMIN", "CAP_CHOWN"], "drop": ["CHOWN"]}}});
    assert_eq!(who(json!({}), able).expect("someone").capabilities, 1 << 12);
    assert_eq!(
        who(json!({}), json!({"securityContext": {"privileged": true}})).expect("someone").capabilities,
        u64::MAX
    );
    let root = json!({"securityContext": {"runAsUser": 0, "runAsNonRoot": true}});
    assert_eq!(who(root, json!({})), Err("container's runAsUser breaks non-root policy".to_owned()));
}

#[test]
fn a_user_of_this_nodes_range_is_refused_without_a_grant() {
    let users = "80000-80099".parse().expect("a range");
    let check = |spec: Value, container: Value, granted: bool, fine: bool| {
        let said = refused(&pod(&spec, &container, granted), users);
        assert_eq!(said.is_none(), fine, "{spec} {container}: {said:?}");
    };
    for id in [80_000, 80_099] {
        check(json!({"securityContext": {"runAsUser": id}}), json!({}), false, false);
        check(json!({"securityContext": {"runAsGroup": id}}), json!({}), false, false);
        check(json!({"securityContext": {"fsGroup": id}}), json!({}), false, false);
        check(json!({"securityContext": {"supplementalGroups": [79_999, id]}}), json!({}), false, false);
        check(json!({}), json!({"securityContext": {"runAsUser": id}}), false, false);
        check(json!({}), json!({"securityContext": {"runAsGroup": id}}), true, true);
    }
    check(json!({"securityContext": {"runAsUser": 79_999, "fsGroup": 80_100}}), json!({}), false, true);
}

#[test]
fn the_default_profile_is_had_by_those_who_name_it() {
    let context = |kind: &str| json!({"securityContext": {"seccompProfile": {"type": kind}}});
    let has = |spec: Value, container: Value| {
        let pod = pod(&spec, &container, false);
        has_default_seccomp(&pod, &pod.at("spec").list("containers")[0])
    };
    assert!(!has(json!({}), json!({})));
    assert!(has(context("RuntimeDefault"), json!({})));
    assert!(has(json!({}), context("RuntimeDefault")));
    assert!(!has(context("RuntimeDefault"), context("Unconfined")));
    let privileged = json!({"securityContext": {"privileged": true, "seccompProfile": {"type": "RuntimeDefault"}}});
    assert!(!has(json!({}), privileged));
    check(context("RuntimeDefault"), json!({}), None);
    check(json!({}), context("Localhost"), Some(("CreateContainerError", "Localhost")));
}
