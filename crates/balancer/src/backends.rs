//! Which backends does a listener have, how are they, and which one is next?
//!
//! ```text
//! set (from slices) ----+
//! report (checks) ------+--> Table: who is eligible, in which order --> choose: a read lock and an atomic step
//! failed (connections) -+    made anew at each change, outside the lock
//! ```

mod affinity;
mod maglev;
mod member;
mod table;
#[cfg(test)]
mod tests;
mod turns;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::spec::Choice;
use affinity::Affinity;
use member::Known;
pub(crate) use member::Tie;
pub use member::{BackendStatus, Chosen, Health, Member};
use table::Table;

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

/// What else decides who is next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// A client stays with its backend so long after its last connection.
    pub affinity: Option<Duration>,
    /// Backends of this zone, as long as it has one that can be used.
    pub zone: Option<String>,
}

/// The backends of a listener, with what is known of each.
#[derive(Debug, Clone)]
pub struct Backends(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    table: RwLock<Arc<Table>>,
    turn: AtomicUsize,
    /// Held while a table is made, so that tables come in order.
    state: Mutex<State>,
    affinity: Affinity,
    changes: watch::Sender<()>,
    /// What times are counted from.
    begun: Instant,
    /// When the first ejection ends, in milliseconds since the beginning; `u64::MAX`: nobody is ejected.
    return_at: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    rules: Rules,
    /// Those that left while connections of theirs went on: one that comes back is the same.
    departed: Vec<Weak<Known>>,
}

impl Backends {
    /// None yet.
    pub fn new() -> Backends {
        Backends(Arc::new(Inner {
            table: RwLock::new(Arc::new(Table::default())),
            turn: AtomicUsize::new(0),
            state: Mutex::default(),
            affinity: Affinity::default(),
            changes: watch::Sender::new(()),
            begun: Instant::now(),
            return_at: AtomicU64::new(u64::MAX),
        }))
    }

    /// These from now on; what is known of those that stay is kept.
    pub fn set(&self, backends: &[Backend]) {
        let mut state = self.0.state();
        let (before, now) = (self.0.table(), self.0.now());
        if before.members.iter().map(|member| &member.backend).eq(backends) {
            return;
        }
        state.departed.retain(|one| one.strong_count() > 0);
        let mut known: HashMap<SocketAddr, Arc<Known>> =
            state.departed.iter().filter_map(Weak::upgrade).map(|one| (one.address, one)).collect();
        known.extend(before.members.iter().map(|one| (one.backend.address, one.known.clone())));
        let mut member = |backend: &Backend| {
            let fresh = || Arc::new(Known::new(backend.address, Arc::downgrade(&self.0)));
            let known = known.entry(backend.address).or_insert_with(fresh).clone();
            known.come();
            Arc::new(Member { backend: backend.clone(), known })
        };
        let members: Vec<Arc<Member>> = backends.iter().map(&mut member).collect();
        let stay: HashSet<SocketAddr> = backends.iter().map(|backend| backend.address).collect();
        for one in before.members.iter().filter(|one| !stay.contains(&one.backend.address)) {
            one.known.leave(now);
            state.departed.push(Arc::downgrade(&one.known));
        }
        self.0.publish(members, &state.rules);
        self.0.changes.send_replace(());
    }

    /// Chooses by these rules from now on.
    pub fn rule(&self, rules: Rules) {
        let mut state = self.0.state();
        if state.rules != rules {
            state.rules = rules;
            self.0.affinity.set(state.rules.affinity);
            self.0.publish(self.0.table().members.clone(), &state.rules);
        }
    }

    /// The backend for the next connection or request of a client, other than those already tried; `None`: there is none.
    pub fn choose(&self, choice: Choice, client: SocketAddr, tried: &[SocketAddr]) -> Option<Chosen> {
        if self.0.return_at.load(Ordering::Relaxed) != u64::MAX {
            self.0.take_back();
        }
        let table = self.0.table.read().unwrap_or_else(PoisonError::into_inner);
        if self.0.affinity.is_on() {
            return self.stick(&table, choice, client, tried);
        }
        self.pick(&table, choice, client, tried)
    }

    /// Takes note of what a check found. Nothing happens if there is no such backend.
    pub fn report(&self, address: SocketAddr, health: Health) {
        let table = self.0.table();
        let Some(member) = table.members.iter().find(|one| one.backend.address == address) else { return };
        if member.known.set_health(health) {
            let state = self.0.state();
            self.0.publish(self.0.table().members.clone(), &state.rules);
        }
    }

    /// How they all are.
    pub fn look(&self) -> Vec<BackendStatus> {
        self.0.take_back();
        let now = self.0.now();
        self.0.table().members.iter().map(|member| member.status(now)).collect()
    }

    /// Who they are.
    pub fn all(&self) -> Vec<Backend> {
        self.0.table().members.iter().map(|member| member.backend.clone()).collect()
    }

    /// Whether some are used though none of them is healthy, because there is nobody else.
    pub fn fails_open(&self) -> bool {
        self.0.table().fails_open
    }

    /// Hears when members come or go.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }

    fn pick(&self, table: &Table, choice: Choice, client: SocketAddr, tried: &[SocketAddr]) -> Option<Chosen> {
        let turn = || self.0.turn.fetch_add(1, Ordering::Relaxed);
        table.pick(choice, client.ip(), tried, turn).map(|member| Chosen::new(member.clone()))
    }

    /// The backend a client had, or one it keeps from now on.
    fn stick(&self, table: &Table, choice: Choice, client: SocketAddr, tried: &[SocketAddr]) -> Option<Chosen> {
        let now = self.0.now();
        let kept = self.0.affinity.find(client.ip(), now).filter(|address| !tried.contains(address));
        let kept = kept.and_then(|address| table.eligible(address));
        let chosen = match kept {
            Some(member) => Chosen::new(member.clone()),
            None => self.pick(table, choice, client, tried)?,
        };
        self.0.affinity.keep(client.ip(), chosen.address(), now);
        Some(chosen)
    }
}

impl Default for Backends {
    fn default() -> Backends {
        Backends::new()
    }
}

impl Inner {
    fn table(&self) -> Arc<Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds since the beginning, which is before every time that is kept.
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX - 1)
    }

    /// Makes a table of members as they are now.
    fn publish(&self, members: Vec<Arc<Member>>, rules: &Rules) {
        let before = self.table();
        let table = Arc::new(Table::new(members, rules, self.now(), &before));
        self.return_at.store(table.return_at.unwrap_or(u64::MAX), Ordering::Relaxed);
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = table;
    }

    /// Uses those again whose ejection is over.
    fn take_back(&self) {
        if self.return_at.load(Ordering::Relaxed) > self.now() {
            return;
        }
        // Whoever else is at it does the same.
        if let Ok(state) = self.state.try_lock() {
            self.publish(self.table().members.clone(), &state.rules);
        }
    }

    /// Leaves one alone for a while, unless too many are already.
    fn eject(&self, known: &Known) {
        let state = self.state();
        let (table, now) = (self.table(), self.now());
        let out = table.members.iter().filter(|one| one.known.is_ejected(now)).count();
        if (out + 1) * 2 <= table.members.len() && known.eject(now) {
            self.publish(table.members.clone(), &state.rules);
        }
    }
}
