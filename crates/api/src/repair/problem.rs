//! The kinds of damage, in the words of the reference server's Events.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::record::{Metadata, Reference};
use crate::Kind;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A cluster IP is no address.
    ClusterIpNotValid(String),
    /// A cluster IP is in no ServiceCIDR.
    ClusterIpOutOfRange(IpAddr),
    /// A cluster IP has no IPAddress object.
    ClusterIpNotAllocated(IpAddr),
    /// The IPAddress object of a cluster IP names something else; the Service that should be named.
    ClusterIpWrongReference(IpAddr, String),
    /// Two Services have one cluster IP.
    ClusterIpAlreadyAllocated(IpAddr),
    /// The IPAddress object of a cluster IP lacks the labels of its kind. Nobody is told.
    AddressLabels(String),
    /// An IPAddress object that was made for a Service names something else; what it names.
    AddressModified(String, String),
    /// An IPAddress object names a Service (`namespace/name`) that is not there.
    AddressLeaked(String, String),
    /// An IPAddress object names a Service (`namespace/name`) that has other addresses.
    AddressWrongReference(String, String),
    /// A node port is not marked as used.
    PortNotAllocated(u16),
    /// Two Services have one node port.
    PortAlreadyAllocated(u16),
    /// A node port is not of the range.
    PortOutOfRange(i64, RangeInclusive<u16>),
    /// A node port is marked as used, and no Service has it. Nobody is told but the log.
    PortLeaked(u16),
    /// The node-port map cannot be read. Nobody is told but the log.
    PortMapDamaged,
    /// An endpoint made by hand has the cluster IP of a Service (`namespace/name`), which cannot work.
    EndpointIsServiceIp(IpAddr, String),
}

/// The object an Event is about.
#[derive(Debug, Clone)]
pub struct About {
    /// Its kind; nothing for the node-port map, which is no object of the API.
    pub kind: Option<&'static Kind>,
    /// Its namespace, if it has one.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// When it was written last.
    pub revision: u64,
}

impl About {
    /// The node-port map.
    pub(super) fn port_map() -> About {
        let (namespace, name, uid) = Default::default();
        About { kind: None, namespace, name, uid, revision: 0 }
    }

    pub(super) fn object(kind: &'static Kind, metadata: &Metadata<'_>) -> About {
        About {
            kind: Some(kind),
            namespace: metadata.namespace.to_string(),
            name: metadata.name.to_string(),
            uid: metadata.uid.to_string(),
            revision: metadata.revision(),
        }
    }
}

/// Under what a problem is counted: the word is the reference server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Among the cluster IPs.
    ClusterIp(&'static str),
    /// Among the node ports.
    NodePort(&'static str),
    /// Not among allocations.
    None,
}

impl Problem {
    /// Reason and action of the Event; `None` if there is none.
    pub fn reason(&self) -> Option<(&'static str, &'static str)> {
        use Problem::*;
        Some(match self {
            ClusterIpNotValid(_) => ("ClusterIPNotValid", "ClusterIPValidation"),
            ClusterIpOutOfRange(_) => ("ClusterIPOutOfRange", "ClusterIPAllocation"),
            ClusterIpNotAllocated(_) | ClusterIpWrongReference(..) => ("ClusterIPNotAllocated", "ClusterIPAllocation"),
            ClusterIpAlreadyAllocated(_) => ("ClusterIPAlreadyAllocated", "ClusterIPAllocation"),
            AddressModified(..) | AddressLeaked(..) => ("IPAddressNotAllocated", "IPAddressAllocation"),
            AddressWrongReference(..) => ("IPAddressWrongReference", "IPAddressAllocation"),
            PortNotAllocated(_) => ("PortNotAllocated", "PortAllocation"),
            PortAlreadyAllocated(_) => ("PortAlreadyAllocated", "PortAllocation"),
            PortOutOfRange(..) => ("PortOutOfRange", "PortAllocation"),
            EndpointIsServiceIp(..) => ("EndpointIsServiceIP", "EndpointValidation"),
            AddressLabels(_) | PortLeaked(_) | PortMapDamaged => return None,
        })
    }

    /// The component that tells.
    pub fn controller(&self) -> &'static str {
        match self.count() {
            Count::NodePort(_) => "portallocator-repair-controller",
            _ => "ipallocator-repair-controller",
        }
    }

    /// Under what it is counted.
    pub fn count(&self) -> Count {
        use Problem::*;
        match self {
            ClusterIpNotValid(_) => Count::ClusterIp("invalid"),
            ClusterIpOutOfRange(_) => Count::ClusterIp("outOfRange"),
            ClusterIpNotAllocated(_) | ClusterIpWrongReference(..) | AddressLabels(_) => Count::ClusterIp("repair"),
            ClusterIpAlreadyAllocated(_) => Count::ClusterIp("duplicate"),
            AddressModified(..) | AddressLeaked(..) | AddressWrongReference(..) => Count::ClusterIp("leak"),
            PortNotAllocated(_) => Count::NodePort("repair"),
            PortAlreadyAllocated(_) => Count::NodePort("duplicate"),
            PortOutOfRange(..) => Count::NodePort("outOfRange"),
            PortLeaked(_) => Count::NodePort("leak"),
            PortMapDamaged => Count::NodePort("unknown"),
            EndpointIsServiceIp(..) => Count::None,
        }
    }
}

