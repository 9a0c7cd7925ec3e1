use crate::value::{Value, json};
use proptest::prelude::*;

use super::*;
use crate::schema::core::SERVICE;
use crate::schema::discovery::ENDPOINT_SLICE;

fn object() -> Value {
    json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": {"name": "s", "labels": {"l1": "v1", "l2": "v2"}, "finalizers": ["a", "b"]},
        "spec": {
            "ports": [{"name": "a", "protocol": "TCP", "port": 80}, {"name": "b", "protocol": "TCP", "port": 443}],
            "selector": {"app": "a", "tier": "f"}, "type": "ClusterIP",
        },
    })
}

/// The value at a pointer after a patch, or the code and message of its failure.
fn outcome(patched: Result<Patched, Failure>, pointer: &str) -> Value {
    match patched {
        Ok(patched) => patched.value.pointer(pointer).cloned().unwrap_or_default(),
        Err(failure) => json!([failure.code, failure.reason, failure.message]),
    }
}

const REJECTED: &str = "the server rejected our request due to an error in our request";

#[track_caller]
fn check_json(operations: Value, pointer: &str, expect: Value) {
    assert_eq!(outcome(json(&object(), operations.to_string().as_bytes()), pointer), expect);
}

#[track_caller]
fn check_merge(patch: &str, pointer: &str, expect: Value) {
    assert_eq!(outcome(merge(&object(), patch.as_bytes()), pointer), expect);
}

#[track_caller]
fn check_strategic(patch: Value, pointer: &str, expect: Value) {
    assert_eq!(outcome(strategic(&SERVICE, &object(), patch.to_string().as_bytes()), pointer), expect);
}

fn one(op: &str, path: &str, value: Value) -> Value {
    json!([{"op": op, "path": path, "value": value}])
}

#[test]
fn json_operations_change_objects_and_lists() {
    check_json(one("replace", "/spec/type", json!("NodePort")), "/spec/type", json!("NodePort"));
    check_json(one("add", "/metadata/finalizers/0", json!("z")), "/metadata/finalizers", json!(["z", "a", "b"]));
    check_json(one("add", "/metadata/finalizers/-", json!("z")), "/metadata/finalizers", json!(["a", "b", "z"]));
    check_json(one("remove", "/metadata/finalizers/0", json!(null)), "/metadata/finalizers", json!(["b"]));
    check_json(one("add", "/metadata/labels/x.y~1z~0", json!("q")), "/metadata/labels/x.y~1z~0", json!("q"));
    check_json(
        json!([{"op": "move", "from": "/metadata/labels/l1", "path": "/metadata/labels/l3"}]),
        "/metadata/labels",
        json!({"l2": "v2", "l3": "v1"}),
    );
    check_json(json!([{"op": "copy", "from": "/metadata/labels/l1", "path": "/spec/type"}]), "/spec/type", json!("v1"));
    check_json(one("replace", "", json!({"a": 1})), "", json!({"a": 1}));
    check_json(json!([]), "/spec/type", json!("ClusterIP"));
    check_json(json!(null), "/spec/type", json!("ClusterIP"));
}

#[test]
fn json_operations_are_laxer_than_the_rfc() {
    check_json(one("replace", "/spec/absent", json!(1)), "/spec/absent", json!(1));
    check_json(one("test", "/spec/absent", json!(null)), "/spec/type", json!("ClusterIP"));
    check_json(one("remove", "/metadata/finalizers/-1", json!(null)), "/metadata/finalizers", json!(["a"]));
    check_json(one("add", "/metadata/finalizers/-1", json!("z")), "/metadata/finalizers", json!(["a", "b", "z"]));
    check_json(one("replace", "/spec/ports/00/port", json!(1)), "/spec/ports/0/port", json!(1));
    check_json(one("add", "x/spec", json!(1)), "/spec", json!(1));
    check_json(json!([{"op": "copy", "from": "/spec/absent", "path": "/spec/type"}]), "/spec/type", json!(null));
}

