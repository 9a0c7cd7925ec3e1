//! Documents about the API itself: discovery, OpenAPI, version, metrics. Made once, answered from memory.

use std::net::SocketAddr;
use std::sync::OnceLock;

use bytes::Bytes;
use fairlead_api::schema::Gate;
use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind, Settings, discovery, openapi};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use http::request::Parts;
use http::{Method, Response, StatusCode};

use crate::auth::service_account::Tokens;
use crate::options::Query;
use crate::reply::{self, Body};
use crate::route::Discovery;
use crate::{Inner, negotiate, not_allowed, plain_form, unknown_resource};

/// The documents that are costly to make.
#[derive(Debug)]
pub(crate) struct Documents {
    kinds: Vec<&'static Kind>,
    open: Vec<Gate>,
    address: String,
    v2_json: OnceLock<Bytes>,
    v2_protobuf: OnceLock<Bytes>,
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

impl Documents {
    pub(crate) fn new(kinds: &[&'static Kind], settings: &Settings, address: SocketAddr) -> Documents {
        Documents {
            kinds: kinds.to_vec(),
            open: [Gate::ServiceTopology].into_iter().filter(|gate| settings.allows(*gate)).collect(),
            address: address.to_string(),
            v2_json: OnceLock::new(),
            v2_protobuf: OnceLock::new(),
        }
    }
}

/// Answers `/api`, `/apis` and below.
pub(crate) fn discovery(
    server: &Inner,
    wanted: &Discovery,
    parts: &Parts,
    query: &Query,
) -> Result<Response<Body>, Failure> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(not_allowed());
    }
    let documents = &server.documents;
    let kinds = &documents.kinds;
    if let Some(aggregated) = aggregated(parts, wanted)? {
        let document = match aggregated {
            Discovery::Core => discovery::aggregated_core(kinds),
            _ => discovery::aggregated_groups(kinds),
        };
        return Ok(cached(parts, AGGREGATED, document.to_string().into()));
    }
    let document = match wanted {
        Discovery::Core => Some(discovery::core_versions(kinds, &documents.address)),
        Discovery::Groups => Some(discovery::groups(kinds)),
        Discovery::Group(group) => discovery::group(kinds, group),
        Discovery::Version(group, version) => discovery::resources(kinds, group, version),
    };
    let document = document.ok_or_else(unknown_resource)?;
    Ok(reply::encode(200, &document, plain_form(parts, query)))
}

/// Whether the aggregated form was asked for first. Only `/api` and `/apis` have it.
fn aggregated<'a>(parts: &Parts, wanted: &'a Discovery) -> Result<Option<&'a Discovery>, Failure> {
    if !matches!(wanted, Discovery::Core | Discovery::Groups) {
        return Ok(None);
    }
    let accept = negotiate::text(&parts.headers, ACCEPT);
    for clause in accept.split(',').map(str::trim) {
        let asks = clause.contains("as=APIGroupDiscoveryList");
        if asks && clause.starts_with("application/json") && clause.contains("v=v2") && !clause.contains("v=v2beta1") {
            return Ok(Some(wanted));
        }
        if !asks && (clause.starts_with("application/json") || clause.starts_with("*/*")) {
            return Ok(None);
        }
    }
    if accept.is_empty() || accept.contains("application/vnd.kubernetes.protobuf") && !accept.contains("as=") {
        return Ok(None);
    }
    Err(Failure::new(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf",
    ))
}

/// Answers every path that is not a resource.
pub(crate) fn answer(server: &Inner, path: &str, parts: &Parts) -> Result<Response<Body>, Failure> {
    let documents = &server.documents;
    let kinds = &documents.kinds;
    let found = match path.trim_end_matches('/') {
        "/version" => json(parts, &discovery::version(&build())),
        // kubectl asks here before it says that it does not know a kind.
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions" => json(parts, &no_definitions()),
        "/.well-known/openid-configuration" => match server.access.authenticator.accounts.as_ref().and_then(issuer) {
            Some(configuration) => of_issuer("application/json", &configuration),
            None => return Ok(unknown_path()),
        },
        "/openid/v1/jwks" => match &server.access.authenticator.accounts {
            Some(tokens) => of_issuer("application/jwk-set+json", &tokens.jwks()),
            None => return Ok(unknown_path()),
        },
        "/openapi/v2" => openapi_v2(documents, parts),
        "/openapi/v3" => {
            cached(parts, "application/json", openapi::v3_index(kinds, &documents.open).to_string().into())
        }
        other => match other.strip_prefix("/openapi/v3/").and_then(|rest| openapi_v3(documents, rest)) {
            Some(document) => cached(parts, "application/json", document.to_string().into()),
            // The reference server says nothing at all about an API it has no document for.
            None if other.starts_with("/openapi/v3/") => reply::plain(404, ""),
            None => return Ok(unknown_path()),
        },
    };
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(not_allowed());
    }
    Ok(found)
}

