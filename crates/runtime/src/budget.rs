//! Budgets: bounds on memory, connections and descriptors, for the whole process and per sender.
//!
//! A component asks the [`Account`] of the process for a [`Budget`] by name ("api connections", "balancer buffers") and
//! acquires a [`Permit`] before it allocates. Dropping the permit returns the amount. A budget never waits: the component
//! decides whether the sender waits, is refused or is disconnected. Refusals are counted and logged at most once a minute.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use crate::machine::MachineLimits;

#[cfg(test)]
mod tests;

/// Time between two log lines about the same exceeded limit of a budget.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Number of locks over the senders of one budget.
const SHARDS: usize = 16;

/// All budgets of a process. Clones share the same budgets, and are equal to each other only.
#[derive(Debug, Clone)]
pub struct Account {
    machine: MachineLimits,
    budgets: Arc<Mutex<Vec<Budget>>>,
}

/// Maximum amounts of one resource, in the resource's own unit (bytes, connections, requests).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum for all senders together.
    pub total: u64,
    /// Maximum for one sender.
    pub per_sender: u64,
}

/// The client that an amount is charged to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sender {
    /// An IPv4 address, or the /64 prefix of an IPv6 address: one IPv6 host usually has a whole /64 to send from.
    Network(IpAddr),
    /// An authenticated user, by name.
    User(Arc<str>),
    /// A Service, as `namespace/name`.
    Service(Arc<str>),
}

/// The limit that an acquisition would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    /// The limit of the whole process.
    #[error("the limit of the process is reached")]
    Total,
    /// The limit of this sender.
    #[error("the limit of this client is reached")]
    Sender,
}

/// One bounded resource. Clones share the same amount.
#[derive(Debug, Clone)]
pub struct Budget {
    state: Arc<BudgetState>,
}

/// An acquired amount of a budget, returned on drop.
#[derive(Debug)]
pub struct Permit {
    budget: Budget,
    sender: Option<Sender>,
    amount: u64,
}

/// The state of a budget at one moment, as metrics and diagnostics show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetReport {
    /// Name of the budget.
    pub name: &'static str,
    /// Its limits.
    pub limits: Limits,
    /// Amount in use.
    pub in_use: u64,
    /// Number of senders that hold something.
    pub senders: usize,
    /// The sender that holds most, with its amount.
    pub largest: Option<(Sender, u64)>,
    /// Acquisitions refused because of the total limit.
    pub refused_total: u64,
    /// Acquisitions refused because of the limit per sender.
    pub refused_sender: u64,
    /// Amounts taken back from a sender to make room ([`crate::SlotTable`]).
    pub evicted: u64,
}

#[derive(Debug)]
struct BudgetState {
    name: &'static str,
    limits: Limits,
    in_use: AtomicU64,
    senders: [Mutex<HashMap<Sender, u64, RandomState>>; SHARDS],
    hasher: RandomState,
    over_total: RefusalLog,
    over_sender: RefusalLog,
    evictions: RefusalLog,
}

/// Counts refusals and decides which of them are logged.
#[derive(Debug, Default)]
struct RefusalLog {
    count: AtomicU64,
    last_line: Mutex<Option<LoggedLine>>,
}

#[derive(Debug)]
struct LoggedLine {
    at: Instant,
    count: u64,
}

impl Account {
    /// Returns an account without budgets, for a process with these limits.
    pub fn new(machine: MachineLimits) -> Account {
        Account { machine, budgets: Arc::default() }
    }

    /// Returns the limits of the process, from which components derive the sizes of their budgets.
    pub fn machine(&self) -> MachineLimits {
        self.machine
    }

    /// Returns the budget of this name. The limits of the first call hold.
    pub fn budget(&self, name: &'static str, limits: Limits) -> Budget {
        let mut budgets = lock(&self.budgets);
        if let Some(budget) = budgets.iter().find(|budget| budget.state.name == name) {
            return budget.clone();
        }
        let budget = Budget::new(name, limits);
        budgets.push(budget.clone());
        budget
    }

    /// Returns the state of all budgets, in the order they were created.
    pub fn report(&self) -> Vec<BudgetReport> {
        let budgets = lock(&self.budgets).clone();
        budgets.iter().map(Budget::report).collect()
    }
}

