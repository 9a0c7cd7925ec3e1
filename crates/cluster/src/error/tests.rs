//! What answers mean.

use super::*;

fn check(code: u16, body: &str, expected: &str) {
    let error = Error::from(failure(code, body.as_bytes()));
    let kind = format!("{error:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
    assert_eq!(format!("{kind}: {error}"), expected, "{code} {body}");
}

fn status(code: u16, reason: &str) -> String {
    serde_json::json!({"kind": "Status", "code": code, "reason": reason, "message": "m"}).to_string()
}

#[test]
fn a_status_becomes_what_can_be_done_about_it() {
    check(404, &status(404, "NotFound"), "NotFound: m");
    check(409, &status(409, "AlreadyExists"), "AlreadyExists: m");
    check(409, &status(409, "Conflict"), "Conflict: m");
    check(422, &status(422, "Invalid"), "Invalid: m");
    check(403, &status(403, "Forbidden"), "Forbidden: m");
    check(401, &status(401, "Unauthorized"), "Forbidden: m");
    check(410, &status(410, "Expired"), "Expired: m");
    check(400, &status(400, "BadRequest"), "Refused: m");
    check(429, &status(429, "TooManyRequests"), "Unavailable: m");
    check(504, &status(504, "Timeout"), "Unavailable: m");
    check(500, &status(500, "SomethingNew"), "Unavailable: m");
}

#[test]
fn what_is_no_status_is_shown_as_it_came() {
    check(502, "<html>bad gateway\n", "Unavailable: the server answered 502: <html>bad gateway");
    check(404, "404 page not found", "NotFound: the server answered 404: 404 page not found");
    check(400, "", "Refused: the server answered 400: ");
    assert!(failure(500, &[b'x'; 10_000]).message.len() < 300);
    // A Status inside an answer of another code does not make it a success.
    check(500, r#"{"kind": "Status", "code": 200, "message": "m"}"#, "Unavailable: m");
}

#[test]
fn servers_that_are_busy_say_when_to_come_back() {
    let body = r#"{"kind": "Status", "code": 504, "message": "m", "details": {"retryAfterSeconds": 3}}"#;
    let Error::Unavailable { retry_after, .. } = failure(504, body.as_bytes()).into() else {
        panic!("not unavailable")
    };
    assert_eq!(retry_after, Some(Duration::from_secs(3)));
}

#[test]
fn a_namespace_on_its_way_out_is_told_apart() {
    let details = r#"{"causes": [{"reason": "NamespaceTerminating", "message": "m", "field": "metadata.namespace"}]}"#;
    let body = format!(r#"{{"kind": "Status", "code": 403, "reason": "Forbidden", "details": {details}}}"#);
    assert!(Error::from(failure(403, body.as_bytes())).is_namespace_terminating());
    assert!(!Error::from(failure(403, status(403, "Forbidden").as_bytes())).is_namespace_terminating());
}
