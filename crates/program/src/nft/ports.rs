//! Numbers for ports of Services and what their pools look like in the program, for one family.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;

use fairlead_plan::{Endpoint, Pool, PoolKey, PortKey, Scope};

use super::batch::Batch;
use super::code::{self, MAX_PORT, Spread};
use super::key::Key;
use super::model::Element;
use super::slots::{self, Place, SlotChange};

/// Ports that have pools.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    ports: HashMap<PortKey, Port>,
    numbers: Numbers,
    /// How many pools have clients that stay for so many seconds.
    affinities: HashMap<u32, u32>,
    /// The largest size of a pool there ever was.
    largest: u32,
    /// How many endpoints on this Node have an address.
    hairpins: HashMap<IpAddr, u32>,
}

/// What a port has in the program.
#[derive(Debug, Default)]
struct Port {
    number: u32,
    cluster: Option<Spreading>,
    local: Option<Spreading>,
    members: Members,
}

/// A pool in the program.
#[derive(Debug)]
struct Spreading {
    slots: Vec<Place>,
    spread: Spread,
}

/// Numbers of the endpoints of a port whose clients stay. They are kept as long as the endpoint is in any pool.
#[derive(Debug, Default)]
struct Members {
    numbers: Numbers,
    known: HashMap<Place, (u32, u32)>,
}

impl Ports {
    /// The number of a port, if it has pools.
    pub(crate) fn number(&self, port: &PortKey) -> u32 {
        self.ports.get(port).map_or(0, |port| port.number)
    }

    /// Gives a port the number it had, which nobody else may have, and its endpoints those they had.
    pub(crate) fn reserve(&mut self, key: &PortKey, number: u32, members: &[(u32, Place)]) {
        if self.ports.contains_key(key) || !self.numbers.begin_after(number) {
            return;
        }
        let mut port = Port { number, ..Port::default() };
        let mut taken = BTreeSet::new();
        for (index, place) in members {
            let free = !port.members.known.contains_key(place) && taken.insert(*index);
            if free && port.members.numbers.begin_after(*index) {
                port.members.known.insert(*place, (*index, 0));
            }
        }
        self.ports.insert(key.clone(), port);
    }

    /// Gives up numbers of endpoints that are no more.
    pub(crate) fn forget_unused(&mut self) {
        for port in self.ports.values_mut() {
            let Members { numbers, known } = &mut port.members;
            known.retain(|_, (number, pools)| {
                if *pools == 0 {
                    numbers.give_back(*number);
                }
                *pools > 0
            });
        }
    }

    /// The largest size of a pool there ever was.
    pub(crate) fn largest(&self) -> u32 {
        self.largest
    }

    /// Whether the pool is in the program.
    pub(crate) fn has(&self, key: &PoolKey) -> bool {
        self.ports.get(&key.port).is_some_and(|port| port.pool(key.scope).is_some())
    }

    /// Changes a pool.
    pub(crate) fn set(&mut self, key: &PoolKey, old: Option<&Pool>, new: Option<&Pool>, batch: &mut Batch) {
        let port = self.ports.entry(key.port.clone()).or_default();
        if port.number == 0 {
            port.number = self.numbers.take();
        }
        let spread = |spreading: &Option<Spreading>| spreading.as_ref().map(|spreading| spreading.spread);
        let before = spread(port.pool(key.scope));
        port.set(key.scope, new, batch);
        let after = spread(port.pool(key.scope));
        if before != after {
            let pool = number(code::pool(port.number, key.scope));
            let element = |spread: Spread| Element::data(pool, number(spread.number()));
            batch.change("pools", before.map(element), after.map(element));
            let draw = |spread: Spread| spread.affinity.map(|_| Element::data(pool, number(spread.size)));
            batch.change("draws", before.and_then(draw), after.and_then(draw));
            self.largest = self.largest.max(after.map_or(0, |spread| spread.size));
            self.recount(before.and_then(|spread| spread.affinity), after.and_then(|spread| spread.affinity), batch);
        }
        self.count_hairpins(old, new, batch);
    }

    /// Gives up the number of a port that has no pools any more.
    pub(crate) fn tidy(&mut self, key: &PortKey) {
        let gone = self.ports.get(key).filter(|port| port.cluster.is_none() && port.local.is_none());
        if let Some(number) = gone.map(|port| port.number) {
            self.ports.remove(key);
            self.numbers.give_back(number);
        }
    }

    fn recount(&mut self, before: Option<u32>, after: Option<u32>, batch: &mut Batch) {
        if let Some(after) = after {
            let count = self.affinities.entry(after).or_default();
            *count += 1;
            if *count == 1 {
                batch.add_affinity(after);
            }
        }
        if let Some(before) = before
            && drop_one(&mut self.affinities, &before)
        {
            batch.delete_affinity(before);
        }
    }

    fn count_hairpins(&mut self, old: Option<&Pool>, new: Option<&Pool>, batch: &mut Batch) {
        let local = |pool: Option<&Pool>| -> BTreeSet<IpAddr> {
            let endpoints = pool.map_or(&[][..], |pool| &pool.endpoints[..]).iter();
            endpoints.filter(|endpoint| endpoint.local).map(|endpoint| endpoint.ip).collect()
        };
        let (old, new) = (local(old), local(new));
        let element = |ip: &IpAddr| Element::new(Key::new().ip(*ip).ip(*ip));
        for ip in new.difference(&old) {
            let count = self.hairpins.entry(*ip).or_default();
            *count += 1;
            if *count == 1 {
                batch.add("hairpin", element(ip));
            }
        }
        for ip in old.difference(&new) {
            if drop_one(&mut self.hairpins, ip) {
                batch.delete("hairpin", element(ip));
            }
        }
    }
}

