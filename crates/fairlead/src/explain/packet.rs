//! What becomes of the client's packet: what the plan of its Node says, and, if asked, what the kernel did to one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use fairlead_api::ip;
use fairlead_api::view::{Service, ServiceType};
use fairlead_cluster::Cluster;
use fairlead_explain::{Decided, Evidence, From, Live, Objects, Reply};
use fairlead_proxy::Mode;
use fairlead_proxy::trace::live::{self, Probe, Report};
use fairlead_proxy::trace::{self, To, World};

use super::Ask;
use super::gather::{Client, OURS};
use super::here::{self, Here};
use crate::trace::part::part;

/// Somebody outside whose address nobody said: of a range that is for examples, so nobody has it.
const SOMEBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 77));

/// What the plan of the client's Node says.
pub(super) struct Planned {
    pub(super) world: World,
    pub(super) decisions: Vec<Decided>,
    /// The same of addresses that the client does not use.
    pub(super) others: Vec<Decided>,
}

/// Asks the plan; `None` if it cannot be made: there is no Node, or no such Pod.
pub(super) async fn planned(cluster: &Cluster, objects: &Objects, ask: &Ask, here: Option<&Here>) -> Option<Planned> {
    let service = objects.service(&ask.question.service)?;
    let node = node(objects, &ask.question.from, here)?;
    let is_here = here.is_some_and(|here| here.node == node);
    let settings = here.filter(|_| is_here).map_or_else(|| here::settings(&node), |here| here.proxy.clone());
    let from = match &ask.question.from {
        From::Pod(key) => trace::From::Pod(key.clone()),
        From::Cluster | From::Node(_) => trace::From::Node,
        From::Outside(address) => trace::From::Address(address.unwrap_or_else(|| somebody(service))),
    };
    let about = |to: To| trace::Question {
        from: from.clone(),
        to,
        interface: None,
        node: Some(node.clone()),
        mode: settings.mode.unwrap_or(Mode::Nftables),
        here: is_here,
    };
    let targets = targets(objects, service, ask, &node);
    // Other Services may have those, too, and the first has got them.
    let others = unused(service, ask);
    let named = To::Service(ask.question.service.clone(), None, None);
    let receivers: Vec<To> = targets.iter().chain(&others).cloned().chain([named]).collect();
    let part = part(objects, &from, &receivers, trace::ranges(cluster).await);
    let world = World::of(part, &settings, &about(receivers.first()?.clone())).ok()?;
    let decided = |to: To| {
        let (packet, decision) = world.decide(&about(to)).ok()?;
        Some(Decided { node: node.clone(), packet, decision })
    };
    let decisions = targets.into_iter().filter_map(decided).collect();
    let others = others.into_iter().filter_map(decided).collect();
    Some(Planned { world, decisions, others })
}

/// Somebody outside who may use the Service, since nobody said who it is.
fn somebody(service: &Service) -> IpAddr {
    let ranges = service.spec.load_balancer_source_ranges.iter();
    let allowed = ranges.filter_map(|text| ip::cidr::parse(text.trim())).find_map(|range| range.hosts().next());
    allowed.unwrap_or(SOMEBODY)
}

/// The Node whose rules the packet meets.
fn node(objects: &Objects, from: &From, here: Option<&Here>) -> Option<String> {
    let own = || here.map(|here| here.node.clone());
    let any = || objects.nodes().next().map(|node| node.metadata.name.clone());
    match from {
        From::Pod(key) => Some(objects.pod(key)?.view.spec.node_name.clone()).filter(|node| !node.is_empty()),
        From::Node(Some(node)) => objects.node(node).map(|node| node.metadata.name.clone()),
        From::Node(None) | From::Cluster | From::Outside(_) => own().or_else(any),
    }
}

