//! The types and requests we serve, as OpenAPI says it: version 3 (one document a group and version) for `kubectl explain`
//! and validation, version 2 (one document, also as protobuf) for what kubectl still asks there. All of it follows from the
//! kinds table and the schema tables; the texts are in [`descriptions`].

use crate::value::{Map, Value, json};

use crate::Kind;
use crate::discovery::{KUBERNETES, fingerprint, group_names, versions};
use crate::kinds::Subresource;
use crate::schema::{self, Gate, Struct};
use schemas::{Dialect, Schemas};

pub mod descriptions;
mod gnostic;
mod paths;
mod render;
mod schemas;

#[cfg(test)]
mod tests;

/// What clients write in `Accept` for [`v2_protobuf`]: the older name, which is no valid media type, and the present one.
pub const V2_PROTOBUF_ACCEPTED: [&str; 2] = ["application/com.github.proto-openapi.spec.v2@v1.0+protobuf", V2_PROTOBUF];

/// What to answer in `Content-Type` for [`v2_protobuf`], whichever name was asked for: kubectl cannot parse the older one.
pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `/openapi/v3`: where the documents are. The hash in the URL changes with the document, so clients may keep it for ever.
pub fn v3_index(kinds: &[&'static Kind], open: &[Gate]) -> Value {
    let mut documents = Map::new();
    for (group, version) in group_versions(kinds) {
        let Some(document) = v3_document(kinds, open, group, version) else { continue };
        let path = root(group, version);
        let hash = fingerprint(document.to_string().as_bytes());
        let url = format!("/openapi/v3/{path}?hash={hash:016X}");
        documents.insert(path, json!({"serverRelativeURL": url}));
    }
    json!({"paths": documents})
}

/// `/openapi/v3/api/v1`, `/openapi/v3/apis/GROUP/VERSION`, if there is such a version.
pub fn v3_document(kinds: &[&'static Kind], open: &[Gate], group: &str, version: &str) -> Option<Value> {
    let here: Vec<&'static Kind> =
        kinds.iter().copied().filter(|kind| kind.group == group && kind.version == version).collect();
    if here.is_empty() {
        return None;
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": KUBERNETES},
        "paths": render::v3(&paths::of(&here)),
        "components": {
            "schemas": schemas(Dialect::V3, &here, kinds, open),
            "securitySchemes": {"BearerToken": bearer_token()},
        },
    }))
}

/// `/openapi/v2` as JSON.
pub fn v2_json(kinds: &[&'static Kind], open: &[Gate]) -> Value {
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": KUBERNETES},
        "paths": render::v2(&paths::of(kinds)),
        "definitions": schemas(Dialect::V2, kinds, kinds, open),
        "securityDefinitions": {"BearerToken": bearer_token()},
        "security": [{"BearerToken": []}],
    })
}

/// `/openapi/v2` as [`V2_PROTOBUF`], the only form kubectl asks for.
pub fn v2_protobuf(kinds: &[&'static Kind], open: &[Gate]) -> Vec<u8> {
    gnostic::document(&v2_json(kinds, open))
}

fn bearer_token() -> Value {
    json!({
        "type": "apiKey",
        "description": "Bearer token authentication",
        "name": "authorization",
        "in": "header",
    })
}

/// A type as other documents name it.
fn type_name(of: &Struct) -> String {
    format!("{}.{}", of.package, of.name)
}

/// The type of a list of objects.
fn list_name(of: &Struct) -> String {
    format!("{}List", type_name(of))
}

/// `api/v1`, `apis/discovery.k8s.io/v1`.
fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn group_versions(kinds: &[&'static Kind]) -> Vec<(&'static str, &'static str)> {
    let groups = std::iter::once("").chain(group_names(kinds));
    groups.flat_map(|group| versions(kinds, group).into_iter().map(move |version| (group, version))).collect()
}

/// The types of these kinds and all that they reach. `all` says in which groups the types of the protocol are at home.
fn schemas(dialect: Dialect, here: &[&'static Kind], all: &[&'static Kind], open: &[Gate]) -> Map {
    let mut out = Schemas::new(dialect, open);
    for kind in here {
        out.object(kind.schema, &[gvk(kind.group, kind.version, kind.kind)]);
        if !kind.store_prefix.is_empty() {
            let list = gvk(kind.group, kind.version, &format!("{}List", kind.kind));
            out.list(kind.schema, &list);
        }
        for subresource in kind.subresources {
            match subresource {
                Subresource::Binding => out.object(&schema::core::BINDING, &[gvk("", "v1", "Binding")]),
                Subresource::Eviction => {
                    out.object(&schema::policy::EVICTION, &[gvk("policy", "v1", "Eviction")]);
                }
                Subresource::Token => {
                    let request = gvk("authentication.k8s.io", "v1", "TokenRequest");
                    out.object(&schema::authentication::TOKEN_REQUEST, &[request]);
                }
                Subresource::Scale => {
                    out.object(&schema::autoscaling::SCALE, &[gvk("autoscaling", "v1", "Scale")]);
                }
                Subresource::Status
                | Subresource::Finalize
                | Subresource::Proxy
                | Subresource::Log
                | Subresource::Exec
                | Subresource::Attach
                | Subresource::PortForward => {}
            }
        }
    }
    let everywhere: Vec<Value> =
        group_versions(all).into_iter().map(|(group, version)| gvk(group, version, "DeleteOptions")).collect();
    out.object(&schema::meta::DELETE_OPTIONS, &everywhere);
    out.object(&schema::meta::STATUS, &[gvk("", "v1", "Status")]);
    out.patch();
    out.finish()
}

/// Which kind a type or a request is about.
fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}