/// Counts one less; whether it was the last.
fn drop_one<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u32>, key: &K) -> bool {
    let Some(count) = counts.get_mut(key) else { return false };
    *count -= 1;
    let last = *count == 0;
    if last {
        counts.remove(key);
    }
    last
}

impl Port {
    fn pool(&self, scope: Scope) -> &Option<Spreading> {
        match scope {
            Scope::Cluster => &self.cluster,
            Scope::Local => &self.local,
        }
    }

    fn set(&mut self, scope: Scope, new: Option<&Pool>, batch: &mut Batch) {
        let slot = match scope {
            Scope::Cluster => &mut self.cluster,
            Scope::Local => &mut self.local,
        };
        let number = code::pool(self.number, scope);
        let mut place = Spread::new(0, new.and_then(|pool| pool.affinity));
        let mut slots = match slot.take() {
            // Clients begin or cease to stay: everything is elsewhere.
            Some(mut old) if old.spread.affinity.is_some() != place.affinity.is_some() => {
                change_slots(number, old.spread, &mut old.slots, &[], &mut self.members, batch);
                Vec::new()
            }
            old => old.map(|old| old.slots).unwrap_or_default(),
        };
        let endpoints = new.map_or(&[][..], |pool| &pool.endpoints);
        change_slots(number, place, &mut slots, endpoints, &mut self.members, batch);
        place = Spread::new(slots.len(), place.affinity);
        *slot = (!slots.is_empty()).then_some(Spreading { slots, spread: place });
    }
}

fn change_slots(
    pool: u32,
    spread: Spread,
    slots: &mut Vec<Place>,
    endpoints: &[Endpoint],
    members: &mut Members,
    batch: &mut Batch,
) {
    let before: BTreeSet<Place> =
        if spread.affinity.is_some() { slots.iter().copied().collect() } else { BTreeSet::new() };
    let changes = slots::assign(slots, endpoints);
    let key = |at: u32| Key::new().number(pool).number(at);
    if spread.affinity.is_none() {
        for (at, old, new) in changes {
            let element = |(ip, port): Place| Element::data(key(at), code::endpoint(ip, port));
            batch.change("endpoints", old.map(element), new.map(element));
        }
        return;
    }
    let after: BTreeSet<Place> = slots.iter().copied().collect();
    change_members(pool, &before, &after, &changes, members, batch);
}

/// The same for clients that stay: slots lead to members, members to endpoints.
fn change_members(
    pool: u32,
    before: &BTreeSet<Place>,
    after: &BTreeSet<Place>,
    changes: &[SlotChange],
    members: &mut Members,
    batch: &mut Batch,
) {
    let key = |at: u32| Key::new().number(pool).number(at);
    let old: Vec<Option<u32>> = changes.iter().map(|(_, old, _)| old.map(|place| members.number(&place))).collect();
    for place in after.difference(before) {
        let index = members.take(*place);
        batch.add("members", Element::data(key(index), code::endpoint(place.0, place.1)));
    }
    for ((at, _, new), old) in changes.iter().zip(old) {
        let element = |index| Element::data(key(*at), number(index));
        batch.change("choices", old.map(element), new.map(|place| element(members.number(&place))));
    }
    for place in before.difference(after) {
        let index = members.give_back(place);
        batch.delete("members", Element::new(key(index)));
    }
}

impl Members {
    fn number(&self, place: &Place) -> u32 {
        self.known.get(place).map_or(0, |(number, _)| *number)
    }

    fn take(&mut self, place: Place) -> u32 {
        let numbers = &mut self.numbers;
        let entry = self.known.entry(place).or_insert_with(|| (numbers.take(), 0));
        entry.1 += 1;
        entry.0
    }

    fn give_back(&mut self, place: &Place) -> u32 {
        let Some(entry) = self.known.get_mut(place) else { return 0 };
        entry.1 -= 1;
        let (number, left) = *entry;
        if left == 0 {
            self.known.remove(place);
            self.numbers.give_back(number);
        }
        number
    }
}

fn number(number: u32) -> Key {
    Key::new().number(number)
}

/// Numbers from 1 on. What the kernel remembers of clients names them, so a number that is given back rests for long before
/// somebody else gets it.
#[derive(Debug, Default)]
struct Numbers {
    last: u32,
    resting: VecDeque<u32>,
}

/// So many numbers rest.
const RESTING: usize = 1 << 16;
/// Numbers beyond this one are not taken over from an earlier run: there must be room for new ones.
const TAKEN_OVER: u32 = MAX_PORT / 2;

impl Numbers {
    /// A free number; 0 if all are taken.
    fn take(&mut self) -> u32 {
        let exhausted = self.last == MAX_PORT;
        if self.resting.len() > RESTING || exhausted {
            return self.resting.pop_front().unwrap_or(0);
        }
        self.last += 1;
        self.last
    }

    /// Gives out only numbers beyond this one, which an earlier run gave out; whether that can be.
    fn begin_after(&mut self, number: u32) -> bool {
        self.last = self.last.max(if number <= TAKEN_OVER { number } else { 0 });
        (1..=TAKEN_OVER).contains(&number)
    }

    fn give_back(&mut self, number: u32) {
        if number != 0 {
            self.resting.push_back(number);
        }
    }
}
