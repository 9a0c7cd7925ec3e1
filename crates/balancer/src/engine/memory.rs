//! Memory that the connections of a thread hold while a client or a backend is slow: requests under
//! way, heads, and bytes that wait to be written.
//!
//! ```text
//! in use:  0 ----------------------- 2/3 ------------------- 7/8 ------------------------ all
//!          everything is admitted    | only what is small    | what is small, of clients  | nothing
//!                                    | the stalled are ended | that hold little           |
//! ```
//! What is in use is always counted; a task asks for admission before it reads more. A client that has
//! to wait for memory ends an exchange whose client has taken or sent nothing for a second,
//! so that one that does not read makes room for others.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use fairlead_runtime::budget::{Budget, Permit};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::context::Thread;
use super::slots::Slots;
use super::sources::Source;

/// Bytes that an exchange may hold even when most of the memory is in use.
const SMALL: u64 = 40 << 10;
/// Part of all memory that a client may hold and still use the last eighth of it: clients that hold
/// more cannot keep those out that hold next to nothing.
const LITTLE: u64 = 64;
/// Step in which a thread draws from the memory of the process.
const STEP: u64 = 256 << 10;
/// Time without progress after which an exchange may be ended to make room.
const STALLED: Duration = Duration::from_secs(1);
/// Number of exchanges that are compared to find the one that has stalled longest.
const SAMPLE: usize = 32;
/// Memory of a frame that waits in the queue of HTTP/2, beside its bytes.
const FRAME: u64 = 256;
/// Maximum bytes of answers that wait in one connection of HTTP/2 for its socket.
const UNSENT: u64 = 1 << 20;
/// Time between two log lines about ended exchanges.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The memory of a thread's exchanges.
#[derive(Debug)]
pub(crate) struct ThreadMemory {
    budget: Budget,
    /// Drawn from the budget of the process, in steps.
    drawn: RefCell<Permit>,
    used: Cell<u64>,
    exchanges: RefCell<Slots<Exchange>>,
    /// Exchanges ended for want of memory or backend connections, and the number and time of the
    /// last log line.
    ended: Cell<u64>,
    logged: Cell<Option<(Instant, u64)>>,
}

/// Memory that one exchange of a client holds: a request of HTTP/1, or a stream of HTTP/2.
#[derive(Debug)]
pub(crate) struct Exchange {
    thread: Rc<Thread>,
    source: Rc<Source>,
    outbox: Option<Rc<Outbox>>,
    held: Cell<u64>,
    /// The part of `held` that the task itself sets.
    own: Cell<u64>,
    /// Since when the client is the one that is waited for.
    stalled: Cell<Option<Instant>>,
    /// Since when the exchange waits for memory.
    starved: Cell<Option<Instant>>,
    ended: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// An exchange that is known to its thread as long as this lives.
#[derive(Debug)]
pub(crate) struct MemoryHold {
    exchange: Rc<Exchange>,
    slot: usize,
}

/// Bytes that wait in one connection of HTTP/2 for its socket.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    unsent: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
    /// Heads, which are counted until the socket has taken all that was written.
    heads: RefCell<Vec<Charge>>,
}

/// The socket of a connection of HTTP/2, which tells its outbox when all was written.
#[derive(Debug)]
pub(crate) struct TrackedSocket<S> {
    stream: S,
    outbox: Rc<Outbox>,
    /// Bytes read since others last had their turn.
    read: usize,
}

/// Maximum bytes that a connection of HTTP/2 reads before the tasks of its streams have their turn.
/// h2 decodes all that has come, and a byte of HPACK may become a field of 104 bytes: what that
/// adds up to is seen by no stream before.
const READ: usize = 64 << 10;

/// Bytes for a stream of HTTP/2, counted until they are written or dropped.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    bytes: Bytes,
    /// Returned when the bytes are dropped.
    _charge: Option<Charge>,
}

