use crate::value::{Value, json};

use super::{Grace, RULES, bind, grace};
use crate::Settings;
use crate::field::FieldError;
use crate::schema::pod::POD;

pub(in crate::kinds) fn settings() -> Settings {
    Settings {
        service_ranges: vec!["10.0.0.0/16".parse().expect("a range")],
        node_ports: 30000..=32767,
        service_topology: false,
    }
}

/// A Pod as the server has it before it is stored. Lists in `spec` take the place of the usual container.
fn pod(spec: Value) -> Value {
    let mut whole = json!({"containers": [{"name": "c", "image": "img:1"}]});
    whole.as_object_mut().expect("made so").extend(spec.as_object().cloned().unwrap_or_default());
    let body = json!({"metadata": {"name": "p"}, "spec": whole});
    let mut pod = crate::decode::decode(&POD, body).expect("fits the type").value;
    (RULES.default)(&mut pod, &settings());
    (RULES.prepare_create)(&mut pod, &settings());
    pod
}

fn container(fields: Value) -> Value {
    let mut whole = json!({"name": "c", "image": "img:1"});
    whole.as_object_mut().expect("made so").extend(fields.as_object().cloned().unwrap_or_default());
    json!({"containers": [whole]})
}

fn mistakes(pod: &Value) -> Vec<String> {
    (RULES.validate)(pod, None, &settings()).iter().map(FieldError::to_string).collect()
}

#[test]
fn images_without_tag_are_pulled_every_time() {
    let check = |image: &str, expected: &str| {
        let pod = pod(container(json!({"image": image})));
        assert_eq!(pod["spec"]["containers"][0]["imagePullPolicy"], expected, "{image}");
    };
    check("img", "Always");
    check("img:latest", "Always");
    check("registry.example:5000/team/img", "Always");
    check("img:1", "IfNotPresent");
    check("registry.example:5000/team/img:1", "IfNotPresent");
    check("img@sha256:0123", "IfNotPresent");
    check("IMG", "IfNotPresent");
    check("", "IfNotPresent");
}

#[test]
fn fields_stand_in_the_order_of_their_type() {
    let pod = pod(json!({"hostNetwork": true}));
    let keys: Vec<&crate::value::Key> = pod["spec"].as_object().expect("an object").keys().collect();
    assert_eq!(keys[..4], ["containers", "restartPolicy", "terminationGracePeriodSeconds", "dnsPolicy"]);
}

#[test]
fn limits_are_requests_and_make_the_quality_of_service() {
    let check = |resources: Value, requests: Value, class: &str| {
        let pod = pod(container(json!({"resources": resources})));
        assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"], requests);
        assert_eq!(pod["status"]["qosClass"], class, "{resources}");
    };
    check(json!({}), Value::Null, "BestEffort");
    check(json!({"requests": {"cpu": "1"}}), json!({"cpu": "1"}), "Burstable");
    let limits = json!({"cpu": "1", "memory": "1Gi"});
    check(json!({"limits": limits}), limits.clone(), "Guaranteed");
    check(json!({"limits": {"cpu": "0.0001"}}), json!({"cpu": "1m"}), "Burstable");
}

#[test]
fn mistakes_in_containers_are_named() {
    let check = |fields: Value, expected: &[&str]| assert_eq!(mistakes(&pod(container(fields))), expected);
    check(json!({"image": ""}), &["spec.containers[0].image: Required value"]);
    check(
        json!({"image": "a "}),
        &["spec.containers[0].image: Invalid value: \"a \": must not have leading or trailing whitespace"],
    );
    check(json!({"ports": [{"hostPort": 1}]}), &["spec.containers[0].ports[0].containerPort: Required value"]);
    check(json!({"env": [{"value": "x"}]}), &["spec.containers[0].env[0].name: Required value"]);
    check(
        json!({"env": [{"name": "a=b"}]}),
        &[
            "spec.containers[0].env[0].name: Invalid value: \"a=b\": a valid environment variable name must consist only of printable ASCII characters other than '='",
        ],
    );
    check(
        json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}]}),
        &[
            "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"status.phase\": error converting fieldPath: field label not supported: status.phase",
        ],
    );
    check(
        json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
        &["spec.containers[0].volumeMounts[0].name: Not found: \"v\""],
    );
    check(
        json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
        &["spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"],
    );
    check(
        json!({"livenessProbe": {"tcpSocket": {"port": 0}, "exec": {"command": ["x"]}}}),
        &["spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"],
    );
    check(
        json!({"readinessProbe": {}}),
        &["spec.containers[0].readinessProbe: Required value: must specify a handler type"],
    );
    check(
        json!({"imagePullPolicy": "Once"}),
        &[
            "spec.containers[0].imagePullPolicy: Unsupported value: \"Once\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
        ],
    );
}

