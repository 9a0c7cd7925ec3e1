//! Of objects that are followed anyway, those on which the answer to a question about a packet depends.

use std::sync::Arc;

use fairlead_explain::Objects as Known;
use fairlead_proxy::trace::{Concern, From, Objects, To};
use ipnet::IpNet;

/// What the fate of packets of one sender to these receivers depends on. `ranges` are where cluster IPs come from.
pub(crate) fn part(known: &Known, from: &From, receivers: &[To], ranges: Vec<IpNet>) -> Objects {
    let concern = Concern::of(receivers, |key| known.service(key).map(|service| &**service));
    let included: Vec<_> = known.services().filter(|(_, service)| concern.includes(service)).collect();
    Objects {
        services: included.iter().map(|(_, service)| Arc::clone(service)).collect(),
        slices: included.iter().flat_map(|(key, _)| known.slices_of(key).cloned()).collect(),
        nodes: known.nodes().cloned().collect(),
        pod: match from {
            From::Pod(key) => known.pod(key).map(|pod| pod.view.clone()),
            From::Node | From::Address(_) => None,
        },
        ranges,
    }
}
