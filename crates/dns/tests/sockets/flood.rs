//! A million packets of nonsense, half-sense and good questions: no end, no hang, and no memory.

use std::net::UdpSocket;
use std::time::Duration;

use fairlead_testkit::full;
use fairlead_zone::message;

use super::lab::{SERVER, Server, Upstream, ask, ask_within, in_network, one, short, until};

/// Memory may grow by so much: buffers of sockets, a full cache, the run time's own.
const GROWTH: u64 = 64 << 20;

#[test]
fn random_packets_cost_bounded_memory_and_no_answer() {
    in_network("random_packets_cost_bounded_memory_and_no_answer", || {
        let _upstream = Upstream::start("127.0.0.2:53", |query, _| Some(one(query, 2)));
        let text = ".:1053 {\n errors\n hosts {\n  192.0.2.1 one.example\n  fallthrough\n }\n cache 30\n forward . 127.0.0.2\n}";
        let _server = Server::ready(text, None);
        assert_eq!(short(&ask("one.example")), (0, vec![1]));
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect(SERVER).expect("an address");
        let packets = if full() { 1_000_000 } else { 50_000 };
        let mut random = fastrand::Rng::with_seed(7);
        let before = memory();
        for number in 0..packets {
            let bytes = packet(&mut random);
            // Nobody reads the answers; a refused packet is one too many.
            let _ = socket.send(&bytes);
            if number % 64 == 0 {
                std::thread::yield_now();
            }
        }
        // A datagram may be lost while queues are full.
        let again = || ask_within(SERVER, "one.example", 1, Duration::from_millis(500));
        until("it still answers", || again().is_some_and(|answer| short(&answer) == (0, vec![1])));
        let growth = memory().saturating_sub(before);
        println!("{packets} packets, memory grew by {} kB", growth >> 10);
        assert!(growth < GROWTH, "{growth}");
    });
}

/// Noise, a question with some bytes changed, or one for a name nobody has asked for.
fn packet(random: &mut fastrand::Rng) -> Vec<u8> {
    let name = format!("{}.{}.example", random.u64(..), random.u8(..)).parse().expect("a name");
    let mut question = message::query(random.u16(..), &name, *random.choice(&[1, 28, 33, 255]).expect("some"), None);
    match random.u8(..10) {
        0..5 => (0..random.usize(..600)).map(|_| random.u8(..)).collect(),
        5..9 => {
            for _ in 0..random.usize(1..6) {
                let at = random.usize(..question.len());
                question[at] = random.u8(..);
            }
            question.truncate(random.usize(..=question.len()));
            question
        }
        _ => question,
    }
}

/// What this process has in memory.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().expect("a number") << 10
}
