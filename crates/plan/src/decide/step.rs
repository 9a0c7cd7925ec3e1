//! Why a packet meets what it meets: the findings of a decision, each a sentence of `fairlead trace`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use fairlead_api::view::{Family, Protocol};
use ipnet::IpNet;

use crate::key::{FrontendKey, PortKey, Scope};
use crate::node::Source;
use crate::plan::{Endpoint, FrontendKind};
use crate::reason::Reason;

/// One finding on the way to a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing is proxied in this family.
    FamilyNotProxied(Family),
    /// Where it comes from.
    From {
        /// Its source address.
        address: IpAddr,
        /// What that is.
        source: Source,
    },
    /// Loopback node ports are for the Node itself.
    LoopbackFromOutside,
    /// There is such a node port, but not on this address.
    NodePortNotServedHere {
        /// The address.
        address: IpAddr,
    },
    /// It is addressed to a Service.
    Found {
        /// At this address or node port.
        key: FrontendKey,
        /// What kind of address that is.
        kind: FrontendKind,
        /// Whose.
        port: PortKey,
    },
    /// Another Service wanted the address and did not get it.
    AlsoAskedForBy {
        /// Whose port it would be.
        port: PortKey,
    },
    /// It is addressed to no Service.
    NoFrontend(SocketAddr, Protocol),
    /// But its address is a Service's.
    UnknownPortOfClusterIp,
    /// But its address is from a range of Services.
    NobodysClusterIp,
    /// Only some sources may use the address.
    SourceRanges {
        /// Those.
        allowed: Vec<IpNet>,
        /// Whether it is from there.
        inside: bool,
    },
    /// Something about the port.
    Note(Reason),
    /// There is no endpoint.
    NobodyServes,
    /// There are endpoints, but not on this Node.
    ServedElsewhere,
    /// Which endpoints it may reach.
    Policy {
        /// Those.
        scope: Scope,
        /// Though the policy says Local: Pods and this Node get the whole cluster.
        short_circuit: bool,
    },
    /// Whether it gets the Node's address as its source.
    Masquerade {
        /// It does.
        masquerade: bool,
        /// For what it is addressed to.
        kind: FrontendKind,
        /// For where it comes from.
        source: Source,
        /// `--masquerade-all`.
        all: bool,
    },
    /// An endpoint would be its own client: it gets the Node's address.
    Hairpin(Endpoint),
    /// The endpoint is a process of this Node: no address is rewritten on the way there.
    DeliveredHere(Endpoint),
    /// The choice.
    OneOf {
        /// Among so many.
        endpoints: usize,
        /// The client stays with its endpoint for so many seconds.
        affinity: Option<u32>,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::FamilyNotProxied(family) => write!(f, "{family} is not proxied here"),
            Step::From { address, source } => write!(f, "it comes from {source} ({address})"),
            Step::LoopbackFromOutside => f.write_str("loopback addresses serve only this Node itself"),
            Step::NodePortNotServedHere { address } => write!(f, "node ports are not served on {address}"),
            Step::Found { key, kind, port } => write!(f, "{key} is a {} of {port}", kind.as_str()),
            Step::AlsoAskedForBy { port } => write!(f, "{port} asks for that address too and does not get it"),
            Step::NoFrontend(address, protocol) => write!(f, "no Service is at {address}/{protocol}"),
            Step::UnknownPortOfClusterIp => f.write_str("the address is a cluster IP, but has no such port"),
            Step::NobodysClusterIp => f.write_str("the address is in a range for cluster IPs, but nobody has it"),
            Step::SourceRanges { allowed, inside } => write_ranges(f, allowed, *inside),
            Step::Note(reason) => write!(f, "{reason}"),
            Step::NobodyServes => f.write_str("there is no endpoint to serve it"),
            Step::ServedElsewhere => f.write_str("policy Local: other Nodes have endpoints, this one has none"),
            Step::Policy { scope, short_circuit: false } => write!(f, "policy {scope}"),
            Step::Policy { .. } => f.write_str("policy Local is for clients outside: all endpoints may serve it"),
            Step::Masquerade { masquerade, kind, source, all } => {
                write_masquerade(f, *masquerade, *kind, *source, *all)
            }
            Step::Hairpin(endpoint) => write!(f, "{endpoint} would be its own client: it sees the Node's address"),
            Step::DeliveredHere(endpoint) => write!(f, "{endpoint} is on this Node itself: it sees the client"),
            Step::OneOf { endpoints, affinity: None } => write!(f, "one of {endpoints} endpoints"),
            Step::OneOf { endpoints, affinity: Some(seconds) } => {
                write!(f, "one of {endpoints} endpoints, the same again within {seconds} s")
            }
        }
    }
}

fn write_ranges(f: &mut fmt::Formatter<'_>, allowed: &[IpNet], inside: bool) -> fmt::Result {
    let allowed: Vec<String> = allowed.iter().map(IpNet::to_string).collect();
    let verb = if inside { "is" } else { "is not" };
    write!(f, "the source {verb} in loadBalancerSourceRanges ({})", allowed.join(", "))
}

fn write_masquerade(
    f: &mut fmt::Formatter<'_>,
    masquerade: bool,
    kind: FrontendKind,
    source: Source,
    all: bool,
) -> fmt::Result {
    if !masquerade {
        return f.write_str("endpoints see the client's address");
    }
    f.write_str("endpoints see the Node's address: ")?;
    match (kind, source) {
        (FrontendKind::ClusterIp, _) if all => f.write_str("--masquerade-all"),
        (FrontendKind::ClusterIp, source) => write!(f, "a cluster IP is used from {source}"),
        (kind, _) => write!(f, "answers of other Nodes' endpoints must come back here ({})", kind.as_str()),
    }
}
