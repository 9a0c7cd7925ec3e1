//! The reference: what must happen to the first packet of a connection, and why. Every program made from a plan does to
//! every packet what is said here.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use fairlead_api::view::Protocol;

use crate::key::{FrontendKey, PortKey, Scope, family_of};
use crate::node::{Ingress, NodePorts, Source, contains};
use crate::plan::{Action, Endpoint, Frontend, FrontendKind, Plan, Pool};
pub use step::Step;

mod step;

/// The first packet of a connection, or of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Packet {
    /// Where it says it is from.
    pub src: IpAddr,
    /// Where it goes.
    pub dst: IpAddr,
    /// To which port.
    pub port: u16,
    /// The protocol.
    pub protocol: Protocol,
    /// How it reaches the Node's network stack.
    pub from: Ingress,
}

/// What happens to a packet, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What happens.
    pub verdict: Verdict,
    /// Why: what was found, in the order in which it was looked for.
    pub steps: Vec<Step>,
}

/// What happens to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It goes its way as if we were not there.
    NotOurs,
    /// It is sent to one of the candidates.
    Dnat(Dnat),
    /// It is answered with a refusal.
    Reject(RejectWith),
    /// It is lost.
    Drop,
}

/// What was found, line by line, and what happens.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))?;
        write!(f, "{}", self.verdict)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::NotOurs => f.write_str("it goes its way"),
            Verdict::Reject(RejectWith::TcpReset) => f.write_str("it is refused (TCP reset)"),
            Verdict::Reject(RejectWith::PortUnreachable) => f.write_str("it is refused (ICMP port unreachable)"),
            Verdict::Drop => f.write_str("it is dropped"),
            Verdict::Dnat(dnat) => {
                let candidates: Vec<String> = dnat.candidates.iter().map(Candidate::to_string).collect();
                write!(f, "it goes to {}", candidates.join(" or "))
            }
        }
    }
}

/// Where a packet may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dnat {
    /// Whose endpoints they are.
    pub port: PortKey,
    /// Which of them.
    pub scope: Scope,
    /// One of these, at random by weight, or the one the client was sent to last.
    pub candidates: Vec<Candidate>,
    /// For how many seconds a client stays with its endpoint.
    pub affinity: Option<u32>,
}

/// Where a packet may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// To this endpoint.
    pub endpoint: Endpoint,
    /// With the Node's address as its source.
    pub snat: bool,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.endpoint)?;
        if self.endpoint.weight != Endpoint::WEIGHT {
            write!(f, " (weight {})", self.endpoint.weight)?;
        }
        f.write_str(if self.snat { " from this Node" } else { "" })
    }
}

/// How a packet is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RejectWith {
    /// As if nobody listened: TCP.
    TcpReset,
    /// ICMP or ICMPv6 port unreachable: UDP and SCTP.
    PortUnreachable,
}

impl RejectWith {
    /// How a protocol is refused.
    pub fn of(protocol: Protocol) -> RejectWith {
        match protocol {
            Protocol::Tcp => RejectWith::TcpReset,
            Protocol::Udp | Protocol::Sctp => RejectWith::PortUnreachable,
        }
    }
}

/// Says what must happen to a packet.
pub fn decide(plan: &Plan, packet: &Packet) -> Decision {
    let mut steps = Vec::new();
    let verdict = verdict(plan, packet, &mut steps);
    Decision { verdict, steps }
}

fn verdict(plan: &Plan, packet: &Packet, steps: &mut Vec<Step>) -> Verdict {
    let family = family_of(packet.dst);
    if family_of(packet.src) != family || !plan.node.families.contains(&family) {
        steps.push(Step::FamilyNotProxied(family));
        return Verdict::NotOurs;
    }
    let source = plan.node.source(&packet.from, packet.src);
    steps.push(Step::From { address: packet.src, source });
    if exposes_loopback(plan, packet) {
        steps.push(Step::LoopbackFromOutside);
        return Verdict::Drop;
    }
    match find(plan, packet, steps) {
        Some(frontend) => at_frontend(plan, packet, source, frontend, steps),
        None => elsewhere(plan, packet, steps),
    }
}

/// Node ports on loopback addresses need a kernel that routes them: what is not from the Node itself must not profit.
fn exposes_loopback(plan: &Plan, packet: &Packet) -> bool {
    let inside = packet.from == Ingress::Output || !packet.dst.is_loopback();
    let opened = match plan.node.node_ports(family_of(packet.dst)) {
        NodePorts::All { loopback } => loopback,
        NodePorts::Only(only) => only.iter().any(|net| net.addr().is_loopback()),
    };
    opened && !inside
}

