use super::*;
use crate::http::forwarded::Forwarded;
use crate::serving::Ends;

pub(super) fn forwarded() -> Forwarded {
    let client = "192.0.2.7:1234".parse().expect("an address");
    Forwarded::new(&Ends { client, local: "203.0.113.1:443".parse().expect("an address"), peer: client }, true)
}

pub(super) fn parts(method: &str, uri: &str, fields: &[(&str, &str)]) -> request::Parts {
    let mut request = Head2::builder().method(method).uri(uri);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request").into_parts().0
}

fn to_lines(parts: &request::Parts, ended: bool) -> Result<String, Refusal> {
    let (forwarded, mut out) = (forwarded(), Vec::new());
    let asking = Asking { forwarded: &forwarded, trusted: false, connect: true, longest_body: Some(1000) };
    to_h1(parts, ended, &asking, &mut out)?;
    let mut about = Vec::new();
    forwarded.write(None, &mut about);
    let (text, about) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&about));
    Ok(text.replace(&*about, "FORWARDED\r\n").replace("\r\n", "\n"))
}

#[test]
fn a_request_becomes_lines() {
    let cases = [
        (
            parts("GET", "https://a.example/b?c", &[("accept", "x")]),
            true,
            "GET /b?c HTTP/1.1\nHost: a.example\naccept: x\nFORWARDED\n\n",
        ),
        (
            parts("POST", "https://a/", &[("content-length", "3"), ("te", "trailers")]),
            false,
            "POST / HTTP/1.1\nHost: a\nContent-Length: 3\nFORWARDED\nTE: trailers\n\n",
        ),
        (
            parts("POST", "https://a/", &[]),
            false,
            "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nFORWARDED\n\n",
        ),
        (
            parts("GET", "https://a/", &[("cookie", "b=1"), ("cookie", "c=2"), ("x-forwarded-for", "10.0.0.1")]),
            true,
            "GET / HTTP/1.1\nHost: a\ncookie: b=1; c=2\nFORWARDED\n\n",
        ),
        (parts("GET", "/", &[("host", "a")]), true, "GET / HTTP/1.1\nHost: a\nFORWARDED\n\n"),
    ];
    for (parts, ended, expected) in cases {
        assert_eq!(to_lines(&parts, ended).as_deref(), Ok(expected));
    }
}

#[test]
fn a_request_that_lines_cannot_say_is_refused() {
    let cases = [
        (parts("GET", "https://a/", &[("host", "b")]), true, Refusal::HOST),
        (parts("GET", "/", &[]), true, Refusal::HOST),
        (parts("GET", "https://u@a/", &[]), true, Refusal::HOST),
        (parts("POST", "https://a/", &[("transfer-encoding", "chunked")]), false, Refusal::ENCODING),
        (parts("POST", "https://a/", &[("content-length", "3"), ("content-length", "3")]), false, Refusal::LENGTH),
        (parts("POST", "https://a/", &[("content-length", "+3")]), false, Refusal::LENGTH),
        (parts("POST", "https://a/", &[("content-length", "3")]), true, Refusal::BODY_LENGTH),
        (parts("POST", "https://a/", &[("content-length", "1001")]), false, Refusal::BODY),
        (parts("CONNECT", "a:443", &[]), true, Refusal::TARGET),
    ];
    for (parts, ended, expected) in cases {
        assert_eq!(to_lines(&parts, ended), Err(expected), "{parts:?}");
    }
}

#[test]
fn an_answer_becomes_fields_without_those_of_its_connection() {
    let request = Request {
        length: 0,
        method: Method::Idempotent,
        old: false,
        body: Framing::Empty,
        keep: true,
        upgrade: false,
        expects: false,
    };
    let text = b"HTTP/1.1 200 Fine\r\nServer: x\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX-Empty:\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (response, answer) = answer_to_h2(text, &request).expect("it can be read").expect("it is whole");
    assert_eq!((response.status, response.body, response.keep), (200, Framing::Chunked, false));
    let fields: Vec<(&str, &[u8])> =
        answer.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    assert_eq!(fields, [("server", &b"x"[..]), ("x-empty", b"")]);
}

#[test]
fn trailers_keep_what_does_not_frame() {
    let read = trailers(b"grpc-status: 0\r\nTransfer-Encoding: chunked\r\n\r\n").expect("there are some");
    assert_eq!((read.len(), &read["grpc-status"]), (1, &HeaderValue::from_static("0")));
    assert_eq!(trailers(b"\r\n"), None);
    let mut out = Vec::new();
    trailer_lines(&read, &mut out);
    assert_eq!(out, b"grpc-status: 0\r\n");
}