/// An account of its own, as tests and tools use it. The program has one account for all its components.
impl Default for Account {
    fn default() -> Account {
        Account::new(MachineLimits::read())
    }
}

impl PartialEq for Account {
    fn eq(&self, other: &Account) -> bool {
        Arc::ptr_eq(&self.budgets, &other.budgets)
    }
}

impl Eq for Account {}

impl Limits {
    /// Returns limits for a resource that is bounded for the process only.
    pub fn total(total: u64) -> Limits {
        Limits { total, per_sender: total }
    }
}

impl Sender {
    /// Returns the sender for a client's address.
    pub fn from_address(address: IpAddr) -> Sender {
        match address.to_canonical() {
            IpAddr::V4(address) => Sender::Network(IpAddr::V4(address)),
            IpAddr::V6(address) => {
                let prefix = address.to_bits() & (u128::MAX << 64);
                Sender::Network(IpAddr::V6(Ipv6Addr::from_bits(prefix)))
            }
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sender::Network(IpAddr::V4(address)) => write!(out, "{address}"),
            Sender::Network(IpAddr::V6(prefix)) => write!(out, "{prefix}/64"),
            Sender::User(name) => write!(out, "user {name}"),
            Sender::Service(name) => write!(out, "Service {name}"),
        }
    }
}

impl Budget {
    /// Returns a budget outside of any account, as tests use it.
    pub fn new(name: &'static str, limits: Limits) -> Budget {
        let state = BudgetState {
            name,
            limits,
            in_use: AtomicU64::new(0),
            senders: Default::default(),
            hasher: RandomState::default(),
            over_total: RefusalLog::default(),
            over_sender: RefusalLog::default(),
            evictions: RefusalLog::default(),
        };
        Budget { state: Arc::new(state) }
    }

    /// Acquires an amount for a sender. The sender's limit is checked first, so that a sender at its limit is never
    /// reported as a lack of room for all.
    pub fn acquire(&self, sender: &Sender, amount: u64) -> Result<Permit, Exceeded> {
        self.charge(Some(sender), amount)?;
        Ok(Permit { budget: self.clone(), sender: Some(sender.clone()), amount })
    }

    /// Acquires an amount that is charged to the process alone. One atomic operation, without a lock.
    pub fn acquire_unattributed(&self, amount: u64) -> Result<Permit, Exceeded> {
        self.charge(None, amount)?;
        Ok(Permit { budget: self.clone(), sender: None, amount })
    }

    /// Returns the limits.
    pub fn limits(&self) -> Limits {
        self.state.limits
    }

    /// Returns the amount in use.
    pub fn in_use(&self) -> u64 {
        self.state.in_use.load(Ordering::Relaxed)
    }

    /// Returns the amount that one sender holds.
    pub fn held_by(&self, sender: &Sender) -> u64 {
        lock(self.shard(sender)).get(sender).copied().unwrap_or(0)
    }

    /// Returns the state for metrics. Visits every sender, so callers ask once per scrape and not per request.
    pub fn report(&self) -> BudgetReport {
        let mut senders = 0;
        let mut largest: Option<(Sender, u64)> = None;
        for shard in &self.state.senders {
            let shard = lock(shard);
            senders += shard.len();
            for (sender, amount) in shard.iter() {
                if largest.as_ref().is_none_or(|(_, most)| amount > most) {
                    largest = Some((sender.clone(), *amount));
                }
            }
        }
        BudgetReport {
            name: self.state.name,
            limits: self.state.limits,
            in_use: self.in_use(),
            senders,
            largest,
            refused_total: self.state.over_total.count.load(Ordering::Relaxed),
            refused_sender: self.state.over_sender.count.load(Ordering::Relaxed),
            evicted: self.state.evictions.count.load(Ordering::Relaxed),
        }
    }

    /// Acquires an amount for a sender without checking the sender's limit, for a
    /// [`crate::SlotTable`], which has limits per address and records its refusals itself.
    pub(crate) fn acquire_within_total(&self, sender: &Sender, amount: u64) -> Option<Permit> {
        let mut shard = lock(self.shard(sender));
        self.add_to_total(amount)?;
        *shard.entry(sender.clone()).or_default() += amount;
        drop(shard);
        Some(Permit { budget: self.clone(), sender: Some(sender.clone()), amount })
    }

