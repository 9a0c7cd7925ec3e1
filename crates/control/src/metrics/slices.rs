//! What the EndpointSlice controller keeps and writes: slices there are, slices there would be if all were full, endpoints, and how
//! looks at Services ended.

use std::collections::HashSet;
use std::sync::Arc;

use fairlead_api::view::EndpointSlice;
use fairlead_endpoints::Changes;
use fairlead_monitor::PlainCounter;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// What is done to a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

/// What is counted of EndpointSlices.
#[derive(Debug)]
pub(crate) struct SliceMeter {
    slices: Gauge,
    desired: Gauge,
    endpoints: Gauge,
    added: Histogram,
    removed: Histogram,
    changes: Family<OfOperation, PlainCounter>,
    syncs: Family<OfResult, PlainCounter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOperation {
    operation: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfResult {
    result: &'static str,
}

impl SliceMeter {
    pub(super) fn registered(registry: &mut Registry) -> Arc<SliceMeter> {
        let counts = || Histogram::new(exponential_buckets(2.0, 2.0, 15));
        let meter = SliceMeter {
            slices: Gauge::default(),
            desired: Gauge::default(),
            endpoints: Gauge::default(),
            added: counts(),
            removed: counts(),
            changes: Family::default(),
            syncs: Family::default(),
        };
        let registry = registry.sub_registry_with_prefix("endpoint_slice_controller");
        registry.register("num_endpoint_slices", "Number of EndpointSlices", meter.slices.clone());
        let help = "Number of EndpointSlices that would exist with perfect endpoint allocation";
        registry.register("desired_endpoint_slices", help, meter.desired.clone());
        registry.register("endpoints_desired", "Number of endpoints desired", meter.endpoints.clone());
        let help = "Number of endpoints added on each Service sync";
        registry.register("endpoints_added_per_sync", help, meter.added.clone());
        let help = "Number of endpoints removed on each Service sync";
        registry.register("endpoints_removed_per_sync", help, meter.removed.clone());
        registry.register("changes", "Number of EndpointSlice changes", meter.changes.clone());
        registry.register("syncs", "Number of EndpointSlice syncs", meter.syncs.clone());
        Arc::new(meter)
    }

    /// A slice was written.
    pub(crate) fn changed(&self, operation: Operation) {
        let operation = match operation {
            Operation::Create => "create",
            Operation::Update => "update",
            Operation::Delete => "delete",
        };
        self.changes.get_or_create(&OfOperation { operation }).inc();
    }

    /// A look at a Service, with what it wrote, has ended.
    pub(crate) fn synced(&self, failed: bool) {
        self.syncs.get_or_create(&OfResult { result: if failed { "error" } else { "success" } }).inc();
    }

    /// What a look at a Service concludes: changes of the slices that are kept for it, of which at most `max` endpoints fit into one.
    pub(crate) fn decided(
        self: &Arc<SliceMeter>,
        share: &mut Share,
        kept: &[&EndpointSlice],
        changes: &Changes<EndpointSlice>,
        max: usize,
    ) {
        let written: Vec<&EndpointSlice> = changes.create.iter().chain(&changes.update).collect();
        let touched = |slice: &EndpointSlice| {
            let name = &slice.metadata.name;
            changes.delete.contains(name) || changes.update.iter().any(|update| update.metadata.name == *name)
        };
        let (before, untouched): (Vec<&EndpointSlice>, Vec<_>) = kept.iter().partition(|slice| touched(slice));
        let (had, has) = (addresses(&before), addresses(&written));
        self.added.observe(has.difference(&had).count() as f64);
        self.removed.observe(had.difference(&has).count() as f64);
        let after: Vec<&EndpointSlice> = untouched.into_iter().chain(written).collect();
        share.set(self, Amounts::of(&after, max));
    }
}

/// An endpoint that moves to another slice is neither added nor removed.
fn addresses<'a>(slices: &[&'a EndpointSlice]) -> HashSet<&'a str> {
    let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
    endpoints.filter_map(|endpoint| endpoint.addresses.first()).map(|address| address.as_ref()).collect()
}

/// The part of one Service in the sums. It leaves them when the Service is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Share(Option<(Arc<SliceMeter>, Amounts)>);

/// Parts of sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    pub(crate) slices: i64,
    pub(crate) desired: i64,
    pub(crate) endpoints: i64,
}

impl Amounts {
    fn of(slices: &[&EndpointSlice], max: usize) -> Amounts {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        // Endpoints can share a slice if they have the same ports.
        let mut kinds: Vec<(&EndpointSlice, usize)> = Vec::new();
        for slice in slices {
            let same = |kind: &&mut (&EndpointSlice, usize)| {
                kind.0.address_type == slice.address_type && kind.0.ports == slice.ports
            };
            match kinds.iter_mut().find(same) {
                Some((_, endpoints)) => *endpoints += slice.endpoints.len(),
                None => kinds.push((slice, slice.endpoints.len())),
            }
        }
        // A Service without endpoints has one slice that says so.
        let desired = kinds.iter().map(|(_, endpoints)| endpoints.div_ceil(max.max(1)).max(1)).sum();
        Amounts {
            slices: count(slices.len()),
            desired: count(desired),
            endpoints: count(kinds.iter().map(|(_, endpoints)| endpoints).sum()),
        }
    }
}

impl Share {
    fn set(&mut self, meter: &Arc<SliceMeter>, now: Amounts) {
        let (meter, before) = self.0.get_or_insert_with(|| (meter.clone(), Amounts::default()));
        meter.slices.inc_by(now.slices - before.slices);
        meter.desired.inc_by(now.desired - before.desired);
        meter.endpoints.inc_by(now.endpoints - before.endpoints);
        *before = now;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some((meter, _)) = self.0.clone() {
            self.set(&meter, Amounts::default());
        }
    }
}
