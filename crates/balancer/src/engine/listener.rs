//! One listener: what all threads share of it, and what each thread has of it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{Instant, sleep_until};

use super::bond::Bound;
use super::context::{Connection, Context, Phase, Thread};
use super::counters::{Counters, Totals};
use crate::backends::Backends;
use crate::serving::Current;

/// How long what has no time to drain still has: long enough for an exchange that is under way, as good as at once for
/// connections that stay.
const PARTING: Duration = Duration::from_secs(1);

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

    /// Whether one more connection may be.
    pub(super) fn has_room(&self) -> bool {
        let options = &self.thread.options;
        let fits = |count: usize, most: usize| count < (most / options.threads).max(1);
        fits(self.thread.connections.get(), options.connections)
            && fits(self.connections.borrow().used, options.listener_connections)
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

    /// Writes a new connection down.
    pub(super) fn open(self: &Rc<Self>) -> Opened {
        let connection = Rc::new(Connection::new());
        if self.draining.get() {
            connection.advance(Phase::Draining);
        }
        let slot = self.connections.borrow_mut().put(connection.clone());
        self.thread.connections.set(self.thread.connections.get() + 1);
        self.counters().accepted.add(1);
        self.counters().active.add(1);
        Opened { context: Context { local: self.clone(), connection }, slot }
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
}

impl Drop for Opened {
    fn drop(&mut self) {
        let local = &self.context.local;
        local.connections.borrow_mut().take(self.slot);
        local.thread.connections.set(local.thread.connections.get() - 1);
        local.counters().active.sub(1);
    }
}

/// Connections or bonds in places that are used again.
#[derive(Debug)]
struct Slots<T> {
    all: Vec<Option<Rc<T>>>,
    free: Vec<usize>,
    used: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { all: Vec::new(), free: Vec::new(), used: 0 }
    }
}

impl<T> Slots<T> {
    fn put(&mut self, one: Rc<T>) -> usize {
        self.used += 1;
        match self.free.pop() {
            Some(slot) => {
                self.all[slot] = Some(one);
                slot
            }
            None => {
                self.all.push(Some(one));
                self.all.len() - 1
            }
        }
    }

    fn take(&mut self, slot: usize) {
        if self.all.get_mut(slot).and_then(Option::take).is_some() {
            self.used -= 1;
            self.free.push(slot);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Rc<T>> {
        self.all.iter().flatten()
    }
}
