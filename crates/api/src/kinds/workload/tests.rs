use crate::field::FieldError;
use crate::kinds::pod::tests::settings;
use crate::kinds::{self, Kind};
use crate::look::Look;
use crate::value::{Value, json};
use crate::{Failure, validation};

/// An object as the server has it before it is stored.
fn made(kind: &'static Kind, spec: Value) -> Value {
    let body = json!({"metadata": {"name": "web", "namespace": "default"}, "spec": spec});
    let mut object = crate::decode::decode(kind.schema, body).expect("fits the type").value;
    object.set("kind", kind.kind);
    (kind.rules.default)(&mut object, &settings());
    (kind.rules.prepare_create)(&mut object, &settings());
    object
}

/// An update of `old` that sets the field at `pointer`.
fn updated(kind: &'static Kind, old: &Value, pointer: &str, value: Value) -> Value {
    let mut new = old.clone();
    *new.pointer_mut(pointer).expect("a field") = value;
    new.map_mut("metadata").insert("resourceVersion", "1".into());
    (kind.rules.default)(&mut new, &settings());
    (kind.rules.prepare_update)(&mut new, old, &settings());
    new
}

/// A spec with a selector and a template that fit each other, and these fields.
fn spec(fields: Value) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "img:1"}]},
        },
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        spec.set(name.clone(), value.clone());
    }
    spec
}

fn mistakes(kind: &'static Kind, object: &Value) -> Vec<String> {
    validation::create(kind, object, &settings()).iter().map(FieldError::to_string).collect()
}

fn mistakes_of_change(kind: &'static Kind, object: &Value, old: &Value) -> Vec<String> {
    validation::update(kind, object, old, &settings()).iter().map(FieldError::to_string).collect()
}

const ALL: [&Kind; 4] = [&kinds::DEPLOYMENT, &kinds::REPLICA_SET, &kinds::STATEFUL_SET, &kinds::DAEMON_SET];

#[test]
fn a_deployment_is_filled_in_as_kubernetes_does() {
    let deployment = made(&kinds::DEPLOYMENT, spec(json!({})));
    let expected = json!({
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{
                    "name": "c",
                    "image": "img:1",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }],
                "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 30,
                "dnsPolicy": "ClusterFirst",
                "securityContext": {},
                "schedulerName": "default-scheduler",
            },
        },
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    });
    // Text shows the order of fields, too.
    assert_eq!(deployment["spec"].to_string(), expected.to_string());
    assert_eq!(deployment["status"], json!({}));
    assert_eq!(deployment["metadata"]["generation"], 1);
}

#[test]
fn other_kinds_are_filled_in() {
    let set = made(&kinds::REPLICA_SET, spec(json!({})));
    assert_eq!((&set["spec"]["replicas"], &set["status"]), (&json!(1), &json!({"replicas": 0})));
    let set = made(&kinds::STATEFUL_SET, spec(json!({"volumeClaimTemplates": [{"metadata": {"name": "v"}}]})));
    let (spec_of_set, status) = (&set["spec"], &set["status"]);
    assert_eq!(spec_of_set["podManagementPolicy"], "OrderedReady");
    assert_eq!(spec_of_set["updateStrategy"], json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}));
    assert_eq!(
        spec_of_set["persistentVolumeClaimRetentionPolicy"],
        json!({"whenDeleted": "Retain", "whenScaled": "Retain"})
    );
    assert_eq!(spec_of_set["volumeClaimTemplates"][0]["kind"], "PersistentVolumeClaim");
    assert_eq!(*status, json!({"replicas": 0, "availableReplicas": 0}));
    let set = made(&kinds::DAEMON_SET, spec(json!({})));
    assert_eq!(
        set["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}})
    );
    assert_eq!(set["metadata"]["annotations"], json!({"deprecated.daemonset.template.generation": "1"}));
    let mut controller = spec(json!({}));
    controller.unset("selector");
    let controller = made(&kinds::REPLICATION_CONTROLLER, controller);
    assert_eq!(controller["spec"]["selector"], json!({"app": "web"}));
    assert_eq!(controller["metadata"]["labels"], json!({"app": "web"}));
}

#[test]
fn a_template_is_filled_in_less_than_a_pod() {
    let containers = json!([{
        "name": "c", "image": "i", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}},
    }]);
    let template = json!({
        "metadata": {"labels": {"app": "web"}}, "spec": {"hostNetwork": true, "containers": containers},
    });
    let deployment = made(&kinds::DEPLOYMENT, spec(json!({"template": template})));
    let pod = &deployment["spec"]["template"]["spec"];
    assert!(pod.get("enableServiceLinks").is_none());
    assert!(pod["containers"][0]["resources"].get("requests").is_none());
    assert_eq!(pod["containers"][0]["ports"], json!([{"containerPort": 80, "protocol": "TCP"}]));
    assert_eq!(mistakes(&kinds::DEPLOYMENT, &deployment), Vec::<String>::new());
}

