//! Can any text break the four kinds of patches?
#![no_main]

use fairlead_api::managed::{self, Writer};
use fairlead_api::{decode, json, kinds, patch};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|input: &[u8]| {
    let Some((first, text)) = input.split_first() else { return };
    let (schema, object) = (kinds::SERVICE.schema, object());
    let patched = match first % 4 {
        0 => patch::json(&object, text).map(|patched| patched.value),
        1 => patch::merge(&object, text).map(|patched| patched.value),
        2 => patch::strategic(schema, &object, text).map(|patched| patched.value),
        _ => {
            let Ok(config) = json::parse(text) else { return };
            let writer = Writer { manager: "m", api_version: "v1", subresource: "", now: "2026-01-02T03:04:05Z" };
            managed::apply(schema, Some(&object), &config.value, first & 4 != 0, writer)
        }
    };
    let Ok(patched) = patched else { return };
    let Ok(mut decoded) = decode::decode(schema, patched) else { return };
    let writer = Writer { manager: "n", api_version: "v1", subresource: "", now: "2026-01-02T03:04:06Z" };
    managed::update(schema, Some(&object), &mut decoded.value, writer);
});

fn object() -> Value {
    let fields = json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}});
    json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": {
            "name": "web", "namespace": "default", "resourceVersion": "7", "finalizers": ["example.com/a", "example.com/b"],
            "labels": {"app": "web"}, "annotations": {"note": "text"},
            "managedFields": [{
                "manager": "m", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-02T03:04:05Z",
                "fieldsType": "FieldsV1", "fieldsV1": fields,
            }],
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"], "selector": {"app": "web"},
            "ports": [
                {"name": "a", "port": 80, "protocol": "TCP", "targetPort": 8080},
                {"name": "b", "port": 53, "protocol": "UDP", "targetPort": "dns"},
            ],
        },
        "status": {"loadBalancer": {}},
    })
}
