//! A body of HTTP/1 into a stream of HTTP/2.

use std::task::{Context, Poll, ready};

use ::h2::SendStream;
use bytes::Bytes;
use tokio::io::AsyncRead;

use crate::http::body::Body;
use crate::http::buffer::{Buffers, Inlet, Size};
use crate::http::downgrade;
use crate::http::head::Framing;
use crate::http::pump::Broken;

/// A body on its way.
#[derive(Debug)]
pub(crate) struct Send {
    body: Body,
    pending: Bytes,
    ended: bool,
    /// How long the body may become, and how long it is so far.
    most: u64,
    taken: u64,
    /// How many bytes were sent.
    pub(crate) moved: u64,
}

impl Send {
    /// A body so framed.
    pub(crate) fn new(framing: Framing) -> Send {
        let (body, pending) = (Body::new(framing), Bytes::new());
        Send { body, pending, ended: false, most: u64::MAX, taken: 0, moved: 0 }
    }

    /// The same, but the body may not be longer than this.
    pub(crate) fn at_most(mut self, most: Option<u64>) -> Send {
        self.most = most.unwrap_or(u64::MAX);
        self
    }

    /// Whether the stream was ended.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Moves what can be moved; ready when the stream is ended.
    pub(crate) fn poll<R: AsyncRead + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        (inlet, from): (&mut Inlet, &mut R),
        to: &mut SendStream<Bytes>,
        buffers: &Buffers,
    ) -> Poll<Result<(), Broken>> {
        while !self.ended {
            if self.taken > self.most {
                return Poll::Ready(Err(Broken::TooLong));
            }
            if !self.pending.is_empty() {
                let last = self.body.done() && self.body.trailers().len() <= 2;
                self.moved += ready!(poll_send(context, to, &mut self.pending, last))?;
                self.ended = last && self.pending.is_empty();
                continue;
            }
            self.pending = self.body.take(inlet, buffers).map_err(|_| Broken::Malformed)?;
            self.taken += self.pending.len() as u64;
            if !self.pending.is_empty() {
                continue;
            }
            if self.body.done() {
                self.end(to)?;
                continue;
            }
            match ready!(inlet.poll_fill(context, from, Size::Small, buffers)) {
                Ok(1..) => {}
                Ok(0) if self.body.end() => {}
                _ => return Poll::Ready(Err(Broken::From)),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn end(&mut self, to: &mut SendStream<Bytes>) -> Result<(), Broken> {
        self.ended = true;
        let ended = match downgrade::trailers(self.body.trailers()) {
            Some(trailers) => to.send_trailers(trailers),
            None => to.send_data(Bytes::new(), true),
        };
        ended.map_err(|_| Broken::To)
    }
}

/// Sends as much as the other side takes; how much that is.
pub(crate) fn poll_send(
    context: &mut Context<'_>,
    to: &mut SendStream<Bytes>,
    pending: &mut Bytes,
    last: bool,
) -> Poll<Result<u64, Broken>> {
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
    to.send_data(part, last && pending.is_empty()).map_err(|_| Broken::To)?;
    Poll::Ready(Ok(count))
}
