//! Slots: a bounded number of connections or waiting requests, shared fairly between client
//! addresses.
//!
//! A [`Budget`] refuses at its limits, so a client that keeps what it acquired keeps others out. A
//! [`SlotTable`] takes slots back instead: when all are in use, the client that holds most loses
//! its idlest slot to a client that holds less. Clients are compared by network first (an IPv4
//! address, or an IPv6 /64) and by address within a network, so that neither a host with many IPv6
//! addresses nor one of many hosts in the same /64 (the Pods of a Node) can keep the others out.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;

use crate::budget::{Budget, Exceeded, Limits, Permit, Sender};

#[cfg(test)]
mod tests;

/// Policy for a client that holds as many slots as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtLimit {
    /// The client's idlest slot is taken back for the new one. For connections, most of which idle.
    ReplaceIdlest,
    /// The new slot is refused. For requests, which all are in progress.
    Refuse,
}

/// A bounded number of slots. Clones share the same slots.
#[derive(Debug, Clone)]
pub struct SlotTable {
    shared: Arc<Shared>,
}

/// A slot in use, returned on drop.
#[derive(Debug)]
pub struct Slot {
    shared: Arc<Shared>,
    sender: Sender,
    address: IpAddr,
    number: u64,
    last_use: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Shared {
    budget: Budget,
    per_address: usize,
    at_limit: AtLimit,
    /// Source of slot numbers and of the order in which slots were used.
    sequence: AtomicU64,
    networks: Mutex<Holders<Sender, Holders<IpAddr, Occupants>>>,
}

/// Slots in use by key, with the keys ordered by the number of slots they hold.
#[derive(Debug)]
struct Holders<K, V> {
    entries: HashMap<K, Holder<V>, RandomState>,
    /// Keys by number of slots. Among equal holders the one that has held slots for longest is the
    /// largest.
    by_size: BTreeSet<(usize, Reverse<u64>, K)>,
}

#[derive(Debug)]
struct Holder<V> {
    count: usize,
    since: u64,
    value: V,
}

/// Slots of one address, by number.
type Occupants = HashMap<u64, Occupant, RandomState>;

struct Occupant {
    last_use: Arc<AtomicU64>,
    evict: Box<dyn FnOnce() + Send>,
    _permit: Permit,
}

impl SlotTable {
    /// Returns a table whose slots are counted in a budget. The budget's limit per sender holds for
    /// one address here.
    pub fn new(budget: Budget, at_limit: AtLimit) -> SlotTable {
        let shared = Shared {
            per_address: usize::try_from(budget.limits().per_sender).unwrap_or(usize::MAX),
            budget,
            at_limit,
            sequence: AtomicU64::new(0),
            networks: Mutex::default(),
        };
        SlotTable { shared: Arc::new(shared) }
    }

    /// Admits a connection or request of a client. `evict` is called if its slot is taken back
    /// later; it must only notify the task that holds the slot, and must not use this table.
    pub fn admit(&self, address: IpAddr, evict: impl FnOnce() + Send + 'static) -> Result<Slot, Exceeded> {
        let address = address.to_canonical();
        let sender = Sender::from_address(address);
        let shared = &self.shared;
        let mut networks = shared.networks();
        let held = networks.value(&sender).map_or(0, |addresses| addresses.count(&address));
        let mut evicted = Vec::new();
        let mut refused = None;
        if held >= shared.per_address {
            match shared.at_limit {
                AtLimit::ReplaceIdlest => evicted.extend(networks.evict(&sender, &address)),
                AtLimit::Refuse => refused = Some(Exceeded::Sender),
            }
        } else if shared.budget.in_use() >= shared.budget.limits().total {
            match networks.victim(&sender, &address, shared.at_limit) {
                Some((sender, address)) => evicted.extend(networks.evict(&sender, &address)),
                None => refused = Some(Exceeded::Total),
            }
        }
        // Another table may share the budget: the total is checked once more by the budget itself.
        let permit = match refused {
            None => shared.budget.acquire_within_total(&sender, 1),
            Some(_) => None,
        };
        let slot = permit.map(|permit| {
            let number = shared.sequence.fetch_add(1, Ordering::Relaxed);
            let last_use = Arc::new(AtomicU64::new(number));
            let occupant = Occupant { last_use: last_use.clone(), evict: Box::new(evict), _permit: permit };
            networks.insert(&sender, &address, number, occupant);
            Slot { shared: shared.clone(), sender: sender.clone(), address, number, last_use }
        });
        drop(networks);
        for (sender, evict) in evicted {
            shared.budget.record_eviction(&sender);
            evict();
        }
        slot.ok_or_else(|| {
            let limit = refused.unwrap_or(Exceeded::Total);
            shared.budget.refuse(limit, (limit == Exceeded::Sender).then_some(&sender));
            limit
        })
    }

