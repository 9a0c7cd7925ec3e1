//! Which backend did a client have? Remembered for a time after its last connection, for a bounded number of clients.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Parts with a lock each, so that threads seldom meet.
const PARTS: usize = 16;
/// Clients a part remembers. 16 times this many take about 8 MiB; who comes then displaces another.
const CLIENTS: usize = 4096;
/// How many are looked at to find one to displace.
const SAMPLE: usize = 8;

/// Clients and their backends.
#[derive(Debug, Default)]
pub(super) struct Affinity {
    /// In milliseconds; 0: nobody is remembered.
    time: AtomicU64,
    parts: [Mutex<HashMap<IpAddr, Kept>>; PARTS],
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    address: SocketAddr,
    used: u64,
}

impl Affinity {
    pub(super) fn is_on(&self) -> bool {
        self.time.load(Ordering::Relaxed) > 0
    }

    /// For how long clients are remembered; `None`: they are not.
    pub(super) fn set(&self, time: Option<Duration>) {
        let milliseconds = time.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1));
        self.time.store(milliseconds, Ordering::Relaxed);
        if milliseconds == 0 {
            self.parts.iter().for_each(|part| *lock(part) = HashMap::new());
        }
    }

    /// The backend a client had not too long ago.
    pub(super) fn find(&self, client: IpAddr, now: u64) -> Option<SocketAddr> {
        let kept = lock(self.part(client)).get(&client).copied()?;
        (now.saturating_sub(kept.used) <= self.time.load(Ordering::Relaxed)).then_some(kept.address)
    }

    /// It has this one now.
    pub(super) fn keep(&self, client: IpAddr, address: SocketAddr, now: u64) {
        let mut part = lock(self.part(client));
        if part.len() >= CLIENTS && !part.contains_key(&client) {
            // A map's order is random enough for a sample; the oldest of it goes.
            let oldest = part.iter().take(SAMPLE).min_by_key(|(_, kept)| kept.used).map(|(client, _)| *client);
            oldest.map(|oldest| part.remove(&oldest));
        }
        part.insert(client, Kept { address, used: now });
    }

    fn part(&self, client: IpAddr) -> &Mutex<HashMap<IpAddr, Kept>> {
        &self.parts[super::maglev::place(client, PARTS)]
    }
}

fn lock(part: &Mutex<HashMap<IpAddr, Kept>>) -> MutexGuard<'_, HashMap<IpAddr, Kept>> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}
