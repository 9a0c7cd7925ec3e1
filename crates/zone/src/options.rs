//! What of the cluster is served under which names: the settings of the `kubernetes` plugin.

use std::net::IpAddr;

use fairlead_api::selector::LabelSelector;
use ipnet::IpNet;

use crate::name::Name;

/// Which names Pods have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PodRecords {
    /// None.
    #[default]
    Disabled,
    /// Any address in the name is answered with, be there a Pod or not.
    Insecure,
    /// Only if the namespace has a Pod with that address.
    Verified,
}

/// What a [`crate::Zone`] serves.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The zones, the cluster's domain first. Reverse zones are names too, see [`reverse_zones`].
    pub zones: Vec<Name>,
    /// Which names Pods have.
    pub pods: PodRecords,
    /// The TTL of records, in seconds.
    pub ttl: u32,
    /// No TTL is higher than this: what a cache in front would do.
    pub max_ttl: Option<u32>,
    /// Only these namespaces; empty for all.
    pub namespaces: Vec<String>,
    /// Only namespaces with such labels.
    pub namespace_labels: Option<LabelSelector>,
    /// Only Services, EndpointSlices and Pods with such labels.
    pub labels: Option<LabelSelector>,
    /// Whether an endpoint without a host name has its Pod's, and not one made of its address.
    pub endpoint_pod_names: bool,
    /// Whether EndpointSlices are not looked at.
    pub noendpoints: bool,
    /// Whether a Service with a cluster IP and no ready endpoint does not exist.
    pub ignore_empty_service: bool,
    /// Whether names such as `us-east-1a.pin._zone.web.default.svc` exist.
    pub zonal: bool,
    /// The server's own addresses: the Services they are endpoints of are the zone's name servers.
    pub local_addresses: Vec<IpAddr>,
}

/// The TTL of records when nothing is said.
pub const DEFAULT_TTL: u32 = 5;

impl Default for Options {
    /// `cluster.local` alone, as the plugin has it without settings.
    fn default() -> Options {
        Options {
            zones: vec!["cluster.local".parse().expect("a plain name")],
            pods: PodRecords::default(),
            ttl: DEFAULT_TTL,
            max_ttl: None,
            namespaces: Vec::new(),
            namespace_labels: None,
            labels: None,
            endpoint_pod_names: false,
            noendpoints: false,
            ignore_empty_service: false,
            zonal: false,
            local_addresses: Vec::new(),
        }
    }
}

/// The reverse zones that together hold the addresses of a range: `10.0.0.0/15` has two, `0.10.in-addr.arpa.` and
/// `1.10.in-addr.arpa.`. Zones end between the labels of a reverse name, so there are at most 128.
pub fn reverse_zones(range: &IpNet) -> Vec<Name> {
    let bits = if range.addr().is_ipv4() { 8 } else { 4 };
    let prefix = range.prefix_len().div_ceil(bits) * bits;
    let parts = range.trunc().subnets(prefix).expect("a longer prefix of the same family");
    parts.map(|part| reverse_name(part.addr(), usize::from(prefix / bits))).collect()
}

/// The name whose PTR records say what an address is.
pub fn pointer_name(address: IpAddr) -> Name {
    reverse_name(address, if address.is_ipv4() { 4 } else { 32 })
}

/// The name of the first labels' worth of an address.
fn reverse_name(address: IpAddr, labels: usize) -> Name {
    let text = |parts: Vec<String>, end| format!("{}{end}", parts.concat());
    let text = match address {
        IpAddr::V4(ip) => {
            text(ip.octets()[..labels].iter().rev().map(|byte| format!("{byte}.")).collect(), "in-addr.arpa.")
        }
        IpAddr::V6(ip) => {
            let nibbles: Vec<u8> = ip.octets().iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
            text(nibbles[..labels].iter().rev().map(|nibble| format!("{nibble:x}.")).collect(), "ip6.arpa.")
        }
    };
    text.parse().expect("short labels, at most 34 of them")
}

#[cfg(test)]
mod tests;
