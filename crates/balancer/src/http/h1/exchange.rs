//! One request and its answer between a client and a backend that both speak HTTP/1.

use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{Next, Ready, Session};
use crate::backends::Chosen;
use crate::engine::backend_permits::SourcePlace;
use crate::http::attempts::{Attempts, BackendConnection, Failure, Sent};
use crate::http::buffer::{Buffers, Inlet, Size};
use crate::http::dial::Backend;
use crate::http::head::Framing;
use crate::http::pump::{Broken, Pump};
use crate::http::record::Record;
use crate::http::refusal::Refusal;
use crate::http::request::Request;
use crate::http::response::{self, Interims, Response};
use crate::http::stream::Stream;
use crate::http::tunnel;
use crate::serving::Serving;

/// How far a request is.
#[derive(Debug)]
enum Upload {
    /// On its way.
    Going(Pump),
    /// Sent.
    Done(Pump),
    /// The backend does not take the rest. Its answer may say why.
    Cut,
}

/// An answer on its way to the client.
struct Answer {
    request: Request,
    response: Response,
    serving: Arc<Serving>,
    chosen: Chosen,
    /// The client's place among those that use backends.
    _place: SourcePlace,
    record: Option<Box<Record>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + 'static> Session<S> {
    /// Passes a request on and its answer back.
    pub(super) async fn exchange(&mut self, ready: Ready) -> Next {
        let Ready { request, head, serving, mut record } = ready;
        let most = self.connection.context.thread().options().body;
        let mut upload = Upload::Going(Pump::new(head, request.body, false).at_most(most));
        let mut attempts = Attempts::new(serving.clone());
        let replayable = request.body == Framing::Empty && request.method.repeatable() && !request.upgrade;
        let refusal = loop {
            let Session { connection, shared, watch, .. } = self;
            let reached = attempts.reach(connection, shared, watch, !replayable).await;
            let BackendConnection { chosen, mut backend, place } = match reached {
                Ok(reached) => reached,
                Err(refusal) => break refusal,
            };
            if let Some(record) = &mut record {
                record.backend(chosen.address());
            }
            let mut out = self.shared.buffers.head();
            let failure = match self.answer(&mut backend, &request, &mut upload, &mut out, record.as_deref_mut()).await
            {
                Ok(response) => {
                    chosen.succeeded();
                    let answer = Answer { request, response, serving, chosen, _place: place, record };
                    return self.deliver(answer, backend, upload, out).await;
                }
                Err(failure) => failure,
            };
            backend.inlet.release(&self.shared.buffers);
            self.shared.buffers.give_head(out);
            let sent = Sent { reused: backend.reused, replayable: replayable && upload.rewind() };
            match attempts.again(failure, &chosen, sent, &self.connection) {
                Ok(()) => {}
                Err(Some(refusal)) => break refusal,
                Err(None) => return Next::Abort,
            }
        };
        if Box::pin(self.refuse(refusal, Some(&request), record, &serving)).await { Next::Request } else { Next::Part }
    }

    /// Sends a request and waits for the head of its answer, which is written to `out`.
    async fn answer(
        &mut self,
        backend: &mut Backend,
        request: &Request,
        upload: &mut Upload,
        out: &mut Vec<u8>,
        mut record: Option<&mut Record>,
    ) -> Result<Response, Failure> {
        let mut interims = Interims::default();
        let mut started = false;
        loop {
            let Session { stream, inlet, watch, shared, idle, .. } = self;
            // Interim answers do not begin the time anew.
            let waited = watch.limit_from(*idle, &mut started, |task, watch| {
                let before = upload.moved();
                upload.poll(task, (inlet, stream, &mut backend.stream), &shared.buffers)?;
                if upload.moved() != before {
                    watch.moved(*idle);
                }
                if let (Upload::Done(_), Some(record)) = (&*upload, &mut record) {
                    record.sent();
                }
                let read = poll_head(task, backend, request, out, &shared.buffers);
                if read.is_pending() {
                    let heads = upload.head_capacity() + out.capacity();
                    let owes = upload.waits_for_body();
                    watch.held.set(heads + inlet.capacity() + backend.inlet.capacity());
                    watch.client_owes(owes, upload.moved());
                }
                read
            });
            let response = waited.await??;
            backend.inlet.consume(response.length, &self.shared.buffers);
            if !response.interim() {
                if let Some(record) = record {
                    record.answered(response.status);
                }
                return Ok(response);
            }
            interims.count()?;
            if !request.old {
                out.extend_from_slice(b"\r\n");
                Box::pin(self.say_interim(out, &mut started)).await?;
            }
            out.clear();
        }
    }

