//! `/healthz`, `/livez`, `/readyz` with `?verbose` and `?exclude=`, and one check at a time.

use fairlead_api::Failure;
use http::request::Parts;
use http::{Method, Response};

use crate::options::Query;
use crate::reply::{self, Body};
use crate::{Inner, not_allowed};

/// What is looked at. A server that answers has started; a store that fails shows in every request.
const CHECKS: [&str; 2] = ["ping", "store"];

/// Answers a health path; `None` for any other path.
pub(crate) fn answer(
    _server: &Inner,
    path: &str,
    parts: &Parts,
    query: &Query,
) -> Option<Result<Response<Body>, Failure>> {
    let (probe, check) = split(path)?;
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Some(Err(not_allowed()));
    }
    Some(Ok(match check {
        Some(check) if CHECKS.contains(&check) => reply::plain(200, "ok"),
        Some(_) => reply::plain(404, "404 page not found\n"),
        None if query.get("verbose").is_some() => reply::plain(200, verbose(probe, &query.all("exclude"))),
        None => reply::plain(200, "ok"),
    }))
}

fn split(path: &str) -> Option<(&str, Option<&str>)> {
    let mut parts = path.trim_end_matches('/').splitn(3, '/').skip(1);
    let probe = parts.next().filter(|probe| matches!(*probe, "healthz" | "livez" | "readyz"))?;
    Some((probe, parts.next()))
}

fn verbose(probe: &str, exclude: &[&str]) -> String {
    let mut text = String::new();
    for check in CHECKS {
        let state = if exclude.contains(&check) { "excluded: ok" } else { "ok" };
        text.push_str(&format!("[+]{check} {state}\n"));
    }
    text.push_str(&format!("{probe} check passed\n"));
    text
}
