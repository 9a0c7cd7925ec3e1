//! A client's connection of HTTP/2: its streams side by side, each to the backend that is next.
//!
//! Bounded: streams at once, fields, what is kept of streams that were reset; and a client that resets most of what it asks for
//! (CVE-2023-44487) is sent away.

pub(super) mod between;
pub(super) mod receive;
pub(super) mod send;
mod stream;
mod to_h1;
mod to_h2;
mod tunnel;

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use ::h2::server::{self, SendResponse};
use ::h2::{Reason, RecvStream};
use ::http::Request as Head;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;
use tokio::time::Instant;

use super::Connection;
use super::dial::Shared;
use super::watch::Watch;
use crate::engine::memory::{Chunk, MemoryHold, Outbox, TrackedSocket};

/// What a connection begins with.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How many streams a client may have at once.
pub(super) const STREAMS: u32 = 128;
/// Maximum size of the fields of a request, with 32 bytes for each field (RFC 9113, 6.5.2). h2
/// decodes all requests that have arrived before the first is seen here: 128 streams of this size
/// and at most 104 bytes for each field are 8 MiB for a moment.
const FIELD_LIST: u32 = 16 << 10;
/// How much of bodies may be on its way: of one stream, and of all.
const WINDOW: u32 = 256 << 10;
const WINDOWS: u32 = 1 << 20;
/// Maximum bytes of an answer that wait for the client's socket: two frames.
pub(super) const UNSENT: usize = 32 << 10;
/// How many streams that were reset are remembered, for frames that are still on their way.
const REMEMBERED: usize = 32;
/// How many mistakes of a client are answered stream by stream.
const MISTAKES: usize = 64;
/// How long a client may take to begin, and to end.
const OPENING: Duration = Duration::from_secs(10);
const PARTING: Duration = Duration::from_secs(2);
/// So many requests may be taken back before it counts that most of them are.
const TAKEN_BACK: u64 = 100;

/// What the streams of a connection share.
#[derive(Debug)]
pub(super) struct Streams {
    connection: Connection,
    shared: Rc<Shared>,
    active: Cell<usize>,
    accepted: Cell<u64>,
    /// How many the client reset before they were answered.
    taken_back: Cell<u64>,
    outbox: Rc<Outbox>,
}

/// Counts a stream as long as it lives.
pub(super) struct Active(Rc<Streams>);

impl std::ops::Deref for Active {
    type Target = Streams;

    fn deref(&self) -> &Streams {
        &self.0
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.active.set(self.0.active.get() - 1);
        if self.0.active.get() == 0 {
            self.0.connection.context.rests();
        }
    }
}

/// Serves a connection to its end.
pub(super) async fn serve<S>(stream: S, connection: Connection, shared: Rc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    connection.context.rests();
    let outbox = Rc::<Outbox>::default();
    let stream = TrackedSocket::new(stream, outbox.clone());
    let handshake = tokio::time::timeout(OPENING, builder().handshake::<_, Chunk>(stream));
    let Ok(Ok(mut h2)) = handshake.await else { return };
    let zero = || Cell::new(0);
    let active = Cell::new(0);
    let accepted = zero();
    let taken_back = zero();
    let streams = Rc::new(Streams { connection, shared, active, accepted, taken_back, outbox });
    accept(&mut h2, &streams).await;
    h2.graceful_shutdown();
    // Streams that run go on until they are done; the engine ends what takes too long.
    while let Some(Ok((request, respond))) = until_parted(&mut h2, &streams).await {
        begin(&streams, request, respond);
    }
}

fn builder() -> server::Builder {
    let mut builder = server::Builder::new();
    builder
        .max_concurrent_streams(STREAMS)
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOWS)
        .max_header_list_size(FIELD_LIST)
        .max_send_buffer_size(UNSENT)
        .max_concurrent_reset_streams(REMEMBERED)
        .max_pending_accept_reset_streams(REMEMBERED)
        .max_local_error_reset_streams(Some(MISTAKES))
        .reset_stream_duration(Duration::from_secs(1))
        .enable_connect_protocol();
    builder
}

type Accepted = Option<Result<(Head<RecvStream>, SendResponse<Chunk>), ::h2::Error>>;

/// Takes streams until the connection is to end: idle, aged, drained, broken, or abused.
async fn accept<S>(h2: &mut server::Connection<TrackedSocket<S>, Chunk>, streams: &Rc<Streams>)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let Streams { connection, .. } = &**streams;
    let (born, mut spec) = (Instant::now(), connection.current.get().spec.clone());
    let mut watch = Watch::new(spec.idle, &connection.context, streams.held());
    let mut draining = pin!(connection.context.draining());
    loop {
        let old = spec.age.map(|age| age.saturating_sub(born.elapsed()));
        let limit = old.map_or(spec.idle, |old| old.min(spec.idle));
        let accepted = watch.limit(limit, |task, _| {
            if let Poll::Ready(accepted) = h2.poll_accept(task) {
                return Poll::Ready(accepted);
            }
            draining.as_mut().poll(task).map(|()| None)
        });
        let accepted: Accepted = match accepted.await {
            Ok(accepted) => accepted,
            Err(_) if streams.active.get() > 0 && limit == spec.idle => continue,
            Err(_) => return,
        };
        let Some(Ok((request, respond))) = accepted else { return };
        begin(streams, request, respond);
        spec = connection.current.get().spec.clone();
        if streams.abused() {
            return h2.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        }
        if spec.age.is_some_and(|age| born.elapsed() >= age) {
            return;
        }
    }
}

/// What still comes on a connection that ends.
async fn until_parted<S>(h2: &mut server::Connection<TrackedSocket<S>, Chunk>, streams: &Streams) -> Accepted
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    loop {
        match tokio::time::timeout(PARTING, h2.accept()).await {
            Ok(accepted) => return accepted,
            Err(_) if streams.active.get() > 0 => {}
            Err(_) => return None,
        }
    }
}

fn begin(streams: &Rc<Streams>, request: Head<RecvStream>, respond: SendResponse<Chunk>) {
    streams.accepted.set(streams.accepted.get() + 1);
    streams.active.set(streams.active.get() + 1);
    streams.connection.context.works();
    if let Some(work) = stream::begin(Active(streams.clone()), request, respond) {
        spawn_local(work);
    }
}

impl Streams {
    /// Begins to count what a stream holds.
    fn held(&self) -> MemoryHold {
        let context = &self.connection.context;
        MemoryHold::new(context.thread(), context.source(), Some(self.outbox.clone()))
    }

    /// Whether most requests are taken back by their client.
    fn abused(&self) -> bool {
        let back = self.taken_back.get();
        back > TAKEN_BACK && back * 2 > self.accepted.get()
    }
}
