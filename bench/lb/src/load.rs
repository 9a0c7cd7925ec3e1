//! Clients of one kind of traffic, all on one thread.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::{LocalSet, spawn_local};

use crate::kinds::Kind;
use client::Client;

mod client;
mod multiplexed;
mod tls;

/// What a load came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Requests, handshakes or MiB.
    pub(crate) done: f64,
    /// How many went wrong.
    pub(crate) failed: usize,
    pub(crate) took: Duration,
    /// Microseconds, sorted.
    times: Vec<u32>,
}

impl Outcome {
    /// What share of the answers were there after so many microseconds.
    pub(crate) fn at(&self, share: f64) -> f64 {
        let at = (self.times.len() as f64 * share) as usize;
        self.times.get(at.min(self.times.len().saturating_sub(1))).copied().map_or(0.0, f64::from)
    }
}

/// What clients write down together.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    until: Cell<Option<Instant>>,
    done: Cell<f64>,
    failed: Cell<usize>,
    times: RefCell<Vec<u32>>,
}

impl Notes {
    /// Whether there is time for one more.
    pub(crate) fn goes_on(&self) -> bool {
        self.until.get().is_none_or(|until| Instant::now() < until)
    }

    /// One more was done.
    pub(crate) fn done(&self, since: Instant) {
        self.done.set(self.done.get() + 1.0);
        let took = u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX);
        self.times.borrow_mut().push(took);
    }

    /// So many MiB more came.
    pub(crate) fn received(&self, bytes: usize) {
        self.done.set(self.done.get() + bytes as f64 / f64::from(1 << 20));
    }
}

/// Nobody waits longer for one answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes traffic for a while. Clients that keep connections have them before the clock starts.
pub(crate) fn run(kind: Kind, port: u16, time: Duration) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let notes = Rc::new(Notes::default());
        let mut clients = Vec::new();
        for _ in 0..kind.clients() {
            clients.push(Client::new(kind, SocketAddr::from(([127, 0, 0, 1], port))).await?);
        }
        let since = Instant::now();
        notes.until.set(Some(since + time));
        let tasks: Vec<_> = clients.into_iter().map(|client| spawn_local(work(client, notes.clone()))).collect();
        for task in tasks {
            task.await?;
        }
        let mut times = notes.times.take();
        times.sort_unstable();
        Ok(Outcome { done: notes.done.get(), failed: notes.failed.get(), took: since.elapsed(), times })
    })
}

async fn work(mut client: Client, notes: Rc<Notes>) {
    while notes.goes_on() {
        let result = tokio::time::timeout(PATIENCE, client.once(&notes)).await;
        if !matches!(result, Ok(Ok(()))) {
            notes.failed.set(notes.failed.get() + 1);
            if !client.again().await {
                return;
            }
        }
    }
}
