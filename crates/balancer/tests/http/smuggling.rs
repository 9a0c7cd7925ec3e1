//! Requests and answers with two meanings, through a real listener: each is refused, or the next
//! one to read it has one way to do so. Beside them a client that behaves well is answered.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::lab::{Client, Server, Wish, in_lab, status};

/// A request that must never be one for a backend: it only stands in bodies.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

/// Fails unless a head is written in the one way in which a backend gets it.
#[track_caller]
fn is_canonical(head: &str) {
    let mut lines = head.strip_suffix("\r\n\r\n").unwrap_or_else(|| panic!("{head:?}")).split("\r\n");
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    assert!(matches!(words[..], [_, path, "HTTP/1.1"] if path.starts_with('/') || path == "*"), "{head:?}");
    assert!(!words[1].starts_with("/smuggled"), "{head:?}");
    let mut lengths = 0;
    let mut encodings = 0;
    let mut hosts = 0;
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap_or_else(|| panic!("{line:?} in {head:?}"));
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        assert!(!name.is_empty() && name.bytes().all(token), "{line:?}");
        assert!(value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)), "{line:?}");
        match name.to_ascii_lowercase().replace('_', "-").as_str() {
            "content-length" => {
                assert_eq!(value.parse::<u64>().map(|length| length.to_string()).as_deref(), Ok(value), "{line:?}");
                lengths += 1;
            }
            "transfer-encoding" => {
                assert_eq!(line, "Transfer-Encoding: chunked");
                encodings += 1;
            }
            "host" => hosts += 1,
            "connection" | "upgrade" | "keep-alive" | "proxy-connection" => panic!("{line:?} is passed on"),
            _ => {}
        }
    }
    assert!(hosts == 1 && lengths + encodings <= 1, "{head:?}");
}

/// Expected outcome of a request.
enum Verdict<'a> {
    Refused,
    /// Passed on with this body.
    Passed(&'a str),
}

fn post(fields: &str, body: &str) -> String {
    format!("POST /case HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{body}")
}

/// Text as one chunk, and the last chunk.
fn chunked(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len())
}

/// Spellings of `Transfer-Encoding: chunked`, and whether they are one.
fn encodings() -> Vec<(String, bool)> {
    let mut all = Vec::new();
    for name in ["Transfer-Encoding", "transfer-encoding", "TRANSFER-ENCODING"] {
        for separator in [": ", ":", ":\t", ":  \t "] {
            for value in ["chunked", "Chunked", "CHUNKED ", "chunked\t "] {
                all.push((format!("{name}{separator}{value}"), true));
            }
        }
        for separator in [" : ", "\t:", ":\x0b", ":\x0c", ":\0", "\x0b: ", "\x00: ", ";: ", "\u{a0}: "] {
            all.push((format!("{name}{separator}chunked"), false));
        }
        for value in [
            "chunked,",
            ",chunked",
            "chunked, chunked",
            "identity, chunked",
            "chunked, identity",
            "gzip, chunked",
            "chunked;q=1",
            "\"chunked\"",
            "'chunked'",
            "xchunked",
            "chunkedx",
            "chunk",
            "identity",
            "",
            "chunked\x0b",
            "chunked\x0c",
            "\x0bchunked",
            "chunked\x7f",
            "chunked\r\n x",
            "\r\n chunked",
            "\r\n\tchunked",
            "chunked\u{a0}",
            "cow",
            "0",
        ] {
            all.push((format!("{name}: {value}"), false));
        }
    }
    all.push(("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked".to_owned(), false));
    all.push(("Transfer-Encoding: chunked\r\ntransfer-encoding: identity".to_owned(), false));
    all.push(("X: y\nTransfer-Encoding: chunked".to_owned(), false));
    all.push(("X: y\rTransfer-Encoding: chunked".to_owned(), false));
    all.push((" Transfer-Encoding: chunked".to_owned(), false));
    all
}

