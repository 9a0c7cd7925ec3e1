//! Interprets a program for one packet, the first of its connection, as the kernel would: what happens to it, and by which
//! rules.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use fairlead_plan::{Family, Ingress, Node, Packet, RejectWith, family_of};

use super::code;
use super::expr::{CT_DNAT, CT_NEW, CmpOp, CtKey, End, Expr, Found, LOCAL, MetaKey, PayloadBase, Reg, Reject, UNICAST};
use super::key::{Key, length};
use super::model::{Base, Chain, ChainName, Element, Hook, Program, Rule, Table, Value, ValueType, Verdict, covers};
use super::print;
use crate::outcome::Outcome;

/// What packets put into maps: the key of a client to what it leads to, and for how many seconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory(BTreeMap<Key, (Key, u32)>);

/// What happened to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Where it went in the end.
    pub fate: Fate,
    /// The mark it had when it left.
    pub mark: u32,
    /// For how many seconds its client is remembered now.
    pub remembered: Option<u32>,
    /// From how many numbers one was drawn, each time.
    pub drawn_from: Vec<u32>,
    /// What was found on the way.
    pub steps: Vec<Step>,
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

/// Something that happened in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The chain.
    pub chain: ChainName,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.chain, self.what)
    }
}

/// How many chains deep the kernel goes.
const DEEPEST: usize = 16;

/// Follows one packet on a Node. `draw` gives a number below the one it is given.
pub fn trace(
    program: &Program,
    node: &Node,
    packet: &Packet,
    mark: u32,
    memory: &mut Memory,
    draw: &mut dyn FnMut(u32) -> u32,
) -> Trace {
    trace_between(program, node, packet, mark, memory, draw, &mut |_| None)
}

/// The same where something else sends packets on, by their mark, behind the first of their hooks: mode IPVS.
pub(crate) fn trace_between(
    program: &Program,
    node: &Node,
    packet: &Packet,
    mark: u32,
    memory: &mut Memory,
    draw: &mut dyn FnMut(u32) -> u32,
    between: &mut dyn FnMut(u32) -> Option<SocketAddr>,
) -> Trace {
    let nothing = Fate::Passes { dnat: None, snat: false };
    let mut trace = Trace { fate: nothing, mark, remembered: None, drawn_from: Vec::new(), steps: Vec::new() };
    let family = family_of(packet.dst);
    let Some(table) = program.tables.get(&family).filter(|_| family_of(packet.src) == family) else { return trace };
    let mut machine = Machine {
        table,
        node,
        packet,
        memory,
        draw,
        dst: (packet.dst, packet.port),
        dnat: false,
        sent_on: false,
        snat: false,
        registers: [0; 64],
        trace: &mut trace,
    };
    let refused = machine.run(between);
    let dnat = (machine.dnat || machine.sent_on).then(|| SocketAddr::new(machine.dst.0, machine.dst.1));
    let snat = machine.snat;
    trace.fate = refused.unwrap_or(Fate::Passes { dnat, snat });
    trace
}

/// What happens to a packet, whatever is drawn, if nothing is remembered of its client.
pub fn outcome(program: &Program, node: &Node, packet: &Packet) -> Outcome {
    let mut drawn_from = 1;
    let mut ways = Vec::new();
    let mut turn = 0;
    while turn < drawn_from {
        let traced = trace(program, node, packet, 0, &mut Memory::default(), &mut |end| turn.min(end - 1));
        match traced.fate {
            Fate::Drops => return Outcome::Drops,
            Fate::Rejects(with) => return Outcome::Rejects(with),
            Fate::Passes { dnat: None, .. } => return Outcome::Passes,
            // What was drawn in vain has no share.
            Fate::Passes { .. } if traced.drawn_from.len() > 1 => {}
            Fate::Passes { dnat: Some(to), snat } => ways.push(((to, snat), traced.remembered)),
        }
        drawn_from = traced.drawn_from.first().copied().unwrap_or(1);
        turn += 1;
    }
    let affinity = ways.first().and_then(|(_, remembered)| *remembered);
    Outcome::forwards(ways.into_iter().map(|(way, _)| way), affinity)
}

