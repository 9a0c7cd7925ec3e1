//! Which clients should use which endpoint: what `trafficDistribution` asks for, or the topology mode `Auto`, which wins
//! even where it cannot give hints.

use std::collections::BTreeMap;

use fairlead_api::view::{AddressType, Endpoint, EndpointHints, EndpointSlice, Family, Hint, Service};

use crate::slices::Input;
use crate::{Notice, names};

mod topology;
mod zones;

pub use zones::Zones;

/// The topology hints a Service was given: how many endpoints for each zone, by family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hinted {
    enabled: bool,
    by_family: BTreeMap<AddressType, BTreeMap<String, usize>>,
}

impl Hinted {
    /// Whether a zone has so few endpoints by now that the hints must be made anew. To be asked when Nodes change.
    pub fn is_overloaded(&self, zones: &Zones) -> bool {
        self.by_family.values().any(|given| zones.is_overloaded(given))
    }

    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        !self.enabled && self.by_family.is_empty()
    }

    pub(crate) fn forget(&mut self, family: AddressType) {
        self.by_family.remove(&family);
        self.enabled = false;
    }
}

/// The slices of one family, on their way to the API.
pub(crate) struct Slices<'s, 'a> {
    pub(crate) create: &'s mut Vec<EndpointSlice>,
    pub(crate) update: &'s mut Vec<EndpointSlice>,
    pub(crate) unchanged: &'s mut Vec<&'a EndpointSlice>,
}

/// Gives every endpoint the hints it should have. Slices that are otherwise right are changed only if they must be.
pub(crate) fn place(
    input: &Input<'_>,
    family: Family,
    slices: &mut Slices<'_, '_>,
    hinted: &mut Hinted,
) -> Vec<Notice> {
    let mode = Mode::of(input.service);
    if mode == Mode::Topology {
        return topology::place(input.zones, family, slices, hinted);
    }
    let notices = if hinted.enabled { vec![topology::disabled(topology::SWITCHED_OFF, family)] } else { Vec::new() };
    hinted.forget(family.into());
    match mode {
        Mode::Near { nodes } => slices.set(|endpoint| endpoint.is_ready().then(|| near(endpoint, nodes))),
        _ => slices.set(|_| Some(None)),
    }
    notices
}

/// How hints are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Not at all.
    Off,
    /// To the zone of the endpoint, and if `nodes` to its Node too.
    Near { nodes: bool },
    /// In proportion to the capacity of the zones.
    Topology,
}

impl Mode {
    fn of(service: &Service) -> Mode {
        let annotations = &service.metadata.annotations;
        let asked = annotations.get(names::TOPOLOGY_AWARE_HINTS).or_else(|| annotations.get(names::TOPOLOGY_MODE));
        if asked.is_some_and(|mode| mode == "Auto" || mode == "auto") {
            return Mode::Topology;
        }
        match service.spec.traffic_distribution.as_deref() {
            Some("PreferClose" | "PreferSameZone") => Mode::Near { nodes: false },
            Some("PreferSameNode") => Mode::Near { nodes: true },
            _ => Mode::Off,
        }
    }
}

fn near(endpoint: &Endpoint, nodes: bool) -> Option<EndpointHints> {
    let hint = |name: &Option<String>| name.iter().map(|name| Hint { name: name.clone() }).collect::<Vec<_>>();
    let for_nodes = if nodes { hint(&endpoint.node_name) } else { Vec::new() };
    let hints = EndpointHints { for_zones: hint(&endpoint.zone), for_nodes };
    (hints != EndpointHints::default()).then_some(hints)
}

impl Slices<'_, '_> {
    /// Sets hints to what `wanted` says of an endpoint; `None` leaves them.
    fn set(&mut self, wanted: impl Fn(&Endpoint) -> Option<Option<EndpointHints>>) {
        let differs = |endpoint: &Endpoint| wanted(endpoint).is_some_and(|hints| hints != endpoint.hints);
        self.touch(|slice| slice.endpoints.iter().any(differs));
        for endpoint in self.changing().flat_map(|slice| &mut slice.endpoints) {
            if let Some(hints) = wanted(endpoint) {
                endpoint.hints = hints;
            }
        }
    }

    /// Moves slices that must change after all to those that do.
    pub(crate) fn touch(&mut self, mut must: impl FnMut(&EndpointSlice) -> bool) {
        let (touched, unchanged): (Vec<_>, Vec<_>) = self.unchanged.drain(..).partition(|slice| must(slice));
        *self.unchanged = unchanged;
        self.update.extend(touched.into_iter().cloned());
    }

    /// Slices that are written anyway.
    pub(crate) fn changing(&mut self) -> impl Iterator<Item = &mut EndpointSlice> {
        self.create.iter_mut().chain(self.update.iter_mut())
    }

    fn all(&self) -> impl Iterator<Item = &EndpointSlice> {
        self.create.iter().chain(self.update.iter()).chain(self.unchanged.iter().copied())
    }
}

#[cfg(test)]
mod tests;
