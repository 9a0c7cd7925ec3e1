use super::*;

fn request(method: &str) -> Request {
    Request {
        length: 0,
        method: Method::of(method),
        old: false,
        body: Framing::Empty,
        keep: true,
        upgrade: false,
        expects: false,
    }
}

fn read_to(request: &Request, text: &str) -> (Result<Option<Response>, Unreadable>, String) {
    let mut out = Vec::new();
    let read = read(text.as_bytes(), request, &mut out);
    (read, String::from_utf8_lossy(&out).replace("\r\n", "\n"))
}

fn answered(request: &Request, text: &str) -> Response {
    let (read, out) = read_to(request, text);
    read.unwrap_or_else(|_| panic!("{text:?} -> {out:?}")).expect("it is whole")
}

#[test]
fn an_answer_is_passed_back_without_what_is_for_one_connection_only() {
    let text = "HTTP/1.1 200 OK\r\nServer: x\r\nConnection: close, x-one\r\nX-One: 1\r\nKeep-Alive: timeout=5\r\n\
                Content-Length: 2\r\n\r\nhi";
    let (read, out) = read_to(&request("GET"), text);
    assert_eq!(out, "HTTP/1.1 200 OK\nServer: x\nContent-Length: 2\n");
    let response = read.expect("it can be read").expect("it is whole");
    assert_eq!((response.status, response.body, response.keep), (200, Framing::Length(2), false));
}

#[test]
fn bodies_end_where_all_readers_see_their_end() {
    let cases = [
        ("GET", "200 OK\r\nContent-Length: 5", Framing::Length(5), true),
        ("GET", "200 OK\r\nContent-Length: 0", Framing::Empty, true),
        ("GET", "200 OK\r\nTransfer-Encoding: chunked", Framing::Chunked, true),
        ("GET", "200 OK", Framing::End, false),
        ("HEAD", "200 OK\r\nContent-Length: 5", Framing::Empty, true),
        ("HEAD", "200 OK\r\nTransfer-Encoding: chunked", Framing::Empty, true),
        ("GET", "204 No Content", Framing::Empty, true),
        ("GET", "304 Not Modified\r\nContent-Length: 5", Framing::Empty, true),
        ("GET", "100 Continue", Framing::Empty, true),
    ];
    for (method, text, body, keep) in cases {
        let response = answered(&request(method), &format!("HTTP/1.1 {text}\r\n\r\n"));
        assert_eq!((response.body, response.keep), (body, keep), "{method} {text}");
    }
    assert!(!answered(&request("GET"), "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n").keep);
    assert!(answered(&request("GET"), "HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n").keep);
}

#[test]
fn fields_that_frame_an_answer_are_written_in_one_way() {
    let cases = [
        ("GET", "200 OK\r\nTransfer-Encoding:\tCHUNKED\r\nA: b", "HTTP/1.1 200 OK\nA: b\nTransfer-Encoding: chunked\n"),
        ("GET", "200 OK\r\nContent-Length: 05\r\nA: b", "HTTP/1.1 200 OK\nA: b\nContent-Length: 5\n"),
        ("HEAD", "200 OK\r\nContent-Length: 5", "HTTP/1.1 200 OK\nContent-Length: 5\n"),
        ("GET", "304 Not\r\nContent-Length: 5", "HTTP/1.1 304 Not\nContent-Length: 5\n"),
        // These have neither, whatever a backend says.
        ("GET", "204 No\r\nContent-Length: 5\r\nA: b", "HTTP/1.1 204 No\nA: b\n"),
        ("GET", "204 No\r\nTransfer-Encoding: chunked\r\nA: b", "HTTP/1.1 204 No\nA: b\n"),
        ("GET", "103 Early\r\nContent-Length: 5\r\nA: b", "HTTP/1.1 103 Early\nA: b\n"),
    ];
    for (method, text, expected) in cases {
        assert_eq!(read_to(&request(method), &format!("HTTP/1.1 {text}\r\n\r\n")).1, expected, "{text:?}");
    }
}

#[test]
fn an_answer_with_two_meanings_is_none() {
    let cases = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        "HTTP/1.1 099 Odd\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
    ];
    for text in cases {
        assert_eq!(read_to(&request("GET"), text).0, Err(Unreadable), "{text:?}");
    }
}

#[test]
fn a_tunnel_is_one_only_if_it_was_asked_for() {
    let asked = Request { upgrade: true, ..request("GET") };
    let (read, out) =
        read_to(&asked, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
    assert!(read.expect("it can be read").expect("it is whole").tunnel);
    assert_eq!(out, "HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\n");
    assert!(answered(&request("CONNECT"), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").tunnel);
    assert!(!answered(&request("CONNECT"), "HTTP/1.1 403 No\r\nContent-Length: 5\r\n\r\n").tunnel);
    assert!(!answered(&asked, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").tunnel);
}

#[test]
fn an_old_client_gets_no_chunks() {
    let old = Request { old: true, ..request("GET") };
    let (_, out) = read_to(&old, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n");
    assert_eq!(out, "HTTP/1.1 200 OK\nA: b\n");
}