/// Why a chain is left.
enum Left {
    /// At its end, or by a return.
    Returns,
    Accepts,
    Refuses(Fate),
}

/// What a rule that matched says.
enum Said {
    Verdict(Verdict),
    Accept,
    Refuse(Fate),
}

struct Machine<'a> {
    table: &'a Table,
    node: &'a Node,
    packet: &'a Packet,
    memory: &'a mut Memory,
    draw: &'a mut dyn FnMut(u32) -> u32,
    dst: (IpAddr, u16),
    dnat: bool,
    /// By something else, of which the connection does not tell.
    sent_on: bool,
    snat: bool,
    registers: [u8; 64],
    trace: &'a mut Trace,
}

impl<'a> Machine<'a> {
    /// All hooks the packet passes.
    fn run(&mut self, between: &mut dyn FnMut(u32) -> Option<SocketAddr>) -> Option<Fate> {
        let first = if self.packet.from == Ingress::Output { Hook::Output } else { Hook::Prerouting };
        if let Some(fate) = self.pass(first) {
            return Some(fate);
        }
        if let Some(to) = between(self.trace.mark) {
            (self.dst, self.sent_on) = ((to.ip(), to.port()), true);
            // What is sent on leaves like a packet of the machine's own.
            if let Some(fate) = (!self.node.has(to.ip())).then(|| self.pass(Hook::Output)).flatten() {
                return Some(fate);
            }
        }
        // What comes in for the Node itself is delivered, and does not go out.
        let delivered = first == Hook::Prerouting && self.node.has(self.dst.0);
        if delivered { None } else { self.pass(Hook::Postrouting) }
    }

    fn pass(&mut self, hook: Hook) -> Option<Fate> {
        let based = self.table.chains.values().filter_map(|chain| Some((chain.base?, chain)));
        let mut chains: Vec<(Base, &Chain)> = based.filter(|(base, _)| base.hook == hook).collect();
        chains.sort_by_key(|(base, _)| base.priority);
        chains.into_iter().find_map(|(_, chain)| match self.chain(chain, 0) {
            Left::Refuses(fate) => Some(fate),
            Left::Returns | Left::Accepts => None,
        })
    }

    fn chain(&mut self, chain: &'a Chain, depth: usize) -> Left {
        for rule in &chain.rules {
            let verdict = match self.rule(chain, rule) {
                None => continue,
                Some(Said::Accept) => return Left::Accepts,
                Some(Said::Refuse(fate)) => return Left::Refuses(fate),
                Some(Said::Verdict(verdict)) => verdict,
            };
            self.note(chain, || print::verdict(&verdict));
            match verdict {
                Verdict::Accept => return Left::Accepts,
                Verdict::Drop => return Left::Refuses(Fate::Drops),
                Verdict::Return => return Left::Returns,
                Verdict::Goto(name) => return self.enter(&name, depth),
                Verdict::Jump(name) => match self.enter(&name, depth) {
                    Left::Returns => {}
                    left => return left,
                },
            }
        }
        Left::Returns
    }

    fn enter(&mut self, name: &ChainName, depth: usize) -> Left {
        match self.table.chains.get(name) {
            Some(chain) if depth < DEEPEST => self.chain(chain, depth + 1),
            // The kernel takes no such program.
            _ => Left::Refuses(Fate::Drops),
        }
    }

    fn note(&mut self, chain: &Chain, what: impl FnOnce() -> String) {
        self.trace.steps.push(Step { chain: chain.name.clone(), what: what() });
    }

