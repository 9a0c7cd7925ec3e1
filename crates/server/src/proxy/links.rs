//! Links in what Pods answer, changed so that they lead through the proxy again: `/page` becomes
//! `/api/v1/namespaces/NAMESPACE/pods/NAME/proxy/page`, in the header `Location` and in HTML.
//! kube-apiserver does the same (apimachinery, util/proxy/transport.go).

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CONTENT_ENCODING, CONTENT_TYPE,
    HeaderName, HeaderValue, LOCATION,
};
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use crate::negotiate::text;
use crate::reply::Body;

#[cfg(test)]
mod tests;

/// Permissions for scripts of other sites. Those of a Pod are not the API server's.
const CORS: [HeaderName; 6] = [
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE,
];

/// Elements with links, and the attributes that hold them.
const ATTRIBUTES: &[(&str, &[&str])] = &[
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];

/// Elements in which `<` is text, and what ends them.
const RAW_TEXT: &[(&str, &[u8])] =
    &[("script", b"</script"), ("style", b"</style"), ("textarea", b"</textarea"), ("title", b"</title")];

/// Maximum length in bytes of a tag that is read. A longer one is passed on as it is.
const MAX_TAG: usize = 8 << 10;

/// The links of one answer.
#[derive(Debug, Clone)]
pub(super) struct Links {
    /// Path of the proxy, without a slash at its end.
    pub(super) prefix: String,
    /// Hosts that mean the Pod: its own address, and the one the client asked.
    pub(super) hosts: [String; 2],
}

impl Links {
    /// Changes the links of an answer, and removes permissions that are the Pod's to give for
    /// itself alone.
    pub(super) fn rewrite_response(self, mut response: Response<Body>) -> Response<Body> {
        let headers = response.headers_mut();
        for name in &CORS {
            headers.remove(name);
        }
        if let Some(location) = self.rewrite(text(headers, LOCATION))
            && let Ok(location) = HeaderValue::from_str(&location)
        {
            headers.insert(LOCATION, location);
        }
        if is_plain_html(headers) { response.map(|body| self.rewrite_body(body)) } else { response }
    }

    /// Returns a link that leads through the proxy. `None`: the link is relative, leads to another
    /// host, or leads through the proxy already.
    fn rewrite(&self, link: &str) -> Option<String> {
        let (host, path) = match link.strip_prefix("//").or_else(|| without_scheme(link)) {
            Some(rest) => rest.split_at(rest.find('/')?),
            None => ("", link),
        };
        let other = !host.is_empty() && !self.hosts.iter().any(|own| own == host);
        if other || !path.starts_with('/') {
            return None;
        }
        if path.starts_with(&self.prefix) {
            return (!host.is_empty()).then(|| path.to_owned());
        }
        Some(format!("{}{path}", self.prefix))
    }

