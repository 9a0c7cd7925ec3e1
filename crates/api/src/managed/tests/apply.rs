//! What server-side apply merges, removes, owns and refuses.

use super::*;
use crate::managed::apply;
use crate::schema::core::CONFIG_MAP;

#[test]
fn apply_creates_and_owns_only_what_it_names() {
    let object = applied(None, "m1", &service(json!({"labels": {"l1": "v1"}}), one_port()));
    let ports = tcp_80(&["f:name", "f:port", "f:targetPort"]);
    let expect = json!({"f:metadata": {"f:labels": {"f:l1": {}}}, "f:spec": {"f:ports": ports, "f:selector": {}}});
    check(&object, &[("m1 Apply", expect)]);
    assert_eq!(list(&object)[0].text("time"), LATE);
}

#[test]
fn apply_again_changes_nothing_not_even_the_time() {
    let config = service(json!({"labels": {"l1": "v1"}}), one_port());
    let object = applied(None, "m1", &config);
    let again = apply(&SERVICE, Some(&object), &config, false, by("m1", "2025-01-01T00:00:00Z")).expect("no conflict");
    assert_eq!(again.to_string(), object.to_string());
}

#[test]
fn a_field_left_out_is_removed() {
    let object = applied(None, "m1", &service(json!({"labels": {"l1": "v1"}}), one_port()));
    let again = applied(Some(&object), "m1", &service(json!({}), one_port()));
    assert_eq!(again["metadata"].get("labels"), None);
    let ports = tcp_80(&["f:name", "f:port", "f:targetPort"]);
    check(&again, &[("m1 Apply", json!({"f:spec": {"f:ports": ports, "f:selector": {}}}))]);
}

#[test]
fn an_element_left_out_is_removed_with_what_others_defaulted_in_it() {
    let two = json!({"ports": [{"port": 80, "name": "a"}, {"port": 443, "name": "b"}]});
    let object = applied(None, "m1", &service(json!({}), two));
    let again = applied(Some(&object), "m1", &service(json!({}), json!({"ports": [{"port": 443, "name": "b"}]})));
    assert_eq!(again["spec"]["ports"], json!([{"name": "b", "protocol": "TCP", "port": 443, "targetPort": 443}]));
}

#[test]
fn a_field_left_out_stays_if_another_manager_owns_it() {
    let object = applied(None, "m1", &service(json!({"labels": {"l": "v"}}), one_port()));
    let shared = applied(Some(&object), "m2", &service(json!({"labels": {"l": "v"}}), json!({})));
    let left = applied(Some(&shared), "m1", &service(json!({}), one_port()));
    assert_eq!(left["metadata"]["labels"], json!({"l": "v"}));
}

#[test]
fn elements_merge_by_all_key_fields_with_their_defaults() {
    let object = applied(None, "m1", &service(json!({}), one_port()));
    let udp = json!({"ports": [{"port": 80, "name": "dns", "protocol": "UDP"}]});
    let both = applied(Some(&object), "m2", &service(json!({}), udp));
    assert_eq!(both["spec"]["ports"].as_array().map(Vec::len), Some(2));
    let same = json!({"ports": [{"port": 80, "protocol": "TCP", "name": "a"}]});
    let merged = applied(Some(&object), "m2", &service(json!({}), same));
    assert_eq!(merged["spec"], object["spec"]);
}

#[test]
fn a_new_owner_of_an_unchanged_object_has_no_time() {
    let object = applied(None, "m1", &service(json!({}), one_port()));
    let shared = applied(Some(&object), "m2", &service(json!({}), json!({"selector": {"app": "a"}})));
    assert_eq!(list(&shared)[0].text("manager"), "m2");
    assert_eq!(list(&shared)[0].get("time"), None);
}

