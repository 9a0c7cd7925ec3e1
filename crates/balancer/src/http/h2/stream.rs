//! One stream of a client: a request and its answer.

use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use ::h2::server::SendResponse;
use ::h2::{Reason, RecvStream, SendStream};
use ::http::{Request as Head, Response as Answer, StatusCode, header, request};
use bytes::Bytes;

use super::Streams;
use super::between::Between;
use super::receive::Receive;
use super::send::Send;
use crate::backends::Chosen;
use crate::http::attempts::{Attempts, Failure, Sent};
use crate::http::buffer::{Buffers, Size};
use crate::http::dial::Backend;
use crate::http::downgrade;
use crate::http::head::Framing;
use crate::http::pump::Broken;
use crate::http::record::Record;
use crate::http::refusal::Refusal;
use crate::http::request::{Asking, Request};
use crate::http::response::Response;
use crate::http::watch::Watch;
use crate::serving::Serving;
use crate::spec::Speaks;

/// A request that is being served.
struct Stream<'a> {
    streams: &'a Streams,
    parts: request::Parts,
    respond: SendResponse<Bytes>,
    serving: Arc<Serving>,
    record: Option<Box<Record>>,
    watch: Watch,
}

/// Serves one request to its end.
pub(super) async fn run(streams: &Streams, request: Head<RecvStream>, respond: SendResponse<Bytes>) {
    let serving = streams.connection.current.get();
    let (parts, body) = request.into_parts();
    let watch = Watch::new(serving.spec.idle);
    let mut stream = Stream { streams, parts, respond, serving, record: None, watch };
    if stream.serving.log.is_some() {
        let note = downgrade::note(&stream.parts, &stream.asking());
        stream.record = Some(Record::new(&streams.connection, note));
    }
    let outcome = match stream.serving.listener.speaks {
        Speaks::H2c => stream.to_h2(body).await,
        _ => stream.to_h1(body).await,
    };
    match outcome {
        Ok(()) => {}
        Err(Some(refusal)) => stream.refuse(refusal),
        Err(None) => streams.taken_back.set(streams.taken_back.get() + 1),
    }
}

