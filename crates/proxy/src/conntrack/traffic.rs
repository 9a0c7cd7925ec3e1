//! How many packets and bytes did connections to Services carry? The kernel counts them for each connection if it is told to
//! (`net.netfilter.nf_conntrack_acct`), in any mode that translates addresses. What ended is added up as it ends, by a thread
//! that only listens; what lives is read when somebody asks.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fairlead_kernel::conntrack::{Conntrack, Ended, Entry, Filter, status};
use fairlead_kernel::sysctl;
use fairlead_plan::{FrontendKey, Plan, PortKey, Protocol, family_of};

use super::stale::number;
use crate::{Counters, Error, Traffic, Volume};

/// The parameter that makes the kernel count.
pub const ACCOUNTING: &str = "net.netfilter.nf_conntrack_acct";
/// How long ends of connections are gathered: to wake up for each would cost more than to count it.
const GATHER: Duration = Duration::from_millis(50);
/// How long to wait for the first one before looking whether to stop.
const IDLE: Duration = Duration::from_millis(200);
/// How many pairs of destination and endpoint are added up between two questions. More are not counted.
const MOST: usize = 1 << 16;

/// Adds up what connections to Services carried.
#[derive(Debug)]
pub struct Meter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// What ended.
    totals: Totals,
    /// What was last told: what is told never gets less, even though a connection may end while it is read.
    told: Totals,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    ended: Mutex<Gathered>,
}

/// What ended since somebody asked.
#[derive(Debug, Default)]
struct Gathered {
    lines: HashMap<Line, Traffic>,
    lost: u64,
}

/// Where connections were addressed to, and where they led.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Line {
    protocol: u8,
    to: SocketAddr,
    at: SocketAddr,
}

#[derive(Debug, Clone, Default)]
struct Totals {
    frontends: BTreeMap<FrontendKey, Traffic>,
    endpoints: BTreeMap<(PortKey, SocketAddr), Traffic>,
}

impl Meter {
    /// Begins to listen in the network namespace of this thread; `None` if the kernel does not count there.
    pub fn start() -> Result<Option<Meter>, Error> {
        if sysctl::read(ACCOUNTING)? != "1" {
            return Ok(None);
        }
        let ended = Ended::open()?;
        let shared = Arc::new(Shared::default());
        let listener = shared.clone();
        let thread = thread::Builder::new().name("traffic".to_owned()).spawn(move || listen(ended, &listener));
        let thread = thread.map_err(|error| Error::Io { what: "starting a thread".to_owned(), error })?;
        Ok(Some(Meter { shared, thread: Some(thread), totals: Totals::default(), told: Totals::default() }))
    }

    /// Puts packets and bytes of both directions into what was counted, and connections where they were not. Returns how many
    /// connections ended unnoticed because there were too many.
    pub fn measure(&mut self, plan: &Plan, counters: &mut Counters) -> Result<u64, Error> {
        let gathered = std::mem::take(&mut *self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner));
        gathered.lines.iter().for_each(|(line, traffic)| self.totals.add(plan, line, *traffic));
        let mut now = self.totals.clone();
        for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Sctp] {
            let filter = Filter { protocol: Some(number(protocol)), ..Filter::default() };
            let living = Conntrack::open()?.read(filter, |entry| line(&entry))?;
            living.iter().for_each(|(line, traffic)| now.add(plan, line, *traffic));
        }
        self.told.raise(now);
        self.told.forget_gone(plan);
        self.totals.forget_gone(plan);
        self.told.put(counters);
        Ok(gathered.lost)
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn listen(mut ended: Ended, shared: &Shared) {
    while !shared.stop.load(Ordering::Relaxed) {
        let mut some = false;
        let result = ended.entries(IDLE, |entry| {
            some = true;
            let Some((line, traffic)) = line(&entry) else { return };
            shared.ended.lock().unwrap_or_else(PoisonError::into_inner).add(line, traffic);
        });
        match result {
            Ok(()) if some => thread::sleep(GATHER),
            Ok(()) => {}
            Err(fairlead_kernel::Error::Overrun) => {
                shared.ended.lock().unwrap_or_else(PoisonError::into_inner).lost += 1;
            }
            Err(error) => {
                tracing::warn!(%error, "packets and bytes are no longer counted");
                return;
            }
        }
    }
}