    /// Returns the number of slots in use.
    pub fn in_use(&self) -> u64 {
        self.shared.budget.in_use()
    }

    /// Returns the limits.
    pub fn limits(&self) -> Limits {
        self.shared.budget.limits()
    }
}

impl Slot {
    /// Records that the client used the slot, which makes other slots of the client idler.
    pub fn touch(&self) {
        let now = self.shared.sequence.fetch_add(1, Ordering::Relaxed);
        self.last_use.store(now, Ordering::Relaxed);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut networks = self.shared.networks();
        let removed = networks.remove(&self.sender, &self.address, self.number);
        // The callback may own what the task holds: it is dropped without the lock.
        drop(networks);
        drop(removed);
    }
}

impl Shared {
    fn networks(&self) -> MutexGuard<'_, Holders<Sender, Holders<IpAddr, Occupants>>> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Networks = Holders<Sender, Holders<IpAddr, Occupants>>;

impl Networks {
    /// Returns the holder that loses a slot to a client when all slots are in use, or `None` if the
    /// client is to be refused.
    fn victim(&self, sender: &Sender, address: &IpAddr, at_limit: AtLimit) -> Option<(Sender, IpAddr)> {
        // Equal holders would take the same slot from each other in turns; that is fair for idle
        // connections only.
        let least_advantage = match at_limit {
            AtLimit::ReplaceIdlest => 1,
            AtLimit::Refuse => 2,
        };
        let (largest_network, network_count) = self.largest()?;
        if largest_network != sender && network_count >= self.count(sender) + least_advantage {
            let (victim, _) = self.value(largest_network)?.largest()?;
            return Some((largest_network.clone(), *victim));
        }
        let addresses = self.value(sender)?;
        let (victim, count) = addresses.largest()?;
        if victim != address && count >= addresses.count(address) + least_advantage {
            return Some((sender.clone(), *victim));
        }
        let own = at_limit == AtLimit::ReplaceIdlest && addresses.count(address) > 0;
        own.then(|| (sender.clone(), *address))
    }

    fn insert(&mut self, sender: &Sender, address: &IpAddr, number: u64, occupant: Occupant) {
        let addresses = self.grow(sender, number);
        addresses.grow(address, number).insert(number, occupant);
    }

    fn remove(&mut self, sender: &Sender, address: &IpAddr, number: u64) -> Option<Occupant> {
        let addresses = self.value_mut(sender)?;
        let occupant = addresses.value_mut(address)?.remove(&number)?;
        addresses.shrink(address);
        self.shrink(sender);
        Some(occupant)
    }

    /// Removes the idlest slot of an address, and returns what notifies its task.
    fn evict(&mut self, sender: &Sender, address: &IpAddr) -> Option<(Sender, Box<dyn FnOnce() + Send>)> {
        let occupants = self.value(sender)?.value(address)?;
        let idlest = occupants.iter().min_by_key(|(_, occupant)| occupant.last_use.load(Ordering::Relaxed));
        let number = *idlest?.0;
        let occupant = self.remove(sender, address, number)?;
        Some((sender.clone(), occupant.evict))
    }
}

impl<K: Clone + Eq + std::hash::Hash + Ord, V: Default> Holders<K, V> {
    fn value(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|holder| &holder.value)
    }

    fn value_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|holder| &mut holder.value)
    }

    fn count(&self, key: &K) -> usize {
        self.entries.get(key).map_or(0, |holder| holder.count)
    }

    fn largest(&self) -> Option<(&K, usize)> {
        self.by_size.last().map(|(count, _, key)| (key, *count))
    }

    /// Counts one slot more. `now` is when the key began to hold slots, if it held none.
    fn grow(&mut self, key: &K, now: u64) -> &mut V {
        let holder =
            self.entries.entry(key.clone()).or_insert_with(|| Holder { count: 0, since: now, value: V::default() });
        self.by_size.remove(&(holder.count, Reverse(holder.since), key.clone()));
        holder.count += 1;
        self.by_size.insert((holder.count, Reverse(holder.since), key.clone()));
        &mut holder.value
    }

    /// Counts one slot less, and forgets a key without slots.
    fn shrink(&mut self, key: &K) {
        let Some(holder) = self.entries.get_mut(key) else { return };
        self.by_size.remove(&(holder.count, Reverse(holder.since), key.clone()));
        holder.count = holder.count.saturating_sub(1);
        if holder.count == 0 {
            self.entries.remove(key);
        } else {
            self.by_size.insert((holder.count, Reverse(holder.since), key.clone()));
        }
    }
}

impl<K, V> Default for Holders<K, V> {
    fn default() -> Holders<K, V> {
        Holders { entries: HashMap::default(), by_size: BTreeSet::new() }
    }
}

impl fmt::Debug for Occupant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Occupant").field("last_use", &self.last_use).finish_non_exhaustive()
    }
}