    /// Passes an answer back.
    async fn deliver(&mut self, answer: Answer, mut backend: Backend, mut upload: Upload, mut out: Vec<u8>) -> Next {
        let Answer { request, response, serving, chosen, _place, record } = answer;
        self.connection.context.counters().answered(response.status);
        if response.tunnel {
            return Box::pin(self.tunnel(response, backend, out, record, &serving)).await;
        }
        let bounded = response.body != Framing::End && !(request.old && response.body == Framing::Chunked);
        // A backend that answers before it has all of a request, and goes on, will take the rest.
        let taken = matches!(upload, Upload::Done(_)) || (response.keep && matches!(upload, Upload::Going(_)));
        let keep = request.keep && bounded && taken && self.goes_on(&serving);
        finish(&mut out, keep, request.old);
        let mut download = Pump::new(out, response.body, request.old);
        let delivered = self.carry(&mut backend, &mut upload, &mut download, keep).await;
        let moved = (upload.moved(), download.moved);
        self.connection.context.counters().carried(moved);
        if let Some(record) = record {
            record.done(moved, &serving);
        }
        let whole = matches!(upload, Upload::Done(_));
        let buffers = &self.shared.buffers;
        buffers.give_head(download.into_head());
        upload.into_head().into_iter().for_each(|head| buffers.give_head(head));
        if let Err(broken) = delivered {
            if matches!(broken, Broken::From | Broken::Malformed) {
                chosen.failed();
            }
            backend.inlet.release(buffers);
            return Next::Abort;
        }
        if whole && response.keep && !backend.bound && backend.inlet.is_empty() {
            let awaited = self.connection.context.thread().backends.are_awaited();
            self.shared.pool.put(chosen.address(), serving.reencrypt.clone(), backend, awaited);
        } else {
            backend.inlet.release(buffers);
        }
        match (keep, whole) {
            (true, true) => Next::Request,
            (false, true) => Next::Close,
            (_, false) => Next::Part,
        }
    }

    /// Carries an answer to the client, and meanwhile what is left of the request to the backend; to its end if that matters.
    async fn carry(
        &mut self,
        backend: &mut Backend,
        upload: &mut Upload,
        download: &mut Pump,
        whole: bool,
    ) -> Result<(), Broken> {
        let Session { stream, inlet, watch, shared, idle, .. } = self;
        let (buffers, idle) = (&shared.buffers, *idle);
        let carried = watch.limit(idle, |task, watch| {
            let before = (upload.moved(), download.moved);
            // The end of a request that is already answered is nobody's trouble.
            if upload.poll(task, (inlet, stream, &mut backend.stream), buffers).is_err() {
                *upload = Upload::Cut;
            }
            let polled = download.poll(task, (&mut backend.inlet, &mut backend.stream, stream), buffers);
            if before != (upload.moved(), download.moved) {
                watch.moved(idle);
            }
            if polled.is_pending() {
                let heads = upload.head_capacity() + download.head_capacity();
                watch.held.set(heads + inlet.capacity() + backend.inlet.capacity());
                watch.client_owes(download.waits_for_room(), download.moved);
            }
            if whole && matches!((&polled, &*upload), (Poll::Ready(Ok(())), Upload::Going(_))) {
                return Poll::Pending;
            }
            polled
        });
        carried.await.unwrap_or_else(|why| Err(why.into()))
    }

