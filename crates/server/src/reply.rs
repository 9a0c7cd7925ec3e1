//! Answers: what an operation found, turned into HTTP in the form the client asked for.

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind, Look, proto};
use fairlead_runtime::Permit;
use fairlead_store::Entry;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Incoming;

use crate::negotiate::{Form, Media, Shape};
use crate::table;

mod list;
#[cfg(test)]
mod tests;

/// The body of every answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What an operation has to say.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) payload: Payload,
}

/// The content of an answer.
#[derive(Debug)]
pub(crate) enum Payload {
    /// One object of a kind, as text with kind and apiVersion.
    Object(&'static Kind, Bytes),
    /// A list of objects of a kind.
    List(List),
    /// A document of ours that has no other form: discovery, Status.
    Document(Value),
}

/// A list and its metadata.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) kind: &'static Kind,
    pub(crate) revision: String,
    pub(crate) continue_token: String,
    pub(crate) remaining: Option<i64>,
    pub(crate) entries: Vec<Arc<Entry>>,
}

impl Reply {
    pub(crate) fn object(code: u16, kind: &'static Kind, text: Bytes) -> Reply {
        Reply { code, payload: Payload::Object(kind, text) }
    }
    pub(crate) fn document(code: u16, document: Value) -> Reply {
        Reply { code, payload: Payload::Document(document) }
    }
}

/// What HEAD is answered: how long the answer to GET is, and nothing of it. A client of HTTP/2 takes a body for a mistake.
pub(crate) fn without_body(answer: Response<Body>) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    if let Some(length) = http_body::Body::size_hint(&body).exact() {
        parts.headers.entry(CONTENT_LENGTH).or_insert(HeaderValue::from(length));
    }
    Response::from_parts(parts, Empty::new().boxed_unsync())
}

/// Renders an answer. `now` is in seconds since 1970, for the ages of tables.
pub(crate) fn render(reply: Reply, form: Form, include: table::Include, now: i64) -> Result<Response<Body>, Failure> {
    let code = reply.code;
    let text: Bytes = match (reply.payload, form.shape) {
        (Payload::Document(value), _) => return Ok(encode(code, &value, form)),
        (Payload::Object(_, text), Shape::Object) if form.media == Media::Json && !form.pretty => text,
        (Payload::Object(kind, text), Shape::Object) if form.media == Media::Protobuf => {
            return Ok(protobuf(code, object_protobuf(kind, &parse(&text)?)));
        }
        (Payload::Object(_, text), Shape::Object) => return Ok(encode(code, &parse(&text)?, form)),
        (Payload::Object(kind, text), Shape::Table(version)) => {
            let object = parse(&text)?;
            let revision = object.at("metadata").text("resourceVersion").to_owned();
            let table = table::table(kind, version, &revision, std::slice::from_ref(&object), include, now);
            return Ok(encode(code, &table, form));
        }
        (Payload::Object(_, text), Shape::Metadata(version) | Shape::MetadataList(version)) => {
            return Ok(encode(code, &table::metadata(&parse(&text)?, version), form));
        }
        (Payload::List(list), _) => return list::render(code, list, form, include, now),
    };
    Ok(respond(code, "application/json", text, form.gzip))
}

fn parse(text: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(text).map_err(|error| Failure::internal(format!("a stored object cannot be read: {error}")))
}

fn set_paging(metadata: &mut fairlead_api::value::Map, list: &List) {
    if !list.continue_token.is_empty() {
        metadata.insert("continue", list.continue_token.clone().into());
    }
    if let Some(remaining) = list.remaining {
        metadata.insert("remainingItemCount", remaining.into());
    }
}

/// One object in its protobuf wrapper.
pub(crate) fn object_protobuf(kind: &Kind, object: &Value) -> Vec<u8> {
    proto::wrap(&kind.api_version(), kind.kind, &proto::write(kind.schema, object))
}

/// A document in JSON or YAML.
pub(crate) fn encode(code: u16, value: &Value, form: Form) -> Response<Body> {
    match form.media {
        Media::Yaml => {
            let text = serde_saphyr::to_string(value).unwrap_or_default();
            respond(code, "application/yaml", text.into(), form.gzip)
        }
        Media::Protobuf if value.text("kind") == "Status" => {
            let raw = proto::write(&fairlead_api::schema::meta::STATUS, value);
            protobuf(code, proto::wrap("v1", "Status", &raw))
        }
        _ if form.pretty => {
            let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
            text.push(b'\n');
            respond(code, "application/json", text.into(), form.gzip)
        }
        _ => {
            let mut text = serde_json::to_vec(value).unwrap_or_default();
            text.push(b'\n');
            respond(code, "application/json", text.into(), form.gzip)
        }
    }
}

fn protobuf(code: u16, bytes: Vec<u8>) -> Response<Body> {
    respond(code, "application/vnd.kubernetes.protobuf", bytes.into(), false)
}

/// Smaller answers are not worth the time; the reference server's own threshold.
const GZIP_FROM: usize = 128 * 1024;

/// A complete answer.
pub(crate) fn respond(code: u16, media: &'static str, text: Bytes, gzip: bool) -> Response<Body> {
    let compress = gzip && text.len() >= GZIP_FROM;
    let text = if compress { compressed(&text, flate2::Compression::fast()) } else { text };
    let mut response = Response::new(Full::new(text).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if compress {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    response
}

/// Text as gzip has it.
pub(crate) fn compressed(text: &[u8], level: flate2::Compression) -> Bytes {
    let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(text.len() / 4), level);
    match encoder.write_all(text).and_then(|()| encoder.finish()) {
        Ok(bytes) => bytes.into(),
        Err(_) => Bytes::copy_from_slice(text),
    }
}

/// A failure as an answer.
pub(crate) fn failure(failure: &Failure, form: Form) -> Response<Body> {
    let mut response = encode(failure.code, &failure.status(), form);
    let retry = failure.details.as_ref().map_or(0, |details| details.int("retryAfterSeconds"));
    if retry > 0 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry));
    }
    response
}

/// Plain text.
pub(crate) fn plain(code: u16, text: impl Into<Bytes>) -> Response<Body> {
    respond(code, "text/plain; charset=utf-8", text.into(), false)
}

/// Returns the body of an answer of a Pod or a Node. The permit is held until the body ends. A body
/// that breaks off ends early: its status has been sent, so the client cannot be told.
pub(crate) fn passed_on(body: Incoming, permit: Permit) -> Body {
    let frames = futures_util::stream::unfold((body, permit), |(mut body, permit)| async move {
        let frame = body.frame().await?.ok()?;
        Some((Ok(frame), (body, permit)))
    });
    StreamBody::new(frames).boxed_unsync()
}
