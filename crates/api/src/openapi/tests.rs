use std::collections::BTreeSet;

use crate::value::{Key, Value, json};

use super::*;
use crate::Look;
use crate::kinds::{self, KINDS};
use crate::proto::wire::{Reader, Wire};
use crate::schema::{Shape, core};

fn document(group: &str) -> Value {
    v3_document(KINDS, &[], group, "v1").expect("a known version")
}

/// The schema of a core type, and one of its properties without texts.
fn check(of: &str, property: &str, expect: Value) {
    let document = document("");
    let schema = &document["components"]["schemas"][format!("io.k8s.api.core.v1.{of}").as_str()];
    let mut found = schema["properties"][property].clone();
    found.unset("description");
    assert_eq!(found, expect, "{of}.{property}");
}

#[test]
fn fields_are_written_as_the_reference_server_does() {
    check("ServicePort", "port", json!({"type": "integer", "format": "int32", "default": 0}));
    check("ServicePort", "protocol", json!({"type": "string", "default": "TCP", "enum": ["SCTP", "TCP", "UDP"]}));
    check(
        "ServicePort",
        "targetPort",
        json!({"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"}]}),
    );
    check(
        "ServiceSpec",
        "ports",
        json!({
            "type": "array",
            "items": {"default": {}, "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.ServicePort"}]},
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "x-kubernetes-list-type": "map",
            "x-kubernetes-patch-merge-key": "port",
            "x-kubernetes-patch-strategy": "merge",
        }),
    );
    check(
        "ServiceSpec",
        "selector",
        json!({
            "type": "object",
            "additionalProperties": {"type": "string", "default": ""},
            "x-kubernetes-map-type": "atomic",
        }),
    );
    check(
        "ServiceSpec",
        "ipFamilies",
        json!({
            "type": "array",
            "items": {"type": "string", "default": "", "enum": ["", "IPv4", "IPv6"]},
            "x-kubernetes-list-type": "atomic",
        }),
    );
    check("Secret", "data", json!({"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}));
    check(
        "ResourceRequirements",
        "limits",
        json!({
            "type": "object",
            "additionalProperties": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
        }),
    );
    check(
        "Service",
        "spec",
        json!({"default": {}, "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.ServiceSpec"}]}),
    );
    check("ConfigMapKeySelector", "name", json!({"type": "string", "default": ""}));
}

#[test]
fn kinds_say_what_they_are_and_what_they_require() {
    let document = document("discovery.k8s.io");
    let schemas = &document["components"]["schemas"];
    let slice = &schemas["io.k8s.api.discovery.v1.EndpointSlice"];
    assert_eq!(
        slice["x-kubernetes-group-version-kind"],
        json!([{"group": "discovery.k8s.io", "version": "v1", "kind": "EndpointSlice"}])
    );
    assert_eq!(slice["required"], json!(["addressType"]));
    assert_eq!(slice["properties"]["kind"]["type"], "string");
    assert_eq!(schemas["io.k8s.api.discovery.v1.EndpointPort"]["x-kubernetes-map-type"], "atomic");
    assert_eq!(schemas["io.k8s.api.discovery.v1.EndpointSliceList"]["required"], json!(["items"]));
}