    /// Carries bytes both ways, after what the backend has said.
    async fn tunnel(
        &mut self,
        response: Response,
        mut backend: Backend,
        mut out: Vec<u8>,
        record: Option<Box<Record>>,
        serving: &Serving,
    ) -> Next {
        out.extend_from_slice(if response.status == 101 { b"Connection: upgrade\r\n\r\n" } else { b"\r\n" });
        if self.say(&out).await.is_ok() {
            let ends = (&mut self.stream, &mut self.inlet);
            let moved = tunnel::run(ends, &mut backend, &mut self.watch, self.idle, &self.shared.buffers).await;
            self.connection.context.counters().carried(moved);
            record.into_iter().for_each(|record| record.done(moved, serving));
        }
        Next::Abort
    }
}

/// Ends a head by saying what becomes of the connection.
pub(super) fn finish(out: &mut Vec<u8>, keep: bool, old: bool) {
    out.extend_from_slice(match (keep, old) {
        (true, false) => b"\r\n",
        (true, true) => b"Connection: keep-alive\r\n\r\n",
        (false, _) => b"Connection: close\r\n\r\n",
    });
}

impl Upload {
    fn moved(&self) -> u64 {
        match self {
            Upload::Going(pump) | Upload::Done(pump) => pump.moved,
            Upload::Cut => 0,
        }
    }

    /// True if it waits for more of the body, and not for the backend to take what there is.
    fn waits_for_body(&self) -> bool {
        matches!(self, Upload::Going(pump) if !pump.waits_for_room())
    }

    fn head_capacity(&self) -> usize {
        match self {
            Upload::Going(pump) | Upload::Done(pump) => pump.head_capacity(),
            Upload::Cut => 0,
        }
    }

    fn into_head(self) -> Option<Vec<u8>> {
        match self {
            Upload::Going(pump) | Upload::Done(pump) => Some(pump.into_head()),
            Upload::Cut => None,
        }
    }

    /// From the head again; whether that is possible.
    fn rewind(&mut self) -> bool {
        match std::mem::replace(self, Upload::Cut) {
            Upload::Going(mut pump) | Upload::Done(mut pump) if pump.untouched() => {
                pump.rewind();
                *self = Upload::Going(pump);
                true
            }
            _ => false,
        }
    }

    /// Sends what can be sent.
    fn poll<S: AsyncRead + AsyncWrite + Unpin + 'static>(
        &mut self,
        task: &mut Task<'_>,
        (inlet, client, backend): (&mut Inlet, &mut S, &mut Stream),
        buffers: &Buffers,
    ) -> Result<(), Failure> {
        let Upload::Going(pump) = self else { return Ok(()) };
        match pump.poll(task, (inlet, client, backend), buffers) {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(())) => {
                if let Upload::Going(pump) = std::mem::replace(self, Upload::Cut) {
                    *self = Upload::Done(pump);
                }
                Ok(())
            }
            // What has no body can be sent to somebody else, once this one is seen to have ended.
            Poll::Ready(Err(Broken::To)) if pump.untouched() => Ok(()),
            Poll::Ready(Err(Broken::To)) => {
                *self = Upload::Cut;
                Ok(())
            }
            Poll::Ready(Err(Broken::From)) => Err(Failure::Client),
            Poll::Ready(Err(Broken::Malformed)) => Err(Failure::Refused(Refusal::CHUNKS)),
            Poll::Ready(Err(Broken::TooLong)) => Err(Failure::Refused(Refusal::BODY)),
        }
    }
}

/// Waits for the head of an answer.
pub(in crate::http) fn poll_head(
    task: &mut Task<'_>,
    backend: &mut Backend,
    request: &Request,
    out: &mut Vec<u8>,
    buffers: &Buffers,
) -> Poll<Result<Response, Failure>> {
    loop {
        if !backend.inlet.is_empty() {
            match response::read(backend.inlet.bytes(), request, out) {
                Ok(Some(response)) => return Poll::Ready(Ok(response)),
                Ok(None) => out.clear(),
                Err(_) => return Poll::Ready(Err(Failure::Unreadable)),
            }
        }
        match ready!(backend.inlet.poll_fill(task, &mut backend.stream, Size::Small, buffers)) {
            Ok(1..) => {}
            _ => return Poll::Ready(Err(Failure::Broke { silent: backend.inlet.is_empty() })),
        }
    }
}