#[test]
fn merged_lists_follow_the_configuration_around_what_it_does_not_name() {
    let of = types::Type { shape: crate::schema::Shape::Any, merge: crate::schema::Merge::Set };
    let of = types::Type { shape: crate::schema::Shape::List(&crate::schema::TEXT), ..of };
    for (live, config, expect) in [
        (json!(["a", "b"]), json!(["b", "a"]), json!(["b", "a"])),
        (json!(["a", "x", "b"]), json!(["b", "a"]), json!(["x", "b", "a"])),
        (json!(["a", "b", "x"]), json!(["b", "a", "n"]), json!(["b", "x", "a", "n"])),
        (json!(["a", "b"]), json!(["n", "b"]), json!(["a", "n", "b"])),
        (json!(["a"]), json!(["n"]), json!(["a", "n"])),
        (json!([]), json!(["n"]), json!(["n"])),
        (json!(["a"]), json!([]), json!(["a"])),
    ] {
        assert_eq!(merge::merge(of, &live, &config), expect, "{live} {config}");
    }
}

#[test]
fn conflicts_name_manager_and_path() {
    let object = applied(None, "m1", &service(json!({}), one_port()));
    for (spec, field, message) in [
        (
            json!({"selector": {"app": "b"}}),
            ".spec.selector",
            "Apply failed with 1 conflict: conflict with \"m1\": .spec.selector",
        ),
        (
            json!({"ports": [{"port": 80, "name": "z"}]}),
            ".spec.ports[port=80,protocol=\"TCP\"].name",
            "Apply failed with 1 conflict: conflict with \"m1\": .spec.ports[port=80,protocol=\"TCP\"].name",
        ),
    ] {
        let failure = refused(Some(&object), "m2", &service(json!({}), spec));
        assert_eq!((failure.code, failure.reason, failure.message.as_str()), (409, "Conflict", message));
        let cause = json!({"reason": "FieldManagerConflict", "message": "conflict with \"m1\"", "field": field});
        assert_eq!(failure.details, Some(json!({"causes": [cause]})));
    }
}

#[test]
fn several_conflicts_are_listed_by_manager() {
    let object = created(one_port(), "u");
    let config = json!({"selector": {"app": "b"}, "ports": [{"port": 80, "name": "z"}]});
    let failure = refused(Some(&object), "m2", &service(json!({}), config));
    assert_eq!(
        failure.message,
        "Apply failed with 2 conflicts: conflicts with \"u\" using v1:\n- .spec.selector\n- .spec.ports[port=80,protocol=\"TCP\"].name"
    );
}

#[test]
fn force_takes_the_fields() {
    let object = applied(None, "m1", &service(json!({}), one_port()));
    let config = service(json!({}), json!({"selector": {"app": "b"}}));
    let forced = apply(&SERVICE, Some(&object), &config, true, by("m2", LATE)).expect("forced");
    assert_eq!(forced["spec"]["selector"], json!({"app": "b"}));
    let ports = tcp_80(&["f:name", "f:port", "f:targetPort"]);
    check(
        &forced,
        &[("m1 Apply", json!({"f:spec": {"f:ports": ports}})), ("m2 Apply", json!({"f:spec": {"f:selector": {}}}))],
    );
}

#[test]
fn a_configuration_that_does_not_fit_is_refused() {
    let typed = "failed to create typed patch object (/s; /v1, Kind=Service): ";
    for (spec, why) in [
        (json!({"bogus": 1}), ".spec.bogus: field not declared in schema"),
        (json!({"ports": "x"}), ".spec.ports: expected list, got &{x}"),
        (json!({"type": 5}), ".spec.type: expected string, got &value.valueUnstructured{Value:5}"),
        (
            json!({"ports": [{"port": "x"}]}),
            ".spec.ports[port=\"x\",protocol=\"TCP\"].port: expected numeric (int or float), got string",
        ),
        (
            json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}),
            ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
        ),
        (json!({"ports": [1]}), ".spec.ports: element 0: associative list with keys may not have non-map elements"),
    ] {
        let failure = refused(None, "m", &service(json!({}), spec));
        assert_eq!((failure.code, failure.reason), (500, ""));
        assert_eq!(failure.message, format!("{typed}{why}"));
    }
}

