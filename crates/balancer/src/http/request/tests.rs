use super::*;
use crate::serving::Ends;

fn forwarded() -> Forwarded {
    let client = "192.0.2.7:1234".parse().expect("an address");
    Forwarded::new(&Ends { client, local: "203.0.113.1:80".parse().expect("an address"), peer: client }, false)
}

fn read_with(text: &str, trusted: bool, note: Option<&mut Note>) -> (Result<Option<Request>, Refusal>, String) {
    let (forwarded, mut out) = (forwarded(), Vec::new());
    let asking = Asking { forwarded: &forwarded, trusted, connect: true, longest_body: Some(1000) };
    let read = read(text.as_bytes(), &asking, note, &mut out);
    (read, String::from_utf8_lossy(&out).replace("\r\n", "\n"))
}

const LINES: &str =
    "X-Forwarded-For: 192.0.2.7\nX-Forwarded-Proto: http\nX-Forwarded-Port: 80\nForwarded: for=192.0.2.7;proto=http\n";

/// The head that a backend gets; `FORWARDED` stands for the lines about the client.
fn passes(text: &str, expected: &str) -> Request {
    let text = text.replace('\n', "\r\n");
    let (read, out) = read_with(&text, false, None);
    assert_eq!(out.replace(LINES, "FORWARDED\n"), expected, "{text}");
    let request = read.expect("it may be passed on").expect("it is whole");
    assert_eq!(request.length, text.find("\r\n\r\n").expect("an end") + 4);
    request
}

fn refused(text: &str, expected: Refusal) {
    let (read, _) = read_with(text, false, None);
    assert_eq!(read, Err(expected), "{text:?}");
}

#[test]
fn a_request_is_passed_on_with_the_client_s_address() {
    let request = passes(
        "GET /a?b HTTP/1.1\nHost: example.com\nAccept: */*\n\n",
        "GET /a?b HTTP/1.1\nHost: example.com\nAccept: */*\nFORWARDED\n\n",
    );
    assert_eq!((request.method, request.body, request.keep), (Method::Idempotent, Framing::Empty, true));
}

#[test]
fn what_is_for_one_connection_only_is_taken_away() {
    passes(
        "GET / HTTP/1.1\nHost: a\nConnection: close, X-One\nX-One: 1\nX-Two: 2\nKeep-Alive: 5\nTE: gzip\n\
         Proxy-Connection: close\nProxy: http://b\nUpgrade: websocket\n\n",
        "GET / HTTP/1.1\nHost: a\nX-Two: 2\nFORWARDED\n\n",
    );
    passes(
        "POST / HTTP/1.1\nConnection: host, content-length, x-forwarded-for\nHost: a\nContent-Length: 3\n\nabc",
        "POST / HTTP/1.1\nHost: a\nContent-Length: 3\nFORWARDED\n\n",
    );
    passes("GET / HTTP/1.1\nHost: a\nTE: trailers\n\n", "GET / HTTP/1.1\nHost: a\nFORWARDED\nTE: trailers\n\n");
}

#[test]
fn what_a_client_says_of_itself_is_replaced() {
    passes(
        "GET / HTTP/1.1\nHost: a\nX-Forwarded-For: 10.0.0.1\nForwarded: for=10.0.0.1\nX-Forwarded-Proto: https\n\
         x_forwarded_for: 10.0.0.1\n\n",
        "GET / HTTP/1.1\nHost: a\nFORWARDED\n\n",
    );
    let vouched = [
        "X-Real-IP",
        "x-real-ip",
        "X_Real_IP",
        "x-real_ip",
        "Client-IP",
        "Client_IP",
        "X-Client-IP",
        "True-Client-IP",
        "Forwarded-For",
        "X-Cluster-Client-IP",
        "X-Original-Forwarded-For",
        "CF-Connecting-IP",
        "Fastly-Client-IP",
        "X-Envoy-External-Address",
        "X-Forwarded",
        "X-Forwarded-Host",
        "X-Forwarded-Server",
        "X-Forwarded-Prefix",
        "X-Forwarded-Ssl",
        "X_Forwarded_Host",
        "X-FORWARDED-BY",
    ];
    for name in vouched {
        passes(
            &format!("GET / HTTP/1.1\nHost: a\n{name}: 10.0.0.1\nX-Other: 1\n\n"),
            "GET / HTTP/1.1\nHost: a\nX-Other: 1\nFORWARDED\n\n",
        );
        let (_, out) = read_with(&format!("GET / HTTP/1.1\r\nHost: a\r\n{name}: 10.0.0.1\r\n\r\n"), true, None);
        assert_eq!(out.contains(&format!("\n{name}: 10.0.0.1\n")), !name.contains('_'), "{out}");
        // `Connection` does not take away what a front says.
        let named = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: {name}\r\n{name}: 10.0.0.1\r\n\r\n");
        assert_eq!(read_with(&named, true, None).1.contains(": 10.0.0.1\n"), !name.contains('_'));
    }
    let text = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n";
    let (_, out) = read_with(text, true, None);
    assert!(out.contains("X-Forwarded-For: 10.0.0.1, 192.0.2.7\n"), "{out}");
}

