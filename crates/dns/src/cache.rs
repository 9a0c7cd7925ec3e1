//! `cache`: answers of others, for as long as they are good, and a bounded number of them.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fairlead_zone::Name;
use fairlead_zone::message::{Rcode, Record};
use foldhash::quality::RandomState;

use crate::ask::{Ask, Reply};
use crate::metrics::CacheCounts;
use crate::settings;
use crate::words;

#[cfg(test)]
mod tests;

/// Parts of a cache with a lock each.
const SHARDS: usize = 16;
/// Bytes an answer may take on average. Longer ones take the place of several.
const AVERAGE: usize = 2048;

/// The answers of one server block.
#[derive(Debug)]
pub(crate) struct Cache {
    settings: settings::Cache,
    success: Half,
    denial: Half,
    hasher: RandomState,
    pub(crate) counts: CacheCounts,
}

/// What a cache has.
#[derive(Debug, PartialEq)]
pub(crate) enum Hit {
    /// A good answer.
    Fresh(Reply),
    /// A good answer that should be fetched again before it expires.
    Aging(Reply),
    /// An answer that has expired, which is better than none.
    Stale(Reply),
}

#[derive(Debug)]
struct Half {
    shards: Vec<Mutex<Shard>>,
    /// Answers of each shard.
    capacity: usize,
}

#[derive(Debug, Default)]
struct Shard {
    entries: HashMap<Key, Entry, RandomState>,
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    name: Name,
    rtype: u16,
    class: u16,
    dnssec_ok: bool,
    unchecked: bool,
}

#[derive(Debug)]
struct Entry {
    reply: Arc<Reply>,
    bytes: usize,
    stored: Instant,
    ttl: Duration,
    /// How often it was asked for without a long gap, and when last.
    hits: (u32, Instant),
    /// Whether somebody fetches it again.
    refreshing: bool,
}

impl Cache {
    pub(crate) fn new(settings: &settings::Cache, counts: CacheCounts) -> Cache {
        let half = |share: &settings::Share| Half {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            capacity: share.capacity.div_ceil(SHARDS),
        };
        let (success, denial) = (half(&settings.success), half(&settings.denial));
        Cache { settings: settings.clone(), success, denial, hasher: RandomState::default(), counts }
    }

    /// Whether answers for a name are kept at all.
    pub(crate) fn covers(&self, name: &Name) -> bool {
        self.settings.zones.iter().any(|zone| name.is_under(zone))
    }

    /// How expired answers are used.
    pub(crate) fn stale(&self) -> Option<settings::Stale> {
        self.settings.stale
    }

    /// The answer to a question, with the time it has left.
    pub(crate) fn get(&self, ask: &Ask, now: Instant) -> Option<Hit> {
        let key = Key::of(ask);
        let half = |half: &Half, kind| {
            let hit = self.hit(&mut half.shard(&self.hasher, &key), &key, now)?;
            self.counts.hit(kind);
            Some(hit)
        };
        self.counts.asked();
        let hit = half(&self.denial, "denial").or_else(|| half(&self.success, "success"));
        if hit.is_none() {
            self.counts.missed();
        }
        hit
    }

    /// A good answer, if there is one that needs no further thought. It counts as a question only then.
    pub(crate) fn peek(&self, ask: &Ask, now: Instant) -> Option<Reply> {
        if self.settings.prefetch.is_some() {
            return None;
        }
        let key = Key::of(ask);
        let half = |half: &Half, kind| {
            let shard = half.shard(&self.hasher, &key);
            let entry = shard.entries.get(&key)?;
            let left =
                entry.ttl.checked_sub(now.saturating_duration_since(entry.stored)).filter(|left| !left.is_zero())?;
            let seconds = u32::try_from(left.as_secs()).unwrap_or(u32::MAX);
            self.counts.asked();
            self.counts.hit(kind);
            Some(timed(&entry.reply, |ttl| if self.settings.keep_ttl { ttl } else { seconds }))
        };
        half(&self.denial, "denial").or_else(|| half(&self.success, "success"))
    }

    fn hit(&self, shard: &mut Shard, key: &Key, now: Instant) -> Option<Hit> {
        let entry = shard.entries.get_mut(key)?;
        let age = now.saturating_duration_since(entry.stored);
        let Some(left) = entry.ttl.checked_sub(age).filter(|left| !left.is_zero()) else {
            let stale = self.settings.stale.filter(|stale| age - entry.ttl <= stale.keep);
            let Some(stale) = stale else {
                shard.remove(key);
                return None;
            };
            let busy = std::mem::replace(&mut entry.refreshing, true);
            let reply = timed(&entry.reply, |_| stale.ttl);
            return Some(if busy { Hit::Fresh(reply) } else { Hit::Stale(reply) });
        };
        let seconds = u32::try_from(left.as_secs()).unwrap_or(u32::MAX);
        let reply = timed(&entry.reply, |ttl| if self.settings.keep_ttl { ttl } else { seconds });
        let aging = self.settings.prefetch.is_some_and(|prefetch| entry.is_aging(prefetch, left, now));
        Some(if aging { Hit::Aging(reply) } else { Hit::Fresh(reply) })
    }

