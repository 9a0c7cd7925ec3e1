//! One backend, with what is known of it: connections, health, failures in a row.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{Backend, Inner};

/// So many failures in a row and a backend is left alone for a while.
const FAILURES: u32 = 3;
/// How long the first time. Each time it is twice as long, unless it did well in between.
const EJECTION: u64 = 5_000;
/// The longest time it is left alone, in milliseconds.
const LONGEST_EJECTION: u64 = 300_000;

/// A backend with what is known of it.
#[derive(Debug)]
pub struct Member {
    /// The backend as the cluster describes it.
    pub backend: Backend,
    pub(super) known: Arc<Known>,
}

/// What checks say of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Health {
    /// Nothing yet: it is used.
    Unknown = 0,
    /// It answers.
    Healthy = 1,
    /// It does not.
    Unhealthy = 2,
}

/// How a backend is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendStatus {
    /// Which one, with its weight and stage.
    pub backend: Backend,
    /// What checks say.
    pub health: Health,
    /// How long it is still left alone after failures.
    pub ejected: Option<Duration>,
    /// How many connections or requests it has.
    pub active: usize,
    /// How many it got so far.
    pub total: u64,
    /// How many failed so far.
    pub failures: u64,
}

impl Member {
    pub(super) fn status(&self, now: u64) -> BackendStatus {
        let known = &self.known;
        let left = known.ejected_until.load(Ordering::Relaxed).saturating_sub(now);
        BackendStatus {
            backend: self.backend.clone(),
            health: known.health(),
            ejected: (left > 0).then(|| Duration::from_millis(left)),
            active: known.active.load(Ordering::Relaxed),
            total: known.total.load(Ordering::Relaxed),
            failures: known.failed.load(Ordering::Relaxed),
        }
    }

    /// How busy it is in proportion to its weight, to be compared with others', if it got so many more.
    pub(super) fn load(&self, more: u64) -> u64 {
        let active = self.known.active.load(Ordering::Relaxed) as u64 + more;
        (active << 24) / u64::from(self.backend.weight.max(1))
    }
}

/// What is known of a backend as long as it is one, whatever its weight and stage.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) address: SocketAddr,
    owner: Weak<Inner>,
    active: AtomicUsize,
    total: AtomicU64,
    failed: AtomicU64,
    in_a_row: AtomicU32,
    health: AtomicU8,
    /// In milliseconds since the beginning.
    pub(super) ejected_until: AtomicU64,
    /// How often it was ejected without doing well in between.
    ejections: AtomicU32,
    /// When it left, in milliseconds since the beginning; [`STAYS`]: it has not.
    gone_at: AtomicU64,
}

/// It has not left.
const STAYS: u64 = u64::MAX;

impl Known {
    pub(super) fn new(address: SocketAddr, owner: Weak<Inner>) -> Known {
        Known {
            address,
            owner,
            active: AtomicUsize::new(0),
            total: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            in_a_row: AtomicU32::new(0),
            health: AtomicU8::new(Health::Unknown as u8),
            ejected_until: AtomicU64::new(0),
            ejections: AtomicU32::new(0),
            gone_at: AtomicU64::new(STAYS),
        }
    }

    /// It is a backend, perhaps again. One that was gone may be another process now: what checks said of it is void.
    pub(super) fn come(&self) {
        if self.gone_at.swap(STAYS, Ordering::Relaxed) != STAYS {
            self.health.store(Health::Unknown as u8, Ordering::Relaxed);
        }
    }

    pub(super) fn leave(&self, now: u64) {
        self.gone_at.store(now, Ordering::Relaxed);
    }

    /// How long ago it left, if it has.
    fn gone_for(&self) -> Option<Duration> {
        let gone = Some(self.gone_at.load(Ordering::Relaxed)).filter(|at| *at != STAYS)?;
        // Without those it belonged to it does not come back.
        let now = self.owner.upgrade().map_or(STAYS, |owner| owner.now());
        Some(Duration::from_millis(now.saturating_sub(gone)))
    }

    pub(super) fn health(&self) -> Health {
        match self.health.load(Ordering::Relaxed) {
            0 => Health::Unknown,
            1 => Health::Healthy,
            _ => Health::Unhealthy,
        }
    }

    /// True if that is news.
    pub(super) fn set_health(&self, health: Health) -> bool {
        self.health.swap(health as u8, Ordering::Relaxed) != health as u8
    }

    pub(super) fn is_ejected(&self, now: u64) -> bool {
        self.ejected_until.load(Ordering::Relaxed) > now
    }

    /// When it is used again, if it is ejected.
    pub(super) fn back_at(&self, now: u64) -> Option<u64> {
        Some(self.ejected_until.load(Ordering::Relaxed)).filter(|until| *until > now)
    }

    /// True if it was not yet.
    pub(super) fn eject(&self, now: u64) -> bool {
        if self.is_ejected(now) {
            return false;
        }
        let times = self.ejections.fetch_add(1, Ordering::Relaxed).min(16);
        self.in_a_row.store(0, Ordering::Relaxed);
        self.ejected_until.store(now + (EJECTION << times).min(LONGEST_EJECTION), Ordering::Relaxed);
        true
    }

    fn fail(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        // What breaks off with one that has left says nothing of who comes back.
        if self.gone_for().is_some() {
            return;
        }
        let in_a_row = self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
        // One that fails when it is tried again has not recovered.
        let enough = if self.ejections.load(Ordering::Relaxed) > 0 { 1 } else { FAILURES };
        if in_a_row >= enough
            && let Some(owner) = self.owner.upgrade()
        {
            owner.eject(self);
        }
    }

    fn succeed(&self) {
        // Reading is free as long as nobody writes.
        if self.in_a_row.load(Ordering::Relaxed) != 0 {
            self.in_a_row.store(0, Ordering::Relaxed);
        }
        if self.ejections.load(Ordering::Relaxed) != 0 {
            self.ejections.store(0, Ordering::Relaxed);
        }
    }
}

/// A backend chosen for one connection or request, counted as long as this lives.
#[derive(Debug)]
pub struct Chosen {
    member: Arc<Member>,
}

impl Chosen {
    pub(super) fn new(member: Arc<Member>) -> Chosen {
        member.known.active.fetch_add(1, Ordering::Relaxed);
        member.known.total.fetch_add(1, Ordering::Relaxed);
        Chosen { member }
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.member.backend.address
    }

    /// The backend as the cluster described it when it was chosen.
    pub fn backend(&self) -> &Backend {
        &self.member.backend
    }

    /// Whether it has left since: nothing new should go to it.
    pub fn is_gone(&self) -> bool {
        self.gone_for().is_some()
    }

    /// How long ago it left, if it has.
    pub(crate) fn gone_for(&self) -> Option<Duration> {
        self.member.known.gone_for()
    }

    /// Says whether it has left, to whoever does not count as a connection or request of it.
    pub(crate) fn tie(&self) -> Tie {
        Tie(self.member.known.clone())
    }

    /// It could not be reached, or broke off: several of these in a row and it is left alone for a while.
    pub fn failed(&self) {
        self.member.known.fail();
    }

    /// It answered.
    pub fn succeeded(&self) {
        self.member.known.succeed();
    }
}

impl Drop for Chosen {
    fn drop(&mut self) {
        self.member.known.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Knows whether a backend that was chosen has left.
#[derive(Debug)]
pub(crate) struct Tie(Arc<Known>);

impl Tie {
    /// How long ago it left, if it has.
    pub(crate) fn gone_for(&self) -> Option<Duration> {
        self.0.gone_for()
    }
}
