//! Where bytes lie between two sockets. A thread has a stock of buffers; a connection holds one only while there are bytes in
//! it, so that a hundred thousand idle connections cost nothing.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::engine::context::{CountedPipe, PipeCount};

/// Heads and small bodies.
const SMALL: usize = 16 << 10;
/// Large bodies and the longest heads.
const LARGE: usize = super::head::LONGEST;
/// How many empty pipes are kept for later.
const PIPES: usize = 16;
/// How many of each are kept for later.
const KEPT: [usize; 2] = [256, 64];

/// Bytes that were read and not yet taken.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

/// The stock of a thread.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    free: [RefCell<Vec<Box<[u8]>>>; 2],
    heads: RefCell<Vec<Vec<u8>>>,
    pipes: RefCell<Vec<CountedPipe>>,
    pipe_count: OnceCell<PipeCount>,
}

/// How large a buffer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// 16 KiB.
    Small,
    /// 64 KiB.
    Large,
}

impl Buffers {
    fn take(&self, size: Size) -> Buffer {
        let (stock, length) = match size {
            Size::Small => (&self.free[0], SMALL),
            Size::Large => (&self.free[1], LARGE),
        };
        let bytes = stock.borrow_mut().pop().unwrap_or_else(|| vec![0; length].into_boxed_slice());
        Buffer { bytes, start: 0, end: 0 }
    }

    fn give(&self, buffer: Buffer) {
        let index = usize::from(buffer.bytes.len() == LARGE);
        let mut stock = self.free[index].borrow_mut();
        if stock.len() < KEPT[index] {
            stock.push(buffer.bytes);
        }
    }

    /// Counts pipes among those of the thread.
    pub(crate) fn count_pipes(&self, count: &PipeCount) {
        self.pipe_count.get_or_init(|| count.clone());
    }

    /// Returns an empty pipe, or `None` if the thread or the process may not have more.
    pub(crate) fn pipe(&self) -> Option<CountedPipe> {
        self.pipes.borrow_mut().pop().or_else(|| self.pipe_count.get()?.open())
    }

    /// Takes it back, if it is empty.
    pub(crate) fn give_pipe(&self, pipe: CountedPipe) {
        let mut pipes = self.pipes.borrow_mut();
        if pipe.held() == 0 && pipes.len() < PIPES {
            pipes.push(pipe);
        }
    }

    /// An empty vector to write a head into.
    pub(crate) fn head(&self) -> Vec<u8> {
        self.heads.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(4 << 10))
    }

    /// Takes it back.
    pub(crate) fn give_head(&self, mut head: Vec<u8>) {
        let mut heads = self.heads.borrow_mut();
        if heads.len() < KEPT[0] && (1..=LARGE).contains(&head.capacity()) {
            head.clear();
            heads.push(head);
        }
    }
}

/// What was read from one socket and not yet used.
#[derive(Debug, Default)]
pub(crate) struct Inlet(Option<Buffer>);

impl Inlet {
    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |buffer| &buffer.bytes[buffer.start..buffer.end])
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Returns the size of the buffer that the bytes lie in.
    pub(crate) fn capacity(&self) -> usize {
        self.0.as_ref().map_or(0, |buffer| buffer.bytes.len())
    }

    /// Drops the first bytes; the buffer goes back with the last.
    pub(crate) fn consume(&mut self, taken: usize, buffers: &Buffers) {
        let Some(buffer) = &mut self.0 else { return };
        buffer.start = (buffer.start + taken).min(buffer.end);
        if buffer.start == buffer.end {
            self.release(buffers);
        }
    }

    /// Gives the buffer back, with what is in it.
    pub(crate) fn release(&mut self, buffers: &Buffers) {
        if let Some(buffer) = self.0.take() {
            buffers.give(buffer);
        }
    }

    /// Reads more; 0: the other end has ended. What is already there stays; a full buffer is replaced by a larger one, and a
    /// full large one is an error.
    pub(crate) fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        from: &mut R,
        size: Size,
        buffers: &Buffers,
    ) -> Poll<io::Result<usize>> {
        let mut buffer = self.0.take().unwrap_or_else(|| buffers.take(size));
        if buffer.end == buffer.bytes.len() {
            buffer = match make_room(buffer, buffers) {
                Ok(buffer) => buffer,
                Err(full) => {
                    self.0 = Some(full);
                    return Poll::Ready(Err(io::ErrorKind::StorageFull.into()));
                }
            };
        }
        let mut room = ReadBuf::new(&mut buffer.bytes[buffer.end..]);
        let polled = Pin::new(from).poll_read(context, &mut room);
        let read = room.filled().len();
        buffer.end += read;
        if buffer.start == buffer.end {
            buffers.give(buffer);
        } else {
            self.0 = Some(buffer);
        }
        ready!(polled)?;
        Poll::Ready(Ok(read))
    }
}

fn make_room(mut buffer: Buffer, buffers: &Buffers) -> Result<Buffer, Buffer> {
    if buffer.start > 0 {
        buffer.bytes.copy_within(buffer.start..buffer.end, 0);
        buffer.end -= buffer.start;
        buffer.start = 0;
        return Ok(buffer);
    }
    if buffer.bytes.len() == LARGE {
        return Err(buffer);
    }
    let mut large = buffers.take(Size::Large);
    large.end = buffer.end;
    large.bytes[..buffer.end].copy_from_slice(&buffer.bytes[..buffer.end]);
    buffers.give(buffer);
    Ok(large)
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn fill(inlet: &mut Inlet, from: &mut &[u8], buffers: &Buffers) -> io::Result<usize> {
        match inlet.poll_fill(&mut Context::from_waker(Waker::noop()), from, Size::Small, buffers) {
            Poll::Ready(read) => read,
            Poll::Pending => panic!("a slice never waits"),
        }
    }

    #[test]
    fn a_buffer_grows_once_and_then_is_full() {
        let (buffers, mut inlet, bytes) = (Buffers::default(), Inlet::default(), vec![7; 2 * LARGE]);
        let mut from = &bytes[..];
        assert_eq!(fill(&mut inlet, &mut from, &buffers).ok(), Some(SMALL));
        assert_eq!(fill(&mut inlet, &mut from, &buffers).ok(), Some(LARGE - SMALL));
        assert_eq!(inlet.bytes(), &bytes[..LARGE]);
        assert!(fill(&mut inlet, &mut from, &buffers).is_err());
        inlet.consume(1000, &buffers);
        assert_eq!(fill(&mut inlet, &mut from, &buffers).ok(), Some(1000));
    }

    #[test]
    fn an_empty_inlet_holds_no_buffer() {
        let (buffers, mut inlet) = (Buffers::default(), Inlet::default());
        assert_eq!(fill(&mut inlet, &mut &b"abc"[..], &buffers).ok(), Some(3));
        inlet.consume(2, &buffers);
        assert_eq!(inlet.bytes(), b"c");
        inlet.consume(1, &buffers);
        assert!(inlet.0.is_none());
        assert_eq!(fill(&mut inlet, &mut &b""[..], &buffers).ok(), Some(0));
        assert!(inlet.0.is_none());
    }
}
