//! May a request of HTTP/1 be passed on, and as what? Bytes of a client in, the head for a backend and what matters about the
//! request out. No sockets.

use super::forwarded::{Forwarded, Said, line};
use super::head::{self, Framing, Survey};
use super::name::{self, Name};
use super::refusal::Refusal;
use super::target::{self, Target};

/// What matters about a request once its head is rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// How many bytes the client's head has.
    pub length: usize,
    /// What kind of method it has.
    pub method: Method,
    /// HTTP/1.0: no chunks, and no interim answers.
    pub old: bool,
    /// How its body is delimited.
    pub body: Framing,
    /// Whether the client can go on after it.
    pub keep: bool,
    /// Whether another protocol was asked for.
    pub upgrade: bool,
    /// Whether the client waits for word before it sends the body.
    pub expects: bool,
}

/// What a proxy must know of methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The answer has no body.
    Head,
    /// A tunnel.
    Connect,
    /// May be sent twice.
    Idempotent,
    /// May not.
    Other,
}

/// What a request is read under.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// What backends are told of the client.
    pub forwarded: &'a Forwarded,
    /// Whether what the client says in those fields is kept.
    pub trusted: bool,
    /// True if clients may ask for tunnels with CONNECT.
    pub connect: bool,
    /// How long a body may be.
    pub longest_body: Option<u64>,
}

/// What is noted of a request for the access log.
#[derive(Debug, Clone, Default)]
pub struct Note {
    /// `GET https://example.com:443/ HTTP/1.1`.
    pub line: String,
    /// `User-Agent`.
    pub agent: Option<String>,
}

impl Method {
    /// What a method of this name is.
    pub(crate) fn of(name: &str) -> Method {
        match name {
            "HEAD" => Method::Head,
            "CONNECT" => Method::Connect,
            "GET" | "PUT" | "DELETE" | "OPTIONS" | "TRACE" => Method::Idempotent,
            _ => Method::Other,
        }
    }

    /// Whether a request that may have reached a backend may be sent again.
    pub(crate) fn repeatable(self) -> bool {
        matches!(self, Method::Head | Method::Idempotent)
    }
}

/// Reads a request; `None`: its head is not all there. The head for the backend is written to `out`.
pub fn read(
    bytes: &[u8],
    asking: &Asking<'_>,
    note: Option<&mut Note>,
    out: &mut Vec<u8>,
) -> Result<Option<Request>, Refusal> {
    // One empty line before a request is a known mistake of clients (RFC 9112, 2.2); more are an attack on somebody.
    let skipped = if bytes.starts_with(b"\r\n") { 2 } else { 0 };
    let bytes = &bytes[skipped..];
    if matches!(bytes.first(), Some(b'\r' | b'\n')) && bytes != b"\r" {
        return Err(Refusal::LINES);
    }
    let (mut room, mut parsed) = (head::room(), httparse::Request::new(&mut []));
    let length = match parsed.parse_with_uninit_headers(bytes, &mut room) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return partial(&parsed, bytes).map(|()| None),
        Err(error) => return Err(refusal(error)),
    };
    let request = Head {
        bytes: &bytes[..length],
        method: parsed.method.ok_or(Refusal::MALFORMED)?,
        target: parsed.path.ok_or(Refusal::MALFORMED)?,
        old: parsed.version != Some(1),
        fields: parsed.headers,
    };
    let mut request = request.read(asking, note, out)?;
    request.length += skipped;
    Ok(Some(request))
}

/// Whether what is there of a head may still become one.
fn partial(parsed: &httparse::Request<'_, '_>, bytes: &[u8]) -> Result<(), Refusal> {
    let unended = parsed.path.is_none() && bytes.len() > target::LONGEST + 64;
    match (unended || parsed.path.is_some_and(|path| path.len() > target::LONGEST), bytes.len() >= head::LONGEST) {
        (true, _) => Err(Refusal::LONG_TARGET),
        (_, true) => Err(Refusal::FIELDS),
        _ => Ok(()),
    }
}

