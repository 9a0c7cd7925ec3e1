//! What only a machine can see. Whatever is not known stays `None`, and no step fails for it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use fairlead_api::source::Key;
use fairlead_api::view::Protocol;
use fairlead_plan::{Decision, FrontendKey, Packet};
use serde::Serialize;

/// What was seen on machines. The default is to know nothing.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// What listens in the network namespaces of Pods. A Pod that is not here was not looked at; one with an empty list has
    /// nothing that listens.
    pub sockets: BTreeMap<Key, Vec<Socket>>,
    /// What the client's resolver is set to. `None`: what follows from the Pod's spec, if the client is a Pod.
    pub resolver: Option<Resolver>,
    /// What the client's resolver was answered.
    pub dns: Option<Dns>,
    /// What the plan of the client's Node does with the client's packet; one for each address and port that was tried.
    pub decisions: Vec<Decided>,
    /// The same for addresses of the Service that this client does not use: whether they are the Service's at all.
    pub others: Vec<Decided>,
    /// What the kernel of the client's Node holds for the Service.
    pub rules: Option<Rules>,
    /// The proxy of the client's Node.
    pub proxy: Option<Component>,
    /// Whoever makes EndpointSlices.
    pub controller: Option<Component>,
    /// Whoever gives addresses to load balancers.
    pub balancer: Option<Balancer>,
    /// Whether the kernel of the client's Node forwards packets.
    pub forwarding: Option<Forwarding>,
    /// Rules of others that drop or reject the packet, each in words; empty: there are none. `None`: nobody looked.
    pub foreign: Option<Vec<String>>,
    /// What became of a packet that was really sent.
    pub live: Option<Live>,
    /// What could not be looked at and why, and how more would be known: printed with steps that stay unknown.
    pub blind: Option<String>,
}

/// A socket that waits for connections, or for datagrams.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Socket {
    /// Where; an unspecified address means all of its family.
    pub address: SocketAddr,
    /// The protocol.
    pub protocol: Protocol,
    /// For `[::]`: whether it refuses IPv4.
    pub only_v6: bool,
    /// The program, if it is known.
    pub program: Option<String>,
}

/// What a client's resolver is set to: its resolv.conf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolver {
    /// `nameserver`
    pub servers: Vec<IpAddr>,
    /// `search`
    pub search: Vec<String>,
    /// `options ndots`
    pub ndots: usize,
}

/// What a client's resolver was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dns {
    /// The name the client used.
    pub name: String,
    /// The server that was asked.
    pub server: Option<SocketAddr>,
    /// The names that were tried, in order, each with its answer.
    pub tried: Vec<(String, DnsReply)>,
}

/// An answer of a DNS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsReply {
    /// Addresses.
    Addresses(Vec<IpAddr>),
    /// An alias that leads outside of the cluster.
    Alias(String),
    /// The name exists and has no addresses.
    NoData,
    /// There is no such name.
    NxDomain,
    /// Another code, such as `SERVFAIL`.
    Failure(String),
    /// Nothing came back, or the server could not be reached.
    Silence(String),
}

/// What the plan of a Node does with a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The Node.
    pub node: String,
    /// The packet.
    pub packet: Packet,
    /// What happens to it.
    pub decision: Decision,
}

/// What a kernel holds for a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The mode of the proxy: `nftables`, ...
    pub mode: String,
    /// The addresses and node ports of the Service that are there, with the endpoints they lead to. `None`: the endpoints
    /// were not looked at.
    pub frontends: BTreeMap<FrontendKey, Option<BTreeSet<SocketAddr>>>,
}

/// A part of the system that runs, or does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Component {
    /// Whether it answers.
    pub alive: bool,
    /// What it is and where, in words: `the proxy of Node n1 (nftables)`.
    pub name: String,
    /// By how many revisions it is behind, if that is known.
    pub behind: Option<u64>,
    /// What it complains of.
    pub error: Option<String>,
    /// The command that starts it.
    pub start: Option<String>,
}

/// Whoever gives addresses to load balancers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Balancer {
    /// Whether it runs.
    pub alive: bool,
    /// The classes it serves; an empty one means Services that name none.
    pub classes: Vec<String>,
    /// Its address pools as text; `None`: not known.
    pub pools: Option<Vec<String>>,
}

/// Whether a kernel forwards packets; `None`: not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// net.ipv4.ip_forward
    pub v4: Option<bool>,
    /// net.ipv6.conf.all.forwarding
    pub v6: Option<bool>,
}

/// What became of a packet that was really sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Live {
    /// From where.
    pub from: Option<String>,
    /// To whom: `10.96.0.10:80/TCP`.
    pub to: String,
    /// What came back.
    pub reply: Reply,
    /// The endpoint it was sent to, as far as the kernel told.
    pub endpoint: Option<SocketAddr>,
    /// The rule that ended its way, if one did.
    pub ended_by: Option<String>,
    /// Whether that rule is one of ours.
    pub ended_by_us: bool,
    /// What the kernel did to it, line by line.
    pub trace: Vec<String>,
}

/// What came back to a packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// An answer.
    Answered,
    /// A refusal.
    Refused,
    /// Nothing. For UDP that may be fine.
    Nothing,
    /// It could not be sent.
    Failed(String),
}