#[derive(Debug)]
struct Charge {
    exchange: Rc<Exchange>,
    outbox: Option<Rc<Outbox>>,
    amount: u64,
}

impl ThreadMemory {
    pub(super) fn new(budget: Budget) -> ThreadMemory {
        let drawn = budget.acquire_unattributed(0).expect("nothing is always free");
        ThreadMemory {
            budget,
            drawn: RefCell::new(drawn),
            used: Cell::new(0),
            exchanges: RefCell::default(),
            ended: Cell::new(0),
            logged: Cell::new(None),
        }
    }

    fn add(&self, amount: u64) {
        let used = self.used.get() + amount;
        self.used.set(used);
        let mut drawn = self.drawn.borrow_mut();
        if used > drawn.amount() {
            // Without a permit the amount is still counted here, and nothing more is admitted.
            let _ = drawn.resize(used.next_multiple_of(STEP)).or_else(|_| drawn.resize(used));
        }
    }

    fn sub(&self, amount: u64) {
        let used = self.used.get().saturating_sub(amount);
        self.used.set(used);
        let mut drawn = self.drawn.borrow_mut();
        if drawn.amount() > used + 2 * STEP {
            let _ = drawn.resize(used.next_multiple_of(STEP));
        }
    }

    /// True if so much more stays below a limit.
    fn fits(&self, more: u64, limit: u64) -> bool {
        let others = self.budget.in_use().saturating_sub(self.drawn.borrow().amount());
        others + self.used.get() + more <= limit
    }

    fn most(&self) -> u64 {
        self.budget.limits().total
    }

    /// Ends the exchange that has stalled longest of some, if it has stalled long enough. `source`:
    /// of this client only.
    pub(crate) fn end_stalled(&self, source: Option<&Rc<Source>>) {
        self.end_stalled_for(STALLED, 0, source, None);
    }

    /// Ends the exchange that has waited longest, for its client or for memory, of some that hold
    /// so much and have waited so long. Returns false if there is none.
    fn end_stalled_for(
        &self,
        least: Duration,
        holding: u64,
        source: Option<&Rc<Source>>,
        except: Option<&Rc<Exchange>>,
    ) -> bool {
        let now = Instant::now();
        let victim = {
            let exchanges = self.exchanges.borrow();
            let stalled = exchanges.sample(SAMPLE).filter_map(|one| {
                let mine = source.is_none_or(|source| Rc::ptr_eq(source, &one.source));
                let other = except.is_none_or(|except| !Rc::ptr_eq(except, one));
                let since = one.stalled.get().into_iter().chain(one.starved.get()).min()?;
                let waited = now.duration_since(since) >= least;
                let victim = mine && other && waited && one.held.get() >= holding && !one.ended.get();
                victim.then_some((since, one))
            });
            stalled.min_by_key(|(since, _)| *since).map(|(_, one)| one.clone())
        };
        victim.iter().for_each(|victim| self.end(victim, now));
        victim.is_some()
    }

    /// Ends the exchange that holds most of some, one whose client is waited for first: more is in
    /// use than there is.
    fn end_largest(&self) {
        let victim = {
            let exchanges = self.exchanges.borrow();
            let large = exchanges.sample(SAMPLE).filter(|one| one.held.get() > SMALL && !one.ended.get());
            large.max_by_key(|one| (one.stalled.get().is_some(), one.held.get())).cloned()
        };
        victim.into_iter().for_each(|victim| self.end(&victim, Instant::now()));
    }

    fn end(&self, victim: &Exchange, now: Instant) {
        victim.ended.set(true);
        victim.waker.take().into_iter().for_each(Waker::wake);
        self.ended.set(self.ended.get() + 1);
        let before = match self.logged.get() {
            Some((at, _)) if now.duration_since(at) < LOG_INTERVAL => return,
            Some((_, count)) => count,
            None => 0,
        };
        self.logged.set(Some((now, self.ended.get())));
        let count = self.ended.get() - before;
        tracing::warn!("balancer: buffers or backend connections are used up; ended {count} requests of slow clients");
    }
}

