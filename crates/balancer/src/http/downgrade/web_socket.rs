//! A WebSocket where one side speaks HTTP/2 (RFC 8441): what is asked of a backend, and what a client of HTTP/1 is told. Pure.

use ::h2::ext::Protocol;
use ::http::header::{self, HeaderMap};
use ::http::{Method as Verb, Request as Head2, request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest;

use super::{fields_between_h2, h1_to_h2, host, path_as, said, uri, write_fields};
use crate::http::forwarded::line;
use crate::http::head::{self, Framing};
use crate::http::refusal::Refusal;
use crate::http::request::{Asking, Method, Request};

/// The one protocol a stream may become.
const PROTOCOL: &str = "websocket";
/// What a key is answered with (RFC 6455, 1.3).
const ANSWERED: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const KEY: &str = "sec-websocket-key";
const ACCEPT: &str = "sec-websocket-accept";

/// The key that HTTP/1 wants and HTTP/2 does without: who answers it has understood what was asked.
#[derive(Debug)]
pub(crate) struct Key(String);

impl Key {
    /// A key of these bytes; they are no secret.
    pub(crate) fn new(bytes: u128) -> Key {
        Key(STANDARD.encode(bytes.to_be_bytes()))
    }

    /// Takes the answer to it from the fields of a backend's answer; whether that is right.
    pub(crate) fn is_answered(&self, fields: &mut HeaderMap) -> bool {
        fields.remove(ACCEPT).is_some_and(|value| value.as_bytes() == self.answer().as_bytes())
    }

    fn answer(&self) -> String {
        let keyed = format!("{}{ANSWERED}", self.0);
        STANDARD.encode(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, keyed.as_bytes()))
    }
}

/// Whether a client's CONNECT asks for a WebSocket.
fn wanted(parts: &request::Parts) -> Result<(), Refusal> {
    match parts.extensions.get::<Protocol>() {
        // A tunnel to whatever the client names is nothing a server has.
        None => Err(Refusal::TARGET),
        Some(other) if !other.as_str().eq_ignore_ascii_case(PROTOCOL) => Err(Refusal::PROTOCOL),
        Some(_) if parts.headers.contains_key(header::TRANSFER_ENCODING) => Err(Refusal::ENCODING),
        Some(_) if parts.headers.contains_key(header::CONTENT_LENGTH) => Err(Refusal::UNWANTED_BODY),
        Some(_) => Ok(()),
    }
}

/// The head of HTTP/1 for it is written to `out`.
pub(crate) fn to_h1(
    parts: &request::Parts,
    asking: &Asking<'_>,
    key: &Key,
    out: &mut Vec<u8>,
) -> Result<Request, Refusal> {
    wanted(parts)?;
    let (host, path) = (host(parts)?, path_as("GET", parts)?);
    out.extend_from_slice(b"GET ");
    out.extend_from_slice(path.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    line(out, "Host", host.as_bytes());
    let mut fields = parts.headers.clone();
    fields.remove(KEY);
    write_fields(&fields, asking.trusted, out);
    asking.forwarded.write(said(parts, asking).as_ref(), out);
    line(out, "Sec-WebSocket-Key", key.0.as_bytes());
    out.extend_from_slice(b"Connection: upgrade\r\n");
    line(out, "Upgrade", PROTOCOL.as_bytes());
    out.extend_from_slice(b"\r\n");
    let (method, body) = (Method::Idempotent, Framing::Empty);
    Ok(Request { length: 0, method, old: false, body, keep: true, upgrade: true, expects: false })
}

/// The request for a backend that speaks HTTP/2, too.
pub(crate) fn to_h2(parts: &request::Parts, asking: &Asking<'_>) -> Result<Head2<()>, Refusal> {
    wanted(parts)?;
    let mut request = Head2::new(());
    *request.method_mut() = Verb::CONNECT;
    *request.uri_mut() = uri(host(parts)?, path_as("GET", parts)?)?;
    *request.headers_mut() = fields_between_h2(parts, asking)?;
    request.headers_mut().remove(KEY);
    request.extensions_mut().insert(Protocol::from_static(PROTOCOL));
    Ok(request)
}

/// The request for a backend that speaks HTTP/2, and the client's key, of a head of HTTP/1 that was made for a backend; `None`: it
/// asks for no WebSocket, and may be answered as if it asked for nothing.
pub(crate) fn upgrade_to_h2(head: &[u8]) -> Result<Option<(Head2<()>, Key)>, Refusal> {
    if !asks(head) {
        return Ok(None);
    }
    let mut request = h1_to_h2(head)?;
    let key = request.headers_mut().remove(KEY);
    let Some(key) = key.as_ref().and_then(|key| key.to_str().ok()).filter(|_| request.method() == Verb::GET) else {
        return Ok(None);
    };
    *request.method_mut() = Verb::CONNECT;
    request.headers_mut().remove(header::CONTENT_LENGTH);
    request.extensions_mut().insert(Protocol::from_static(PROTOCOL));
    Ok(Some((request, Key(key.to_owned()))))
}

fn asks(head: &[u8]) -> bool {
    let (mut room, mut parsed) = (head::room(), httparse::Request::new(&mut []));
    let read = parsed.parse_with_uninit_headers(head, &mut room);
    let upgrade = |field: &httparse::Header<'_>| {
        field.name.eq_ignore_ascii_case("upgrade") && field.value.eq_ignore_ascii_case(PROTOCOL.as_bytes())
    };
    read.is_ok() && parsed.headers.iter().any(upgrade)
}

/// The head that tells a client of HTTP/1 that it has its WebSocket.
pub(crate) fn answer_to_h1(mut fields: HeaderMap, key: &Key, out: &mut Vec<u8>) {
    fields.remove(ACCEPT);
    out.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\n");
    write_fields(&fields, true, out);
    line(out, "Sec-WebSocket-Accept", key.answer().as_bytes());
    out.extend_from_slice(b"Connection: upgrade\r\n");
    line(out, "Upgrade", PROTOCOL.as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
