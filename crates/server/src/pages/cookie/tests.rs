use http::Request;
use jiff::Timestamp;

use super::*;

/// A request as `POST name: value; name: value`.
fn request(text: &str) -> Parts {
    let (method, headers) = text.split_once(' ').unwrap_or((text, ""));
    let mut request = Request::builder().method(method).uri("/api/v1/namespaces/default/services");
    for (name, value) in headers.split(" | ").filter_map(|header| header.split_once(": ")) {
        request = request.header(name, value);
    }
    request.body(()).unwrap().into_parts().0
}

#[track_caller]
fn check_find(headers: &str, want: Option<&str>) {
    assert_eq!(find(&request(&format!("GET {headers}")).headers), want, "{headers}");
}

#[test]
fn a_session_is_found_among_cookies_unless_other_credentials_are_shown() {
    check_find("cookie: __Host-fairlead=abc", Some("abc"));
    check_find("cookie: a=b; __Host-fairlead=abc; c=d", Some("abc"));
    check_find("cookie: a=b | cookie: __Host-fairlead=abc", Some("abc"));
    check_find("cookie: __Host-fairlead=abc | authorization: Bearer x", None);
    check_find("cookie: __Host-fairlead=abc | authorization: Basic x", None);
    check_find("cookie: fairlead=abc", None);
    check_find("cookie: __Host-fairlead", None);
    check_find("accept: text/html", None);
}

#[track_caller]
fn check_heard(write: bool, text: &str, heard: bool) {
    let session = Session { write, csrf: "secret".to_owned(), expires: Timestamp::MAX };
    let found = check(&request(text), &session);
    assert_eq!(found.is_ok(), heard, "{text}: {found:?}");
    assert!(found.is_ok() || found.is_err_and(|failure| failure.code == 403));
}

#[test]
fn a_write_shows_that_the_page_itself_sends_it() {
    let own = "host: 127.0.0.1:6443 | origin: https://127.0.0.1:6443";
    check_heard(true, &format!("POST {own} | x-fairlead-csrf: secret"), true);
    check_heard(true, &format!("DELETE {own} | x-fairlead-csrf: secret | sec-fetch-site: same-origin"), true);
    check_heard(true, "PATCH host: h | x-fairlead-csrf: secret | sec-fetch-site: same-origin", true);
    check_heard(true, "POST host: FL.test | origin: https://fl.test:443 | x-fairlead-csrf: secret", true);
    check_heard(true, &format!("POST {own}"), false);
    check_heard(true, &format!("POST {own} | x-fairlead-csrf: Secret"), false);
    check_heard(true, "POST host: h | x-fairlead-csrf: secret", false);
    check_heard(true, &format!("POST {own} | x-fairlead-csrf: secret | sec-fetch-site: cross-site"), false);
    check_heard(true, &format!("POST {own} | x-fairlead-csrf: secret | sec-fetch-site: same-site"), false);
    for origin in ["https://evil.test", "http://127.0.0.1:6443", "https://127.0.0.1", "null", ""] {
        check_heard(true, &format!("POST host: 127.0.0.1:6443 | origin: {origin} | x-fairlead-csrf: secret"), false);
    }
}

#[test]
fn who_only_looks_writes_nothing_and_nobody_opens_a_stream() {
    let own = "host: h | origin: https://h | x-fairlead-csrf: secret";
    check_heard(false, &format!("POST {own}"), false);
    check_heard(false, "GET host: h", true);
    check_heard(false, "HEAD host: h", true);
    check_heard(true, "GET host: h | upgrade: websocket", false);
    check_heard(false, "GET host: h | upgrade: SPDY/3.1", false);
}
