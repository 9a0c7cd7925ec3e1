//! `/healthz`, `/livez`, `/readyz` with `?verbose` and `?exclude=`, and one check at a time. A server that answers is alive; it
//! is ready and healthy when its store answers too.

use std::time::Duration;

use fairlead_api::Failure;
use fairlead_store::Backend;
use http::request::Parts;
use http::{Method, Response};

use crate::options::Query;
use crate::reply::{self, Body};
use crate::{Inner, not_allowed};

/// How long the store may take to answer a probe; those who ask give up soon after.
const PATIENCE: Duration = Duration::from_secs(2);

/// A thing that is looked at, and what was wrong with it.
struct Check {
    name: &'static str,
    trouble: Option<String>,
}

/// Answers a health path; `None` for any other path.
pub(crate) async fn answer(
    server: &Inner,
    path: &str,
    parts: &Parts,
    query: &Query,
) -> Option<Result<Response<Body>, Failure>> {
    let (probe, wanted) = split(path)?;
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Some(Err(not_allowed()));
    }
    let excluded = query.all("exclude");
    let mut checks = vec![Check { name: "ping", trouble: None }];
    // A restart does not mend a store elsewhere, so being alive does not depend on it.
    if probe != "livez" && !excluded.contains(&"store") && wanted != Some("ping") {
        checks.push(Check { name: "store", trouble: trouble(&*server.store).await });
    }
    if let Some(wanted) = wanted {
        checks.retain(|check| check.name == wanted);
        if checks.is_empty() {
            return Some(Ok(reply::plain(404, "404 page not found\n")));
        }
    }
    Some(Ok(respond(probe, &checks, query.get("verbose").is_some())))
}

fn split(path: &str) -> Option<(&str, Option<&str>)> {
    let mut parts = path.trim_end_matches('/').splitn(3, '/').skip(1);
    let probe = parts.next().filter(|probe| matches!(*probe, "healthz" | "livez" | "readyz"))?;
    Some((probe, parts.next()))
}

/// Why the store does not answer.
async fn trouble(store: &dyn Backend) -> Option<String> {
    match tokio::time::timeout(PATIENCE, store.health()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

/// `ok`, or every check by name; why one failed is for the log only, since anybody may ask.
fn respond(probe: &str, checks: &[Check], verbose: bool) -> Response<Body> {
    let failed = checks.iter().any(|check| check.trouble.is_some());
    if !failed && !verbose {
        return reply::plain(200, "ok");
    }
    let mut text = String::new();
    for Check { name, trouble } in checks {
        match trouble {
            None => text.push_str(&format!("[+]{name} ok\n")),
            Some(why) => {
                tracing::warn!(check = name, why, "{probe} check failed");
                text.push_str(&format!("[-]{name} failed: reason withheld\n"));
            }
        }
    }
    let (code, end) = if failed { (500, "failed") } else { (200, "passed") };
    reply::plain(code, format!("{text}{probe} check {end}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn a_failed_check_fails_the_probe_and_keeps_the_reason_to_itself() {
        let checks =
            [Check { name: "ping", trouble: None }, Check { name: "store", trouble: Some("secret".to_owned()) }];
        let answer = respond("readyz", &checks, false);
        assert_eq!(answer.status(), 500);
        let text = answer.into_body().collect().await.expect("a body").to_bytes();
        assert_eq!(text, "[+]ping ok\n[-]store failed: reason withheld\nreadyz check failed\n");
        assert_eq!(respond("readyz", &checks[..1], false).status(), 200);
    }
}
