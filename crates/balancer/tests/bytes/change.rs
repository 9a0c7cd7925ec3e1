//! Listeners and backends change while connections come, and none of them fails.

use std::io::Read;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::lab::{Server, Wish, ask, connect, engine, hear, in_lab, until};

/// Connects five hundred times a second while `work` runs; how many succeeded. Fails if one did not.
fn under_load(to: SocketAddr, work: impl FnOnce()) -> usize {
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                let mut next = Instant::now();
                while !stop.load(Ordering::Relaxed) {
                    let answer = ask(to, "ping");
                    assert_eq!(answer.as_deref().ok(), Some("ping"), "{answer:?}");
                    done.fetch_add(1, Ordering::Relaxed);
                    next += Duration::from_millis(10);
                    thread::sleep(next.saturating_duration_since(Instant::now()));
                }
            });
        }
        work();
        stop.store(true, Ordering::Relaxed);
    });
    done.into_inner()
}

const STEP: Duration = Duration::from_millis(20);

#[test]
fn addresses_ports_and_rules_change_under_load_and_no_connection_fails() {
    in_lab("addresses_ports_and_rules_change_under_load_and_no_connection_fails", || {
        let (engine, echo) = (engine(), Server::echo());
        let wish = Wish::to(&[echo.at]);
        wish.serve(&engine);
        let other = Wish { port: 7001, ..wish.clone() };
        let long = connect(wish.at());
        let done = under_load(wish.at(), || {
            for round in 0..40u8 {
                let second = [127, 0, 0, 2 + round % 3].into();
                Wish { addresses: vec![[127, 0, 0, 1].into(), second], ..wish.clone() }.serve(&engine);
                other.serve(&engine);
                let all = "0.0.0.0/0".parse().unwrap();
                Wish { sources: Some(vec![all]), idle: Duration::from_secs(30), ..wish.clone() }.serve(&engine);
                thread::sleep(STEP);
                engine.stop(&other.key());
                wish.serve(&engine);
                thread::sleep(STEP);
            }
        });
        assert!(done > 500, "{done}");
        assert!(ask("127.0.0.2:7000".parse().unwrap(), "x").is_err());
        assert!(ask(other.at(), "x").is_err());
        long.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(hear(&long).unwrap(), "", "a connection from before all that is still there");
    });
}

#[test]
fn backends_are_replaced_under_load_and_no_connection_fails() {
    in_lab("backends_are_replaced_under_load_and_no_connection_fails", || {
        let engine = engine();
        let servers: Vec<Server> = (0..6).map(|_| Server::echo()).collect();
        let wish = Wish::to(&[servers[0].at]);
        wish.serve(&engine);
        under_load(wish.at(), || {
            for round in 0..60 {
                wish.set(&[servers[round % 6].at, servers[(round + 1) % 6].at]);
                thread::sleep(STEP);
            }
        });
        assert!(servers.iter().all(|server| server.count() > 0));
    });
}

#[test]
fn backends_that_are_not_there_are_passed_over_and_then_left_alone() {
    in_lab("backends_that_are_not_there_are_passed_over_and_then_left_alone", || {
        let (engine, echo, other) = (engine(), Server::echo(), Server::echo());
        let nobody = "127.0.0.1:1".parse().unwrap();
        let wish = Wish::to(&[echo.at, nobody, other.at]);
        wish.serve(&engine);
        under_load(wish.at(), || thread::sleep(Duration::from_millis(500)));
        let look = engine.look();
        let dead = look[0].backends.iter().find(|one| one.backend.address == nobody).unwrap();
        assert!(dead.ejected.is_some());
        // Three are enough, and some may have been on their way.
        assert!((3..=10).contains(&dead.failures), "{} of {} connections", dead.failures, look[0].totals.accepted);
        assert_eq!((look[0].totals.dial_failures, look[0].totals.no_backend), (dead.failures, 0));
    });
}

/// How long a connection lives on after `work`.
fn outlives(wish: &Wish, work: impl FnOnce()) -> Duration {
    let stream = connect(wish.at());
    until("it is through to the backend", || wish.backends.look().iter().any(|one| one.active == 1));
    let begun = Instant::now();
    work();
    let _ = (&stream).read(&mut [0; 1]);
    begun.elapsed()
}

#[test]
fn connections_go_on_with_a_backend_or_listener_that_left_as_long_as_they_may() {
    in_lab("connections_go_on_with_a_backend_or_listener_that_left_as_long_as_they_may", || {
        let (engine, echo, other) = (engine(), Server::echo(), Server::echo());
        for (drain, least, most) in [(None, 900, 1600), (Some(2000), 1900, 2600)] {
            let wish = Wish { drain: drain.map(Duration::from_millis), ..Wish::to(&[echo.at]) };
            wish.serve(&engine);
            let check = |lived: Duration| {
                assert!(lived >= Duration::from_millis(least) && lived < Duration::from_millis(most), "{lived:?}");
            };
            check(outlives(&wish, || wish.set(&[other.at])));
            wish.set(&[echo.at]);
            check(outlives(&wish, || engine.stop(&wish.key())));
        }
    });
}

#[test]
fn a_backend_that_comes_back_keeps_its_connections() {
    in_lab("a_backend_that_comes_back_keeps_its_connections", || {
        let (engine, echo, other) = (engine(), Server::echo(), Server::echo());
        let wish = Wish { drain: Some(Duration::from_millis(500)), ..Wish::to(&[echo.at]) };
        wish.serve(&engine);
        let stream = connect(wish.at());
        until("it is through", || wish.backends.look()[0].active == 1);
        wish.set(&[other.at]);
        wish.set(&[echo.at, other.at]);
        thread::sleep(Duration::from_millis(900));
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(hear(&stream).unwrap(), "");
    });
}

#[test]
fn the_end_waits_for_connections_but_not_for_ever() {
    in_lab("the_end_waits_for_connections_but_not_for_ever", || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let echo = Server::echo();
        let wish = Wish { drain: Some(Duration::from_secs(60)), ..Wish::to(&[echo.at]) };
        for (most, least) in [(5000, 300), (200, 200)] {
            let engine = engine();
            wish.serve(&engine);
            let stream = connect(wish.at());
            until("it is through", || wish.backends.look()[0].active == 1);
            let (begun, closes) = (Instant::now(), most == 5000);
            let held = thread::spawn(move || {
                thread::sleep(Duration::from_millis(if closes { 300 } else { 1500 }));
                drop(stream);
            });
            runtime.block_on(engine.shutdown(Duration::from_millis(most)));
            let took = begun.elapsed();
            assert!(took >= Duration::from_millis(least) && took < Duration::from_millis(1400), "{took:?}");
            assert!(ask(wish.at(), "x").is_err());
            held.join().unwrap();
        }
    });
}
