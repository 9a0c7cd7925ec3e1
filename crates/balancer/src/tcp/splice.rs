//! Bytes between two sockets. Little is copied through one buffer of the thread, because that takes two calls; much goes
//! through a pipe, because then it never comes into this process. A way that fills the buffer in one read is one with much.
//!
//! ```text
//! Copying --a read fills the buffer--> Splicing --several times only a little--> Copying
//! ```
//! A connection that waits holds neither buffer nor pipe.

use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::Moved;
use crate::engine::context::{CountedPipe, Thread};

/// How much is moved at most by one call.
const CHUNK: usize = 1 << 20;
/// How often one way moves bytes before others have their turn.
const ROUNDS: usize = 16;
/// Less than this is little: copying it takes less time than a pipe.
const LITTLE: usize = 16 << 10;
/// So many times little in a row and bytes are copied again.
const PATIENCE: u8 = 4;

/// Two connections and what is between them.
pub(super) struct Both<'a> {
    client: &'a mut TcpStream,
    backend: &'a mut TcpStream,
    up: Way,
    down: Way,
}

impl<'a> Both<'a> {
    pub(super) fn new(client: &'a mut TcpStream, backend: &'a mut TcpStream) -> Both<'a> {
        Both { client, backend, up: Way::default(), down: Way::default() }
    }

    /// Moves what can be moved. Ready when both have ended, or one is broken.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, moved: &mut Moved, thread: &Thread) -> Poll<io::Result<()>> {
        if self.up.poll(cx, self.client, self.backend, &mut moved.up, thread)?.is_ready() && !self.down.ended {
            self.up.pass_end(self.backend);
        }
        if self.down.poll(cx, self.backend, self.client, &mut moved.down, thread)?.is_ready() && !self.up.ended {
            self.down.pass_end(self.client);
        }
        moved.waiting = self.up.rest.capacity() + self.down.rest.capacity();
        moved.waits_for_client = !self.down.rest.is_empty();
        if self.up.ended && self.down.ended { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Gives back what is not needed any more.
    pub(super) fn finish(&mut self, thread: &Thread) {
        for way in [&mut self.up, &mut self.down] {
            way.pipe.take().into_iter().for_each(|pipe| thread.give_pipe(pipe));
        }
    }
}

/// One of the two ways.
#[derive(Debug, Default)]
struct Way {
    /// What was read and could not yet be written.
    rest: Vec<u8>,
    written: usize,
    pipe: Option<CountedPipe>,
    much: bool,
    small: u8,
    ended: bool,
    /// The other side has been told.
    passed: bool,
}

impl Way {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut TcpStream,
        to: &mut TcpStream,
        moved: &mut u64,
        thread: &Thread,
    ) -> Poll<io::Result<()>> {
        if self.ended {
            return Poll::Ready(Ok(()));
        }
        for _ in 0..ROUNDS {
            ready!(self.flush(cx, to))?;
            let taken = match self.much {
                true => ready!(self.splice(cx, from, thread))?,
                false => ready!(self.copy(cx, from, to, thread))?,
            };
            if taken == 0 {
                self.ended = true;
                return Poll::Ready(Ok(()));
            }
            *moved += taken as u64;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Tells the other side that there is no more, unless that was done. Not needed where both sides have ended: closing the
    /// connection says the same.
    fn pass_end(&mut self, to: &TcpStream) {
        if !std::mem::replace(&mut self.passed, true) {
            // Fails only if the other side is gone already.
            let _ = SockRef::from(to).shutdown(Shutdown::Write);
        }
    }

    /// Writes what was taken before.
    fn flush(&mut self, cx: &mut Context<'_>, to: &mut TcpStream) -> Poll<io::Result<()>> {
        while let Some(rest) = self.rest.get(self.written..).filter(|rest| !rest.is_empty()) {
            self.written += ready!(Pin::new(&mut *to).poll_write(cx, rest))?;
        }
        if self.written > 0 {
            (self.rest, self.written) = (Vec::new(), 0);
        }
        let Some(pipe) = &mut self.pipe else { return Poll::Ready(Ok(())) };
        while pipe.held() > 0 {
            ready!(to.poll_write_ready(cx))?;
            match to.try_io(Interest::WRITABLE, || pipe.drain(&*to)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads into the thread's buffer and writes that on; what does not fit is kept. How much was read.
    fn copy(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut TcpStream,
        to: &mut TcpStream,
        thread: &Thread,
    ) -> Poll<io::Result<usize>> {
        thread.with_scratch(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(Pin::new(from).poll_read(cx, &mut buffer))?;
            let full = buffer.remaining() == 0;
            let bytes = buffer.filled();
            if bytes.is_empty() {
                return Poll::Ready(Ok(0));
            }
            let written = match Pin::new(to).poll_write(cx, bytes) {
                Poll::Ready(written) => written?,
                Poll::Pending => 0,
            };
            if written < bytes.len() {
                (self.rest, self.written) = (bytes[written..].to_vec(), 0);
            }
            if full {
                (self.much, self.small) = (true, 0);
            }
            Poll::Ready(Ok(bytes.len()))
        })
    }

    /// Takes what is there into a pipe, which is empty. How much that was.
    fn splice(&mut self, cx: &mut Context<'_>, from: &TcpStream, thread: &Thread) -> Poll<io::Result<usize>> {
        let Some(mut pipe) = self.pipe.take().or_else(|| thread.take_pipe()) else {
            self.much = false;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        };
        loop {
            if from.poll_read_ready(cx)?.is_pending() {
                thread.give_pipe(pipe);
                return Poll::Pending;
            }
            match from.try_io(Interest::READABLE, || pipe.fill(from, CHUNK)) {
                Ok(taken) => {
                    self.pipe = Some(pipe);
                    self.small = if taken < LITTLE { self.small + 1 } else { 0 };
                    self.much = self.small < PATIENCE;
                    return Poll::Ready(Ok(taken));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}
