//! Can any bytes break the reading of HTTP/1, or mean one thing to us and another to who reads them next?
#![no_main]

use fairlead_balancer::http::chunks::Chunks;
use fairlead_balancer::http::forwarded::Forwarded;
use fairlead_balancer::http::head::Framing;
use fairlead_balancer::http::request::{self, Asking, Method, Note, Request};
use fairlead_balancer::http::response;
use fairlead_balancer::serving::Ends;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
    match first % 2 {
        0 => ask(bytes, first & 2 != 0),
        _ => answer(bytes, first & 2 != 0),
    }
});

fn ask(bytes: &[u8], trusted: bool) {
    let client = ([192, 0, 2, 1], 1024).into();
    let forwarded = Forwarded::new(&Ends { client, local: ([192, 0, 2, 2], 80).into(), peer: client }, false);
    let asking = Asking { forwarded: &forwarded, trusted, longest_body: None };
    let (mut out, mut note) = (Vec::new(), Note::default());
    let Ok(Some(found)) = request::read(bytes, &asking, Some(&mut note), &mut out) else { return };
    assert!(found.length <= bytes.len());
    // No part of a head is one already.
    assert!(!matches!(request::read(&bytes[..found.length - 1], &asking, None, &mut Vec::new()), Ok(Some(_))));
    let mut again = Vec::new();
    let passed = match request::read(&out, &asking, None, &mut again) {
        // What we add may be too much.
        Err(refusal) if refusal.status == 431 => return,
        passed => passed.expect("what passed may pass").expect("it is whole"),
    };
    assert_eq!((passed.body, passed.method, passed.length), (found.body, found.method, out.len()));
    if found.body == Framing::Chunked {
        chunked(&bytes[found.length..]);
    }
}

fn answer(bytes: &[u8], head: bool) {
    let method = if head { Method::Head } else { Method::Idempotent };
    let to = Request { length: 0, method, old: false, body: Framing::Empty, keep: true, upgrade: true, expects: false };
    let mut out = Vec::new();
    let Ok(Some(found)) = response::read(bytes, &to, &mut out) else { return };
    assert!(found.length <= bytes.len());
    out.extend_from_slice(b"\r\n");
    let passed = response::read(&out, &to, &mut Vec::new()).expect("what passed may pass").expect("it is whole");
    assert_eq!((passed.status, passed.body, passed.length), (found.status, found.body, out.len()));
    if found.body == Framing::Chunked {
        chunked(&bytes[found.length..]);
    }
}

/// Chunks end where they end, however many bytes come at once.
fn chunked(bytes: &[u8]) {
    let (mut whole, mut piecemeal) = (Chunks::default(), Chunks::default());
    let Ok(taken) = whole.advance(bytes) else { return };
    let one_by_one: usize = bytes.chunks(1).map(|byte| piecemeal.advance(byte).expect("they can be read")).sum();
    assert_eq!((taken, whole.done()), (one_by_one, piecemeal.done()));
}
