//! What does the code of one connection get of the engine? The thread it runs on, its listener's counters, and word when it
//! is to end.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as Task, Poll, Waker};
use std::time::Duration;

use fairlead_kernel::relay::Pipe;

use super::Options;
use super::backend_permits::BackendPermits;
use super::counters::Counters;
use super::listener::Local;
use super::memory::ThreadMemory;
use super::quotas::Quotas;
use super::slots::Slots;
use super::sources::{Openings, Source, Sources};
use crate::backends::Chosen;
use crate::serving::Current;

/// What the code of a connection gets. Cheap to clone; stays on its thread.
#[derive(Debug, Clone)]
pub struct Context {
    pub(super) local: Rc<Local>,
    pub(super) connection: Rc<Connection>,
}

impl Context {
    /// The counters of the listener on this thread.
    pub fn counters(&self) -> &Counters {
        self.local.counters()
    }

    /// The thread it runs on.
    pub fn thread(&self) -> &Rc<Thread> {
        &self.local.thread
    }

    /// The thread's one value of a type: see [`Thread::own`].
    pub fn own<T: Default + 'static>(&self) -> Rc<T> {
        self.local.thread.own()
    }

    /// What the listener serves.
    pub fn current(&self) -> &Arc<Current> {
        &self.local.shared.current
    }

    /// Comes when no new requests are to be taken: the listener or the program ends. What runs may go on until the engine
    /// drops it, when the time for draining is over.
    pub async fn draining(&self) {
        poll_fn(|cx| self.connection.poll_phase(Phase::Draining, cx)).await;
    }

    /// Returns the client address that the connection is counted for.
    pub(crate) fn source(&self) -> Rc<Source> {
        self.connection.source.borrow().clone()
    }

    /// Records that the connection waits for the first byte of a request: it may be closed to make
    /// room for another.
    pub(crate) fn rests(&self) {
        self.connection.resting.set(Some(self.local.thread.turn()));
    }

    /// Records that the connection has work again.
    pub(crate) fn works(&self) {
        self.connection.resting.set(None);
    }

    /// Whether no new requests are to be taken.
    pub fn is_draining(&self) -> bool {
        self.connection.phase.get() >= Phase::Draining
    }

    /// Ready when it is at least so far.
    pub(crate) fn poll_phase(&self, phase: Phase, cx: &mut Task<'_>) -> Poll<()> {
        self.connection.poll_phase(phase, cx)
    }

    /// It goes to this backend to its end, and ends when that has left and its time is over.
    pub(crate) fn bind(&self, backend: Chosen) {
        // It may have left while it was dialled.
        let late = backend.is_gone();
        *self.connection.backend.borrow_mut() = Some(backend);
        if late {
            self.local.look_for_orphans();
        }
    }
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Goes on.
    Open,
    /// Ends when it can.
    Draining,
    /// Ends now.
    Over,
}

/// One connection as its listener sees it.
#[derive(Debug)]
pub(crate) struct Connection {
    phase: Cell<Phase>,
    /// Who waits for the next phase: most often one task, which has a place of its own.
    waker: RefCell<Option<Waker>>,
    others: RefCell<Vec<Waker>>,
    /// The backend it is bound to, if it is to end with that.
    backend: RefCell<Option<Chosen>>,
    /// The client address it is counted for.
    pub(super) source: RefCell<Rc<Source>>,
    /// The turn of the thread since which it waits for a request, if it does.
    pub(super) resting: Cell<Option<u64>>,
}

impl Connection {
    pub(super) fn new(source: Rc<Source>) -> Connection {
        Connection {
            phase: Cell::new(Phase::Open),
            waker: RefCell::default(),
            others: RefCell::default(),
            backend: RefCell::new(None),
            source: RefCell::new(source),
            resting: Cell::new(None),
        }
    }

    /// How long ago its backend left, if it has.
    pub(super) fn orphaned(&self) -> Option<Duration> {
        let goes_on = self.phase.get() < Phase::Over;
        self.backend.borrow().as_ref().filter(|_| goes_on).and_then(Chosen::gone_for)
    }

    /// Tells it how far it is; there is no way back.
    pub(super) fn advance(&self, to: Phase) {
        if self.phase.get() < to {
            self.phase.set(to);
            let (first, others) = (self.waker.take(), self.others.take());
            first.into_iter().chain(others).for_each(Waker::wake);
        }
    }

