//! Bytes arrive as they were sent, both ways, and connections end as they should.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::lab::{Server, Wish, ask, connect, engine, hear, in_lab, until};

#[test]
fn what_is_sent_comes_back_and_each_way_ends_by_itself() {
    in_lab("what_is_sent_comes_back_and_each_way_ends_by_itself", || {
        let (engine, echo) = (engine(), Server::echo());
        let wish = Wish::to(&[echo.at]);
        wish.serve(&engine);
        assert_eq!(ask(wish.at(), "").unwrap(), "");
        assert_eq!(ask(wish.at(), "hello").unwrap(), "hello");
        // The backend speaks first, and after its end still hears.
        let speaker = Server::start("127.0.0.1:0", |mut stream| {
            stream.write_all(b"welcome").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            assert_eq!(hear(&stream).unwrap(), "thanks");
        });
        wish.set(&[speaker.at]);
        let mut stream = connect(wish.at());
        assert_eq!(hear(&stream).unwrap(), "welcome");
        stream.write_all(b"thanks").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        until("all connections end", || engine.look()[0].totals.active == 0);
        let totals = engine.look()[0].totals;
        assert_eq!((totals.accepted, totals.received, totals.sent), (3, 11, 12));
    });
}

/// Bytes that are not alike, from a seed.
fn pattern(seed: u64, at: u64) -> [u8; 8] {
    (seed ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

fn send(mut stream: &TcpStream, seed: u64, size: u64) {
    let mut chunk = Vec::with_capacity(1 << 16);
    for at in 0..size / 8 {
        chunk.extend(pattern(seed, at));
        if chunk.len() == 1 << 16 || at + 1 == size / 8 {
            stream.write_all(&chunk).unwrap();
            chunk.clear();
        }
    }
    stream.shutdown(Shutdown::Write).unwrap();
}

fn receive(mut stream: &TcpStream, seed: u64, size: u64, pace: Option<Duration>) {
    let (mut buffer, mut kept, mut at) = (vec![0; 100_000], Vec::new(), 0);
    loop {
        if let Some(pace) = pace {
            thread::sleep(pace);
        }
        let read = stream.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        kept.extend_from_slice(&buffer[..read]);
        let whole = kept.len() / 8 * 8;
        for eight in kept[..whole].chunks_exact(8) {
            assert_eq!(eight, pattern(seed, at));
            at += 1;
        }
        kept.drain(..whole);
    }
    assert_eq!(at * 8, size);
}

#[test]
fn a_hundred_megabytes_arrive_as_they_were_sent_both_ways_at_once() {
    in_lab("a_hundred_megabytes_arrive_as_they_were_sent_both_ways_at_once", || {
        const SIZE: u64 = 100 << 20;
        let engine = engine();
        let server = Server::start("127.0.0.1:0", |stream| {
            thread::scope(|scope| {
                scope.spawn(|| send(&stream, 2, SIZE));
                receive(&stream, 1, SIZE, None);
            });
        });
        let wish = Wish::to(&[server.at]);
        wish.serve(&engine);
        let stream = connect(wish.at());
        thread::scope(|scope| {
            scope.spawn(|| send(&stream, 1, SIZE));
            receive(&stream, 2, SIZE, None);
        });
        until("all connections end", || engine.look()[0].totals.active == 0);
        let totals = engine.look()[0].totals;
        assert_eq!((totals.received, totals.sent, totals.broken), (SIZE, SIZE, 0));
    });
}

#[test]
fn one_who_reads_slowly_gets_everything_and_holds_nobody_up() {
    in_lab("one_who_reads_slowly_gets_everything_and_holds_nobody_up", || {
        const SIZE: u64 = 8 << 20;
        let engine = engine();
        let server = Server::start("127.0.0.1:0", |stream| send(&stream, 5, SIZE));
        let wish = Wish::to(&[server.at]);
        wish.serve(&engine);
        let slow: Vec<TcpStream> = (0..4).map(|_| connect(wish.at())).collect();
        thread::scope(|scope| {
            let pace = Some(Duration::from_millis(3));
            slow.iter().for_each(|stream| drop(scope.spawn(move || receive(stream, 5, SIZE, pace))));
            let begun = Instant::now();
            receive(&connect(wish.at()), 5, SIZE, None);
            assert!(begun.elapsed() < Duration::from_secs(5));
        });
    });
}

#[test]
fn a_break_is_passed_on() {
    in_lab("a_break_is_passed_on", || {
        let engine = engine();
        let server = Server::start("127.0.0.1:0", |mut stream| {
            stream.read_exact(&mut [0; 1]).unwrap();
            socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        });
        let wish = Wish::to(&[server.at]);
        wish.serve(&engine);
        let mut stream = connect(wish.at());
        stream.write_all(b"x").unwrap();
        assert_eq!(hear(&stream).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
        until("it is counted", || engine.look()[0].totals.broken == 1);
    });
}

#[test]
fn a_connection_on_which_nothing_moves_is_closed_and_no_other() {
    in_lab("a_connection_on_which_nothing_moves_is_closed_and_no_other", || {
        let (engine, echo) = (engine(), Server::echo());
        let idle = Duration::from_secs(2);
        let wish = Wish { idle, ..Wish::to(&[echo.at]) };
        wish.serve(&engine);
        let begun = Instant::now();
        let (silent, mut busy) = (connect(wish.at()), connect(wish.at()));
        let ended = thread::spawn(move || (hear(&silent).map_err(|error| error.kind()), begun.elapsed()));
        while !ended.is_finished() {
            thread::sleep(Duration::from_millis(100));
            busy.write_all(b"x").unwrap();
            busy.read_exact(&mut [0; 1]).unwrap();
        }
        let (how, lived) = ended.join().unwrap();
        assert_ne!(how, Err(ErrorKind::WouldBlock), "it never ends");
        assert!(lived >= idle, "{lived:?}");
        assert_eq!(engine.look()[0].totals.idle, 1);
    });
}

#[test]
fn both_families_and_an_address_that_is_not_there_yet_are_listened_at() {
    in_lab("both_families_and_an_address_that_is_not_there_yet_are_listened_at", || {
        let (engine, says) = (engine(), Server::says("yes"));
        let later = "192.0.2.10".parse().unwrap();
        let addresses = vec![[127, 0, 0, 1].into(), "::1".parse().unwrap(), later, "2001:db8::10".parse().unwrap()];
        let wish = Wish { addresses, ..Wish::to(&[says.at]) };
        wish.serve(&engine);
        assert_eq!(ask("127.0.0.1:7000".parse().unwrap(), "").unwrap(), "yes");
        assert_eq!(ask("[::1]:7000".parse().unwrap(), "").unwrap(), "yes");
        let made = std::process::Command::new("ip").args(["addr", "add", "192.0.2.10/32", "dev", "lo"]).status();
        assert!(made.unwrap().success());
        assert_eq!(ask("192.0.2.10:7000".parse().unwrap(), "").unwrap(), "yes");
    });
}

#[test]
fn where_one_cannot_listen_is_said_and_the_rest_is_served() {
    in_lab("where_one_cannot_listen_is_said_and_the_rest_is_served", || {
        let (engine, says) = (engine(), Server::says("yes"));
        let _taken = std::net::TcpListener::bind("127.0.0.2:7000").unwrap();
        let wish = Wish { addresses: vec![[127, 0, 0, 1].into(), [127, 0, 0, 2].into()], ..Wish::to(&[says.at]) };
        let error = engine.serve(wish.key(), wish.serving()).unwrap_err();
        assert_eq!(error.to_string(), "listening at 127.0.0.2:7000: Address already in use (os error 98)");
        assert_eq!(ask(wish.at(), "").unwrap(), "yes");
        let other = fairlead_balancer::engine::ListenerKey {
            service: std::sync::Arc::new(fairlead_api::source::Key::new("default", "other")),
            ..wish.key()
        };
        assert!(engine.serve(other, wish.serving()).is_err(), "an address has one listener a port");
    });
}