#[test]
fn mistakes_of_a_deployment_are_named() {
    let check = |fields: Value, expected: &[&str]| {
        assert_eq!(mistakes(&kinds::DEPLOYMENT, &made(&kinds::DEPLOYMENT, spec(fields))), expected);
    };
    check(json!({}), &[]);
    check(json!({"replicas": -1}), &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]);
    check(
        json!({"selector": null}),
        &[
            "spec.selector: Required value",
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
        ],
    );
    check(json!({"selector": {}}), &["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]);
    check(
        json!({"selector": {"matchLabels": {"app": "other"}}}),
        &[
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
        ],
    );
    check(
        json!({"selector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}}),
        &[
            "spec.selector.matchExpressions[0].operator: Invalid value: \"Is\": not a valid selector operator",
            "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Is\"}]}: invalid label selector",
        ],
    );
    check(
        json!({"strategy": {"type": "Recreate", "rollingUpdate": {}}}),
        &["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
    );
    check(
        json!({"strategy": {"type": "Slowly"}}),
        &[
            "spec.strategy: Unsupported value: {\"Type\":\"Slowly\",\"RollingUpdate\":null}: supported values: \"Recreate\", \"RollingUpdate\"",
        ],
    );
    check(
        json!({"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "0%"}}}),
        &["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
    );
    check(
        json!({"strategy": {"rollingUpdate": {"maxUnavailable": "101%", "maxSurge": "some"}}}),
        &[
            "spec.strategy.rollingUpdate.maxSurge: Invalid value: \"some\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%",
        ],
    );
    check(
        json!({"minReadySeconds": 600}),
        &["spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"],
    );
    let template = |pod: Value| json!({"template": {"metadata": {"labels": {"app": "web"}}, "spec": pod}});
    let containers = json!([{"name": "c", "image": "i"}]);
    check(
        template(json!({"containers": containers, "restartPolicy": "Never", "activeDeadlineSeconds": 5})),
        &[
            "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
            "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
        ],
    );
    check(template(json!({})), &["spec.template.spec.containers: Required value"]);
    check(
        template(json!({"containers": containers, "ephemeralContainers": [{"name": "e", "image": "i"}]})),
        &["spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"],
    );
}

#[test]
fn mistakes_of_the_sets_are_named() {
    let check = |kind: &'static Kind, fields: Value, expected: &[&str]| {
        assert_eq!(mistakes(kind, &made(kind, spec(fields))), expected, "{}", kind.kind);
    };
    let none = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}});
    check(
        &kinds::DAEMON_SET,
        none,
        &["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
    );
    check(
        &kinds::DAEMON_SET,
        json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}),
        &[
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
        ],
    );
    check(
        &kinds::STATEFUL_SET,
        json!({"podManagementPolicy": "Any", "serviceName": "a.b"}),
        &[
            "spec.podManagementPolicy: Invalid value: \"Any\": must be 'OrderedReady' or 'Parallel'",
            "spec.serviceName: Invalid value: \"a.b\": must not contain dots",
        ],
    );
    check(
        &kinds::STATEFUL_SET,
        json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}}),
        &[
            "spec.updateStrategy.rollingUpdate: Invalid value: {\"Partition\":1}: only allowed for updateStrategy 'RollingUpdate'",
        ],
    );
    // A claim template is a volume of the Pods.
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    }});
    let mounts = json!([{"name": "c", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]);
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": mounts}});
    check(&kinds::STATEFUL_SET, json!({"volumeClaimTemplates": [claim], "template": template}), &[]);
    check(
        &kinds::STATEFUL_SET,
        json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}),
        &[
            "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
            "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
        ],
    );
    check(
        &kinds::REPLICATION_CONTROLLER,
        json!({"selector": {"app": "x"}}),
        &[
            "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
        ],
    );
    check(
        &kinds::REPLICATION_CONTROLLER,
        json!({"selector": {}, "template": null}),
        &["spec.selector: Required value", "spec.template: Required value"],
    );
}