#[test]
fn the_host_of_a_whole_uri_counts() {
    passes(
        "GET http://b.example/x HTTP/1.1\nHost: a\nX: y\n\n",
        "GET /x HTTP/1.1\nHost: b.example\nX: y\nFORWARDED\n\n",
    );
    passes("GET http://b?q HTTP/1.1\nHost: a\n\n", "GET /?q HTTP/1.1\nHost: b\nFORWARDED\n\n");
    let request = passes("CONNECT b:443 HTTP/1.1\nHost: b\n\n", "CONNECT b:443 HTTP/1.1\nHost: b\nFORWARDED\n\n");
    assert_eq!(request.method, Method::Connect);
}

#[test]
fn an_old_client_is_understood() {
    let request = passes("GET / HTTP/1.0\n\n", "GET / HTTP/1.1\nHost: \nFORWARDED\n\n");
    assert_eq!((request.old, request.keep), (true, false));
    let request =
        passes("GET / HTTP/1.0\nHost: a\nConnection: keep-alive\n\n", "GET / HTTP/1.1\nHost: a\nFORWARDED\n\n");
    assert!(request.keep);
}

#[test]
fn another_protocol_may_be_asked_for_but_not_http_2() {
    let request = passes(
        "GET / HTTP/1.1\nHost: a\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Key: x\n\n",
        "GET / HTTP/1.1\nHost: a\nSec-WebSocket-Key: x\nFORWARDED\nConnection: upgrade\nUpgrade: websocket\n\n",
    );
    assert!(request.upgrade);
    let request = passes(
        "GET / HTTP/1.1\nHost: a\nConnection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: x\n\n",
        "GET / HTTP/1.1\nHost: a\nFORWARDED\n\n",
    );
    assert!(!request.upgrade);
}

#[test]
fn bodies_are_framed_once() {
    let framed = |text: &str| {
        let text = format!("POST / HTTP/1.1\r\nHost: a\r\n{text}\r\n\r\n");
        read_with(&text, false, None).0.map(|request| request.expect("it is whole").body)
    };
    let cases = [
        ("A: b", Ok(Framing::Empty)),
        ("Content-Length: 0", Ok(Framing::Empty)),
        ("Content-Length: 7", Ok(Framing::Length(7))),
        ("Transfer-Encoding: chunked", Ok(Framing::Chunked)),
        ("Transfer-Encoding: Chunked", Ok(Framing::Chunked)),
        ("Content-Length: 7\r\nTransfer-Encoding: chunked", Err(Refusal::TWO_FRAMINGS)),
        ("Transfer-Encoding: chunked\r\nContent-Length: 7", Err(Refusal::TWO_FRAMINGS)),
        ("Content-Length: 7\r\nContent-Length: 7", Err(Refusal::LENGTH)),
        ("Content-Length: 7\r\nContent-Length: 8", Err(Refusal::LENGTH)),
        ("Content-Length: 7, 7", Err(Refusal::LENGTH)),
        ("Content-Length: +7", Err(Refusal::LENGTH)),
        ("Content-Length: 0x7", Err(Refusal::LENGTH)),
        ("Content-Length: ", Err(Refusal::LENGTH)),
        ("Content-Length: 18446744073709551623", Err(Refusal::LENGTH)),
        ("Transfer-Encoding: chunked, chunked", Err(Refusal::ENCODING)),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", Err(Refusal::ENCODING)),
        ("Transfer-Encoding: gzip, chunked", Err(Refusal::ENCODING)),
        ("Transfer-Encoding: identity", Err(Refusal::ENCODING)),
        ("Transfer-Encoding: xchunked", Err(Refusal::ENCODING)),
        ("Transfer-Encoding: \"chunked\"", Err(Refusal::ENCODING)),
        ("Transfer-Encoding:", Err(Refusal::ENCODING)),
        ("Content-Length: 1001", Err(Refusal::BODY)),
        ("Expect: 200-ok", Err(Refusal::EXPECT)),
        ("Connection: upgrade\r\nUpgrade: a\r\nUpgrade: b", Err(Refusal::FIELD)),
    ];
    for (text, expected) in cases {
        assert_eq!(framed(text), expected, "{text}");
    }
    refused("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", Refusal::ENCODING);
    refused("CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n", Refusal::UNWANTED_BODY);
}