/// The addresses and ports a client may use.
fn targets(objects: &Objects, service: &Service, ask: &Ask, node: &str) -> Vec<To> {
    let from_outside = matches!(ask.question.from, From::Outside(_));
    let addresses = if from_outside { outside(service) } else { inside(service) };
    let own = if from_outside { node_addresses(objects, node) } else { Vec::new() };
    // Who names the one number does not use the other.
    let asked = |name: &str, number: i32| {
        ask.question.port.as_ref().is_none_or(|text| text == name || *text == number.to_string())
    };
    let mut all = Vec::new();
    for port in service.spec.ports.iter().filter(|port| ask.question.protocol.is_none_or(|it| it == port.protocol)) {
        let mut add = |number: i32, addresses: &[IpAddr]| {
            let number =
                u16::try_from(number).ok().filter(|number| *number != 0 && asked(&port.name, (*number).into()));
            all.extend(
                number.into_iter().flat_map(|at| addresses.iter().map(move |ip| To::Address(*ip, at, port.protocol))),
            );
        };
        add(port.port, &addresses);
        add(port.node_port, &own);
    }
    all
}

/// The addresses and ports for clients outside, of a client that is none of them.
fn unused(service: &Service, ask: &Ask) -> Vec<To> {
    if matches!(ask.question.from, From::Outside(_)) {
        return Vec::new();
    }
    let addresses = outside(service);
    let ports = service.spec.ports.iter().filter_map(|port| Some((u16::try_from(port.port).ok()?, port.protocol)));
    ports.flat_map(|(at, protocol)| addresses.iter().map(move |ip| To::Address(*ip, at, protocol))).collect()
}

fn inside(service: &Service) -> Vec<IpAddr> {
    let single = std::iter::once(&service.spec.cluster_ip).filter(|_| service.spec.cluster_ips.is_empty());
    service.spec.cluster_ips.iter().chain(single).filter_map(|text| ip::parse(text)).collect()
}

fn outside(service: &Service) -> Vec<IpAddr> {
    let balanced = service.spec.kind == ServiceType::LoadBalancer;
    let ingress = service.status.load_balancer.ingress.iter().filter(|_| balanced).map(|one| &one.ip);
    ingress.chain(&service.spec.external_ips).filter_map(|text| ip::parse(text)).collect()
}

fn node_addresses(objects: &Objects, node: &str) -> Vec<IpAddr> {
    let addresses = objects.node(node).map(|node| node.status.addresses.as_slice()).unwrap_or_default();
    let internal = addresses.iter().filter(|address| address.kind == "InternalIP");
    internal.filter_map(|address| ip::parse(&address.address)).collect()
}

/// Sends a packet to the first address and port that was decided about.
pub(super) async fn send(from: &From, client: &Client, evidence: &mut Evidence) {
    let Some(packet) = evidence.decisions.first().map(|decided| decided.packet.clone()) else { return };
    if !client.is_at_hand(from) {
        return;
    }
    let to = SocketAddr::new(packet.dst, packet.port);
    let namespace = client.namespace.as_ref().map(|file| file.display().to_string());
    let probe = Probe { to, protocol: packet.protocol, namespace };
    let words = format!("{to}/{}", packet.protocol);
    evidence.live = Some(match live::send(&probe).await {
        Ok(report) => told(&report, words),
        Err(error) => unsent(words, error.to_string()),
    });
}

fn told(report: &Report, to: String) -> Live {
    let reply = match &report.answer {
        live::Reply::Answered => Reply::Answered,
        live::Reply::Refused => Reply::Refused,
        live::Reply::Nothing => Reply::Nothing,
        live::Reply::Failed(why) => Reply::Failed(why.clone()),
    };
    let flow = report.flow.as_ref().map(|flow| SocketAddr::new(flow.reply.source, flow.reply.source_port));
    let last =
        report.last_seen.map(|(_, to)| to).filter(|at| at.to_string() != to.split('/').next().unwrap_or_default());
    let ended = report.ended_by();
    Live {
        from: Some(report.from.to_string()),
        to,
        reply,
        endpoint: flow.or(last),
        ended_by: ended.map(ToString::to_string),
        ended_by_us: ended.is_some_and(|step| is_ours(&step.table)),
        trace: report.steps.iter().map(ToString::to_string).collect(),
    }
}

/// Whether a table such as `ip fairlead` is one of ours.
fn is_ours(table: &str) -> bool {
    table.split(' ').nth(1).is_some_and(|name| name.starts_with(OURS))
}

fn unsent(to: String, why: String) -> Live {
    let reply = Reply::Failed(why);
    Live { from: None, to, reply, endpoint: None, ended_by: None, ended_by_us: false, trace: Vec::new() }
}
