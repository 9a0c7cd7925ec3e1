use serde_json::json;

use super::*;

/// A Pod with one container, and what is said of it: a reason, and a part of the message.
fn check(spec: Value, container: Value, expected: Option<(&str, &str)>) {
    for granted in [false, true] {
        let pod = pod(&spec, &container, granted);
        let said = refused(&pod, UserRange::default(), find);
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

/// Image `mapped` has an entrypoint and files of its own, image `empty` files alone.
fn find(image: &str) -> Option<Image> {
    let root = Some("/srv/image".into());
    match image {
        "host" => Some(Image::default()),
        "mapped" => Some(Image { root, entrypoint: vec!["/entry".to_owned()], ..Image::default() }),
        "empty" => Some(Image { root, ..Image::default() }),
        _ => None,
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
    check(json!({}), json!({"image": "mapped", "command": []}), None);
    check(json!({}), json!({"image": "empty", "command": []}), Some(("CreateContainerError", "\"empty\" brings none")));
    check(json!({}), json!({"image": "empty"}), None);
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
        let usual = UsualUsers { own: (65534, 65533), image: None, root_allowed: true };
        let container = &pod.at("spec").list("containers")[0];
        who(&pod, container, &usual, |_| None).map_err(|refused| refused.message)
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
        let said = refused(&pod(&spec, &container, granted), users, find);
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
fn an_image_chooses_the_user_but_is_root_only_where_it_may() {
    let who = |image: u32, root_allowed: bool, container: Value| {
        let pod = pod(&json!({}), &container, false);
        let image = Some(ImageUser { user: image, group: image + 1, groups: vec![5] });
        let usual = UsualUsers { own: (70_000, 70_000), image, root_allowed };
        let container = &pod.at("spec").list("containers")[0];
        who(&pod, container, &usual, |user| (user == 2000).then_some(7)).map_err(|refused| refused.message)
    };
    let found = who(1000, false, json!({})).expect("someone");
    assert_eq!((found.user, found.group, found.groups, found.capabilities), (1000, 1001, vec![5], 0));
    let found = who(0, false, json!({})).expect("someone");
    assert_eq!((found.user, found.group, found.groups, found.capabilities), (70_000, 70_000, vec![], 0));
    let found = who(0, true, json!({})).expect("someone");
    assert_eq!((found.user, found.group), (0, 1));
    let [chown, mknod, raw] = [0, 27, 13].map(|number| found.capabilities & (1 << number) != 0);
    assert!(chown && raw && !mknod, "{:#x}", found.capabilities);
    let none = json!({"securityContext": {"capabilities": {"drop": ["ALL"], "add": ["KILL"]}}});
    assert_eq!(who(0, true, none).expect("someone").capabilities, 1 << 5);
    // A user that the Pod names has the group the image gives it.
    let named = |user: i64| who(0, true, json!({"securityContext": {"runAsUser": user}})).expect("someone");
    assert_eq!((named(2000).group, named(3000).group, named(3000).capabilities), (7, 70_000, 0));
    let root = json!({"securityContext": {"runAsNonRoot": true}});
    assert!(who(0, true, root.clone()).is_err());
    assert!(who(0, false, root).is_ok());
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
