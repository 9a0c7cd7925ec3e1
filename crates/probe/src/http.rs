//! A look by HTTP: GET, follow redirects to the same host, judge the status.

use std::error::Error;
use std::io;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinSet;

use crate::{Http, Outcome, Scheme, Stream, dial};
use location::Target;

mod location;
mod tls;

/// How many requests one look makes at most.
const REQUESTS: usize = 10;
/// How much of a body is read; the rest is nobody's business.
const BODY: usize = 10 << 10;
/// How much of a body is shown in a warning.
const SHOWN: usize = 512;
/// The longest head of an answer.
const HEAD: usize = 64 << 10;
/// How much an HTTP/2 server may send before we have read it; the protocol's least.
pub(crate) const WINDOW: u32 = 65_535;
/// Who asks.
const AGENT: HeaderValue = HeaderValue::from_static("kube-probe/fairlead");

/// The URL as people write it.
pub(crate) fn url(request: &Http) -> String {
    Target::of(request).to_string()
}

/// Looks once.
pub(crate) async fn look<D, F, T>(request: &Http, dial: &D) -> Outcome
where
    D: Fn(String, u16) -> F,
    F: Future<Output = io::Result<T>>,
    T: Stream,
{
    let first = Target::of(request);
    let mut headers = headers(request);
    let mut target = first.clone();
    for _ in 0..REQUESTS {
        let answer = match ask(&target, &headers, dial).await {
            Ok(answer) => answer,
            Err(why) => return Outcome::Failure(format!("Get {:?}: {why}", target.to_string())),
        };
        let Some(location) = answer.location() else { return answer.judge() };
        let Some(next) = target.follow(location) else {
            return Outcome::Failure(format!(
                "Get {:?}: failed to parse Location header {location:?}",
                target.to_string()
            ));
        };
        if next.host != first.host {
            return answer.judge();
        }
        // A name of the caller's own is meant for this server, not for whatever a whole URL leads to.
        if location::absolute(location).is_some() {
            headers.remove(HOST);
        }
        target = next;
    }
    Outcome::Failure(format!("Get {:?}: stopped after {REQUESTS} redirects", target.to_string()))
}

/// The headers sent. What cannot be a header is left out.
fn headers(request: &Http) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    }
    headers.entry(USER_AGENT).or_insert(AGENT);
    // An empty one means none.
    if headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*")).is_empty() {
        headers.remove(ACCEPT);
    }
    headers
}

/// What came back.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    /// Where it sends us, if it does.
    fn location(&self) -> Option<&str> {
        let moved = matches!(self.status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let location = self.headers.get(LOCATION).filter(|_| moved)?;
        Some(location.to_str().unwrap_or("\u{fffd}")).filter(|location| !location.is_empty())
    }

    fn judge(&self) -> Outcome {
        match self.status.as_u16() {
            200..=299 => Outcome::Success,
            300..=399 => {
                let body: String = self.body.chars().take(SHOWN).collect();
                Outcome::Warning(format!("Probe terminated redirects, Response body: {body}"))
            }
            // The body stays out of it: it may hold what others must not read.
            status => Outcome::Failure(format!("HTTP probe failed with statuscode: {status}")),
        }
    }
}

/// One request on a connection of its own.
async fn ask<D, F, T>(target: &Target, headers: &HeaderMap, dial: &D) -> Result<Answer, String>
where
    D: Fn(String, u16) -> F,
    F: Future<Output = io::Result<T>>,
    T: Stream,
{
    let stream = dial(target.host.clone(), target.port).await;
    let stream = stream.map_err(|error| dial::told(&target.host, target.port, &error))?;
    match target.scheme {
        Scheme::Http => exchange(stream, Version::HTTP_11, target, headers).await,
        Scheme::Https => {
            let stream = tls::begin(stream, &target.host).await.map_err(|error| dial::plain(&error))?;
            let version = match stream.get_ref().1.alpn_protocol() {
                Some(b"h2") => Version::HTTP_2,
                _ => Version::HTTP_11,
            };
            exchange(stream, version, target, headers).await
        }
    }
}

async fn exchange<T: Stream>(
    stream: T,
    version: Version,
    target: &Target,
    headers: &HeaderMap,
) -> Result<Answer, String> {
    // The connection ends with this set.
    let mut tasks = JoinSet::new();
    let request = request(version, target, headers).map_err(|error| error.to_string())?;
    let response = if version == Version::HTTP_2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.max_header_list_size(HEAD as u32).initial_stream_window_size(WINDOW);
        builder.initial_connection_window_size(WINDOW);
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|error| told(&error))?;
        tasks.spawn(connection);
        sender.send_request(request).await
    } else {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD).max_headers(256);
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|error| told(&error))?;
        tasks.spawn(connection);
        sender.send_request(request).await
    };
    read(response.map_err(|error| told(&error))?).await
}

fn request(version: Version, target: &Target, headers: &HeaderMap) -> Result<Request<Empty<Bytes>>, http::Error> {
    let mut request = Request::get(&target.path).body(Empty::new())?;
    *request.headers_mut() = headers.clone();
    if version == Version::HTTP_2 {
        let host = request.headers_mut().remove(HOST);
        let authority = host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or(&target.authority()).to_owned();
        *request.uri_mut() = format!("https://{authority}{}", target.path).try_into()?;
        return Ok(request);
    }
    let host = HeaderValue::try_from(target.authority())?;
    request.headers_mut().entry(HOST).or_insert(host);
    request.headers_mut().insert(http::header::CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

/// Reads the answer, but not more of the body than is of use.
async fn read(response: Response<Incoming>) -> Result<Answer, String> {
    let (head, mut body) = response.into_parts();
    let mut read = Vec::new();
    while read.len() < BODY {
        let Some(frame) = body.frame().await else { break };
        let frame = frame.map_err(|error| told(&error))?;
        if let Some(data) = frame.data_ref() {
            read.extend_from_slice(&data[..data.len().min(BODY - read.len())]);
        }
    }
    let body = String::from_utf8_lossy(&read).into_owned();
    Ok(Answer { status: head.status, headers: head.headers, body })
}

/// What went wrong: the innermost reason is the one that says something.
pub(crate) fn told(error: &hyper::Error) -> String {
    if error.is_incomplete_message() {
        return "EOF".to_owned();
    }
    if error.is_parse() {
        return format!("malformed HTTP response: {error}");
    }
    let mut inner: &dyn Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    match inner.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => "unexpected EOF".to_owned(),
        Some(error) => dial::plain(error),
        None => inner.to_string(),
    }
}
