//! Interprets a program for one packet, the first of its connection, as the kernel would.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use fairlead_plan::{Ingress, Node, Packet, RejectWith, family_of};

use super::model::{Builtin, Match, Program, RejectKind, Rule, Table, TableName, Target};
use super::print::Printed;
use super::state::jumps;
use crate::outcome::{Outcome, Way};

/// Lists of clients: which addresses are on which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory(BTreeSet<(String, IpAddr)>);

/// What happened to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Where it went in the end.
    pub fate: Fate,
    /// The mark it had when it left.
    pub mark: u32,
    /// The chances there were, in order: so often of so many times.
    pub chances: Vec<(u32, u32)>,
    /// For how many seconds lists of clients were asked.
    pub asked: Option<u32>,
    /// The rules that matched: the chain, and the rule as text.
    pub steps: Vec<String>,
}

/// Where a packet went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// On its way.
    Passes {
        /// To another destination.
        dnat: Option<SocketAddr>,
        /// With the Node's address.
        snat: bool,
    },
    /// Nowhere; it is answered with a refusal.
    Rejects(RejectWith),
    /// Nowhere.
    Drops,
}

/// How many chains deep to go.
const DEEPEST: usize = 16;

/// Follows one packet on a Node. Of the chances it meets the one with this number comes true, and none before.
pub fn trace(program: &Program, node: &Node, packet: &Packet, mark: u32, memory: &mut Memory, lucky: usize) -> Trace {
    let fate = Fate::Passes { dnat: None, snat: false };
    let mut trace = Trace { fate, mark, chances: Vec::new(), asked: None, steps: Vec::new() };
    if family_of(packet.src) != family_of(packet.dst) {
        return trace;
    }
    let dst = (packet.dst, packet.port);
    let mut machine =
        Machine { program, node, packet, memory, lucky, dst, dnat: false, snat: false, trace: &mut trace };
    let refused = machine.run();
    let dnat = machine.dnat.then(|| SocketAddr::new(machine.dst.0, machine.dst.1));
    let snat = machine.snat;
    trace.fate = refused.unwrap_or(Fate::Passes { dnat, snat });
    trace
}

/// What happens to a packet, whatever chance says, if its client is on no list.
pub fn outcome(program: &Program, node: &Node, packet: &Packet) -> Outcome {
    let mut ways: Vec<Way> = Vec::new();
    let mut affinity = None;
    for lucky in 0.. {
        let traced = trace(program, node, packet, 0, &mut Memory::default(), lucky);
        let (to, snat) = match traced.fate {
            Fate::Drops => return Outcome::Drops,
            Fate::Rejects(with) => return Outcome::Rejects(with),
            Fate::Passes { dnat: None, .. } => return Outcome::Passes,
            Fate::Passes { dnat: Some(to), snat } => (to, snat),
        };
        affinity = traced.asked;
        // A chance that comes true is the last; what is left when none does is for the last endpoint.
        let came_true = traced.chances.len() > lucky;
        let share = traced.chances.last().map_or(1, |(weight, of)| if came_true { *weight } else { of - weight });
        ways.push(Way { to, snat, share });
        if !came_true {
            break;
        }
    }
    Outcome::Forwards { ways, affinity }
}

/// Why a chain is left.
enum Left {
    Returns,
    Accepts,
    Refuses(Fate),
}

struct Machine<'a> {
    program: &'a Program,
    node: &'a Node,
    packet: &'a Packet,
    memory: &'a mut Memory,
    lucky: usize,
    dst: (IpAddr, u16),
    dnat: bool,
    snat: bool,
    trace: &'a mut Trace,
}

impl<'a> Machine<'a> {
    fn run(&mut self) -> Option<Fate> {
        let sent = self.packet.from == Ingress::Output;
        let first = if sent { Builtin::Output } else { Builtin::Prerouting };
        if let Some(fate) = self.pass(TableName::Nat, first) {
            return Some(fate);
        }
        // What comes in for the Node itself is delivered, and does not go out.
        let delivered = !sent && self.node.has(self.dst.0);
        let second = match (sent, delivered) {
            (true, _) => Builtin::Output,
            (_, true) => Builtin::Input,
            _ => Builtin::Forward,
        };
        let refused = self.pass(TableName::Filter, second);
        if refused.is_some() || delivered { refused } else { self.pass(TableName::Nat, Builtin::Postrouting) }
    }

