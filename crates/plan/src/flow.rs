//! Which existing flows must be forgotten. Protocols without connections have no other way to learn that their endpoint is
//! gone: as long as the client sends, the kernel sends on to where it sent before.

use std::net::IpAddr;

use fairlead_api::view::Protocol;

use crate::key::{FrontendKey, PortKey, family_of};
use crate::plan::Plan;

/// A flow the kernel remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow {
    /// The protocol.
    pub protocol: Protocol,
    /// Where its client sends to.
    pub dst: IpAddr,
    /// To which port.
    pub port: u16,
    /// Where that leads: the source of the answers.
    pub backend: IpAddr,
    /// To which port.
    pub backend_port: u16,
}

/// What is to be done with a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing: it is addressed to no Service there is now. If it is to one that was removed, only who saw that knows:
    /// [`crate::PlanChange::frontends`] has it.
    NotOurs,
    /// It may go on: its endpoint still serves. Policies and readiness are for new flows.
    Stays(PortKey),
    /// It leads past the Service: it is older than the Service or the address.
    Bypasses(PortKey),
    /// Its endpoint is gone, or no longer serves.
    EndpointGone(PortKey),
}

impl Judgement {
    /// Whether the kernel must forget the flow.
    pub fn is_stale(&self) -> bool {
        matches!(self, Judgement::Bypasses(_) | Judgement::EndpointGone(_))
    }
}

/// Says what is to be done with a flow. Meant for protocols without connections: TCP clients notice by themselves, and
/// connections to an endpoint on its way out must be left alone.
pub fn judge(plan: &Plan, flow: &Flow) -> Judgement {
    let Some(port) = port_of(plan, flow) else { return Judgement::NotOurs };
    let serves = |endpoint: &crate::Endpoint| {
        endpoint.serving && (endpoint.ip, endpoint.port) == (flow.backend, flow.backend_port)
    };
    match () {
        () if plan.backends(&port).iter().any(serves) => Judgement::Stays(port),
        () if (flow.backend, flow.backend_port) == (flow.dst, flow.port) => Judgement::Bypasses(port),
        () => Judgement::EndpointGone(port),
    }
}

fn port_of(plan: &Plan, flow: &Flow) -> Option<PortKey> {
    let Flow { protocol, dst, port, .. } = *flow;
    let address = FrontendKey::Address { ip: dst, protocol, port };
    let node_port = || FrontendKey::NodePort { family: family_of(dst), protocol, port };
    let on_node = plan.node.serves_node_ports_on(dst);
    let frontend = plan.frontend(&address).or_else(|| plan.frontend(&node_port()).filter(|_| on_node));
    frontend.map(|frontend| frontend.port.clone())
}
