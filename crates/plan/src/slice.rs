//! An EndpointSlice as this Node sees it: addresses read, hints and topology reduced to whether they mean this Node. Read
//! once when the slice changes, not each time its Service is planned. Of the slice itself only what another look at it needs
//! is kept: there may be hundreds of thousands of endpoints.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use fairlead_api::ip;
use fairlead_api::view::{self, AddressType, EndpointSlice, Family, Hint, Protocol};
use fairlead_api::weights::{SliceWeights, WEIGHT};

use crate::key::family_of;
use crate::node::{HOSTNAME, Node, ZONE};
use crate::plan::Endpoint;
use crate::reason::Reason;

/// As many topology keys as a Service may have.
const MAX_KEYS: usize = 16;

/// What a slice offers.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) name: Box<str>,
    /// `None`: nothing of it can be used.
    pub(crate) family: Option<Family>,
    pub(crate) ports: Vec<SlicePort>,
    /// By address.
    origins: Box<[Origin]>,
    /// One for each origin.
    pub(crate) members: Box<[Member]>,
    /// What of it cannot be used.
    pub(crate) left_out: Vec<Reason>,
}

/// An endpoint as the slice has it, whoever looks at it.
#[derive(Debug)]
struct Origin {
    /// With port 0, and not local.
    endpoint: Endpoint,
    node: Option<Arc<str>>,
    zone: Option<Arc<str>>,
    /// What most do not have.
    more: Option<Box<More>>,
}

/// Hints, and what v1beta1 had in `topology`.
#[derive(Debug)]
struct More {
    hints: Option<view::EndpointHints>,
    topology: BTreeMap<String, String>,
}

/// Where an endpoint is, as far as its slice says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The Node.
    pub node: Option<Arc<str>>,
    /// The zone.
    pub zone: Option<Arc<str>>,
}

/// Names of Nodes and zones, each kept once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashSet<Arc<str>>,
    /// Once there are so many, those nobody has any more are let go.
    sweep_at: usize,
}

/// Fewer than this are not worth a sweep.
const SWEEP_AT_LEAST: usize = 1 << 10;

impl Names {
    fn get(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        if self.known.len() >= self.sweep_at.max(SWEEP_AT_LEAST) {
            self.known.retain(|name| Arc::strong_count(name) > 1);
            self.sweep_at = self.known.len() * 2;
        }
        let name: Arc<str> = name.into();
        self.known.insert(name.clone());
        name
    }
}

/// A port every member has.
#[derive(Debug)]
pub(crate) struct SlicePort {
    pub(crate) name: Arc<str>,
    pub(crate) protocol: Protocol,
    pub(crate) number: u16,
}

/// An endpoint without its port, which is the slice's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member {
    /// With port 0.
    pub(crate) endpoint: Endpoint,
    pub(crate) node_hint: Hinted,
    pub(crate) zone_hint: Hinted,
    /// Bit by bit, which topology keys of the Service it shares with this Node.
    pub(crate) shares: u16,
}

/// Whether an endpoint has hints of a kind, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hinted {
    /// It has none.
    Not,
    /// For us.
    Here,
    /// For others.
    Elsewhere,
}

/// From where a slice is looked at.
pub(crate) struct Viewpoint<'a> {
    pub(crate) node: &'a Node,
    /// Labels of Nodes by name.
    pub(crate) labels: &'a HashMap<String, BTreeMap<String, String>>,
    /// The Service's topology keys; empty when they do not count.
    pub(crate) keys: &'a [String],
}

