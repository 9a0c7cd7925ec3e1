use serde_json::{Value, json};

use super::*;
use crate::schema::core::{CONFIG_MAP, SERVICE};

mod laws;

const EARLY: &str = "2024-01-01T00:00:00Z";
const LATE: &str = "2024-01-02T00:00:00Z";

fn by<'a>(manager: &'a str, now: &'a str) -> Writer<'a> {
    Writer { manager, api_version: "v1", subresource: "", now }
}

/// An object as the server has it after decoding and defaulting.
fn canonical(mut object: Value) -> Value {
    for port in object["spec"]["ports"].as_array_mut().into_iter().flatten() {
        if port.text("protocol").is_empty() {
            port.set("protocol", "TCP");
        }
        if matches!(port.at("targetPort"), Value::Null) || port.at("targetPort") == 0 {
            let port_number = port.at("port").clone();
            port.set("targetPort", port_number);
        }
    }
    decode(&SERVICE, object).expect("a Service").value
}

fn service(meta: Value, spec: Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec});
    for (name, value) in meta.as_object().expect("an object") {
        object["metadata"].set(name, value.clone());
    }
    object
}

fn created(spec: Value, manager: &str) -> Value {
    let mut object = canonical(service(json!({"uid": "u"}), spec));
    update(&SERVICE, None, &mut object, by(manager, EARLY));
    object
}

fn updated_by(manager: &str, old: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut new = old.clone();
    change(&mut new);
    let mut new = canonical(new);
    update(&SERVICE, Some(old), &mut new, by(manager, LATE));
    new
}

fn applied(live: Option<&Value>, manager: &str, config: &Value) -> Value {
    canonical(apply(&SERVICE, live, config, false, by(manager, LATE)).expect("no conflict"))
}

fn refused(live: Option<&Value>, manager: &str, config: &Value) -> Failure {
    apply(&SERVICE, live, config, false, by(manager, LATE)).expect_err("a failure")
}

/// Asserts the managers of an object and their fields: `("m1 Apply", {...})`.
#[track_caller]
fn check(object: &Value, expect: &[(&str, Value)]) {
    let found: Vec<(String, Value)> = list(object)
        .iter()
        .map(|entry| {
            let words = [entry.text("manager"), entry.text("operation"), entry.text("subresource")];
            (words.join(" ").trim_end().to_owned(), entry.at("fieldsV1").clone())
        })
        .collect();
    let expect: Vec<(String, Value)> = expect.iter().map(|(who, fields)| ((*who).to_owned(), fields.clone())).collect();
    assert_eq!(found, expect);
}

fn tcp_80(fields: &[&str]) -> Value {
    let mut inner = json!({".": {}});
    for name in fields {
        inner.set(name, json!({}));
    }
    json!({"k:{\"port\":80,\"protocol\":\"TCP\"}": inner})
}

fn owns_all_ports(fields: &[&str]) -> Value {
    let mut ports = json!({".": {}});
    for (name, value) in tcp_80(fields).as_object().expect("an object") {
        ports.set(name, value.clone());
    }
    ports
}

fn one_port() -> Value {
    json!({"ports": [{"port": 80, "name": "a", "targetPort": 8080}], "selector": {"app": "a"}})
}

#[test]
fn the_text_form_is_read_and_written_alike() {
    for fields in [
        json!({}),
        json!({"f:a": {}, "f:b": {".": {}, "f:c": {}}}),
        json!({"f:l": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}, "v:3": {}, "v:\"x\"": {}, "i:0": {}}}),
    ] {
        assert_eq!(text::write(&text::read(&fields).expect("fields")).to_string(), fields.to_string());
    }
}