#[test]
fn the_kind_must_be_right_and_the_list_absent() {
    for (config, why) in [
        (json!({"kind": "Service", "metadata": {"name": "s"}}), "invalid object type: /, Kind=Service"),
        (json!({"apiVersion": "apps/v1", "kind": "X"}), "invalid object type: apps/v1, Kind=X"),
        (json!({}), "invalid object type: /, Kind="),
        (service(json!({"managedFields": []}), json!({})), "metadata.managedFields must be nil"),
    ] {
        let failure = refused(None, "m", &config);
        assert_eq!((failure.code, failure.message.as_str()), (400, why));
    }
}

#[test]
fn status_in_a_configuration_is_not_owned_through_the_object_itself() {
    let mut config = service(json!({}), json!({"type": "ClusterIP"}));
    config["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    check(&applied(None, "m", &config), &[("m Apply", json!({"f:spec": {"f:type": {}}}))]);
}

#[test]
fn kubectl_may_take_over_what_client_side_apply_set_and_keeps_its_annotation() {
    let last = service(json!({}), json!({"selector": {"app": "a"}}));
    let name = "kubectl.kubernetes.io/last-applied-configuration";
    let mut object = canonical(last.clone());
    object["metadata"]["annotations"] = json!({name: last.to_string()});
    let mut object = canonical(object);
    update(&SERVICE, None, &mut object, by("kubectl-client-side-apply", EARLY));
    let config = service(json!({}), json!({"selector": {"app": "b"}}));
    let taken = applied(Some(&object), "kubectl", &config);
    assert_eq!(taken["spec"]["selector"], json!({"app": "b"}));
    assert_eq!(taken["metadata"]["annotations"][name], format!("{config}\n"));
    assert_eq!(refused(Some(&object), "other", &config).code, 409);
}

#[test]
fn free_keys_are_owned_one_by_one() {
    let config =
        |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data});
    let first =
        apply(&CONFIG_MAP, None, &config(json!({"a": "1", "b": "2"})), false, by("m1", EARLY)).expect("created");
    let second = apply(&CONFIG_MAP, Some(&first), &config(json!({"c": "3"})), false, by("m2", LATE)).expect("merged");
    let third = apply(&CONFIG_MAP, Some(&second), &config(json!({"a": "1"})), false, by("m1", LATE)).expect("merged");
    assert_eq!(third["data"], json!({"a": "1", "c": "3"}));
}

#[test]
fn a_forced_field_that_is_given_up_again_falls_back_to_its_default() {
    let port = |target: Option<i64>| {
        let mut port = json!({"name": "http", "port": 80, "protocol": "TCP"});
        if let Some(target) = target {
            port.set("targetPort", target);
        }
        port
    };
    let extra = json!({"name": "extra", "port": 81, "protocol": "TCP"});
    let first = applied(None, "kubectl", &service(json!({}), json!({"ports": [port(Some(8080))]})));
    let both = service(json!({}), json!({"ports": [port(Some(9090)), extra]}));
    let forced = canonical(apply(&SERVICE, Some(&first), &both, true, by("other", LATE)).expect("forced"));
    check(
        &forced,
        &[
            ("kubectl Apply", json!({"f:spec": {"f:ports": tcp_80(&["f:name", "f:port", "f:protocol"])}})),
            (
                "other Apply",
                json!({"f:spec": {"f:ports": {
                    "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}},
                    "k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}},
                }}}),
            ),
        ],
    );
    let given_up = applied(Some(&forced), "other", &service(json!({}), json!({"ports": [extra]})));
    let ports = json!([
        {"name": "http", "protocol": "TCP", "port": 80, "targetPort": 80},
        {"name": "extra", "protocol": "TCP", "port": 81, "targetPort": 81},
    ]);
    assert_eq!(given_up["spec"]["ports"], ports);
}