    /// What a rule says, if all of it matches.
    fn rule(&mut self, chain: &Chain, rule: &Rule) -> Option<Said> {
        for expr in &rule.exprs {
            match expr {
                Expr::Verdict(verdict) => return Some(Said::Verdict(verdict.clone())),
                Expr::Lookup { set, sreg, found, invert } => {
                    if let Some(verdict) = self.look_up(chain, set, *sreg, *found, *invert)? {
                        return Some(Said::Verdict(verdict));
                    }
                }
                Expr::Dnat { addr, port } => return Some(self.dnat(chain, *addr, *port)),
                Expr::Masquerade => {
                    self.snat = true;
                    self.note(chain, || "masquerade".to_owned());
                    return Some(Said::Accept);
                }
                Expr::Reject(with) => return Some(self.reject(chain, *with)),
                other => self.step(chain, other)?,
            }
        }
        None
    }

    /// An expression that only reads and writes; `None`: it does not match.
    fn step(&mut self, chain: &Chain, expr: &Expr) -> Option<()> {
        match expr {
            Expr::Meta { key, dreg } => {
                let bytes = self.meta(*key);
                self.store(*dreg, &bytes);
            }
            Expr::MetaSet { sreg, .. } => self.trace.mark = self.number(*sreg),
            Expr::Payload { base, offset, dreg, .. } => {
                let bytes = self.payload(*base, *offset);
                self.store(*dreg, &bytes);
            }
            Expr::Cmp { sreg, op, data } => {
                let same = self.read(*sreg, data.as_bytes().len()) == data.as_bytes();
                return (same == (*op == CmpOp::Equal)).then_some(());
            }
            Expr::Bitwise { sreg, dreg, mask, xor } => {
                let read = self.read(*sreg, mask.as_bytes().len()).to_vec();
                let changed = read.iter().zip(mask.as_bytes()).zip(xor.as_bytes());
                let bytes: Vec<u8> = changed.map(|((byte, mask), xor)| byte & mask ^ xor).collect();
                self.store(*dreg, &bytes);
            }
            Expr::Numgen { modulus, dreg } => {
                let drawn = (self.draw)(*modulus);
                self.trace.drawn_from.push(*modulus);
                self.note(chain, || format!("draws {drawn} of {modulus}"));
                self.store(*dreg, &drawn.to_ne_bytes());
            }
            Expr::Update { map, key, data, timeout } => self.remember(map, *key, *data, *timeout),
            Expr::Forget { map, key, .. } => {
                let key = self.client(map, *key);
                self.memory.0.remove(&key);
            }
            Expr::Ct { key, dreg } => {
                let bits = match key {
                    CtKey::State => CT_NEW,
                    CtKey::Status if self.dnat => CT_DNAT,
                    CtKey::Status => 0,
                };
                self.store(*dreg, &bits.to_ne_bytes());
            }
            Expr::Addrtype { of, dreg } => {
                let address = if *of == End::Source { self.packet.src } else { self.dst.0 };
                let kind = if self.node.has(address) { LOCAL } else { UNICAST };
                self.store(*dreg, &kind.to_ne_bytes());
            }
            _ => {}
        }
        Some(())
    }

    /// `None`: it does not match. A verdict, if it leads to one.
    fn look_up(
        &mut self,
        chain: &Chain,
        name: &'static str,
        sreg: Reg,
        found: Found,
        invert: bool,
    ) -> Option<Option<Verdict>> {
        let (set, elements) = self.table.sets.get(name)?;
        let key = Key::new().part(self.read(sreg, length(&set.key)));
        let remembered = self.memory.0.get(&key).filter(|_| set.dynamic);
        let remembered = remembered.map(|(data, _)| Element::data(key, *data));
        let element = match elements.get(&key) {
            _ if set.dynamic => remembered.as_ref(),
            _ if set.interval => elements.values().find(|element| covers(element, &key, &set.key)),
            element => element,
        };
        if element.is_some() == invert {
            return None;
        }
        let Some(element) = element else { return Some(None) };
        let what = format!("{} in @{name}", print::key(&key, &set.key));
        match (&element.value, found) {
            (Some(Value::Verdict(verdict)), Found::Verdict) => {
                self.note(chain, || what);
                Some(Some(verdict.clone()))
            }
            (Some(Value::Data(data)), Found::Load(dreg)) => {
                let ValueType::Data(types) = &set.value else { return None };
                self.note(chain, || format!("{what} leads to {}", print::key(data, types)));
                self.store(dreg, data.as_bytes());
                Some(None)
            }
            _ => {
                self.note(chain, || what);
                Some(None)
            }
        }
    }

