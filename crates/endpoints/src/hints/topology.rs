//! Topology mode `Auto`: every zone gets endpoints in proportion to its capacity, mostly its own; where that would overload
//! some, there are no hints at all, and an Event says why.

use std::collections::BTreeMap;

use fairlead_api::view::{Endpoint, EndpointHints, EndpointSlice, Family, Hint};

use super::zones::{Allocation, Zones};
use super::{Hinted, Slices};
use crate::{Notice, Severity};

/// What the Event says when the annotation is taken away.
pub(super) const SWITCHED_OFF: &str = "Topology Aware Hints has been disabled";

type Allocations<'z> = BTreeMap<&'z str, Allocation>;
type Counts = BTreeMap<String, usize>;

pub(super) fn place(zones: &Zones, family: Family, slices: &mut Slices<'_, '_>, hinted: &mut Hinted) -> Vec<Notice> {
    let given = match distribute(zones, slices) {
        Ok(given) => given,
        Err(why) => {
            hinted.forget(family.into());
            slices.set(|_| Some(None));
            return vec![disabled(&why, family)];
        }
    };
    hinted.by_family.insert(family.into(), given);
    if std::mem::replace(&mut hinted.enabled, true) {
        return Vec::new();
    }
    let message = format!("Topology Aware Hints has been enabled, addressType: {family}");
    vec![Notice { severity: Severity::Normal, reason: "TopologyAwareHintsEnabled", message }]
}

pub(super) fn disabled(why: &str, family: Family) -> Notice {
    Notice::warning("TopologyAwareHintsDisabled", format!("{why}, addressType: {family}"))
}

/// Sets hints and returns how many there are for each zone, or why there can be none. Nothing is touched before that is known.
fn distribute(zones: &Zones, slices: &mut Slices<'_, '_>) -> Result<Counts, String> {
    let ready: Vec<_> =
        slices.all().flat_map(|slice| &slice.endpoints).filter(|endpoint| endpoint.is_ready()).collect();
    let allocations = allocations(zones, ready.len())?;
    if ready.iter().any(|endpoint| zone(endpoint).is_none()) {
        return Err("One or more endpoints do not have a zone specified".to_owned());
    }
    let given = set_hints(slices, &allocations, |slice, given| valid_hints(slice, given, &allocations));
    // Slices that keep their hints may stand in the way of the others; then none does. Otherwise the next look would find
    // a zone with too many again, and this would never come to rest.
    let too_many = |(zone, count): (&String, &usize)| {
        allocations.get(zone.as_str()).is_none_or(|allocation| *count > allocation.maximum)
    };
    Ok(if given.iter().any(too_many) { set_hints(slices, &allocations, |_, _| None) } else { given })
}

/// Sets hints in all slices but those that keep what they have, which `keep` says with how many that is for each zone.
fn set_hints(
    slices: &mut Slices<'_, '_>,
    allocations: &Allocations<'_>,
    keep: impl for<'s> Fn(&'s EndpointSlice, &Counts) -> Option<BTreeMap<&'s str, usize>>,
) -> Counts {
    let mut given = Counts::new();
    slices.touch(|slice| match keep(slice, &given) {
        Some(hints) => {
            hints.into_iter().for_each(|(zone, count)| *given.entry(zone.to_owned()).or_default() += count);
            false
        }
        None => true,
    });
    for endpoint in slices.changing().flat_map(|slice| &mut slice.endpoints) {
        endpoint.hints = zone(endpoint).filter(|_| endpoint.is_ready()).map(for_zone);
        if let Some(zone) = zone(endpoint).filter(|_| endpoint.is_ready()) {
            *given.entry(zone.to_owned()).or_default() += 1;
        }
    }
    move_hints(slices, allocations, &mut given);
    given
}

fn zone(endpoint: &Endpoint) -> Option<&str> {
    endpoint.zone.as_deref().filter(|zone| !zone.is_empty())
}

fn for_zone(zone: &str) -> EndpointHints {
    EndpointHints { for_zones: vec![Hint { name: zone.to_owned() }], for_nodes: Vec::new() }
}

