//! A client that may not say who it is. Where PROXY headers of trusted fronts are read, one of anybody else could only mislead: it is
//! neither believed nor carried. Nobody waits for the first bytes of a stranger, as servers may have to speak first.

use std::io;
use std::pin::Pin;
use std::task::{Context as Task, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::engine::context::Context;
use crate::proxy_header::{Opening, Suspicion};

/// The connection of a client whose first bytes must not be a PROXY header.
#[derive(Debug)]
pub(crate) struct Stranger {
    stream: TcpStream,
    /// `None`: what had to be known is known.
    suspicion: Option<Suspicion>,
    context: Context,
}

/// Why such a connection ends.
#[derive(Debug, thiserror::Error)]
#[error("a PROXY header of somebody who is no trusted front is refused")]
struct Unwelcome;

/// Whether a connection was refused for its header.
pub(super) fn is_unwelcome(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Unwelcome>())
}

impl Stranger {
    pub(crate) fn new(stream: TcpStream, context: Context) -> Stranger {
        Stranger { stream, suspicion: Some(Suspicion::default()), context }
    }

    /// It is not served.
    fn refuse(&self) -> io::Error {
        self.context.counters().bad_proxy_headers.add(1);
        let client = self.stream.peer_addr().ok();
        tracing::debug!(?client, "{Unwelcome}");
        super::reset(&self.stream);
        io::Error::other(Unwelcome)
    }
}

impl AsyncRead for Stranger {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Task<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let Some(suspicion) = &mut self.suspicion else { return Poll::Ready(Ok(())) };
        match suspicion.hear(&buffer.filled()[before..]) {
            Opening::Undecided => {}
            Opening::Other => self.suspicion = None,
            Opening::Header => {
                buffer.set_filled(before);
                return Poll::Ready(Err(self.refuse()));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stranger {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Task<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
