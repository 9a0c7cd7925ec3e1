//! HTTP/2 in HTTP/1's clothes and the other way round: heads between the two. Pure.
//!
//! What HTTP/2 carries as a value may become a line here, so nothing passes that could end one. (The types of crate `http` hold
//! no CR, LF or NUL in names, values and targets; what they do hold is checked by the rules of HTTP/1 again.)

pub(crate) mod web_socket;

use ::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use ::http::{Request as Head2, Response as Answer2, StatusCode, Uri, Version, request, response};
use bytes::Bytes;

use super::chunks::is_token;
use super::forwarded::{Said, line};
use super::head::{self, Framing};
use super::name::{self, Name};
use super::refusal::Refusal;
use super::request::{Asking, Method, Note, Request, request_line};
use super::response::{Answer, Response, Unreadable, with_head};
use super::target;

/// The head of HTTP/1 for a request of HTTP/2 is written to `out`. `ended`: it has no body.
pub(crate) fn to_h1(
    parts: &request::Parts,
    ended: bool,
    asking: &Asking<'_>,
    out: &mut Vec<u8>,
) -> Result<Request, Refusal> {
    let method = Method::of(parts.method.as_str());
    let (host, path) = (host(parts)?, path(parts)?);
    let body = body(parts, ended, asking)?;
    out.extend_from_slice(parts.method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(path.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    line(out, "Host", host.as_bytes());
    write_fields(&parts.headers, asking.trusted, out);
    match body {
        Framing::Length(length) => line(out, "Content-Length", length.to_string().as_bytes()),
        Framing::Chunked => line(out, "Transfer-Encoding", b"chunked"),
        // A server may want to know that an empty body is meant to be one.
        _ if parts.headers.contains_key(header::CONTENT_LENGTH) => line(out, "Content-Length", b"0"),
        _ => {}
    }
    asking.forwarded.write(said(parts, asking).as_ref(), out);
    if wants_trailers(&parts.headers) {
        out.extend_from_slice(b"TE: trailers\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Ok(Request { length: 0, method, old: false, body, keep: true, upgrade: false, expects: false })
}

/// The request for a backend that speaks HTTP/2, too.
pub(crate) fn to_h2(parts: &request::Parts, ended: bool, asking: &Asking<'_>) -> Result<(Head2<()>, Request), Refusal> {
    let method = Method::of(parts.method.as_str());
    let (host, path) = (host(parts)?, path(parts)?);
    let body = body(parts, ended, asking)?;
    let mut headers = fields_between_h2(parts, asking)?;
    if wants_trailers(&parts.headers) {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    let mut request = Head2::new(());
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = uri(host, path)?;
    *request.headers_mut() = headers;
    Ok((request, Request { length: 0, method, old: false, body, keep: true, upgrade: false, expects: false }))
}

fn fields_between_h2(parts: &request::Parts, asking: &Asking<'_>) -> Result<HeaderMap, Refusal> {
    let mut headers = HeaderMap::with_capacity(parts.headers.len() + 4);
    for (name, value) in parts.headers.iter().filter(|(name, _)| passes(name, asking.trusted)) {
        headers.append(name.clone(), value.clone());
    }
    tell(&mut headers, asking, said(parts, asking).as_ref())?;
    Ok(headers)
}

/// The request of HTTP/2 for a head of HTTP/1 that was made for a backend.
pub(crate) fn h1_to_h2(head: &[u8]) -> Result<Head2<()>, Refusal> {
    let (mut room, mut parsed) = (head::room(), httparse::Request::new(&mut []));
    parsed.parse_with_uninit_headers(head, &mut room).map_err(|_| Refusal::MALFORMED)?;
    let mut headers = HeaderMap::with_capacity(parsed.headers.len());
    let mut host = "";
    for field in &*parsed.headers {
        match Name::of(field.name.as_bytes()) {
            Name::Host => host = std::str::from_utf8(field.value).map_err(|_| Refusal::HOST)?,
            Name::Expect | Name::TransferEncoding | Name::Connection | Name::Upgrade => {}
            _ => {
                let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Refusal::FIELD)?;
                headers.append(name, HeaderValue::from_bytes(field.value).map_err(|_| Refusal::FIELD)?);
            }
        }
    }
    let mut request = Head2::new(());
    *request.method_mut() = parsed.method.unwrap_or_default().parse().map_err(|_| Refusal::MALFORMED)?;
    *request.uri_mut() = uri(host, parsed.path.unwrap_or("/"))?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// The answer of HTTP/2 for the head of a backend's answer in HTTP/1; `None`: it is not all there.
pub(crate) fn answer_to_h2(bytes: &[u8], request: &Request) -> Result<Option<(Response, Answer2<()>)>, Unreadable> {
    with_head(bytes, request, |read| {
        let mut response = read.response;
        // Only a stream that is to be a tunnel gets here with 101, and there it is called so.
        if response.tunnel {
            response.status = 200;
        }
        let mut answer = Answer2::new(());
        *answer.status_mut() = StatusCode::from_u16(response.status).map_err(|_| Unreadable)?;
        *answer.headers_mut() = fields_to_h2(read)?;
        if response.tunnel {
            answer.headers_mut().remove(header::CONTENT_LENGTH);
        }
        Ok((response, answer))
    })
}

fn fields_to_h2(Answer { head, fields, survey, .. }: &Answer<'_>) -> Result<HeaderMap, Unreadable> {
    // One copy of the head, of which every value is a part.
    let whole = Bytes::copy_from_slice(head);
    let mut headers = HeaderMap::with_capacity(fields.len());
    for (index, field) in fields.iter().enumerate() {
        let kept = match survey.kind(index) {
            Name::Connection | Name::TransferEncoding | Name::Upgrade | Name::Dropped | Name::Te => false,
            _ => !survey.names(fields, index),
        };
        if kept {
            let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Unreadable)?;
            let from = (field.value.as_ptr() as usize).wrapping_sub(head.as_ptr() as usize);
            let value = match field.value.is_empty() {
                true => Bytes::new(),
                false => whole.slice(from..from + field.value.len()),
            };
            headers.append(name, HeaderValue::from_maybe_shared(value).map_err(|_| Unreadable)?);
        }
    }
    Ok(headers)
}

/// The head of HTTP/1 for a backend's answer in HTTP/2, without its last line.
pub(crate) fn answer_to_h1(parts: &response::Parts, ended: bool, request: &Request, out: &mut Vec<u8>) -> Framing {
    let status = parts.status;
    line_of_status(status, out);
    write_fields(&parts.headers, true, out);
    let silent = request.method == Method::Head || matches!(status.as_u16(), 100..200 | 204 | 304);
    let length = parts.headers.get(header::CONTENT_LENGTH).and_then(|value| name::length(value.as_bytes()));
    if let Some(length) = length {
        line(out, "Content-Length", length.to_string().as_bytes());
    }
    match length {
        _ if silent => Framing::Empty,
        Some(0) => Framing::Empty,
        Some(length) => Framing::Length(length),
        None if ended => {
            line(out, "Content-Length", b"0");
            Framing::Empty
        }
        None if request.old => Framing::End,
        None => {
            line(out, "Transfer-Encoding", b"chunked");
            Framing::Chunked
        }
    }
}

/// The answer for a client of HTTP/2, of one that speaks HTTP/2, too.
pub(crate) fn answer_between_h2(parts: response::Parts) -> Answer2<()> {
    let mut answer = Answer2::from_parts(parts, ());
    *answer.version_mut() = Version::HTTP_2;
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE] {
        answer.headers_mut().remove(name);
    }
    answer
}

/// Trailers as lines; those that would change the message's frame are left out.
pub(crate) fn trailer_lines(trailers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in trailers.iter().filter(|(name, _)| passes(name, false) && *name != header::CONTENT_LENGTH) {
        line(out, name.as_str(), value.as_bytes());
    }
}

/// Lines of trailers as fields.
pub(crate) fn trailers(lines: &[u8]) -> Option<HeaderMap> {
    let mut room = [httparse::EMPTY_HEADER; 64];
    let httparse::Status::Complete((_, fields)) = httparse::parse_headers(lines, &mut room).ok()? else { return None };
    let mut headers = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let (name, value) = (HeaderName::from_bytes(field.name.as_bytes()), HeaderValue::from_bytes(field.value));
        if let (Ok(name), Ok(value)) = (name, value)
            && passes(&name, false)
        {
            headers.append(name, value);
        }
    }
    (!headers.is_empty()).then_some(headers)
}

/// What is noted of a request of HTTP/2.
pub(crate) fn note(parts: &request::Parts, asking: &Asking<'_>) -> Note {
    let agent =
        parts.headers.get(header::USER_AGENT).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    let host = host(parts).unwrap_or_default();
    Note { line: request_line(parts.method.as_str(), asking.forwarded, host.as_bytes(), path, "HTTP/2.0"), agent }
}

fn line_of_status(status: StatusCode, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The fields that are passed on; pieces of `cookie` become one again (RFC 9113, 8.2.3).
fn write_fields(headers: &HeaderMap, trusted: bool, out: &mut Vec<u8>) {
    for (name, value) in headers {
        if passes(name, trusted) && *name != header::CONTENT_LENGTH && *name != header::COOKIE {
            line(out, name.as_str(), value.as_bytes());
        }
    }
    let mut cookies = headers.get_all(header::COOKIE).iter();
    if let Some(first) = cookies.next() {
        out.extend_from_slice(b"cookie: ");
        out.extend_from_slice(first.as_bytes());
        for more in cookies {
            out.extend_from_slice(b"; ");
            out.extend_from_slice(more.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// True if a field is passed on. `trusted`: the sender is believed in what it says of clients, or
/// is a backend.
fn passes(name: &HeaderName, trusted: bool) -> bool {
    match Name::of(name.as_str().as_bytes()) {
        Name::Other | Name::UserAgent | Name::ContentLength | Name::Expect => true,
        Name::Vouched => trusted,
        _ => false,
    }
}

fn wants_trailers(headers: &HeaderMap) -> bool {
    headers.get(header::TE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"trailers"))
}

/// The one host: `:authority`, or `host`, or both if they say the same.
fn host(parts: &request::Parts) -> Result<&str, Refusal> {
    let mut named = parts.headers.get_all(header::HOST).iter();
    let (first, second) = (named.next(), named.next());
    let first = first.map(|value| value.to_str().map_err(|_| Refusal::HOST)).transpose()?;
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let host = match (authority, first, second) {
        (_, _, Some(_)) | (None, None, _) => return Err(Refusal::HOST),
        (Some(one), Some(other), _) if !one.eq_ignore_ascii_case(other) => return Err(Refusal::HOST),
        (Some(one), ..) | (None, Some(one), _) => one,
    };
    if target::is_host(host.as_bytes()) { Ok(host) } else { Err(Refusal::HOST) }
}

/// The path. A plain CONNECT has none: HTTP/1 knows no tunnel in a stream.
fn path(parts: &request::Parts) -> Result<&str, Refusal> {
    path_as(parts.method.as_str(), parts)
}

/// The path, as if it were asked for with this method.
fn path_as<'a>(method: &str, parts: &'a request::Parts) -> Result<&'a str, Refusal> {
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    if !method.bytes().all(is_token) {
        return Err(Refusal::MALFORMED);
    }
    match target::Target::read(method, path)? {
        target::Target::Path(path) => Ok(path),
        _ => Err(Refusal::TARGET),
    }
}

fn body(parts: &request::Parts, ended: bool, asking: &Asking<'_>) -> Result<Framing, Refusal> {
    if parts.headers.contains_key(header::TRANSFER_ENCODING) {
        return Err(Refusal::ENCODING);
    }
    let mut lengths = parts.headers.get_all(header::CONTENT_LENGTH).iter();
    let length = match (lengths.next(), lengths.next()) {
        (_, Some(_)) => return Err(Refusal::LENGTH),
        (Some(value), None) => Some(name::length(value.as_bytes()).ok_or(Refusal::LENGTH)?),
        (None, None) => None,
    };
    match (length, ended) {
        (Some(length), _) if asking.longest_body.is_some_and(|most| length > most) => Err(Refusal::BODY),
        (Some(1..), true) => Err(Refusal::BODY_LENGTH),
        (_, true) => Ok(Framing::Empty),
        (Some(0), false) => Ok(Framing::Empty),
        (Some(length), false) => Ok(Framing::Length(length)),
        (None, false) => Ok(Framing::Chunked),
    }
}

fn said(parts: &request::Parts, asking: &Asking<'_>) -> Option<Said> {
    let hear = || {
        let mut said = Said::default();
        parts.headers.iter().for_each(|(name, value)| said.hear(Name::of(name.as_str().as_bytes()), value.as_bytes()));
        said
    };
    asking.trusted.then(hear)
}

/// Adds what a backend is told of the client.
fn tell(headers: &mut HeaderMap, asking: &Asking<'_>, said: Option<&Said>) -> Result<(), Refusal> {
    for (name, value) in asking.forwarded.fields(said) {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Refusal::FIELD)?;
        headers.insert(name, HeaderValue::from_bytes(&value).map_err(|_| Refusal::FIELD)?);
    }
    Ok(())
}

fn uri(host: &str, path: &str) -> Result<Uri, Refusal> {
    let path = if path == "*" { "/" } else { path };
    Uri::builder().scheme("http").authority(host).path_and_query(path).build().map_err(|_| Refusal::TARGET)
}

#[cfg(test)]
mod tests;
