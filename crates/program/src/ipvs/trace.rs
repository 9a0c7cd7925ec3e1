//! Interprets a program for one packet, the first of its connection, as the kernel would: the tables, IPVS between their
//! hooks, and where it goes.

use std::net::SocketAddr;

use fairlead_plan::{Ingress, Node, Packet, family_of};

use super::model::{Affinity, At, Program, Server};
use crate::nft::{self, Fate, Memory};
use crate::outcome::Outcome;

/// What happened to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// What happened to it in the tables, and where it went.
    pub filter: nft::Trace,
    /// The virtual server that sent it on.
    pub server: Option<At>,
    /// For how many seconds its client stays.
    pub affinity: Option<u32>,
    /// How many turns there are: endpoints, as often as their share says.
    pub turns: u32,
}

impl Trace {
    /// What happened, in words, one thing after the other.
    pub fn steps(&self) -> Vec<String> {
        let mut steps: Vec<String> = self.filter.steps.iter().map(ToString::to_string).collect();
        let behind = self.filter.steps.iter().position(|step| step.chain == "nat-postrouting");
        if let (Some(at), Fate::Passes { dnat: Some(to), .. }) = (self.server, self.filter.fate) {
            steps.insert(behind.unwrap_or(steps.len()), format!("IPVS: the virtual server {at} sends it to {to}"));
        }
        steps
    }
}

/// Follows one packet on a Node. `turn` says which of the turns of the virtual server it is, and is cut to what there is.
pub fn trace(program: &Program, node: &Node, packet: &Packet, mark: u32, turn: u32) -> Trace {
    // For the kernel the addresses of the link are the Node's.
    let mut kernel = node.clone();
    kernel.addresses.extend(&program.addresses);
    let mut found: Option<(At, &Server)> = None;
    let mut between = |mark: u32| {
        let (at, server) = find(program, &kernel, packet, mark)?;
        found = Some((at, server));
        choose(server, turn)
    };
    let mut memory = Memory::default();
    let filter = nft::trace_between(&program.filter, &kernel, packet, mark, &mut memory, &mut |_| 0, &mut between);
    let affinity = found.and_then(|(_, server)| server.balance.affinity).map(Affinity::seconds);
    let turns = found.map_or(0, |(_, server)| server.endpoints.values().sum());
    Trace { filter, server: found.map(|(at, _)| at), affinity, turns }
}

/// The virtual server for a packet: by its mark, or else by its address. IPVS only sees what is for the machine, or from it.
fn find<'a>(program: &'a Program, kernel: &Node, packet: &Packet, mark: u32) -> Option<(At, &'a Server)> {
    if packet.from != Ingress::Output && !kernel.has(packet.dst) {
        return None;
    }
    let by_mark = At::Mark { family: family_of(packet.dst), mark };
    let by_address = At::Address { ip: packet.dst, protocol: packet.protocol, port: packet.port };
    let servers = [by_mark, by_address].into_iter();
    servers.filter_map(|at| Some((at, program.servers.get(&at)?))).next()
}

fn choose(server: &Server, turn: u32) -> Option<SocketAddr> {
    let total: u32 = server.endpoints.values().sum();
    let mut left = turn.min(total.checked_sub(1)?);
    for (to, weight) in &server.endpoints {
        match left.checked_sub(*weight) {
            None => return Some(*to),
            Some(rest) => left = rest,
        }
    }
    None
}

/// What happens to a packet, whoever's turn it is, if nothing is remembered of its client.
pub fn outcome(program: &Program, node: &Node, packet: &Packet) -> Outcome {
    let mut ways = Vec::new();
    let mut turn = 0;
    loop {
        let traced = trace(program, node, packet, 0, turn);
        match traced.filter.fate {
            Fate::Drops => return Outcome::Drops,
            Fate::Rejects(with) => return Outcome::Rejects(with),
            Fate::Passes { dnat: None, .. } => return Outcome::Passes,
            Fate::Passes { dnat: Some(to), snat } => ways.push((to, snat)),
        }
        turn += 1;
        if turn >= traced.turns {
            return Outcome::forwards(ways, traced.affinity);
        }
    }
}
