//! A stream of HTTP/2 into another one.

use std::task::{Context, Poll, ready};

use ::h2::{Error, Reason, RecvStream, SendStream};
use bytes::Bytes;

use super::send::{To, poll_send};
use crate::engine::memory::{Chunk, MemoryHold};
use crate::http::pump::Broken;

/// A body on its way.
#[derive(Debug)]
pub(crate) struct Between {
    pending: Bytes,
    state: State,
    /// It is an answer, whose sender may say that it has heard enough.
    answer: bool,
    /// How long the body may become, and how long it is so far.
    most: u64,
    taken: u64,
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
    /// A request's body, or none.
    pub(crate) fn request(empty: bool) -> Between {
        let state = if empty { State::Done } else { State::Data };
        Between { pending: Bytes::new(), state, answer: false, most: u64::MAX, taken: 0, moved: 0 }
    }

    /// The same, but the body may not be longer than this.
    pub(crate) fn at_most(mut self, most: Option<u64>) -> Between {
        self.most = most.unwrap_or(u64::MAX);
        self
    }

    /// An answer's body, or none.
    pub(crate) fn answer(empty: bool) -> Between {
        Between { answer: true, ..Between::request(empty) }
    }

    /// Whether nothing was taken yet.
    pub(crate) fn untouched(&self) -> bool {
        self.moved == 0 && self.pending.is_empty() && matches!(self.state, State::Data | State::Done)
    }

    /// True if bytes wait for the other side to take them.
    pub(crate) fn waits_for_room(&self) -> bool {
        !self.pending.is_empty()
    }

    /// True if the stream was ended.
    pub(crate) fn ended(&self) -> bool {
        self.state == State::Done
    }

    /// Moves what can be moved; ready when the stream is ended.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        from: &mut RecvStream,
        to: &mut SendStream<Chunk>,
        held: &MemoryHold,
    ) -> Poll<Result<(), Broken>> {
        loop {
            if self.taken > self.most {
                return Poll::Ready(Err(Broken::TooLong));
            }
            if !self.pending.is_empty() {
                let peer = if self.answer { To::Client } else { To::Backend };
                let last = self.state == State::Last;
                let sent = ready!(poll_send(context, to, &mut self.pending, last, (held, peer)))?;
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
                        self.taken += data.len() as u64;
                        self.pending = data;
                        if from.is_end_stream() && !self.pending.is_empty() {
                            self.state = State::Last;
                        }
                    }
                    Some(Err(error)) if self.answer && has_heard_enough(&error) => {
                        self.state = State::Done;
                        to.send_data(Chunk::default(), true).map_err(|_| Broken::To)?;
                    }
                    Some(Err(_)) => return Poll::Ready(Err(Broken::From)),
                    None => self.state = State::Trailers,
                },
                State::Trailers => {
                    let trailers = ready!(from.poll_trailers(context)).map_err(|_| Broken::From)?;
                    self.state = State::Done;
                    let ended = match trailers {
                        Some(trailers) => to.send_trailers(trailers),
                        None => to.send_data(Chunk::default(), true),
                    };
                    ended.map_err(|_| Broken::To)?;
                }
            }
        }
    }
}

/// Whether a backend ended a stream because its answer is complete and it wants no more of the request (RFC 9113, 8.1). That may come
/// before the end of the answer was looked at.
pub(crate) fn has_heard_enough(error: &Error) -> bool {
    error.is_reset() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR)
}
