//! How the endpoints of one family and one set of ports are spread over slices:
//!
//! 1. what is wrong in a slice is put right, and a slice left empty goes;
//! 2. new endpoints fill the slices that change anyway, the fullest first;
//! 3. what is left goes into the one other slice it fits best, or into new ones.
//!
//! Slices are never balanced against each other: an endpoint that stays where it is costs nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fairlead_api::view::{EndpointPort, EndpointSlice, Family};

use super::{Plan, Shape};
use crate::members::Member;

/// What the slices have in common, and how much they hold.
pub(super) struct Frame<'a> {
    pub(super) shape: &'a Shape<'a>,
    pub(super) family: Family,
    pub(super) ports: &'a [EndpointPort],
    pub(super) max: usize,
}

/// Endpoints without a place, by the name of the Pod.
type Wanted<'a> = BTreeMap<&'a str, Member<'a>>;

/// Adds to the plan what becomes of the existing slices, and the new ones.
pub(super) fn pack<'a>(of: &Frame<'_>, mut wanted: Wanted<'a>, existing: &[&'a EndpointSlice], plan: &mut Plan<'a>) {
    let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
    for slice in existing {
        match correct(of, slice, &mut wanted) {
            Fate::Unchanged => unchanged.push(*slice),
            Fate::Changed(slice) => changed.push(*slice),
            Fate::Empty => plan.delete.push(slice),
        }
    }
    changed.sort_by_key(|slice| Reverse(slice.endpoints.len()));
    for slice in &mut changed {
        fill(of, slice, &mut wanted);
    }
    while !wanted.is_empty() {
        let mut slice = match best_fit(of, &unchanged, wanted.len()) {
            Some(at) => unchanged.remove(at).clone(),
            None => of.shape.slice(of.family, of.ports),
        };
        fill(of, &mut slice, &mut wanted);
        let is_new = slice.metadata.name.is_empty();
        if is_new { plan.create.push(slice) } else { changed.push(slice) }
    }
    plan.update.append(&mut changed);
    plan.unchanged.append(&mut unchanged);
}

/// What becomes of a slice.
enum Fate {
    /// It is right as it is.
    Unchanged,
    /// It says something else now.
    Changed(Box<EndpointSlice>),
    /// None of its endpoints is wanted.
    Empty,
}

/// Takes the endpoints a slice has out of those wanted, and puts right what it says about them.
fn correct(of: &Frame<'_>, slice: &EndpointSlice, wanted: &mut Wanted<'_>) -> Fate {
    let mut kept = Vec::with_capacity(slice.endpoints.len());
    let mut is_right = true;
    for endpoint in &slice.endpoints {
        let name = endpoint.target_ref.as_ref().map_or("", |target| &target.name);
        let found = wanted.get(name).is_some_and(|member| member.is(endpoint)).then(|| wanted.remove(name)).flatten();
        is_right &= found.as_ref().is_some_and(|member| member.equals(endpoint));
        kept.extend(found);
    }
    if kept.is_empty() {
        return Fate::Empty;
    }
    if is_right && slice.metadata.labels == of.shape.labels {
        return Fate::Unchanged;
    }
    // Endpoints are made anew rather than copied: what is right comes out the same.
    let mut metadata = slice.metadata.clone();
    metadata.labels.clone_from(&of.shape.labels);
    let endpoints = kept.iter().map(Member::to_endpoint).collect();
    let (address_type, ports) = (slice.address_type, slice.ports.clone());
    Fate::Changed(Box::new(EndpointSlice { metadata, address_type, endpoints, ports }))
}

fn fill(of: &Frame<'_>, slice: &mut EndpointSlice, wanted: &mut Wanted<'_>) {
    while slice.endpoints.len() < of.max.max(1) {
        let Some((_, member)) = wanted.pop_first() else {
            return;
        };
        slice.endpoints.push(member.to_endpoint());
    }
}

/// The slice that is fullest when so many are added, if they all fit.
fn best_fit(of: &Frame<'_>, slices: &[&EndpointSlice], count: usize) -> Option<usize> {
    if count >= of.max {
        return None;
    }
    let fits = slices.iter().enumerate().filter(|(_, slice)| slice.endpoints.len() + count <= of.max);
    // The first of the fullest, so that the choice does not depend on how the slices came in.
    fits.min_by_key(|(_, slice)| Reverse(slice.endpoints.len())).map(|(at, _)| at)
}
