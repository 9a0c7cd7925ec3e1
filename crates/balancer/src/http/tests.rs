//! Whatever comes: what passes has one meaning, and keeps it.

use proptest::prelude::*;
use proptest::sample::select;

use super::chunks::Chunks;
use super::forwarded::Forwarded;
use super::head::Framing;
use super::request::{self, Asking, Method, Request};
use super::response;
use crate::serving::Ends;

const PIECES: [&str; 48] = [
    "GET / HTTP/1.1\r\n",
    "POST /a?b HTTP/1.1\r\n",
    "GET http://b.example/c HTTP/1.1\r\n",
    "OPTIONS * HTTP/1.1\r\n",
    "GET / HTTP/1.0\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 101 Switching Protocols\r\n",
    "HTTP/1.0 200\r\n",
    "Host: a\r\n",
    "host: a:80\r\n",
    "Host: [::1]\r\n",
    "Content-Length: 3\r\n",
    "Content-Length: 0\r\n",
    "Content-Length:3\r\n",
    "Content-Length: 3 \r\n",
    "Content-Length : 3\r\n",
    "Content-Length: 3, 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked \r\n",
    "Transfer-Encoding:\tchunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "transfer_encoding: chunked\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive, x-a\r\n",
    "Connection: upgrade\r\n",
    "Connection: content-length, transfer-encoding, host\r\n",
    "Upgrade: websocket\r\n",
    "Upgrade: h2c\r\n",
    "Expect: 100-continue\r\n",
    "TE: trailers\r\n",
    "X-A: b\r\n",
    "X-A: b\n",
    "X-A: b\r",
    " folded\r\n",
    "X-Forwarded-For: 10.0.0.1\r\n",
    "Forwarded: for=10.0.0.1\r\n",
    "X-Forwarded-For: a\tb\r\n",
    "\r\n",
    "\n",
    "\r",
    "\0",
    "3\r\nabc\r\n",
    "0\r\n\r\n",
    "3;a=b\r\nabc\r\n",
    "0\r\nA: b\r\n\r\n",
    "abc",
    "\u{e9}",
];

fn messages() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(select(&PIECES[..]), 1..12).prop_map(|pieces| pieces.concat().into_bytes())
}

/// Chunks end where they end, however many bytes come at once.
fn check_chunks(bytes: &[u8]) {
    let (mut whole, mut piecemeal) = (Chunks::default(), Chunks::default());
    let Ok(taken) = whole.advance(bytes) else { return };
    let one_by_one: usize = bytes.chunks(1).map(|byte| piecemeal.advance(byte).expect("they can be read")).sum();
    assert_eq!((taken, whole.done()), (one_by_one, piecemeal.done()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_request_that_passes_has_one_meaning(bytes in messages(), trusted: bool) {
        let client = "192.0.2.1:1024".parse().expect("an address");
        let forwarded = Forwarded::new(&Ends { client, local: client, peer: client }, false);
        let asking = Asking { forwarded: &forwarded, trusted, connect: true, longest_body: None };
        let mut out = Vec::new();
        if let Ok(Some(found)) = request::read(&bytes, &asking, None, &mut out) {
            let part = request::read(&bytes[..found.length - 1], &asking, None, &mut Vec::new());
            prop_assert!(!matches!(part, Ok(Some(_))), "a part of a head is one already");
            let passed = request::read(&out, &asking, None, &mut Vec::new()).expect("it may pass").expect("it is whole");
            prop_assert_eq!((passed.body, passed.method, passed.length), (found.body, found.method, out.len()));
            let text = String::from_utf8_lossy(&out).to_lowercase();
            prop_assert_eq!(text.matches("\r\nhost:").count(), 1);
            prop_assert!(!text.contains("transfer_encoding"));
            prop_assert!(trusted || !text.contains("10.0.0.1"));
            if found.body == Framing::Chunked {
                check_chunks(&bytes[found.length..]);
            }
        }
    }

    #[test]
    fn an_answer_that_passes_has_one_meaning(bytes in messages(), head: bool, upgrade: bool) {
        let method = if head { Method::Head } else { Method::Idempotent };
        let to = Request { length: 0, method, old: false, body: Framing::Empty, keep: true, upgrade, expects: false };
        let mut out = Vec::new();
        if let Ok(Some(found)) = response::read(&bytes, &to, &mut out) {
            out.extend_from_slice(b"\r\n");
            let passed = response::read(&out, &to, &mut Vec::new()).expect("it may pass").expect("it is whole");
            prop_assert_eq!((passed.status, passed.body, passed.length), (found.status, found.body, out.len()));
        }
    }
}

/// What a task of this kind of future takes.
fn size<A, B, C, D, E, F: Future>(_: impl Fn(A, B, C, D, E) -> F) -> usize {
    size_of::<F>()
}

#[test]
fn the_task_of_a_connection_is_small() {
    let plain = size(super::serve::<tokio::net::TcpStream>);
    assert!(plain <= 3 << 10, "{plain} bytes");
}
