//! Many clients at once, each on a connection of its own, doing the same thing over and over.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::http::{Client, Target};

/// When a load ends: whichever comes first.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// After this time.
    pub time: Duration,
    /// After that many requests.
    pub count: usize,
}

/// What a load came to.
#[derive(Debug, Clone, Copy)]
pub struct Done {
    /// Requests that were answered.
    pub count: usize,
    /// How long it took.
    pub time: Duration,
}

impl Done {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.count as f64 / self.time.as_secs_f64()
    }
}

/// Runs `work` with the numbers 0, 1, 2 … on so many clients. Connections are made before the clock starts.
pub fn run(
    target: &Target,
    clients: usize,
    limit: Limit,
    work: impl Fn(&mut Client, usize) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<Done> {
    let (next, done, start) = (AtomicUsize::new(0), AtomicUsize::new(0), Barrier::new(clients + 1));
    thread::scope(|scope| {
        let client = || -> anyhow::Result<()> {
            let client = Client::connect(target);
            start.wait();
            let (mut client, since) = (client?, Instant::now());
            while since.elapsed() < limit.time {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= limit.count {
                    break;
                }
                work(&mut client, number)?;
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        start.wait();
        let since = Instant::now();
        for thread in threads {
            thread.join().expect("a client does not panic")?;
        }
        Ok(Done { count: done.load(Ordering::Relaxed), time: since.elapsed() })
    })
}
