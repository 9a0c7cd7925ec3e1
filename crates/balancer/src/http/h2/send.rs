//! A body of HTTP/1 into a stream of HTTP/2.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::h2::SendStream;
use bytes::Bytes;
use tokio::io::AsyncRead;
use tokio::time::{Sleep, sleep};

use crate::engine::memory::{Chunk, MemoryHold};
use crate::http::body::Body;
use crate::http::buffer::{Buffers, Inlet, Size};
use crate::http::downgrade;
use crate::http::head::Framing;
use crate::http::pump::Broken;

/// Bytes that are read of an answer although its client does not take them: a short answer is read
/// whole, so that its backend is free for others.
const AHEAD: usize = 64 << 10;
/// Bytes that are read at once.
const PIECE: usize = 16 << 10;
/// Time after which a body that may not be read for want of memory asks again.
const PAUSE: Duration = Duration::from_millis(20);

/// A body on its way.
#[derive(Debug)]
pub(crate) struct Send {
    body: Body,
    pending: Bytes,
    /// Bytes behind `pending`, and their number.
    ahead: VecDeque<Bytes>,
    ahead_length: usize,
    ended: bool,
    to: To,
    /// How long the body may become, and how long it is so far.
    most: u64,
    taken: u64,
    /// How many bytes were sent.
    pub(crate) moved: u64,
    pause: Pause,
}

/// The peer that a body is sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    /// The client.
    Client,
    /// A backend.
    Backend,
}

/// A wait for memory.
#[derive(Debug, Default)]
struct Pause(Option<Pin<Box<Sleep>>>);

impl Pause {
    /// Ready when so much may be read.
    fn poll(&mut self, context: &mut Context<'_>, held: &MemoryHold, more: usize) -> Poll<()> {
        while !held.admits(more) {
            let sleeping = self.0.get_or_insert_with(|| Box::pin(sleep(PAUSE)));
            ready!(sleeping.as_mut().poll(context));
            self.0 = None;
        }
        Poll::Ready(())
    }
}

impl Send {
    /// The body of an answer for a client, so framed.
    pub(crate) fn new(framing: Framing) -> Send {
        Send {
            body: Body::new(framing),
            pending: Bytes::new(),
            ahead: VecDeque::new(),
            ahead_length: 0,
            ended: false,
            to: To::Client,
            most: u64::MAX,
            taken: 0,
            moved: 0,
            pause: Pause::default(),
        }
    }

    /// The body of a request for a backend, which may not be longer than this.
    pub(crate) fn request(framing: Framing, most: Option<u64>) -> Send {
        Send { to: To::Backend, most: most.unwrap_or(u64::MAX), ..Send::new(framing) }
    }

    /// Whether the stream was ended.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// True if all of the body was read, though it may not have been sent.
    pub(crate) fn is_read(&self) -> bool {
        self.body.done()
    }

    /// True if bytes wait for the other side to take them.
    pub(crate) fn waits_for_room(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns the number of bytes that wait.
    pub(crate) fn held(&self) -> usize {
        self.pending.len() + self.ahead_length
    }

    /// Moves what can be moved; ready when the stream is ended.
    pub(crate) fn poll<R: AsyncRead + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        (inlet, from): (&mut Inlet, &mut R),
        to: &mut SendStream<Chunk>,
        buffers: &Buffers,
        held: &MemoryHold,
    ) -> Poll<Result<(), Broken>> {
        loop {
            if self.taken > self.most {
                return Poll::Ready(Err(Broken::TooLong));
            }
            let blocked = match self.poll_rest(context, to, held) {
                Poll::Ready(Ok(())) if self.ended => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => false,
                Poll::Ready(Err(broken)) => return Poll::Ready(Err(broken)),
                Poll::Pending => true,
            };
            if blocked {
                let reads_on = self.to == To::Client && !self.body.done() && self.held() < AHEAD;
                if !reads_on || !held.admits(self.held() + PIECE) {
                    return Poll::Pending;
                }
            }
            let data = self.body.take(inlet, buffers).map_err(|_| Broken::Malformed)?;
            if !data.is_empty() {
                self.taken += data.len() as u64;
                if self.pending.is_empty() {
                    self.pending = data;
                } else {
                    self.ahead_length += data.len();
                    self.ahead.push_back(data);
                }
                continue;
            }
            if self.body.done() {
                continue;
            }
            if !blocked {
                ready!(self.pause.poll(context, held, PIECE));
            }
            match ready!(inlet.poll_fill(context, from, Size::Small, buffers)) {
                Ok(1..) => {}
                Ok(0) if self.body.end() => {}
                _ => return Poll::Ready(Err(Broken::From)),
            }
        }
    }

    /// Sends what was read; ready when all of that is sent, and the stream ended if that was all of
    /// the body.
    pub(crate) fn poll_rest(
        &mut self,
        context: &mut Context<'_>,
        to: &mut SendStream<Chunk>,
        held: &MemoryHold,
    ) -> Poll<Result<(), Broken>> {
        while !self.ended {
            if self.pending.is_empty()
                && let Some(next) = self.ahead.pop_front()
            {
                self.ahead_length -= next.len();
                self.pending = next;
            }
            if !self.pending.is_empty() {
                let last = self.body.done() && self.body.trailers().len() <= 2 && self.ahead.is_empty();
                self.moved += ready!(poll_send(context, to, &mut self.pending, last, (held, self.to)))?;
                self.ended = last && self.pending.is_empty();
            } else if self.body.done() {
                self.end(to)?;
            } else {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self, to: &mut SendStream<Chunk>) -> Result<(), Broken> {
        self.ended = true;
        let ended = match downgrade::trailers(self.body.trailers()) {
            Some(trailers) => to.send_trailers(trailers),
            None => to.send_data(Chunk::default(), true),
        };
        ended.map_err(|_| Broken::To)
    }
}

/// Sends as much as the other side takes; how much that is.
pub(crate) fn poll_send(
    context: &mut Context<'_>,
    to: &mut SendStream<Chunk>,
    pending: &mut Bytes,
    last: bool,
    (held, peer): (&MemoryHold, To),
) -> Poll<Result<u64, Broken>> {
    if peer == To::Client {
        ready!(held.poll_outbox(context));
    }
    to.reserve_capacity(pending.len());
    let mut room = to.capacity();
    while room == 0 {
        room = match ready!(to.poll_capacity(context)) {
            Some(Ok(room)) => room,
            _ => return Poll::Ready(Err(Broken::To)),
        };
    }
    let part = pending.split_to(room.min(pending.len()));
    let count = part.len() as u64;
    let chunk = match peer {
        To::Client => held.chunk(part),
        To::Backend => held.chunk_up(part),
    };
    to.send_data(chunk, last && pending.is_empty()).map_err(|_| Broken::To)?;
    Poll::Ready(Ok(count))
}
