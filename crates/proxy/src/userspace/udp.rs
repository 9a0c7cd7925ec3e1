//! UDP sessions of one worker. The first datagram of a client begins one, with a socket of its own towards an endpoint; it
//! ends when nothing was sent for a while, when its endpoint does, or when the place is needed.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairlead_kernel::relay::{self, Datagrams, Poller};
use fairlead_plan::PortKey;

use super::budget::Budget;
use super::slab::Slab;
use super::target::{Count, Target};
use super::token;

/// How often a worker turns to the same socket before others have their turn.
const TURNS: usize = 4;
/// Of how many sessions, the longest silent first, one that must go is chosen if all were just used.
const CHANCES: usize = 8;

/// How long what an endpoint that left has answered already may be under way.
const LEAVE: Duration = Duration::from_secs(1);

/// The sessions.
#[derive(Debug)]
pub(crate) struct Udp {
    poller: Arc<Poller>,
    budget: Arc<Budget>,
    timeout: Duration,
    /// How many there may be.
    most: usize,
    portals: HashMap<u64, Portal>,
    sessions: Slab<Session>,
    /// When to look at sessions: the first is due first.
    due: VecDeque<(Instant, u64)>,
    /// Sessions with endpoints that left, and when they end.
    leaving: VecDeque<(Instant, u64)>,
    /// Only where there is UDP at all: it is large.
    datagrams: Option<Box<Datagrams>>,
}

#[derive(Debug)]
struct Portal {
    socket: Arc<UdpSocket>,
    target: Arc<Target>,
    clients: HashMap<SocketAddr, u64>,
}

#[derive(Debug)]
struct Session {
    portal: u64,
    client: SocketAddr,
    endpoint: SocketAddr,
    socket: UdpSocket,
    count: Arc<Count>,
    used: Instant,
    /// The endpoint does not listen or has left: the client's next datagram begins a session with another.
    refused: bool,
}

impl Udp {
    pub(crate) fn new(poller: Arc<Poller>, budget: Arc<Budget>, timeout: Duration, most: usize) -> Udp {
        let (portals, sessions, due, leaving) = (HashMap::new(), Slab::default(), VecDeque::new(), VecDeque::new());
        Udp { poller, budget, timeout, most, portals, sessions, due, leaving, datagrams: None }
    }

    /// Serves a portal.
    pub(crate) fn open(&mut self, number: u64, socket: Arc<UdpSocket>, target: Arc<Target>) -> io::Result<()> {
        self.poller.watch(socket.as_fd(), token::portal(number))?;
        self.portals.insert(number, Portal { socket, target, clients: HashMap::new() });
        Ok(())
    }

    /// Ends a portal, and its sessions. False: it is not one of these.
    pub(crate) fn close(&mut self, number: u64) -> bool {
        let Some(portal) = self.portals.remove(&number) else { return false };
        for session in portal.clients.values() {
            self.end(*session);
        }
        // Somebody else may still hold the socket.
        let _ = self.poller.forget(portal.socket.as_fd());
        true
    }

    /// Ends the sessions of a port with endpoints that are none of these: the client's next datagram goes to another, but what
    /// is answered already still comes back.
    pub(crate) fn retain(&mut self, port: &PortKey, serving: &HashSet<SocketAddr>, now: Instant) {
        let of_port = |session: &Session| {
            self.portals.get(&session.portal).is_some_and(|portal| portal.target.pool.port == *port)
        };
        let gone = self.sessions.iter().filter(|(_, session)| of_port(session) && !serving.contains(&session.endpoint));
        let gone: Vec<u64> = gone.map(|(key, _)| key).collect();
        for key in gone {
            if let Some(session) = self.sessions.get(key).filter(|session| !session.refused) {
                session.refused = true;
                self.leaving.push_back((now + LEAVE, key));
            }
        }
    }

