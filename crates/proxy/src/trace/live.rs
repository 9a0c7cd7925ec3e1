//! Sends one real packet and shows what the kernel did to it: every rule it met, whose ever that is, who ended its way, and
//! where its connection leads.
//!
//! A table of our own asks the kernel to tell of this packet and no other. The table belongs to a connection of this process,
//! so it is gone when the process is, however that ends.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use fairlead_kernel::conntrack::{Conntrack, Entry, Filter};
use fairlead_kernel::netns::Namespace;
use fairlead_kernel::nft::{
    Batch, Chain, Connection, Expr, Family, Hook, Listed, MetaKey, Policy, Reg, Rule, Step, Table, Traced, Tracer,
    Verdict,
};
use fairlead_plan::Protocol;
use tokio::net::TcpSocket;

use crate::Error;

/// The table that asks the kernel to tell.
pub const TABLE: &str = "fairlead-trace";
/// Before whatever else may happen to a packet.
const FIRST: i32 = -500;
/// How long an answer is waited for: less than it takes until the kernel sends a lost packet again.
const PATIENCE: Duration = Duration::from_millis(900);
/// How long the kernel's report is waited for.
const REPORT: Duration = Duration::from_millis(200);

/// What is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// To whom.
    pub to: SocketAddr,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// From inside of this network namespace, by name or path, as a Pod; else from here.
    pub namespace: Option<String>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// From where it was sent.
    pub from: SocketAddr,
    /// What the sender saw.
    pub answer: Reply,
    /// What the kernel did to it, in order.
    pub steps: Vec<Told>,
    /// From where to where it was under way when a rule last saw it.
    pub last_seen: Option<(SocketAddr, SocketAddr)>,
    /// The connection that resulted.
    pub flow: Option<Entry>,
}

/// What the sender of a packet saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// An answer.
    Answered,
    /// A refusal.
    Refused,
    /// Nothing. For UDP that may be fine.
    Nothing,
    /// It could not be sent.
    Failed(String),
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Answered => f.write_str("it was answered"),
            Reply::Refused => f.write_str("it was refused"),
            Reply::Nothing => f.write_str("nothing came back"),
            Reply::Failed(why) => write!(f, "it could not be sent: {why}"),
        }
    }
}

/// One step of the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The table with its family, as `nft` names it.
    pub table: String,
    /// The chain.
    pub chain: String,
    /// What happened, in words.
    pub what: String,
    /// Whether that was the end of it.
    pub ended: bool,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.table, self.chain, self.what)
    }
}

impl Report {
    /// Who ended its way, if a rule did.
    pub fn ended_by(&self) -> Option<&Told> {
        self.steps.iter().find(|step| step.ended)
    }
}

/// Sends a packet and follows it through the network namespace of this thread.
pub async fn send(probe: &Probe) -> Result<Report, Error> {
    let sender = match &probe.namespace {
        Some(name) => namespace(name)?.run(|| Sender::new(probe))?,
        None => Sender::new(probe),
    };
    let unspecified = SocketAddr::new(probe.to.ip(), 0);
    let sender = match sender {
        Ok(sender) => sender,
        Err(error) => {
            let answer = Reply::Failed(error.to_string());
            return Ok(Report { from: unspecified, answer, steps: Vec::new(), last_seen: None, flow: None });
        }
    };
    let from = sender.from()?;
    let mut tracer = Tracer::open()?;
    let mut connection = Connection::open()?;
    connection.commit(tracing(from, probe), None)?;
    let answer = sender.send(probe.to).await;
    let traced = tracer.steps(REPORT)?;
    let steps = Rules::default().tell(&mut connection, &traced)?;
    // The kernel removes it with the connection; this only does so sooner.
    let mut batch = Batch::new();
    batch.delete_table(&table(from));
    connection.commit(batch, None)?;
    let last_seen = traced.iter().rev().find_map(|step| ends(&step.network, &step.transport));
    Ok(Report { from, answer, steps, last_seen, flow: flow(from, probe)? })
}

fn namespace(name: &str) -> Result<Namespace, Error> {
    let found = if name.contains('/') { Namespace::at(Path::new(name)) } else { Namespace::named(name) };
    Ok(found?)
}

/// A socket with a port of its own, by which its packet is known.
enum Sender {
    Tcp(TcpSocket),
    Udp(UdpSocket),
}

