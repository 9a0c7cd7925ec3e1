//! TCP connections of one worker: accepted, led to an endpoint that answers, and carried both ways until both have ended.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use fairlead_kernel::relay::{self, Poller, Ready};

use super::budget::{Budget, ClientShare};
use super::dial::{Dial, PATIENCE};
use super::flow::{Carrier, Flow, Pause, Tools};
use super::slab::Slab;
use super::target::{Choice, Count, Target};
use super::token::{Side, connection};

/// Descriptors of one connection.
const DESCRIPTORS: usize = 2;

/// The connections.
#[derive(Debug)]
pub(crate) struct Tcp {
    poller: Arc<Poller>,
    budget: Arc<Budget>,
    connections: Slab<Connection>,
    /// Those that look for an endpoint, by how long they wait for one: the first is due first.
    due: [VecDeque<(Instant, u64)>; PATIENCE.len()],
    /// Those that had their turn, and have more.
    unfinished: VecDeque<u64>,
    tools: Tools,
    /// What makes room for one more when there are no descriptors.
    spare: Option<File>,
}

/// A client and its endpoint.
#[derive(Debug)]
struct Connection {
    client: TcpStream,
    backend: TcpStream,
    /// While the endpoint did not answer yet.
    dial: Option<Box<Dial>>,
    count: Arc<Count>,
    up: Flow,
    down: Flow,
    /// Whether room to write to the client is waited for.
    watches_writes: bool,
    is_unfinished: bool,
    _share: ClientShare,
}

impl Tcp {
    pub(crate) fn new(poller: Arc<Poller>, budget: Arc<Budget>) -> Tcp {
        Tcp {
            poller,
            connections: Slab::default(),
            due: Default::default(),
            unfinished: VecDeque::new(),
            tools: Tools::new(budget.clone()),
            spare: File::open("/dev/null").ok(),
            budget,
        }
    }

    /// Takes a connection that waits. If more do, there will be another event: asking for more in vain would cost as much.
    pub(crate) fn accept(&mut self, listener: &TcpListener, target: &Arc<Target>, now: Instant) -> bool {
        match relay::accept(listener) {
            Ok(Some((client, from))) => self.begin(client, from, target, now),
            Ok(None) => return false,
            // A client that gave up meanwhile.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => self.turn_away(listener, &error),
        }
        true
    }

    /// There is no descriptor for a connection that waits: one is freed to let it know.
    fn turn_away(&mut self, listener: &TcpListener, error: &io::Error) {
        if self.budget.is_news() {
            tracing::warn!(%error, "connections are turned away: they cannot be accepted");
        }
        self.spare = None;
        if let Ok(Some((client, _))) = relay::accept(listener) {
            relay::reset(client);
        }
        self.spare = File::open("/dev/null").ok();
    }

    fn begin(&mut self, client: TcpStream, from: SocketAddr, target: &Arc<Target>, now: Instant) {
        // The budget logs what a client beyond its share is refused.
        let Some(share) = self.budget.charge(from.ip(), DESCRIPTORS) else { return relay::reset(client) };
        if !self.budget.take(DESCRIPTORS) {
            if self.budget.is_news() {
                let limit = self.budget.limit();
                tracing::warn!(limit, "connections are turned away: all descriptors are in use (raise RLIMIT_NOFILE)");
            }
            return relay::reset(client);
        }
        let dialed = Dial::new(target.clone(), from.ip()).and_then(|(dial, choice)| dial_out(dial, choice));
        let Some((dial, backend, count)) = dialed else {
            self.budget.give(DESCRIPTORS);
            return relay::reset(client);
        };
        let (up, down) = (Flow::default(), Flow::default());
        let dial = Some(Box::new(dial));
        let begun = Connection {
            client,
            backend,
            dial,
            count,
            up,
            down,
            watches_writes: false,
            is_unfinished: false,
            _share: share,
        };
        let key = self.connections.insert(begun);
        self.wait_for_backend(key, now);
    }

    fn wait_for_backend(&mut self, key: u64, now: Instant) {
        let Some(connection_of) = self.connections.get(key) else { return };
        let waits = connection_of.dial.as_ref().map_or(0, |dial| dial.waits);
        if let Err(error) = self.poller.watch_all(connection_of.backend.as_fd(), connection(key, Side::Backend)) {
            tracing::warn!(%error, "a connection cannot be watched");
            return self.abort(key);
        }
        self.due[waits].push_back((now + PATIENCE[waits], key));
    }

    /// Something happened to one side of a connection.
    pub(crate) fn ready(&mut self, key: u64, side: Side, ready: Ready, now: Instant) {
        let Some(connection) = self.connections.get(key) else { return };
        if connection.dial.is_some() {
            return match side {
                Side::Client => {}
                Side::Backend if ready.failed() => self.redial(key, Dial::refused, now),
                Side::Backend => self.connected(key, ready),
            };
        }
        let Connection { up, down, .. } = connection;
        let (reads, writes) = match side {
            Side::Client => (up, down),
            Side::Backend => (down, up),
        };
        if ready.readable() {
            reads.can_read(ready.ends());
        }
        if ready.writable() {
            writes.can_write();
        }
        self.pump(key);
    }