/// The message.
impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use Problem::*;
        match self {
            // The reference server means to show the text, and shows `<nil>`.
            ClusterIpNotValid(text) => write!(f, "Cluster IP {text} is not a valid IP; please recreate Service"),
            ClusterIpOutOfRange(ip) => write!(
                f,
                "Cluster IP [{}]: {ip} is not within any configured Service CIDR; please recreate service",
                family(ip)
            ),
            ClusterIpNotAllocated(ip) => write!(f, "Cluster IP [{}]: {ip} is not allocated; repairing", family(ip)),
            ClusterIpWrongReference(ip, service) => {
                write!(f, "the ClusterIP [{}]: {ip} for Service {service} has a wrong reference; repairing", family(ip))
            }
            ClusterIpAlreadyAllocated(ip) => {
                write!(f, "Cluster IP [{}]:{ip} was assigned to multiple services; please recreate service", family(ip))
            }
            AddressLabels(name) => write!(f, "IPAddress {name} lacks the labels of the allocator; repairing"),
            AddressModified(name, parent) => {
                write!(
                    f,
                    "IPAddress {name} appears to have been modified, not referencing a Service {parent}: cleaning up"
                )
            }
            AddressLeaked(name, service) => {
                write!(f, "IPAddress: {name} for Service {service} appears to have leaked: cleaning up")
            }
            AddressWrongReference(name, service) => {
                write!(f, "IPAddress: {name} for Service {service} has a wrong reference; cleaning up")
            }
            PortNotAllocated(port) => write!(f, "Port {port} is not allocated; repairing"),
            PortAlreadyAllocated(port) => {
                write!(f, "Port {port} was assigned to multiple services; please recreate service")
            }
            PortOutOfRange(port, range) => write!(
                f,
                "Port {port} is not within the port range {}-{}; please recreate service",
                range.start(),
                range.end()
            ),
            PortLeaked(port) => write!(f, "the node port {port} appears to have leaked: cleaning up"),
            PortMapDamaged => f.write_str("the node port map cannot be read; making a new one"),
            EndpointIsServiceIp(ip, service) => write!(
                f,
                "Endpoint {ip} is the cluster IP of Service {service}; the endpoints of a Service cannot be cluster IPs"
            ),
        }
    }
}

pub(super) fn family(ip: &IpAddr) -> &'static str {
    if ip.is_ipv6() { "IPv6" } else { "IPv4" }
}

/// What an IPAddress object names, as the reference server shows it.
pub(super) fn shown(parent: Option<&Reference<'_>>) -> String {
    match parent {
        None => "nil".to_owned(),
        Some(parent) => {
            let Reference { group, resource, namespace, name } = parent;
            let (group, resource, namespace, name) = (&**group, &**resource, &**namespace, &**name);
            format!("&ParentReference{{Group:{group},Resource:{resource},Namespace:{namespace},Name:{name},}}")
        }
    }
}
