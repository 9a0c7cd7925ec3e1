//! A stream that tells when the client has sent its first bytes: HTTP/2's preface has no time limit
//! in hyper.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connections::Link;

/// A stream whose first received bytes are counted.
#[derive(Debug)]
pub(crate) struct Greeting<T> {
    stream: T,
    link: Arc<Link>,
    greeted: bool,
}

impl<T> Greeting<T> {
    pub(crate) fn new(stream: T, link: Arc<Link>) -> Greeting<T> {
        Greeting { stream, link, greeted: false }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Greeting<T> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.greeted {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        this.link.received(buffer.filled().len() - before);
        this.greeted = this.link.has_greeted();
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Greeting<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