    fn connected(&mut self, key: u64, ready: Ready) {
        let Some(this) = self.connections.get(key) else { return };
        this.dial = None;
        this.count.connection();
        this.up.can_read(false);
        if ready.readable() {
            this.down.can_read(ready.ends());
        }
        // Only now: what the client sent before waits in its socket.
        match self.poller.watch_reads(this.client.as_fd(), connection(key, Side::Client)) {
            Ok(()) => self.pump(key),
            Err(_) => self.abort(key),
        }
    }

    /// Tries the next endpoint.
    fn redial(&mut self, key: u64, next: impl FnOnce(&mut Dial) -> Option<Choice>, now: Instant) {
        let Some(this) = self.connections.get(key) else { return };
        let Some(mut dial) = this.dial.take() else { return };
        tracing::debug!(port = %dial.target.pool.port, endpoint = %dial.endpoint, "an endpoint does not answer");
        let choice = next(&mut dial);
        let failures = dial.failures();
        let port = dial.target.port.clone();
        match choice.and_then(|choice| dial_out(*dial, choice)) {
            Some((dial, backend, count)) => {
                (this.backend, this.count, this.dial) = (backend, count, Some(Box::new(dial)));
                self.wait_for_backend(key, now);
            }
            None => {
                tracing::info!(port = %port.key, failures, "no endpoint answers: a connection is reset");
                self.abort(key);
            }
        }
    }

    /// Gives up endpoints that were waited for long enough; when the next one will have been.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Instant> {
        for waits in 0..self.due.len() {
            while let Some((due, key)) = self.due[waits].front().copied() {
                let dials = |this: &mut Connection| this.dial.as_ref().is_some_and(|dial| dial.waits == waits);
                let waiting = self.connections.get(key).is_some_and(dials);
                if waiting && due > now {
                    break;
                }
                self.due[waits].pop_front();
                if waiting {
                    self.redial(key, Dial::timed_out, now);
                }
            }
        }
        self.due.iter().filter_map(|due| due.front()).map(|(due, _)| *due).min()
    }

    /// Goes on with those that have more. False: none has.
    pub(crate) fn go_on(&mut self) -> bool {
        for _ in 0..self.unfinished.len() {
            let Some(key) = self.unfinished.pop_front() else { break };
            if let Some(connection) = self.connections.get(key) {
                connection.is_unfinished = false;
                self.pump(key);
            }
        }
        !self.unfinished.is_empty()
    }

    fn pump(&mut self, key: u64) {
        let Tcp { poller, connections, unfinished, tools, .. } = self;
        let Some(this) = connections.get(key) else { return };
        let pauses = this.carry(tools);
        let Ok((up, down)) = pauses else { return self.abort(key) };
        if (up, down) == (Pause::Done, Pause::Done) {
            return self.end(key);
        }
        if (up == Pause::Turn || down == Pause::Turn) && !this.is_unfinished {
            this.is_unfinished = true;
            unfinished.push_back(key);
        }
        if down == Pause::Writes && !this.watches_writes {
            this.watches_writes = true;
            if poller.watch_writes_too(this.client.as_fd(), connection(key, Side::Client)).is_err() {
                self.abort(key);
            }
        }
    }

    /// Both have ended.
    fn end(&mut self, key: u64) {
        if let Some(mut connection) = self.connections.remove(key) {
            connection.up.release(&mut self.tools);
            connection.down.release(&mut self.tools);
            drop(connection);
            self.budget.give(DESCRIPTORS);
            if self.budget.has_room() {
                tracing::info!("connections are accepted again");
            }
        }
    }

    /// One side broke: the other one is told in the same way.
    fn abort(&mut self, key: u64) {
        if let Some(mut connection) = self.connections.remove(key) {
            connection.up.release(&mut self.tools);
            connection.down.release(&mut self.tools);
            relay::reset(connection.client);
            relay::reset(connection.backend);
            self.budget.give(DESCRIPTORS);
        }
    }

    /// How many connections there are.
    pub(crate) fn len(&self) -> usize {
        self.connections.len()
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.budget.give(self.connections.len() * DESCRIPTORS);
    }
}

impl Connection {
    fn carry(&mut self, tools: &mut Tools) -> io::Result<(Pause, Pause)> {
        let Connection { client, backend, up, down, count, .. } = self;
        let went_up = up.pump(client, backend, down.is_done(), Carrier { tools, count })?;
        let went_down = down.pump(backend, client, up.is_done(), Carrier { tools, count })?;
        Ok((went_up, went_down))
    }
}

/// Begins to connect to the endpoint, or else to one of the next.
fn dial_out(mut dial: Dial, mut choice: Choice) -> Option<(Dial, TcpStream, Arc<Count>)> {
    loop {
        match relay::connect(choice.endpoint) {
            Ok(backend) => return Some((dial, backend, choice.count)),
            Err(_) => choice = dial.refused()?,
        }
    }
}