fn refusal(error: httparse::Error) -> Refusal {
    match error {
        httparse::Error::TooManyHeaders => Refusal::FIELDS,
        httparse::Error::Version => Refusal::VERSION,
        _ => Refusal::MALFORMED,
    }
}

/// A head as `httparse` found it.
struct Head<'a> {
    bytes: &'a [u8],
    method: &'a str,
    target: &'a str,
    old: bool,
    fields: &'a [httparse::Header<'a>],
}

impl Head<'_> {
    fn read(&self, asking: &Asking<'_>, note: Option<&mut Note>, out: &mut Vec<u8>) -> Result<Request, Refusal> {
        let survey = Survey::of(self.bytes, self.fields)?;
        // A tunnel goes to wherever the backend leads it, past every rule here; a server that is no
        // proxy refuses CONNECT (RFC 9110, 9.3.6), and one that is a proxy is asked for by name.
        if self.method == "CONNECT" && !asking.connect {
            return Err(Refusal::CONNECT);
        }
        let target = Target::read(self.method, self.target)?;
        let named = self.host(&survey)?;
        let method = Method::of(self.method);
        let body = self.body(&survey, asking)?;
        let upgrade = self.upgrade(&survey)?;
        if let Some(note) = note {
            *note = self.note(&survey, asking.forwarded, &target, named);
        }
        self.first_line(&target, out);
        if let Some(host) = host_line(&target, named) {
            line(out, "Host", host.as_bytes());
        } else if named.is_none() {
            // HTTP/1.1 towards the backend: there must be a host, even if it has no name.
            line(out, "Host", b"");
        }
        self.fields(&survey, &target, asking, upgrade, out);
        let keep = if self.old { survey.keep_alive && !survey.close } else { !survey.close };
        let expects = !self.old && body != Framing::Empty && self.all(&survey, Name::Expect).next().is_some();
        let (length, upgrade) = (self.bytes.len(), upgrade.is_some());
        Ok(Request { length, method, old: self.old, body, keep, upgrade, expects })
    }

    fn first_line(&self, target: &Target<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(self.method.as_bytes());
        out.push(b' ');
        match target {
            Target::Path(path) | Target::Tunnel(path) => out.extend_from_slice(path.as_bytes()),
            Target::Absolute { path, .. } => {
                if !path.starts_with('/') {
                    out.push(b'/');
                }
                out.extend_from_slice(path.as_bytes());
            }
        }
        out.extend_from_slice(b" HTTP/1.1\r\n");
    }

    fn fields(
        &self,
        survey: &Survey,
        target: &Target<'_>,
        asking: &Asking<'_>,
        upgrade: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) {
        let absolute = matches!(target, Target::Absolute { .. });
        let keep = |name| match name {
            Name::Other | Name::UserAgent => true,
            Name::ContentLength => survey.has_plain_length(),
            Name::Vouched => asking.trusted,
            Name::Host => !absolute,
            Name::Expect => !self.old,
            _ => false,
        };
        survey.copy(self.bytes, self.fields, keep, out);
        survey.frame(true, true, out);
        let said = asking.trusted.then(|| self.said(survey));
        asking.forwarded.write(said.as_ref(), out);
        if self.all(survey, Name::Te).any(|value| name::words(value).any(|word| word.eq_ignore_ascii_case(b"trailers")))
        {
            out.extend_from_slice(b"TE: trailers\r\n");
        }
        if let Some(protocol) = upgrade {
            out.extend_from_slice(b"Connection: upgrade\r\n");
            line(out, "Upgrade", protocol);
        }
        out.extend_from_slice(b"\r\n");
    }

    fn said(&self, survey: &Survey) -> Said {
        let mut said = Said::default();
        self.fields.iter().enumerate().for_each(|(index, field)| said.hear(survey.kind(index), field.value));
        said
    }

    /// The values of all fields of a kind.
    fn all<'a>(&'a self, survey: &'a Survey, kind: Name) -> impl Iterator<Item = &'a [u8]> {
        let same = move |(index, field): (usize, &'a httparse::Header<'a>)| {
            (survey.kind(index) == kind).then_some(field.value)
        };
        self.fields.iter().enumerate().filter_map(same)
    }

    /// The one `Host`; HTTP/1.0 may do without.
    fn host<'a>(&'a self, survey: &'a Survey) -> Result<Option<&'a [u8]>, Refusal> {
        let mut hosts = self.all(survey, Name::Host);
        match (hosts.next(), hosts.next()) {
            (Some(host), None) if target::is_host(host) => Ok(Some(host)),
            (None, None) if self.old => Ok(None),
            _ => Err(Refusal::HOST),
        }
    }

    fn body(&self, survey: &Survey, asking: &Asking<'_>) -> Result<Framing, Refusal> {
        if survey.chunked && self.old {
            return Err(Refusal::ENCODING);
        }
        let body = match (survey.chunked, survey.length) {
            (true, _) => Framing::Chunked,
            (false, None | Some(0)) => Framing::Empty,
            (false, Some(length)) if asking.longest_body.is_some_and(|most| length > most) => {
                return Err(Refusal::BODY);
            }
            (false, Some(length)) => Framing::Length(length),
        };
        if body != Framing::Empty && matches!(self.method, "CONNECT" | "TRACE") {
            return Err(Refusal::UNWANTED_BODY);
        }
        if self.all(survey, Name::Expect).any(|value| !value.eq_ignore_ascii_case(b"100-continue")) {
            return Err(Refusal::EXPECT);
        }
        Ok(body)
    }

    /// The protocol asked for instead. Not HTTP/2: it would go round every rule here.
    fn upgrade<'a>(&'a self, survey: &'a Survey) -> Result<Option<&'a [u8]>, Refusal> {
        if !survey.upgrade || self.old || self.method == "CONNECT" {
            return Ok(None);
        }
        let mut asked = self.all(survey, Name::Upgrade);
        match (asked.next(), asked.next()) {
            (Some(_), Some(_)) => Err(Refusal::FIELD),
            (Some(value), None) if name::words(value).any(|word| word.to_ascii_lowercase().starts_with(b"h2c")) => {
                Ok(None)
            }
            (first, _) => Ok(first),
        }
    }

    fn note(&self, survey: &Survey, forwarded: &Forwarded, target: &Target<'_>, named: Option<&[u8]>) -> Note {
        let agent = self.all(survey, Name::UserAgent).next().map(|value| String::from_utf8_lossy(value).into_owned());
        let (host, path) = match target {
            Target::Absolute { host, path } => (host.as_bytes(), *path),
            Target::Path(path) => (named.unwrap_or_default(), *path),
            Target::Tunnel(host) => (host.as_bytes(), ""),
        };
        let version = if self.old { "HTTP/1.0" } else { "HTTP/1.1" };
        Note { line: request_line(self.method, forwarded, host, path, version), agent }
    }
}

/// The host to write in place of the client's, if that does not count.
fn host_line<'a>(target: &Target<'a>, named: Option<&[u8]>) -> Option<&'a str> {
    match target {
        Target::Absolute { host, .. } => Some(host),
        Target::Tunnel(host) if named.is_none() => Some(host),
        _ => None,
    }
}

/// A request as access logs have it: with scheme, host and port.
pub(crate) fn request_line(method: &str, forwarded: &Forwarded, host: &[u8], path: &str, version: &str) -> String {
    let (scheme, host) = (forwarded.proto(), String::from_utf8_lossy(host));
    let with_port =
        host.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    if with_port && !host.ends_with(']') {
        return format!("{method} {scheme}://{host}{path} {version}");
    }
    format!("{method} {scheme}://{host}:{}{path} {version}", forwarded.port())
}

#[cfg(test)]
mod tests;
