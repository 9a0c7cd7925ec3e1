//! The one way to write subsets: addresses that have the same ports together, every port of them once, all in order.

use std::collections::BTreeMap;

use fairlead_api::view::{EndpointAddress, EndpointSubset, SubsetPort};

use crate::order;

/// Addresses in the order they are written: by the text of the IP, then by the uid of what they stand for. Two with the same
/// IP are different endpoints only if they stand for different objects.
type Key<'a> = (&'a str, &'a str);

/// Puts addresses with ports into subsets. An address that is said to be both ready and not is not.
pub(crate) fn repack<'a>(
    entries: impl IntoIterator<Item = (Option<SubsetPort>, &'a EndpointAddress, bool)>,
) -> Vec<EndpointSubset> {
    let mut addresses = BTreeMap::<Key<'a>, &'a EndpointAddress>::new();
    let mut by_port = BTreeMap::<Option<SubsetPort>, BTreeMap<Key<'a>, bool>>::new();
    for (port, address, ready) in entries {
        let key = (address.ip.as_str(), address.target_ref.as_ref().map_or("", |target| target.uid.as_str()));
        addresses.entry(key).or_insert(address);
        *by_port.entry(port).or_default().entry(key).or_insert(true) &= ready;
    }
    let mut by_addresses = BTreeMap::<Vec<(Key<'a>, bool)>, Vec<SubsetPort>>::new();
    for (port, of_port) in by_port {
        by_addresses.entry(of_port.into_iter().collect()).or_default().extend(port);
    }
    let mut subsets: Vec<_> = by_addresses.into_iter().map(|(keys, ports)| subset(&addresses, &keys, ports)).collect();
    order::sort_subsets(&mut subsets);
    subsets
}

/// Subsets as what they say of each address.
pub(crate) fn entries(
    subsets: &[EndpointSubset],
) -> impl Iterator<Item = (Option<SubsetPort>, &EndpointAddress, bool)> {
    subsets.iter().flat_map(|subset| {
        let ports: Vec<_> = subset.ports.iter().cloned().map(Some).collect();
        let ports = if ports.is_empty() { vec![None] } else { ports };
        let ready = subset.addresses.iter().map(|address| (address, true));
        let all: Vec<_> = ready.chain(subset.not_ready_addresses.iter().map(|address| (address, false))).collect();
        ports
            .into_iter()
            .flat_map(move |port| all.clone().into_iter().map(move |(address, ready)| (port.clone(), address, ready)))
    })
}

fn subset(
    addresses: &BTreeMap<Key<'_>, &EndpointAddress>,
    keys: &[(Key<'_>, bool)],
    ports: Vec<SubsetPort>,
) -> EndpointSubset {
    let of = |wanted: bool| {
        let keys = keys.iter().filter(|(_, ready)| *ready == wanted);
        keys.filter_map(|(key, _)| addresses.get(key)).map(|address| (*address).clone()).collect()
    };
    EndpointSubset { addresses: of(true), not_ready_addresses: of(false), ports }
}