    /// Ready when it is at least so far.
    fn poll_phase(&self, phase: Phase, cx: &mut Task<'_>) -> Poll<()> {
        if self.phase.get() >= phase {
            return Poll::Ready(());
        }
        let mut first = self.waker.borrow_mut();
        match &*first {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            Some(_) => self.wait_too(cx.waker()),
            None => *first = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Connection {
    fn wait_too(&self, waker: &Waker) {
        let mut others = self.others.borrow_mut();
        if !others.iter().any(|other| other.will_wake(waker)) {
            others.push(waker.clone());
        }
    }
}

/// How many bytes connections are read with where they are copied. One such buffer serves all connections of a thread: none
/// keeps it across a wait.
const SCRATCH: usize = 64 << 10;
/// How many empty pipes a thread keeps for the next connection that moves much.
const PIPES: usize = 64;

/// Number of resting connections that are compared to find the one to close for another.
const SAMPLE: usize = 32;

/// Closes a connection that waits for a request, of the client with the most connections among
/// some, so that another can be accepted. Returns false if there is none.
pub(super) fn close_resting(connections: &RefCell<Slots<Connection>>) -> bool {
    let victim = {
        let connections = connections.borrow();
        let resting = connections.sample(SAMPLE).filter_map(|one| {
            let since = one.resting.get().filter(|_| one.phase.get() < Phase::Over)?;
            Some((usize::MAX - one.source.borrow().connections.get(), since, one))
        });
        resting.min_by_key(|(fewest, since, _)| (*fewest, *since)).map(|(_, _, one)| one.clone())
    };
    let Some(victim) = victim else { return false };
    victim.advance(Phase::Over);
    true
}

/// What the connections of a thread share.
pub struct Thread {
    pub(super) index: usize,
    pub(super) options: Arc<Options>,
    pub(super) quotas: Arc<Quotas>,
    pub(crate) memory: ThreadMemory,
    pub(crate) backends: Rc<BackendPermits>,
    pub(super) sources: Sources,
    pub(super) openings: Openings,
    pub(super) connections: RefCell<Slots<Connection>>,
    /// Number of listeners that accept.
    pub(super) listeners: Cell<usize>,
    /// Counts events, to tell which of two came first.
    turn: Cell<u64>,
    scratch: RefCell<Box<[u8]>>,
    pipes: RefCell<Vec<CountedPipe>>,
    pub(crate) pipe_count: PipeCount,
    things: RefCell<HashMap<TypeId, Rc<dyn Any>>>,
}

impl Thread {
    pub(super) fn new(index: usize, options: Arc<Options>, quotas: Arc<Quotas>) -> Thread {
        Thread {
            index,
            memory: ThreadMemory::new(quotas.memory.clone()),
            backends: Rc::new(BackendPermits::new(&quotas)),
            sources: Sources::default(),
            openings: RefCell::default(),
            connections: RefCell::default(),
            listeners: Cell::new(0),
            turn: Cell::new(0),
            options,
            scratch: RefCell::new(vec![0; SCRATCH].into_boxed_slice()),
            pipes: RefCell::new(Vec::new()),
            pipe_count: PipeCount { used: Rc::default(), most: quotas.pipes },
            things: RefCell::new(HashMap::new()),
            quotas,
        }
    }

    /// Returns the number of the next event.
    pub(super) fn turn(&self) -> u64 {
        let turn = self.turn.get() + 1;
        self.turn.set(turn);
        turn
    }

    /// How the engine was started.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The thread's one value of a type, made when it is first asked for: backend connections kept open, for example.
    pub fn own<T: Default + 'static>(&self) -> Rc<T> {
        let mut things = self.things.borrow_mut();
        let thing = things.entry(TypeId::of::<T>()).or_insert_with(|| Rc::new(T::default())).clone();
        thing.downcast().expect("it is kept under its own type")
    }

    /// Lends the buffer all connections of the thread read into. What is in it is gone afterwards.
    ///
    /// # Panics
    /// If `work` asks for it again.
    pub fn with_scratch<T>(&self, work: impl FnOnce(&mut [u8]) -> T) -> T {
        work(&mut self.scratch.borrow_mut())
    }

    /// Returns an empty pipe, or `None` if the thread or the process may not have more.
    pub(crate) fn take_pipe(&self) -> Option<CountedPipe> {
        self.pipes.borrow_mut().pop().or_else(|| self.pipe_count.open())
    }

    /// Takes a pipe back. One that is not empty cannot be used again.
    pub(crate) fn give_pipe(&self, pipe: CountedPipe) {
        let mut pipes = self.pipes.borrow_mut();
        if pipe.held() == 0 && pipes.len() < PIPES {
            pipes.push(pipe);
        }
    }
}

/// The pipes of a thread: each has two descriptors.
#[derive(Debug, Clone, Default)]
pub(crate) struct PipeCount {
    used: Rc<Cell<usize>>,
    most: usize,
}

/// A pipe that is counted until it is closed.
#[derive(Debug)]
pub(crate) struct CountedPipe {
    pipe: Pipe,
    used: Rc<Cell<usize>>,
}

impl PipeCount {
    /// Opens a pipe, unless the thread or the process may not have more.
    pub(crate) fn open(&self) -> Option<CountedPipe> {
        if self.used.get() >= self.most {
            return None;
        }
        let pipe = Pipe::new().ok()?;
        self.used.set(self.used.get() + 1);
        Some(CountedPipe { pipe, used: self.used.clone() })
    }
}

impl Drop for CountedPipe {
    fn drop(&mut self) {
        self.used.set(self.used.get() - 1);
    }
}

impl std::ops::Deref for CountedPipe {
    type Target = Pipe;

    fn deref(&self) -> &Pipe {
        &self.pipe
    }
}

impl std::ops::DerefMut for CountedPipe {
    fn deref_mut(&mut self) -> &mut Pipe {
        &mut self.pipe
    }
}

impl std::fmt::Debug for Thread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Thread")
            .field("index", &self.index)
            .field("connections", &self.connections.borrow().len())
            .finish_non_exhaustive()
    }
}
