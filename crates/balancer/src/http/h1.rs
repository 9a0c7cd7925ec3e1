//! A client's connection of HTTP/1: its requests one after the other, each to the backend that is next.
//!
//! ```text
//! wait for a request -> read its head -> exchange with a backend -> wait ...
//!      | idle, drained        | refused            | close, age, drain
//!      v                      v                    v
//!     end                answer and part        part (what the client still sends is read and dropped for a moment)
//! ```

mod bridge;
mod exchange;
mod upgrade;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

use super::attempts::Failure;
use super::buffer::{Inlet, Size};
use super::dial::Shared;
use super::h2::PREFACE;
use super::head;
use super::record::Record;
use super::refusal::Refusal;
use super::request::{self, Asking, Method, Note, Request};
use super::watch::{TimedOut, Watch};
use super::{Connection, Opening};
use crate::engine::memory::MemoryHold;
use crate::serving::Serving;
use crate::spec::Speaks;

/// How long a client may take for a head, from its first byte on.
const HEAD: Duration = Duration::from_secs(10);
/// How long a client is listened to after it was told that the connection ends, and how much of it.
const PARTING: Duration = Duration::from_secs(2);
const PARTING_BYTES: usize = 1 << 20;

/// Maximum time that a request waits for memory before it is refused, and the time between two
/// attempts. Requests of clients that do not read are ended within a second (`engine::memory`).
const ADMISSION: Duration = Duration::from_secs(2);
const ADMISSION_RETRY: Duration = Duration::from_millis(20);

/// A client's connection.
pub(super) struct Session<S> {
    stream: S,
    inlet: Inlet,
    watch: Watch,
    connection: Connection,
    shared: Rc<Shared>,
    /// The time without a byte after which it ends, as the last request found it.
    idle: Duration,
    born: Instant,
}

/// What follows a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The next one.
    Request,
    /// Nothing: the client has sent all it was asked for.
    Close,
    /// Nothing, but the client may still be sending.
    Part,
    /// Nothing, and nobody is to take what was sent for whole.
    Abort,
}

/// A request with its head for the backend.
struct Ready {
    request: Request,
    head: Vec<u8>,
    serving: Arc<Serving>,
    record: Option<Box<Record>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + 'static> Session<S> {
    /// A connection of which nothing was read.
    pub(super) fn new(stream: S, connection: Connection, shared: Rc<Shared>) -> Session<S> {
        let idle = connection.current.get().spec.idle;
        let held = MemoryHold::new(connection.context.thread(), connection.context.source(), None);
        let watch = Watch::new(idle, &connection.context, held);
        Session { stream, inlet: Inlet::default(), watch, connection, shared, idle, born: Instant::now() }
    }

    /// Waits for the first bytes, to see what they are.
    pub(super) async fn opening(&mut self) -> Opening {
        if self.connection.tls.is_some() || !self.wait().await {
            return Opening::Other;
        }
        let mut begun = false;
        loop {
            let bytes = self.inlet.bytes();
            let length = bytes.len().min(PREFACE.len());
            match bytes[..length] == PREFACE[..length] {
                false => return Opening::Other,
                true if length == PREFACE.len() => return Opening::Http2,
                true => {}
            }
            if !begun {
                begun = true;
                self.watch.start(HEAD.min(self.idle));
            }
            if !matches!(self.more().await, Ok(Ok(1..))) {
                return Opening::Other;
            }
        }
    }

    /// What was read, and the rest of it.
    pub(super) fn into_parts(mut self) -> (Vec<u8>, S, Connection, Rc<Shared>) {
        let first = self.inlet.bytes().to_vec();
        self.inlet.release(&self.shared.buffers);
        (first, self.stream, self.connection, self.shared)
    }

    /// Reads more, as long as there is time.
    async fn more(&mut self) -> Result<io::Result<usize>, TimedOut> {
        let Session { stream, inlet, watch, shared, .. } = self;
        poll_fn(|task| match inlet.poll_fill(task, stream, Size::Small, &shared.buffers) {
            Poll::Ready(read) => Poll::Ready(Ok(read)),
            Poll::Pending => watch.poll(task).map(Err),
        })
        .await
    }

    /// Serves it to its end.
    pub(super) async fn run(&mut self) {
        loop {
            match self.turn().await {
                Next::Request => {}
                Next::Close if self.connection.tls.is_none() => return,
                Next::Close => return Box::pin(self.part(false)).await,
                Next::Part => return Box::pin(self.part(true)).await,
                Next::Abort => return,
            }
        }
    }

    /// Waits until there is memory for a request. Returns false if there is none within
    /// [`ADMISSION`].
    async fn admitted_in_time(&self, needed: usize) -> bool {
        let until = Instant::now() + ADMISSION;
        while Instant::now() < until {
            tokio::time::sleep(ADMISSION_RETRY).await;
            if self.watch.held.admits(needed) {
                return true;
            }
        }
        false
    }

    async fn turn(&mut self) -> Next {
        if self.inlet.is_empty() && !self.wait().await {
            return Next::Close;
        }
        let serving = self.connection.current.get();
        self.idle = serving.spec.idle;
        let mut note = serving.log.is_some().then(Note::default);
        let mut head = self.shared.buffers.head();
        match self.read(&serving, note.as_mut(), &mut head).await {
            Ok(Some(request)) => {
                let record = note.map(|note| Record::new(&self.connection, note));
                self.connection.context.works();
                let needed = head.capacity();
                if !self.watch.held.admits(needed) && !Box::pin(self.admitted_in_time(needed)).await {
                    let goes_on = Box::pin(self.refuse(Refusal::FULL, Some(&request), record, &serving)).await;
                    return if goes_on { Next::Request } else { Next::Part };
                }
                let ready = Ready { request, head, serving, record };
                // The task of a connection is as large as the largest thing it may do.
                let next = match ready.serving.listener.speaks {
                    Speaks::H2c => Box::pin(self.bridge(ready)).await,
                    _ => self.exchange(ready).await,
                };
                self.watch.release();
                next
            }
            Ok(None) => Next::Abort,
            Err(refusal) => {
                let record = note.map(|note| Record::new(&self.connection, note));
                Box::pin(self.refuse(refusal, None, record, &serving)).await;
                Next::Part
            }
        }
    }