#[test]
fn json_operations_that_cannot_be_done_reject_the_patch() {
    for operations in [
        one("remove", "/spec/ports/7", json!(null)),
        one("remove", "/spec/absent", json!(null)),
        one("remove", "spec", json!(null)),
        one("remove", "", json!(null)),
        one("add", "", json!({})),
        one("add", "/spec/absent/below", json!(1)),
        one("add", "/spec/ports/3", json!(1)),
        one("add", "/spec/ports/x", json!(1)),
        one("replace", "/spec/ports/2", json!(1)),
        one("replace", "", json!("x")),
        one("test", "/spec/type", json!("x")),
        one("test", "/spec/ports/9", json!(null)),
        one("bogus", "/spec", json!(1)),
        json!([{"op": "move", "from": "/metadata/labels/zz", "path": "/metadata/labels/l3"}]),
        json!([{"op": "add", "value": 1}]),
        json!([{}]),
        json!([null]),
    ] {
        check_json(operations, "", json!([422, "Invalid", REJECTED]));
    }
}

#[test]
fn json_patches_that_are_none_are_bad_requests() {
    let prefix = "error decoding patch: json: cannot unmarshal";
    for (patch, why) in [
        (json!({"op": "remove"}), format!("{prefix} object into Go value of type []handlers.jsonPatchOp")),
        (json!([1]), format!("{prefix} number into Go value of type handlers.jsonPatchOp")),
        (json!([{"op": 1}]), format!("{prefix} number into Go struct field jsonPatchOp.op of type string")),
    ] {
        check_json(patch, "", json!([400, "BadRequest", why]));
    }
    let failure = json(&object(), b"{").expect_err("a failure");
    assert_eq!(failure.message, "error decoding patch: unexpected end of JSON input");
}

#[test]
fn json_patches_are_bounded() {
    let many = Value::Array(vec![json!({"op": "test", "path": "/spec/zz", "value": null}); 10_001]);
    let message = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    check_json(many, "", json!([413, "RequestEntityTooLarge", message]));
    let doubling = json!({"op": "copy", "from": "/metadata", "path": "/metadata/labels"});
    check_json(Value::Array(vec![doubling; 1000]), "", json!([422, "Invalid", REJECTED]));
}

#[test]
fn doubts_about_a_patch_are_told() {
    let patch = json!([{"op": "test", "path": "/spec/zz", "value": null, "x": 1}]).to_string();
    assert_eq!(json(&object(), patch.as_bytes()).expect("patched").doubts, ["json patch unknown field \"[0].x\""]);
    let patch = br#"{"spec":{"type":"NodePort","type":"ClusterIP"}}"#;
    assert_eq!(merge(&object(), patch).expect("patched").doubts, ["duplicate field \"spec.type\""]);
    assert_eq!(strategic(&SERVICE, &object(), patch).expect("patched").doubts, ["duplicate field \"spec.type\""]);
}

