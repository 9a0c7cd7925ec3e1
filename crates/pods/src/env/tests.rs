use serde_json::json;

use super::*;

/// The world most tests share.
fn world() -> (Value, Vec<Service>, BTreeMap<String, Value>, BTreeMap<String, Value>) {
    let pod = json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "labels": {"b": "2", "app": "a \"b\""},
                     "annotations": {"example.com/Note": "n"}},
        "spec": {"nodeName": "n1", "serviceAccountName": "robot",
                 "containers": [{"name": "side", "resources": {"limits": {"cpu": "2500m"}}}]},
    });
    let service = |namespace: &str, name: &str, ip: &str| {
        let object = json!({"metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterIP": ip, "ports": [{"port": 80}]}});
        serde_json::from_value(object).expect("a Service")
    };
    let services = vec![
        service("default", "kubernetes", "10.0.0.1"),
        service("shop", "pixel", "10.0.3.4"),
        service("shop", "headless", "None"),
        service("other", "hidden", "10.0.3.5"),
    ];
    let config_maps = BTreeMap::from([("cm".to_owned(), json!({"data": {"two": "2", "one": "1"}}))]);
    let data = json!({"word": STANDARD.encode("mellon"), "raw": STANDARD.encode([0xff]), "bad": "%"});
    let secrets = BTreeMap::from([("key".to_owned(), json!({"data": data}))]);
    (pod, services, config_maps, secrets)
}

/// The container's own variables, or why there are none.
fn own(container: Value) -> Result<Vec<(String, String)>, String> {
    let (pod, services, config_maps, secrets) = world();
    let services: Vec<&Service> = services.iter().collect();
    let (pod_ips, host_ips) = (["10.1.0.2".to_owned(), "fd00::2".to_owned()], ["192.0.2.1".to_owned()]);
    let allocatable = json!({"cpu": "4", "memory": "1Gi", "ephemeral-storage": "10G"});
    let given = Given {
        pod: &pod,
        container: &container,
        services: &services,
        config_maps: &config_maps,
        secrets: &secrets,
        pod_ips: &pod_ips,
        host_ips: &host_ips,
        allocatable: &allocatable,
    };
    let made = of(&given).map_err(|mistake| mistake.to_string())?;
    let of_services = |name: &str| name.starts_with("PIXEL_") || name.starts_with("KUBERNETES_");
    assert!(made.variables.iter().any(|(name, _)| name == "PIXEL_SERVICE_HOST"), "{made:?}");
    assert!(!made.variables.iter().any(|(name, _)| name.starts_with("HIDDEN_") || name.starts_with("HEADLESS_")));
    Ok(made.variables.into_iter().filter(|(name, _)| !of_services(name)).collect())
}

#[track_caller]
fn check(container: Value, expect: &[(&str, &str)]) {
    let expect: Vec<_> = expect.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(own(container), Ok(expect));
}

#[track_caller]
fn refused(variable: Value, expect: &str) {
    assert_eq!(own(json!({"env": [variable]})), Err(expect.to_owned()));
}

#[test]
fn env_overrides_env_from_and_stands_where_it_was_first_named() {
    let container = json!({
        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "cm"}}, {"secretRef": {"name": "no", "optional": true}}],
        "env": [{"name": "LAST", "value": "$(P_two) $(PIXEL_SERVICE_HOST)"}, {"name": "P_one", "value": ""}],
    });
    check(container, &[("P_one", ""), ("P_two", "2"), ("LAST", "2 10.0.3.4")]);
}

#[test]
fn values_come_from_config_maps_and_secrets() {
    let from = |holder: &str, name: &str, key: &str, optional: bool| json!({"name": "A", "valueFrom": {holder: {"name": name, "key": key, "optional": optional}}});
    let one = |variable: Value| json!({"env": [variable]});
    check(one(from("configMapKeyRef", "cm", "two", false)), &[("A", "2")]);
    check(one(from("secretKeyRef", "key", "word", false)), &[("A", "mellon")]);
    check(one(from("configMapKeyRef", "no", "two", true)), &[]);
    check(one(from("secretKeyRef", "key", "no", true)), &[]);
    refused(from("configMapKeyRef", "no", "two", false), "configmap \"no\" not found");
    refused(from("secretKeyRef", "no", "two", false), "secret \"no\" not found");
    refused(from("configMapKeyRef", "cm", "no", false), "couldn't find key no in ConfigMap shop/cm");
    refused(from("secretKeyRef", "key", "no", false), "couldn't find key no in Secret shop/key");
    refused(from("secretKeyRef", "key", "raw", false), "the value of the variable A is no UTF-8 text");
    refused(from("secretKeyRef", "key", "bad", false), "the value of the variable A is no base64");
}

