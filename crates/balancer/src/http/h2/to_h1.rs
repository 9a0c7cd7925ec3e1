//! A stream of a client to a backend that speaks HTTP/1.

use std::task::{Context as Task, Poll, ready};

use ::h2::{Reason, RecvStream};
use ::http::Response as Answer;

use super::Streams;
use super::receive::Receive;
use super::send::Send;
use super::stream::Stream;
use crate::http::attempts::{Attempts, BackendConnection, Failure, Sent};
use crate::http::buffer::{Buffers, Size};
use crate::http::dial::Backend;
use crate::http::downgrade;
use crate::http::head::Framing;
use crate::http::pump::Broken;
use crate::http::refusal::Refusal;
use crate::http::request::Request;
use crate::http::response::{Interims, Response};
use crate::serving::Serving;

impl Stream {
    /// To a backend that speaks HTTP/1.
    pub(super) async fn exchange_h1(
        &mut self,
        request: Request,
        head: Vec<u8>,
        body: RecvStream,
    ) -> Result<(), Option<Refusal>> {
        let shared = self.streams.shared.clone();
        let most = self.asking().longest_body;
        let mut upload = Receive::new(head, Some(body), request.body).at_most(most);
        let mut attempts = Attempts::new(self.serving.clone());
        let replayable = request.body == Framing::Empty && request.method.repeatable();
        loop {
            let Stream { streams, watch, .. } = self;
            let reached = attempts.reach(&streams.connection, &shared, watch, !replayable).await?;
            let BackendConnection { chosen, mut backend, place } = reached;
            if let Some(record) = &mut self.record {
                record.backend(chosen.address());
            }
            match self.answer(&mut backend, &request, &mut upload, &shared.buffers).await {
                Ok((response, answer, sent)) => {
                    chosen.succeeded();
                    let reached = BackendConnection { chosen, backend, place };
                    return self.deliver((&response, answer), reached, (upload, sent)).await;
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
        let idle = self.idle();
        let mut sent = false;
        let mut started = false;
        let mut interims = Interims::default();
        loop {
            let Stream { respond, record, watch, base, calls, .. } = self;
            let waited = watch.limit_from(idle, &mut started, |task, watch| {
                if respond.poll_reset(task).is_ready() {
                    return Poll::Ready(Err(Failure::Client));
                }
                let before = upload.moved;
                if !sent {
                    sent = poll_upload(task, upload, backend)?;
                }
                if before != upload.moved {
                    watch.moved(idle);
                }
                if let (true, Some(record)) = (sent, record.as_mut()) {
                    record.sent();
                }
                let answered = poll_answer(task, backend, request, buffers);
                if answered.is_pending() {
                    watch.held.set(*base + upload.held() + backend.inlet.capacity());
                    watch.client_owes(!sent && !*calls && upload.waits_for_body(), upload.moved);
                }
                answered
            });
            let (response, answer) = waited.await??;
            backend.inlet.consume(response.length, buffers);
            if !response.interim() {
                self.record.iter_mut().for_each(|record| record.answered(response.status));
                return Ok((response, answer, sent));
            }
            interims.count()?;
            // Interim answers are a courtesy: a client that cannot take them loses nothing.
            if !self.watch.held.is_behind() {
                self.watch.held.count_head(response.length);
                let _ = self.respond.send_informational(answer);
            }
        }
    }

    /// Passes an answer back. The backend's connection is given back once all of the answer was
    /// read, even if the client has not taken it yet.
    pub(super) async fn deliver(
        &mut self,
        (response, answer): (&Response, Answer<()>),
        reached: BackendConnection,
        (mut upload, mut sent): (Receive, bool),
    ) -> Result<(), Option<Refusal>> {
        let shared = self.streams.shared.clone();
        let BackendConnection { chosen, backend, place } = reached;
        let address = chosen.address();
        self.streams.connection.context.counters().answered(response.status);
        let empty = response.body == Framing::Empty;
        let idle = self.idle();
        let mut backend = Some((backend, place));
        let mut head = None;
        if sent {
            // The head of a request that is sent is not needed any more.
            let head = upload.take_head();
            self.base = self.base.saturating_sub(head.capacity());
            shared.buffers.give_head(head);
        }
        let base = self.base;
        let mut answer = Some(answer);
        let mut download = Send::new(response.body);
        let Stream { respond, watch, serving, streams, .. } = self;
        let carried = watch.limit(idle, |task, watch| {
            let before = (upload.moved, download.moved);
            if !sent && let Some((backend, _)) = &mut backend {
                // The end of a request that is already answered is nobody's trouble.
                sent = poll_upload(task, &mut upload, backend).unwrap_or(false);
            }
            if answer.is_some() {
                // A client that does not read gets no more heads either.
                if watch.held.poll_outbox(task).is_ready()
                    && let Some(answer) = answer.take()
                {
                    watch.held.count_head(response.length * 2);
                    head = Some(respond.send_response(answer, empty).map_err(|_| Broken::To)?);
                } else if respond.poll_reset(task).is_ready() {
                    return Poll::Ready(Err(Broken::To));
                }
            }
            let Some(to) = &mut head else {
                watch.client_owes(true, 0);
                return Poll::Pending;
            };
            if empty {
                return Poll::Ready(Ok(()));
            }
            let polled = match &mut backend {
                Some((backend, _)) => {
                    let from = (&mut backend.inlet, &mut backend.stream);
                    download.poll(task, from, to, &shared.buffers, &watch.held)
                }
                None => download.poll_rest(task, to, &watch.held),
            };
            if before != (upload.moved, download.moved) {
                watch.moved(idle);
            }
            if polled.is_ready() {
                return polled;
            }
            if to.poll_reset(task).is_ready() {
                return Poll::Ready(Err(Broken::To));
            }
            if sent
                && download.is_read()
                && let Some((backend, _place)) = backend.take()
            {
                backend.keep(response.keep, address, serving, streams);
            }
            let inlet = backend.as_ref().map_or(0, |(backend, _)| backend.inlet.capacity());
            watch.held.set(base + upload.held() + download.held() + inlet);
            watch.client_owes(download.waits_for_room(), download.moved);
            polled
        });
        let carried = carried.await.unwrap_or_else(|why| Err(why.into()));
        if matches!(carried, Err(Broken::From | Broken::Malformed))
            && let Some(to) = &mut head
        {
            to.send_reset(Reason::INTERNAL_ERROR);
        }
        let moved = (upload.moved, download.moved);
        self.streams.connection.context.counters().carried(moved);
        self.record.take().into_iter().for_each(|record| record.done(moved, &self.serving));
        shared.buffers.give_head(upload.take_head());
        if let Some((backend, _place)) = backend {
            let keep = carried == Ok(()) && sent && response.keep;
            backend.keep(keep, address, &self.serving, &self.streams);
        }
        match carried {
            Ok(()) => Ok(()),
            Err(Broken::To) => Err(None),
            Err(_) => {
                chosen.failed();
                Ok(())
            }
        }
    }
}

impl Backend {
    /// Keeps the connection for another request if it can have one, else closes it.
    fn keep(mut self, keep: bool, address: std::net::SocketAddr, serving: &Serving, streams: &Streams) {
        let shared = &streams.shared;
        if keep && !self.bound && self.inlet.is_empty() {
            let awaited = streams.connection.context.thread().backends.are_awaited();
            shared.pool.put(address, serving.reencrypt.clone(), self, awaited);
        } else {
            self.inlet.release(&shared.buffers);
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
