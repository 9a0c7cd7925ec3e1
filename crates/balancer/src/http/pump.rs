//! How does a message get from one socket to the other? Its new head and what is there of its body in one write, then the rest
//! as it comes, looked at only to find its end.

use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite};

use super::buffer::{Buffers, Inlet, Size};
use super::chunks::{Chunks, Piece};
use super::head::Framing;
use super::splice::Splice;

/// A message on its way.
#[derive(Debug)]
pub(crate) struct Pump {
    head: Vec<u8>,
    sent: usize,
    left: Left,
    /// How many bytes at hand belong to the body and can be written.
    verified: usize,
    flushed: bool,
    splice: Splice,
    /// How long the body may become.
    most: u64,
    /// How many bytes of the body were written, with its chunks.
    pub(crate) moved: u64,
}

/// What is still to come of a body.
#[derive(Debug)]
enum Left {
    Nothing,
    Length(u64),
    /// Passed on with its chunks.
    Chunked(Chunks),
    /// Passed on without.
    Unchunked(Chunks),
    /// All there is.
    End,
}

/// Why a message did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It came to an end before its time.
    From,
    /// Nobody took it.
    To,
    /// It has no end that all readers agree on.
    Malformed,
    /// It is longer than allowed.
    TooLong,
}

/// A body so small is put behind its head, which costs less than two pieces.
const COPIED: usize = 1 << 10;
/// From here on large buffers pay.
const LARGE: u64 = 16 << 10;

impl Pump {
    /// A message with this head; its body comes as it is, or without its chunks.
    pub(crate) fn new(head: Vec<u8>, body: Framing, unchunk: bool) -> Pump {
        let left = match body {
            Framing::Empty => Left::Nothing,
            Framing::Length(length) => Left::Length(length),
            Framing::Chunked if unchunk => Left::Unchunked(Chunks::default()),
            Framing::Chunked => Left::Chunked(Chunks::default()),
            Framing::End => Left::End,
        };
        Pump { head, sent: 0, left, verified: 0, flushed: true, splice: Splice::default(), most: u64::MAX, moved: 0 }
    }

    /// The same, but the body may not be longer than this.
    pub(crate) fn at_most(mut self, most: Option<u64>) -> Pump {
        self.most = most.unwrap_or(u64::MAX);
        self
    }

    /// Whether nothing of it was taken from the client: it can be sent to somebody else.
    pub(crate) fn untouched(&self) -> bool {
        self.moved == 0 && self.verified == 0 && !self.splice.holds()
    }

    /// True if bytes wait for the other side to take them.
    pub(crate) fn waits_for_room(&self) -> bool {
        self.sent < self.head.len() || self.verified > 0 || self.splice.holds()
    }

    /// Returns the size of the buffer that the head lies in.
    pub(crate) fn head_capacity(&self) -> usize {
        self.head.capacity()
    }

    /// From its head again.
    pub(crate) fn rewind(&mut self) {
        self.sent = 0;
    }

    /// The head, to be used again.
    pub(crate) fn into_head(self) -> Vec<u8> {
        self.head
    }