/// Every `$ref` within a value.
fn references(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            out.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|inner| references(inner, out));
        }
        Value::Array(items) => items.iter().for_each(|inner| references(inner, out)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let v2 = v2_json(KINDS, &[]);
    let documents =
        group_versions(KINDS).into_iter().filter_map(|(group, version)| v3_document(KINDS, &[], group, version));
    for document in documents.chain([v2]) {
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for reference in found {
            let pointer = reference.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }
}

#[test]
fn operations_have_names_of_their_own() {
    let v2 = v2_json(KINDS, &[]);
    let mut names = BTreeSet::new();
    for (url, path) in v2["paths"].as_object().expect("an object") {
        for (method, operation) in path.as_object().expect("an object") {
            if let Some(id) = operation.text_opt("operationId") {
                assert!(names.insert(id.to_owned()), "{method} {url}: {id}");
            }
        }
    }
    for id in [
        "readCoreV1NamespacedServiceStatus",
        "listCoreV1ServiceForAllNamespaces",
        "deleteDiscoveryV1CollectionNamespacedEndpointSlice",
        "createRbacAuthorizationV1ClusterRole",
        "createCoreV1NamespacedServiceAccountToken",
        "createCoreV1NamespacedPodEviction",
        "connectGetCoreV1NamespacedPodProxy",
    ] {
        assert!(names.contains(id), "{id}");
    }
}

#[test]
fn a_service_can_be_read_replaced_patched_and_deleted() {
    let path = &document("")["paths"]["/api/v1/namespaces/{namespace}/services/{name}"];
    let mut keys: Vec<&str> = path.as_object().expect("an object").keys().map(Key::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["delete", "get", "parameters", "patch", "put"]);
}

#[test]
fn kubectl_finds_field_validation_on_every_patch() {
    for kind in KINDS.iter().filter(|kind| kind.offers(crate::kinds::Verb::Patch)) {
        let document = v3_document(KINDS, &[], kind.group, kind.version).expect("a known version");
        let about = gvk(kind.group, kind.version, kind.kind);
        let paths = document["paths"].as_object().expect("an object");
        let patch = paths.values().filter_map(|path| path.get("patch"));
        let found = patch.filter(|operation| operation["x-kubernetes-group-version-kind"] == about);
        let named = |operation: &Value| operation.list("parameters").iter().any(|p| p["name"] == "fieldValidation");
        assert!(found.into_iter().any(named), "{}", kind.kind);
    }
}

#[test]
fn the_index_leads_to_every_version_by_a_hash() {
    let index = v3_index(KINDS, &[]);
    let url = index["paths"]["apis/discovery.k8s.io/v1"].text("serverRelativeURL");
    assert!(url.starts_with("/openapi/v3/apis/discovery.k8s.io/v1?hash="), "{url}");
    assert_eq!(index["paths"].as_object().map(Map::len), Some(9));
    assert_eq!(v3_document(KINDS, &[], "nosuch.example.com", "v1"), None);
}

#[test]
fn without_a_kind_its_types_are_not_there() {
    let few = [&kinds::LEASE];
    let document = v3_document(&few, &[], "coordination.k8s.io", "v1").expect("a known version");
    let schemas = &document["components"]["schemas"];
    assert!(schemas.get("io.k8s.api.coordination.v1.Lease").is_some());
    assert!(schemas.get("io.k8s.api.core.v1.Service").is_none());
}

/// The fields of a message with that number.
fn inside(raw: &[u8], number: u32) -> Vec<&[u8]> {
    let mut reader = Reader::new(raw);
    let mut found = Vec::new();
    while let Some((at, wire)) = reader.next().expect("well-formed") {
        if let (true, Wire::Bytes(bytes)) = (at == number, wire) {
            found.push(bytes);
        }
    }
    found
}

#[test]
fn the_protobuf_form_has_the_same_definitions() {
    let raw = v2_protobuf(KINDS, &[]);
    assert_eq!(inside(&raw, 1), [b"2.0"]);
    let definitions = inside(inside(&raw, 9)[0], 1);
    let json = v2_json(KINDS, &[]);
    assert_eq!(definitions.len(), json["definitions"].as_object().map_or(0, Map::len));
    let service = definitions.into_iter().find(|named| inside(named, 1) == [b"io.k8s.api.core.v1.Service"]);
    let schema = inside(service.expect("a definition"), 2)[0];
    assert_eq!(inside(inside(schema, 22)[0], 1), [b"object"]);
    let extension = inside(schema, 31)[0];
    assert_eq!(inside(extension, 1), [b"x-kubernetes-group-version-kind"]);
    let yaml = inside(inside(extension, 2)[0], 2)[0];
    assert_eq!(yaml, br#"[{"group":"","version":"v1","kind":"Service"}]"#);
}

#[test]
fn every_text_is_about_a_field_that_exists() {
    let mut types = Vec::new();
    KINDS.iter().for_each(|kind| reach(kind.schema, &mut types));
    for of in [
        &core::BINDING,
        &schema::authentication::TOKEN_REQUEST,
        &schema::meta::DELETE_OPTIONS,
        &schema::meta::STATUS,
        &schema::policy::EVICTION,
    ] {
        reach(of, &mut types);
    }
    reach(&schema::meta::LIST_META, &mut types);
    reach(&schema::autoscaling::SCALE, &mut types);
    for text in descriptions::all() {
        let about = types.iter().find(|of| descriptions::is_about(text, of));
        let about = about.unwrap_or_else(|| panic!("{} is no type", text.of));
        for (field, _) in text.fields {
            assert!(about.field(field).is_some(), "{}.{field}", text.of);
        }
    }
}

#[test]
fn what_makes_up_a_service_is_explained_to_the_last_field() {
    let mut types = Vec::new();
    for kind in [
        &kinds::SERVICE,
        &kinds::ENDPOINT_SLICE,
        &kinds::ENDPOINTS,
        &kinds::NAMESPACE,
        &kinds::SERVICE_CIDR,
        &kinds::IP_ADDRESS,
    ] {
        reach(kind.schema, &mut types);
    }
    for of in types {
        assert!(descriptions::of_type(of).is_some(), "{}", of.name);
        for field in of.fields {
            assert!(descriptions::of_field(of, field.name).is_some(), "{}.{}", of.name, field.name);
        }
    }
}

#[test]
fn workloads_say_how_their_fields_merge() {
    let document = document("apps");
    let schemas = &document["components"]["schemas"];
    let spec = &schemas["io.k8s.api.apps.v1.DeploymentSpec"];
    assert_eq!(spec["required"], json!(["selector", "template"]));
    assert_eq!(spec["properties"]["strategy"]["x-kubernetes-patch-strategy"], "retainKeys");
    let conditions = &schemas["io.k8s.api.apps.v1.DeploymentStatus"]["properties"]["conditions"];
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
    assert_eq!(schemas["io.k8s.api.apps.v1.DaemonSetStatus"]["required"].as_array().map(Vec::len), Some(4));
    let scale = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"];
    let autoscaling = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
    assert_eq!(scale["put"]["x-kubernetes-group-version-kind"], autoscaling);
    assert_eq!(scale["get"]["operationId"], "readAppsV1NamespacedDeploymentScale");
    assert_eq!(schemas["io.k8s.api.autoscaling.v1.Scale"]["x-kubernetes-group-version-kind"], json!([autoscaling]));
}

/// A type and all that it is made of.
fn reach(of: &'static Struct, out: &mut Vec<&'static Struct>) {
    if out.iter().any(|known| std::ptr::eq(*known, of)) {
        return;
    }
    out.push(of);
    for field in of.fields {
        let mut shape = &field.shape;
        while let Shape::List(item) | Shape::Map(item) = shape {
            shape = item;
        }
        if let Shape::Struct(inner) = shape {
            reach(inner, out);
        }
    }
}
