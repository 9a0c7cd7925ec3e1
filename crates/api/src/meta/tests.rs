use crate::value::{Value, json};

use super::*;
use crate::kinds::{ENDPOINTS, IP_ADDRESS, NODE, ROLE};
use crate::{Settings, validation};

fn settings() -> Settings {
    Settings { service_ranges: Vec::new(), node_ports: 30000..=32767, service_topology: false }
}

fn told(errors: &FieldErrors) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// Metadata of an Endpoints in a namespace, with these fields more.
fn object(fields: Value) -> Value {
    let mut object = json!({"metadata": {"name": "e", "namespace": "ns", "resourceVersion": "1"}});
    for (key, value) in fields.as_object().expect("fields") {
        object.map_mut("metadata").insert(key.clone(), value.clone());
    }
    object
}

/// The beginnings of all mistakes in the metadata.
fn check(fields: Value, beginnings: &[&str]) {
    let errors = told(&validation::create(&ENDPOINTS, &object(fields.clone()), &settings()));
    assert_eq!(errors.len(), beginnings.len(), "{fields}: {errors:?}");
    for (error, beginning) in errors.iter().zip(beginnings) {
        assert!(error.starts_with(beginning), "{fields}: {error}");
    }
}

#[test]
fn names_follow_the_rule_of_the_kind() {
    check(json!({"name": "a.b-1"}), &[]);
    check(json!({"name": ""}), &["metadata.name: Required value: name or generateName is required"]);
    check(json!({"name": "A"}), &["metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain"]);
    check(json!({"generateName": "a-"}), &[]);
    check(json!({"generateName": "Bad-"}), &["metadata.generateName: Invalid value: \"Bad-\""]);
    let name = |kind: &Kind, name: &str| told(&validate(&json!({"metadata": {"name": name}}), kind));
    assert_eq!(name(&NODE, "n"), Vec::<String>::new());
    assert_eq!(
        name(&IP_ADDRESS, "FD00::1"),
        ["metadata.name: Invalid value: \"FD00::1\": must be in canonical form (\"fd00::1\")"]
    );
    let role = json!({"metadata": {"name": "system:a b", "namespace": "ns"}});
    assert!(validate(&role, &ROLE).is_empty());
}

#[test]
fn a_trailing_dash_of_a_prefix_is_let_through() {
    for prefix in ["a-", "a--", "--", "ab.c-"] {
        assert!(subdomain_name(prefix, true).is_empty(), "{prefix}");
    }
    for prefix in ["-", "A-b", "é--"] {
        assert!(!subdomain_name(prefix, true).is_empty(), "{prefix}");
    }
    assert!(!subdomain_name("a-", false).is_empty());
}

#[test]
fn namespaces_belong_to_kinds_that_have_them() {
    check(json!({"namespace": ""}), &["metadata.namespace: Required value"]);
    check(json!({"namespace": "a.b"}), &["metadata.namespace: Invalid value: \"a.b\": must not contain dots"]);
    let node = json!({"metadata": {"name": "n", "namespace": "ns"}});
    assert_eq!(told(&validate(&node, &NODE)), ["metadata.namespace: Forbidden: not allowed on this type"]);
}

#[test]
fn labels_and_annotations_have_keys_of_the_same_form() {
    check(json!({"labels": {"a b": "c"}}), &["metadata.labels: Invalid value: \"a b\": name part must consist"]);
    check(json!({"labels": {"a": "c d"}}), &["metadata.labels: Invalid value: \"c d\": a valid label must be"]);
    check(json!({"annotations": {"Example.COM/a": "c d"}}), &[]);
    check(
        json!({"labels": {"Example.COM/a": "c"}}),
        &["metadata.labels: Invalid value: \"Example.COM/a\": prefix part"],
    );
    check(json!({"annotations": {"a": "x".repeat(256 * 1024 - 1)}}), &[]);
    check(
        json!({"annotations": {"a": "x".repeat(256 * 1024)}}),
        &["metadata.annotations: Too long: may not be more than 262144 bytes"],
    );
}