#[test]
fn requests_of_http_1_are_refused_or_framed_anew() {
    in_lab("requests_of_http_1_are_refused_or_framed_anew", || {
        let mut cases: Vec<(String, Verdict<'_>)> = Vec::new();
        let in_chunks = chunked(SMUGGLED);
        for (field, is_one) in encodings() {
            cases.push((post(&field, &in_chunks), if is_one { Verdict::Passed(SMUGGLED) } else { Verdict::Refused }));
            // With a length beside it there are two framings, whatever the spelling.
            for length in [4, in_chunks.len()] {
                cases.push((post(&format!("Content-Length: {length}\r\n{field}"), &in_chunks), Verdict::Refused));
                cases.push((post(&format!("{field}\r\nContent-Length: {length}"), &in_chunks), Verdict::Refused));
            }
        }
        for length in [
            "+37",
            "-1",
            "37,37",
            "37, 37",
            "0x25",
            "37 37",
            "",
            "3 7",
            "99999999999999999999",
            "37\x0b",
            "1e1",
            "٣٧",
            "37\r\n 1",
        ] {
            cases.push((post(&format!("Content-Length: {length}"), SMUGGLED), Verdict::Refused));
        }
        let length = SMUGGLED.len();
        cases.push((post(&format!("Content-Length: {length}"), SMUGGLED), Verdict::Passed(SMUGGLED)));
        cases.push((post(&format!("content-length:\t000{length} "), SMUGGLED), Verdict::Passed(SMUGGLED)));
        cases
            .push((post(&format!("Content-Length: {length}\r\nContent-Length: {length}"), SMUGGLED), Verdict::Refused));
        cases.push((post(&format!("Content-Length: 0\r\nContent-Length: {length}"), SMUGGLED), Verdict::Refused));
        cases.push((
            post(&format!("Content-Length: {length}\r\nContent_Length: 0"), SMUGGLED),
            Verdict::Passed(SMUGGLED),
        ));
        cases.push((
            post(&format!("Content-Length: {length}\r\nConnection: content-length"), SMUGGLED),
            Verdict::Passed(SMUGGLED),
        ));
        cases.push((
            post(&format!("Transfer_Encoding: chunked\r\nContent-Length: {length}"), SMUGGLED),
            Verdict::Passed(SMUGGLED),
        ));
        let te = "Transfer-Encoding: chunked";
        for chunks in [
            "25\n{}\r\n0\r\n\r\n",
            "25 ;x\n{}\r\n0\r\n\r\n",
            "25\r\n{}0\r\n\r\n",
            "25\r\n{}\r\r\n0\r\n\r\n",
            "10000000000000025\r\n{}\r\n0\r\n\r\n",
            "0x25\r\n{}\r\n0\r\n\r\n",
            "+25\r\n{}\r\n0\r\n\r\n",
            "-25\r\n{}\r\n0\r\n\r\n",
            " 25\r\n{}\r\n0\r\n\r\n",
            "\r\n{}\r\n0\r\n\r\n",
            "25\r\n{}\r\n0\n\r\n",
            "25\r\n{}\r\n0\r\n\n",
            "25;\0\r\n{}\r\n0\r\n\r\n",
            "25\r\n{}\r\nx\r\n\r\n",
            "fffffffffffffffff\r\n{}",
            "25;a=\"\n\"\r\n{}\r\n0\r\n\r\n",
        ] {
            cases.push((post(te, &chunks.replace("{}", SMUGGLED)), Verdict::Refused));
        }
        cases.push((post(te, &format!("0{:x};a=b\r\n{SMUGGLED}\r\n000\r\n\r\n", length)), Verdict::Passed(SMUGGLED)));
        for head in [
            "GET http://user@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET a/b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET //\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /#x HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: [a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost:\0a\r\n\r\n",
            "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\rHost: a\r\n\r\n",
            "GET / HTTP/01.1\r\nHost: a\r\n\r\n",
            "GET / http/1.1\r\nHost: a\r\n\r\n",
            "GET /\r\n\r\n",
            "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\n\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n",
            "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
        ] {
            cases.push((head.to_owned(), Verdict::Refused));
        }
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        for (request, fate) in &cases {
            let before = server.heads().len();
            let mut client = Client::to(wish.at());
            // It may be refused before all of it was sent.
            let _ = client.stream.write_all(request.as_bytes());
            let _ = client.stream.write_all(b"GET /after HTTP/1.1\r\nHost: a\r\n\r\n");
            let _ = client.stream.shutdown(Shutdown::Write);
            let all = client.rest();
            let heard: Vec<_> = server.heard.lock().unwrap()[before..].to_vec();
            heard.iter().for_each(|(head, _)| is_canonical(head));
            match fate {
                Verdict::Refused => {
                    assert!((400..=505).contains(&status(&all)), "{request:?}: {all}");
                    assert_eq!(all.matches("HTTP/1.1 ").count(), 1, "{request:?}: {all}");
                    assert!(heard.is_empty(), "{request:?}: {heard:?}");
                }
                Verdict::Passed(body) => {
                    assert_eq!(all.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{request:?}: {all}");
                    let bodies: Vec<&[u8]> = heard.iter().map(|(_, body)| &body[..]).collect();
                    assert_eq!(bodies, [body.as_bytes(), b""], "{request:?}");
                    assert!(heard[1].0.starts_with("GET /after HTTP/1.1\r\n"), "{request:?}: {heard:?}");
                }
            }
            assert_eq!(Client::to(wish.at()).get("/polite").unwrap().1, "one");
        }
    });
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Fields as literals that are not remembered and not compressed (RFC 7541, 6.2.2).
fn literals(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    let text = |text: &str, block: &mut Vec<u8>| {
        match u8::try_from(text.len()).ok().filter(|length| *length < 127) {
            Some(length) => block.push(length),
            None => {
                let rest = text.len() - 127;
                block.extend([127, (rest % 128) as u8 | 0x80, (rest / 128) as u8]);
            }
        }
        block.extend(text.as_bytes());
    };
    for (name, value) in fields {
        block.push(0);
        text(name, &mut block);
        text(value, &mut block);
    }
    block
}

/// Sends a request and a ping behind it; returns when that is answered, or the connection has
/// ended.
fn request_h2(at: std::net::SocketAddr, fields: &[(&str, &str)], body: Option<&str>) {
    const HEADERS: u8 = 1;
    const PING: u8 = 6;
    const END_STREAM: u8 = 1;
    const END_HEADERS: u8 = 4;
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let flags = if body.is_some() { END_HEADERS } else { END_HEADERS | END_STREAM };
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    bytes.extend(frame(HEADERS, flags, 1, &literals(fields)));
    bytes.extend(body.map(|body| frame(0, END_STREAM, 1, body.as_bytes())).unwrap_or_default());
    bytes.extend(frame(PING, 0, 0, b"12345678"));
    let _ = stream.write_all(&bytes);
    let mut head = [0; 9];
    // An end of either kind is an answer, too.
    while stream.read_exact(&mut head).is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        if stream.read_exact(&mut payload).is_err() || (head[3] == PING && head[4] == 1) {
            return;
        }
    }
}

#[test]
fn requests_of_http_2_put_nothing_into_those_of_http_1() {
    in_lab("requests_of_http_2_put_nothing_into_those_of_http_1", || {
        let pseudo = [(":method", "POST"), (":scheme", "http"), (":path", "/case"), (":authority", "a")];
        let with = |more: &[(&'static str, &'static str)]| [&pseudo[..], more].concat();
        let replaced = |name: &str, value: &'static str| -> Vec<(&'static str, &'static str)> {
            pseudo.iter().map(|(key, old)| (*key, if *key == name { value } else { *old })).collect()
        };
        let without = |name: &str| -> Vec<(&'static str, &'static str)> {
            pseudo.iter().filter(|(key, _)| *key != name).copied().collect()
        };
        let mut cases = vec![
            with(&[("transfer-encoding", "chunked")]),
            with(&[("connection", "close")]),
            with(&[("connection", "transfer-encoding")]),
            with(&[("content-length", "1"), ("content-length", "2")]),
            with(&[("content-length", "+1")]),
            with(&[("content-length", "1,1")]),
            with(&[("content-length", "0")]),
            with(&[("content-length", "99999999999999999999")]),
            with(&[("content-length", "1")]),
            with(&[("x", "a\r\nGET /smuggled HTTP/1.1")]),
            with(&[("x", "a\nb: c")]),
            with(&[("x", "a\0")]),
            with(&[("x", "\r\n\r\n")]),
            with(&[("x\r\ny", "a")]),
            with(&[("x: y\r\nz", "a")]),
            with(&[("x\n", "a")]),
            with(&[("x ", "a")]),
            with(&[("", "a")]),
            with(&[("X-Upper", "a")]),
            with(&[(":path", "/smuggled")]),
            with(&[(":method", "GET")]),
            with(&[(":unknown", "a")]),
            with(&[("host", "b")]),
            with(&[("host", "a"), ("host", "a")]),
            with(&[("te", "gzip")]),
            with(&[("upgrade", "h2c")]),
            with(&[("x", "y"), (":authority", "b")]),
            with(&[("transfer_encoding", "chunked")]),
            with(&[("proxy-connection", "keep-alive")]),
            without(":method"),
            without(":path"),
            without(":scheme"),
            without(":authority"),
            [&[("x", "y")][..], &pseudo].concat(),
        ];
        for path in [
            "",
            "smuggled",
            "/ HTTP/1.1\r\nHost: b\r\n\r\nGET /smuggled",
            "/a b",
            "/a\tb",
            "/\0",
            "http://b/smuggled",
            "/#",
            "*",
            "/a\nb",
        ] {
            cases.push(replaced(":path", path));
        }
        for method in ["", "GET /smuggled HTTP/1.1\r\nX:", "G T", "GET\r\n", "CONNECT", "get\0"] {
            cases.push(replaced(":method", method));
        }
        for authority in ["a\r\nX: y", "a b", "user@a", "a/b", "a, b", "a\0", "[::1", "a:b"] {
            cases.push(replaced(":authority", authority));
        }
        for scheme in ["http://b/smuggled?", "a\r\nb", "", "javascript"] {
            cases.push(replaced(":scheme", scheme));
        }
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let mut passed = 0;
        for fields in &cases {
            for body in [None, Some(SMUGGLED), Some("0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")] {
                request_h2(wish.at(), fields, body);
                assert_eq!(Client::to(wish.at()).get("/polite").unwrap().1, "one");
                for (head, heard) in server.heard.lock().unwrap().drain(..) {
                    is_canonical(&head);
                    passed += usize::from(!head.contains("/polite"));
                    assert!(
                        ["/polite", "/case", "*", "/"].contains(&head.split(' ').nth(1).unwrap())
                            || head.contains(" /a"),
                        "{head:?}"
                    );
                    let expected = body.filter(|_| !head.contains("/polite")).unwrap_or_default();
                    assert!(heard.is_empty() || heard == expected.as_bytes(), "{fields:?}: {head:?}");
                }
            }
        }
        // Some are as they should be, so that the others were not refused for another reason.
        assert!(passed >= 3, "{passed}");
    });
}

#[test]
fn answers_with_two_meanings_reach_no_other_client() {
    const EVIL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    // The answer, and the status the client sees.
    let cases: Vec<(String, u16)> = vec![
        (format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 60\r\n\r\nok{EVIL}"), 502),
        (format!("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok{EVIL}"), 502),
        (format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{EVIL}"), 502),
        (format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{EVIL}"), 502),
        (format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n{EVIL}"), 502),
        (format!("HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok{EVIL}"), 502),
        (format!("HTTP/1.1 200 OK\nContent-Length: 2\n\nok{EVIL}"), 502),
        (format!("HTTP/1.1 200 OK\r\nA: b\nContent-Length: 2\r\n\r\nok{EVIL}"), 502),
        (format!("HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\nok{EVIL}"), 502),
        (format!("HTTP/1.1 200 OK\r\nA: \0\r\nContent-Length: 2\r\n\r\nok{EVIL}"), 502),
        (format!("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n{EVIL}"), 502),
        (format!("HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nok{EVIL}"), 502),
        (format!("HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok{EVIL}"), 502),
        (format!("HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok{EVIL}"), 502),
        (format!("ICY 200 OK\r\nContent-Length: 2\r\n\r\nok{EVIL}"), 502),
        // Bytes behind an answer are no answer to the next request.
        (format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok{EVIL}"), 200),
        (format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n{EVIL}"), 200),
        (format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n{EVIL}{EVIL}"), 200),
        (format!("HTTP/1.1 204 No Content\r\n\r\n{EVIL}"), 204),
        (format!("HTTP/1.1 204 No Content\r\nContent-Length: 60\r\n\r\n{EVIL}"), 204),
        (format!("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{EVIL}"), 204),
        (format!("HTTP/1.1 304 Not Modified\r\nContent-Length: 60\r\n\r\n{EVIL}"), 304),
        (
            format!(
                "HTTP/1.1 100 Continue\r\nContent-Length: 60\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok{EVIL}"
            ),
            200,
        ),
        // Chunks that cannot be read end the answer before its end.
        (format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{EVIL}"), 200),
        (format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n{EVIL}"), 200),
        (format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n{EVIL}"), 200),
    ];
    in_lab("answers_with_two_meanings_reach_no_other_client", || {
        let answers: Vec<String> = cases.iter().map(|(answer, _)| answer.clone()).collect();
        let server = Server::talking(move |head, _| {
            let number = head.split(['/', ' ']).nth(2).and_then(|word| word.parse::<usize>().ok());
            let good = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood";
            Some(number.and_then(|number| answers.get(number)).map_or(good, String::as_str).as_bytes().to_vec())
        });
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        for (number, (answer, expected)) in cases.iter().enumerate() {
            for method in ["GET", "HEAD"] {
                let mut client = Client::to(wish.at());
                client.send(&format!(
                    "{method} /{number} HTTP/1.1\r\nHost: a\r\n\r\nGET /good HTTP/1.1\r\nHost: a\r\n\r\n"
                ));
                client.stream.shutdown(Shutdown::Write).unwrap();
                let all = client.rest();
                let seen = all.split("HTTP/1.1 100 Continue\r\n\r\n").last().unwrap_or_default();
                // Of a HEAD, only the head of the answer counts.
                let is_seen = status(seen) == *expected || status(seen) == 502 || all.is_empty();
                assert!(is_seen, "{method} {answer:?}: {all:?}");
                assert!(!all.contains("evil"), "{method} {answer:?}: {all:?}");
                if status(seen) == 204 {
                    let head = seen.split("\r\n\r\n").next().unwrap_or_default().to_lowercase();
                    assert!(!head.contains("content-length") && !head.contains("transfer-encoding"), "{all:?}");
                }
                // The next clients, on any connection to the backend.
                for _ in 0..3 {
                    assert_eq!(Client::to(wish.at()).get("/good").unwrap().1, "good", "after {method} {answer:?}");
                }
            }
        }
    });
}
