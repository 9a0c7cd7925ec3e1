//! Backends that do not answer checks get no connections.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairlead_balancer::backends::Health;
use fairlead_balancer::spec::{Check, How, ProxyVersion};

use crate::lab::{Server, Wish, ask, engine, in_lab, until};

fn check(how: How) -> Check {
    // Who is not well says so at once.
    let (interval, timeout) = (Duration::from_millis(50), Duration::from_secs(5));
    Check { how, port: None, healthy: 2, unhealthy: 2, interval, timeout }
}

/// A backend that answers a request with its name, and a check by how it does. It may await a header before.
fn web(name: &'static str, header: &'static str) -> (Server, Arc<AtomicBool>) {
    let well = Arc::new(AtomicBool::new(true));
    let is_well = well.clone();
    let server = Server::start("127.0.0.1:0", move |mut stream| {
        let mut head = vec![0; header.len()];
        if stream.read_exact(&mut head).is_err() || head != header.as_bytes() {
            return;
        }
        let mut request = [0; 512];
        let read = stream.read(&mut request).unwrap_or_default();
        let status = match (request[..read].starts_with(b"GET /healthz"), is_well.load(Ordering::SeqCst)) {
            (true, false) => "503 Service Unavailable",
            _ => "200 OK",
        };
        let _ =
            write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{name}", name.len());
    });
    (server, well)
}

#[test]
fn one_that_fails_its_checks_gets_nothing_until_it_is_well_again() {
    in_lab("one_that_fails_its_checks_gets_nothing_until_it_is_well_again", || {
        let engine = engine();
        let ((one, one_well), (other, other_well)) = (web("one", ""), web("other", ""));
        let how = How::Http { tls: false, path: "/healthz".to_owned() };
        let wish = Wish { check: check(how), ..Wish::to(&[one.at, other.at]) };
        wish.serve(&engine);
        let health = |index: usize| engine.look()[0].backends[index].health;
        until("both are healthy", || health(0) == Health::Healthy && health(1) == Health::Healthy);
        one_well.store(false, Ordering::SeqCst);
        until("one is not", || health(0) == Health::Unhealthy);
        for _ in 0..10 {
            assert!(ask(wish.at(), "GET / HTTP/1.0\r\n\r\n").unwrap().ends_with("other"));
        }
        assert!(!engine.look()[0].fails_open);
        other_well.store(false, Ordering::SeqCst);
        until("none is", || engine.look()[0].fails_open);
        assert!(ask(wish.at(), "GET / HTTP/1.0\r\n\r\n").is_ok(), "then all are used");
        one_well.store(true, Ordering::SeqCst);
        until("one is again", || health(0) == Health::Healthy);
        assert!(ask(wish.at(), "GET / HTTP/1.0\r\n\r\n").unwrap().ends_with("one"));
    });
}

#[test]
fn a_check_of_who_awaits_a_header_sends_one() {
    in_lab("a_check_of_who_awaits_a_header_sends_one", || {
        let engine = engine();
        let (web, _) = web("one", "PROXY UNKNOWN\r\n");
        let how = How::Http { tls: false, path: "/healthz".to_owned() };
        let wish = Wish { check: check(how), send_proxy: Some(ProxyVersion::V1), ..Wish::to(&[web.at]) };
        wish.serve(&engine);
        until("it is healthy", || engine.look()[0].backends[0].health == Health::Healthy);
    });
}

#[test]
fn a_check_by_connection_finds_who_left() {
    in_lab("a_check_by_connection_finds_who_left", || {
        let (engine, echo) = (engine(), Server::echo());
        let nobody = "127.0.0.1:1".parse().unwrap();
        let wish = Wish { check: check(How::Tcp), ..Wish::to(&[echo.at, nobody]) };
        wish.serve(&engine);
        until("both are known", || {
            let health: Vec<Health> = engine.look()[0].backends.iter().map(|one| one.health).collect();
            health == [Health::Healthy, Health::Unhealthy]
        });
        wish.set(&[nobody]);
        until("nobody else is left", || engine.look()[0].fails_open);
        engine.stop(&wish.key());
        assert!(engine.look().is_empty());
    });
}
