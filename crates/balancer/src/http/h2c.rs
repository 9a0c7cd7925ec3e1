//! Connections of HTTP/2 to backends: each carries streams of many clients, so that requests are balanced one by one although
//! connections last.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use ::h2::client::{self, ResponseFuture, SendRequest};
use ::h2::{Ping, PingPong, Reason, RecvStream, SendStream};
use ::http::{Request as Head, Response as Answer};
use foldhash::fast::RandomState;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout};

use super::attempts::Failure;
use super::dial;
use super::head;
use super::pool::Pool;
use super::refusal::Refusal;
use super::response::Interims;
use super::stream::Stream;
use crate::engine::backend_permits::BackendPermit;
use crate::engine::context::Thread;
use crate::engine::memory::{Chunk, TrackedSocket};
use crate::tls::ClientTls;

/// How many streams one connection carries; then there is another.
const STREAMS: usize = 100;
/// How long a connection lasts that carries none, and how often that is looked at.
const IDLE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_secs(10);
/// How much of answers may be on its way: of one stream, and of all.
/// The second is as much as all streams may have: a client that does not take its answers cannot
/// use up the window of others.
const WINDOW: u32 = 64 << 10;
const WINDOWS: u32 = WINDOW * STREAMS as u32;
/// Bytes of a request that wait for the socket.
const UNSENT: usize = 32 << 10;
/// Maximum frames that end streams which we have already ended.
const MISTAKES: usize = 64;

/// The connections of a thread.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    open: RefCell<HashMap<SocketAddr, Vec<Line>, RandomState>>,
    /// Who connects to a backend: others wait, and then share.
    dialling: RefCell<HashMap<SocketAddr, Rc<tokio::sync::Mutex<()>>, RandomState>>,
}

/// A connection, of which there are many handles.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    send: SendRequest<Chunk>,
    tls: Option<Arc<ClientTls>>,
    state: Rc<LineState>,
}

#[derive(Debug)]
struct LineState {
    active: Cell<usize>,
    used: Cell<Instant>,
    closed: Cell<bool>,
    /// Asks whether the other side has said what it offers; `None`: it has.
    unsettled: tokio::sync::Mutex<Option<PingPong>>,
}

/// A request that was sent: its answer, and where its body goes.
pub(crate) type Sending = (Waiting, SendStream<Chunk>);

/// An answer that is waited for. Its stream is counted as long as this lives.
#[derive(Debug)]
pub(crate) struct Waiting {
    response: ResponseFuture,
    refused: bool,
    interims: Interims,
    state: Rc<LineState>,
}

impl Lines {
    /// A connection with room for one more stream; one of its own for a client that is to be greeted for.
    pub(crate) async fn get(
        self: &Rc<Lines>,
        to: SocketAddr,
        tls: Option<&Arc<ClientTls>>,
        greeting: &[u8],
        most: Duration,
        engine: &Rc<Thread>,
        pool: &Pool,
    ) -> Result<Line, Refusal> {
        let shake = async || {
            let room = || {
                pool.close_one();
                engine.memory.end_stalled(None);
            };
            let permit = engine.backends.acquire(to, most, room).await.ok_or(Refusal::BUSY)?;
            shake(to, tls, greeting, most).await.map(|(send, connection)| (send, connection, permit))
        };
        if !greeting.is_empty() {
            let (send, connection, permit) = Box::pin(shake()).await?;
            return Ok(Line::new(send, None, (connection, permit), to, Weak::new()));
        }
        if let Some(line) = self.find(to, tls) {
            return Ok(line);
        }
        let gate = self.dialling.borrow_mut().entry(to).or_default().clone();
        let _gate = gate.lock().await;
        // While we waited somebody may have connected.
        if let Some(line) = self.find(to, tls) {
            return Ok(line);
        }
        let (send, connection, permit) = match Box::pin(shake()).await {
            Ok(shaken) => shaken,
            Err(refusal) => {
                self.give_up(to, &gate);
                return Err(refusal);
            }
        };
        let line = Line::new(send, tls.cloned(), (connection, permit), to, Rc::downgrade(self));
        self.open.borrow_mut().entry(to).or_default().push(line.clone());
        Ok(line)
    }

    fn find(&self, to: SocketAddr, tls: Option<&Arc<ClientTls>>) -> Option<Line> {
        let mut open = self.open.borrow_mut();
        let lines = open.get_mut(&to)?;
        lines.retain(|line| !line.state.closed.get());
        let same = |line: &&Line| line.tls.as_ref().map(Arc::as_ptr) == tls.map(Arc::as_ptr);
        let room = |line: &&Line| line.state.active.get() < STREAMS.min(line.send.current_max_send_streams());
        lines.iter().find(|line| same(line) && room(line)).cloned()
    }

    /// Nobody is there: the last who waits for it leaves nothing behind.
    fn give_up(&self, to: SocketAddr, gate: &Rc<tokio::sync::Mutex<()>>) {
        if Rc::strong_count(gate) <= 2 {
            self.dialling.borrow_mut().remove(&to);
        }
    }