    fn pass(&mut self, table: TableName, builtin: Builtin) -> Option<Fate> {
        let chains = self.program.tables.get(&(family_of(self.packet.dst), table))?;
        for (_, _, rule) in jumps().into_iter().filter(|jump| (jump.0, jump.1) == (table, builtin)) {
            let Some(Target::Jump(chain)) = &rule.target else { continue };
            if rule.matches.iter().all(|one| self.matches(one)) {
                match self.chain(chains, chain, 0) {
                    Left::Refuses(fate) => return Some(fate),
                    Left::Accepts => return None,
                    Left::Returns => {}
                }
            }
        }
        None
    }

    fn chain(&mut self, table: &'a Table, name: &str, depth: usize) -> Left {
        let Some(rules) = table.get(name).filter(|_| depth < DEEPEST) else { return Left::Refuses(Fate::Drops) };
        for rule in rules {
            if !rule.matches.iter().all(|one| self.matches(one)) {
                continue;
            }
            self.note(name, rule);
            let Some(target) = &rule.target else { continue };
            match target {
                Target::Jump(chain) => match self.chain(table, chain, depth + 1) {
                    Left::Returns => {}
                    left => return left,
                },
                Target::Goto(chain) => return self.chain(table, chain, depth + 1),
                Target::Return => return Left::Returns,
                Target::Accept => return Left::Accepts,
                Target::Drop => return Left::Refuses(Fate::Drops),
                Target::Reject(RejectKind::TcpReset) => return Left::Refuses(Fate::Rejects(RejectWith::TcpReset)),
                Target::Reject(_) => return Left::Refuses(Fate::Rejects(RejectWith::PortUnreachable)),
                Target::Dnat(to) => {
                    (self.dst, self.dnat) = ((to.ip(), to.port()), true);
                    return Left::Accepts;
                }
                Target::Masquerade => {
                    self.snat = true;
                    return Left::Accepts;
                }
                Target::SetMark(mark) => self.trace.mark |= mark,
                Target::FlipMark(mark) => self.trace.mark ^= mark,
            }
        }
        Left::Returns
    }

    fn note(&mut self, chain: &str, rule: &Rule) {
        let text = Printed(rule, family_of(self.packet.dst)).to_string();
        self.trace.steps.push(format!("{chain}:{text}"));
    }

    fn matches(&mut self, one: &Match) -> bool {
        let interface = match &self.packet.from {
            Ingress::Interface(name) => name.as_str(),
            Ingress::Output => "",
        };
        match one {
            Match::Source(net) => net.contains(&self.packet.src),
            Match::Destination(net) => net.contains(&self.dst.0),
            Match::NotDestination(net) => !net.contains(&self.dst.0),
            Match::Port(protocol, port) => (self.packet.protocol, self.dst.1) == (*protocol, *port),
            Match::Protocol(protocol) => self.packet.protocol == *protocol,
            Match::Interface(name) => is_interface(interface, name),
            Match::NotInterface(name) => !is_interface(interface, name),
            Match::SourceLocal => self.node.has(self.packet.src),
            Match::DestinationLocal => self.node.has(self.dst.0),
            Match::Chance { weight, of } => {
                self.trace.chances.push((*weight, *of));
                self.trace.chances.len() - 1 == self.lucky
            }
            Match::Recent(list, seconds) => {
                self.trace.asked = Some(*seconds);
                self.memory.0.contains(&(list.clone(), self.packet.src))
            }
            Match::Remember(list) => {
                self.memory.0.insert((list.clone(), self.packet.src));
                true
            }
            Match::Mark(mark) => self.trace.mark & mark != 0,
            Match::NotMark(mark) => self.trace.mark & mark == 0,
            Match::Translated => self.dnat,
            Match::New => true,
            Match::Known | Match::InvalidState => false,
        }
    }
}

fn is_interface(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('+') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}
