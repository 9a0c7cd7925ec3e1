//! A WebSocket of a client that speaks HTTP/1, in a stream to a backend that speaks HTTP/2 (RFC 8441).

use std::pin::Pin;
use std::sync::Arc;
use std::task::ready;

use ::h2::{RecvStream, SendStream};
use ::http::{Request as Head, Response as Answer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Next, Session};
use crate::engine::memory::Chunk;
use crate::http::attempts::{Attempts, Sent};
use crate::http::downgrade::web_socket::{self, Key};
use crate::http::h2::receive::Receive;
use crate::http::h2::send::Send;
use crate::http::head::Framing;
use crate::http::pump::Broken;
use crate::http::record::Record;
use crate::http::refusal::Refusal;
use crate::http::request::Request;
use crate::serving::Serving;

impl<S: AsyncRead + AsyncWrite + Unpin + 'static> Session<S> {
    /// Asks a backend for it, and carries bytes to its end; an answer that gives none is passed back.
    pub(super) async fn upgrade(
        &mut self,
        request: &Request,
        (head, key): (Head<()>, Key),
        serving: &Arc<Serving>,
        record: &mut Option<Box<Record>>,
    ) -> Result<Next, Option<Refusal>> {
        let mut attempts = Attempts::new(serving.clone());
        let mut nothing = Send::request(Framing::Empty, None);
        loop {
            let (chosen, line) = attempts.open(&self.connection, &self.shared, &mut self.watch).await?;
            record.iter_mut().for_each(|record| record.backend(chosen.address()));
            if !line.offers_tunnels(self.connection.context.thread().options().connect).await {
                return Err(Some(Refusal::NO_TUNNEL));
            }
            let mut sending = match line.send(head.clone(), false) {
                Ok(sending) => sending,
                // A connection that takes no more has got nothing.
                Err(failure) => {
                    let sent = Sent { reused: true, replayable: true };
                    attempts.again(failure, &chosen, sent, &self.connection)?;
                    continue;
                }
            };
            let answer = match self.answer2(&mut nothing, true, &mut sending).await {
                Ok(answer) => answer,
                Err(failure) => {
                    let sent = Sent { reused: true, replayable: sending.0.refused() };
                    attempts.again(failure, &chosen, sent, &self.connection)?;
                    continue;
                }
            };
            chosen.succeeded();
            let given = answer.status().is_success();
            let status = if given { 101 } else { answer.status().as_u16() };
            record.iter_mut().for_each(|record| record.answered(status));
            let record = record.take();
            if given {
                return Ok(self.converse(answer, sending.1, &key, serving, record).await);
            }
            return self.deliver2((request, answer), (nothing, true, sending.1), serving, record).await;
        }
    }

    /// Tells the client that it has its WebSocket, and carries bytes both ways.
    async fn converse(
        &mut self,
        answer: Answer<RecvStream>,
        mut to: SendStream<Chunk>,
        key: &Key,
        serving: &Serving,
        record: Option<Box<Record>>,
    ) -> Next {
        self.connection.context.counters().answered(101);
        let (parts, from) = answer.into_parts();
        let mut out = self.shared.buffers.head();
        web_socket::answer_to_h1(parts.headers, key, &mut out);
        let mut up = Send::request(Framing::End, None);
        let mut down = Receive::new(out, Some(from), Framing::End);
        let Session { stream, inlet, watch, connection, shared, idle, .. } = self;
        let (idle, mut shut) = (*idle, false);
        let carried = watch.limit(idle, |task, watch| {
            let before = (up.moved, down.moved);
            let sent = up.poll(task, (inlet, stream), &mut to, &shared.buffers, &watch.held)?;
            let received = down.poll(task, stream)?;
            if before != (up.moved, down.moved) {
                watch.moved(idle);
            }
            // A tunnel has no least rate, but its memory can be needed by others.
            watch.held.set(up.held() + inlet.capacity() + down.held() + down.unsent());
            watch.held.waits_for_client(down.unsent() > 0);
            ready!(received);
            if !shut {
                ready!(Pin::new(&mut *stream).poll_shutdown(task)).map_err(|_| Broken::To)?;
                shut = true;
            }
            sent.map(Ok::<(), Broken>)
        });
        // However it ended, it has: a stream that was not ended is reset when it is dropped.
        let _ = carried.await;
        inlet.release(&shared.buffers);
        let moved = (up.moved, down.moved);
        shared.buffers.give_head(down.into_head());
        connection.context.counters().carried(moved);
        record.into_iter().for_each(|record| record.done(moved, serving));
        Next::Abort
    }
}
