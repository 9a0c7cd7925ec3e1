//! A stream of a client that becomes a WebSocket (RFC 8441): bytes both ways, until both sides have ended or nothing moves any more.
//! A backend that speaks HTTP/1 is asked for an upgrade, one that speaks HTTP/2 for the same as we were.

use std::pin::Pin;
use std::task::{Context as Task, Poll, ready};

use ::h2::{Reason, RecvStream, SendStream};
use ::http::Response as Answer;
use tokio::io::AsyncWrite;

use super::between::Between;
use super::receive::Receive;
use super::send::Send;
use super::stream::Stream;
use crate::engine::memory::{Chunk, MemoryHold};
use crate::http::attempts::{Attempts, BackendConnection, Sent};
use crate::http::buffer::Buffers;
use crate::http::dial::Backend;
use crate::http::downgrade;
use crate::http::downgrade::web_socket::{self, Key};
use crate::http::head::Framing;
use crate::http::pump::Broken;
use crate::http::refusal::Refusal;
use crate::spec::Speaks;

/// The two ways of a tunnel, and how much went each.
trait Ways {
    fn moved(&self) -> (u64, u64);

    /// Moves what can be moved to a client; ready when both ways have ended.
    fn poll(&mut self, task: &mut Task<'_>, to: &mut SendStream<Chunk>, held: &MemoryHold) -> Poll<Result<(), Broken>>;

    /// Returns the bytes that wait, and whether they wait for the client.
    fn waiting(&mut self) -> (usize, bool);
}

impl Stream {
    /// What a client's CONNECT is to become.
    pub(super) async fn tunnel(&mut self, body: RecvStream) -> Result<(), Option<Refusal>> {
        match self.serving.listener.speaks {
            Speaks::H2c => self.tunnel_h2(body).await,
            _ => self.tunnel_h1(body).await,
        }
    }

    /// Through a backend that speaks HTTP/1. Its connection is asked once: who knows what a backend did with a half-open one.
    async fn tunnel_h1(&mut self, body: RecvStream) -> Result<(), Option<Refusal>> {
        let shared = self.streams.shared.clone();
        let (key, mut head) = (Key::new(fastrand::u128(..)), shared.buffers.head());
        let request = web_socket::to_h1(&self.parts, &self.asking(), &key, &mut head)?;
        let (mut attempts, mut upload) =
            (Attempts::new(self.serving.clone()), Receive::new(head, None, Framing::Empty));
        let Stream { streams, watch, .. } = self;
        let reached = attempts.reach(&streams.connection, &shared, watch, true).await?;
        let BackendConnection { chosen, mut backend, place } = reached;
        self.record.iter_mut().for_each(|record| record.backend(chosen.address()));
        let (response, mut answer, sent) = match self.answer(&mut backend, &request, &mut upload, &shared.buffers).await
        {
            Ok(answered) => answered,
            Err(failure) => {
                backend.inlet.release(&shared.buffers);
                let sent = Sent { reused: backend.reused, replayable: false };
                let told = attempts.again(failure, &chosen, sent, &self.streams.connection);
                return told.and(Err(Some(Refusal::BROKE_OFF)));
            }
        };
        if !response.tunnel {
            chosen.succeeded();
            let reached = BackendConnection { chosen, backend, place };
            return self.deliver((&response, answer), reached, (upload, sent)).await;
        }
        shared.buffers.give_head(upload.into_head());
        if !key.is_answered(answer.headers_mut()) {
            chosen.failed();
            backend.inlet.release(&shared.buffers);
            return Err(Some(Refusal::ANSWER));
        }
        chosen.succeeded();
        let up = Receive::new(Vec::new(), Some(body), Framing::End);
        let mut ways = Upgraded { up, shut: false, down: Send::new(Framing::End), backend, buffers: &shared.buffers };
        let carried = self.carry(answer, &mut ways).await;
        drop(place);
        ways.backend.inlet.release(&shared.buffers);
        carried
    }

    /// Through a backend that speaks HTTP/2, if it offers that.
    async fn tunnel_h2(&mut self, mut body: RecvStream) -> Result<(), Option<Refusal>> {
        let head = web_socket::to_h2(&self.parts, &self.asking())?;
        let (mut attempts, mut upload) = (Attempts::new(self.serving.clone()), Between::request(false));
        loop {
            let Stream { streams, watch, .. } = self;
            let (chosen, line) = attempts.open(&streams.connection, &streams.shared, watch).await?;
            self.record.iter_mut().for_each(|record| record.backend(chosen.address()));
            if !line.offers_tunnels(self.streams.connection.context.thread().options().connect).await {
                return Err(Some(Refusal::NO_TUNNEL));
            }
            let mut sending = match line.send(head.clone(), false) {
                Ok(sending) => sending,
                // A connection that takes no more has got nothing.
                Err(failure) => {
                    let sent = Sent { reused: true, replayable: upload.untouched() };
                    attempts.again(failure, &chosen, sent, &self.streams.connection)?;
                    continue;
                }
            };
            let answer = match self.answer2(&mut body, &mut upload, &mut sending).await {
                Ok(answer) => answer,
                Err(failure) => {
                    let sent = Sent { reused: true, replayable: upload.untouched() && sending.0.refused() };
                    attempts.again(failure, &chosen, sent, &self.streams.connection)?;
                    continue;
                }
            };
            chosen.succeeded();
            if !answer.status().is_success() {
                return self.deliver2(answer, chosen, (body, upload), sending.1).await;
            }
            let (parts, from) = answer.into_parts();
            let down = Between::answer(from.is_end_stream());
            let mut ways = Passed { body, upload, up: sending.1, from, down };
            return self.carry(downgrade::answer_between_h2(parts), &mut ways).await;
        }
    }