#[test]
fn merge_patches_replace_descend_and_remove() {
    check_merge(r#"{"spec":{"type":"NodePort"}}"#, "/spec/type", json!("NodePort"));
    check_merge(r#"{"metadata":{"labels":{"l1":null}}}"#, "/metadata/labels", json!({"l2": "v2"}));
    check_merge(r#"{"spec":{"ports":[{"port":1}]}}"#, "/spec/ports", json!([{"port": 1}]));
    check_merge(r#"{"spec":{"new":{"a":null,"b":1}}}"#, "/spec/new", json!({"b": 1}));
    check_merge(r#"{"spec":{"type":{"a":1}}}"#, "/spec/type", json!({"a": 1}));
    check_merge(r#"{"spec":null}"#, "/spec", json!(null));
    check_merge("{}", "/spec/type", json!("ClusterIP"));
}

#[test]
fn merge_patches_must_be_objects() {
    let prefix = "error decoding patch: ";
    let kinds = |kind| format!("{prefix}json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}");
    check_merge("\"x\"", "", json!([400, "BadRequest", kinds("string")]));
    check_merge("[1]", "", json!([400, "BadRequest", kinds("array")]));
    check_merge("{", "", json!([400, "BadRequest", format!("{prefix}unexpected end of JSON input")]));
    check_merge("null", "", json!([400, "BadRequest", "Invalid JSON Patch"]));
}

#[test]
fn keys_are_sorted_where_a_patch_reaches() {
    let patched = merge(&object(), br#"{"spec":{"z":1,"b":2}}"#).expect("patched");
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&patched.value), "apiVersion kind metadata spec");
    assert_eq!(keys(&patched.value["spec"]), "b ports selector type z");
    assert_eq!(keys(&patched.value["metadata"]), "name labels finalizers");
    let operations = one("replace", "/spec/ports/0/port", json!("x"));
    let patched = json(&object(), operations.to_string().as_bytes()).expect("patched");
    assert_eq!(keys(&patched.value["spec"]["ports"][0]), "name port protocol");
    assert_eq!(keys(&patched.value["spec"]["ports"][1]), "name protocol port");
}

#[test]
fn strategic_patches_merge_lists_by_key() {
    let ports = |patch: Value, expect: Value| check_strategic(json!({"spec": {"ports": patch}}), "/spec/ports", expect);
    let (a, b) = (&object()["spec"]["ports"][0], &object()["spec"]["ports"][1]);
    ports(json!([{"port": 90, "name": "c"}]), json!([{"port": 90, "name": "c"}, a, b]));
    ports(json!([{"port": 80, "protocol": "UDP"}]), json!([{"name": "a", "protocol": "UDP", "port": 80}, b]));
    ports(json!([{"port": 80, "$patch": "delete"}]), json!([b]));
    ports(json!([{"$patch": "replace"}, {"port": 7}]), json!([{"port": 7}]));
    ports(json!([{"port": 80, "name": null}]), json!([{"protocol": "TCP", "port": 80}, b]));
    check_strategic(json!({"spec": {"ports": null}}), "/spec/ports", json!(null));
}

#[test]
fn strategic_patches_merge_plain_lists() {
    let path = "/metadata/finalizers";
    check_strategic(json!({"metadata": {"finalizers": ["c", "a"]}}), path, json!(["c", "a", "b"]));
    check_strategic(json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}), path, json!(["b"]));
    check_strategic(
        json!({"metadata": {"$setElementOrder/finalizers": ["c", "b", "a"], "finalizers": ["c"]}}),
        path,
        json!(["c", "b", "a"]),
    );
}

#[test]
fn strategic_patches_order_lists() {
    let (a, b) = (&object()["spec"]["ports"][0], &object()["spec"]["ports"][1]);
    let order = |order: Value, ports: Value| {
        let mut spec = json!({"$setElementOrder/ports": order});
        if !ports.is_null() {
            spec["ports"] = ports;
        }
        json!({"spec": spec})
    };
    let path = "/spec/ports";
    check_strategic(order(json!([{"port": 443}, {"port": 80}]), json!(null)), path, json!([b, a]));
    check_strategic(
        order(json!([{"port": 1}, {"port": 80}, {"port": 443}]), json!([{"port": 1}])),
        path,
        json!([{"port": 1}, a, b]),
    );
    check_strategic(order(json!([{"port": 443}]), json!([{"port": 80, "$patch": "delete"}])), path, json!([b]));
    let message = "The order in patch list:\n[map[port:443] map[port:80]]\n doesn't match $setElementOrder list:\n[map[port:80]]\n";
    check_strategic(order(json!([{"port": 80}]), json!([{"port": 443}, {"port": 80}])), "", json!([500, "", message]));
}

#[test]
fn strategic_directives_replace_delete_and_retain() {
    check_strategic(
        json!({"spec": {"selector": {"$patch": "replace", "q": "r"}}}),
        "/spec/selector",
        json!({"q": "r"}),
    );
    check_strategic(json!({"spec": {"selector": {"$patch": "delete"}}}), "/spec/selector", json!({}));
    check_strategic(json!({"spec": {"fresh": {"$patch": "delete"}}}), "/spec/fresh", json!(null));
    check_strategic(json!({"spec": {"selector": {"app": null}}}), "/spec/selector", json!({"tier": "f"}));
    check_strategic(json!({"$patch": "delete"}), "", json!({}));
    check_strategic(json!({"spec": {"$retainKeys": ["type"], "type": "X"}}), "/spec", json!({"type": "X"}));
}

#[test]
fn broken_strategic_patches_fail_as_they_do_elsewhere() {
    let ports = |patch: Value| json!({"spec": {"ports": patch}});
    for (patch, code, reason, message) in [
        (
            ports(json!([{"targetPort": 5}])),
            500,
            "",
            "map: map[targetPort:5] does not contain declared merge key: port",
        ),
        (
            ports(json!([{"port": 80, "$patch": "merge"}])),
            500,
            "",
            "merging lists cannot yet be specified in the patch",
        ),
        (ports(json!([{"port": 80, "$patch": "x"}])), 500, "", "unknown patch type: x in map: map[$patch:x port:80]"),
        (json!({"spec": {"$patch": "merge2"}}), 500, "", "unknown patch type: merge2 in map: map[$patch:merge2]"),
        (
            json!({"spec": {"$retainKeys": ["ports"], "type": "X"}}),
            400,
            "BadRequest",
            "invalid patch format of retainKeys",
        ),
        (json!({"spec": {"$retainKeys": 1}}), 400, "BadRequest", "invalid patch format of retainKeys"),
        (json!({"spec": {"$setElementOrder": []}}), 400, "BadRequest", "invalid patch format of setElementOrder list"),
        (
            json!({"spec": {"$deleteFromPrimitiveList": []}}),
            400,
            "BadRequest",
            "invalid patch format of primitive list",
        ),
        (json!({"spec": {"$setElementOrder/ports": "x"}}), 500, "", "expected a []interface {}, but received a string"),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [80]}}),
            500,
            "",
            "list element types are not identical: [[a b] [80]]",
        ),
        (
            ports(json!([[]])),
            500,
            "",
            "list element types are not identical: [[map[name:a port:80 protocol:TCP] map[name:b port:443 protocol:TCP]] [[]]]",
        ),
        (json!([]), 400, "BadRequest", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ] {
        check_strategic(patch, "", json!([code, reason, message]));
    }
}

