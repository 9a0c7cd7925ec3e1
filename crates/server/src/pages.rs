//! What people see with a browser, beside the API: `/ui` has files that anybody may fetch, for they hold no data; `/fairlead/v1`
//! has the data, for those whom roles let get it. A browser signs in with a link that works once, and is known by a cookie then.

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Look};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, SET_COOKIE};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody};
use jiff::{SignedDuration, Timestamp};

use crate::auth::rbac::{Attributes, Target};
use crate::auth::{User, unauthorized};
use crate::options::Query;
use crate::reply::{self, Body};
use crate::route::Route;
use crate::serve::Connection;
use crate::{Inner, Server, negotiate, not_allowed, plain_form};

pub(crate) mod cookie;
mod files;
pub(crate) mod sessions;

pub use files::File;
pub use sessions::Link;

/// Where the data is.
pub const DATA: &str = "/fairlead/v1/";
/// Where the files are.
const FILES: &str = "/ui";
/// How long a link works that somebody asked for.
const LINK: SignedDuration = SignedDuration::from_mins(10);

/// What is shown beside the API.
pub struct Pages {
    files: files::Files,
    data: Arc<dyn Data>,
}

impl Pages {
    /// Files by their path below `/ui/`, and who answers for the data. `/ui/` is the file `index.html`.
    pub fn new(files: Vec<File>, data: Arc<dyn Data>) -> Pages {
        Pages { files: files::Files::new(files), data }
    }
}

impl Pages {
    /// What other parts of the process measure.
    pub(crate) async fn measured(&self) -> String {
        self.data.measured().await
    }
}

/// Answers for what is below [`DATA`].
pub trait Data: Send + Sync {
    /// Somebody has signed in, and is about to ask.
    fn prepare(&self) {}

    /// The domain of the cluster's names, without a dot at its end.
    fn domain(&self) -> &str;

    /// The answer to a question of somebody who may ask it.
    fn answer<'a>(&'a self, question: &'a Question<'a>) -> BoxFuture<'a, Result<Answer, Failure>>;

    /// What other parts of the process measure, as Prometheus reads it, for the server's own `/metrics`.
    fn measured(&self) -> BoxFuture<'_, String>;
}

/// What somebody wants to know.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// What follows [`DATA`] in the path, decoded.
    pub path: &'a str,
    query: &'a Query,
}

impl Question<'_> {
    /// A parameter; empty when absent.
    pub fn text(&self, name: &str) -> &str {
        self.query.text(name)
    }

    /// A parameter that is on or off: absent, empty, `0` and `false` are off.
    pub fn flag(&self, name: &str) -> bool {
        !self.text(name).is_empty() && self.query.flag(name).unwrap_or_default()
    }
}

/// What there is to know.
pub enum Answer {
    /// JSON text.
    Json(Bytes),
    /// Lines of JSON, as they come.
    Lines(BoxStream<'static, Bytes>),
}

impl Server {
    /// Shows pages beside the API. The first word counts.
    pub fn show(&self, pages: Pages) {
        if self.inner.pages.set(pages).is_err() {
            tracing::warn!("what is shown beside the API was said before");
        }
    }