#[test]
fn the_text_form_lists_numbers_by_size() {
    let fields = json!({"k:{\"port\":443}": {}, "k:{\"port\":80}": {}, "f:z": {}});
    let written = text::write(&text::read(&fields).expect("fields")).to_string();
    assert_eq!(written, r#"{"f:z":{},"k:{\"port\":80}":{},"k:{\"port\":443}":{}}"#);
}

#[test]
fn nonsense_is_not_a_field_set_but_unknown_kinds_of_steps_are_skipped() {
    assert!(text::read(&json!({"x": {}})).is_err());
    assert!(text::read(&json!({"f:a": 1})).is_err());
    assert!(text::read(&json!({"k:{": {}})).is_err());
    assert_eq!(text::read(&json!({"q:a": {}})), Ok(Set::default()));
}

#[test]
fn the_creator_owns_what_it_gave_and_the_defaults() {
    let object = created(one_port(), "m");
    let ports = owns_all_ports(&["f:name", "f:port", "f:protocol", "f:targetPort"]);
    check(&object, &[("m Update", json!({"f:spec": {"f:ports": ports, "f:selector": {}}}))]);
    assert_eq!(list(&object)[0].text("time"), EARLY);
}

#[test]
fn maps_sets_and_atomic_structs_are_owned_each_in_its_way() {
    let meta = json!({
        "labels": {"l": "v"}, "finalizers": ["example.com/a"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"}],
    });
    let mut object = canonical(service(meta, json!({})));
    update(&SERVICE, None, &mut object, by("m", EARLY));
    let expect = json!({"f:metadata": {
        "f:finalizers": {".": {}, "v:\"example.com/a\"": {}},
        "f:labels": {".": {}, "f:l": {}},
        "f:ownerReferences": {".": {}, "k:{\"uid\":\"u1\"}": {}},
    }});
    check(&object, &[("m Update", expect)]);
}

#[test]
fn whoever_changes_a_field_takes_it() {
    let old = created(one_port(), "first");
    let new = updated_by("second", &old, |new| new["spec"]["selector"] = json!({"app": "b"}));
    let ports = owns_all_ports(&["f:name", "f:port", "f:protocol", "f:targetPort"]);
    check(
        &new,
        &[
            ("first Update", json!({"f:spec": {"f:ports": ports}})),
            ("second Update", json!({"f:spec": {"f:selector": {}}})),
        ],
    );
    assert_eq!((list(&new)[0].text("time"), list(&new)[1].text("time")), (EARLY, LATE));
}

#[test]
fn removing_a_field_takes_it_from_all_and_gives_it_to_nobody() {
    let old = created(one_port(), "first");
    let new = updated_by("second", &old, |new| drop(new["spec"].unset("selector")));
    let ports = owns_all_ports(&["f:name", "f:port", "f:protocol", "f:targetPort"]);
    check(&new, &[("first Update", json!({"f:spec": {"f:ports": ports}}))]);
    assert_eq!(list(&new)[0].text("time"), EARLY);
}

#[test]
fn a_manager_without_fields_disappears() {
    let old = created(json!({"selector": {"a": "b"}}), "first");
    let new = updated_by("second", &old, |new| new["spec"]["selector"] = json!({"c": "d"}));
    check(&new, &[("second Update", json!({"f:spec": {"f:selector": {}}}))]);
}

#[test]
fn a_write_that_changes_nothing_leaves_the_list_as_it_was() {
    let old = created(one_port(), "first");
    let new = updated_by("second", &old, |_| {});
    assert_eq!(new.to_string(), old.to_string());
}

#[test]
fn an_absent_or_improper_list_keeps_the_stored_one() {
    let old = created(one_port(), "first");
    for sent in [
        json!(null),
        json!([{"manager": "q", "operation": "Bogus", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]),
        json!([{"manager": "q", "operation": "Update", "apiVersion": "v1", "fieldsV1": {}}]),
        json!([{"manager": "q", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"x": 1}}]),
    ] {
        let new = updated_by("second", &old, |new| new["metadata"]["managedFields"] = sent);
        assert_eq!(new.to_string(), old.to_string());
    }
}

#[test]
fn a_proper_list_from_the_client_is_taken() {
    let old = created(one_port(), "first");
    let new = updated_by("second", &old, |new| new["metadata"]["managedFields"][0]["manager"] = "renamed".into());
    assert_eq!(list(&new)[0].text("manager"), "renamed");
}

#[test]
fn entries_in_versions_that_are_gone_are_forgotten() {
    let old = created(one_port(), "first");
    let new = updated_by("second", &old, |new| {
        new["metadata"]["managedFields"][0]["apiVersion"] = "v0".into();
        new["metadata"]["labels"] = json!({"a": "b"});
    });
    check(&new, &[("second Update", json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}))]);
}