    /// Counts an amount that a sender lost to make room for another, and logs evictions at most
    /// once a minute.
    pub(crate) fn record_eviction(&self, sender: &Sender) {
        if let Some(evicted) = self.state.evictions.record(Instant::now()) {
            let name = self.state.name;
            tracing::warn!(
                "{name}: a limit is reached; ended {evicted} of clients that hold most, the last of {sender}"
            );
        }
    }

    fn charge(&self, sender: Option<&Sender>, amount: u64) -> Result<(), Exceeded> {
        if amount == 0 {
            return Ok(());
        }
        let Some(sender) = sender else { return self.charge_total(amount) };
        let mut shard = lock(self.shard(sender));
        let held = shard.get(sender).copied().unwrap_or(0);
        if held.saturating_add(amount) > self.state.limits.per_sender {
            drop(shard);
            self.refuse(Exceeded::Sender, Some(sender));
            return Err(Exceeded::Sender);
        }
        self.charge_total(amount)?;
        shard.insert(sender.clone(), held + amount);
        Ok(())
    }

    fn charge_total(&self, amount: u64) -> Result<(), Exceeded> {
        self.add_to_total(amount).ok_or_else(|| {
            self.refuse(Exceeded::Total, None);
            Exceeded::Total
        })
    }

    fn add_to_total(&self, amount: u64) -> Option<()> {
        let total = self.state.limits.total;
        let add = |in_use: u64| in_use.checked_add(amount).filter(|sum| *sum <= total);
        self.state.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok().map(drop)
    }

    fn discharge(&self, sender: Option<&Sender>, amount: u64) {
        if let Some(sender) = sender {
            let mut shard = lock(self.shard(sender));
            if let Some(held) = shard.get_mut(sender) {
                *held = held.saturating_sub(amount);
                if *held == 0 {
                    shard.remove(sender);
                }
            }
        }
        self.state.in_use.fetch_sub(amount, Ordering::Relaxed);
    }

    fn shard(&self, sender: &Sender) -> &Mutex<HashMap<Sender, u64, RandomState>> {
        use std::hash::BuildHasher;
        let index = self.state.hasher.hash_one(sender) as usize % SHARDS;
        &self.state.senders[index]
    }

    /// Counts a refusal, and logs refusals at most once a minute for each limit.
    pub(crate) fn refuse(&self, limit: Exceeded, sender: Option<&Sender>) {
        let log = match limit {
            Exceeded::Total => &self.state.over_total,
            Exceeded::Sender => &self.state.over_sender,
        };
        let Some(refused) = log.record(Instant::now()) else { return };
        let Limits { total, per_sender } = self.state.limits;
        let name = self.state.name;
        match sender {
            Some(sender) => tracing::warn!("{name}: {sender} is at its limit of {per_sender}; refused {refused}"),
            None => tracing::warn!("{name}: all {total} are in use; refused {refused}"),
        }
    }
}

impl Permit {
    /// Returns the amount held.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// Changes the amount held. On an error the old amount stays.
    pub fn resize(&mut self, amount: u64) -> Result<(), Exceeded> {
        let sender = self.sender.as_ref();
        if amount > self.amount {
            self.budget.charge(sender, amount - self.amount)?;
        } else if amount < self.amount {
            self.budget.discharge(sender, self.amount - amount);
        }
        self.amount = amount;
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.budget.discharge(self.sender.as_ref(), self.amount);
        }
    }
}

impl RefusalLog {
    /// Counts a refusal. Returns the number of refusals since the last log line if a line is due.
    fn record(&self, now: Instant) -> Option<u64> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let mut last = lock(&self.last_line);
        let logged = match &*last {
            Some(line) if now.duration_since(line.at) < LOG_INTERVAL => return None,
            Some(line) => line.count,
            None => 0,
        };
        *last = Some(LoggedLine { at: now, count });
        Some(count.saturating_sub(logged))
    }
}

/// Locks even after a panic in another thread: the maps and counters are consistent between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
