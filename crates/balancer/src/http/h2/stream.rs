//! One stream of a client: a request and its answer.

use std::sync::Arc;
use std::time::Duration;

use ::h2::RecvStream;
use ::h2::server::SendResponse;
use ::http::{HeaderMap, Method, Request as Head, Response as Answer, StatusCode, Uri, header, request};
use bytes::Bytes;

use super::Active;
use crate::engine::memory::Chunk;
use crate::http::downgrade;
use crate::http::head;
use crate::http::record::Record;
use crate::http::refusal::Refusal;
use crate::http::request::{Asking, Request};
use crate::http::watch::Watch;
use crate::serving::Serving;
use crate::spec::Speaks;

/// A request that is being served.
pub(super) struct Stream {
    pub(super) streams: Active,
    pub(super) parts: request::Parts,
    pub(super) respond: SendResponse<Chunk>,
    pub(super) serving: Arc<Serving>,
    pub(super) record: Option<Box<Record>>,
    pub(super) watch: Watch,
    /// Bytes that the stream holds at any time.
    pub(super) base: usize,
    /// The request is a call of gRPC, whose client may be silent for as long as it likes.
    pub(super) calls: bool,
}

/// Returns the memory of fields: `http` has up to 104 bytes for each beside name and value.
pub(super) fn size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 104).sum()
}

fn is_call(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// Memory of a stream beside its head and body: its task, what HTTP/2 keeps of it, and its sockets'
/// buffers.
const STREAM: usize = 6 << 10;

/// A request as its backend is to get it.
enum Onward {
    Tunnel,
    H1(Request, Vec<u8>),
    H2(Head<()>, Request),
}

/// Returns what serves one request to its end, or `None` if it was refused. The head for the
/// backend is made at once, so that the client's fields are not kept while the request waits.
pub(super) fn begin(
    streams: Active,
    request: Head<RecvStream>,
    respond: SendResponse<Chunk>,
) -> Option<impl Future<Output = ()> + 'static> {
    let serving = streams.connection.current.get();
    let (parts, body) = request.into_parts();
    let watch = Watch::new(serving.spec.idle, &streams.connection.context, streams.held());
    let mut stream = Stream { streams, parts, respond, serving, record: None, watch, base: STREAM, calls: false };
    if stream.serving.log.is_some() {
        let note = downgrade::note(&stream.parts, &stream.asking());
        stream.record = Some(Record::new(&stream.streams.connection, note));
    }
    let onward = match stream.onward(body.is_end_stream()) {
        Ok(onward) => onward,
        Err(refusal) => {
            stream.refuse(refusal);
            return None;
        }
    };
    let work = async move {
        let outcome = match onward {
            Onward::Tunnel => Box::pin(stream.tunnel(body)).await,
            Onward::H2(head, request) => Box::pin(stream.exchange_h2(head, request, body)).await,
            Onward::H1(request, head) => stream.exchange_h1(request, head, body).await,
        };
        match outcome {
            Ok(()) => {}
            Err(Some(refusal)) => stream.refuse(refusal),
            Err(None) => stream.streams.taken_back.set(stream.streams.taken_back.get() + 1),
        }
    };
    Some(work)
}

impl Stream {
    /// Reads the client's head and makes the one for the backend, if there is room for another
    /// request.
    fn onward(&mut self, ended: bool) -> Result<Onward, Refusal> {
        if self.parts.headers.len() > head::FIELDS {
            return Err(Refusal::FIELDS);
        }
        let shared = self.streams.shared.clone();
        let onward = match self.serving.listener.speaks {
            _ if self.parts.method == Method::CONNECT => {
                self.base += size(&self.parts.headers);
                Onward::Tunnel
            }
            Speaks::H2c => {
                let (head, request) = downgrade::to_h2(&self.parts, ended, &self.asking())?;
                self.base += size(head.headers());
                Onward::H2(head, request)
            }
            _ => {
                let mut head = shared.buffers.head();
                match downgrade::to_h1(&self.parts, ended, &self.asking(), &mut head) {
                    Ok(request) => {
                        self.base += head.capacity();
                        Onward::H1(request, head)
                    }
                    Err(refusal) => {
                        shared.buffers.give_head(head);
                        return Err(refusal);
                    }
                }
            }
        };
        if !matches!(onward, Onward::Tunnel) {
            self.calls = is_call(&self.parts.headers);
            self.parts.headers = HeaderMap::new();
            self.parts.uri = Uri::default();
        }
        if !self.watch.held.admits(self.base) {
            return Err(Refusal::FULL);
        }
        self.watch.held.set(self.base);
        Ok(onward)
    }

    pub(super) fn asking(&self) -> Asking<'_> {
        let Stream { streams, serving, .. } = self;
        let forwarded = &streams.connection.forwarded;
        Asking {
            forwarded,
            trusted: !serving.trusted.is_empty() && forwarded.trusted(&serving.trusted),
            connect: serving.spec.connect,
            longest_body: streams.connection.context.thread().options().body,
        }
    }

    pub(super) fn idle(&self) -> Duration {
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
            let _ = stream.send_data(Bytes::from(body).into(), true);
        }
        record.into_iter().for_each(|record| record.refused(refusal.status, length, &self.serving));
    }
}
