//! How much memory do connections take? In a process of its own, so that nobody else's is counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, reason = "the lab has more than this needs")]

#[path = "bytes/lab.rs"]
mod lab;

use fairlead_balancer::engine::{Engine, Options};

use lab::{Server, Wish, connect, in_lab, until};

#[test]
fn connections_that_wait_hold_hardly_any_memory() {
    in_lab("connections_that_wait_hold_hardly_any_memory", || {
        let options = Options { threads: 1, ..Options::default() };
        let (engine, echo) = (
            Engine::start(options).unwrap(),
            Server::start("127.0.0.1:0", |stream| {
                // Keeps it without a thread.
                std::mem::forget(stream);
            }),
        );
        let wish = Wish::to(&[echo.at]);
        wish.serve(&engine);
        let _ = fairlead_kernel::relay::raise_descriptor_limit();
        let first: Vec<_> = (0..100).map(|_| connect(wish.at())).collect();
        until("they are there", || engine.look()[0].totals.active == 100);
        let before = resident();
        let more: Vec<_> = (0..500).map(|_| connect(wish.at())).collect();
        until("they are there", || engine.look()[0].totals.active == 600);
        until("the backend has them", || echo.count() >= 600);
        let each = resident().saturating_sub(before) / 500;
        assert!(each < 16 << 10, "{each} bytes a connection");
        drop((first, more));
    });
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}
