//! Cluster IPs and IPAddress objects: each should name the other.
//!
//! | Service | IPAddress | |
//! |---|---|---|
//! | has A | A names it | well |
//! | has A | none | make it |
//! | has A | A names what is no Service, or one that does not have A | let it name this one |
//! | has A | A names another Service, which has A too | tell people |
//! | none has A | A was made for a Service | delete it after a while |

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::problem::{About, family, shown};
use super::record::{Address, Labels, Service};
use super::seen::{Leak, Leaks};
use super::{Finding, Mend, Parent, Problem, World};
use crate::{ip, kinds};

/// The label of IPAddress objects that were made for Services.
const ALLOCATOR: &str = "ipallocator.k8s.io";

/// `services` come in the order of their rights.
pub(super) fn examine(world: &World<'_>, services: &[&Service<'_>], leaks: &mut Leaks<'_>) -> Vec<Finding> {
    let named = world.addresses.iter().filter_map(|address| Some((of_name(address)?, address)));
    let view = View {
        ranges: &world.ranges,
        addresses: named.collect(),
        services: services.iter().map(|service| (service.key(), *service)).collect(),
    };
    let mut claimed = HashMap::with_capacity(services.len());
    let mut list = Vec::new();
    for service in services {
        for text in service.cluster_ips() {
            let found = view.cluster_ip(service, text, &mut claimed);
            list.extend(found.map(|(problem, mend)| about_service(service, problem, mend)));
        }
    }
    let orphans = world.addresses.iter().filter(|address| view.is_orphan(address, &claimed));
    list.extend(orphans.filter_map(|address| view.free(address, leaks)));
    list
}

pub(super) fn about_service(service: &Service<'_>, problem: Problem, mend: Mend) -> Finding {
    Finding { about: About::object(&kinds::SERVICE, &service.metadata), problem, mend }
}

/// The address an IPAddress object stands for.
fn of_name(address: &Address<'_>) -> Option<IpAddr> {
    ip::parse_canonical(address.name()).ok()
}

struct View<'a> {
    ranges: &'a [IpNet],
    addresses: HashMap<IpAddr, &'a Address<'a>>,
    services: HashMap<(&'a str, &'a str), &'a Service<'a>>,
}

/// Who has an address, as far as the Services were looked at.
type Claimed<'a> = HashMap<IpAddr, (&'a str, &'a str)>;

impl<'a> View<'a> {
    fn cluster_ip(&self, service: &'a Service<'a>, text: &str, claimed: &mut Claimed<'a>) -> Option<(Problem, Mend)> {
        let Some(ip) = ip::parse(text) else {
            return Some((Problem::ClusterIpNotValid(text.to_owned()), Mend::Nothing));
        };
        let first = *claimed.entry(ip).or_insert(service.key()) == service.key();
        if !self.ranges.iter().any(|range| holds(range, ip)) {
            return Some((Problem::ClusterIpOutOfRange(ip), Mend::Nothing));
        }
        let duplicate = Some((Problem::ClusterIpAlreadyAllocated(ip), Mend::Nothing));
        let Some(address) = self.addresses.get(&ip) else {
            let create = (Problem::ClusterIpNotAllocated(ip), Mend::Create(ip, service.owner()));
            return if first { Some(create) } else { duplicate };
        };
        let point = Mend::Point(ip, address.metadata.revision(), service.owner());
        if address.service() == Some(service.key()) {
            return (!has_labels(address, ip)).then(|| (Problem::AddressLabels(address.name().to_owned()), point));
        }
        if !first || self.has_its_parent(address, ip) {
            return duplicate;
        }
        let (namespace, name) = service.key();
        Some((Problem::ClusterIpWrongReference(ip, format!("{namespace}/{name}")), point))
    }

    /// Whether the Service that an IPAddress object names has the address.
    fn has_its_parent(&self, address: &Address<'_>, ip: IpAddr) -> bool {
        let parent = address.service().and_then(|key| self.services.get(&key));
        parent.is_some_and(|service| service.cluster_ips().into_iter().any(|text| ip::parse(text) == Some(ip)))
    }

    /// Whether an IPAddress object was made for a Service, and no Service has the address.
    fn is_orphan(&self, address: &Address<'_>, claimed: &Claimed<'_>) -> bool {
        let labels = address.metadata.labels.as_ref();
        let ours = labels.is_some_and(|labels| &*labels.allocator == ALLOCATOR);
        ours && of_name(address).is_none_or(|ip| !claimed.contains_key(&ip))
    }

    fn free(&self, address: &Address<'_>, leaks: &mut Leaks<'_>) -> Option<Finding> {
        let name = address.name().to_owned();
        if !leaks.ripe(Leak::Address(name.clone(), address.metadata.uid.to_string())) {
            return None;
        }
        let (problem, parent) = match address.service() {
            None => (Problem::AddressModified(name.clone(), shown(address.parent())), None),
            Some((namespace, service)) => {
                let revision = self.services.get(&(namespace, service)).map(|service| service.metadata.revision());
                let shown = format!("{namespace}/{service}");
                let problem = match revision {
                    None => Problem::AddressLeaked(name.clone(), shown),
                    Some(_) => Problem::AddressWrongReference(name.clone(), shown),
                };
                (problem, Some(Parent { namespace: namespace.to_owned(), name: service.to_owned(), revision }))
            }
        };
        let about = About::object(&kinds::IP_ADDRESS, &address.metadata);
        Some(Finding { about, problem, mend: Mend::Delete(name, address.metadata.revision(), parent) })
    }
}

fn has_labels(address: &Address<'_>, ip: IpAddr) -> bool {
    let wanted = |labels: &Labels<'_>| &*labels.allocator == ALLOCATOR && &*labels.family == family(&ip);
    address.metadata.labels.as_ref().is_some_and(wanted)
}

/// Whether an address may be given out of a range: its first may not, and in IPv4 not its last.
fn holds(range: &IpNet, ip: IpAddr) -> bool {
    range.contains(&ip) && range.network() != ip && (ip.is_ipv6() || range.broadcast() != ip)
}