impl Exchange {
    fn add(&self, amount: u64) {
        self.held.set(self.held.get() + amount);
        self.source.held.set(self.source.held.get() + amount);
        self.thread.memory.add(amount);
    }

    fn sub(&self, amount: u64) {
        self.held.set(self.held.get().saturating_sub(amount));
        self.source.held.set(self.source.held.get().saturating_sub(amount));
        self.thread.memory.sub(amount);
    }
}

impl MemoryHold {
    /// Begins to count what an exchange holds.
    pub(crate) fn new(thread: &Rc<Thread>, source: Rc<Source>, outbox: Option<Rc<Outbox>>) -> MemoryHold {
        let exchange = Rc::new(Exchange {
            thread: thread.clone(),
            source,
            outbox,
            held: Cell::new(0),
            own: Cell::new(0),
            stalled: Cell::new(None),
            starved: Cell::new(None),
            ended: Cell::new(false),
            waker: RefCell::default(),
        });
        let slot = thread.memory.exchanges.borrow_mut().put(exchange.clone());
        MemoryHold { exchange, slot }
    }

    /// Counts what the task holds now, beside chunks that were sent.
    pub(crate) fn set(&self, amount: usize) {
        let amount = amount as u64;
        let own = self.exchange.own.replace(amount);
        if amount > own {
            self.exchange.add(amount - own);
            let memory = &self.exchange.thread.memory;
            if !memory.fits(0, memory.most()) {
                memory.end_largest();
            }
        } else if amount < own {
            self.exchange.sub(own - amount);
        }
    }

    /// The source the exchange is counted for.
    pub(crate) fn source(&self) -> &Rc<Source> {
        &self.exchange.source
    }

    /// Returns true if the exchange may hold so many more bytes. If not, asking again later may
    /// help.
    pub(crate) fn admits(&self, more: usize) -> bool {
        let Exchange { thread, source, held, .. } = &*self.exchange;
        let memory = &thread.memory;
        let more = more as u64;
        let small = held.get() + more <= SMALL;
        let most = memory.most();
        let little = source.held.get() + more <= most / LITTLE;
        let limit = match (small, little) {
            (true, true) => most,
            (true, false) => most / 8 * 7,
            (false, _) => most / 3 * 2,
        };
        // Once half of the memory is in use, one client address may have half of it.
        let much = source.held.get() + more > most / 2 / thread.options.threads as u64;
        let greedy = source.is_limited() && much && !memory.fits(more, most / 2);
        let fits = memory.fits(more, limit) && !greedy;
        let admitted = match (fits, small) {
            (true, _) => true,
            // A small exchange takes the place of one that waits and holds as much. What that held
            // comes back when its task runs, which is before the next event of this thread is read.
            (false, true) => {
                let source = greedy.then_some(source);
                memory.end_stalled_for(Duration::ZERO, more, source, Some(&self.exchange))
            }
            (false, false) => {
                memory.end_stalled(None);
                false
            }
        };
        match (admitted, self.exchange.starved.get()) {
            (true, Some(_)) => self.exchange.starved.set(None),
            (false, None) => self.exchange.starved.set(Some(Instant::now())),
            _ => {}
        }
        admitted
    }

    /// Records whether the client is the one that is waited for: to take bytes, or to send those it
    /// announced.
    pub(crate) fn waits_for_client(&self, waits: bool) {
        match (waits, self.exchange.stalled.get()) {
            (true, None) => self.exchange.stalled.set(Some(Instant::now())),
            (false, Some(_)) => self.exchange.stalled.set(None),
            _ => {}
        }
    }

    /// Records that the client has taken or sent something.
    pub(crate) fn progressed(&self) {
        if self.exchange.stalled.get().is_some() {
            self.exchange.stalled.set(Some(Instant::now()));
        }
    }