/// The frontend a packet is addressed to. Addresses come before node ports.
fn find<'a>(plan: &'a Plan, packet: &Packet, steps: &mut Vec<Step>) -> Option<&'a Frontend> {
    let Packet { dst, port, protocol, .. } = *packet;
    let address = FrontendKey::Address { ip: dst, protocol, port };
    let node_port = FrontendKey::NodePort { family: family_of(dst), protocol, port };
    let mut found = plan.frontends.get(&address);
    if found.is_none() && plan.frontends.contains_key(&node_port) {
        if plan.node.serves_node_ports_on(dst) {
            found = plan.frontends.get(&node_port);
        } else if plan.node.has(dst) {
            steps.push(Step::NodePortNotServedHere { address: dst });
        }
    }
    let frontend = &**found?;
    steps.push(Step::Found { key: frontend.key, kind: frontend.kind, port: frontend.port.clone() });
    let others = plan.contested(&frontend.key).iter().map(|other| other.port.clone());
    steps.extend(others.map(|port| Step::AlsoAskedForBy { port }));
    Some(frontend)
}

fn elsewhere(plan: &Plan, packet: &Packet, steps: &mut Vec<Step>) -> Verdict {
    steps.push(Step::NoFrontend(SocketAddr::new(packet.dst, packet.port), packet.protocol));
    if plan.node.guard_cluster_ips && plan.cluster_ips.contains(&packet.dst) {
        steps.push(Step::UnknownPortOfClusterIp);
        return Verdict::Reject(RejectWith::of(packet.protocol));
    }
    if plan.node.guard_cluster_ips && contains(&plan.node.service_ranges, packet.dst) && !plan.node.has(packet.dst) {
        steps.push(Step::NobodysClusterIp);
        return Verdict::Drop;
    }
    Verdict::NotOurs
}

fn at_frontend(plan: &Plan, packet: &Packet, source: Source, at: &Frontend, steps: &mut Vec<Step>) -> Verdict {
    if let Some(allowed) = &at.allowed {
        let inside = contains(allowed, packet.src);
        steps.push(Step::SourceRanges { allowed: allowed.to_vec(), inside });
        if !inside {
            return Verdict::Drop;
        }
    }
    let about = plan.notes(&at.port.service).iter().filter(|note| note.is_about(&at.port));
    steps.extend(about.map(|note| Step::Note(note.reason.clone())));
    let action = at.actions[source];
    match action {
        Action::Reject => {
            steps.push(Step::NobodyServes);
            Verdict::Reject(RejectWith::of(packet.protocol))
        }
        Action::Drop => {
            steps.push(Step::ServedElsewhere);
            Verdict::Drop
        }
        Action::Forward { scope, masquerade } => {
            steps.push(Step::Policy { scope, short_circuit: is_short_circuit(at, source, scope) });
            steps.push(Step::Masquerade { masquerade, kind: at.kind, source, all: plan.node.masquerade_all });
            let pool = plan.pool_of(at, scope);
            pool.map_or(Verdict::NotOurs, |pool| Verdict::Dnat(dnat(plan, packet, pool, masquerade, steps)))
        }
    }
}

/// Whether a Pod or the Node gets around policy Local.
fn is_short_circuit(at: &Frontend, source: Source, scope: Scope) -> bool {
    let outside = at.actions[Source::Outside];
    let local = !matches!(outside, Action::Forward { scope: Scope::Cluster, .. } | Action::Reject);
    at.kind != FrontendKind::ClusterIp && source != Source::Outside && scope == Scope::Cluster && local
}

fn dnat(plan: &Plan, packet: &Packet, pool: &Pool, masquerade: bool, steps: &mut Vec<Step>) -> Dnat {
    let mut candidates = Vec::with_capacity(pool.endpoints.len());
    for endpoint in pool.endpoints.iter().copied() {
        let hairpin = endpoint.local && endpoint.ip == packet.src;
        // What is for a process of the Node is delivered before sources are rewritten.
        let delivered = packet.from != Ingress::Output && plan.node.has(endpoint.ip);
        if hairpin {
            steps.push(Step::Hairpin(endpoint));
        }
        if masquerade && delivered {
            steps.push(Step::DeliveredHere(endpoint));
        }
        candidates.push(Candidate { endpoint, snat: (masquerade || hairpin) && !delivered });
    }
    steps.push(Step::OneOf { endpoints: candidates.len(), affinity: pool.affinity });
    let key = pool.key.clone();
    Dnat { port: key.port, scope: key.scope, candidates, affinity: pool.affinity }
}
