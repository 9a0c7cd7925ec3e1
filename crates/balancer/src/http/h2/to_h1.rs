//! A stream of a client to a backend that speaks HTTP/1.

use std::task::{Context as Task, Poll, ready};

use ::h2::{Reason, RecvStream};
use ::http::Response as Answer;

use super::receive::Receive;
use super::send::Send;
use super::stream::Stream;
use crate::backends::Chosen;
use crate::http::attempts::{Attempts, Failure, Sent};
use crate::http::buffer::{Buffers, Size};
use crate::http::dial::Backend;
use crate::http::downgrade;
use crate::http::head::Framing;
use crate::http::pump::Broken;
use crate::http::refusal::Refusal;
use crate::http::request::Request;
use crate::http::response::Response;

impl Stream {
    /// To a backend that speaks HTTP/1.
    pub(super) async fn exchange_h1(&mut self, body: RecvStream) -> Result<(), Option<Refusal>> {
        let shared = self.streams.shared.clone();
        let mut head = shared.buffers.head();
        let request = downgrade::to_h1(&self.parts, body.is_end_stream(), &self.asking(), &mut head)?;
        let most = self.asking().longest_body;
        let mut upload = Receive::new(head, Some(body), request.body).at_most(most);
        let mut attempts = Attempts::new(self.serving.clone());
        let replayable = request.body == Framing::Empty && request.method.repeatable();
        loop {
            let Stream { streams, watch, .. } = self;
            let (chosen, mut backend) = attempts.reach(&streams.connection, &shared, watch, !replayable).await?;
            if let Some(record) = &mut self.record {
                record.backend(chosen.address());
            }
            match self.answer(&mut backend, &request, &mut upload, &shared.buffers).await {
                Ok((response, answer, sent)) => {
                    chosen.succeeded();
                    let delivered =
                        self.deliver((&response, answer), &mut backend, (&mut upload, sent), &shared.buffers);
                    let delivered = delivered.await;
                    shared.buffers.give_head(upload.into_head());
                    return self.finish(delivered, &response, chosen, backend);
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
    pub(super) async fn answer(
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

    /// Passes an answer back; whether all of the request was sent by then.
    pub(super) async fn deliver(
        &mut self,
        (response, answer): (&Response, Answer<()>),
        backend: &mut Backend,
        (upload, mut sent): (&mut Receive, bool),
        buffers: &Buffers,
    ) -> Result<bool, Broken> {
        self.streams.connection.context.counters().answered(response.status);
        let empty = response.body == Framing::Empty;
        let mut to = self.respond.send_response(answer, empty).map_err(|_| Broken::To)?;
        let (idle, mut download) = (self.idle(), Send::new(response.body));
        let carried = self.watch.limit(idle, |task, watch| {
            let before = (upload.moved, download.moved);
            if !sent {
                // The end of a request that is already answered is nobody's trouble.
                sent = poll_upload(task, upload, backend).unwrap_or(false);
            }
            if empty {
                return Poll::Ready(Ok(()));
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
        let carried = carried.await.unwrap_or_else(|why| Err(why.into()));
        if matches!(carried, Err(Broken::From | Broken::Malformed)) {
            to.send_reset(Reason::INTERNAL_ERROR);
        }
        let moved = (upload.moved, download.moved);
        self.streams.connection.context.counters().carried(moved);
        self.record.take().into_iter().for_each(|record| record.done(moved, &self.serving));
        carried.map(|()| sent)
    }

    /// Keeps the backend's connection if it can be used again.
    pub(super) fn finish(
        &self,
        delivered: Result<bool, Broken>,
        response: &Response,
        chosen: Chosen,
        mut backend: Backend,
    ) -> Result<(), Option<Refusal>> {
        let shared = &self.streams.shared;
        if delivered == Ok(true) && response.keep && !backend.bound && backend.inlet.is_empty() {
            shared.pool.put(chosen.address(), self.serving.reencrypt.clone(), backend.stream);
            return Ok(());
        }
        backend.inlet.release(&shared.buffers);
        match delivered {
            Ok(_) => Ok(()),
            Err(Broken::To) => Err(None),
            Err(_) => {
                chosen.failed();
                Ok(())
            }
        }
    }
}

/// Sends what can be sent of a request; whether that is all.
fn poll_upload(task: &mut Task<'_>, upload: &mut Receive, backend: &mut Backend) -> Result<bool, Failure> {
    match upload.poll(task, &mut backend.stream) {
        Poll::Ready(Ok(())) => Ok(true),
        // A backend that does not take the rest may say why.
        Poll::Pending | Poll::Ready(Err(Broken::To)) => Ok(false),
        Poll::Ready(Err(Broken::From)) => Err(Failure::Client),
        Poll::Ready(Err(Broken::Malformed)) => Err(Failure::Refused(Refusal::BODY_LENGTH)),
        Poll::Ready(Err(Broken::TooLong)) => Err(Failure::Refused(Refusal::BODY)),
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