    /// Ready when the exchange is to end because others need what it holds.
    pub(crate) fn poll_ended(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.exchange.ended.get() {
            return Poll::Ready(());
        }
        let mut waker = self.exchange.waker.borrow_mut();
        match &mut *waker {
            Some(known) => known.clone_from(context.waker()),
            None => *waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Ready when the connection has room for more answers. Only exchanges of HTTP/2 wait for it.
    pub(crate) fn poll_outbox(&self, context: &mut Context<'_>) -> Poll<()> {
        let Some(outbox) = &self.exchange.outbox else { return Poll::Ready(()) };
        if outbox.unsent.get() < UNSENT {
            return Poll::Ready(());
        }
        outbox.waiting.borrow_mut().push(context.waker().clone());
        Poll::Pending
    }

    /// Returns bytes for the client that are counted until they are written.
    pub(crate) fn chunk(&self, bytes: Bytes) -> Chunk {
        let charge = self.charge(bytes.len(), self.exchange.outbox.clone());
        Chunk { bytes, _charge: Some(charge) }
    }

    /// Returns bytes for a backend that are counted until they are written.
    pub(crate) fn chunk_up(&self, bytes: Bytes) -> Chunk {
        let charge = self.charge(bytes.len(), None);
        Chunk { bytes, _charge: Some(charge) }
    }

    /// Counts the head of an answer of HTTP/2 until it is written.
    pub(crate) fn count_head(&self, length: usize) {
        if let Some(outbox) = &self.exchange.outbox {
            let charge = self.charge(length, Some(outbox.clone()));
            outbox.heads.borrow_mut().push(charge);
        }
    }

    /// True if the connection is slow to take what was written: what is only a courtesy is left
    /// out.
    pub(crate) fn is_behind(&self) -> bool {
        self.exchange.outbox.as_ref().is_some_and(|outbox| outbox.unsent.get() > UNSENT / 4)
    }

    fn charge(&self, length: usize, outbox: Option<Rc<Outbox>>) -> Charge {
        let amount = length as u64 + FRAME;
        self.exchange.add(amount);
        if let Some(outbox) = &outbox {
            outbox.unsent.set(outbox.unsent.get() + amount);
        }
        Charge { exchange: self.exchange.clone(), outbox, amount }
    }
}

impl<S> TrackedSocket<S> {
    /// Wraps the socket of a connection of HTTP/2.
    pub(crate) fn new(stream: S, outbox: Rc<Outbox>) -> TrackedSocket<S> {
        TrackedSocket { stream, outbox, read: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TrackedSocket<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.read >= READ {
            this.read = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = into.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(context, into);
        this.read = if polled.is_pending() { 0 } else { this.read + into.filled().len() - before };
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedSocket<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let TrackedSocket { stream, outbox, .. } = self.get_mut();
        let flushed = Pin::new(stream).poll_flush(context);
        if flushed.is_ready() {
            // Dropped after the borrow ends: a charge that is dropped wakes those that wait.
            let heads = outbox.heads.take();
            drop(heads);
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

impl<S> Drop for TrackedSocket<S> {
    fn drop(&mut self) {
        // A charge keeps its exchange, which keeps the outbox.
        let heads = self.outbox.heads.take();
        drop(heads);
    }
}

impl Drop for MemoryHold {
    fn drop(&mut self) {
        self.set(0);
        self.exchange.thread.memory.exchanges.borrow_mut().take(self.slot);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.exchange.sub(self.amount);
        if let Some(outbox) = &self.outbox {
            outbox.unsent.set(outbox.unsent.get() - self.amount);
            if outbox.unsent.get() < UNSENT {
                outbox.waiting.take().into_iter().for_each(Waker::wake);
            }
        }
    }
}

/// Bytes that are not counted: there are few of them.
impl From<Bytes> for Chunk {
    fn from(bytes: Bytes) -> Chunk {
        Chunk { bytes, _charge: None }
    }
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }

    fn copy_to_bytes(&mut self, length: usize) -> Bytes {
        self.bytes.copy_to_bytes(length)
    }
}
