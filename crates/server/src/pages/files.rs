//! The files of the page: HTML, styles and modules, the same for everybody. What a browser has already is not sent again.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;
use fairlead_api::Failure;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, HeaderMap, HeaderName,
    HeaderValue, IF_NONE_MATCH, LOCATION, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Response, StatusCode};
use ring::digest::{SHA256, digest};

use crate::negotiate;
use crate::reply::{self, Body};

/// A file of the page.
#[derive(Debug, Clone, Copy)]
pub struct File {
    /// Its path below `/ui/`.
    pub path: &'static str,
    /// Its media type.
    pub media: &'static str,
    /// What is in it.
    pub bytes: &'static [u8],
}

/// Scripts and styles of our own and nothing else, whatever gets into a document; nobody shows it in a frame of theirs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const CAREFUL: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Tells a browser to be careful with an answer.
pub(super) fn be_careful(headers: &mut HeaderMap) {
    for (name, value) in CAREFUL {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// All files.
pub(super) struct Files(BTreeMap<&'static str, Kept>);

struct Kept {
    file: File,
    etag: String,
    /// Made when it is first asked for.
    compressed: OnceLock<Bytes>,
}

impl Files {
    pub(super) fn new(files: Vec<File>) -> Files {
        let keep = |file: File| (file.path, Kept { file, etag: etag(file.bytes), compressed: OnceLock::new() });
        Files(files.into_iter().map(keep).collect())
    }

    /// The file at a path, which begins with a slash.
    pub(super) fn answer(&self, path: &str, parts: &Parts) -> Result<Response<Body>, Failure> {
        let Some(name) = path.strip_prefix('/') else { return Ok(elsewhere()) };
        let name = if name.is_empty() { "index.html" } else { name };
        match self.0.get(name) {
            Some(kept) => Ok(kept.answer(&parts.headers)),
            None => Err(Failure::new(404, "NotFound", format!("the page has no file {name:?}: it begins at /ui/"))),
        }
    }
}

impl Kept {
    fn answer(&self, headers: &HeaderMap) -> Response<Body> {
        let known = negotiate::text(headers, IF_NONE_MATCH);
        let fresh = known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == self.etag);
        let gzip = negotiate::text(headers, ACCEPT_ENCODING).contains("gzip");
        let mut answer = match (fresh, gzip) {
            (true, _) => reply::respond(304, self.file.media, Bytes::new(), false),
            (false, true) => reply::respond(200, self.file.media, self.compressed(), false),
            (false, false) => reply::respond(200, self.file.media, Bytes::from_static(self.file.bytes), false),
        };
        let headers = answer.headers_mut();
        if gzip && !fresh {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(etag) = HeaderValue::from_str(&self.etag) {
            headers.insert(ETAG, etag);
        }
        answer
    }

    fn compressed(&self) -> Bytes {
        self.compressed.get_or_init(|| reply::compressed(self.file.bytes, flate2::Compression::best())).clone()
    }
}

/// Names in documents are relative to where the page begins.
fn elsewhere() -> Response<Body> {
    let mut answer = reply::plain(308, "");
    *answer.status_mut() = StatusCode::PERMANENT_REDIRECT;
    answer.headers_mut().insert(LOCATION, HeaderValue::from_static("/ui/"));
    answer
}

fn etag(bytes: &[u8]) -> String {
    let hash = digest(&SHA256, bytes);
    let hex: String = hash.as_ref().iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"")
}