#[test]
fn an_empty_entry_empties_the_list_and_nothing_is_tracked_until_the_next_apply() {
    let old = created(json!({"selector": {"a": "b"}}), "first");
    let emptied = updated_by("second", &old, |new| new["metadata"]["managedFields"] = json!([{}]));
    check(&emptied, &[]);
    let later = updated_by("second", &emptied, |new| new["spec"]["selector"] = json!({"c": "d"}));
    check(&later, &[]);
    let applied = applied(Some(&later), "m", &service(json!({"labels": {"l": "v"}}), json!({})));
    check(
        &applied,
        &[
            ("m Apply", json!({"f:metadata": {"f:labels": {"f:l": {}}}, "f:spec": {}})),
            ("before-first-apply Update", json!({"f:spec": {"f:selector": {}}})),
        ],
    );
}

#[test]
fn an_empty_list_in_a_body_is_told_from_none() {
    let mut decoded = canonical(service(json!({}), json!({})));
    keep_reset(&json!({"metadata": {"managedFields": []}}), &mut decoded);
    assert_eq!(list(&decoded), [json!({})]);
    let mut decoded = canonical(service(json!({}), json!({})));
    keep_reset(&json!({"metadata": {"managedFields": null}}), &mut decoded);
    assert!(list(&decoded).is_empty());
}

#[test]
fn the_oldest_of_many_managers_become_one() {
    let mut object = created(json!({"selector": {"a": "b"}}), "m00");
    for number in 1..=12 {
        let old = object;
        let manager = format!("m{number:02}");
        object = old.clone();
        object.map_mut("metadata").entry("labels").or_insert(json!({})).set(&manager, "x");
        update(&SERVICE, Some(&old), &mut object, by(&manager, &format!("2024-02-{number:02}T00:00:00Z")));
    }
    assert_eq!(list(&object).len(), 10);
    let expect = json!({
        "f:metadata": {"f:labels": {".": {}, "f:m01": {}, "f:m02": {}, "f:m03": {}}}, "f:spec": {"f:selector": {}},
    });
    assert_eq!(list(&object)[0].at("fieldsV1"), &expect);
    assert_eq!(list(&object)[0].text("manager"), "ancient-changes");
    assert_eq!(list(&object)[0].text("time"), "2024-02-03T00:00:00Z");
}

#[test]
fn a_write_to_status_owns_status_alone_and_cannot_touch_the_list() {
    let old = created(one_port(), "first");
    let mut new = old.clone();
    new["metadata"]["managedFields"] = json!([{}]);
    new["spec"]["selector"] = json!({"b": "c"});
    new["status"] = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    update(&SERVICE, Some(&old), &mut new, Writer { subresource: "status", ..by("lb", LATE) });
    assert_eq!(list(&new)[0], list(&old)[0]);
    assert_eq!(list(&new)[1].at("fieldsV1"), &json!({"f:status": {"f:loadBalancer": {"f:ingress": {}}}}));
    assert_eq!(list(&new)[1].text("subresource"), "status");
}

#[test]
fn times_come_back_if_nothing_else_changed() {
    let old = created(one_port(), "m");
    let mut new = old.clone();
    new["metadata"]["managedFields"][0]["time"] = LATE.into();
    keep_times(&old, &mut new);
    assert_eq!(new, old);
    new["metadata"]["managedFields"][0]["time"] = LATE.into();
    new["spec"]["type"] = "NodePort".into();
    keep_times(&old, &mut new);
    assert_eq!(list(&new)[0].text("time"), LATE);
}

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

#[test]
fn names_of_keys_are_written_as_json() {
    let fields = json!({"k:{\"a\\\"b\":1}": {}});
    assert_eq!(text::write(&text::read(&fields).expect("fields")), fields);
}
