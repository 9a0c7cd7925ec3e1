//! What an EndpointSlice adds to its Service: ready endpoints with their names, and the ports they share.

use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::view::{self, AddressType, EndpointSlice, Protocol};

use super::entry::address;
use crate::name::{MAX_LABEL, Name};

/// A port that SRV records speak of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) name: Box<str>,
    pub(crate) protocol: Option<Protocol>,
    /// Absent: there are no ports at all, or it is every port.
    pub(crate) number: Option<u16>,
}

impl Port {
    /// Stands for the ports of what has none, so that it is found without asking for a port.
    pub(crate) fn none() -> Port {
        Port { name: "".into(), protocol: None, number: None }
    }

    /// Whether it is the port asked for; an empty label asks for any.
    pub(crate) fn matches(&self, name: &[u8], protocol: &[u8]) -> bool {
        let same = |label: &[u8], text: &str| label.is_empty() || text.as_bytes().eq_ignore_ascii_case(label);
        same(name, &self.name) && same(protocol, self.protocol.map_or("", Protocol::as_str))
    }
}

/// What the endpoints of one slice share.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) name: Box<str>,
    pub(crate) ports: Vec<Port>,
}

/// One address of a ready endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its name below the Service's, in lower case.
    pub(crate) host: Box<str>,
    pub(crate) address: IpAddr,
    /// The zone it is in, in lower case.
    pub(crate) zone: Option<Arc<str>>,
    pub(crate) slice: Arc<Slice>,
}

/// The ready endpoints of a slice.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    pub(crate) members: Vec<Member>,
    /// Endpoints that are names.
    pub(crate) names: Vec<Name>,
}

/// Reads a slice.
pub(crate) fn read(name: &str, slice: &EndpointSlice, pod_names: bool) -> Endpoints {
    let head = Arc::new(Slice { name: name.into(), ports: ports(&slice.ports) });
    let mut endpoints = Endpoints::default();
    // Silence counts as ready for those who only read slices.
    for endpoint in slice.endpoints.iter().filter(|endpoint| endpoint.conditions.ready.unwrap_or(true)) {
        let zone: Option<Arc<str>> = endpoint.zone.as_deref().map(|zone| zone.to_ascii_lowercase().into());
        for text in &endpoint.addresses {
            if slice.address_type == AddressType::Fqdn {
                endpoints.names.extend(text.parse::<Name>().ok());
            } else if let Some(address) = address(text) {
                let host = host(endpoint, text, pod_names);
                endpoints.members.push(Member { host, address, zone: zone.clone(), slice: head.clone() });
            }
        }
    }
    endpoints
}

/// The name of an endpoint below its Service's: its host name, else its Pod's if wanted, else its address with dashes.
fn host(endpoint: &view::Endpoint, address: &str, pod_names: bool) -> Box<str> {
    let hostname = endpoint.hostname.as_deref().filter(|name| !name.is_empty());
    let pod = endpoint.target_ref.as_ref().map(|target| target.name.as_str());
    let pod = pod.filter(|name| pod_names && !name.is_empty() && name.len() <= MAX_LABEL);
    match hostname.or(pod) {
        Some(name) => name.to_ascii_lowercase().into(),
        None => dashed(address).into(),
    }
}

/// An address as a label. A label must not end in a dash, so `fd00::` is `fd00--0`.
fn dashed(address: &str) -> String {
    let mut label = address.to_ascii_lowercase().replace(['.', ':'], "-");
    if label.ends_with('-') {
        label.push('0');
    }
    label
}

fn ports(ports: &[view::EndpointPort]) -> Vec<Port> {
    if ports.is_empty() {
        return vec![Port::none()];
    }
    let port = |port: &view::EndpointPort| Port {
        name: port.name.as_deref().unwrap_or_default().into(),
        protocol: port.protocol,
        number: port.port.and_then(|number| u16::try_from(number).ok()),
    };
    ports.iter().map(port).collect()
}
