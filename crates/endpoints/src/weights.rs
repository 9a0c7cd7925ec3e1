//! Which share of the connections each Pod of a Service gets, and how its slices say so. Services and Pods that ask for
//! nothing of the kind have slices without a word about it.

use std::collections::HashMap;

use fairlead_api::view::{EndpointSlice, Pod, Service};
use fairlead_api::weights::{self, DEFAULT, MAX, Shares, WEIGHT, WEIGHTS};

use crate::hints::Slices;
use crate::members;
use crate::{Notice, names};

/// As many mistakes of one Service are told at a time.
const TOLD: usize = 5;

/// The weights of the Pods of a Service, by name; those that are not there have the default.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Weights<'a> {
    by_pod: HashMap<&'a str, u8>,
}

impl<'a> Weights<'a> {
    /// What a Service and its Pods ask for, with what is wrong about it: that counts as if it were not there.
    pub(crate) fn of(service: &Service, pods: &[&'a Pod]) -> (Weights<'a>, Vec<Notice>) {
        let mut notices = Vec::new();
        let shares = shares(service, &mut notices);
        let mut weighed: Vec<_> = pods.iter().map(|pod| (*pod, pod_weight(pod, &mut notices))).collect();
        if let Some(shares) = shares {
            share_out(service, &shares, &mut weighed);
        }
        let others = weighed.into_iter().filter(|(_, weight)| *weight != DEFAULT);
        (Weights { by_pod: others.map(|(pod, weight)| (pod.metadata.name.as_str(), weight)).collect() }, notices)
    }

    /// What the annotation of a slice should say.
    fn annotation(&self, slice: &EndpointSlice) -> Option<String> {
        if self.by_pod.is_empty() {
            return None;
        }
        let weight = |name: &str| self.by_pod.get(name).copied().unwrap_or(DEFAULT);
        weights::write(slice.endpoints.iter().filter_map(|endpoint| {
            let pod = endpoint.target_ref.as_ref().map_or("", |target| &target.name);
            Some((endpoint.addresses.first()?.as_str(), weight(pod)))
        }))
    }
}

/// Makes slices say what the weights are. The annotation is the controller's on slices that it keeps.
pub(crate) fn place(weights: &Weights<'_>, slices: &mut Slices<'_, '_>) {
    let said = |slice: &EndpointSlice| slice.metadata.annotations.get(WEIGHT).cloned();
    slices.touch(|slice| said(slice) != weights.annotation(slice));
    for slice in slices.changing() {
        match weights.annotation(slice) {
            Some(text) => slice.metadata.annotations.insert(WEIGHT.to_owned(), text),
            None => slice.metadata.annotations.remove(WEIGHT),
        };
    }
}

fn shares(service: &Service, notices: &mut Vec<Notice>) -> Option<Shares> {
    let text = service.metadata.annotations.get(WEIGHTS).filter(|text| !text.trim().is_empty())?;
    let refuse = |error| {
        let message = format!("Annotation {WEIGHTS} is not followed: {error}");
        notices.push(Notice::warning(names::INVALID_WEIGHT, message));
    };
    Shares::parse(text).map_err(refuse).ok()
}

fn pod_weight(pod: &Pod, notices: &mut Vec<Notice>) -> u8 {
    let Some(text) = pod.metadata.annotations.get(WEIGHT).map(|text| text.trim()).filter(|text| !text.is_empty())
    else {
        return DEFAULT;
    };
    if let Some(weight) = weights::weight(text) {
        return weight;
    }
    if notices.len() < TOLD {
        let shown: String = text.chars().take(40).collect();
        let name = &pod.metadata.name;
        let message =
            format!("Pod {name} counts as {DEFAULT}: annotation {WEIGHT} is {shown:?}, not a number from 0 to {MAX}");
        notices.push(Notice::warning(names::INVALID_WEIGHT, message));
    }
    DEFAULT
}

/// Divides the share of each group among its Pods, in proportion to the weights they have of their own. Only Pods that get
/// traffic count: what others would have had, those beside them get.
fn share_out(service: &Service, shares: &Shares, weighed: &mut [(&Pod, u8)]) {
    let groups: Vec<_> = weighed.iter().map(|(pod, _)| shares.group(&pod.metadata.labels)).collect();
    let of_groups = shares.of_groups();
    let mut sums = vec![(0_u64, 0_u64); of_groups.len()];
    for ((pod, weight), group) in weighed.iter().zip(&groups) {
        let (ready, all) = &mut sums[*group];
        let is_ready = members::is_candidate(pod).is_ok() && members::conditions(service, pod).ready == Some(true);
        *all += u64::from(*weight);
        *ready += if is_ready { u64::from(*weight) } else { 0 };
    }
    let part = |group: usize, weight: u8| {
        let (ready, all) = sums[group];
        Part { of: u64::from(of_groups[group]) * u64::from(weight), among: if ready > 0 { ready } else { all } }
    };
    let parts: Vec<_> = weighed.iter().zip(&groups).map(|((_, weight), group)| part(*group, *weight)).collect();
    let scale = Scale::of(&parts);
    for ((_, weight), part) in weighed.iter_mut().zip(&parts) {
        *weight = scale.weight(*part);
    }
}

/// A part of all connections: so many hundredths, divided.
#[derive(Debug, Clone, Copy)]
struct Part {
    of: u64,
    among: u64,
}

impl Part {
    fn is_nothing(self) -> bool {
        self.of == 0 || self.among == 0
    }
}

/// How parts become weights: the greatest part gets `top`, the others in proportion.
struct Scale {
    greatest: Part,
    top: u64,
}

impl Scale {
    /// The smallest weights that have exactly the proportions of the parts; if there are none, the greatest ones.
    fn of(parts: &[Part]) -> Scale {
        let more = |one: &&Part, other: &&Part| (one.of * other.among).cmp(&(other.of * one.among));
        let some = parts.iter().filter(|part| !part.is_nothing());
        let greatest = some.clone().max_by(more).copied().unwrap_or(Part { of: 1, among: 1 });
        // Pods of a group are mostly alike: few parts differ.
        let mut different: Vec<_> = some.map(|part| (part.of, part.among)).collect();
        different.sort_unstable();
        different.dedup();
        let exact = |top: &u64| {
            let scaled = |of: &u64| of * greatest.among * top;
            different.iter().all(|(of, among)| scaled(of).is_multiple_of(among * greatest.of))
        };
        let top = (1..=u64::from(MAX)).find(exact).unwrap_or(u64::from(MAX));
        Scale { greatest, top }
    }

    fn weight(&self, part: Part) -> u8 {
        if part.is_nothing() {
            return 0;
        }
        let (whole, unit) = (part.of * self.greatest.among * self.top, part.among * self.greatest.of);
        let rounded = (whole + unit / 2) / unit;
        u8::try_from(rounded.clamp(1, u64::from(MAX))).unwrap_or(MAX)
    }
}

#[cfg(test)]
mod tests;
