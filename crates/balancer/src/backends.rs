//! Which backends does a listener have, how are they, and which one is next?

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::spec::Choice;

/// One endpoint that connections or requests may go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// Where it is.
    pub address: SocketAddr,
    /// Its share in proportion to others'; 0: no new connections.
    pub weight: u32,
    /// The Node it is on.
    pub node: Option<String>,
    /// The zone it is in.
    pub zone: Option<String>,
    /// Whether it gets new connections, or only keeps those it has.
    pub stage: Stage,
}

/// What a backend is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// New connections.
    Ready,
    /// Its Pod ends: what it has goes on, new ones only if there is nobody else.
    Draining,
}

/// The backends of a listener, with what is known of each.
#[derive(Debug)]
pub struct Backends {
    members: RwLock<Vec<Arc<Member>>>,
    turn: AtomicUsize,
}

/// A backend with what is known of it.
#[derive(Debug)]
pub struct Member {
    /// The backend as the cluster describes it.
    pub backend: Backend,
    active: AtomicUsize,
}

/// A backend chosen for one connection or request, counted as long as this lives.
#[derive(Debug)]
pub struct Chosen {
    member: Arc<Member>,
}

impl Backends {
    /// None yet.
    pub fn new() -> Backends {
        Backends { members: RwLock::new(Vec::new()), turn: AtomicUsize::new(0) }
    }

    /// These from now on; what is known of those that stay is kept.
    pub fn set(&self, backends: &[Backend]) {
        let members = backends.iter().map(|one| Arc::new(Member { backend: one.clone(), active: AtomicUsize::new(0) }));
        *self.members.write().unwrap_or_else(PoisonError::into_inner) = members.collect();
    }

    /// The backend for the next connection or request of a client, other than those already tried; `None`: there is none.
    pub fn choose(&self, choice: Choice, client: SocketAddr, tried: &[SocketAddr]) -> Option<Chosen> {
        let _ = (choice, client);
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let fresh = |member: &&Arc<Member>| !tried.contains(&member.backend.address);
        let member = members.iter().cycle().skip(turn % members.len().max(1)).take(members.len()).find(fresh)?.clone();
        member.active.fetch_add(1, Ordering::Relaxed);
        Some(Chosen { member })
    }
}

impl Default for Backends {
    fn default() -> Backends {
        Backends::new()
    }
}

impl Chosen {
    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.member.backend.address
    }

    /// It could not be reached, or broke off: several of these in a row and it is left alone for a while.
    pub fn failed(&self) {}

    /// It answered.
    pub fn succeeded(&self) {}
}

impl Drop for Chosen {
    fn drop(&mut self) {
        self.member.active.fetch_sub(1, Ordering::Relaxed);
    }
}