impl Gathered {
    fn add(&mut self, line: Line, traffic: Traffic) {
        if self.lines.len() >= MOST && !self.lines.contains_key(&line) {
            self.lost += 1;
            return;
        }
        self.lines.entry(line).or_default().add(&traffic);
    }
}

impl Totals {
    fn add(&mut self, plan: &Plan, line: &Line, traffic: Traffic) {
        let Some(frontend) = frontend(plan, line) else { return };
        self.frontends.entry(frontend.key).or_default().add(&traffic);
        self.endpoints.entry((frontend.port.clone(), line.at)).or_default().add(&traffic);
    }

    /// Takes what is more.
    fn raise(&mut self, other: Totals) {
        let most = |own: &mut Traffic, other: Traffic| {
            own.connections = own.connections.max(other.connections);
            own.packets = own.packets.max(other.packets);
            own.bytes = own.bytes.max(other.bytes);
            let (back, more) = (own.back.get_or_insert_default(), other.back.unwrap_or_default());
            *back = Volume { packets: back.packets.max(more.packets), bytes: back.bytes.max(more.bytes) };
        };
        other.frontends.into_iter().for_each(|(key, traffic)| most(self.frontends.entry(key).or_default(), traffic));
        other.endpoints.into_iter().for_each(|(key, traffic)| most(self.endpoints.entry(key).or_default(), traffic));
    }

    /// What no Service has any more need not be told.
    fn forget_gone(&mut self, plan: &Plan) {
        self.frontends.retain(|key, _| plan.frontend(key).is_some());
        self.endpoints
            .retain(|(port, at), _| plan.backends(port).iter().any(|it| (it.ip, it.port) == (at.ip(), at.port())));
    }

    fn put(&self, counters: &mut Counters) {
        for (key, traffic) in &self.frontends {
            counters.frontends.insert(*key, *traffic);
        }
        for (key, traffic) in &self.endpoints {
            let connections = counters.endpoints.get(key).map_or(traffic.connections, |known| known.connections);
            counters.endpoints.insert(key.clone(), Traffic { connections, ..*traffic });
        }
    }
}

/// What a translated connection carried.
fn line(entry: &Entry) -> Option<(Line, Traffic)> {
    let Entry { original, reply, sent, received, .. } = entry;
    let line = Line {
        protocol: original.protocol,
        to: SocketAddr::new(original.destination, original.destination_port),
        at: SocketAddr::new(reply.source, reply.source_port),
    };
    let packets = sent.packets.saturating_add(received.packets);
    let bytes = sent.bytes.saturating_add(received.bytes);
    let translated = entry.status & status::DESTINATION_NAT != 0;
    let back = Some(Volume { packets: received.packets, bytes: received.bytes });
    translated.then_some((line, Traffic { connections: 1, packets, bytes, back }))
}

/// What a connection was addressed to.
fn frontend<'a>(plan: &'a Plan, line: &Line) -> Option<&'a fairlead_plan::Frontend> {
    let all = [Protocol::Tcp, Protocol::Udp, Protocol::Sctp];
    let protocol = all.into_iter().find(|protocol| number(*protocol) == line.protocol)?;
    let (ip, port) = (line.to.ip(), line.to.port());
    let node_port = || plan.frontend(&FrontendKey::NodePort { family: family_of(ip), protocol, port });
    let on_node = plan.node().has(ip);
    let found = plan.frontend(&FrontendKey::Address { ip, protocol, port });
    found.or_else(|| node_port().filter(|_| on_node)).map(|frontend| &**frontend)
}

#[cfg(test)]
mod tests;
