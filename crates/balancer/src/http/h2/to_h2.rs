//! A stream of a client to a backend that speaks HTTP/2, too.

use std::task::Poll;

use ::h2::{Reason, RecvStream, SendStream};
use ::http::{Request as Head, Response as Answer};

use super::between::Between;
use super::stream::{Stream, size};
use crate::backends::Chosen;
use crate::engine::memory::Chunk;
use crate::http::attempts::{Attempts, Failure, Sent};
use crate::http::downgrade;
use crate::http::h2c::Sending;
use crate::http::head;
use crate::http::pump::Broken;
use crate::http::refusal::Refusal;
use crate::http::request::Request;

impl Stream {
    /// To a backend that speaks HTTP/2.
    pub(super) async fn exchange_h2(
        &mut self,
        head: Head<()>,
        request: Request,
        body: RecvStream,
    ) -> Result<(), Option<Refusal>> {
        let (mut attempts, mut body) = (Attempts::new(self.serving.clone()), body);
        let empty = body.is_end_stream();
        let mut upload = Between::request(empty).at_most(self.asking().longest_body);
        loop {
            let Stream { streams, watch, .. } = self;
            let (chosen, line) = attempts.open(&streams.connection, &streams.shared, watch).await?;
            self.record.iter_mut().for_each(|record| record.backend(chosen.address()));
            let mut sending = match line.send(head.clone(), empty) {
                Ok(sending) => sending,
                Err(failure) => {
                    let sent = Sent { reused: true, replayable: upload.untouched() };
                    attempts.again(failure, &chosen, sent, &self.streams.connection)?;
                    continue;
                }
            };
            let failure = match self.answer2(&mut body, &mut upload, &mut sending).await {
                Ok(answer) => {
                    chosen.succeeded();
                    return self.deliver2(answer, chosen, (body, upload), sending.1).await;
                }
                Err(failure) => failure,
            };
            let safe = sending.0.refused() || (empty && request.method.repeatable());
            let sent = Sent { reused: true, replayable: upload.untouched() && safe };
            attempts.again(failure, &chosen, sent, &self.streams.connection)?;
        }
    }

    /// Waits for the answer of a backend that speaks HTTP/2.
    pub(super) async fn answer2(
        &mut self,
        body: &mut RecvStream,
        upload: &mut Between,
        (waiting, to): &mut Sending,
    ) -> Result<Answer<RecvStream>, Failure> {
        let idle = self.idle();
        let Stream { respond, record, watch, base, calls, .. } = self;
        let waited = watch.limit(idle, |task, watch| {
            if respond.poll_reset(task).is_ready() {
                return Poll::Ready(Err(Failure::Client));
            }
            let before = upload.moved;
            let polled = upload.poll(task, body, to, &watch.held);
            if before != upload.moved {
                watch.moved(idle);
            }
            match polled {
                Poll::Ready(Err(Broken::From)) => return Poll::Ready(Err(Failure::Client)),
                Poll::Ready(Err(Broken::TooLong)) => return Poll::Ready(Err(Failure::Refused(Refusal::BODY))),
                // Its answer may say why it takes no more.
                Poll::Ready(Err(_)) | Poll::Pending => {}
                Poll::Ready(Ok(())) => record.iter_mut().for_each(|record| record.sent()),
            }
            let answered = waiting.poll(task);
            if answered.is_pending() {
                watch.held.set(*base + body.flow_control().used_capacity());
                let owes = !upload.ended() && !upload.waits_for_room();
                watch.client_owes(owes && !*calls, upload.moved);
            }
            answered
        });
        let answer = waited.await??;
        // As many fields as an answer of HTTP/1 may have.
        if answer.headers().len() > head::FIELDS {
            return Err(Failure::Unreadable);
        }
        self.record.iter_mut().for_each(|record| record.answered(answer.status().as_u16()));
        Ok(answer)
    }

    /// Passes back the answer of a backend that speaks HTTP/2.
    pub(super) async fn deliver2(
        &mut self,
        answer: Answer<RecvStream>,
        chosen: Chosen,
        (mut body, mut upload): (RecvStream, Between),
        mut up: SendStream<Chunk>,
    ) -> Result<(), Option<Refusal>> {
        let (parts, mut from) = answer.into_parts();
        let (status, empty) = (parts.status.as_u16(), from.is_end_stream());
        self.streams.connection.context.counters().answered(status);
        let idle = self.idle();
        let base = self.base;
        let mut download = Between::answer(empty);
        let length = size(&parts.headers);
        let mut answer = Some(downgrade::answer_between_h2(parts));
        let mut head = None;
        let Stream { respond, watch, .. } = self;
        let carried = watch.limit(idle, |task, watch| {
            let before = (upload.moved, download.moved);
            if answer.is_some() {
                // A client that does not read gets no more heads either.
                if watch.held.poll_outbox(task).is_ready()
                    && let Some(answer) = answer.take()
                {
                    watch.held.count_head(length);
                    head = Some(respond.send_response(answer, empty).map_err(|_| Broken::To)?);
                } else if respond.poll_reset(task).is_ready() {
                    return Poll::Ready(Err(Broken::To));
                }
            }
            let Some(to) = &mut head else {
                watch.held.set(base + length);
                watch.client_owes(true, 0);
                return Poll::Pending;
            };
            // The end of a request that is already answered is nobody's trouble, unless it has none.
            if upload.poll(task, &mut body, &mut up, &watch.held) == Poll::Ready(Err(Broken::TooLong)) {
                return Poll::Ready(Err(Broken::TooLong));
            }
            let polled = download.poll(task, &mut from, to, &watch.held);
            if before != (upload.moved, download.moved) {
                watch.moved(idle);
            }
            if polled.is_pending() {
                let received = body.flow_control().used_capacity() + from.flow_control().used_capacity();
                watch.held.set(base + received);
                watch.client_owes(download.waits_for_room(), download.moved);
            }
            if polled.is_pending() && to.poll_reset(task).is_ready() {
                return Poll::Ready(Err(Broken::To));
            }
            polled
        });
        let carried = carried.await.unwrap_or_else(|why| Err(why.into()));
        let moved = (upload.moved, download.moved);
        self.streams.connection.context.counters().carried(moved);
        self.record.take().into_iter().for_each(|record| record.done(moved, &self.serving));
        match carried {
            Ok(()) => {}
            Err(Broken::To) => return Err(None),
            Err(Broken::TooLong) => {
                up.send_reset(Reason::CANCEL);
                head.into_iter().for_each(|mut to| to.send_reset(Reason::CANCEL));
                return Err(None);
            }
            Err(_) => {
                chosen.failed();
                head.into_iter().for_each(|mut to| to.send_reset(Reason::INTERNAL_ERROR));
            }
        }
        Ok(())
    }
}
