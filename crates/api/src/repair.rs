//! What is wrong with the allocations in a store, and what mends it. A Service and what it took are written in one commit, so
//! there is nothing to find unless somebody interfered: deleted an IPAddress, wrote to etcd, restored half a backup. What
//! looks leaked is freed only after it looked so for a while; see [`Seen`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;

use crate::alloc::NodePorts;

mod addresses;
mod endpoints;
mod ports;
mod problem;
mod record;
mod seen;

pub use endpoints::HandMade;
pub use problem::{About, Count, Problem};
pub use record::{Address, Metadata, Service};
pub use seen::{GRACE, Seen};

/// What the store holds, all of it as it was at one revision.
#[derive(Debug)]
pub struct World<'a> {
    /// All Services.
    pub services: Vec<Service<'a>>,
    /// All IPAddress objects.
    pub addresses: Vec<Address<'a>>,
    /// The ranges of all ServiceCIDRs.
    pub ranges: Vec<IpNet>,
    /// The node-port map.
    pub ports: PortMap,
    /// Endpoints and EndpointSlices that no controller made.
    pub endpoints: Vec<HandMade<'a>>,
    /// Whether an object could not be read. Then nothing is freed: it may belong to that object.
    pub incomplete: bool,
}

/// The node-port map as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortMap {
    /// There is none.
    Absent,
    /// What is there is no such map.
    Damaged,
    /// The ports in use.
    Read(NodePorts),
}

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The object it is told about.
    pub about: About,
    /// What is wrong.
    pub problem: Problem,
    /// What mends it.
    pub mend: Mend,
}

/// What mends a problem. Whoever does it must see to it that the revisions named still hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mend {
    /// Only people can.
    Nothing,
    /// Create the IPAddress object of a Service that stands at this revision.
    Create(IpAddr, Owner),
    /// Let the IPAddress object, at this revision, name its Service, and give it its labels.
    Point(IpAddr, u64, Owner),
    /// Delete the IPAddress object of this name and revision, if the Service it names is still as it was.
    Delete(String, u64, Option<Parent>),
    /// Mark a node port as used.
    SetPort(u16),
    /// Mark a node port as free, if the map has not changed since.
    ClearPort(u16),
    /// Begin the node-port map anew, in place of one that cannot be read.
    NewMap,
}

/// A Service that stands at a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// When it was written last.
    pub revision: u64,
}

/// The Service an IPAddress object names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// When it was written last; `None` if there is no such Service.
    pub revision: Option<u64>,
}

/// All that is wrong.
#[derive(Debug, Default)]
pub struct Findings {
    /// In the order in which they are to be told.
    pub list: Vec<Finding>,
    /// What looks leaked now; to be handed in next time.
    pub seen: Seen,
}

/// Looks at everything. `node_ports` is the range of the server, `now` are seconds since 1970.
pub fn examine(world: &World<'_>, node_ports: &RangeInclusive<u16>, seen: &Seen, now: i64) -> Findings {
    let mut services: Vec<&Service<'_>> = world.services.iter().collect();
    // Of two that claim the same, the older one has it.
    services.sort_by_key(|service| (service.metadata.created(), service.key()));
    let mut leaks = seen.begin(now, !world.incomplete);
    let mut list = addresses::examine(world, &services, &mut leaks);
    list.extend(ports::examine(&world.ports, node_ports, &services, &mut leaks));
    list.extend(endpoints::examine(&world.endpoints, &holders(&services)));
    Findings { list, seen: leaks.end() }
}

/// Whose cluster IP an address is.
fn holders<'a>(services: &[&'a Service<'a>]) -> HashMap<IpAddr, &'a Service<'a>> {
    let mut holders = HashMap::with_capacity(services.len());
    for service in services {
        for ip in service.cluster_ips().into_iter().filter_map(crate::ip::parse) {
            holders.entry(ip).or_insert(*service);
        }
    }
    holders
}

#[cfg(test)]
mod tests;
