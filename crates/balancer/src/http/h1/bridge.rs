//! One request of a client that speaks HTTP/1 to a backend that speaks HTTP/2.

use std::task::Poll;

use ::h2::{RecvStream, SendStream};
use ::http::Response as Answer;
use tokio::io::{AsyncRead, AsyncWrite};

use super::exchange::finish;
use super::{Next, Ready, Session};
use crate::engine::memory::Chunk;
use crate::http::attempts::{Attempts, Failure, Sent};
use crate::http::downgrade::{self, web_socket};
use crate::http::h2::receive::Receive;
use crate::http::h2::send::Send;
use crate::http::h2c::Sending;
use crate::http::head::{self, Framing};
use crate::http::pump::Broken;
use crate::http::record::Record;
use crate::http::refusal::Refusal;
use crate::http::request::{Method, Request};
use crate::serving::Serving;

impl<S: AsyncRead + AsyncWrite + Unpin + 'static> Session<S> {
    /// Passes a request on and its answer back.
    pub(super) async fn bridge(&mut self, ready: Ready) -> Next {
        let Ready { request, head, serving, mut record } = ready;
        let next = match self.pass(&request, &head, &serving, &mut record).await {
            Ok(next) => next,
            Err(None) => return Next::Abort,
            Err(Some(refusal)) => {
                let goes_on = self.refuse(refusal, Some(&request), record, &serving).await;
                if goes_on { Next::Request } else { Next::Part }
            }
        };
        self.shared.buffers.give_head(head);
        next
    }

    async fn pass(
        &mut self,
        request: &Request,
        head: &[u8],
        serving: &std::sync::Arc<Serving>,
        record: &mut Option<Box<Record>>,
    ) -> Result<Next, Option<Refusal>> {
        if request.method == Method::Connect {
            return Err(Some(Refusal::TARGET));
        }
        if request.upgrade
            && request.body == Framing::Empty
            && let Some(wanted) = web_socket::upgrade_to_h2(head)?
        {
            return Box::pin(self.upgrade(request, wanted, serving, record)).await;
        }
        let head = downgrade::h1_to_h2(head)?;
        let most = self.connection.context.thread().options().body;
        let mut attempts = Attempts::new(serving.clone());
        let mut upload = Send::request(request.body, most);
        let empty = request.body == Framing::Empty;
        self.invite(request).await?;
        loop {
            let (chosen, line) = attempts.open(&self.connection, &self.shared, &mut self.watch).await?;
            record.iter_mut().for_each(|record| record.backend(chosen.address()));
            let failure = match line.send(head.clone(), empty) {
                Err(failure) => failure,
                Ok(mut sending) => match self.answer2(&mut upload, empty, &mut sending).await {
                    Ok(answer) => {
                        chosen.succeeded();
                        record.iter_mut().for_each(|record| record.answered(answer.status().as_u16()));
                        let record = record.take();
                        return self.deliver2((request, answer), (upload, empty, sending.1), serving, record).await;
                    }
                    Err(failure) => failure,
                },
            };
            let sent = Sent { reused: true, replayable: empty && request.method.repeatable() };
            attempts.again(failure, &chosen, sent, &self.connection)?;
        }
    }

    /// A client that asked whether it may go on is told so by us: HTTP/2 has windows for that.
    async fn invite(&mut self, request: &Request) -> Result<(), Option<Refusal>> {
        if request.expects && self.inlet.is_empty() {
            self.say(b"HTTP/1.1 100 Continue\r\n\r\n").await.map_err(|_| None)?;
        }
        Ok(())
    }

    pub(super) async fn answer2(
        &mut self,
        upload: &mut Send,
        empty: bool,
        (waiting, to): &mut Sending,
    ) -> Result<Answer<RecvStream>, Failure> {
        let Session { stream, inlet, watch, shared, idle, .. } = self;
        let idle = *idle;
        let waited = watch.limit(idle, |task, watch| {
            if !empty {
                let before = upload.moved;
                match upload.poll(task, (inlet, stream), to, &shared.buffers, &watch.held) {
                    Poll::Ready(Err(Broken::From)) => return Poll::Ready(Err(Failure::Client)),
                    Poll::Ready(Err(Broken::Malformed)) => return Poll::Ready(Err(Failure::Refused(Refusal::CHUNKS))),
                    Poll::Ready(Err(Broken::TooLong)) => return Poll::Ready(Err(Failure::Refused(Refusal::BODY))),
                    // The answer may say why the backend takes no more.
                    _ => {}
                }
                if before != upload.moved {
                    watch.moved(idle);
                }
            }
            let answered = waiting.poll(task);
            if answered.is_pending() {
                watch.held.set(upload.held() + inlet.capacity());
                let owes = !empty && !upload.ended() && !upload.waits_for_room();
                watch.client_owes(owes, upload.moved);
            }
            answered
        });
        let answer = waited.await??;
        // As many fields as an answer of HTTP/1 may have.
        if answer.headers().len() > head::FIELDS { Err(Failure::Unreadable) } else { Ok(answer) }
    }

    pub(super) async fn deliver2(
        &mut self,
        (request, answer): (&Request, Answer<RecvStream>),
        (mut upload, empty, mut up): (Send, bool, SendStream<Chunk>),
        serving: &Serving,
        record: Option<Box<Record>>,
    ) -> Result<Next, Option<Refusal>> {
        let (parts, from) = answer.into_parts();
        self.connection.context.counters().answered(parts.status.as_u16());
        let mut out = self.shared.buffers.head();
        let framing = downgrade::answer_to_h1(&parts, from.is_end_stream(), request, &mut out);
        let keep = request.keep && framing != Framing::End && self.goes_on(serving);
        finish(&mut out, keep, request.old);
        let mut download = Receive::new(out, Some(from), framing).answer();
        let Session { stream, inlet, watch, shared, idle, .. } = self;
        let idle = *idle;
        let carried = watch.limit(idle, |task, watch| {
            let before = (upload.moved, download.moved);
            let mut rest = Poll::Ready(Ok(()));
            if !empty && !upload.ended() {
                rest = upload.poll(task, (inlet, stream), &mut up, &shared.buffers, &watch.held);
            }
            if rest == Poll::Ready(Err(Broken::TooLong)) {
                return Poll::Ready(Err(Broken::TooLong));
            }
            let polled = download.poll(task, stream);
            if before != (upload.moved, download.moved) {
                watch.moved(idle);
            }
            if polled.is_pending() {
                watch.held.set(upload.held() + inlet.capacity() + download.held() + download.unsent());
                watch.client_owes(download.unsent() > 0, download.moved);
            }
            // What is left of a request that is answered matters only to the next one.
            if keep && polled.is_ready() && rest.is_pending() { Poll::Pending } else { polled }
        });
        let carried = carried.await.unwrap_or_else(|why| Err(why.into()));
        let whole = empty || upload.ended();
        let moved = (upload.moved, download.moved);
        self.connection.context.counters().carried(moved);
        record.into_iter().for_each(|record| record.done(moved, serving));
        self.shared.buffers.give_head(download.into_head());
        Ok(match (carried, keep, whole) {
            (Err(_), ..) => Next::Abort,
            (Ok(()), true, true) => Next::Request,
            (Ok(()), false, true) => Next::Close,
            (Ok(()), _, false) => Next::Part,
        })
    }
}