#[test]
fn fields_of_the_pod_are_told() {
    let field = |path: &str| json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}}]});
    for (path, expect) in [
        ("metadata.name", "web"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "u-1"),
        ("metadata.labels", "app=\"a \\\"b\\\"\"\nb=\"2\""),
        ("metadata.labels['b']", "2"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['example.com/Note']", "n"),
        ("spec.nodeName", "n1"),
        ("spec.serviceAccountName", "robot"),
        ("status.hostIP", "192.0.2.1"),
        ("status.podIP", "10.1.0.2"),
        ("status.podIPs", "10.1.0.2,fd00::2"),
    ] {
        check(field(path), &[("A", expect)]);
    }
    let wrong = |path: &str| json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}});
    refused(wrong("status.phase"), "unsupported fieldPath: status.phase");
    refused(wrong("spec.nope"), "field label not supported: spec.nope");
    refused(wrong("spec.nope['x']"), "field label does not support subscript: spec.nope['x']");
}

#[test]
fn resources_are_counted_in_units_of_the_divisor_and_rounded_up() {
    let of = |container: &str, resource: &str, divisor: &str| {
        json!({"name": "A", "valueFrom": {"resourceFieldRef":
            {"containerName": container, "resource": resource, "divisor": divisor}}})
    };
    let resources = json!({"limits": {"memory": "100Mi"}, "requests": {"cpu": "250m"}});
    for (container, resource, divisor, expect) in [
        ("", "limits.memory", "0", "104857600"),
        ("", "limits.memory", "1Gi", "1"),
        ("", "requests.cpu", "1", "1"),
        ("", "requests.cpu", "1m", "250"),
        ("", "requests.memory", "1", "0"),
        // Without a limit it is what the Node has.
        ("", "limits.cpu", "1", "4"),
        ("", "limits.hugepages-2Mi", "1", "0"),
        ("side", "limits.cpu", "1", "3"),
    ] {
        check(json!({"resources": resources, "env": [of(container, resource, divisor)]}), &[("A", expect)]);
    }
    refused(of("nobody", "limits.cpu", "1"), "container nobody not found");
    refused(of("", "limits.bananas", "1"), "unsupported container resource : limits.bananas");
}

#[test]
fn what_cannot_be_handed_to_a_program_is_refused_or_left_out() {
    refused(json!({"name": "A", "value": "a\0b"}), "the value of the variable A contains a zero byte");
    let why = format!("the value of the variable A {TOO_LONG}");
    refused(json!({"name": "A", "value": "x".repeat(MAX_LENGTH)}), &why);
    check(
        json!({"env": [{"name": "", "value": "x"}, {"name": "a=b", "value": "x"}, {"name": "C", "value": "c"}]}),
        &[("C", "c")],
    );
}

#[test]
fn variables_that_double_each_other_end_soon() {
    let mut env = vec![json!({"name": "V0", "value": "0123456789"})];
    for at in 1..40 {
        env.push(json!({"name": format!("V{at}"), "value": format!("$(V{})$(V{})", at - 1, at - 1)}));
    }
    let told = own(json!({"env": env})).expect_err("40 doublings");
    assert!(told.ends_with(TOO_LONG), "{told}");
}

#[test]
fn expansion_keeps_what_it_does_not_know() {
    let check = |text: &str, expect: &str| {
        let value = |name: &str| (name == "A").then_some("x");
        assert_eq!(expand(text, value).as_deref(), Some(expect), "{text}");
    };
    for (text, expect) in [
        ("$(A)$(A)", "xx"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$x"),
        ("$(B)", "$(B)"),
        ("$(A", "$(A"),
        ("$", "$"),
        ("$é$(A)", "$éx"),
        ("$($(A))", "$($(A))"),
        (")$(A", ")$(A"),
        (")$(A)", ")x"),
        ("$()", "$()"),
        ("a$b)$(A)", "a$b)x"),
    ] {
        check(text, expect);
    }
    let long = "$(".repeat(MAX_LENGTH / 2);
    assert_eq!(expand(&long, |_| None), Some(long.clone()));
}

#[test]
fn very_many_variables_of_services_are_worth_a_note() {
    let (pod, ..) = world();
    let service = |at: usize| -> Service {
        let object = json!({"metadata": {"name": format!("s{at}"), "namespace": "shop"},
            "spec": {"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}});
        serde_json::from_value(object).expect("a Service")
    };
    let notes = |count: usize| {
        let services: Vec<Service> = (0..count).map(service).collect();
        let services: Vec<&Service> = services.iter().collect();
        let (none, nothing) = (BTreeMap::new(), Value::Null);
        let given = Given {
            pod: &pod,
            container: &nothing,
            services: &services,
            config_maps: &none,
            secrets: &none,
            pod_ips: &[],
            host_ips: &[],
            allocatable: &nothing,
        };
        of(&given).expect("an environment").notes
    };
    assert_eq!(notes(142), []);
    let [Note::ManyServiceVariables { count: 1001, .. }] = notes(143)[..] else { panic!("{:?}", notes(143)) };
}

#[test]
fn references_name_what_must_be_read() {
    let container = json!({
        "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}],
        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "d", "key": "k"}}},
                {"name": "C", "value": "x"}],
    });
    let set = |names: [&str; 2]| names.into_iter().map(str::to_owned).collect();
    assert_eq!(references(&container), References { config_maps: set(["a", "c"]), secrets: set(["b", "d"]) });
}