    fn forget(&self, to: SocketAddr, state: &Rc<LineState>) {
        state.closed.set(true);
        let mut open = self.open.borrow_mut();
        if let Some(lines) = open.get_mut(&to) {
            lines.retain(|line| !Rc::ptr_eq(&line.state, state));
            if lines.is_empty() {
                open.remove(&to);
                self.dialling.borrow_mut().remove(&to);
            }
        }
    }
}

type Shaken = (SendRequest<Chunk>, client::Connection<TrackedSocket<Stream>, Chunk>);

async fn shake(
    to: SocketAddr,
    tls: Option<&Arc<ClientTls>>,
    greeting: &[u8],
    most: Duration,
) -> Result<Shaken, Refusal> {
    let stream = dial::connect(to, tls, greeting, most).await?;
    let stream = TrackedSocket::new(stream, Rc::default());
    match timeout(most, builder().handshake(stream)).await {
        Ok(Ok(shaken)) => Ok(shaken),
        Ok(Err(_)) => Err(Refusal::UNREACHABLE),
        Err(_) => Err(Refusal::LATE),
    }
}

fn builder() -> client::Builder {
    let mut builder = client::Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOWS)
        .max_header_list_size(head::LONGEST as u32)
        .max_send_buffer_size(UNSENT)
        .max_concurrent_reset_streams(MISTAKES)
        .max_local_error_reset_streams(Some(MISTAKES))
        .initial_max_send_streams(STREAMS);
    builder
}

/// Moves a connection's frames until it ends, or has carried nothing for long enough.
async fn drive(
    connection: client::Connection<TrackedSocket<Stream>, Chunk>,
    _permit: BackendPermit,
    to: SocketAddr,
    state: Rc<LineState>,
    lines: Weak<Lines>,
) {
    let mut connection = std::pin::pin!(connection);
    loop {
        tokio::select! {
            biased;
            _ = &mut connection => break,
            () = sleep(LOOK) => {}
        }
        let idle = state.active.get() == 0 && state.used.get().elapsed() >= IDLE;
        if idle && let Some(lines) = lines.upgrade() {
            // Without a handle it says goodbye and ends.
            lines.forget(to, &state);
        }
    }
    lines.upgrade().into_iter().for_each(|lines| lines.forget(to, &state));
}

impl Line {
    /// A connection, which is served from now on.
    fn new(
        send: SendRequest<Chunk>,
        tls: Option<Arc<ClientTls>>,
        (mut connection, permit): (client::Connection<TrackedSocket<Stream>, Chunk>, BackendPermit),
        to: SocketAddr,
        lines: Weak<Lines>,
    ) -> Line {
        let (active, used, closed) = (Cell::new(0), Cell::new(Instant::now()), Cell::new(false));
        let unsettled = tokio::sync::Mutex::new(connection.ping_pong());
        let line = Line { send, tls, state: Rc::new(LineState { active, used, closed, unsettled }) };
        spawn_local(drive(connection, permit, to, line.state.clone(), lines));
        line
    }

    /// Whether streams may become something else (RFC 8441). What the other side says of itself comes first: whoever has answered
    /// a ping has said it.
    pub(crate) async fn offers_tunnels(&self, most: Duration) -> bool {
        let asked = async {
            let mut unsettled = self.state.unsettled.lock().await;
            if !self.send.is_extended_connect_protocol_enabled()
                && let Some(pings) = &mut *unsettled
                && pings.ping(Ping::opaque()).await.is_ok()
            {
                *unsettled = None;
            }
        };
        // Whoever does not answer has offered nothing.
        let _ = timeout(most, asked).await;
        self.send.is_extended_connect_protocol_enabled()
    }

    /// Sends the head of a request. `ended`: there is no body.
    pub(crate) fn send(mut self, head: Head<()>, ended: bool) -> Result<Sending, Failure> {
        let sent = self.send.send_request(head, ended);
        let (response, stream) = sent.map_err(|error| {
            self.state.closed.set(!error.is_reset());
            Failure::Broke { silent: true }
        })?;
        self.state.active.set(self.state.active.get() + 1);
        Ok((Waiting { response, refused: false, interims: Interims::default(), state: self.state }, stream))
    }
}

impl Waiting {
    /// Whether the backend said that it has not begun with it.
    pub(crate) fn refused(&self) -> bool {
        self.refused
    }

    /// Waits for the answer.
    pub(crate) fn poll(&mut self, task: &mut Task<'_>) -> Poll<Result<Answer<RecvStream>, Failure>> {
        // Interim answers of HTTP/2 are not passed on, but a backend may not send them without end.
        while let Poll::Ready(Some(Ok(_))) = self.response.poll_informational(task) {
            self.interims.count()?;
        }
        match ready!(Pin::new(&mut self.response).poll(task)) {
            Ok(answer) => Poll::Ready(Ok(answer)),
            Err(error) => {
                // A connection that ends as a whole says nothing of what was begun on it.
                self.refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
                if !error.is_reset() {
                    self.state.closed.set(true);
                }
                Poll::Ready(Err(Failure::Broke { silent: true }))
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.state.active.set(self.state.active.get() - 1);
        self.state.used.set(Instant::now());
    }
}