#[test]
fn a_selector_is_set_once() {
    for kind in [&kinds::DEPLOYMENT, &kinds::REPLICA_SET, &kinds::DAEMON_SET] {
        let template = json!({"metadata": {"labels": {"app": "web", "tier": "x"}}, "spec": {
            "containers": [{"name": "c", "image": "img:1"}],
        }});
        let old = made(kind, spec(json!({"template": template})));
        let new = updated(kind, &old, "/spec/selector/matchLabels", json!({"tier": "x"}));
        let expected = "spec.selector: Invalid value: {\"matchLabels\":{\"tier\":\"x\"}}: field is immutable";
        assert_eq!(mistakes_of_change(kind, &new, &old), [expected], "{}", kind.kind);
    }
    let old = made(&kinds::STATEFUL_SET, spec(json!({})));
    let new = updated(&kinds::STATEFUL_SET, &old, "/spec/podManagementPolicy", "Parallel".into());
    assert_eq!(
        mistakes_of_change(&kinds::STATEFUL_SET, &new, &old),
        [
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        ]
    );
}

#[test]
fn the_generation_counts_changes_of_the_spec() {
    for kind in ALL {
        let mut old = made(kind, spec(json!({})));
        old.map_mut("metadata").insert("annotations", json!({"a": "b"}));
        let generation = |object: &Value| object["metadata"]["generation"].as_i64();
        let new = updated(kind, &old, "/spec/template/spec/containers/0/image", "img:2".into());
        assert_eq!(generation(&new), Some(2), "{}", kind.kind);
        // Annotations of a Deployment are copied to its ReplicaSets.
        let new = updated(kind, &old, "/metadata/annotations/a", "c".into());
        let expected = if *kind == kinds::DEPLOYMENT { 2 } else { 1 };
        assert_eq!(generation(&new), Some(expected), "{}", kind.kind);
    }
    let old = made(&kinds::DAEMON_SET, spec(json!({})));
    let new = updated(&kinds::DAEMON_SET, &old, "/spec/template/spec/containers/0/image", "img:2".into());
    assert_eq!(new["metadata"]["annotations"]["deprecated.daemonset.template.generation"], "2");
}

#[test]
fn spec_and_status_are_written_apart() {
    for kind in ALL {
        let old = made(kind, spec(json!({})));
        let mut new = old.clone();
        new["status"].set("observedGeneration", 7);
        new["spec"].set("minReadySeconds", 5);
        let mut by_update = new.clone();
        (kind.rules.prepare_update)(&mut by_update, &old, &settings());
        assert_eq!(by_update["status"], old["status"], "{}", kind.kind);
        (kind.rules.prepare_status)(&mut new, &old, &settings());
        assert_eq!((&new["spec"], &new["status"]["observedGeneration"]), (&old["spec"], &json!(7)), "{}", kind.kind);
    }
}

#[test]
fn mistakes_of_a_status_are_named() {
    let check = |kind: &'static Kind, before: Value, status: Value, expected: &[&str]| {
        let mut old = made(kind, spec(json!({})));
        old.set("status", before);
        let mut new = old.clone();
        new.set("status", status);
        let errors = (kind.rules.validate_status)(&new, &old, &settings());
        assert_eq!(errors.iter().map(FieldError::to_string).collect::<Vec<_>>(), expected, "{}", kind.kind);
    };
    check(
        &kinds::DEPLOYMENT,
        json!({"collisionCount": 1}),
        json!({"replicas": 1, "readyReplicas": 1, "availableReplicas": 2}),
        &[
            "status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas",
            "status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas",
            "status.collisionCount: Invalid value: 0: cannot be decremented",
        ],
    );
    check(
        &kinds::REPLICA_SET,
        json!({}),
        json!({"replicas": 1, "fullyLabeledReplicas": 2, "observedGeneration": -1}),
        &[
            "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
            "status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas",
        ],
    );
    check(
        &kinds::STATEFUL_SET,
        json!({}),
        json!({"replicas": 2, "availableReplicas": 1}),
        &["status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas"],
    );
}

#[test]
fn a_revision_holds_an_object_and_keeps_it() {
    let revision =
        |data: Value| json!({"metadata": {"name": "r", "namespace": "default"}, "data": data, "revision": 1});
    let kind = &kinds::CONTROLLER_REVISION;
    assert_eq!(mistakes(kind, &revision(json!({"spec": {}}))), Vec::<String>::new());
    assert_eq!(mistakes(kind, &revision(Value::Null)), ["data: Required value: data is mandatory"]);
    assert_eq!(mistakes(kind, &revision(json!([]))), ["data: Required value: data must be a valid JSON object"]);
    let (mut new, old) = (revision(json!({"spec": 2})), revision(json!({"spec": 1})));
    new.map_mut("metadata").insert("resourceVersion", "1".into());
    assert_eq!(mistakes_of_change(kind, &new, &old), ["data: Invalid value: {\"spec\":2}: field is immutable"]);
}