#[test]
fn mistakes_in_the_spec_are_named() {
    let check = |spec: Value, expected: &[&str]| assert_eq!(mistakes(&pod(spec)), expected);
    check(
        json!({"dnsPolicy": "None"}),
        &["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
    );
    check(
        json!({"activeDeadlineSeconds": 0}),
        &["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
    );
    check(
        json!({"tolerations": [{"operator": "Equal"}]}),
        &[
            "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
        ],
    );
    check(json!({"volumes": [{"name": "v"}]}), &[]);
    check(json!({"volumes": [{"name": "v"}, {"name": "v"}]}), &["spec.volumes[1].name: Duplicate value: \"v\""]);
    check(
        json!({"nodeName": "n", "schedulingGates": [{"name": "g"}]}),
        &["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
    );
    check(
        json!({"initContainers": [{"name": "c", "image": "i"}]}),
        &["spec.initContainers[0].name: Duplicate value: \"c\""],
    );
}

#[test]
fn grace_depends_on_node_and_phase() {
    let check = |spec: Value, options: Value, expected: Grace| assert_eq!(grace(&pod(spec), &options), expected);
    check(json!({}), json!({"gracePeriodSeconds": 30}), Grace::AtOnce);
    check(json!({"nodeName": "n"}), json!({}), Grace::Seconds(30));
    check(json!({"nodeName": "n", "terminationGracePeriodSeconds": 7}), Value::Null, Grace::Seconds(7));
    check(json!({"nodeName": "n"}), json!({"gracePeriodSeconds": 0}), Grace::AtOnce);
    check(json!({"nodeName": "n"}), json!({"gracePeriodSeconds": -5}), Grace::Seconds(1));
    let mut ended = pod(json!({"nodeName": "n"}));
    ended["status"]["phase"] = "Succeeded".into();
    assert_eq!(grace(&ended, &Value::Null), Grace::AtOnce);
}

#[test]
fn a_pod_is_bound_once() {
    let mut pod = pod(json!({}));
    let to = |node: &str| json!({"metadata": {"name": "p", "labels": {"zone": "z"}}, "target": {"kind": "Node", "name": node}});
    let now = "2024-01-01T00:00:00Z";
    bind(&mut pod, &to("n1"), now).expect("it is not bound");
    assert_eq!(pod["spec"]["nodeName"], "n1");
    assert_eq!(pod["metadata"]["labels"], json!({"zone": "z"}));
    assert_eq!(pod["status"]["conditions"][0]["lastTransitionTime"], now);
    let again = bind(&mut pod, &to("n2"), now).expect_err("it is bound");
    assert_eq!((again.code, again.reason), (409, "Conflict"));
    assert_eq!(bind(&mut pod, &to(""), now).map_err(|failure| failure.code), Err(500));
}

#[test]
fn only_a_few_fields_change() {
    let check = |new: Value, old: Value, expected: &[&str]| {
        let (mut new, old) = (pod(new), pod(old));
        (RULES.prepare_update)(&mut new, &old, &settings());
        let errors = (RULES.validate_update)(&new, &old, &settings());
        let texts: Vec<String> =
            errors.iter().map(|e| e.to_string().lines().next().unwrap_or_default().to_owned()).collect();
        assert_eq!(texts, expected, "{new}");
    };
    check(container(json!({"image": "img:2"})), json!({}), &[]);
    check(
        json!({"activeDeadlineSeconds": 5}),
        json!({"activeDeadlineSeconds": 4}),
        &["spec.activeDeadlineSeconds: Invalid value: 5: must be less than or equal to previous value"],
    );
    check(
        json!({}),
        json!({"activeDeadlineSeconds": 4}),
        &["spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"],
    );
    check(
        json!({}),
        json!({"tolerations": [{"key": "k", "operator": "Exists"}]}),
        &["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
    );
    check(
        json!({"nodeSelector": {"a": "b", "c": "d"}}),
        json!({"nodeSelector": {"a": "b"}, "schedulingGates": [{"name": "g"}]}),
        &[],
    );
}

#[test]
fn rows_tell_what_containers_do() {
    let check = |status: Value, expected: [&str; 3]| {
        let mut pod = pod(json!({}));
        pod["status"] = status;
        let cells = (RULES.row)(&pod, 1_704_067_200);
        assert_eq!([&cells[1], &cells[2], &cells[3]], expected, "{}", pod["status"]);
    };
    check(json!({"phase": "Pending"}), ["0/1", "Pending", "0"]);
    let running = json!({"name": "c", "ready": true, "restartCount": 1, "state": {"running": {}},
        "lastState": {"terminated": {"finishedAt": "2023-12-31T23:59:00Z"}}});
    check(json!({"phase": "Running", "containerStatuses": [running]}), ["1/1", "Running", "1 (60s ago)"]);
    let waiting = json!({"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
    check(json!({"phase": "Running", "containerStatuses": [waiting]}), ["0/1", "CrashLoopBackOff", "0"]);
    let ended = json!({"name": "c", "state": {"terminated": {"exitCode": 2}}});
    check(json!({"phase": "Failed", "containerStatuses": [ended]}), ["0/1", "ExitCode:2", "0"]);
    let init = json!({"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}});
    check(json!({"phase": "Pending", "initContainerStatuses": [init]}), ["0/1", "Init:0/0", "0"]);
}

#[test]
fn nothing_from_outside_makes_it_panic() {
    let odd = [
        json!({"containers": null, "initContainers": [{}], "ephemeralContainers": [{}]}),
        container(
            json!({"ports": [{}], "env": [{}], "volumeMounts": [{}], "volumeDevices": [{}], "lifecycle": {"preStop": {}}}),
        ),
        json!({"volumes": [{}], "tolerations": [{}], "hostAliases": [{}], "affinity": {"nodeAffinity": {}}, "os": {}}),
    ];
    for spec in odd {
        let pod = pod(spec);
        let _ = ((RULES.warnings)(&pod, None, &settings()), mistakes(&pod), (RULES.row)(&pod, 0));
        let _ = ((RULES.validate_status)(&pod, &pod, &settings()), (RULES.validate_update)(&pod, &pod, &settings()));
    }
}
