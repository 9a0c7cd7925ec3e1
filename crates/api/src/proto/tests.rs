mod random;

use crate::value::{Value, json};

use super::*;
use crate::decode::decode;
use crate::schema::{authentication, coordination, core, discovery, node, pod};

/// Bytes in the way they are spoken of: tags as numbers, text as text.
macro_rules! bytes {
    ($($part:expr),* $(,)?) => {{
        let mut out: Vec<u8> = Vec::new();
        $(out.extend_from_slice(AsRef::<[u8]>::as_ref(&$part));)*
        out
    }};
}

/// The bytes read as this JSON.
fn reads(of: &'static Struct, raw: Vec<u8>, expect: Value) {
    assert_eq!(read(of, &raw), Ok(expect), "{}", of.name);
}

/// This JSON, made canonical, is written as these bytes and comes back the same.
fn writes(of: &'static Struct, object: Value, expect: Vec<u8>) {
    let canonical = canonical(of, object);
    let raw = write(of, &canonical);
    assert_eq!(raw, expect, "{} {canonical}", of.name);
    assert_eq!(canonical_from(of, &raw), canonical);
}

fn fails(of: &'static Struct, raw: &[u8], message: &str) {
    assert_eq!(read(of, raw).expect_err("malformed").to_string(), message);
}

fn canonical(of: &'static Struct, object: Value) -> Value {
    decode(of, object).expect("of the type").value
}

fn canonical_from(of: &'static Struct, raw: &[u8]) -> Value {
    canonical(of, read(of, raw).expect("well-formed"))
}

#[test]
fn the_wrapper_says_what_is_inside() {
    let body = bytes!(b"k8s\0", [0x0a, 13], [0x0a, 2], "v1", [0x12, 7], "Service", [0x12, 2], "ab", [0x1a, 0, 0x22, 0]);
    assert_eq!(unwrap(&body), Ok(Envelope { api_version: "v1".into(), kind: "Service".into(), raw: b"ab" }));
    assert_eq!(wrap("v1", "Service", b"ab"), body);
}

#[test]
fn a_body_without_wrapper_is_refused_in_the_reference_servers_words() {
    let check = |body: &[u8], text: &str| assert_eq!(unwrap(body).expect_err("no wrapper").to_string(), text);
    check(b"", "empty data");
    check(b"k8s\0", "empty body");
    check(
        b"{\"kind\":\"Service\"}",
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
    );
    check(b"k8s\0\x0a\x7f", "unexpected EOF");
    check(b"k8s\0\x08\x00", "proto: wrong wireType = 0 for field TypeMeta");
}

