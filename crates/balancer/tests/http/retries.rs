//! Requests that fail: sent again where nobody can notice, and only there.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::lab::{Client, Server, Wish, in_lab, status, until};

/// An address where nobody listens.
fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn a_backend_that_cannot_be_reached_is_passed_over() {
    in_lab("a_backend_that_cannot_be_reached_is_passed_over", || {
        let server = Server::named("one");
        let wish = Wish::to(&[nobody(), nobody(), server.at]);
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        for _ in 0..6 {
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
            assert_eq!(client.hear().unwrap().1, "one");
        }
        assert!(server.heard.lock().unwrap().iter().all(|(_, body)| body == b"abc"));
    });
}

#[test]
fn without_a_backend_there_is_a_reason() {
    in_lab("without_a_backend_there_is_a_reason", || {
        let wish = Wish::to(&[]);
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        let (head, body) = client.get("/").unwrap();
        assert_eq!((status(&head), body.as_str()), (503, "503 Service Unavailable: there is no backend\n"));
        wish.set(&[nobody()]);
        let (head, body) = client.get("/").unwrap();
        assert_eq!((status(&head), body.as_str()), (502, "502 Bad Gateway: the backend cannot be reached\n"));
        let server = Server::named("one");
        wish.set(&[server.at]);
        assert_eq!(client.get("/").unwrap().1, "one");
    });
}

#[test]
fn a_connection_that_was_closed_while_it_waited_is_replaced() {
    in_lab("a_connection_that_was_closed_while_it_waited_is_replaced", || {
        let ended = Arc::new(AtomicUsize::new(0));
        let counted = ended.clone();
        // Hangs up after each answer without having said so.
        let server = Server::start(move |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
            drop(stream);
            counted.fetch_add(1, Ordering::SeqCst);
        });
        let wish = Wish::to(&[server.at]);
        let _engine = wish.start();
        let mut client = Client::to(wish.at());
        for turn in 0..50 {
            // Right after an answer its end may not be seen yet: what may be sent twice is.
            assert_eq!(client.get("/").unwrap().1, "hi");
            until("the backend has hung up", || ended.load(Ordering::SeqCst) == 2 * turn + 1);
            // On a busy machine the kernel takes a moment to tell the other end.
            thread::sleep(Duration::from_millis(20));
            // Once it can be seen, what may not be sent twice gets a new connection at once.
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
            assert_eq!(client.hear().unwrap().1, "hi");
        }
    });
}

#[test]
fn what_may_be_sent_twice_is_sent_to_somebody_else_and_nothing_else_is() {
    in_lab("what_may_be_sent_twice_is_sent_to_somebody_else_and_nothing_else_is", || {
        let (bad, good) = (Server::talking(|_, _| None), Server::named("good"));
        let cases = [("GET", "", 200), ("PUT", "", 200), ("POST", "", 502), ("PUT", "abc", 502)];
        for (index, (method, body, expected)) in cases.into_iter().enumerate() {
            let wish = Wish::to(&[bad.at, good.at]).beside(index);
            let _engine = wish.start();
            let before = bad.heads().len();
            let mut answers = Vec::new();
            // At least one of two goes to the bad one first.
            for _ in 0..2 {
                let mut client = Client::to(wish.at());
                client.send(&format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
                answers.push(status(&client.hear().unwrap().0));
            }
            assert!(answers.iter().all(|answer| [200, expected].contains(answer)), "{method} {body:?} {answers:?}");
            assert!(answers.contains(&expected), "{method} {body:?} {answers:?}");
            until("the bad one was asked", || bad.heads().len() > before);
            let failed = answers.iter().filter(|answer| **answer == 502).count();
            assert!(expected == 200 || bad.heads().len() == before + failed, "{method} {body:?} is sent once");
        }
    });
}

#[test]
fn an_answer_that_is_none_is_a_502() {
    in_lab("an_answer_that_is_none_is_a_502", || {
        let answers = [
            "SSH-2.0-OpenSSH_9.2\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        ];
        for (index, answer) in answers.into_iter().enumerate() {
            let server = Server::answering(answer);
            let wish = Wish::to(&[server.at]).beside(index);
            let _engine = wish.start();
            let (head, body) = Client::to(wish.at()).get("/").unwrap();
            assert_eq!((status(&head), body.as_str()), (502, "502 Bad Gateway: the backend's answer cannot be read\n"));
        }
    });
}