impl Sender {
    fn new(probe: &Probe) -> io::Result<Sender> {
        let any: IpAddr = if probe.to.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        let udp = UdpSocket::bind((any, 0))?;
        // Sends nothing, but says which address the packet will be from.
        udp.connect(probe.to)?;
        match probe.protocol {
            Protocol::Udp => Ok(Sender::Udp(udp)),
            Protocol::Tcp => {
                let tcp = if probe.to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
                tcp.bind(SocketAddr::new(udp.local_addr()?.ip(), 0))?;
                Ok(Sender::Tcp(tcp))
            }
            Protocol::Sctp => Err(io::Error::new(io::ErrorKind::Unsupported, "only TCP and UDP are sent")),
        }
    }

    fn from(&self) -> Result<SocketAddr, Error> {
        let from = match self {
            Sender::Tcp(socket) => socket.local_addr(),
            Sender::Udp(socket) => socket.local_addr(),
        };
        from.map_err(|error| Error::Io { what: "looking at a socket".to_owned(), error })
    }

    async fn send(self, to: SocketAddr) -> Reply {
        match self {
            Sender::Tcp(socket) => match tokio::time::timeout(PATIENCE, socket.connect(to)).await {
                Err(_) => Reply::Nothing,
                Ok(result) => reply(result.map(drop)),
            },
            Sender::Udp(socket) => reply(exchange(&socket)),
        }
    }
}

/// Sends an empty datagram: what is least likely to do anything to who gets it.
fn exchange(socket: &UdpSocket) -> io::Result<()> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(&[])?;
    socket.recv(&mut [0; 1]).map(drop)
}

fn reply(result: io::Result<()>) -> Reply {
    let Err(error) = result else { return Reply::Answered };
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Reply::Refused,
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Reply::Nothing,
        _ => Reply::Failed(error.to_string()),
    }
}

fn table(from: SocketAddr) -> Table {
    Table::new(if from.is_ipv4() { Family::Ip } else { Family::Ip6 }, TABLE)
}

/// The rules that make the kernel tell of the packet.
fn tracing(from: SocketAddr, probe: &Probe) -> Batch {
    let table = table(from);
    let mut batch = Batch::new();
    batch.add_owned_table(&table);
    for (name, hook) in [("prerouting", Hook::Prerouting), ("output", Hook::Output)] {
        batch.add_chain(&table, &Chain::filter(name, hook, FIRST));
        batch.add_rule(&table, &Rule::new(name, matching(from, probe)));
    }
    batch
}

fn matching(from: SocketAddr, probe: &Probe) -> Vec<Expr> {
    const REG: Reg = Reg(0);
    let octets = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let (source, destination) = if from.is_ipv4() { (12, 16) } else { (8, 24) };
    let length = if from.is_ipv4() { 4 } else { 16 };
    let protocol = if probe.protocol == Protocol::Tcp { 6 } else { 17 };
    let mut exprs = vec![
        Expr::network(source, length, REG),
        Expr::equal(REG, octets(from.ip())),
        Expr::network(destination, length, REG),
        Expr::equal(REG, octets(probe.to.ip())),
        Expr::Meta { key: MetaKey::L4proto, dreg: REG },
        Expr::equal(REG, [protocol]),
        Expr::transport(0, 2, REG),
        Expr::equal(REG, from.port().to_be_bytes()),
        Expr::transport(2, 2, REG),
        Expr::equal(REG, probe.to.port().to_be_bytes()),
    ];
    if probe.protocol == Protocol::Tcp {
        // Only the first packet: SYN without ACK.
        exprs.push(Expr::transport(13, 1, REG));
        exprs.push(Expr::Bitwise { sreg: REG, dreg: REG, mask: vec![0x12], xor: vec![0] });
        exprs.push(Expr::equal(REG, [0x02]));
    }
    exprs.push(Expr::Immediate { dreg: REG, data: vec![1] });
    exprs.push(Expr::MetaSet { key: MetaKey::Nftrace, sreg: REG });
    exprs
}

