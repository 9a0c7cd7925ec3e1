//! Clients that take their time, or all the room.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use fairlead_balancer::engine::{Engine, Options};

use crate::lab::{Server, Wish, ask, connect, hear, in_lab, until};

#[test]
fn one_that_is_slow_with_its_header_is_not_waited_for() {
    in_lab("one_that_is_slow_with_its_header_is_not_waited_for", || {
        let options = Options { threads: 1, opening: Duration::from_millis(300), ..Options::default() };
        let (engine, echo) = (Engine::start(options).unwrap(), Server::echo());
        let trusted = vec!["127.0.0.0/8".parse().unwrap()];
        let wish = Wish { accept_proxy: true, trusted, ..Wish::to(&[echo.at]) };
        wish.serve(&engine);
        let begun = Instant::now();
        let mut slow = connect(wish.at());
        for byte in b"PROXY TCP4 1" {
            // It fails when we have hung up.
            if slow.write_all(&[*byte]).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = hear(&slow);
        assert!(begun.elapsed() < Duration::from_secs(3));
        until("it is counted", || engine.look()[0].totals.slow == 1);
        assert_eq!(engine.look()[0].backends[0].total, 0, "no backend heard of it");
    });
}

#[test]
fn as_many_connections_as_may_be_are_and_the_rest_wait() {
    in_lab("as_many_connections_as_may_be_are_and_the_rest_wait", || {
        let options = Options { threads: 1, listener_connections: 3, ..Options::default() };
        let (engine, echo) = (Engine::start(options).unwrap(), Server::echo());
        let wish = Wish::to(&[echo.at]);
        let other = Wish { port: 7001, ..wish.clone() };
        wish.serve(&engine);
        other.serve(&engine);
        let mut held: Vec<_> = (0..3).map(|_| connect(wish.at())).collect();
        until("all are there", || engine.look()[0].totals.active == 3);
        let mut waiting = connect(wish.at());
        waiting.write_all(b"x").unwrap();
        waiting.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        assert!(waiting.read(&mut [0; 1]).is_err());
        assert_eq!(engine.look()[0].totals.accepted, 3);
        assert_eq!(ask(other.at(), "hello").unwrap(), "hello", "other listeners have room");
        held.pop();
        waiting.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        waiting.read_exact(&mut [0; 1]).unwrap();
    });
}