fn allocations(zones: &Zones, ready: usize) -> Result<Allocations<'_>, String> {
    let shares = zones.shares().map_err(|_| {
        "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes".to_owned()
    })?;
    let numbers = format!("({ready} endpoints, {} zones)", shares.len());
    if shares.len() > ready {
        return Err(format!("Insufficient number of endpoints {numbers}"));
    }
    Zones::allocate(shares, ready).ok_or_else(|| {
        format!(
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold {numbers}"
        )
    })
}

/// How many hints for each zone a slice has; `None` when one is missing, is for a zone that is to have none, or would leave
/// too few for other zones.
fn valid_hints<'s>(
    slice: &'s EndpointSlice,
    given: &Counts,
    allocations: &Allocations<'_>,
) -> Option<BTreeMap<&'s str, usize>> {
    let mut hints = BTreeMap::new();
    for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.is_ready()) {
        let zones =
            endpoint.hints.as_ref().map(|hints| hints.for_zones.as_slice()).filter(|zones| !zones.is_empty())?;
        for zone in zones {
            *hints.entry(zone.name.as_str()).or_default() += 1;
        }
    }
    let fits = |(zone, count): (&&str, &usize)| {
        let maximum = allocations.get(*zone).map(|allocation| allocation.maximum);
        maximum.is_some_and(|maximum| count + given.get(*zone).unwrap_or(&0) <= maximum)
    };
    hints.iter().all(fits).then_some(hints)
}

/// Gives endpoints of zones that have too many to those that have too few. Which ones does not depend on the slices they are in:
/// those that are new have no names yet, and stand elsewhere at the next look.
fn move_hints(slices: &mut Slices<'_, '_>, allocations: &Allocations<'_>, given: &mut Counts) {
    let (mut giving, mut receiving) = transfers(allocations, given);
    let changing = slices.changing().flat_map(|slice| &mut slice.endpoints);
    let mut movable: Vec<_> = changing.filter(|endpoint| endpoint.is_ready()).collect();
    movable.sort_by(|a, b| a.addresses.cmp(&b.addresses));
    for endpoint in movable {
        let Some(from) = endpoint.zone.clone().filter(|zone| giving.contains_key(zone)) else {
            continue;
        };
        let Some(to) = receiving.keys().next().cloned() else {
            return;
        };
        endpoint.hints = Some(for_zone(&to));
        take_one(&mut giving, &from);
        take_one(&mut receiving, &to);
        take_one(given, &from);
        *given.entry(to).or_default() += 1;
    }
}

fn take_one(counts: &mut Counts, zone: &str) {
    if let Some(count) = counts.get_mut(zone) {
        *count = count.saturating_sub(1);
    }
    counts.retain(|_, count| *count > 0);
}

/// How many endpoints each zone gives, and how many each receives. One end must need a whole one and the other at least half.
fn transfers(allocations: &Allocations<'_>, given: &Counts) -> (Counts, Counts) {
    let (mut surplus, mut need) = (BTreeMap::new(), BTreeMap::new());
    for (zone, allocation) in allocations {
        let above = *given.get(*zone).unwrap_or(&0) as f64 - allocation.desired;
        if above > 0.0 {
            surplus.insert(*zone, above)
        } else {
            need.insert(*zone, -above)
        };
    }
    let (mut giving, mut receiving) = (Counts::new(), Counts::new());
    while let (Some(from), Some(to)) = (most(&mut surplus), most(&mut need)) {
        if *from.1 < 0.5 || *to.1 < 0.5 || (*from.1 < 1.0 && *to.1 < 1.0) {
            break;
        }
        for ((zone, amount), counts) in [(from, &mut giving), (to, &mut receiving)] {
            *counts.entry(zone.to_owned()).or_default() += 1;
            *amount -= 1.0;
        }
    }
    (giving, receiving)
}

/// The zone with most, the first by name of several; none when no zone has anything.
fn most<'m, 'z>(amounts: &'m mut BTreeMap<&'z str, f64>) -> Option<(&'z str, &'m mut f64)> {
    let mut most = None::<(&str, &mut f64)>;
    for (zone, amount) in amounts {
        if *amount > most.as_ref().map_or(0.0, |(_, most)| **most) {
            most = Some((zone, amount));
        }
    }
    most
}