    /// Tells the client that it has its tunnel, and carries bytes to its end.
    async fn carry(&mut self, answer: Answer<()>, ways: &mut impl Ways) -> Result<(), Option<Refusal>> {
        self.streams.connection.context.counters().answered(answer.status().as_u16());
        let mut to = self.respond.send_response(answer, false).map_err(|_| None)?;
        let idle = self.idle();
        let base = self.base;
        let carried = self.watch.limit(idle, |task, watch| {
            let before = ways.moved();
            let polled = ways.poll(task, &mut to, &watch.held);
            if before != ways.moved() {
                watch.moved(idle);
            }
            // A tunnel has no least rate, but its memory can be needed by others.
            let (waiting, for_client) = ways.waiting();
            watch.held.set(base + waiting);
            watch.held.waits_for_client(for_client);
            polled
        });
        if !matches!(carried.await, Ok(Ok(()))) {
            // As a connection that is reset (RFC 8441, 5).
            to.send_reset(Reason::CANCEL);
        }
        let moved = ways.moved();
        self.streams.connection.context.counters().carried(moved);
        self.record.take().into_iter().for_each(|record| record.done(moved, &self.serving));
        // However it ended, it was what the client asked for.
        Ok(())
    }
}

/// Between a stream and a connection that was HTTP/1.
struct Upgraded<'a> {
    up: Receive,
    /// The backend was told that nothing more comes.
    shut: bool,
    down: Send,
    backend: Backend,
    buffers: &'a Buffers,
}

impl Upgraded<'_> {
    fn poll_up(&mut self, task: &mut Task<'_>) -> Poll<Result<(), Broken>> {
        if !self.shut {
            ready!(self.up.poll(task, &mut self.backend.stream))?;
            ready!(Pin::new(&mut self.backend.stream).poll_shutdown(task)).map_err(|_| Broken::To)?;
            self.shut = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl Ways for Upgraded<'_> {
    fn moved(&self) -> (u64, u64) {
        (self.up.moved, self.down.moved)
    }

    fn poll(&mut self, task: &mut Task<'_>, to: &mut SendStream<Chunk>, held: &MemoryHold) -> Poll<Result<(), Broken>> {
        let up = self.poll_up(task)?;
        let Backend { inlet, stream, .. } = &mut self.backend;
        let down = self.down.poll(task, (inlet, stream), to, self.buffers, held)?;
        both(task, to, up, down)
    }

    fn waiting(&mut self) -> (usize, bool) {
        (self.up.held() + self.down.held() + self.backend.inlet.capacity(), self.down.waits_for_room())
    }
}

/// Between two streams.
struct Passed {
    body: RecvStream,
    upload: Between,
    up: SendStream<Chunk>,
    from: RecvStream,
    down: Between,
}

impl Ways for Passed {
    fn moved(&self) -> (u64, u64) {
        (self.upload.moved, self.down.moved)
    }

    fn poll(&mut self, task: &mut Task<'_>, to: &mut SendStream<Chunk>, held: &MemoryHold) -> Poll<Result<(), Broken>> {
        let up = self.upload.poll(task, &mut self.body, &mut self.up, held)?;
        let down = self.down.poll(task, &mut self.from, to, held)?;
        both(task, to, up, down)
    }

    fn waiting(&mut self) -> (usize, bool) {
        let received = self.body.flow_control().used_capacity() + self.from.flow_control().used_capacity();
        (received, self.down.waits_for_room())
    }
}

/// Whether a tunnel has ended: both ways, or because the client took it back.
fn both(task: &mut Task<'_>, to: &mut SendStream<Chunk>, up: Poll<()>, down: Poll<()>) -> Poll<Result<(), Broken>> {
    match (up, down) {
        (Poll::Ready(()), Poll::Ready(())) => Poll::Ready(Ok(())),
        (_, Poll::Pending) if to.poll_reset(task).is_ready() => Poll::Ready(Err(Broken::To)),
        _ => Poll::Pending,
    }
}
