//! One request and its answer between a client and a backend that both speak HTTP/1.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{Next, Ready, Session};
use crate::backends::Chosen;
use crate::http::buffer::{Buffers, Inlet, Size};
use crate::http::dial::{self, Backend};
use crate::http::head::Framing;
use crate::http::pump::{Broken, Pump};
use crate::http::refusal::Refusal;
use crate::http::request::Request;
use crate::http::response::{self, Response};
use crate::http::{CONNECT, tunnel};
use crate::serving::Serving;
use crate::tls::ClientTls;

/// How many backends get a request at most.
const ATTEMPTS: usize = 3;

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

/// Why there is no answer.
enum Failure {
    /// The client is gone, or has no right to one.
    Client,
    /// The request cannot be passed on.
    Refused(Refusal),
    /// The backend broke off: after nothing at all, or in the midst of its answer.
    Broke { silent: bool },
    /// Its answer is none.
    Unreadable,
    /// It said nothing in time.
    Late,
}

impl<S: AsyncRead + AsyncWrite + Unpin + 'static> Session<S> {
    /// Passes a request on and its answer back.
    pub(super) async fn exchange(&mut self, ready: Ready) -> Next {
        let Ready { request, head, serving, mut record } = ready;
        let mut upload = Upload::Going(Pump::new(head, request.body, false));
        let mut tried: Vec<SocketAddr> = Vec::new();
        let mut fresh = false;
        let refusal = loop {
            let Some(chosen) = serving.backends.choose(serving.spec.choice, self.connection.ends.client, &tried) else {
                break if tried.is_empty() { Refusal::NOBODY } else { Refusal::UNREACHABLE };
            };
            if let Some(record) = &mut record {
                record.backend(chosen.address());
            }
            let mut backend = match self.reach(&serving, &chosen, &request, fresh).await {
                Ok(backend) => backend,
                Err(refusal) => {
                    chosen.failed();
                    self.connection.context.counters().dial_failures.add(1);
                    tried.push(chosen.address());
                    if tried.len() < ATTEMPTS {
                        continue;
                    }
                    break refusal;
                }
            };
            let mut out = self.shared.buffers.head();
            let failure = match self.answer(&mut backend, &request, &mut upload, &mut out, record.as_deref_mut()).await {
                Ok(response) => {
                    chosen.succeeded();
                    let talk = Talk { request, response, serving: &serving, chosen, record };
                    return self.deliver(talk, backend, upload, out).await;
                }
                Err(failure) => failure,
            };
            backend.inlet.release(&self.shared.buffers);
            self.shared.buffers.give_head(out);
            match self.after(failure, &mut upload, &request, &backend, &chosen) {
                Again::No(Some(refusal)) => break refusal,
                Again::No(None) => return Next::Abort,
                Again::Fresh => fresh = true,
                Again::Elsewhere => tried.push(chosen.address()),
            }
            if tried.len() >= ATTEMPTS {
                break Refusal::BROKE_OFF;
            }
            self.connection.context.counters().retries.add(1);
        };
        let taken = matches!(&upload, Upload::Going(pump) if pump.untouched()) || matches!(upload, Upload::Done(_));
        let goes_on = self.refuse(refusal, Some(&request), record, &serving).await;
        if goes_on && taken && refusal.status >= 500 { Next::Request } else { Next::Part }
    }

    /// What to do after a failure.
    fn after(&self, failure: Failure, upload: &mut Upload, request: &Request, backend: &Backend, chosen: &Chosen) -> Again {
        match failure {
            Failure::Client => return Again::No(None),
            Failure::Refused(refusal) => return Again::No(Some(refusal)),
            Failure::Unreadable => {
                chosen.failed();
                return Again::No(Some(Refusal::ANSWER));
            }
            Failure::Late => {
                chosen.failed();
                return Again::No(Some(Refusal::LATE));
            }
            Failure::Broke { .. } => {}
        }
        let replayable = request.body == Framing::Empty && request.method.repeatable() && !request.upgrade;
        let silent = matches!(failure, Failure::Broke { silent: true });
        let pump = match std::mem::replace(upload, Upload::Cut) {
            Upload::Going(pump) | Upload::Done(pump) => Some(pump),
            Upload::Cut => None,
        };
        // A connection that waited may have been closed by a backend that is well.
        if !backend.reused {
            chosen.failed();
        }
        match pump {
            Some(mut pump) if silent && replayable => {
                pump.rewind();
                *upload = Upload::Going(pump);
                if backend.reused { Again::Fresh } else { Again::Elsewhere }
            }
            _ => Again::No(Some(Refusal::BROKE_OFF)),
        }
    }

    /// A connection to the chosen backend.
    async fn reach(&self, serving: &Serving, chosen: &Chosen, request: &Request, fresh: bool) -> Result<Backend, Refusal> {
        let (to, tls) = (chosen.address(), serving.reencrypt.as_ref());
        let surely = request.body != Framing::Empty || !request.method.repeatable();
        if !fresh && let Some(stream) = self.shared.pool.take(to, tls, surely) {
            return Ok(Backend::reused(stream));
        }
        dial::connect(to, tls, CONNECT).await.map(Backend::new)
    }

    /// Sends a request and waits for the head of its answer, which is written to `out`.
    async fn answer(
        &mut self,
        backend: &mut Backend,
        request: &Request,
        upload: &mut Upload,
        out: &mut Vec<u8>,
        mut record: Option<&mut crate::http::record::Record>,
    ) -> Result<Response, Failure> {
        loop {
            let Session { stream, inlet, watch, shared, idle, .. } = self;
            let waited = watch.limit(*idle, |task, watch| {
                let before = upload.moved();
                upload.poll(task, (inlet, stream, &mut backend.stream), &shared.buffers)?;
                if upload.moved() != before {
                    watch.start(*idle);
                }
                if let (Upload::Done(_), Some(record)) = (&*upload, &mut record) {
                    record.sent();
                }
                poll_head(task, backend, request, out, &shared.buffers)
            });
            let response = waited.await.map_err(|_| Failure::Late)??;
            backend.inlet.consume(response.length, &self.shared.buffers);
            if !response.interim() {
                if let Some(record) = record {
                    record.answered(response.status);
                }
                return Ok(response);
            }
            if !request.old {
                out.extend_from_slice(b"\r\n");
                self.say(out).await?;
            }
            out.clear();
        }
    }

    /// Writes something to the client.
    async fn say(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        use tokio::io::AsyncWriteExt;
        let saying = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        match tokio::time::timeout(self.idle, saying).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Failure::Client),
        }
    }

    /// Passes an answer back.
    async fn deliver(&mut self, talk: Talk<'_>, mut backend: Backend, mut upload: Upload, mut out: Vec<u8>) -> Next {
        let Talk { request, response, serving, chosen, record } = talk;
        self.connection.context.counters().answered(response.status);
        let keep = self.finish_head(&request, &response, &upload, &mut out, serving);
        if response.tunnel {
            if self.say(&out).await.is_ok() {
                let ends = (&mut self.stream, &mut self.inlet);
                let moved = tunnel::run(ends, &mut backend, &mut self.watch, self.idle, &self.shared.buffers).await;
                record.into_iter().for_each(|record| record.done(moved, serving));
            }
            return Next::Abort;
        }
        let mut download = Pump::new(out, response.body, request.old);
        let Session { stream, inlet, watch, shared, idle, .. } = self;
        let (buffers, idle) = (&shared.buffers, *idle);
        let delivered = watch.limit(idle, |task, watch| {
            let before = (upload.moved(), download.moved);
            // The client's end of a request that is already answered is nobody's trouble.
            if upload.poll::<S>(task, (inlet, stream, &mut backend.stream), buffers).is_err() {
                upload = Upload::Cut;
            }
            let polled = download.poll(task, (&mut backend.inlet, &mut backend.stream, stream), buffers);
            if before != (upload.moved(), download.moved) {
                watch.start(idle);
            }
            polled
        });
        let delivered = delivered.await;
        if let Some(record) = record {
            record.done((upload.moved(), download.moved), serving);
        }
        let whole = matches!(upload, Upload::Done(_));
        buffers.give_head(download.into_head());
        if let Upload::Done(pump) | Upload::Going(pump) = upload {
            buffers.give_head(pump.into_head());
        }
        match delivered {
            Ok(Ok(())) => {}
            Ok(Err(Broken::From | Broken::Malformed)) => {
                chosen.failed();
                backend.inlet.release(buffers);
                return Next::Abort;
            }
            _ => {
                backend.inlet.release(buffers);
                return Next::Abort;
            }
        }
        if whole && response.keep && backend.inlet.is_empty() {
            keep_open(self, serving.reencrypt.clone(), chosen.address(), backend);
        } else {
            backend.inlet.release(&self.shared.buffers);
        }
        match (keep, whole) {
            (true, true) => Next::Request,
            (false, true) => Next::Close,
            (_, false) => Next::Part,
        }
    }

    /// Says what becomes of the connection; whether it goes on.
    fn finish_head(
        &self,
        request: &Request,
        response: &Response,
        upload: &Upload,
        out: &mut Vec<u8>,
        serving: &Serving,
    ) -> bool {
        if response.tunnel {
            out.extend_from_slice(if response.status == 101 { b"Connection: upgrade\r\n\r\n" } else { b"\r\n" });
            return false;
        }
        let unbounded = response.body == Framing::End || (request.old && response.body == Framing::Chunked);
        let aged = serving.spec.age.is_some_and(|age| self.born.elapsed() >= age);
        let keep = request.keep
            && !unbounded
            && !aged
            && matches!(upload, Upload::Done(_))
            && !self.connection.context.is_draining();
        match (keep, request.old) {
            (true, false) => out.extend_from_slice(b"\r\n"),
            (true, true) => out.extend_from_slice(b"Connection: keep-alive\r\n\r\n"),
            (false, _) => out.extend_from_slice(b"Connection: close\r\n\r\n"),
        }
        keep
    }
}