impl Stream<'_> {
    fn asking(&self) -> Asking<'_> {
        let Stream { streams, serving, .. } = self;
        let forwarded = &streams.connection.forwarded;
        Asking {
            forwarded,
            trusted: !serving.trusted.is_empty() && forwarded.trusted(&serving.trusted),
            longest_body: None,
        }
    }

    fn idle(&self) -> Duration {
        self.serving.spec.idle
    }

    /// Answers ourselves.
    fn refuse(&mut self, refusal: Refusal) {
        let body = refusal.body();
        let mut answer = Answer::new(());
        *answer.status_mut() = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_GATEWAY);
        answer
            .headers_mut()
            .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
        answer.headers_mut().insert(header::CONTENT_LENGTH, header::HeaderValue::from(body.len()));
        self.streams.connection.context.counters().answered(refusal.status);
        let (record, length, head_only) = (self.record.take(), body.len() as u64, self.parts.method == "HEAD");
        if let Ok(mut stream) = self.respond.send_response(answer, head_only)
            && !head_only
        {
            // It is short: that it waits for room does not matter. What the client still sends is refused with the stream's end.
            let _ = stream.send_data(Bytes::from(body), true);
        }
        record.into_iter().for_each(|record| record.refused(refusal.status, length, &self.serving));
    }

    /// To a backend that speaks HTTP/1.
    async fn to_h1(&mut self, body: RecvStream) -> Result<(), Option<Refusal>> {
        let shared = self.streams.shared.clone();
        let mut head = shared.buffers.head();
        let request = downgrade::to_h1(&self.parts, body.is_end_stream(), &self.asking(), &mut head)?;
        let mut upload = Receive::new(head, Some(body), request.body);
        let mut attempts = Attempts::new(self.serving.clone());
        let replayable = request.body == Framing::Empty && request.method.repeatable();
        loop {
            let (chosen, mut backend) = attempts.reach(&self.streams.connection, &shared, !replayable).await?;
            if let Some(record) = &mut self.record {
                record.backend(chosen.address());
            }
            match self.answer(&mut backend, &request, &mut upload, &shared.buffers).await {
                Ok((response, answer, sent)) => {
                    chosen.succeeded();
                    let upload = (upload, sent);
                    return self.deliver((response, answer), (chosen, backend), upload, &shared.buffers).await;
                }
                Err(failure) => {
                    backend.inlet.release(&shared.buffers);
                    let sent = Sent { reused: backend.reused, replayable: replayable && upload.rewind() };
                    attempts.again(failure, &chosen, sent, &self.streams.connection)?;
                }
            }
        }
    }

    /// Sends a request and waits for its answer; whether all of the request was sent by then.
    async fn answer(
        &mut self,
        backend: &mut Backend,
        request: &Request,
        upload: &mut Receive,
        buffers: &Buffers,
    ) -> Result<(Response, Answer<()>, bool), Failure> {
        let (idle, mut sent) = (self.idle(), false);
        loop {
            let Stream { respond, record, watch, .. } = self;
            let waited = watch.limit(idle, |task, watch| {
                if respond.poll_reset(task).is_ready() {
                    return Poll::Ready(Err(Failure::Client));
                }
                let before = upload.moved;
                if !sent {
                    sent = poll_upload(task, upload, backend)?;
                }
                if before != upload.moved {
                    watch.start(idle);
                }
                if let (true, Some(record)) = (sent, record.as_mut()) {
                    record.sent();
                }
                poll_answer(task, backend, request, buffers)
            });
            let (response, answer) = waited.await.map_err(|_| Failure::Late)??;
            backend.inlet.consume(response.length, buffers);
            if !response.interim() {
                self.record.iter_mut().for_each(|record| record.answered(response.status));
                return Ok((response, answer, sent));
            }
            // Interim answers are a courtesy: a client that cannot take them loses nothing.
            let _ = self.respond.send_informational(answer);
        }
    }

    /// Passes an answer back.
    async fn deliver(
        &mut self,
        (response, answer): (Response, Answer<()>),
        (chosen, mut backend): (Chosen, Backend),
        (mut upload, mut sent): (Receive, bool),
        buffers: &Buffers,
    ) -> Result<(), Option<Refusal>> {
        self.streams.connection.context.counters().answered(response.status);
        let empty = response.body == Framing::Empty;
        let mut to = self.respond.send_response(answer, empty).map_err(|_| None)?;
        let (idle, mut download) = (self.idle(), Send::new(response.body));
        let delivered = match empty {
            true => Ok(()),
            false => {
                let carried = self.watch.limit(idle, |task, watch| {
                    let before = (upload.moved, download.moved);
                    if !sent {
                        // The end of a request that is already answered is nobody's trouble.
                        sent = poll_upload(task, &mut upload, &mut backend).unwrap_or(false);
                    }
                    let polled = download.poll(task, (&mut backend.inlet, &mut backend.stream), &mut to, buffers);
                    if before != (upload.moved, download.moved) {
                        watch.start(idle);
                    }
                    if polled.is_pending() && to.poll_reset(task).is_ready() {
                        return Poll::Ready(Err(Broken::To));
                    }
                    polled
                });
                carried.await.unwrap_or(Err(Broken::To))
            }
        };
        let moved = (upload.moved, download.moved);
        buffers.give_head(upload.into_head());
        self.record.take().into_iter().for_each(|record| record.done(moved, &self.serving));
        self.finish(delivered, &response, (chosen, backend), (sent, to), buffers)
    }

    /// Keeps the backend's connection if it can be used again, and ends the stream as its answer ended.
    fn finish(
        &mut self,
        delivered: Result<(), Broken>,
        response: &Response,
        (chosen, mut backend): (Chosen, Backend),
        (sent, mut to): (bool, SendStream<Bytes>),
        buffers: &Buffers,
    ) -> Result<(), Option<Refusal>> {
        if delivered.is_ok() && sent && response.keep && backend.inlet.is_empty() {
            let tls = self.serving.reencrypt.clone();
            self.streams.shared.pool.put(chosen.address(), tls, backend.stream);
        } else {
            backend.inlet.release(buffers);
        }
        match delivered {
            Ok(()) => {}
            Err(Broken::To) => return Err(None),
            Err(_) => {
                chosen.failed();
                to.send_reset(Reason::INTERNAL_ERROR);
            }
        }
        Ok(())
    }

    /// To a backend that speaks HTTP/2.
    async fn to_h2(&mut self, body: RecvStream) -> Result<(), Option<Refusal>> {
        let (head, request) = downgrade::to_h2(&self.parts, body.is_end_stream(), &self.asking())?;
        let (mut attempts, mut body) = (Attempts::new(self.serving.clone()), body);
        let empty = body.is_end_stream();
        let mut upload = Between::new(empty);
        loop {
            let (chosen, line) = attempts.open(&self.streams.connection, &self.streams.shared).await?;
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
    async fn answer2(
        &mut self,
        body: &mut RecvStream,
        upload: &mut Between,
        (waiting, to): &mut crate::http::h2c::Sending,
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
    async fn deliver2(
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
        let (idle, mut download) = (self.idle(), Between::new(empty));
        let carried = self.watch.limit(idle, |task, watch| {
            let before = (upload.moved, download.moved);
            // The end of a request that is already answered is nobody's trouble.
            let _ = upload.poll(task, &mut body, &mut up);
            let polled = download.poll(task, &mut from, &mut to);
            if before != (upload.moved, download.moved) {
                watch.start(idle);
            }
            if polled.is_pending() && to.poll_reset(task).is_ready() {
                return Poll::Ready(Err(Broken::To));
            }
            polled
        });
        let carried = carried.await.unwrap_or(Err(Broken::To));
        let moved = (upload.moved, download.moved);
        self.record.take().into_iter().for_each(|record| record.done(moved, &self.serving));
        match carried {
            Ok(()) => {}
            Err(Broken::To) => return Err(None),
            Err(_) => {
                chosen.failed();
                to.send_reset(Reason::INTERNAL_ERROR);
            }
        }
        Ok(())
    }
}

/// Sends what can be sent of a request; whether that is all.
fn poll_upload(task: &mut Task<'_>, upload: &mut Receive, backend: &mut Backend) -> Result<bool, Failure> {
    match upload.poll(task, &mut backend.stream) {
        Poll::Ready(Ok(())) => Ok(true),
        // A backend that does not take the rest may say why.
        Poll::Pending | Poll::Ready(Err(Broken::To)) => Ok(false),
        Poll::Ready(Err(Broken::From)) => Err(Failure::Client),
        Poll::Ready(Err(_)) => Err(Failure::Refused(Refusal::BODY_LENGTH)),
    }
}

fn poll_answer(
    task: &mut Task<'_>,
    backend: &mut Backend,
    request: &Request,
    buffers: &Buffers,
) -> Poll<Result<(Response, Answer<()>), Failure>> {
    loop {
        if !backend.inlet.is_empty() {
            match downgrade::answer_to_h2(backend.inlet.bytes(), request) {
                Ok(Some(answer)) => return Poll::Ready(Ok(answer)),
                Ok(None) => {}
                Err(_) => return Poll::Ready(Err(Failure::Unreadable)),
            }
        }
        match ready!(backend.inlet.poll_fill(task, &mut backend.stream, Size::Small, buffers)) {
            Ok(1..) => {}
            _ => return Poll::Ready(Err(Failure::Broke { silent: backend.inlet.is_empty() })),
        }
    }
}