#[test]
fn fields_that_frame_a_body_are_written_in_one_way() {
    for spelled in ["Transfer-Encoding: chunked", "transfer-encoding:\tchunked", "Transfer-encodinG:  ChUnKeD \t "] {
        let text = format!("POST / HTTP/1.1\nHost: a\n{spelled}\nA: b\n\n");
        passes(&text, "POST / HTTP/1.1\nHost: a\nA: b\nTransfer-Encoding: chunked\nFORWARDED\n\n");
    }
    for (said, written) in [("007", "7"), ("00", "0"), ("0000000000000000018", "18")] {
        let text = format!("POST / HTTP/1.1\nHost: a\nContent-Length: {said}\nA: b\n\n");
        passes(&text, &format!("POST / HTTP/1.1\nHost: a\nA: b\nContent-Length: {written}\nFORWARDED\n\n"));
    }
    passes(
        "POST / HTTP/1.1\nHost: a\nContent-Length: 0\n\n",
        "POST / HTTP/1.1\nHost: a\nContent-Length: 0\nFORWARDED\n\n",
    );
}

#[test]
fn a_tunnel_is_refused_where_it_is_not_asked_for() {
    let forwarded = forwarded();
    let asking = Asking { forwarded: &forwarded, trusted: true, connect: false, longest_body: None };
    for text in ["CONNECT b:443 HTTP/1.1\r\nHost: b\r\n\r\n", "CONNECT / HTTP/1.0\r\n\r\n"] {
        assert_eq!(read(text.as_bytes(), &asking, None, &mut Vec::new()), Err(Refusal::CONNECT));
    }
    // Methods are told apart by case (RFC 9110, 9.1): this is another one, for a path.
    let other = read(b"connect / HTTP/1.1\r\nHost: b\r\n\r\n", &asking, None, &mut Vec::new());
    assert_eq!(other.map(|request| request.map(|request| request.method)), Ok(Some(Method::Other)));
}

#[test]
fn what_another_reader_could_read_differently_is_refused() {
    let cases = [
        ("GET / HTTP/1.1\nHost: a\n\n", Refusal::LINES),
        ("GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", Refusal::LINES),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: y\n\r\n", Refusal::LINES),
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", Refusal::LINES),
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::LINES),
        ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::LINES),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", Refusal::MALFORMED),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", Refusal::MALFORMED),
        ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", Refusal::MALFORMED),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", Refusal::MALFORMED),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", Refusal::MALFORMED),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\0: a\r\n\r\n", Refusal::MALFORMED),
        ("GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", Refusal::MALFORMED),
        ("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", Refusal::MALFORMED),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\x0b: chunked\r\n\r\n", Refusal::MALFORMED),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::MALFORMED),
        ("G@T / HTTP/1.1\r\nHost: a\r\n\r\n", Refusal::MALFORMED),
        ("GET / HTTP/1.1\r\n\r\n", Refusal::HOST),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Refusal::HOST),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", Refusal::HOST),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", Refusal::VERSION),
        ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", Refusal::VERSION),
        ("GET /\r\nHost: a\r\n\r\n", Refusal::MALFORMED),
    ];
    for (text, expected) in cases {
        let (read, _) = read_with(text, false, None);
        let status = read.map(|_| ()).map_err(|refusal| refusal.status);
        assert_eq!(status, Err(expected.status), "{text:?}");
    }
}

#[test]
fn heads_are_bounded() {
    let fields = |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert!(matches!(read_with(&fields(100), false, None).0, Ok(Some(_))));
    refused(&fields(head::FIELDS), Refusal::FIELDS);
    refused(&format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}", "b".repeat(head::LONGEST)), Refusal::FIELDS);
    refused(&format!("GET /{}", "b".repeat(target::LONGEST + 100)), Refusal::LONG_TARGET);
    refused(&format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "b".repeat(target::LONGEST)), Refusal::LONG_TARGET);
    refused(&format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: {}\r\n\r\n", "a,".repeat(40)), Refusal::FIELDS);
    for part in ["", "\r", "\r\n", "GET", "GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r"] {
        assert_eq!(read_with(part, false, None).0, Ok(None), "{part:?}");
    }
    let after_a_blank = "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = read_with(after_a_blank, false, None).0.map(|request| request.map(|request| request.length));
    assert_eq!(length, Ok(Some(after_a_blank.len())));
}

#[test]
fn the_log_gets_a_whole_uri_and_the_agent() {
    let cases = [
        ("GET /a HTTP/1.1\r\nHost: b\r\nUser-Agent: c/1\r\n\r\n", "GET http://b:80/a HTTP/1.1", Some("c/1")),
        ("GET /a HTTP/1.1\r\nHost: b:8080\r\n\r\n", "GET http://b:8080/a HTTP/1.1", None),
        ("GET /a HTTP/1.1\r\nHost: [::1]\r\n\r\n", "GET http://[::1]:80/a HTTP/1.1", None),
        ("GET http://c/a HTTP/1.0\r\n\r\n", "GET http://c:80/a HTTP/1.0", None),
    ];
    for (text, line, agent) in cases {
        let mut note = Note::default();
        read_with(text, false, Some(&mut note)).0.expect("it may be passed on");
        assert_eq!((note.line.as_str(), note.agent.as_deref()), (line, agent));
    }
}