fn keep_open<S>(session: &Session<S>, tls: Option<Arc<ClientTls>>, to: SocketAddr, backend: Backend) {
    session.shared.pool.put(to, tls, backend.stream);
}

/// An answer on its way to the client.
struct Talk<'a> {
    request: Request,
    response: Response,
    serving: &'a Serving,
    chosen: Chosen,
    record: Option<Box<crate::http::record::Record>>,
}

/// Whether a request is sent once more.
enum Again {
    No(Option<Refusal>),
    /// To the same backend, on a new connection.
    Fresh,
    /// To another backend.
    Elsewhere,
}

impl Upload {
    fn moved(&self) -> u64 {
        match self {
            Upload::Going(pump) | Upload::Done(pump) => pump.moved,
            Upload::Cut => 0,
        }
    }

    /// Sends what can be sent.
    fn poll<S: AsyncRead + AsyncWrite + Unpin + 'static>(
        &mut self,
        task: &mut Task<'_>,
        (inlet, client, backend): (&mut Inlet, &mut S, &mut crate::http::stream::Stream),
        buffers: &Buffers,
    ) -> Result<(), Failure> {
        let Upload::Going(pump) = self else { return Ok(()) };
        let polled = pump.poll(task, (inlet, client, backend), buffers);
        match polled {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(())) => {
                if let Upload::Going(pump) = std::mem::replace(self, Upload::Cut) {
                    *self = Upload::Done(pump);
                }
                Ok(())
            }
            // A request without a body can be sent to somebody else, whose turn it is when this one has ended.
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
fn poll_head(
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
