//! Whether one flow the kernel remembers is stale.

use std::collections::HashSet;
use std::net::SocketAddr;

use fairlead_kernel::conntrack::{Entry, status};
use fairlead_plan::{Flow, FrontendKey, Judgement, Plan, PortKey, Protocol, family_of, judge};

use super::removed::Removed;

/// Whether the kernel must forget it.
pub(super) fn is_stale(
    plan: &Plan,
    removed: &Removed,
    portals: &HashSet<(PortKey, SocketAddr)>,
    entry: &Entry,
) -> bool {
    let Some(flow) = flow(entry) else { return false };
    let backend = SocketAddr::new(flow.backend, flow.backend_port);
    let translated = entry.status & status::DESTINATION_NAT != 0;
    let stale = match judge(plan, &flow) {
        Judgement::Stays(_) => false,
        // In zones of their own others track packets before and after we see them: what is not translated there is theirs.
        Judgement::Bypasses(_) => entry.zone == 0,
        Judgement::EndpointGone(port) => !portals.contains(&(port, backend)),
        Judgement::NotOurs => translated && was_ours(plan, removed, &flow, backend),
    };
    stale && !is_association(&flow, entry)
}

/// Whether it is addressed to a frontend that is gone, and went where that led.
fn was_ours(plan: &Plan, removed: &Removed, flow: &Flow, backend: SocketAddr) -> bool {
    let Flow { protocol, dst, port, .. } = *flow;
    let address = FrontendKey::Address { ip: dst, protocol, port };
    let node_port = FrontendKey::NodePort { family: family_of(dst), protocol, port };
    removed.led_to(&address, backend) || plan.node().has(dst) && removed.led_to(&node_port, backend)
}

/// SCTP has connections, which end by themselves as those of TCP do. What never got an answer is none: the client will try
/// again, from the same port, and must not be sent the same way.
fn is_association(flow: &Flow, entry: &Entry) -> bool {
    flow.protocol == Protocol::Sctp && entry.status & status::ASSURED != 0
}

fn flow(entry: &Entry) -> Option<Flow> {
    let protocol = [Protocol::Udp, Protocol::Sctp].into_iter().find(|it| number(*it) == entry.original.protocol)?;
    Some(Flow {
        protocol,
        dst: entry.original.destination,
        port: entry.original.destination_port,
        backend: entry.reply.source,
        backend_port: entry.reply.source_port,
    })
}

/// As packets have it.
pub(super) fn number(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
        Protocol::Sctp => 132,
    }
}

#[cfg(test)]
mod tests;
