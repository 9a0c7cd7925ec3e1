//! One listener: what all threads share of it, and what each thread has of it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fairlead_runtime::budget::Permit;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{Instant, sleep_until};

use super::bond::Bound;
use super::context::{Connection, Context, Phase, Thread, close_resting};
use super::counters::{Counters, Totals};
use super::slots::Slots;
use super::sources::{OpeningEntry, Source};
use crate::backends::Backends;
use crate::serving::Current;

/// How long what has no time to drain still has: long enough for an exchange that is under way, as good as at once for
/// connections that stay.
const PARTING: Duration = Duration::from_secs(1);
/// Time that a PROXY header or a TLS handshake has at least, however many others wait for theirs.
const OPENING: Duration = Duration::from_secs(1);

/// What all threads share of a listener.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) current: Arc<Current>,
    /// By thread.
    counters: Vec<Counters>,
}

impl Shared {
    pub(super) fn new(current: Current, threads: usize) -> Shared {
        let counters = (0..threads).map(|_| Counters::default()).collect();
        Shared { current: Arc::new(current), counters }
    }

    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.counters.iter().for_each(|counters| totals.add(counters));
        totals
    }

    /// How long connections go on that are to end.
    fn parting(&self) -> Duration {
        self.current.get().spec.drain.unwrap_or(PARTING)
    }
}

/// What a thread has of a listener.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) thread: Rc<Thread>,
    pub(crate) shared: Arc<Shared>,
    connections: RefCell<Slots<Connection>>,
    /// Requests and tunnels that end with their backends.
    bonds: RefCell<Slots<Bound>>,
    /// Ends the accepting at an address.
    sockets: RefCell<HashMap<SocketAddr, Rc<Notify>>>,
    /// Whose departures are followed, by which task.
    followed: RefCell<Option<(Arc<Backends>, AbortHandle)>>,
    /// Tells that task to look again.
    look: Rc<Notify>,
    draining: Cell<bool>,
}

impl Local {
    pub(super) fn new(thread: Rc<Thread>, shared: Arc<Shared>) -> Local {
        thread.listeners.set(thread.listeners.get() + 1);
        Local {
            thread,
            shared,
            connections: RefCell::default(),
            bonds: RefCell::default(),
            sockets: RefCell::default(),
            followed: RefCell::default(),
            look: Rc::default(),
            draining: Cell::new(false),
        }
    }

    /// The counters of this listener on this thread.
    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters[self.thread.index]
    }

    /// True if one more connection can be accepted.
    pub(super) fn has_room(&self) -> bool {
        let Thread { quotas, listeners, .. } = &*self.thread;
        if self.is_full() {
            return false;
        }
        // A quarter of all places is divided among the listeners, so that one with many clients
        // leaves room for the others.
        let used = self.thread.connections.borrow().len();
        let own = self.connections.borrow().len();
        let common = quotas.connections - quotas.connections / 4;
        let reserved = quotas.connections / 4 / listeners.get().max(1);
        used < common || (own < reserved && used < quotas.connections)
    }

    /// Closes a connection that waits for a request, so that another can be accepted. Returns false
    /// if there is none.
    pub(super) fn make_room(&self) -> bool {
        if self.is_full() { close_resting(&self.connections) } else { close_resting(&self.thread.connections) }
    }

    /// True if this listener has as many connections as one may have.
    fn is_full(&self) -> bool {
        let options = &self.thread.options;
        self.connections.borrow().len() >= (options.listener_connections / options.threads).max(1)
    }

    /// Accepts at an address, until [`Local::close`].
    pub(super) fn begin(self: &Rc<Self>, at: SocketAddr, socket: std::net::TcpListener) {
        let stop = Rc::new(Notify::new());
        self.sockets.borrow_mut().insert(at, stop.clone());
        spawn_local(super::accepting::accept(self.clone(), at, socket, stop));
    }

    /// Accepts what waits in a socket, and nothing else.
    pub(super) fn accept_rest(self: &Rc<Self>, at: SocketAddr, socket: std::net::TcpListener) {
        let stop = Rc::new(Notify::new());
        stop.notify_one();
        spawn_local(super::accepting::accept(self.clone(), at, socket, stop));
    }

    /// Accepts at an address no more.
    pub(super) fn close(&self, at: &SocketAddr) {
        if let Some(stop) = self.sockets.borrow_mut().remove(at) {
            stop.notify_one();
        }
    }

    /// Ends everything, each connection when its time is over.
    pub(super) fn stop(self: &Rc<Self>) {
        for (_, stop) in self.sockets.borrow_mut().drain() {
            stop.notify_one();
        }
        self.draining.set(true);
        self.thread.listeners.set(self.thread.listeners.get().saturating_sub(1));
        self.connections.borrow().iter().for_each(|one| one.advance(Phase::Draining));
        let (parting, local) = (self.shared.parting(), self.clone());
        spawn_local(async move {
            tokio::time::sleep(parting).await;
            if let Some((_, task)) = local.followed.borrow_mut().take() {
                task.abort();
            }
            local.connections.borrow().iter().for_each(|one| one.advance(Phase::Over));
        });
    }

    /// Ends connections whose backend leaves, from now on.
    pub(super) fn follow(self: &Rc<Self>) {
        let backends = self.shared.current.get().backends.clone();
        let mut followed = self.followed.borrow_mut();
        if followed.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, &backends)) {
            // The time to drain may be another.
            return self.look_for_orphans();
        }
        let task = spawn_local(follow(Rc::downgrade(self), backends.clone())).abort_handle();
        if let Some((_, old)) = followed.replace((backends, task)) {
            old.abort();
        }
    }

    /// Records a new connection of a source, which has counted it.
    pub(super) fn open(self: &Rc<Self>, source: Rc<Source>) -> Opened {
        let connection = Rc::new(Connection::new(source));
        if self.draining.get() {
            connection.advance(Phase::Draining);
        }
        let slot = self.connections.borrow_mut().put(connection.clone());
        let thread_slot = self.thread.connections.borrow_mut().put(connection.clone());
        self.counters().accepted.add(1);
        self.counters().active.add(1);
        let counted = self.thread.quotas.client_budget.acquire_unattributed(1).ok();
        Opened { context: Context { local: self.clone(), connection }, slot, thread_slot, _counted: counted }
    }

    /// Writes a bond down; where.
    pub(super) fn tie(&self, bound: Rc<Bound>) -> usize {
        self.bonds.borrow_mut().put(bound)
    }

    /// There is a bond no more.
    pub(super) fn untie(&self, slot: usize) {
        self.bonds.borrow_mut().take(slot);
    }

    /// Has it looked at who lost their backend, though none leaves now.
    pub(super) fn look_for_orphans(&self) {
        self.look.notify_one();
    }

    /// Ends what had a backend that left, if its time is over; when the time of the next is.
    fn end_orphans(&self) -> Option<Instant> {
        let (parting, mut next) = (self.shared.parting(), None::<Duration>);
        let mut is_over = |gone: Option<Duration>| {
            let left = gone.map(|gone| parting.saturating_sub(gone)).filter(|left| !left.is_zero());
            next = left.into_iter().chain(next).min();
            gone.is_some() && left.is_none()
        };
        // One whose backend came back is none.
        self.connections.borrow().iter().filter(|one| is_over(one.orphaned())).for_each(|one| one.advance(Phase::Over));
        for bound in self.bonds.borrow().iter().filter(|one| is_over(one.orphaned())) {
            self.counters().ended.add(1);
            bound.end();
        }
        next.map(|left| Instant::now() + left)
    }
}

