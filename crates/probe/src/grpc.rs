//! A look by gRPC: `grpc.health.v1.Health/Check` over HTTP/2 without TLS. The two messages have one field each, so they are
//! written and read here by hand.

use std::io;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinSet;

use crate::http::told;
use crate::{Outcome, Stream, dial};
use message::Health;

mod message;

/// The most that is read of an answer, which has a few bytes.
const ANSWER: usize = 4 << 10;
/// The longest list of headers.
const HEADERS: u32 = 16 << 10;
/// What gRPC calls its codes.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];
const INTERNAL: usize = 13;
const UNIMPLEMENTED: usize = 12;
const UNKNOWN: usize = 2;

/// Looks once.
pub(crate) async fn look<D, F, T>(host: &str, port: u16, service: &str, dial: &D) -> Outcome
where
    D: Fn(String, u16) -> F,
    F: Future<Output = io::Result<T>>,
    T: Stream,
{
    let address = dial::joined(host, port);
    let stream = match dial(host.to_owned(), port).await {
        Ok(stream) => stream,
        Err(error) => {
            let why = dial::told(host, port, &error);
            return Outcome::Failure(format!("error: failed to connect service at {address:?}: {why}"));
        }
    };
    match call(stream, &address, service).await {
        Ok(Health::Serving) => Outcome::Success,
        Ok(other) => Outcome::Failure(format!("service unhealthy (responded with {:?})", other.to_string())),
        Err(Refusal { code: UNIMPLEMENTED, message }) => Outcome::Failure(format!(
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {message}"
        )),
        Err(Refusal { code, message }) => {
            let code = CODES.get(code).copied().unwrap_or("Unknown");
            Outcome::Failure(format!("error: health rpc probe failed: rpc error: code = {code} desc = {message}"))
        }
    }
}

/// Why there is no answer.
struct Refusal {
    code: usize,
    message: String,
}

impl Refusal {
    fn unavailable(error: &hyper::Error) -> Refusal {
        Refusal { code: 14, message: told(error) }
    }

    fn internal(message: &str) -> Refusal {
        Refusal { code: INTERNAL, message: message.to_owned() }
    }
}

async fn call<T: Stream>(stream: T, address: &str, service: &str) -> Result<Health, Refusal> {
    // The connection ends with this set.
    let mut tasks = JoinSet::new();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.max_header_list_size(HEADERS);
    let handshake = builder.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| Refusal::unavailable(&error))?;
    tasks.spawn(connection);
    let request = Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .header(header::USER_AGENT, "kube-probe/fairlead")
        .body(Full::new(Bytes::from(message::request(service))))
        .map_err(|error| Refusal::internal(&error.to_string()))?;
    let response = sender.send_request(request).await.map_err(|error| Refusal::unavailable(&error))?;
    read(response).await
}

async fn read(response: Response<Incoming>) -> Result<Health, Refusal> {
    let (head, mut body) = response.into_parts();
    let (mut data, mut status) = (Vec::new(), status(&head.headers));
    if status.is_none() && head.status != StatusCode::OK {
        return Err(foreign(head.status));
    }
    while status.is_none() {
        let Some(frame) = body.frame().await else { break };
        let frame = frame.map_err(|error| Refusal::unavailable(&error))?;
        if let Some(part) = frame.data_ref() {
            data.extend_from_slice(part);
        }
        if data.len() > ANSWER {
            return Err(Refusal::internal("the answer is far too long"));
        }
        status = frame.trailers_ref().and_then(self::status);
    }
    match status {
        Some(Refusal { code: 0, .. }) => message::read(&data).map_err(Refusal::internal),
        Some(refusal) => Err(refusal),
        None => Err(Refusal::internal("server closed the stream without sending trailers")),
    }
}

/// What headers or trailers say of how it went.
fn status(headers: &HeaderMap) -> Option<Refusal> {
    let text = |name: &str| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let code = text("grpc-status")?.parse().unwrap_or(UNKNOWN);
    let message: String = text("grpc-message").unwrap_or_default().chars().take(256).collect();
    Some(Refusal { code, message })
}

/// What an answer that knows nothing of gRPC means.
fn foreign(status: StatusCode) -> Refusal {
    let code = match status.as_u16() {
        400 => INTERNAL,
        401 => 16,
        403 => 7,
        404 => UNIMPLEMENTED,
        429 | 502..=504 => 14,
        _ => UNKNOWN,
    };
    let name = status.canonical_reason().unwrap_or_default();
    let message = format!("unexpected HTTP status code received from server: {} ({name})", status.as_u16());
    Refusal { code, message }
}