    /// Moves what can be moved; ready when all of it is.
    pub(crate) fn poll<R, W>(
        &mut self,
        context: &mut Context<'_>,
        ends: (&mut Inlet, &mut R, &mut W),
        buffers: &Buffers,
    ) -> Poll<Result<(), Broken>>
    where
        R: AsyncRead + Unpin + 'static,
        W: AsyncWrite + Unpin + 'static,
    {
        let (inlet, from, to) = ends;
        loop {
            self.verify(inlet, buffers)?;
            if self.sent < self.head.len() || self.verified > 0 {
                ready!(self.poll_write(context, inlet, to, buffers))?;
                continue;
            }
            if self.done() {
                return Pin::new(to).poll_flush(context).map_err(|_| Broken::To);
            }
            if let Left::Length(left) = &mut self.left
                && let Some(polled) = self.splice.poll(context, (from, to), (left, &mut self.moved), buffers)
            {
                ready!(polled)?;
                continue;
            }
            match inlet.poll_fill(context, from, self.size(), buffers) {
                Poll::Ready(Ok(0)) if matches!(self.left, Left::End) => self.left = Left::Nothing,
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(Broken::From)),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => return self.poll_flush(context, to),
            }
        }
    }

    fn done(&self) -> bool {
        match &self.left {
            Left::Nothing => true,
            Left::Length(0) => !self.splice.holds(),
            Left::Chunked(chunks) | Left::Unchunked(chunks) => chunks.done(),
            Left::Length(_) | Left::End => false,
        }
    }

    fn size(&self) -> Size {
        let large = match self.left {
            Left::Length(left) => left > LARGE,
            _ => self.moved > LARGE,
        };
        if large { Size::Large } else { Size::Small }
    }

    /// Finds out how much of what is at hand belongs to the body.
    fn verify(&mut self, inlet: &mut Inlet, buffers: &Buffers) -> Result<(), Broken> {
        if self.verified > 0 || inlet.is_empty() || self.done() {
            return Ok(());
        }
        match &mut self.left {
            Left::Nothing => {}
            Left::Length(left) => {
                self.verified = inlet.bytes().len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= self.verified as u64;
            }
            Left::Chunked(chunks) => self.verified = chunks.advance(inlet.bytes()).map_err(|_| Broken::Malformed)?,
            Left::Unchunked(chunks) => {
                while self.verified == 0 && !inlet.is_empty() && !chunks.done() {
                    match chunks.step(inlet.bytes()).map_err(|_| Broken::Malformed)? {
                        Piece::Data(count) => self.verified = count,
                        Piece::Framing(count) | Piece::Trailer(count) => inlet.consume(count, buffers),
                        Piece::End => {}
                    }
                }
            }
            Left::End => self.verified = inlet.bytes().len(),
        }
        // The length of a body that says it was looked at before.
        match &self.left {
            Left::Chunked(chunks) if chunks.data() > self.most => Err(Broken::TooLong),
            _ => Ok(()),
        }
    }

    fn poll_write<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        inlet: &mut Inlet,
        to: &mut W,
        buffers: &Buffers,
    ) -> Poll<Result<(), Broken>> {
        if self.sent == 0 && !self.head.is_empty() && (1..=COPIED).contains(&self.verified) {
            self.head.extend_from_slice(&inlet.bytes()[..self.verified]);
            self.take(self.verified, inlet, buffers);
        }
        let (head, body) = (&self.head[self.sent..], &inlet.bytes()[..self.verified]);
        let to = Pin::new(to);
        let polled = match (head.is_empty(), body.is_empty()) {
            (false, false) => to.poll_write_vectored(context, &[IoSlice::new(head), IoSlice::new(body)]),
            (false, true) => to.poll_write(context, head),
            (true, _) => to.poll_write(context, body),
        };
        let written = match ready!(polled) {
            Ok(0) | Err(_) => return Poll::Ready(Err(Broken::To)),
            Ok(written) => written,
        };
        let of_head = written.min(head.len());
        self.sent += of_head;
        self.flushed = false;
        self.take(written - of_head, inlet, buffers);
        Poll::Ready(Ok(()))
    }

    fn take(&mut self, count: usize, inlet: &mut Inlet, buffers: &Buffers) {
        self.verified -= count;
        self.moved += count as u64;
        inlet.consume(count, buffers);
    }

    /// Before waiting for more: what was written must be on its way.
    fn poll_flush<W: AsyncWrite + Unpin>(&mut self, context: &mut Context<'_>, to: &mut W) -> Poll<Result<(), Broken>> {
        if !self.flushed {
            match Pin::new(to).poll_flush(context) {
                Poll::Ready(Ok(())) => self.flushed = true,
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Broken::To)),
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }
}