    fn remember(&mut self, map: &'static str, key: Reg, data: Reg, timeout: u32) {
        let key = self.client(map, key);
        let data = Key::new().part(self.read(data, 4));
        self.memory.0.entry(key).or_insert((data, timeout)).1 = timeout;
        self.trace.remembered = Some(timeout);
    }

    fn client(&self, map: &'static str, key: Reg) -> Key {
        let length = self.table.sets.get(map).map_or(0, |(set, _)| length(&set.key));
        Key::new().part(self.read(key, length))
    }

    fn dnat(&mut self, chain: &Chain, addr: Reg, port: Reg) -> Said {
        let ip = match family_of(self.packet.dst) {
            Family::V4 => IpAddr::from(<[u8; 4]>::try_from(self.read(addr, 4)).unwrap_or_default()),
            Family::V6 => IpAddr::from(<[u8; 16]>::try_from(self.read(addr, 16)).unwrap_or_default()),
        };
        let port = u16::from_be_bytes(self.read(port, 2).try_into().unwrap_or_default());
        (self.dst, self.dnat) = ((ip, port), true);
        self.note(chain, || format!("dnat to {}", SocketAddr::new(ip, port)));
        Said::Accept
    }

    fn reject(&mut self, chain: &Chain, with: Reject) -> Said {
        let with = match with {
            Reject::TcpReset => RejectWith::TcpReset,
            Reject::PortUnreachable => RejectWith::PortUnreachable,
        };
        self.note(chain, || format!("reject with {with:?}"));
        Said::Refuse(Fate::Rejects(with))
    }

    fn meta(&self, key: MetaKey) -> Vec<u8> {
        match key {
            MetaKey::Mark => self.trace.mark.to_ne_bytes().into(),
            MetaKey::L4proto => vec![code::protocol(self.packet.protocol)],
            MetaKey::Iifname => {
                let name = match &self.packet.from {
                    Ingress::Interface(name) => name.as_bytes(),
                    Ingress::Output => &[],
                };
                let mut bytes = name[..name.len().min(15)].to_vec();
                bytes.resize(16, 0);
                bytes
            }
        }
    }

    fn payload(&self, base: PayloadBase, offset: u32) -> Vec<u8> {
        let octets = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        match (base, offset) {
            (PayloadBase::Network, 8 | 12) => octets(self.packet.src),
            (PayloadBase::Network, _) => octets(self.dst.0),
            (PayloadBase::Transport, _) => self.dst.1.to_be_bytes().into(),
        }
    }

    /// Puts bytes into registers; what is left of the last one is zero.
    fn store(&mut self, reg: Reg, bytes: &[u8]) {
        let start = usize::from(reg.0) * 4;
        let end = start + bytes.len();
        if let Some(registers) = self.registers.get_mut(start..end.next_multiple_of(4)) {
            registers.fill(0);
            registers[..bytes.len()].copy_from_slice(bytes);
        }
    }

    fn read(&self, reg: Reg, length: usize) -> &[u8] {
        let start = usize::from(reg.0) * 4;
        self.registers.get(start..start + length).unwrap_or_default()
    }

    fn number(&self, reg: Reg) -> u32 {
        u32::from_ne_bytes(self.read(reg, 4).try_into().unwrap_or_default())
    }
}
