use crate::value::{Value, json};

use super::*;

fn settings() -> Settings {
    Settings { service_ranges: Vec::new(), node_ports: 30000..=32767, service_topology: false }
}

fn check(mut secret: Value, messages: &[&str]) {
    default(&mut secret, &settings());
    let errors: Vec<String> = validate(&secret, None, &settings()).iter().map(ToString::to_string).collect();
    assert_eq!(errors, messages, "{secret}");
}

#[test]
fn string_data_becomes_data() {
    let mut secret = json!({"metadata": {}, "data": {"b": "eA==", "z": "eg=="}, "stringData": {"a": "hi", "b": "y"}});
    default(&mut secret, &settings());
    assert_eq!(secret.to_string(), r#"{"metadata":{},"data":{"a":"aGk=","b":"eQ==","z":"eg=="},"type":"Opaque"}"#);
}

#[test]
fn known_types_demand_their_keys() {
    check(json!({"type": "whatever"}), &[]);
    check(json!({"type": "kubernetes.io/tls"}), &["data[tls.crt]: Required value", "data[tls.key]: Required value"]);
    check(json!({"type": "kubernetes.io/basic-auth", "data": {"username": ""}}), &[]);
    check(json!({"type": "kubernetes.io/ssh-auth"}), &["data[ssh-privatekey]: Required value"]);
    check(
        json!({"type": "kubernetes.io/service-account-token"}),
        &["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
    );
    check(
        json!({"type": "kubernetes.io/dockercfg", "stringData": {".dockercfg": "{"}}),
        &["data[.dockercfg]: Invalid value: \"<secret contents redacted>\": unexpected end of JSON input"],
    );
}

#[test]
fn keys_and_size_are_bounded() {
    check(json!({"stringData": {"a": "x".repeat(MAX_SIZE)}}), &[]);
    check(
        json!({"stringData": {"a": "x".repeat(MAX_SIZE + 1)}}),
        &["data: Too long: may not be more than 1048576 bytes"],
    );
    check(json!({"data": {"..": ""}}), &["data[..]: Invalid value: \"..\": must not be '..'"]);
}

#[test]
fn the_type_and_what_is_immutable_do_not_change() {
    let change = |new: Value, old: Value| -> Vec<String> {
        validate_update(&new, &old, &settings()).iter().map(ToString::to_string).collect()
    };
    assert_eq!(change(json!({"type": "b"}), json!({"type": "a"})), ["type: Invalid value: \"b\": field is immutable"]);
    assert_eq!(
        change(json!({"data": {"a": ""}}), json!({"immutable": true})),
        [
            "immutable: Forbidden: field is immutable when `immutable` is set",
            "data: Forbidden: field is immutable when `immutable` is set",
        ]
    );
}
