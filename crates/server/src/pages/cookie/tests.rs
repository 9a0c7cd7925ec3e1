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
    let session = Session::new(write, Timestamp::MAX, "secret");
    let found = check(&request(text), &session);
    assert_eq!(found.is_ok(), heard, "{text}: {found:?}");
    assert!(found.is_ok() || found.is_err_and(|failure| failure.code == 403));
}

#[test]
fn a_write_shows_that_the_page_itself_sends_it() {
    let own = "host: 127.0.0.1:6443 | origin: https://127.0.0.1:6443";
    check_heard(true, &format!("POST {own}"), true);
    check_heard(true, &format!("DELETE {own} | sec-fetch-site: same-origin"), true);
    check_heard(true, "PATCH host: h | sec-fetch-site: same-origin", true);
    check_heard(true, "POST host: FL.test | origin: https://fl.test:443", true);
    check_heard(true, "POST host: h", false);
    check_heard(true, &format!("POST {own} | sec-fetch-site: none"), false);
    check_heard(true, &format!("POST {own} | sec-fetch-site: cross-site"), false);
    check_heard(true, &format!("POST {own} | sec-fetch-site: same-site"), false);
    for origin in ["https://evil.test", "http://127.0.0.1:6443", "https://127.0.0.1", "null", ""] {
        check_heard(true, &format!("POST host: 127.0.0.1:6443 | origin: {origin}"), false);
    }
}

#[track_caller]
fn check_proved(text: &str, proved: bool) {
    let session = Session::new(true, Timestamp::MAX, "secret");
    assert_eq!(is_proved(&request(text).headers, &session), proved, "{text}");
}

#[test]
fn a_cookie_is_worth_nothing_without_what_only_the_page_knows() {
    check_proved("GET x-fairlead-proof: secret", true);
    check_proved("GET host: h", false);
    check_proved("GET x-fairlead-proof: Secret", false);
    check_proved("GET x-fairlead-proof: ", false);
    check_proved("POST host: h | origin: https://h", false);
}

#[track_caller]
fn check_foreign(text: &str, foreign: bool) {
    assert_eq!(is_foreign(&request(text)), foreign, "{text}");
}

#[test]
fn who_only_reads_may_come_from_an_address_bar_but_from_no_other_page() {
    check_foreign("GET host: h", false);
    check_foreign("GET host: h | sec-fetch-site: same-origin", false);
    check_foreign("GET host: h | sec-fetch-site: none", false);
    check_foreign("GET host: h | origin: https://h", false);
    check_foreign("GET host: h | sec-fetch-site: same-site", true);
    check_foreign("HEAD host: h | sec-fetch-site: cross-site", true);
    check_foreign("GET host: h:6443 | origin: https://h:8443", true);
    check_foreign("GET host: h | origin: null | sec-fetch-site: same-origin", true);
}

#[test]
fn who_only_looks_writes_nothing_and_nobody_opens_a_stream() {
    let own = "host: h | origin: https://h";
    check_heard(false, &format!("POST {own}"), false);
    check_heard(false, "GET host: h", true);
    check_heard(false, "HEAD host: h", true);
    check_heard(true, "GET host: h | upgrade: websocket", false);
    check_heard(false, "GET host: h | upgrade: SPDY/3.1", false);
}

#[track_caller]
fn check_secrets(headers: &str, want: &[(&str, &str)]) {
    let mut headers = request(&format!("GET {headers}")).headers;
    remove_secrets(&mut headers);
    let got: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    assert_eq!(got, want);
}

#[test]
fn secrets_of_a_session_are_not_passed_on() {
    check_secrets("cookie: __Host-fairlead=abc | x-fairlead-proof: secret", &[]);
    check_secrets("cookie: a=b; __Host-fairlead=abc;c=d", &[("cookie", "a=b; c=d")]);
    check_secrets("cookie: a=b | cookie: __Host-fairlead=abc | cookie: c", &[("cookie", "a=b"), ("cookie", "c")]);
    check_secrets("cookie: __Host-fairlead=abc; __HOST-Fairlead =d; __Host-fairlead", &[]);
    check_secrets(
        "cookie: __Host-fairlead2=abc; d=__Host-fairlead",
        &[("cookie", "__Host-fairlead2=abc; d=__Host-fairlead")],
    );
    let mut headers = HeaderMap::new();
    headers.insert(COOKIE, HeaderValue::from_bytes(b"a=\xff; __Host-fairlead=abc").unwrap());
    remove_secrets(&mut headers);
    assert_eq!(headers[COOKIE].as_bytes(), b"a=\xff");
}

#[test]
fn another_server_cannot_set_the_cookie_of_sessions() {
    let mut headers = HeaderMap::new();
    let own =
        ["__Host-fairlead=x; Path=/; Secure", " __host-Fairlead = x", "=__Host-fairlead=x", "__Host-fairlead;a=b"];
    let others = ["a=b; Path=/", "__Host-fairlead2=x", "a=__Host-fairlead"];
    for value in own.iter().chain(&others) {
        headers.append(SET_COOKIE, HeaderValue::from_static(value));
    }
    remove_set(&mut headers);
    let left: Vec<_> = headers.get_all(SET_COOKIE).iter().map(|value| value.to_str().unwrap()).collect();
    assert_eq!(left, others);
}