    /// A link with which a browser signs in once, at most this long from now.
    pub fn link(&self, write: bool, lasts: SignedDuration) -> Result<Link, Failure> {
        self.inner.access.sessions.link(write, lasts, Timestamp::now())
    }
}

/// Whether a path is one that anybody may ask for.
pub(crate) fn is_public(route: &Route) -> Option<&str> {
    let Route::Path(path) = route else { return None };
    let rest = path.strip_prefix(FILES)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// What follows [`DATA`] in a path, if it begins so.
pub(crate) fn data(route: &Route) -> Option<&str> {
    let Route::Path(path) = route else { return None };
    path.strip_prefix(DATA)
}

/// Answers for `/ui` and below: `path` is what follows. Whatever the answer is, a browser is told to be careful with it.
pub(crate) fn public(server: &Inner, path: &str, parts: &Parts, body: &[u8]) -> Result<Response<Body>, Failure> {
    let pages = server.pages.get().ok_or_else(unauthorized)?;
    let answer = match (path, parts.method.as_str()) {
        ("/login", "POST") => login(server, parts, body),
        ("/logout", "POST") => logout(server, parts),
        ("/login" | "/logout", _) => Err(not_allowed()),
        (path, "GET" | "HEAD") => pages.files.answer(path, parts),
        _ => Err(not_allowed()),
    };
    let mut answer = answer.unwrap_or_else(|failure| reply::failure(&failure, plain_form(parts, &Query::default())));
    files::be_careful(answer.headers_mut());
    Ok(answer)
}

/// Whether somebody sends a body to [`public`].
pub(crate) fn takes_body(parts: &Parts) -> bool {
    parts.method == Method::POST
}

/// Makes a session of a link.
fn login(server: &Inner, parts: &Parts, body: &[u8]) -> Result<Response<Body>, Failure> {
    if cookie::same_origin(parts) == Some(false) {
        return Err(cookie::foreign());
    }
    let said: Value = serde_json::from_slice(body).map_err(|_| Failure::bad_request("want {\"token\": \"...\"}"))?;
    let used = || {
        let why = "this link was used already or is too old: `fairlead ui` prints a new one";
        Failure::new(401, "Unauthorized", why)
    };
    let id = server.access.sessions.redeem(said.text("token"), Timestamp::now())?.ok_or_else(used)?;
    if let Some(pages) = server.pages.get() {
        pages.data.prepare();
    }
    Ok(no_content(&cookie::set(&id)))
}

/// Ends a session, if there is one.
fn logout(server: &Inner, parts: &Parts) -> Result<Response<Body>, Failure> {
    if cookie::same_origin(parts) == Some(false) {
        return Err(cookie::foreign());
    }
    if let Some(id) = cookie::find(&parts.headers) {
        server.access.sessions.end(id);
    }
    Ok(no_content(&cookie::remove()))
}

fn no_content(cookie: &str) -> Response<Body> {
    let mut answer = Response::new(Empty::new().boxed_unsync());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    if let Ok(value) = HeaderValue::from_str(cookie) {
        answer.headers_mut().insert(SET_COOKIE, value);
    }
    answer
}

/// Answers for `/fairlead/v1/` and below: `path` is what follows. Who asks may.
pub(crate) async fn answer(
    server: &Inner,
    path: &str,
    user: &User,
    parts: &Parts,
    query: &Query,
    body: &[u8],
) -> Result<Response<Body>, Failure> {
    let form = plain_form(parts, query);
    match (path, parts.method.as_str()) {
        ("session", "GET") => Ok(reply::encode(200, &session(server, user, parts), form)),
        ("links", "POST") => Ok(reply::encode(201, &link(server, body)?, form)),
        ("links", _) => Err(not_allowed()),
        (_, "GET") => {
            let pages = server.pages.get().ok_or_else(|| nothing(path))?;
            let question = Question { path, query };
            match pages.data.answer(&question).await? {
                Answer::Json(text) => Ok(reply::respond(200, "application/json", text, is_worth_packing(parts))),
                Answer::Lines(lines) => Ok(stream(lines)),
            }
        }
        _ => Err(not_allowed()),
    }
}

/// Whether a long answer is packed: on the same machine that takes longer than to send it.
fn is_worth_packing(parts: &Parts) -> bool {
    let near = parts.extensions.get::<Connection>().is_some_and(|connection| connection.peer.ip().is_loopback());
    !near && negotiate::text(&parts.headers, ACCEPT_ENCODING).contains("gzip")
}

/// 404 for a path below [`DATA`] that means nothing.
pub fn nothing(path: &str) -> Failure {
    Failure::new(404, "NotFound", format!("there is nothing at {DATA}{path}"))
}

/// Who the sender is, and, of a session, until when and what proves that a write is meant; and what the page must know of the
/// cluster.
fn session(server: &Inner, user: &User, parts: &Parts) -> Value {
    let id = cookie::find(&parts.headers);
    let session = id.and_then(|id| server.access.sessions.find(id, Timestamp::now()));
    let about = Target::Resource { group: "", resource: "services", subresource: "", namespace: "", name: "" };
    let may = || server.access.authorize(user, &Attributes { verb: "patch", target: about }).is_ok();
    json!({
        "user": user.name,
        "write": session.as_ref().map_or_else(may, |session| session.write),
        "csrf": session.as_ref().map(|session| session.csrf.clone()),
        "expires": session.map(|session| time(session.expires)),
        "version": env!("CARGO_PKG_VERSION"),
        "domain": server.pages.get().map(|pages| pages.data.domain()),
    })
}

/// Makes a link.
fn link(server: &Inner, body: &[u8]) -> Result<Value, Failure> {
    let said: Value = match body {
        [] => json!({}),
        body => serde_json::from_slice(body).map_err(|_| Failure::bad_request("want {\"write\": true or false}"))?,
    };
    let write = match said.get("write") {
        None => false,
        Some(write) => write.as_bool().ok_or_else(|| Failure::bad_request("write: want true or false"))?,
    };
    let link = server.access.sessions.link(write, LINK, Timestamp::now())?;
    Ok(json!({"token": link.token, "path": link.path(), "expires": time(link.expires)}))
}

fn time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn stream(lines: BoxStream<'static, Bytes>) -> Response<Body> {
    let frames = lines.map(|line| Ok(Frame::data(line)));
    let mut answer = Response::new(StreamBody::new(frames).boxed_unsync());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    answer
}
