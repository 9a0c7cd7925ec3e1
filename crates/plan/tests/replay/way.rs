//! The way of a packet through the cluster, with what each Node on it decides.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairlead_api::view::Protocol;
use fairlead_plan::{Decision, Ingress, Packet, Verdict, decide};

use crate::cluster::{NODES, Owner, node_ips, owner};
use crate::world::World;

/// What comes of one packet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Someone answers, on that port, and sees that source.
    Ok {
        backend: String,
        port: u16,
        seen: String,
    },
    Refused,
    Unreachable,
    Timeout,
}

/// Who sends.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) owner: Owner,
    pub(crate) address: IpAddr,
}

/// A packet on its way.
#[derive(Clone)]
struct OnWay {
    src: IpAddr,
    dst: IpAddr,
    port: u16,
    protocol: Protocol,
    /// The Node that rewrote its destination, and whether also its source.
    rewritten: Option<(&'static str, bool)>,
    hops: usize,
}

impl World {
    /// All that may come of a packet, one outcome for each endpoint it may be sent to.
    pub(crate) fn send(
        &self,
        client: &Client,
        (dst, port): (IpAddr, u16),
        protocol: Protocol,
        via: Option<&str>,
    ) -> BTreeSet<Outcome> {
        let way = OnWay { src: client.address, dst, port, protocol, rewritten: None, hops: 0 };
        let mut outcomes = BTreeSet::new();
        match &client.owner {
            Owner::Pod(_, node) => {
                self.enter(node, Ingress::Interface("cni0".to_owned()), client, way, via, &mut outcomes)
            }
            Owner::Node(node) => self.enter(node, Ingress::Output, client, way, via, &mut outcomes),
            Owner::Outside => self.route(client, way, via, &mut outcomes),
        }
        outcomes
    }

    /// The first Node a packet of that client meets, and what it decides.
    pub(crate) fn first(&self, client: &Client, dst: IpAddr, via: Option<&str>) -> Option<&'static str> {
        match (&client.owner, owner(dst)) {
            (Owner::Pod(_, node) | Owner::Node(node), _) => Some(node),
            (Owner::Outside, Some(Owner::Node(node))) => Some(node),
            (Owner::Outside, _) => NODES.into_iter().find(|node| Some(*node) == via),
        }
    }

    pub(crate) fn decide(
        &self,
        node: &str,
        from: Ingress,
        src: IpAddr,
        (dst, port): (IpAddr, u16),
        protocol: Protocol,
    ) -> Decision {
        decide(self.plan(node), &Packet { src, dst, port, protocol, from })
    }

    fn enter(
        &self,
        node: &'static str,
        from: Ingress,
        client: &Client,
        way: OnWay,
        via: Option<&str>,
        outcomes: &mut BTreeSet<Outcome>,
    ) {
        let decision = self.decide(node, from, way.src, (way.dst, way.port), way.protocol);
        match decision.verdict {
            Verdict::NotOurs => self.deliver(node, client, way, via, outcomes),
            Verdict::Drop => drop(outcomes.insert(Outcome::Timeout)),
            Verdict::Reject(_) => drop(outcomes.insert(Outcome::Refused)),
            Verdict::Dnat(dnat) => {
                for candidate in dnat.candidates {
                    let mut way = way.clone();
                    (way.dst, way.port) = (candidate.endpoint.ip, candidate.endpoint.port);
                    way.rewritten = Some((node, candidate.snat));
                    if candidate.snat {
                        way.src = node_ips(node, way.dst.is_ipv6())[0];
                    }
                    self.deliver(node, client, way, via, outcomes);
                }
            }
        }
    }

    /// From a Node to where a packet goes.
    fn deliver(
        &self,
        node: &'static str,
        client: &Client,
        way: OnWay,
        via: Option<&str>,
        outcomes: &mut BTreeSet<Outcome>,
    ) {
        match owner(way.dst) {
            _ if way.dst.is_loopback() => self.arrive(&format!("{node}host"), node, client, &way, outcomes),
            Some(Owner::Node(here)) if here == node => {
                self.arrive(&format!("{node}host"), node, client, &way, outcomes);
            }
            Some(Owner::Pod(pod, here)) if here == node => self.arrive(&pod, node, client, &way, outcomes),
            _ => self.route(client, way, via, outcomes),
        }
    }

    /// The router between the Nodes and the outside.
    fn route(&self, client: &Client, mut way: OnWay, via: Option<&str>, outcomes: &mut BTreeSet<Outcome>) {
        way.hops += 1;
        let next = match owner(way.dst) {
            Some(Owner::Node(node) | Owner::Pod(_, node)) => Some(node),
            Some(Owner::Outside) => {
                outcomes.insert(Outcome::Refused);
                return;
            }
            None => NODES.into_iter().find(|node| Some(*node) == via),
        };
        match next {
            Some(node) if way.hops < 4 => {
                self.enter(node, Ingress::Interface("eth0".to_owned()), client, way, via, outcomes);
            }
            _ => drop(outcomes.insert(Outcome::Unreachable)),
        }
    }

    /// At a server. Its answer must come back through the Node that rewrote the packet.
    fn arrive(&self, server: &str, node: &'static str, client: &Client, way: &OnWay, outcomes: &mut BTreeSet<Outcome>) {
        let default: &[i64] = if server.ends_with("host") { &[8088] } else { &[8080, 8081, 8090] };
        let ports = self.listening.get(server).map_or(default, Vec::as_slice);
        let behind = match &client.owner {
            Owner::Pod(_, node) | Owner::Node(node) => Some(*node),
            Owner::Outside => None,
        };
        let lost = way.rewritten.is_some_and(|(by, snat)| !snat && by != node && behind != Some(by));
        outcomes.insert(match () {
            () if lost || self.down.contains(server) => Outcome::Timeout,
            () if !ports.contains(&i64::from(way.port)) => Outcome::Refused,
            () => Outcome::Ok { backend: server.to_owned(), port: way.port, seen: seen(client, way) },
        });
    }
}

/// Whom the server sees.
fn seen(client: &Client, way: &OnWay) -> String {
    match (&client.owner, owner(way.src)) {
        (Owner::Node(node), _) if way.src.is_loopback() => format!("node:{node}"),
        (Owner::Node(_), Some(Owner::Node(node))) => format!("node:{node}"),
        _ if way.src == client.address => "client".to_owned(),
        (_, Some(Owner::Node(node))) => format!("node:{node}"),
        (_, other) => format!("{other:?}"),
    }
}