/// Ends what loses its backend, each when its time is over.
async fn follow(local: std::rc::Weak<Local>, backends: Arc<Backends>) {
    let mut changes = backends.subscribe();
    loop {
        let Some(this) = local.upgrade() else { return };
        let (next, look) = (this.end_orphans(), this.look.clone());
        // The listener may end meanwhile.
        drop(this);
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = look.notified() => {}
            () = async { sleep_until(next.unwrap_or_else(Instant::now)).await }, if next.is_some() => {}
        }
    }
}

/// A connection that is written down as long as this lives.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) context: Context,
    slot: usize,
    thread_slot: usize,
    /// For metrics.
    _counted: Option<Permit>,
}

impl Opened {
    /// Counts the connection for another client address: the one that a trusted front has named.
    pub(super) fn attribute(&self, client: IpAddr) {
        let thread = &self.context.local.thread;
        let source = thread.sources.enter(client, thread.quotas.source_backends);
        let before = self.context.connection.source.replace(source);
        thread.sources.leave(&before);
    }

    /// Begins to wait for a PROXY header or a TLS handshake. If too many do, or too many of this
    /// client, the one of them that began first is ended, unless it began a moment ago: many honest
    /// clients may come at once.
    pub(super) fn begin_opening(&self) -> Opening {
        let thread = self.context.local.thread.clone();
        let connection = self.context.connection.clone();
        let source = self.context.source();
        let turn = thread.turn();
        let since = Instant::now();
        source.openings.set(source.openings.get() + 1);
        let mut openings = thread.openings.borrow_mut();
        openings.push_back(OpeningEntry { turn, since, source: source.clone(), connection });
        let greedy = source.is_limited() && source.openings.get() > thread.quotas.source_openings;
        let oldest = match greedy {
            true => openings.iter().find(|one| Rc::ptr_eq(&one.source, &source)),
            false if openings.len() > thread.quotas.openings => openings.front(),
            false => None,
        };
        let old = oldest.filter(|one| since.duration_since(one.since) >= OPENING);
        let old = old.map(|one| one.connection.clone());
        drop(openings);
        old.into_iter().for_each(|connection| connection.advance(Phase::Over));
        Opening { thread, source, turn }
    }
}

/// A connection that has not finished its PROXY header or TLS handshake, as long as this lives.
pub(super) struct Opening {
    thread: Rc<Thread>,
    source: Rc<Source>,
    turn: u64,
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.source.openings.set(self.source.openings.get() - 1);
        let mut openings = self.thread.openings.borrow_mut();
        // They are in the order of their turns.
        if let Ok(index) = openings.binary_search_by_key(&self.turn, |one| one.turn) {
            openings.remove(index);
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let local = &self.context.local;
        local.connections.borrow_mut().take(self.slot);
        local.thread.connections.borrow_mut().take(self.thread_slot);
        local.thread.sources.leave(&self.context.source());
        local.counters().active.sub(1);
    }
}
