//! What clients must not do: refused, bounded, and no backend hears of it.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::lab::{Client, Server, Wish, in_lab, status};

#[test]
fn a_request_with_two_meanings_is_refused_and_nothing_after_it_is_read() {
    in_lab("a_request_with_two_meanings_is_refused_and_nothing_after_it_is_read", || {
        let server = Server::named("one");
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let post = |fields: &str, body: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n{body}");
        let cases = [
            (post("Content-Length: 6\r\nTransfer-Encoding: chunked", "0\r\n\r\nX"), 400),
            (post("Transfer-Encoding: chunked\r\nContent-Length: 4", "5c\r\nGPOST / HTTP/1.1\r\n\r\n"), 400),
            (post("Transfer-Encoding: xchunked", "0\r\n\r\n"), 400),
            (post("Transfer-Encoding: chunked\r\nTransfer-Encoding: x", "0\r\n\r\n"), 400),
            (post("Transfer-Encoding : chunked", "0\r\n\r\n"), 400),
            (post("Transfer-Encoding:\x0bchunked", "0\r\n\r\n"), 400),
            (post("X: y\rTransfer-Encoding: chunked", "0\r\n\r\n"), 400),
            (post("X: y\nTransfer-Encoding: chunked", "0\r\n\r\n"), 400),
            (post(" Transfer-Encoding: chunked", "0\r\n\r\n"), 400),
            (post("Content-Length: 3\r\nContent-Length: 4", "abcd"), 400),
            (post("Content-Length: +3", "abc"), 400),
            (post("Content-Length: -1", ""), 400),
            (post("Host: b", ""), 400),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
            ("GET / HTTP/1.1\r\nHost: a\r\nA: \0\r\n\r\n".to_owned(), 400),
            ("GET http://user@a/ HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
            ("GET / HTTP/3.0\r\nHost: a\r\n\r\n".to_owned(), 505),
            ("\x16\x03\x01\x02\0\x01\0\x01\x7c".to_owned(), 400),
            (format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "A: b\r\n".repeat(200)), 431),
            (format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "b".repeat(70_000)), 431),
            (format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "b".repeat(20_000)), 414),
        ];
        for (request, expected) in cases {
            let mut client = Client::to(wish.at());
            // It may be refused before it was all sent.
            let _ = client.stream.write_all(request.as_bytes());
            let _ = client.stream.write_all(b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
            let all = client.rest();
            assert_eq!(status(&all), expected, "{:?} {all}", &request[..request.len().min(200)]);
            assert_eq!(all.matches("HTTP/1.1 ").count(), 1, "{all}");
            assert!(all.contains("\r\nConnection: close\r\n"), "{all}");
        }
        assert_eq!(server.heads().len(), 0);
    });
}

#[test]
fn chunks_with_two_meanings_are_cut_off() {
    in_lab("chunks_with_two_meanings_are_cut_off", || {
        let bodies = [
            "3\nabc\r\n0\r\n\r\n",
            "3;\n\r\nabc\r\n0\r\n\r\n",
            "ffffffffffffffff0\r\n",
            "3\r\nabcd\r\n0\r\n\r\n",
            "x\r\n",
        ];
        for (index, body) in bodies.into_iter().enumerate() {
            let server = Server::named("one");
            let wish = Wish::to(&[server.at]).beside(index);
            let _engine = wish.start();
            let mut client = Client::to(wish.at());
            client.send(&format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}"));
            let _ = client.stream.write_all(b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
            let all = client.rest();
            assert_eq!(status(&all), 400, "{body:?} {all}");
            assert_eq!(server.heads().len(), 0, "{body:?}");
        }
    });
}

#[test]
fn a_slow_head_is_answered_408_and_others_are_served_meanwhile() {
    in_lab("a_slow_head_is_answered_408_and_others_are_served_meanwhile", || {
        let server = Server::named("one");
        let wish = Wish { idle: Duration::from_millis(700), ..Wish::to(&[server.at]) };
        let _engine = wish.start();
        let slow: Vec<Client> = (0..200)
            .map(|_| {
                let mut client = Client::to(wish.at());
                client.send("GET / HTTP/1.1\r\nHost: a\r\nX-");
                client
            })
            .collect();
        let begun = Instant::now();
        let mut dripping = slow;
        while begun.elapsed() < Duration::from_millis(600) {
            assert_eq!(Client::to(wish.at()).get("/").unwrap().1, "one");
            for client in &mut dripping {
                let _ = client.stream.write_all(b"a");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        for client in &mut dripping {
            assert_eq!(status(&client.rest()), 408);
        }
        assert!(begun.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn a_client_that_sends_no_end_of_its_body_is_cut_off() {
    in_lab("a_client_that_sends_no_end_of_its_body_is_cut_off", || {
        let server = Server::named("one");
        let wish = Wish { idle: Duration::from_millis(300), ..Wish::to(&[server.at]) };
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc");
        assert_eq!(status(&client.rest()), 504);
        assert_eq!(server.heads().len(), 0);
    });
}