    /// Keeps an answer, if it is one to be kept. Either way its times to live become what they are here.
    pub(crate) fn put(&self, ask: &Ask, reply: &mut Reply, now: Instant) {
        let Some((half, share, ttl, kind)) = self.place(reply) else { return };
        reply.records_mut().for_each(|record| record.ttl = ttl);
        let duration = match reply.head.rcode {
            Rcode::SERV_FAIL => self.settings.servfail,
            _ => Duration::from_secs(ttl.into()),
        };
        let disabled = share.disabled.iter().any(|zone| ask.name.is_under(zone));
        if disabled || duration.is_zero() || reply.head.truncated {
            return;
        }
        let key = Key::of(ask);
        let mut kept = reply.clone();
        kept.head.authoritative = false;
        let bytes = size(&kept);
        let hits = (0, now);
        let entry = Entry { reply: Arc::new(kept), bytes, stored: now, ttl: duration, hits, refreshing: false };
        // What was there before under the same name is wrong now.
        let other = if std::ptr::eq(half, &self.success) { &self.denial } else { &self.success };
        other.shard(&self.hasher, &key).remove(&key);
        let mut shard = half.shard(&self.hasher, &key);
        let evicted = shard.insert(key, entry, half.capacity);
        drop(shard);
        self.counts.evicted(kind, evicted);
    }

    /// Somebody tried to fetch an answer again, and could not.
    pub(crate) fn refresh_failed(&self, ask: &Ask) {
        let key = Key::of(ask);
        for half in [&self.success, &self.denial] {
            if let Some(entry) = half.shard(&self.hasher, &key).entries.get_mut(&key) {
                entry.refreshing = false;
            }
        }
    }

    /// Answers that are kept: with records, and without.
    pub(crate) fn len(&self) -> (usize, usize) {
        let count = |half: &Half| half.shards.iter().map(|shard| lock(shard).entries.len()).sum();
        (count(&self.success), count(&self.denial))
    }

    /// Where an answer belongs, for how many seconds, and what that is called.
    fn place(&self, reply: &Reply) -> Option<(&Half, &settings::Share, u32, &'static str)> {
        let (success, denial) = (&self.settings.success, &self.settings.denial);
        let shortest = || reply.records().map(|record| record.ttl).min();
        let soa = || reply.authority.iter().filter(|record| record.rtype == words::SOA).map(negative_ttl).min();
        let clamp = |ttl: u32, share: &settings::Share| ttl.min(share.max_ttl).max(share.min_ttl.min(share.max_ttl));
        match reply.head.rcode {
            Rcode::NO_ERROR if !reply.answer.is_empty() => {
                Some((&self.success, success, clamp(shortest()?, success), "success"))
            }
            Rcode::NO_ERROR | Rcode::NX_DOMAIN => {
                let ttl = soa()?.min(shortest()?);
                Some((&self.denial, denial, clamp(ttl, denial), "denial"))
            }
            Rcode::SERV_FAIL => Some((&self.denial, denial, 0, "denial")),
            _ => None,
        }
    }
}

/// For how long a zone says that there is no such name.
fn negative_ttl(soa: &Record) -> u32 {
    let minimum = soa.rdata.last_chunk().map_or(u32::MAX, |bytes: &[u8; 4]| u32::from_be_bytes(*bytes));
    soa.ttl.min(minimum)
}

/// A copy with other times to live.
fn timed(reply: &Reply, ttl: impl Fn(u32) -> u32) -> Reply {
    let mut reply = reply.clone();
    reply.records_mut().for_each(|record| record.ttl = ttl(record.ttl));
    reply.plugin = "cache";
    reply
}

/// About how many bytes an answer takes.
fn size(reply: &Reply) -> usize {
    reply.records().map(|record| 64 + record.name.wire().len() + record.rdata.len()).sum::<usize>() + 256
}

impl Key {
    fn of(ask: &Ask) -> Key {
        let dnssec_ok = ask.edns.is_some_and(|edns| edns.dnssec_ok);
        Key { name: ask.name.to_lower(), rtype: ask.rtype, class: ask.class, dnssec_ok, unchecked: ask.unchecked }
    }
}

impl Entry {
    /// Whether it is asked for often and about to expire. Says so once.
    fn is_aging(&mut self, prefetch: settings::Prefetch, left: Duration, now: Instant) -> bool {
        let gap = now.saturating_duration_since(self.hits.1) > prefetch.gap;
        self.hits = (if gap { 1 } else { self.hits.0.saturating_add(1) }, now);
        let part = self.ttl.mul_f64(f64::from(prefetch.percent) / 100.0).max(Duration::from_secs(1));
        let aging = self.hits.0 >= prefetch.amount && left <= part && !self.refreshing;
        self.refreshing |= aging;
        aging
    }
}

impl Half {
    fn shard(&self, hasher: &RandomState, key: &Key) -> MutexGuard<'_, Shard> {
        let index = hasher.hash_one(key) as usize % self.shards.len();
        lock(&self.shards[index])
    }
}

impl Shard {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    /// Puts an answer in, and others out to make room; how many.
    fn insert(&mut self, key: Key, entry: Entry, capacity: usize) -> u64 {
        self.remove(&key);
        let mut evicted = 0;
        while self.entries.len() >= capacity || self.bytes + entry.bytes > capacity * AVERAGE {
            // The order of a map with a random seed is as good as chance.
            let Some(victim) = self.entries.keys().next().cloned() else { break };
            self.remove(&victim);
            evicted += 1;
        }
        self.bytes += entry.bytes;
        self.entries.insert(key, entry);
        evicted
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
