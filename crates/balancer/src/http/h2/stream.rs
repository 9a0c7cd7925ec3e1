//! One stream of a client: a request and its answer.

use std::sync::Arc;
use std::time::Duration;

use ::h2::RecvStream;
use ::h2::server::SendResponse;
use ::http::{Method, Request as Head, Response as Answer, StatusCode, header, request};
use bytes::Bytes;

use super::Active;
use crate::http::downgrade;
use crate::http::record::Record;
use crate::http::refusal::Refusal;
use crate::http::request::Asking;
use crate::http::watch::Watch;
use crate::serving::Serving;
use crate::spec::Speaks;

/// A request that is being served.
pub(super) struct Stream {
    pub(super) streams: Active,
    pub(super) parts: request::Parts,
    pub(super) respond: SendResponse<Bytes>,
    pub(super) serving: Arc<Serving>,
    pub(super) record: Option<Box<Record>>,
    pub(super) watch: Watch,
}

/// Serves one request to its end. What it needs is taken apart before there is a task: a task is moved when it is made.
pub(super) fn run(
    streams: Active,
    request: Head<RecvStream>,
    respond: SendResponse<Bytes>,
) -> impl Future<Output = ()> + 'static {
    let serving = streams.connection.current.get();
    let (parts, body) = request.into_parts();
    let watch = Watch::new(serving.spec.idle);
    let mut stream = Stream { streams, parts, respond, serving, record: None, watch };
    if stream.serving.log.is_some() {
        let note = downgrade::note(&stream.parts, &stream.asking());
        stream.record = Some(Record::new(&stream.streams.connection, note));
    }
    async move {
        let outcome = match stream.serving.listener.speaks {
            _ if stream.parts.method == Method::CONNECT => Box::pin(stream.tunnel(body)).await,
            Speaks::H2c => Box::pin(stream.exchange_h2(body)).await,
            _ => stream.exchange_h1(body).await,
        };
        match outcome {
            Ok(()) => {}
            Err(Some(refusal)) => stream.refuse(refusal),
            Err(None) => stream.streams.taken_back.set(stream.streams.taken_back.get() + 1),
        }
    }
}

impl Stream {
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
            let _ = stream.send_data(Bytes::from(body), true);
        }
        record.into_iter().for_each(|record| record.refused(refusal.status, length, &self.serving));
    }
}
