//! A stream of HTTP/2 into another one.

use std::task::{Context, Poll, ready};

use ::h2::{RecvStream, SendStream};
use bytes::Bytes;

use super::send::poll_send;
use crate::http::pump::Broken;

/// A body on its way.
#[derive(Debug)]
pub(crate) struct Between {
    pending: Bytes,
    state: State,
    /// How many bytes were sent.
    pub(crate) moved: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Data,
    /// What is pending is the last.
    Last,
    Trailers,
    Done,
}

impl Between {
    /// A body, or none.
    pub(crate) fn new(empty: bool) -> Between {
        Between { pending: Bytes::new(), state: if empty { State::Done } else { State::Data }, moved: 0 }
    }

    /// Whether nothing was taken yet.
    pub(crate) fn untouched(&self) -> bool {
        self.moved == 0 && self.pending.is_empty() && matches!(self.state, State::Data | State::Done)
    }

    /// Moves what can be moved; ready when the stream is ended.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        from: &mut RecvStream,
        to: &mut SendStream<Bytes>,
    ) -> Poll<Result<(), Broken>> {
        loop {
            if !self.pending.is_empty() {
                let sent = ready!(poll_send(context, to, &mut self.pending, self.state == State::Last))?;
                self.moved += sent;
                // Only what was passed on makes room for more.
                let _ = from.flow_control().release_capacity(usize::try_from(sent).unwrap_or(0));
                if self.pending.is_empty() && self.state == State::Last {
                    self.state = State::Done;
                }
                continue;
            }
            match self.state {
                State::Done => return Poll::Ready(Ok(())),
                State::Data | State::Last => match ready!(from.poll_data(context)) {
                    Some(Ok(data)) => {
                        self.pending = data;
                        if from.is_end_stream() && !self.pending.is_empty() {
                            self.state = State::Last;
                        }
                    }
                    Some(Err(_)) => return Poll::Ready(Err(Broken::From)),
                    None => self.state = State::Trailers,
                },
                State::Trailers => {
                    let trailers = ready!(from.poll_trailers(context)).map_err(|_| Broken::From)?;
                    self.state = State::Done;
                    let ended = match trailers {
                        Some(trailers) => to.send_trailers(trailers),
                        None => to.send_data(Bytes::new(), true),
                    };
                    ended.map_err(|_| Broken::To)?;
                }
            }
        }
    }
}