fn unknown_path() -> Response<Body> {
    reply::plain(404, "404 page not found\n")
}

/// Returns what others must know to check tokens of ServiceAccounts (OpenID Connect Discovery 1.0,
/// 3). `None` if the issuer has no URL with https, by which clients could find the document.
fn issuer(tokens: &Tokens) -> Option<Value> {
    tokens.issuer.strip_prefix("https://").filter(|rest| !rest.is_empty() && !rest.contains(['?', '#']))?;
    Some(fairlead_api::json!({
        "issuer": tokens.issuer,
        "jwks_uri": tokens.jwks_uri(),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": tokens.algorithms(),
    }))
}

/// An answer of the issuer of tokens. Clients keep it for an hour, as kube-apiserver has them do.
fn of_issuer(media: &'static str, document: &Value) -> Response<Body> {
    let mut response = reply::respond(200, media, document.to_string().into(), false);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

/// We serve no kinds that are defined by objects.
fn no_definitions() -> Value {
    fairlead_api::json!({
        "kind": "CustomResourceDefinitionList",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"resourceVersion": "1"},
        "items": [],
    })
}

fn openapi_v3(documents: &Documents, path: &str) -> Option<Value> {
    let (group, version) = match path.split('/').collect::<Vec<_>>()[..] {
        ["api", version] => ("", version),
        ["apis", group, version] => (group, version),
        _ => return None,
    };
    openapi::v3_document(&documents.kinds, &documents.open, group, version)
}

fn openapi_v2(documents: &Documents, parts: &Parts) -> Response<Body> {
    let accept = negotiate::text(&parts.headers, ACCEPT);
    if openapi::V2_PROTOBUF_ACCEPTED.iter().any(|name| accept.contains(name)) {
        let bytes =
            documents.v2_protobuf.get_or_init(|| openapi::v2_protobuf(&documents.kinds, &documents.open).into());
        return cached(parts, openapi::V2_PROTOBUF, bytes.clone());
    }
    let text = documents.v2_json.get_or_init(|| openapi::v2_json(&documents.kinds, &documents.open).to_string().into());
    cached(parts, "application/json", text.clone())
}

fn json(parts: &Parts, document: &Value) -> Response<Body> {
    reply::encode(200, document, plain_form(parts, &Query::default()))
}

/// An answer the client may keep: named by its content, not sent again while that is the same.
fn cached(parts: &Parts, media: &'static str, text: Bytes) -> Response<Body> {
    let etag = format!("\"{:016X}\"", fingerprint(&text));
    let gzip = negotiate::text(&parts.headers, http::header::ACCEPT_ENCODING).contains("gzip");
    let mut response = if negotiate::text(&parts.headers, IF_NONE_MATCH) == etag {
        let mut response = reply::respond(304, media, Bytes::new(), false);
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        reply::respond(200, media, text, gzip)
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    if let Ok(value) = HeaderValue::from_str(&etag) {
        response.headers_mut().insert(ETAG, value);
    }
    response
}

/// FNV-1a: enough to tell one version of a document from another.
fn fingerprint(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What `/version` says of this build.
fn build() -> discovery::Build<'static> {
    discovery::Build {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("FAIRLEAD_COMMIT").unwrap_or("unknown"),
        date: option_env!("FAIRLEAD_DATE").unwrap_or("1970-01-01T00:00:00Z"),
        // Go's names of the machines, which clients know.
        platform: match std::env::consts::ARCH {
            "x86_64" => "linux/amd64",
            "aarch64" => "linux/arm64",
            _ => "linux/unknown",
        },
    }
}
