//! May the answer of a backend be passed on, and as what? Bytes of a backend in, the head for the client and what matters about
//! the answer out. No sockets.

use super::attempts::Failure;
use super::forwarded::line;
use super::head::{self, Framing, Survey};
use super::name::Name;
use super::request::{Method, Request};

/// What matters about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// How many bytes the backend's head has.
    pub length: usize,
    /// Its status.
    pub status: u16,
    /// How its body is delimited.
    pub body: Framing,
    /// Whether the backend can go on after it.
    pub keep: bool,
    /// Whether bytes without meaning to us follow.
    pub tunnel: bool,
}

/// The answer cannot be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

/// Maximum number of interim answers (1xx) to a request. Servers send one or two: 100, 103.
const INTERIMS: usize = 16;

/// Counts the interim answers to a request.
#[derive(Debug, Default)]
pub(crate) struct Interims(usize);

impl Interims {
    /// Counts another, if there may be one.
    pub(crate) fn count(&mut self) -> Result<(), Failure> {
        self.0 += 1;
        if self.0 > INTERIMS { Err(Failure::Interim) } else { Ok(()) }
    }
}

impl Response {
    /// Whether another answer follows: 100, 103, but not 101.
    pub fn interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// What a head says that was parsed and looked over.
    fn of(
        request: &Request,
        parsed: &httparse::Response<'_, '_>,
        length: usize,
        survey: &Survey,
    ) -> Result<Response, Unreadable> {
        let (status, old) = (parsed.code.ok_or(Unreadable)?, parsed.version != Some(1));
        if status < 100 || (old && survey.chunked) {
            return Err(Unreadable);
        }
        let tunnel = tunnels(request, status)?;
        let body = body(request, status, survey, tunnel);
        let keep = !survey.close && (!old || survey.keep_alive) && !matches!(body, Framing::End) && !tunnel;
        Ok(Response { length, status, body, keep, tunnel })
    }
}

/// The head of an answer, looked over.
pub(crate) struct Answer<'a> {
    /// The head.
    pub(crate) head: &'a [u8],
    /// Its fields.
    pub(crate) fields: &'a [httparse::Header<'a>],
    /// What they say.
    pub(crate) survey: Survey,
    /// The words behind the status.
    reason: Option<&'a str>,
    /// What matters about it.
    pub(crate) response: Response,
}

/// Reads the head of an answer to a request and makes something of it; `None`: it is not all there.
pub(crate) fn with_head<T>(
    bytes: &[u8],
    request: &Request,
    make: impl FnOnce(&Answer<'_>) -> Result<T, Unreadable>,
) -> Result<Option<T>, Unreadable> {
    let (mut room, mut parsed) = (head::room(), httparse::Response::new(&mut []));
    let config = httparse::ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut parsed, bytes, &mut room) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < head::LONGEST => return Ok(None),
        _ => return Err(Unreadable),
    };
    let head = &bytes[..length];
    let survey = Survey::of(head, parsed.headers).map_err(|_| Unreadable)?;
    let response = Response::of(request, &parsed, length, &survey)?;
    make(&Answer { head, fields: parsed.headers, survey, reason: parsed.reason, response }).map(Some)
}

/// Reads an answer to a request; `None`: its head is not all there. The head for the client is written to `out`, without the
/// last line: `Connection` is the caller's, who knows what becomes of it.
pub fn read(bytes: &[u8], request: &Request, out: &mut Vec<u8>) -> Result<Option<Response>, Unreadable> {
    with_head(bytes, request, |Answer { head, fields, survey, reason, response }| {
        let Response { status, tunnel, .. } = *response;
        first_line(status, *reason, out);
        let dechunked = request.old && survey.chunked;
        // Neither field may stand in these (RFC 9110, 8.6; RFC 9112, 6.1): a client that believes
        // one waits for a body, or takes the next answer for it.
        let bodiless = status < 200 || status == 204;
        let kept = |name| match name {
            Name::TransferEncoding => false,
            Name::ContentLength => !tunnel && !bodiless && survey.has_plain_length(),
            Name::Upgrade | Name::Connection | Name::Dropped | Name::Te => false,
            _ => true,
        };
        survey.copy(head, fields, kept, out);
        survey.frame(!dechunked && !tunnel && !bodiless, !tunnel && !bodiless, out);
        if status == 101 {
            let protocol = fields.iter().find(|field| field.name.eq_ignore_ascii_case("upgrade"));
            line(out, "Upgrade", protocol.ok_or(Unreadable)?.value);
        }
        Ok(*response)
    })
}

/// Whether bytes follow that have no meaning to us: only if that was asked for.
fn tunnels(request: &Request, status: u16) -> Result<bool, Unreadable> {
    match (status, request.method) {
        (101, _) if request.upgrade => Ok(true),
        (101, _) => Err(Unreadable),
        (200..300, Method::Connect) => Ok(true),
        _ => Ok(false),
    }
}

fn body(request: &Request, status: u16, survey: &Survey, tunnel: bool) -> Framing {
    if tunnel || status < 200 || matches!(status, 204 | 304) || request.method == Method::Head {
        return Framing::Empty;
    }
    match (survey.chunked, survey.length) {
        (true, _) => Framing::Chunked,
        (_, Some(0)) => Framing::Empty,
        (_, Some(length)) => Framing::Length(length),
        (false, None) => Framing::End,
    }
}

fn first_line(status: u16, reason: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    let digit = |place: u16| b'0' + (status / place % 10) as u8;
    out.extend_from_slice(&[digit(100), digit(10), digit(1), b' ']);
    out.extend_from_slice(reason.unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
