//! Listeners and backends change while connections come, and none of them fails.

use std::io::{Read, Write};
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
    let ended = (&stream).read(&mut [0; 1]).map_err(|error| error.kind());
    assert!(matches!(ended, Ok(0) | Err(std::io::ErrorKind::ConnectionReset)), "{ended:?}");
    begun.elapsed()
}

#[test]
fn connections_go_on_with_a_backend_or_listener_that_left_as_long_as_they_may() {
    in_lab("connections_go_on_with_a_backend_or_listener_that_left_as_long_as_they_may", || {
        let (engine, echo, other) = (engine(), Server::echo(), Server::echo());
        for (drain, least) in [(None, 999), (Some(2000), 1999)] {
            let wish = Wish { drain: drain.map(Duration::from_millis), ..Wish::to(&[echo.at]) };
            wish.serve(&engine);
            let check = |lived: Duration| assert!(lived >= Duration::from_millis(least), "{lived:?}");
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
fn each_backend_that_leaves_has_a_time_of_its_own() {
    in_lab("each_backend_that_leaves_has_a_time_of_its_own", || {
        // Backends that say who they are, and then nothing.
        let named = |name: u8| {
            Server::start("127.0.0.1:0", move |mut stream| {
                stream.write_all(&[name]).unwrap();
                let _ = stream.read(&mut [0; 1]);
            })
        };
        let (engine, servers, drain) = (engine(), [named(0), named(1)], Duration::from_secs(1));
        let wish = Wish { drain: Some(drain), ..Wish::to(&servers.each_ref().map(|server| server.at)) };
        wish.serve(&engine);
        let (_first, second) = (connect(wish.at()), connect(wish.at()));
        let mut name = [0];
        (&second).read_exact(&mut name).unwrap();
        until("both are through", || wish.backends.look().iter().all(|one| one.active == 1));
        // The one with the second connection leaves when the time of the first is half over.
        wish.set(&[servers[usize::from(name[0])].at]);
        thread::sleep(drain / 2);
        let begun = Instant::now();
        wish.set(&[]);
        assert_eq!((&second).read(&mut [0; 1]).unwrap_or_default(), 0);
        assert!(begun.elapsed() + Duration::from_millis(1) >= drain, "{:?}", begun.elapsed());
    });
}

#[test]
fn the_end_waits_for_connections_but_not_for_ever() {
    in_lab("the_end_waits_for_connections_but_not_for_ever", || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let echo = Server::echo();
        let wish = Wish { drain: Some(Duration::from_secs(60)), ..Wish::to(&[echo.at]) };
        // One that closes, and one that does not.
        for (closes, most) in [(true, 60_000), (false, 300)] {
            let engine = engine();
            wish.serve(&engine);
            let stream = connect(wish.at());
            until("it is through", || wish.backends.look()[0].active == 1);
            let begun = Instant::now();
            let held = thread::spawn(move || {
                thread::sleep(Duration::from_millis(300));
                (!closes).then_some(stream)
            });
            runtime.block_on(engine.shutdown(Duration::from_millis(most)));
            let took = begun.elapsed();
            assert!(took >= Duration::from_millis(299) && took < Duration::from_secs(30), "{took:?}");
            assert!(ask(wish.at(), "x").is_err());
            drop(held.join().unwrap());
        }
    });
}
