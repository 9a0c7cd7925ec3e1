//! What people see with a browser, beside the API: `/ui` has files that anybody may fetch, for they hold no data; `/fairlead/v1`
//! has the data, for those whom roles let get it and read what it is made of. A browser signs in with a link that works once, and
//! is known then by a cookie and by a secret that the page shows beside it.

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Kind, Look};
use fairlead_runtime::Permit;
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
/// How long what somebody sends may be who is not known yet: a token, and little around it.
const MAX_LOGIN: usize = 4096;

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

    /// What the answer to a question is made of, by its path: who asks must be allowed to list all of these in all namespaces.
    /// `None`: there is no such question.
    fn made_of(&self, path: &str) -> Option<&'static [&'static Kind]>;

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
pub(crate) fn public(
    server: &Inner,
    path: &str,
    parts: &Parts,
    body: Result<Bytes, Failure>,
) -> Result<Response<Body>, Failure> {
    let pages = server.pages.get().ok_or_else(unauthorized)?;
    let answer = match (path, parts.method.as_str()) {
        ("/login", "POST") => body.and_then(|body| login(server, parts, &body)),
        ("/logout", "POST") => logout(server, parts),
        ("/login" | "/logout", _) => Err(not_allowed()),
        (path, "GET" | "HEAD") => pages.files.answer(path, parts),
        _ => Err(not_allowed()),
    };
    let mut answer = answer.unwrap_or_else(|failure| reply::failure(&failure, plain_form(parts, &Query::default())));
    files::be_careful(answer.headers_mut());
    Ok(answer)
}

/// How much is read of what somebody sends to [`public`]; `None`: nothing.
pub(crate) fn login_body(path: &str, parts: &Parts) -> Option<usize> {
    (path == "/login" && parts.method == Method::POST).then_some(MAX_LOGIN)
}

/// Whether somebody sends a body to [`answer`].
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
    let signed = server.access.sessions.redeem(said.text("token"), Timestamp::now())?.ok_or_else(used)?;
    if let Some(pages) = server.pages.get() {
        pages.data.prepare();
    }
    let form = plain_form(parts, &Query::default());
    let mut answer = reply::encode(200, &json!({"proof": signed.proof}), form);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    with_cookie(answer, &cookie::set(&signed.id))
}

/// Ends a session, if there is one. Whoever only has its cookie does not end it.
fn logout(server: &Inner, parts: &Parts) -> Result<Response<Body>, Failure> {
    if cookie::same_origin(parts) == Some(false) {
        return Err(cookie::foreign());
    }
    let sessions = &server.access.sessions;
    if let Some(id) = cookie::find(&parts.headers)
        && let Some(session) = sessions.find(id, Timestamp::now())
    {
        if !cookie::is_proved(&parts.headers, &session) {
            return Err(cookie::foreign());
        }
        sessions.end(id);
    }
    let mut answer = Response::new(Empty::new().boxed_unsync());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    with_cookie(answer, &cookie::remove())
}

fn with_cookie(mut answer: Response<Body>, cookie: &str) -> Result<Response<Body>, Failure> {
    let value = HeaderValue::from_str(cookie).map_err(|error| Failure::internal(error.to_string()))?;
    answer.headers_mut().insert(SET_COOKIE, value);
    Ok(answer)
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
            may_know(server, user, pages.data.made_of(path).ok_or_else(|| nothing(path))?)?;
            let question = Question { path, query };
            match pages.data.answer(&question).await? {
                Answer::Json(text) => Ok(reply::respond(200, "application/json", text, is_worth_packing(parts))),
                // A page that follows changes lasts as long as a watch, and counts as one.
                Answer::Lines(lines) => Ok(stream(lines, server.shares().watch(user)?)),
            }
        }
        _ => Err(not_allowed()),
    }
}

/// 403 unless somebody may list all of these: a role made for paths alone gives away no objects.
fn may_know(server: &Inner, user: &User, kinds: &[&Kind]) -> Result<(), Failure> {
    kinds.iter().try_for_each(|kind| {
        let all =
            Target::Resource { group: kind.group, resource: kind.resource, subresource: "", namespace: "", name: "" };
        server.access.authorize(user, &Attributes { verb: "list", target: all })
    })
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

/// Who the sender is, and, of a session, until when; and what the page must know of the cluster.
fn session(server: &Inner, user: &User, parts: &Parts) -> Value {
    let id = cookie::find(&parts.headers);
    let named = id.and_then(|id| server.access.sessions.find(id, Timestamp::now()));
    let session = named.filter(|session| cookie::is_proved(&parts.headers, session));
    let about = Target::Resource { group: "", resource: "services", subresource: "", namespace: "", name: "" };
    let may = || server.access.authorize(user, &Attributes { verb: "patch", target: about }).is_ok();
    json!({
        "user": user.name,
        "write": session.as_ref().map_or_else(may, |session| session.write),
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

fn stream(lines: BoxStream<'static, Bytes>, permit: Permit) -> Response<Body> {
    let frames = lines.map(move |line| {
        let _held = &permit;
        Ok(Frame::data(line))
    });
    let mut answer = Response::new(StreamBody::new(frames).boxed_unsync());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    answer
}
