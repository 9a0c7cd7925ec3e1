//! What happens to a packet on a Node, and why: what the plan says, which rules of the mode do it, and, if asked, what the
//! kernel did to a packet that was really sent ([`live`]).

use std::net::IpAddr;

use fairlead_api::source::Key;
use fairlead_cluster::Cluster;
use fairlead_plan::{Decision, Ingress, LocalDetection, Packet, Plan, Protocol, Verdict, decide, family_of};
use fairlead_program::{iptables, ipvs, nft};

use crate::{Mode, Settings};
pub use concern::Concern;
pub use world::{Objects, World, ranges};

mod concern;
pub mod live;
mod world;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Who sends.
    pub from: From,
    /// To whom.
    pub to: To,
    /// The interface on which it comes in, if it matters.
    pub interface: Option<String>,
    /// The Node whose rules it meets; `None`: the sender's, or this machine.
    pub node: Option<String>,
    /// The mode of the Node's proxy.
    pub mode: Mode,
    /// Whether the Node is this machine for sure.
    pub here: bool,
}

/// Who sends a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// A Pod.
    Pod(Key),
    /// The Node itself.
    Node,
    /// Whoever has that address.
    Address(IpAddr),
}

/// To whom a packet is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// To an address.
    Address(IpAddr, u16, Protocol),
    /// To a cluster IP of a Service; the port by name or number, `None` if it has only one.
    Service(Key, Option<String>, Option<Protocol>),
}

/// What happens to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// On which Node.
    pub node: String,
    /// The packet.
    pub packet: Packet,
    /// What the plan says.
    pub decision: Decision,
    /// What was left out of the Service, or fell back.
    pub notes: Vec<String>,
    /// The mode of the proxy.
    pub mode: Mode,
    /// What the rules of that mode do, step by step; where chance decides, one of the ways.
    pub way: Vec<String>,
}

impl Answer {
    /// Whether it gets to an endpoint of a Service.
    pub fn arrives(&self) -> bool {
        matches!(self.decision.verdict, Verdict::Dnat(_))
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Mistake {
    /// The cluster does not answer.
    #[error(transparent)]
    Cluster(#[from] fairlead_cluster::Error),
    /// This machine does not.
    #[error(transparent)]
    Machine(#[from] crate::Error),
    /// There is no such object.
    #[error("there is no {0} {1}")]
    Missing(&'static str, String),
    /// It is not clear which Node is meant.
    #[error("there is no Node {0:?}; name one with --node: {1}")]
    WhichNode(String, String),
    /// It is not clear which port is meant.
    #[error("{}", which_port(service, wanted.as_deref(), ports))]
    WhichPort {
        /// The Service.
        service: String,
        /// What was asked for.
        wanted: Option<String>,
        /// What there is.
        ports: String,
    },
    /// An object has no address to use.
    #[error("{0} has no {1} address")]
    NoAddress(String, &'static str),
}

fn which_port(service: &str, wanted: Option<&str>, ports: &str) -> String {
    match wanted {
        None => format!("name a port of Service {service}: it has {ports}"),
        Some(wanted) => format!("Service {service} has no port {wanted}: it has {ports}"),
    }
}

/// Says what happens to a packet.
pub async fn ask(cluster: &Cluster, settings: &Settings, question: &Question) -> Result<Answer, Mistake> {
    World::read(cluster, settings, question).await?.answer(settings, question)
}

impl World {
    /// Says what happens to a packet of the same sender.
    pub fn answer(&self, settings: &Settings, question: &Question) -> Result<Answer, Mistake> {
        let (packet, decision) = self.decide(question)?;
        let plan = self.plan();
        let way = way(plan, settings, question.mode, &packet);
        let notes = match &question.to {
            To::Service(key, ..) => plan.notes(key).iter().map(ToString::to_string).collect(),
            To::Address(..) => Vec::new(),
        };
        Ok(Answer { node: plan.node().name.clone(), packet, decision, notes, mode: question.mode, way })
    }

    /// What happens to a packet of the same sender to anybody.
    pub fn decide(&self, question: &Question) -> Result<(Packet, Decision), Mistake> {
        let packet = packet(self, question)?;
        let decision = decide(self.plan(), &packet);
        Ok((packet, decision))
    }

    /// What the Node makes of the cluster.
    pub fn plan(&self) -> &Plan {
        self.planner.plan()
    }
}

fn packet(world: &World, question: &Question) -> Result<Packet, Mistake> {
    let node = world.planner.plan().node();
    let senders = world.senders(&question.from, node)?;
    let sends = |ip: &IpAddr| senders.iter().any(|sender| family_of(*sender) == family_of(*ip));
    let (dst, port, protocol) = world.destination(&question.to, sends)?;
    let of_family = |ip: &&IpAddr| family_of(**ip) == family_of(dst);
    let src = match (&question.from, dst.is_loopback()) {
        (From::Node, true) => dst,
        _ => *senders
            .iter()
            .find(of_family)
            .ok_or_else(|| Mistake::NoAddress(describe(&question.from), family_of(dst).as_str()))?,
    };
    let inside = question.from == From::Node || node.has(src);
    let from = match &question.interface {
        Some(name) => Ingress::Interface(name.clone()),
        None if inside => Ingress::Output,
        None => Ingress::Interface(interface(&question.from, &node.detection)),
    };
    Ok(Packet { src, dst, port, protocol, from })
}

/// The interface a packet comes in on, as far as that can be guessed.
fn interface(from: &From, detection: &LocalDetection) -> String {
    match (from, detection) {
        (From::Pod(_), LocalDetection::Bridge(name)) => name.clone(),
        (From::Pod(_), LocalDetection::InterfacePrefix(prefix)) => format!("{prefix}0"),
        (From::Pod(_), _) => "pod0".to_owned(),
        _ => "eth0".to_owned(),
    }
}

fn describe(from: &From) -> String {
    match from {
        From::Pod(key) => format!("Pod {key}"),
        From::Node => "the Node".to_owned(),
        From::Address(ip) => ip.to_string(),
    }
}

/// What the rules of a mode do.
fn way(plan: &Plan, settings: &Settings, mode: Mode, packet: &Packet) -> Vec<String> {
    let masquerade_mark = 1u32.checked_shl(settings.masquerade_bit.into()).unwrap_or(1 << 14);
    match mode {
        Mode::Nftables => {
            let program = nft::render(plan, nft::Options { masquerade_mark });
            let trace = nft::trace(&program, plan.node(), packet, 0, &mut nft::Memory::default(), &mut |_| 0);
            trace.steps.iter().map(ToString::to_string).collect()
        }
        Mode::Iptables => {
            let options = iptables::Options { masquerade_mark, drop_invalid: !settings.conntrack.tcp_be_liberal };
            let program = iptables::render(plan, &options);
            iptables::trace(&program, plan.node(), packet, 0, &mut iptables::Memory::default(), 0).steps
        }
        Mode::Ipvs => {
            let options = ipvs::Options { masquerade_mark, scheduler: settings.ipvs.scheduler.clone() };
            ipvs::trace(&ipvs::render(plan, &options), plan.node(), packet, 0, 0).steps()
        }
        Mode::Userspace => Vec::new(),
    }
}
