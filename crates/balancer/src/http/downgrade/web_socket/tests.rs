use super::super::tests::{forwarded, parts};
use super::*;

fn asked(protocol: Option<&str>, fields: &[(&str, &str)]) -> request::Parts {
    let mut parts = parts("CONNECT", "https://a.example/chat?b", fields);
    protocol.into_iter().for_each(|protocol| drop(parts.extensions.insert(Protocol::from(protocol))));
    parts
}

#[test]
fn a_key_is_answered_by_who_understood_it() {
    // The example of RFC 6455, 1.3.
    let key = Key("dGhlIHNhbXBsZSBub25jZQ==".to_owned());
    for (answer, expected) in [
        (Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), true),
        (Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOp="), false),
        (Some(""), false),
        (None, false),
    ] {
        let mut fields = HeaderMap::new();
        answer.into_iter().for_each(|answer| drop(fields.insert(ACCEPT, answer.parse().expect("a value"))));
        assert_eq!((key.is_answered(&mut fields), fields.len()), (expected, 0), "{answer:?}");
    }
    assert_eq!(Key::new(0).0, "AAAAAAAAAAAAAAAAAAAAAA==");
}

#[test]
fn it_is_asked_for_in_the_words_of_either_version() {
    let forwarded = forwarded();
    let asking = Asking { forwarded: &forwarded, trusted: false, connect: true, longest_body: None };
    let fields = [("sec-websocket-version", "13"), ("sec-websocket-key", "theirs"), ("sec-websocket-protocol", "x")];
    let (parts, mut out) = (asked(Some("websocket"), &fields), Vec::new());
    let request = to_h1(&parts, &asking, &Key::new(0), &mut out).expect("it can be asked");
    let mut about = Vec::new();
    forwarded.write(None, &mut about);
    let text = String::from_utf8_lossy(&out).replace(&*String::from_utf8_lossy(&about), "FORWARDED\r\n");
    assert_eq!(
        text.replace("\r\n", "\n"),
        "GET /chat?b HTTP/1.1\nHost: a.example\nsec-websocket-version: 13\nsec-websocket-protocol: x\nFORWARDED\n\
         Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\nConnection: upgrade\nUpgrade: websocket\n\n"
    );
    assert!(request.upgrade && request.body == Framing::Empty);
    let head = to_h2(&parts, &asking).expect("it can be asked");
    assert_eq!((head.method(), head.uri().path()), (&Verb::CONNECT, "/chat"));
    assert_eq!(head.extensions().get::<Protocol>().map(Protocol::as_str), Some("websocket"));
    assert!(!head.headers().contains_key(KEY) && head.headers().contains_key("x-forwarded-for"));
}

#[test]
fn an_upgrade_becomes_a_stream_and_its_answer_is_one_of_http_1() {
    let head = |method: &str, upgrade: &str, key: &str| {
        let fields = "sec-websocket-version: 13\r\nX-Forwarded-For: 192.0.2.1\r\nConnection: upgrade\r\n";
        format!("{method} /chat?b HTTP/1.1\r\nHost: a.example\r\n{key}{fields}Upgrade: {upgrade}\r\n\r\n")
    };
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let asked = upgrade_to_h2(head("GET", "WebSocket", key).as_bytes()).expect("it can be asked");
    let (request, key_of) = asked.expect("a WebSocket is asked for");
    assert_eq!((request.method(), request.uri().to_string().as_str()), (&Verb::CONNECT, "http://a.example/chat?b"));
    assert_eq!(request.extensions().get::<Protocol>().map(Protocol::as_str), Some("websocket"));
    let mut names: Vec<&str> = request.headers().keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["sec-websocket-version", "x-forwarded-for"]);

    for (method, upgrade, key) in [("GET", "websocket", ""), ("GET", "chess", key), ("POST", "websocket", key)] {
        let asked = upgrade_to_h2(head(method, upgrade, key).as_bytes()).expect("it can be asked");
        assert!(asked.is_none(), "{method} {upgrade} {key}");
    }

    let said = [("sec-websocket-protocol", "x"), ("connection", "x"), ("content-length", "0"), (ACCEPT, "wrong")];
    let mut out = Vec::new();
    answer_to_h1(parts("GET", "/", &said).headers, &key_of, &mut out);
    assert_eq!(
        String::from_utf8_lossy(&out).replace("\r\n", "\n"),
        "HTTP/1.1 101 Switching Protocols\nsec-websocket-protocol: x\n\
         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\nConnection: upgrade\nUpgrade: websocket\n\n"
    );
}

#[test]
fn nothing_else_is_made_of_a_stream() {
    let forwarded = forwarded();
    let asking = Asking { forwarded: &forwarded, trusted: false, connect: true, longest_body: None };
    for (parts, expected) in [
        (asked(None, &[]), Refusal::TARGET),
        (asked(Some("connect-udp"), &[]), Refusal::PROTOCOL),
        (asked(Some("websocket"), &[("content-length", "0")]), Refusal::UNWANTED_BODY),
        (asked(Some("websocket"), &[("transfer-encoding", "chunked")]), Refusal::ENCODING),
        (asked(Some("websocket"), &[("host", "b.example")]), Refusal::HOST),
    ] {
        assert_eq!(to_h1(&parts, &asking, &Key::new(0), &mut Vec::new()), Err(expected));
        assert_eq!(to_h2(&parts, &asking).err(), Some(expected));
    }
}
