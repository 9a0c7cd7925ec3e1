//! A stream of HTTP/2 into a message of HTTP/1.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::h2::RecvStream;
use tokio::io::AsyncWrite;

use super::between::has_heard_enough;
use crate::http::downgrade;
use crate::http::head::Framing;
use crate::http::pump::Broken;

/// A message on its way.
#[derive(Debug)]
pub(crate) struct Receive {
    /// What is to be written: the head, then pieces of the body.
    out: Vec<u8>,
    written: usize,
    from: Option<RecvStream>,
    framing: Framing,
    /// What was taken from the stream and is in `out`.
    taken: usize,
    /// How long the body may become.
    most: u64,
    /// It is an answer, whose sender may say that it has heard enough.
    answer: bool,
    /// How many bytes of the body were taken.
    pub(crate) moved: u64,
}

/// Memory that trailers may take which have come behind a body that waits.
const TRAILERS: usize = 16 << 10;
/// So much is gathered before it is written.
const ENOUGH: usize = 16 << 10;

impl Receive {
    /// A message with this head and the body that comes from there, if it has one.
    pub(crate) fn new(head: Vec<u8>, from: Option<RecvStream>, framing: Framing) -> Receive {
        let from = from.filter(|_| framing != Framing::Empty);
        Receive { out: head, written: 0, from, framing, taken: 0, most: u64::MAX, answer: false, moved: 0 }
    }

    /// The same, but the body may not be longer than this.
    pub(crate) fn at_most(mut self, most: Option<u64>) -> Receive {
        self.most = most.unwrap_or(u64::MAX);
        self
    }

    /// The same as an answer.
    pub(crate) fn answer(mut self) -> Receive {
        self.answer = true;
        self
    }

    /// The head again, if that was all; whether it was.
    pub(crate) fn rewind(&mut self) -> bool {
        let whole = self.moved == 0 && self.framing == Framing::Empty;
        if whole {
            self.written = 0;
        }
        whole
    }

    /// What was written last, to be used again.
    pub(crate) fn into_head(self) -> Vec<u8> {
        self.out
    }

    /// Returns the buffer of what was written last, if all of it is written, and has none any more.
    pub(crate) fn take_head(&mut self) -> Vec<u8> {
        self.written = 0;
        std::mem::take(&mut self.out)
    }

    /// Returns the number of bytes that wait to be written.
    pub(crate) fn unsent(&self) -> usize {
        self.out.len() - self.written
    }

    /// True if it waits for more of the body, and not for the other side to take what there is.
    pub(crate) fn waits_for_body(&self) -> bool {
        self.from.is_some() && self.written == self.out.len()
    }

    /// Returns the number of bytes of the body that wait here or in the stream, and room for
    /// trailers that may be behind them.
    pub(crate) fn held(&mut self) -> usize {
        let waits = self.written < self.out.len();
        let Some(from) = &mut self.from else { return 0 };
        from.flow_control().used_capacity() + if waits { TRAILERS } else { 0 }
    }

    /// Moves what can be moved; ready when all is written.
    pub(crate) fn poll<W: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        to: &mut W,
    ) -> Poll<Result<(), Broken>> {
        loop {
            self.gather(context)?;
            while self.written < self.out.len() {
                match ready!(Pin::new(&mut *to).poll_write(context, &self.out[self.written..])) {
                    Ok(count @ 1..) => self.written += count,
                    _ => return Poll::Ready(Err(Broken::To)),
                }
            }
            let Some(from) = &mut self.from else {
                return Pin::new(to).poll_flush(context).map_err(|_| Broken::To);
            };
            if self.taken == 0 {
                let flushed = Pin::new(to).poll_flush(context);
                return if let Poll::Ready(Err(_)) = flushed { Poll::Ready(Err(Broken::To)) } else { Poll::Pending };
            }
            // Only what was written makes room for more.
            let _ = from.flow_control().release_capacity(self.taken);
            (self.taken, self.written) = (0, 0);
            self.out.clear();
        }
    }

    /// Takes from the stream what is there.
    fn gather(&mut self, context: &mut Context<'_>) -> Result<(), Broken> {
        while self.out.len() < ENOUGH
            && let Some(from) = &mut self.from
        {
            match from.poll_data(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Some(Ok(data))) => {
                    self.taken += data.len();
                    self.moved += data.len() as u64;
                    self.frame(&data)?;
                }
                Poll::Ready(Some(Err(error))) if self.answer && has_heard_enough(&error) => self.end(None)?,
                Poll::Ready(Some(Err(_))) => return Err(Broken::From),
                Poll::Ready(None) => match from.poll_trailers(context) {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(Err(_)) => return Err(Broken::From),
                    Poll::Ready(Ok(trailers)) => self.end(trailers.as_ref())?,
                },
            }
        }
        Ok(())
    }

    fn frame(&mut self, data: &[u8]) -> Result<(), Broken> {
        if data.is_empty() {
            return Ok(());
        }
        if self.moved > self.most {
            return Err(Broken::TooLong);
        }
        match &mut self.framing {
            Framing::Length(left) => *left = left.checked_sub(data.len() as u64).ok_or(Broken::Malformed)?,
            Framing::Chunked => self.out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes()),
            Framing::End => {}
            Framing::Empty => return Err(Broken::Malformed),
        }
        self.out.extend_from_slice(data);
        if self.framing == Framing::Chunked {
            self.out.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    fn end(&mut self, trailers: Option<&::http::HeaderMap>) -> Result<(), Broken> {
        self.from = None;
        match self.framing {
            Framing::Length(1..) => return Err(Broken::From),
            Framing::Chunked => {
                self.out.extend_from_slice(b"0\r\n");
                trailers.into_iter().for_each(|trailers| downgrade::trailer_lines(trailers, &mut self.out));
                self.out.extend_from_slice(b"\r\n");
            }
            _ => {}
        }
        Ok(())
    }
}