    fn rewrite_body(self, body: Body) -> Body {
        let page = Html { links: self, pending: Vec::new(), until: None };
        let frames = futures_util::stream::unfold(Some((body, page)), |state| async move {
            let (mut body, mut page) = state?;
            loop {
                let Some(frame) = body.frame().await else {
                    let rest = page.finish();
                    return (!rest.is_empty()).then(|| (Ok(Frame::data(rest.into())), None));
                };
                let Ok(frame) = frame;
                let bytes = match frame.into_data() {
                    Ok(data) => page.feed(&data),
                    // Trailers have no links.
                    Err(_) => continue,
                };
                if !bytes.is_empty() {
                    return Some((Ok(Frame::data(bytes.into())), Some((body, page))));
                }
            }
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

/// Returns what follows `http://` or `https://`.
fn without_scheme(link: &str) -> Option<&str> {
    link.strip_prefix("http://").or_else(|| link.strip_prefix("https://"))
}

/// Returns true if an answer is HTML that is not compressed.
fn is_plain_html(headers: &HeaderMap) -> bool {
    let media = text(headers, CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("text/html") && matches!(text(headers, CONTENT_ENCODING), "" | "identity")
}

/// A page that is rewritten while it comes. Everything but links stays byte by byte.
struct Html {
    links: Links,
    /// The beginning of something whose end has not come yet, at most [`MAX_TAG`] bytes.
    pending: Vec<u8>,
    /// End of the comment or of the text that is being read.
    until: Option<&'static [u8]>,
}

impl Html {
    /// Takes more of the page, and returns what can be passed on.
    fn feed(&mut self, more: &[u8]) -> Vec<u8> {
        let mut input = std::mem::take(&mut self.pending);
        input.extend_from_slice(more);
        let mut out = Vec::with_capacity(input.len() + input.len() / 8);
        let mut rest = &input[..];
        while !rest.is_empty() {
            let Some(read) = self.read(rest, &mut out) else { break };
            rest = &rest[read..];
        }
        if rest.len() > MAX_TAG {
            out.extend_from_slice(rest);
        } else {
            self.pending = rest.to_vec();
        }
        out
    }

    /// Returns what was kept back.
    fn finish(self) -> Vec<u8> {
        self.pending
    }

    /// Reads the next piece: text, a comment or a tag. Returns its length, `None` if its end has
    /// not come yet.
    fn read(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        if let Some(end) = self.until {
            let read = find_ignoring_case(input, end);
            if read.is_some() {
                self.until = None;
            }
            // The end may have begun in the last bytes.
            let read = read.unwrap_or_else(|| input.len().saturating_sub(end.len() - 1));
            out.extend_from_slice(&input[..read]);
            return (read > 0 || self.until.is_none()).then_some(read);
        }
        let before = input.iter().position(|byte| *byte == b'<').unwrap_or(input.len());
        if before > 0 {
            out.extend_from_slice(&input[..before]);
            return Some(before);
        }
        const COMMENT: &[u8] = b"<!--";
        if input.starts_with(COMMENT) {
            self.until = Some(b"-->");
            out.extend_from_slice(COMMENT);
            return Some(COMMENT.len());
        }
        if COMMENT.starts_with(input) {
            return None;
        }
        if !input[1].is_ascii_alphabetic() {
            out.push(b'<');
            return Some(1);
        }
        let tag = Tag::read(input)?;
        let name = String::from_utf8_lossy(&input[1..tag.name_end]).to_ascii_lowercase();
        self.until = RAW_TEXT.iter().find(|(raw, _)| *raw == name).map(|(_, end)| *end);
        let with_links = ATTRIBUTES.iter().find(|(element, _)| *element == name).map_or(&[][..], |(_, names)| names);
        let mut copied = 0;
        for (attribute, value) in tag.attributes {
            let attribute = String::from_utf8_lossy(&input[attribute]).to_ascii_lowercase();
            let link = std::str::from_utf8(&input[value.clone()]).ok().filter(|_| with_links.contains(&&*attribute));
            if let Some(link) = link.and_then(|link| self.links.rewrite(link)) {
                out.extend_from_slice(&input[copied..value.start]);
                out.extend_from_slice(link.as_bytes());
                copied = value.end;
            }
        }
        out.extend_from_slice(&input[copied..tag.end]);
        Some(tag.end)
    }
}

/// Positions of the parts of a tag, in the bytes that begin with it.
struct Tag {
    name_end: usize,
    /// Names of attributes with their values, without quotation marks.
    attributes: Vec<(std::ops::Range<usize>, std::ops::Range<usize>)>,
    end: usize,
}

impl Tag {
    /// Reads a tag; `None` if its end is not there.
    fn read(input: &[u8]) -> Option<Tag> {
        let skip_while = |from: usize, holds: &dyn Fn(u8) -> bool| -> Option<usize> {
            input[from..].iter().position(|byte| !holds(*byte)).map(|skipped| from + skipped)
        };
        let is_space = |byte: u8| byte.is_ascii_whitespace();
        let name_end = skip_while(1, &|byte| !is_space(byte) && !b"/>".contains(&byte))?;
        let mut attributes = Vec::new();
        let mut at = name_end;
        loop {
            at = skip_while(at, &|byte| is_space(byte) || byte == b'/')?;
            if input[at] == b'>' {
                return Some(Tag { name_end, attributes, end: at + 1 });
            }
            let name = at;
            // A name may begin with `=` (HTML, 13.2.5.32).
            let name_end = skip_while(at + 1, &|byte| !is_space(byte) && !b"/>=".contains(&byte))?;
            at = skip_while(name_end, &is_space)?;
            if input[at] != b'=' {
                continue;
            }
            at = skip_while(at + 1, &is_space)?;
            let value = match input[at] {
                quote @ (b'"' | b'\'') => {
                    let end = skip_while(at + 1, &|byte| byte != quote)?;
                    let value = at + 1..end;
                    at = end + 1;
                    value
                }
                _ => {
                    let end = skip_while(at, &|byte| !is_space(byte) && byte != b'>')?;
                    let value = at..end;
                    at = end;
                    value
                }
            };
            attributes.push((name..name_end, value));
        }
    }
}

fn find_ignoring_case(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window.eq_ignore_ascii_case(wanted))
}