#[test]
fn rows_show_counts_containers_and_selector() {
    let check = |kind: &'static Kind, status: Value, expected: &str| {
        let mut object = made(kind, spec(json!({})));
        object.map_mut("metadata").insert("creationTimestamp", "2024-01-01T00:00:00Z".into());
        object.set("status", status);
        let cells = (kind.rules.row)(&object, 1_704_067_260);
        assert_eq!(cells.len(), kind.rules.columns.len());
        assert_eq!(Value::from(cells).to_string(), expected);
    };
    check(
        &kinds::DEPLOYMENT,
        json!({"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}),
        r#"["web","1/1",2,1,"60s","c","img:1","app=web"]"#,
    );
    check(&kinds::REPLICA_SET, json!({"replicas": 2}), r#"["web",1,2,0,"60s","c","img:1","app=web"]"#);
    check(&kinds::STATEFUL_SET, json!({}), r#"["web","0/1","60s","c","img:1"]"#);
    check(
        &kinds::DAEMON_SET,
        json!({"desiredNumberScheduled": 3, "numberReady": 2}),
        r#"["web",3,0,2,0,0,"<none>","60s","c","img:1","app=web"]"#,
    );
}

#[test]
fn a_scale_is_read_and_written_with_its_owners() -> Result<(), Failure> {
    use crate::kinds::scale;
    let owner = |manager: &str, fields: Value| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "fieldsV1": fields})
    };
    let mut deployment = made(&kinds::DEPLOYMENT, spec(json!({"replicas": 3})));
    let both = json!({"f:spec": {"f:paused": {}, "f:replicas": {}}});
    deployment.map_mut("metadata").insert("managedFields", json!([owner("kubectl", both)]));
    let mut found = scale::of_object(&deployment)?;
    assert_eq!(
        (&found["spec"], &found["status"]),
        (&json!({"replicas": 3}), &json!({"replicas": 0, "selector": "app=web"}))
    );
    assert_eq!(scale::managed_fields(&deployment)[0]["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    // Another manager takes the count.
    let mut taker = owner("hpa", json!({"f:spec": {"f:replicas": {}}}));
    taker.set("subresource", "scale");
    taker.set("apiVersion", "autoscaling/v1");
    found["spec"].set("replicas", 5);
    found["metadata"].set("managedFields", json!([taker]));
    scale::store(&kinds::DEPLOYMENT, &mut deployment, &found);
    assert_eq!(deployment["spec"]["replicas"], 5);
    let managers = deployment["metadata"].list("managedFields");
    let shown: Vec<String> =
        managers.iter().map(|m| format!("{} {} {}", m.text("manager"), m.text("apiVersion"), m["fieldsV1"])).collect();
    assert_eq!(
        shown,
        [r#"hpa apps/v1 {"f:spec":{"f:replicas":{}}}"#, r#"kubectl apps/v1 {"f:spec":{"f:paused":{}}}"#,]
    );
    let none = json!({"kind": "ReplicationController", "spec": {"replicas": 0, "selector": {"b": "2", "a": "1"}}});
    let found = scale::of_object(&none)?;
    assert_eq!((&found["spec"], found["status"].text("selector")), (&json!({}), "a=1,b=2"));
    Ok(())
}

#[test]
fn nothing_from_outside_makes_it_panic() {
    let odd = [
        json!({}),
        json!({"replicas": i32::MAX, "template": {"spec": {"containers": [{}], "volumes": [{}]}}}),
        json!({"selector": {"matchExpressions": [{}]}, "template": {"metadata": {"labels": {"": ""}}}}),
        json!({"updateStrategy": {"rollingUpdate": {}}, "volumeClaimTemplates": [{}]}),
    ];
    for kind in [&kinds::REPLICATION_CONTROLLER].into_iter().chain(ALL) {
        for spec in &odd {
            let mut fits = spec.clone();
            for field in ["selector", "updateStrategy", "volumeClaimTemplates", "replicas"] {
                if kind.schema.field("spec").is_some()
                    && crate::decode::decode(kind.schema, json!({"spec": fits.clone()})).is_err()
                {
                    fits.unset(field);
                }
            }
            let object = made(kind, fits);
            let _ = ((kind.rules.warnings)(&object, None, &settings()), mistakes(kind, &object));
            let _ = ((kind.rules.row)(&object, 0), mistakes_of_change(kind, &object, &object));
            let _ = (kind.rules.validate_status)(&object, &object, &settings());
        }
    }
}