/// From where to where a packet with such headers goes.
fn ends(network: &[u8], transport: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let part = |from: usize, length: usize| network.get(from..from + length);
    let v4 = |at| <[u8; 4]>::try_from(part(at, 4)?).ok().map(IpAddr::from);
    let v6 = |at| <[u8; 16]>::try_from(part(at, 16)?).ok().map(IpAddr::from);
    let (source, destination) = match network.first()? >> 4 {
        4 => (v4(12)?, v4(16)?),
        6 => (v6(8)?, v6(24)?),
        _ => return None,
    };
    let port = |at: usize| transport.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes);
    Some((SocketAddr::new(source, port(0)?), SocketAddr::new(destination, port(2)?)))
}

/// The connection the packet belongs to.
fn flow(from: SocketAddr, probe: &Probe) -> Result<Option<Entry>, Error> {
    let protocol = if probe.protocol == Protocol::Tcp { 6 } else { 17 };
    let (destination, destination_port) = (Some(probe.to.ip()), Some(probe.to.port()));
    let filter = Filter { protocol: Some(protocol), destination, destination_port, ..Filter::default() };
    let entries = Conntrack::open()?.entries(filter)?;
    let is = |entry: &Entry| (entry.original.source, entry.original.source_port) == (from.ip(), from.port());
    Ok(entries.into_iter().find(is))
}

/// Rules of tables, by their numbers.
#[derive(Default)]
struct Rules(HashMap<Table, Vec<Listed<Rule>>>);

impl Rules {
    fn tell(&mut self, connection: &mut Connection, traced: &[Traced]) -> Result<Vec<Told>, Error> {
        let others = traced.iter().filter(|step| step.table != TABLE);
        others.map(|step| self.tell_one(connection, step)).collect()
    }

    fn tell_one(&mut self, connection: &mut Connection, traced: &Traced) -> Result<Told, Error> {
        let table = Table::new(traced.family, &traced.table);
        if !self.0.contains_key(&table) {
            self.0.insert(table.clone(), connection.rules(&table)?);
        }
        let rules: Vec<_> = self.0[&table].iter().filter(|rule| rule.value.chain == traced.chain).collect();
        let (what, ended) = match &traced.step {
            Step::Policy(Policy::Accept) => ("no rule decides; it goes on".to_owned(), false),
            Step::Policy(Policy::Drop) => ("no rule decides, and the policy drops it".to_owned(), true),
            Step::Return(_) => ("at the end of the chain; back".to_owned(), false),
            Step::Rule { handle, verdict } => {
                let at = rules.iter().position(|rule| rule.handle == *handle);
                let rule = at.map(|at| &rules[at].value);
                let name = rule_name(at, rules.len(), *handle, rule.and_then(|rule| rule.comment.as_deref()));
                let (words, ended) = words(verdict.as_ref(), rule);
                (format!("{name} {words}"), ended)
            }
        };
        Ok(Told {
            table: format!("{} {}", traced.family.as_str(), traced.table),
            chain: traced.chain.clone(),
            what,
            ended,
        })
    }
}

fn rule_name(at: Option<usize>, of: usize, handle: u64, comment: Option<&str>) -> String {
    let place = at.map_or(format!("rule with handle {handle}"), |at| format!("rule {} of {of}", at + 1));
    comment.map_or(place.clone(), |comment| format!("{place} ({comment})"))
}

/// What a rule did, and whether that was the end of the packet.
fn words(verdict: Option<&Verdict>, rule: Option<&Rule>) -> (String, bool) {
    let has = |is: fn(&Expr) -> bool| rule.is_some_and(|rule| rule.exprs.iter().any(is));
    let translates = has(|expr| matches!(expr, Expr::Nat(_) | Expr::Masquerade { .. } | Expr::Redirect { .. }));
    match verdict {
        Some(Verdict::Drop) if has(|expr| matches!(expr, Expr::Reject(_))) => ("refuses it".to_owned(), true),
        Some(Verdict::Drop) => ("drops it".to_owned(), true),
        Some(Verdict::Accept) if translates => ("translates its address".to_owned(), false),
        Some(Verdict::Accept) => ("accepts it".to_owned(), false),
        Some(Verdict::Continue) => ("matches".to_owned(), false),
        Some(Verdict::Return) => ("sends it back".to_owned(), false),
        Some(Verdict::Jump(chain)) => (format!("sends it through {chain}"), false),
        Some(Verdict::Goto(chain)) => (format!("sends it to {chain}"), false),
        None => ("takes it".to_owned(), false),
    }
}

#[cfg(test)]
mod tests;