    /// Waits for the first byte of a request; whether it came.
    async fn wait(&mut self) -> bool {
        let Session { stream, inlet, watch, connection, shared, idle, .. } = self;
        connection.context.rests();
        let mut draining = pin!(connection.context.draining());
        let came = watch.limit(*idle, |task, _| {
            if let Poll::Ready(read) = inlet.poll_fill(task, stream, Size::Small, &shared.buffers) {
                return Poll::Ready(matches!(read, Ok(1..)));
            }
            draining.as_mut().poll(task).map(|()| false)
        });
        came.await == Ok(true)
    }

    /// Reads the head of a request, of which there are some bytes; `None`: the client went away.
    async fn read(
        &mut self,
        serving: &Serving,
        mut note: Option<&mut Note>,
        head: &mut Vec<u8>,
    ) -> Result<Option<Request>, Refusal> {
        let trusted = !serving.trusted.is_empty() && self.connection.forwarded.trusted(&serving.trusted);
        let deadline = HEAD.min(serving.spec.idle);
        let (mut seen, mut begun) = (0, false);
        loop {
            if seen == 0 || head::may_be_whole(self.inlet.bytes(), seen) || self.inlet.bytes().len() >= head::LONGEST {
                let forwarded = &self.connection.forwarded;
                let longest_body = self.connection.context.thread().options().body;
                let asking = Asking { forwarded, trusted, connect: serving.spec.connect, longest_body };
                let read = request::read(self.inlet.bytes(), &asking, note.as_deref_mut(), head)?;
                if let Some(request) = read {
                    self.inlet.consume(request.length, &self.shared.buffers);
                    self.watch.held.waits_for_client(false);
                    return Ok(Some(request));
                }
            }
            seen = self.inlet.bytes().len();
            let held = &self.watch.held;
            held.set(self.inlet.capacity());
            held.waits_for_client(true);
            if !held.admits(0) {
                return Err(Refusal::FULL);
            }
            if !begun {
                begun = true;
                self.watch.start(deadline);
            }
            match self.more().await {
                Ok(Ok(1..)) => {}
                Ok(_) => return Ok(None),
                Err(_) => return Err(Refusal::SLOW),
            }
        }
    }

    /// Whether the connection may go on after a request that leaves it in order.
    fn goes_on(&self, serving: &Serving) -> bool {
        let aged = serving.spec.age.is_some_and(|age| self.born.elapsed() >= age);
        !aged && !self.connection.context.is_draining()
    }

    /// Writes something to the client.
    async fn say(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let saying = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        match tokio::time::timeout(self.idle, saying).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Failure::Client),
        }
    }

    /// Writes an interim answer to the client within the time of its request.
    async fn say_interim(&mut self, bytes: &[u8], started: &mut bool) -> Result<(), Failure> {
        let Session { stream, watch, idle, .. } = self;
        let mut written = 0;
        let saying = watch.limit_from(*idle, started, |task, watch| {
            while written < bytes.len() {
                match Pin::new(&mut *stream).poll_write(task, &bytes[written..]) {
                    Poll::Ready(Ok(count @ 1..)) => written += count,
                    Poll::Ready(_) => return Poll::Ready(Err(Failure::Client)),
                    Poll::Pending => {
                        watch.held.waits_for_client(true);
                        return Poll::Pending;
                    }
                }
            }
            Pin::new(&mut *stream).poll_flush(task).map_err(|_| Failure::Client)
        });
        saying.await.unwrap_or(Err(Failure::Client))
    }

    /// Answers a request ourselves; whether the connection can go on.
    async fn refuse(
        &mut self,
        refusal: Refusal,
        request: Option<&Request>,
        record: Option<Box<Record>>,
        serving: &Serving,
    ) -> bool {
        let head_only = request.is_some_and(|request| request.method == Method::Head);
        let goes_on =
            request.is_some_and(|request| request.keep && request.body == head::Framing::Empty && !request.old);
        let goes_on = goes_on && self.goes_on(serving);
        let answer = refusal.answer(head_only, goes_on);
        let written = self.say(&answer).await.is_ok();
        self.connection.context.counters().answered(refusal.status);
        if let Some(record) = record {
            record.refused(refusal.status, answer.len() as u64, serving);
        }
        written && goes_on
    }

    /// Ends a connection so that the client gets what was sent to it: bytes of it that nobody reads would make the kernel reset
    /// the connection, and take the answer with it.
    async fn part(&mut self, listening: bool) {
        let Session { stream, inlet, watch, shared, .. } = self;
        inlet.release(&shared.buffers);
        let mut dropped = 0;
        let mut shut = false;
        let parting = watch.limit(PARTING, |task: &mut Task<'_>, _| {
            if !shut {
                match Pin::new(&mut *stream).poll_shutdown(task) {
                    Poll::Ready(Ok(())) if listening => shut = true,
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
            while dropped < PARTING_BYTES {
                match inlet.poll_fill(task, stream, Size::Small, &shared.buffers) {
                    Poll::Ready(Ok(count @ 1..)) => dropped += count,
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
                inlet.release(&shared.buffers);
            }
            Poll::Ready(())
        });
        // Whoever is still sending then was warned.
        let _ = parting.await;
    }
}