impl Slice {
    pub(crate) fn read(name: Box<str>, slice: &EndpointSlice, from: &Viewpoint<'_>, names: &mut Names) -> Slice {
        let family = match slice.address_type {
            AddressType::V4 => Some(Family::V4),
            AddressType::V6 => Some(Family::V6),
            AddressType::Fqdn => None,
        };
        let (mut ports, mut origins, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        match family {
            Some(family) => {
                keep(slice.ports.iter().map(slice_port), &mut ports, &mut left_out);
                let weights = weights(slice, &mut left_out);
                let origin = |endpoint| address(endpoint, family).map(|ip| origin(endpoint, ip, weights.of(ip), names));
                keep(slice.endpoints.iter().map(origin), &mut origins, &mut left_out);
                // Parts in order make the whole quick to put in order.
                origins.sort_by_key(|origin| origin.endpoint.ip);
            }
            None => left_out.push(Reason::Names),
        }
        let members = origins.iter().map(|origin| from.member(origin)).collect();
        Slice { name, family, ports, origins: origins.into(), members, left_out }
    }

    /// Looks at it again, from elsewhere.
    pub(crate) fn look(&mut self, from: &Viewpoint<'_>) {
        self.members = self.origins.iter().map(|origin| from.member(origin)).collect();
    }

    /// The Node and the zone of the endpoint with that address, if it has it.
    pub(crate) fn place(&self, ip: IpAddr) -> Option<Place> {
        let found = self.origins.binary_search_by_key(&ip, |origin| origin.endpoint.ip).ok()?;
        let origin = &self.origins[found];
        Some(Place { node: origin.node.clone(), zone: origin.zone.clone() })
    }

    /// The number of the port of that name and protocol.
    pub(crate) fn port(&self, name: &str, protocol: Protocol) -> Option<u16> {
        self.ports.iter().find(|port| *port.name == *name && port.protocol == protocol).map(|port| port.number)
    }
}

fn keep<T>(all: impl ExactSizeIterator<Item = Result<T, Reason>>, kept: &mut Vec<T>, left_out: &mut Vec<Reason>) {
    kept.reserve_exact(all.len());
    for one in all {
        match one {
            Ok(one) => kept.push(one),
            Err(reason) => left_out.push(reason),
        }
    }
}

fn slice_port(port: &view::EndpointPort) -> Result<SlicePort, Reason> {
    let name = port.name.as_deref().unwrap_or_default();
    let number = port.port.and_then(|number| u16::try_from(number).ok()).filter(|number| *number > 0);
    let number = number.ok_or_else(|| Reason::InvalidSlicePort { name: name.to_owned() })?;
    Ok(SlicePort { name: name.into(), protocol: port.protocol.unwrap_or_default(), number })
}

/// The first address counts: more than one of an endpoint has never had a meaning.
fn address(endpoint: &view::Endpoint, family: Family) -> Result<IpAddr, Reason> {
    let text = endpoint.addresses.first().ok_or(Reason::NoAddress)?;
    let reachable = |ip: &IpAddr| !ip.is_loopback() && !ip.is_unspecified() && !ip.is_multicast();
    // Nearly all are written as they should be, and the standard library reads these faster.
    let ip = text.parse().ok().map(|ip: IpAddr| ip.to_canonical()).or_else(|| ip::parse(text));
    let ip = ip.filter(|ip| family_of(*ip) == family).filter(reachable);
    ip.ok_or_else(|| Reason::InvalidEndpoint { text: text.clone() })
}

fn origin(endpoint: &view::Endpoint, ip: IpAddr, weight: u8, names: &mut Names) -> Origin {
    let view::EndpointConditions { ready, serving, terminating } = endpoint.conditions;
    // What is not said is taken for a yes, by the rules of the API.
    let (ready, serving) = (ready.unwrap_or(true), serving.unwrap_or(true));
    let terminating = terminating.unwrap_or(false);
    let more = endpoint.hints.is_some() || !endpoint.deprecated_topology.is_empty();
    Origin {
        endpoint: Endpoint { ip, port: 0, local: false, weight, ready, serving, terminating },
        node: endpoint.node_name.as_deref().map(|name| names.get(name)),
        zone: endpoint.zone.as_deref().map(|name| names.get(name)),
        more: more
            .then(|| Box::new(More { hints: endpoint.hints.clone(), topology: endpoint.deprecated_topology.clone() })),
    }
}

impl Viewpoint<'_> {
    fn member(&self, origin: &Origin) -> Member {
        let local = !self.node.name.is_empty() && origin.node.as_deref() == Some(&self.node.name);
        let hints = origin.more.as_ref().and_then(|more| more.hints.as_ref());
        Member {
            endpoint: Endpoint { local, ..origin.endpoint },
            node_hint: hinted(hints.map(|hints| &*hints.for_nodes), Some(&self.node.name)),
            zone_hint: hinted(hints.map(|hints| &*hints.for_zones), self.node.zone()),
            shares: self.shares(origin),
        }
    }

    fn shares(&self, origin: &Origin) -> u16 {
        let mut shares = 0;
        for (bit, key) in self.keys.iter().take(MAX_KEYS).enumerate() {
            let ours = self.node.labels.get(key).map(String::as_str);
            if key == "*" || ours.is_some() && self.label(origin, key) == ours {
                shares |= 1 << bit;
            }
        }
        shares
    }

    /// A label of the Node the endpoint is on: what the slice says, or else the Node.
    fn label<'a>(&'a self, origin: &'a Origin, key: &str) -> Option<&'a str> {
        let said = origin.more.as_ref().and_then(|more| more.topology.get(key)).map(String::as_str);
        let zone = origin.zone.as_deref().filter(|_| key == ZONE);
        let node = origin.node.as_deref();
        let known = || match node? {
            name if name == self.node.name => self.node.labels.get(key),
            name => self.labels.get(name)?.get(key),
        };
        let hostname = node.filter(|_| key == HOSTNAME);
        said.or(zone).or_else(|| known().map(String::as_str)).or(hostname)
    }
}

fn hinted(hints: Option<&[Hint]>, ours: Option<&str>) -> Hinted {
    match hints {
        None | Some([]) => Hinted::Not,
        Some(hints) if hints.iter().any(|hint| Some(&*hint.name) == ours) => Hinted::Here,
        Some(_) => Hinted::Elsewhere,
    }
}

/// The weights of the endpoints of a slice.
fn weights(slice: &EndpointSlice, left_out: &mut Vec<Reason>) -> SliceWeights {
    let Some(text) = slice.metadata.annotations.get(WEIGHT) else { return SliceWeights::default() };
    SliceWeights::read(text, |part| left_out.push(Reason::InvalidWeight { text: part.to_owned() }))
}
