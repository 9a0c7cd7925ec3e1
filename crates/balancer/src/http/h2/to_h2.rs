//! A stream of a client to a backend that speaks HTTP/2, too.

use std::task::Poll;

use ::h2::{Reason, RecvStream, SendStream};
use ::http::Response as Answer;
use bytes::Bytes;

use super::between::Between;
use super::stream::Stream;
use crate::backends::Chosen;
use crate::http::attempts::{Attempts, Failure, Sent};
use crate::http::downgrade;
use crate::http::h2c::Sending;
use crate::http::pump::Broken;
use crate::http::refusal::Refusal;

impl Stream {
    /// To a backend that speaks HTTP/2.
    pub(super) async fn exchange_h2(&mut self, body: RecvStream) -> Result<(), Option<Refusal>> {
        let (head, request) = downgrade::to_h2(&self.parts, body.is_end_stream(), &self.asking())?;
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
        let Stream { respond, record, watch, .. } = self;
        let waited = watch.limit(idle, |task, watch| {
            if respond.poll_reset(task).is_ready() {
                return Poll::Ready(Err(Failure::Client));
            }
            let before = upload.moved;
            let polled = upload.poll(task, body, to);
            if before != upload.moved {
                watch.start(idle);
            }
            match polled {
                Poll::Ready(Err(Broken::From)) => return Poll::Ready(Err(Failure::Client)),
                Poll::Ready(Err(Broken::TooLong)) => return Poll::Ready(Err(Failure::Refused(Refusal::BODY))),
                // Its answer may say why it takes no more.
                Poll::Ready(Err(_)) | Poll::Pending => {}
                Poll::Ready(Ok(())) => record.iter_mut().for_each(|record| record.sent()),
            }
            waiting.poll(task)
        });
        let answer = waited.await.map_err(|_| Failure::Late)??;
        self.record.iter_mut().for_each(|record| record.answered(answer.status().as_u16()));
        Ok(answer)
    }

    /// Passes back the answer of a backend that speaks HTTP/2.
    pub(super) async fn deliver2(
        &mut self,
        answer: Answer<RecvStream>,
        chosen: Chosen,
        (mut body, mut upload): (RecvStream, Between),
        mut up: SendStream<Bytes>,
    ) -> Result<(), Option<Refusal>> {
        let (parts, mut from) = answer.into_parts();
        let (status, empty) = (parts.status.as_u16(), from.is_end_stream());
        self.streams.connection.context.counters().answered(status);
        let mut to = self.respond.send_response(downgrade::answer_between_h2(parts), empty).map_err(|_| None)?;
        let (idle, mut download) = (self.idle(), Between::answer(empty));
        let carried = self.watch.limit(idle, |task, watch| {
            let before = (upload.moved, download.moved);
            // The end of a request that is already answered is nobody's trouble, unless it has none.
            if upload.poll(task, &mut body, &mut up) == Poll::Ready(Err(Broken::TooLong)) {
                return Poll::Ready(Err(Broken::TooLong));
            }
            let polled = download.poll(task, &mut from, &mut to);
            if before != (upload.moved, download.moved) {
                watch.start(idle);
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
                to.send_reset(Reason::CANCEL);
                return Err(None);
            }
            Err(_) => {
                chosen.failed();
                to.send_reset(Reason::INTERNAL_ERROR);
            }
        }
        Ok(())
    }
}