#[test]
fn lists_without_a_key_take_the_place_of_the_old_one() {
    let slice = json!({"endpoints": [{"addresses": ["10.0.0.1"]}]});
    let patch = json!({"endpoints": [{"addresses": ["10.0.0.2"]}]});
    let patched = strategic(&ENDPOINT_SLICE, &slice, patch.to_string().as_bytes()).expect("patched");
    assert_eq!(patched.value, patch);
    let ordered = json!({"$setElementOrder/endpoints": [{"addresses": []}]});
    assert_eq!(strategic(&ENDPOINT_SLICE, &slice, ordered.to_string().as_bytes()).expect_err("a failure").code, 500);
}

#[test]
fn a_result_that_cannot_be_decoded_is_invalid_without_a_name() {
    let patched = merge(&json!({"b": 1}), br#"{"a":2}"#).expect("patched");
    let failure = patched.undecodable("why");
    assert_eq!((failure.code, failure.reason), (422, "Invalid"));
    assert_eq!(failure.message, r#" "" is invalid: patch: Invalid value: "{\"a\":2,\"b\":1}": why"#);
    let patch = json!({"spec": {"ports": {"port": 80}}}).to_string();
    let failure = strategic(&SERVICE, &object(), patch.as_bytes()).expect("patched").undecodable("why");
    let expect =
        r#" "" is invalid: patch: Invalid value: "map[spec:map[ports:map[port:80]]]": cannot restore slice from map"#;
    assert_eq!(failure.message, expect);
}

/// Patches with directives in all kinds of places.
fn patches() -> impl Strategy<Value = Value> {
    let names = [
        "metadata",
        "spec",
        "ports",
        "port",
        "finalizers",
        "labels",
        "selector",
        "$patch",
        "$retainKeys",
        "$setElementOrder/ports",
        "$setElementOrder/finalizers",
        "$setElementOrder",
        "$deleteFromPrimitiveList/finalizers",
        "$deleteFromPrimitiveList/ports",
        "op",
        "path",
        "from",
        "value",
    ];
    let name = proptest::sample::select(names.to_vec()).prop_map(str::to_owned);
    let words = [
        "replace",
        "delete",
        "merge",
        "add",
        "remove",
        "copy",
        "move",
        "test",
        "/spec/ports/-1",
        "/spec",
        "",
        "a",
        "port",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        (-3..500i64).prop_map(Value::from),
        proptest::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_patch_makes_it_panic(patch in patches(), other in patches(), bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
        for target in [&object(), &other] {
            for patch in [patch.to_string().into_bytes(), bytes.clone()] {
                let _ = json(target, &patch);
                let _ = merge(target, &patch);
                if let Ok(patched) = strategic(&SERVICE, target, &patch) {
                    patched.undecodable("why");
                }
            }
        }
    }

    #[test]
    fn merging_a_patch_twice_is_merging_it_once(patch in patches()) {
        if let Ok(once) = merge(&object(), patch.to_string().as_bytes()) {
            let twice = merge(&once.value, patch.to_string().as_bytes()).expect("merged");
            prop_assert_eq!(twice.value, once.value);
        }
    }
}
