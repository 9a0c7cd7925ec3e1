//! Does the history keep its word when the server is killed? Clients change Services, the process dies at some moment, also while
//! it catches up with what it missed, and in the end every change is told, once, in order.

use std::fs;
use std::thread;
use std::time::Duration;

use fairlead_testkit::https::Client;
use fairlead_testkit::{Server, full};
use fastrand::Rng;
use serde_json::json;

use crate::changes::{Chain, change, reached, told};
use crate::{PATIENCE, PROGRAM, begun, make, service};

/// So many changes the server tells at once, and some more.
const TOLD_AT_ONCE: u64 = 9_000;
/// How many changes of a Service a client may be ahead of what is told of it, twice over. The store remembers 8,192 of all: however slow
/// the history is here, nothing falls out of that.
const AHEAD: u64 = 300;
/// Numbers are written where a port is; one more comes at the end.
const HIGHEST: u64 = 65_534;
/// Services, each changed by a client of its own.
const NAMES: [&str; 3] = ["a", "b", "c"];

#[test]
fn every_change_is_told_however_often_the_server_is_killed() {
    let (_, chains) = live_through_kills(&[], 10);
    for chain in chains {
        // All changes are there, from the port of the new Service on, or as many as one answer has.
        let is_whole = chain.first == 9376 || chain.last.saturating_sub(chain.first) >= TOLD_AT_ONCE;
        assert!(is_whole, "{} is told from {} on", chain.name, chain.first);
    }
}

#[test]
fn no_change_is_lost_where_files_come_and_go() {
    // So much that a file is full after some hundreds of changes, but that the store has all changes of the last second.
    let (server, chains) = live_through_kills(&["--history-size=4Mi"], 3_000);
    let files = fs::read_dir(server.data_dir().join("history")).expect("it is there").flatten();
    let newest = files.filter_map(|file| file.path().file_stem()?.to_str()?.parse::<u32>().ok()).max();
    assert!(newest > Some(1), "one file was enough: {chains:?}");
}

/// Kills a server again and again while Services change. What is told of each in the end has no hole, ends with what is there, and
/// is told once.
#[allow(clippy::print_stdout, reason = "a failure is to be had again with the same seed")]
fn live_through_kills(flags: &[&str], filling: usize) -> (Server, Vec<Chain>) {
    let (kills, seed) = (if full() { 100 } else { 10 }, fastrand::u64(..));
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut server = Server::start(PROGRAM, flags);
    begun(&server);
    for name in NAMES {
        let mut object = service();
        object["metadata"]["name"] = json!(name);
        make(&server, "services", object);
    }
    let mut numbers = [0; NAMES.len()];
    for _ in 0..kills {
        // Every third time so soon that the history has hardly gone on.
        let life = if random.u8(..3) == 0 { random.u64(..40) } else { random.u64(40..1500) };
        live_and_die(&mut server, &mut numbers, filling, Duration::from_millis(life));
        server.restart();
    }
    let client = server.client();
    let log = server.log();
    for bad in ["panicked", "no history is kept", "damaged", "has a gap"] {
        assert!(!log.contains(bad), "{bad}:\n{log}");
    }
    let chains = NAMES.iter().zip(numbers).map(|(name, number)| caught_up(&client, name, number)).collect();
    (server, chains)
}

/// Clients change their Services until the server is killed.
fn live_and_die(server: &mut Server, numbers: &mut [u64], filling: usize, life: Duration) {
    let client = server.client();
    thread::scope(|scope| {
        for (name, number) in NAMES.iter().zip(numbers) {
            let client = &client;
            scope.spawn(move || write(client, name, number, filling));
        }
        thread::sleep(life);
        server.kill();
    });
}

/// Sets a number in a Service, one higher each time, until nobody answers or there is none left. `number` is the last that was acknowledged.
fn write(client: &Client, name: &str, number: &mut u64, filling: usize) {
    let Ok(mut connection) = client.connect(PATIENCE) else { return };
    while *number < HIGHEST {
        match change(&mut connection, name, *number + 1, filling) {
            Ok(200) => *number += 1,
            Ok(status) => panic!("{name} {number}: {status}"),
            Err(_) => return,
        }
        if number.is_multiple_of(AHEAD) && reached(client, name, *number - AHEAD).is_err() {
            return;
        }
    }
}

/// One change more, and what is told when that is.
fn caught_up(client: &Client, name: &str, number: u64) -> Chain {
    let last = number + 1;
    let mut connection = client.connect(PATIENCE).expect("a connection");
    assert_eq!(change(&mut connection, name, last, 0).ok(), Some(200));
    let chain = told(client, name, last);
    assert_eq!((chain.gaps, chain.last), (0, last), "{chain:?}");
    chain
}
