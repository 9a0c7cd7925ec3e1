//! What becomes of more addresses than an Endpoints object may have: ready ones stay before others, and every subset keeps
//! its share.

use fairlead_api::view::{EndpointAddress, EndpointSubset};

/// The most addresses in an Endpoints object: every change of one is sent whole to all who watch.
pub const MAX_ADDRESSES: usize = 1000;

/// What the annotation says when some are left out.
pub(super) const TRUNCATED: &str = "truncated";

/// Cuts subsets to the maximum and says how many addresses were left out, if any.
pub(super) fn truncate(subsets: &mut [EndpointSubset]) -> Option<usize> {
    let ready: usize = subsets.iter().map(|subset| subset.addresses.len()).sum();
    let not_ready: usize = subsets.iter().map(|subset| subset.not_ready_addresses.len()).sum();
    let left_out = (ready + not_ready).checked_sub(MAX_ADDRESSES).filter(|left_out| *left_out > 0)?;
    if ready > MAX_ADDRESSES {
        subsets.iter_mut().for_each(|subset| subset.not_ready_addresses.clear());
        share(subsets, |subset| &mut subset.addresses, ready, MAX_ADDRESSES);
    } else {
        share(subsets, |subset| &mut subset.not_ready_addresses, not_ready, MAX_ADDRESSES - ready);
    }
    Some(left_out)
}

/// Leaves so many of all addresses, to each subset in proportion, rounded up; the last ones get what is left.
fn share(
    subsets: &mut [EndpointSubset],
    addresses: impl Fn(&mut EndpointSubset) -> &mut Vec<EndpointAddress>,
    total: usize,
    max: usize,
) {
    let mut left = max;
    for subset in subsets {
        let addresses = addresses(subset);
        let share = (addresses.len() as f64 / total as f64 * max as f64).ceil() as usize;
        addresses.truncate(share.min(left));
        left -= addresses.len();
    }
}
