//! A connection of which the first bytes were already read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that begins with bytes that were read from it before.
#[derive(Debug)]
pub(crate) struct Rewound<S> {
    first: Vec<u8>,
    taken: usize,
    stream: S,
}

impl<S> Rewound<S> {
    /// These bytes, then what the connection has.
    pub(crate) fn new(first: Vec<u8>, stream: S) -> Rewound<S> {
        Rewound { first, taken: 0, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let rest = &this.first[this.taken..];
        if rest.is_empty() {
            return Pin::new(&mut this.stream).poll_read(context, room);
        }
        let count = rest.len().min(room.remaining());
        room.put_slice(&rest[..count]);
        this.taken += count;
        if this.taken == this.first.len() {
            this.first = Vec::new();
            this.taken = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
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
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