#[test]
fn plain_values_are_read() {
    reads(
        &core::SERVICE_PORT,
        bytes!([0x0a, 4], "http", [0x12, 3], "TCP", [0x18, 80], [0x28, 0xb0, 0xea, 0x01]),
        json!({"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30000}),
    );
}

#[test]
fn a_target_port_is_a_number_or_a_name() {
    let of = &core::SERVICE_PORT;
    reads(of, vec![0x22, 6, 0x08, 0, 0x10, 0x50, 0x1a, 0], json!({"targetPort": 80}));
    reads(of, bytes!([0x22, 7, 0x08, 1, 0x10, 0, 0x1a, 1], "a"), json!({"targetPort": "a"}));
    reads(of, vec![0x22, 0], json!({"targetPort": 0}));
    fails(of, &[0x22, 2, 0x08, 7], "impossible IntOrString.Type");
}

#[test]
fn negative_numbers_take_ten_bytes() {
    let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    reads(&core::SERVICE_PORT, bytes!([0x18], minus_one), json!({"port": -1}));
    reads(&node::NODE_SWAP_STATUS, bytes!([0x08], minus_one), json!({"capacity": -1}));
    writes(&core::CLIENT_IP_CONFIG, json!({"timeoutSeconds": -1}), bytes!([0x08], minus_one));
}

#[test]
fn numbers_come_packed_or_one_by_one() {
    let of = &pod::CONTAINER_RESTART_RULE_ON_EXIT_CODES;
    reads(of, vec![0x10, 1, 0x10, 42], json!({"values": [1, 42]}));
    reads(of, vec![0x12, 3, 1, 42, 7], json!({"values": [1, 42, 7]}));
    writes(of, json!({"operator": "In", "values": [1, 300]}), bytes!([0x0a, 2], "In", [0x10, 1, 0x10, 0xac, 0x02]));
}

#[test]
fn maps_are_entries_of_key_and_value() {
    reads(
        &core::SERVICE_SPEC,
        bytes!([0x12, 6, 0x0a, 1], "b", [0x12, 1], "2", [0x12, 3, 0x0a, 1], "a"),
        json!({"selector": {"b": "2", "a": ""}}),
    );
    writes(
        &core::CONFIG_MAP,
        json!({"data": {"b": "2", "a": ""}, "binaryData": {"k": "AQI="}}),
        bytes!(
            EMPTY_META,
            [0x12, 5, 0x0a, 1],
            "a",
            [0x12, 0],
            [0x12, 6, 0x0a, 1],
            "b",
            [0x12, 1],
            "2",
            [0x1a, 7, 0x0a, 1],
            "k",
            [0x12, 2, 1, 2],
        ),
    );
}

#[test]
fn a_list_within_a_map_has_a_message_of_its_own() {
    writes(
        &authentication::USER_INFO,
        json!({"username": "u", "extra": {"k": ["x", "y"], "z": []}}),
        bytes!(
            [0x0a, 1],
            "u",
            [0x12, 0],
            [0x22, 11, 0x0a, 1],
            "k",
            [0x12, 6, 0x0a, 1],
            "x",
            [0x0a, 1],
            "y",
            [0x22, 5, 0x0a, 1],
            "z",
            [0x12, 0],
        ),
    );
}

#[test]
fn inlined_structs_are_nested() {
    writes(
        &pod::CONFIG_MAP_KEY_SELECTOR,
        json!({"name": "cm", "key": "k", "optional": false}),
        bytes!([0x0a, 4, 0x0a, 2], "cm", [0x12, 1], "k", [0x18, 0]),
    );
}

#[test]
fn times_have_seconds_and_micro_times_microseconds() {
    // 2026-01-02T03:04:05Z is 1767323045 = 0x695735a5.
    let seconds = [0xa5, 0xeb, 0xdc, 0xca, 0x06];
    reads(
        &coordination::LEASE_SPEC,
        bytes!([0x1a, 10, 0x08], seconds, [0x10], [0xc7, 0xcd, 0x07]),
        json!({"acquireTime": "2026-01-02T03:04:05.000124Z"}),
    );
    writes(
        &coordination::LEASE_SPEC,
        json!({"renewTime": "2026-01-02T03:04:05.000124Z"}),
        bytes!([0x22, 10, 0x08], seconds, [0x10], [0xe0, 0xc8, 0x07]),
    );
    writes(
        &pod::CONTAINER_STATE_RUNNING,
        json!({"startedAt": "2026-01-02T03:04:05Z"}),
        bytes!([0x0a, 8, 0x08], seconds, [0x10, 0]),
    );
    writes(&pod::CONTAINER_STATE_RUNNING, json!({}), vec![0x0a, 0]);
}

#[test]
fn no_time_is_null_and_times_beyond_the_calendar_are_refused() {
    let of = &pod::CONTAINER_STATE_RUNNING;
    reads(of, vec![0x0a, 0], json!({"startedAt": null}));
    reads(of, vec![0x0a, 2, 0x10, 0], json!({"startedAt": "1970-01-01T00:00:00Z"}));
    let year_one = [0x80, 0x92, 0xb8, 0xc3, 0x98, 0xfe, 0xff, 0xff, 0xff, 0x01];
    reads(of, bytes!([0x0a, 11, 0x08], year_one), json!({"startedAt": null}));
    let far = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    fails(of, &bytes!([0x0a, 10, 0x08], far), "time 9223372036854775807 is out of range");
}

#[test]
fn quantities_are_text_and_embedded_json_is_json() {
    writes(
        &pod::RESOURCE_REQUIREMENTS,
        json!({"limits": {"cpu": "100m"}}),
        bytes!([0x0a, 13, 0x0a, 3], "cpu", [0x12, 6, 0x0a, 4], "100m"),
    );
    let fields = r#"{"f:spec":{"f:type":{}}}"#;
    reads(
        &meta::MANAGED_FIELDS_ENTRY,
        bytes!([0x3a, 26, 0x0a, 24], fields),
        json!({"fieldsV1": {"f:spec": {"f:type": {}}}}),
    );
    assert!(read(&meta::MANAGED_FIELDS_ENTRY, &bytes!([0x3a, 3, 0x0a, 1], "{")).is_err());
}

#[test]
fn pieces_of_a_message_are_joined_and_the_last_value_counts() {
    reads(
        &core::SERVICE,
        bytes!([0x12, 3, 0x1a, 1], "a", [0x12, 3, 0x22, 1], "b", [0x12, 3, 0x1a, 1], "c"),
        json!({"spec": {"clusterIP": "c", "type": "b"}}),
    );
}

#[test]
fn an_empty_list_is_not_told_from_none() {
    let of = &discovery::ENDPOINT;
    assert_eq!(write(of, &json!({"addresses": []})), write(of, &json!({"addresses": null})));
}

#[test]
fn unknown_fields_and_groups_are_skipped() {
    reads(
        &core::SERVICE_PORT,
        bytes!(
            [0xf8, 0x06, 1],
            [0xfa, 0x06, 1, 7],
            [0xf9, 0x06, 0, 0, 0, 0, 0, 0, 0, 0],
            [0xfd, 0x06, 0, 0, 0, 0],
            [0xfb, 0x06, 0x08, 1, 0x0b, 0x0c, 0xfc, 0x06],
            [0x18, 80],
        ),
        json!({"port": 80}),
    );
}

#[test]
fn malformed_bytes_are_refused() {
    let of = &core::SERVICE_PORT;
    fails(of, &[0x18], "unexpected EOF");
    fails(of, &[0x0a, 5, b'a'], "unexpected EOF");
    fails(of, &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], "unexpected EOF");
    fails(of, &[0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], "proto: integer overflow");
    fails(of, &[0x1a, 1, 80], "proto: wrong wireType = 2 for field Port");
    fails(of, &[0x08, 1], "proto: wrong wireType = 0 for field Name");
    fails(of, &[0x0c], "proto: wiretype end group for non-group");
    fails(of, &[0x0e], "proto: illegal wireType 6");
    fails(of, &[0x00, 0x00], "proto: illegal tag 0 (wire type 0)");
    fails(of, &[0xfb, 0x06].repeat(100), "proto: groups nested too deeply");
}

/// `metadata` of an object that has none, with the number 1: the fields that are no pointers, all zero.
const EMPTY_META: [u8; 18] = [0x0a, 16, 0x0a, 0, 0x12, 0, 0x1a, 0, 0x22, 0, 0x2a, 0, 0x32, 0, 0x38, 0, 0x42, 0];

/// The body of `kubectl create service clusterip web --tcp=80:8080`.
#[test]
fn a_service_is_read_and_written_as_kubectl_does() {
    let sent = hex(concat!(
        "6b3873000a0d0a02763112075365727669636512690a1f0a0377656212001a0022002a003200380042005a0a0a0361707012",
        "0377656212420a1b0a0738302d38303830120354435018502207080010903f1a002800120a0a0361707012037765621a0022",
        "09436c757374657249503a00420052005a00600068001a020a001a002200",
    ));
    let envelope = unwrap(&sent).expect("wrapped");
    assert_eq!((envelope.api_version.as_str(), envelope.kind.as_str()), ("v1", "Service"));
    let service = json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "type": "ClusterIP",
            "selector": {"app": "web"},
            "ports": [{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}],
        },
    });
    writes(&core::SERVICE, service, envelope.raw.to_vec());
    assert_eq!(wrap("v1", "Service", envelope.raw), sent);
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digit).collect()
}

#[test]
fn lists_and_watch_events_are_written() {
    let of = &core::LOCAL_OBJECT_REFERENCE;
    let list = json!({"metadata": {"resourceVersion": "7"}, "items": [{"name": "a"}, {"name": "b"}]});
    let raw = bytes!([0x0a, 7, 0x0a, 0, 0x12, 1], "7", [0x1a, 0], [0x12, 3, 0x0a, 1], "a", [0x12, 3, 0x0a, 1], "b");
    assert_eq!(write_list(of, &list), raw);
    let back = read_list(of, &raw).expect("well-formed");
    assert_eq!(back["items"], list["items"]);
    assert_eq!(back["metadata"]["resourceVersion"], "7");
    assert_eq!(write_watch_event("ADDED", b"x"), bytes!([0x0a, 5], "ADDED", [0x12, 3, 0x0a, 1], "x"));
}