    /// Whether it is the number of a portal here.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.portals.contains_key(&number)
    }

    /// Clients sent something.
    pub(crate) fn clients_sent(&mut self, number: u64, now: Instant) {
        let mut datagrams = self.datagrams.take().unwrap_or_default();
        for _ in 0..TURNS {
            let Some(portal) = self.portals.get(&number) else { break };
            // A mistake here is about a datagram that was sent before, to a client that is gone.
            if !matches!(datagrams.receive(&portal.socket), Ok(true)) {
                break;
            }
            for (bytes, client) in datagrams.iter() {
                self.pass_on(number, client, bytes, now);
            }
            if !datagrams.is_full() {
                break;
            }
        }
        self.datagrams = Some(datagrams);
    }

    fn pass_on(&mut self, number: u64, client: SocketAddr, bytes: &[u8], now: Instant) {
        let Some(portal) = self.portals.get(&number) else { return };
        let mut refused = None;
        if let Some(key) = portal.clients.get(&client).copied() {
            let Some(session) = self.sessions.get(key) else { return };
            session.used = now;
            if !session.refused && session.send(bytes) {
                return;
            }
            refused = Some(session.endpoint);
            self.end(key);
        }
        if let Some(key) = self.begin(number, client, refused, now)
            && let Some(session) = self.sessions.get(key)
        {
            session.send(bytes);
        }
    }

    /// A new session, not with the endpoint that just refused if there is another.
    fn begin(&mut self, number: u64, client: SocketAddr, refused: Option<SocketAddr>, now: Instant) -> Option<u64> {
        self.make_room(now);
        let portal = self.portals.get_mut(&number)?;
        let pick = |failed: &[SocketAddr]| portal.target.pick(client.ip(), failed);
        let choice = pick(refused.as_slice()).or_else(|| pick(&[]))?;
        if !self.budget.take(1) {
            if self.budget.is_news() {
                tracing::warn!(limit = self.budget.limit(), "datagrams are dropped: all descriptors are in use");
            }
            return None;
        }
        let socket = relay::connect_datagram(choice.endpoint).inspect_err(|_| self.budget.give(1)).ok()?;
        let (endpoint, count) = (choice.endpoint, choice.count);
        count.connection();
        let key = self.sessions.insert(Session {
            portal: number,
            client,
            endpoint,
            socket,
            count,
            used: now,
            refused: false,
        });
        portal.clients.insert(client, key);
        self.due.push_back((now + self.timeout, key));
        let session = self.sessions.get(key)?;
        if self.poller.watch(session.socket.as_fd(), token::session(key)).is_err() {
            self.end(key);
            return None;
        }
        Some(key)
    }

    /// An endpoint answered, or refuses.
    pub(crate) fn endpoint_answered(&mut self, key: u64, now: Instant) {
        let mut datagrams = self.datagrams.take().unwrap_or_default();
        for _ in 0..TURNS {
            let Some(session) = self.sessions.get(key) else { break };
            let Some(portal) = self.portals.get(&session.portal) else { break };
            match datagrams.receive(&session.socket) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::debug!(port = %portal.target.pool.port, endpoint = %session.endpoint, %error, "an endpoint refuses");
                    session.refused = true;
                    break;
                }
            }
            session.used = now;
            for (bytes, _) in datagrams.iter() {
                session.count.datagram(bytes.len());
                // What does not fit into the client's way is lost, as datagrams are.
                let _ = portal.socket.send_to(bytes, session.client);
            }
            if !datagrams.is_full() {
                break;
            }
        }
        self.datagrams = Some(datagrams);
    }

    /// Ends sessions that were silent for too long; when to look again.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Instant> {
        while let Some((_, key)) = self.leaving.pop_front_if(|(end, _)| *end <= now) {
            self.end(key);
        }
        let left = self.leaving.front().map(|(end, _)| *end);
        [left, self.expire_silent(now)].into_iter().flatten().min()
    }

    fn expire_silent(&mut self, now: Instant) -> Option<Instant> {
        while let Some((due, key)) = self.due.front().copied() {
            match self.sessions.get(key).map(|session| session.used + self.timeout) {
                Some(_) if due > now => return Some(due),
                Some(end) if end > now => self.due.push_back((end, key)),
                Some(_) => self.end(key),
                None => {}
            }
            self.due.pop_front();
        }
        None
    }

    /// Ends a session if there are too many: one that was silent for long.
    fn make_room(&mut self, now: Instant) {
        let mut chances = 0;
        while self.sessions.len() >= self.most {
            let Some((due, key)) = self.due.pop_front() else { return };
            let Some(session) = self.sessions.get(key) else { continue };
            let end = session.used + self.timeout;
            if end > due && chances < CHANCES {
                chances += 1;
                self.due.push_back((end, key));
                continue;
            }
            if self.budget.is_news() {
                let (most, silent) = (self.most, now.duration_since(session.used));
                tracing::warn!(most, ?silent, "there are many UDP clients: sessions end early");
            }
            self.end(key);
        }
    }

    fn end(&mut self, key: u64) {
        let Some(session) = self.sessions.remove(key) else { return };
        if let Some(portal) = self.portals.get_mut(&session.portal) {
            portal.clients.remove(&session.client);
        }
        drop(session);
        self.budget.give(1);
    }

    /// How many sessions there are.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }
}

impl Drop for Udp {
    fn drop(&mut self) {
        self.budget.give(self.sessions.len());
    }
}

impl Session {
    /// Sends to the endpoint. False: it refuses, and another one may be asked.
    fn send(&self, bytes: &[u8]) -> bool {
        match self.socket.send(bytes) {
            Ok(_) => {
                self.count.datagram(bytes.len());
                true
            }
            Err(error) => !matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable),
        }
    }
}