#[test]
fn finalizers_are_qualified_or_standard() {
    check(json!({"finalizers": ["a.b/c", "orphan"]}), &[]);
    check(
        json!({"finalizers": ["f"]}),
        &["metadata.finalizers[0]: Invalid value: \"f\": name is neither a standard finalizer name nor is it"],
    );
    check(
        json!({"finalizers": ["orphan", "foregroundDeletion"]}),
        &["metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and"],
    );
}

#[test]
fn an_owner_is_named_in_full_and_only_one_controls() {
    let owner = |kind: &str, name: &str, controller: bool| json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": "u", "controller": controller});
    check(json!({"ownerReferences": [owner("Pod", "p", true), owner("Pod", "q", false)]}), &[]);
    check(
        json!({"ownerReferences": [{"apiVersion": "a/b/c"}]}),
        &[
            "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
            "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ],
    );
    check(
        json!({"ownerReferences": [owner("Pod", "p", true), owner("Pod", "q", true)]}),
        &["metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\""],
    );
    check(json!({"ownerReferences": [owner("Event", "e", false)]}), &["metadata.ownerReferences: Invalid value: {"]);
}

#[test]
fn managed_fields_are_of_a_known_form() {
    check(json!({"managedFields": [{"operation": "Apply", "fieldsType": "FieldsV1", "manager": "é"}]}), &[]);
    check(
        json!({"managedFields": [{"operation": "x", "fieldsType": "y", "manager": "a\u{7}"}]}),
        &[
            "metadata.managedFields[0].operation: Invalid value: \"x\": must be `Apply` or `Update`",
            "metadata.managedFields[0].fieldsType: Invalid value: \"y\": must be `FieldsV1`",
            "metadata.managedFields[0].manager: Invalid value: \"a\\a\": invalid character U+0007 (at position 1)",
        ],
    );
}

#[test]
fn any_name_must_fit_into_a_url() {
    let any = |name: &str| told(&validate_any(&json!({"metadata": {"name": name, "namespace": "ns"}}), &ENDPOINTS));
    assert_eq!(any("UPPER case"), Vec::<String>::new());
    assert_eq!(any(".."), ["metadata.name: Invalid value: \"..\": may not be '..'"]);
    assert_eq!(any("a%41"), ["metadata.name: Invalid value: \"a%41\": may not contain '%'"]);
}

/// The mistakes told when these fields are set by an update.
fn check_update(fields: Value, old: Value, messages: &[&str]) {
    let errors = told(&validate_update(&object(fields.clone()), &object(old)));
    assert_eq!(errors, messages, "{fields}");
}

#[test]
fn what_identifies_an_object_does_not_change() {
    check_update(json!({"labels": {"a": "b"}}), json!({}), &[]);
    check_update(json!({"uid": "v"}), json!({"uid": "u"}), &["metadata.uid: Invalid value: \"v\": field is immutable"]);
    check_update(json!({"name": "f"}), json!({}), &["metadata.name: Invalid value: \"f\": field is immutable"]);
    check_update(
        json!({"deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3}),
        json!({}),
        &[
            "metadata.deletionTimestamp: Invalid value: \"2001-01-01T00:00:00Z\": field is immutable",
            "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
        ],
    );
    check_update(
        json!({"resourceVersion": ""}),
        json!({}),
        &["metadata.resourceVersion: Invalid value: \"\": must be specified for an update"],
    );
}

#[test]
fn an_object_that_is_being_deleted_gains_no_finalizers() {
    let old = json!({"deletionTimestamp": "2001-01-01T00:00:00Z", "finalizers": ["a/b"]});
    let mut new = old.clone();
    new["finalizers"] = json!(["z/y", "c/d"]);
    let message = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, \
                   found new finalizers []string{\"c/d\", \"z/y\"}";
    check_update(new, old, &[message]);
}

#[test]
fn a_kind_that_checks_twice_tells_twice() {
    let count = |kind: &Kind| {
        let errors = validation::update(kind, &object(json!({"uid": "v"})), &object(json!({"uid": "u"})), &settings());
        errors.iter().filter(|e| e.field == "metadata.uid").count()
    };
    assert_eq!(count(&ENDPOINTS), 2);
    assert_eq!(count(&crate::kinds::ENDPOINT_SLICE), 1);
    assert_eq!(count(&crate::kinds::EVENT), 1);
}
