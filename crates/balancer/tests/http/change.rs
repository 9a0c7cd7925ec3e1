//! Changes while requests come: none of them fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::lab::{Client, Server, Wish, in_lab, status, tls, until};

#[test]
fn a_listener_that_stops_finishes_what_it_has_begun() {
    in_lab("a_listener_that_stops_finishes_what_it_has_begun", || {
        let (asked, released) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, may_answer) = (asked.clone(), released.clone());
        let server = Server::talking(move |head, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            if head.contains("/slow") {
                until("it may answer", || may_answer.load(Ordering::SeqCst));
            }
            Some(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_vec())
        });
        let wish = Wish::to(&[server.at]);
        let engine = wish.start();
        let (mut busy, mut idle) = (Client::to(wish.at()), Client::to(wish.at()));
        assert_eq!(idle.get("/").unwrap().1, "hi");
        busy.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        until("the backend is asked", || asked.load(Ordering::SeqCst) == 2);
        engine.stop(&wish.key());
        assert_eq!(idle.rest(), "");
        released.store(true, Ordering::SeqCst);
        let (head, body) = busy.hear().unwrap();
        assert!(head.contains("Connection: close"), "{head}");
        assert_eq!(body, "hi");
        assert_eq!(busy.rest(), "");
    });
}

#[test]
fn backends_and_certificates_change_under_requests_and_none_fails() {
    in_lab("backends_and_certificates_change_under_requests_and_none_fails", || {
        if !fairlead_testkit::need("backends_and_certificates_change_under_requests_and_none_fails", "curl") {
            return;
        }
        let servers: Vec<Server> = ["a", "b", "c", "d"].iter().map(|name| Server::named(name)).collect();
        let wish = Wish::to(&[servers[0].at]);
        let secure = Wish { port: 7443, tls: Some(tls().0), ..wish.clone() };
        let engine = wish.start();
        secure.serve(&engine);
        let (stop, done, failed) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for kept in [true, false] {
                let (stop, done, failed, at) = (&stop, &done, &failed, wish.at());
                scope.spawn(move || {
                    let mut client = Client::to(at);
                    while !stop.load(Ordering::SeqCst) {
                        if !kept {
                            client = Client::to(at);
                        }
                        match client.get("/") {
                            Some((head, _)) if status(&head) == 200 => done.fetch_add(1, Ordering::SeqCst),
                            _ => failed.fetch_add(1, Ordering::SeqCst),
                        };
                        thread::sleep(Duration::from_millis(2));
                    }
                });
            }
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let asked = std::process::Command::new("curl")
                        .args(["-sk", "--fail", "--max-time", "10", "https://127.0.0.1:7443/"])
                        .output()
                        .unwrap();
                    match asked.status.success() {
                        true => done.fetch_add(1, Ordering::SeqCst),
                        false => failed.fetch_add(1, Ordering::SeqCst),
                    };
                }
            });
            for turn in 0..60 {
                let now: Vec<_> = [turn % 4, (turn + 1) % 4].iter().map(|index| servers[*index].at).collect();
                wish.set(&now);
                if turn % 10 == 0 {
                    Wish { tls: Some(tls().0), ..secure.clone() }.serve(&engine);
                }
                thread::sleep(Duration::from_millis(50));
            }
            stop.store(true, Ordering::SeqCst);
        });
        assert_eq!(failed.load(Ordering::SeqCst), 0, "of {}", done.load(Ordering::SeqCst));
        assert!(servers.iter().all(|server| server.count() > 0), "each had its turn");
        drop(Arc::new(engine));
    });
}
