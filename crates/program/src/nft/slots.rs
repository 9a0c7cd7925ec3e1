//! Which endpoint has which slots of a pool. Each slot is as likely as any other; an endpoint with weight 3 has three. When
//! endpoints come and go, as few slots as possible change.

use std::collections::HashMap;
use std::net::IpAddr;

use fairlead_plan::Endpoint;

use super::code::MAX_SLOTS;

/// Where an endpoint is.
pub(crate) type Place = (IpAddr, u16);

/// A slot that changed: who had it and who has it.
pub(crate) type SlotChange = (u32, Option<Place>, Option<Place>);

/// Gives slots to endpoints and says what changed.
pub(crate) fn assign(slots: &mut Vec<Place>, endpoints: &[Endpoint]) -> Vec<SlotChange> {
    let mut missing = shares(endpoints);
    let mut free = Vec::new();
    for (at, place) in slots.iter().enumerate() {
        match missing.get_mut(place) {
            Some(count) if *count > 0 => *count -= 1,
            _ => free.push(at),
        }
    }
    // By address, not by chance.
    let places = endpoints.iter().map(|endpoint| (endpoint.ip, endpoint.port));
    let new: Vec<Place> = places.flat_map(|place| vec![place; missing.remove(&place).unwrap_or(0) as usize]).collect();
    let mut changes = Vec::new();
    let filled = free.len().min(new.len());
    for (at, place) in free[..filled].iter().zip(&new) {
        changes.push((*at as u32, Some(slots[*at]), Some(*place)));
        slots[*at] = *place;
    }
    for place in &new[filled..] {
        changes.push((slots.len() as u32, None, Some(*place)));
        slots.push(*place);
    }
    remove(slots, &free[filled..], &mut changes);
    changes
}

/// Takes slots away, which are in order: the last ones move to where others were.
fn remove(slots: &mut Vec<Place>, free: &[usize], changes: &mut Vec<SlotChange>) {
    let end = slots.len() - free.len();
    let moved = (end..slots.len()).filter(|at| free.binary_search(at).is_err());
    let moved: Vec<Place> = moved.map(|at| slots[at]).collect();
    for (at, place) in free.iter().filter(|at| **at < end).zip(moved) {
        changes.push((*at as u32, Some(slots[*at]), Some(place)));
        slots[*at] = place;
    }
    changes.extend((end..slots.len()).map(|at| (at as u32, Some(slots[at]), None)));
    slots.truncate(end);
}

/// How many slots each endpoint has: by weight, and no more than needed.
fn shares(endpoints: &[Endpoint]) -> HashMap<Place, u32> {
    let endpoints = &endpoints[..endpoints.len().min(MAX_SLOTS as usize)];
    let weights = || endpoints.iter().map(|endpoint| u32::from(endpoint.weight));
    let unit = weights().fold(0, gcd).max(1);
    let total: u64 = weights().map(|weight| u64::from(weight / unit)).sum();
    let share = |endpoint: &Endpoint| {
        let weight = u32::from(endpoint.weight) / unit;
        if total <= u64::from(MAX_SLOTS) {
            return weight;
        }
        // Too many to be exact. Each still has one, and all together fit.
        let spare = u64::from(MAX_SLOTS) - endpoints.len() as u64;
        1 + (u64::from(weight) * spare / total) as u32
    };
    endpoints.iter().map(|endpoint| ((endpoint.ip, endpoint.port), share(endpoint))).collect()
}

fn gcd(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests;
