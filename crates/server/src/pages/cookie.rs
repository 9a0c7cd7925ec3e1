//! The cookie by which a browser is known, and what a request must show beside it. A browser sends a cookie to every port of a host
//! name, and other sites can make it send requests: nobody is known by a cookie unless the page itself asks.

use fairlead_api::Failure;
use http::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, ORIGIN, SET_COOKIE, UPGRADE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method};

use super::sessions::{LASTS, Session};
use crate::route::Route;

#[cfg(test)]
mod tests;

/// The name makes browsers refuse the cookie from anybody but this very host, over TLS.
const NAME: &str = "__Host-fairlead";
/// Shows that the page itself sends a request: what signing in answered beside the cookie.
const PROOF: HeaderName = HeaderName::from_static("x-fairlead-proof");
/// Browsers say with it where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The secret of the session a request belongs to. Who shows other credentials means those.
pub(crate) fn find(headers: &HeaderMap) -> Option<&str> {
    if headers.contains_key(AUTHORIZATION) {
        return None;
    }
    let lines = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == NAME).map(|(_, value)| value)
}

/// The header that gives a browser its cookie.
pub(super) fn set(id: &str) -> String {
    format!("{NAME}={id}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={}", LASTS.as_secs())
}

/// The header that takes it away.
pub(super) fn remove() -> String {
    format!("{NAME}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0")
}

/// Removes the secrets of a session from a request that is passed on. Other cookies stay.
pub(crate) fn remove_secrets(headers: &mut HeaderMap) {
    headers.remove(PROOF);
    keep_values(headers, COOKIE, |line| {
        let pairs = line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let others: Vec<&[u8]> = pairs.filter(|pair| !is_own(pair)).collect();
        Some(others.join(&b"; "[..])).filter(|line| !line.is_empty())
    });
}

/// Removes the cookie of sessions from an answer of another server: it is not theirs to set.
pub(crate) fn remove_set(headers: &mut HeaderMap) {
    keep_values(headers, SET_COOKIE, |line| {
        let pair = line.split(|byte| *byte == b';').next().unwrap_or_default();
        (!is_own(pair)).then(|| line.to_vec())
    });
}

/// Returns true for `NAME=VALUE` or `NAME` with the name of our cookie. Some browsers take
/// `=NAME=VALUE` for a cookie without a name and send it back as `NAME=VALUE` (RFC 6265bis asks
/// for the refusal of such cookies).
fn is_own(pair: &[u8]) -> bool {
    let start = pair.iter().position(|byte| *byte != b'=' && !byte.is_ascii_whitespace()).unwrap_or(pair.len());
    let name = pair[start..].split(|byte| *byte == b'=').next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(NAME.as_bytes())
}

/// Replaces each value of a header by what `keep` makes of it.
fn keep_values(headers: &mut HeaderMap, name: HeaderName, keep: impl Fn(&[u8]) -> Option<Vec<u8>>) {
    let kept: Vec<_> = headers.get_all(&name).iter().filter_map(|value| keep(value.as_bytes())).collect();
    headers.remove(&name);
    for value in kept {
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            headers.append(&name, value);
        }
    }
}

/// Whether a request comes from the page that signed in to the session whose cookie it has.
pub(crate) fn is_proved(headers: &HeaderMap, session: &Session) -> bool {
    headers.get(PROOF).is_some_and(|shown| session.is_proved_by(shown.as_bytes()))
}

/// Whether a request of a session is heard.
pub(crate) fn check(parts: &Parts, session: &Session) -> Result<(), Failure> {
    if parts.headers.contains_key(UPGRADE) {
        return Err(refused("a session of the page cannot open a stream: use kubectl or fairlead exec"));
    }
    if matches!(parts.method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    if !session.write {
        return Err(refused(
            "this session only looks: `fairlead ui --write` prints a link for one that may change things",
        ));
    }
    match same_origin(parts) {
        Some(true) => Ok(()),
        _ => Err(foreign()),
    }
}

/// What somebody is told who is not known but has a cookie: they were, or it is not theirs.
pub(crate) fn explained(failure: Failure, headers: &HeaderMap) -> Failure {
    let why = match (failure.code, find(headers)) {
        (401, Some(_)) if headers.contains_key(PROOF) => "this session has ended: `fairlead ui` prints a new link",
        (401, Some(_)) => {
            "a cookie alone signs nobody in: show X-Fairlead-Proof, too, or open the page with a link of `fairlead ui`"
        }
        _ => return failure,
    };
    Failure { message: why.to_owned(), ..failure }
}

/// What a session must not get at whatever its roles say: what Pods answer would run as if it were the page.
pub(crate) fn check_route(route: &Route) -> Result<(), Failure> {
    match route {
        Route::Resource(target) if target.subresource == "proxy" => {
            Err(refused("a session of the page cannot look through the proxy: use kubectl"))
        }
        _ => Ok(()),
    }
}

/// Whether a request comes from a page that is not this server's, as far as it says: one of another port is of the same site.
pub(crate) fn is_foreign(parts: &Parts) -> bool {
    let fetched = parts.headers.get(FETCH_SITE).map(HeaderValue::as_bytes);
    matches!(fetched, Some(b"same-site" | b"cross-site")) || own_origin(parts) == Some(false)
}

/// Whether a request comes from a page of this server; `None`: it does not say.
pub(super) fn same_origin(parts: &Parts) -> Option<bool> {
    let fetched = parts.headers.get(FETCH_SITE).map(|site| site.as_bytes() == b"same-origin");
    match (fetched, own_origin(parts)) {
        (None, None) => None,
        (fetched, from) => Some(fetched.unwrap_or(true) && from.unwrap_or(true)),
    }
}

/// Whether the header `Origin` names this server; `None`: there is none.
fn own_origin(parts: &Parts) -> Option<bool> {
    let text = |name: &HeaderName| parts.headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let own = parts.uri.authority().map(|authority| authority.as_str()).or_else(|| text(&HOST));
    text(&ORIGIN).map(|origin| {
        let from = origin.strip_prefix("https://");
        from.zip(own).is_some_and(|(from, own)| plain(from).eq_ignore_ascii_case(plain(own)))
    })
}

/// Without the port everybody knows.
fn plain(authority: &str) -> &str {
    authority.strip_suffix(":443").unwrap_or(authority)
}

/// 403 for what another site made a browser send.
pub(crate) fn foreign() -> Failure {
    refused("this comes from another site, or does not say where from")
}

fn refused(why: &str) -> Failure {
    Failure::new(403, "Forbidden", why)
}
