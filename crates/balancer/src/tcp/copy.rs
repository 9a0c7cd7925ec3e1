//! Bytes between two connections of which at least one is TLS: they are copied through one buffer of the thread, and only
//! what the other side does not take at once is kept.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Moved;
use crate::engine::context::Thread;

/// How often one way moves bytes before others have their turn.
const ROUNDS: usize = 16;

/// Two connections and what is between them.
pub(super) struct Both<'a, A, B> {
    client: &'a mut A,
    backend: &'a mut B,
    up: Way,
    down: Way,
}

impl<'a, A, B> Both<'a, A, B>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    pub(super) fn new(client: &'a mut A, backend: &'a mut B) -> Both<'a, A, B> {
        Both { client, backend, up: Way::default(), down: Way::default() }
    }

    /// Moves what can be moved. Ready when both have ended, or one is broken.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, moved: &mut Moved, thread: &Thread) -> Poll<io::Result<()>> {
        let up = self.up.poll(cx, self.client, self.backend, &mut moved.up, thread)?;
        let down = self.down.poll(cx, self.backend, self.client, &mut moved.down, thread)?;
        // rustls keeps as much again of what its socket does not take.
        moved.waiting = 2 * (self.up.rest.capacity() + self.down.rest.capacity());
        moved.waits_for_client = !self.down.rest.is_empty();
        if up.is_ready() && down.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }
}

/// One of the two ways.
#[derive(Debug, Default)]
struct Way {
    rest: Vec<u8>,
    written: usize,
    /// Something was written that may still be in the other side's buffer.
    unflushed: bool,
    phase: Phase,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// There is nothing more to read; the other side is to hear of it.
    Ending,
    Ended,
}

impl Way {
    fn poll<A, B>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut A,
        to: &mut B,
        moved: &mut u64,
        thread: &Thread,
    ) -> Poll<io::Result<()>>
    where
        A: AsyncRead + Unpin,
        B: AsyncWrite + Unpin,
    {
        for _ in 0..ROUNDS {
            ready!(self.write_rest(cx, to))?;
            match self.phase {
                Phase::Ended => return Poll::Ready(Ok(())),
                Phase::Ending => {
                    // Fails only if the other side is gone already.
                    let _ = ready!(Pin::new(&mut *to).poll_shutdown(cx));
                    self.phase = Phase::Ended;
                }
                Phase::Open => match self.copy(cx, from, to, thread)? {
                    Poll::Ready(0) => self.phase = Phase::Ending,
                    Poll::Ready(taken) => *moved += taken as u64,
                    Poll::Pending => {
                        // While nothing comes, what was written goes out.
                        if self.unflushed {
                            ready!(Pin::new(&mut *to).poll_flush(cx))?;
                            self.unflushed = false;
                        }
                        return Poll::Pending;
                    }
                },
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn write_rest<B: AsyncWrite + Unpin>(&mut self, cx: &mut Context<'_>, to: &mut B) -> Poll<io::Result<()>> {
        while let Some(rest) = self.rest.get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut *to).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        if self.written > 0 {
            (self.rest, self.written) = (Vec::new(), 0);
        }
        Poll::Ready(Ok(()))
    }

    fn copy<A, B>(&mut self, cx: &mut Context<'_>, from: &mut A, to: &mut B, thread: &Thread) -> Poll<io::Result<usize>>
    where
        A: AsyncRead + Unpin,
        B: AsyncWrite + Unpin,
    {
        thread.with_scratch(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            match ready!(Pin::new(from).poll_read(cx, &mut buffer)) {
                // Many clients of TLS close without saying that they do.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(0)),
                read => read?,
            }
            let bytes = buffer.filled();
            if bytes.is_empty() {
                return Poll::Ready(Ok(0));
            }
            self.unflushed = true;
            let written = match Pin::new(to).poll_write(cx, bytes) {
                Poll::Ready(written) => written?,
                Poll::Pending => 0,
            };
            if written < bytes.len() {
                (self.rest, self.written) = (bytes[written..].to_vec(), 0);
            }
            Poll::Ready(Ok(bytes.len()))
        })
    }
}
