use crate::value::{Value, json};

use super::*;
use crate::schema::core::SERVICE;

mod apply;
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
        if matches!(port.at("targetPort"), Value::Null) || *port.at("targetPort") == 0 {
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
        inner.set(name.to_string(), json!({}));
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
fn names_of_keys_are_written_as_json() {
    let fields = json!({"k:{\"a\\\"b\":1}": {}});
    assert_eq!(text::write(&text::read(&fields).expect("fields")), fields);
}
