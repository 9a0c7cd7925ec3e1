//! Answers on their way to the client: in pieces of bounded size, each of which counts until the
//! socket has taken it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};

use super::PIECE;
use super::connections::{OpenRequest, QueuedPiece};
use super::in_flight;

/// Memory in bytes that an answer holds until it is sent, where that is not its length. Found among
/// an answer's extensions.
#[derive(Debug, Clone, Copy)]
pub struct HeldBytes(pub u64);

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Answer<B> {
    content: Content<B>,
    /// The part of a frame that does not fit the pieces handed out so far.
    rest: Bytes,
    request: Option<Arc<OpenRequest>>,
}

#[derive(Debug)]
enum Content<B> {
    Service(B),
    /// The text of a refusal, or the end of it.
    Refusal(Bytes),
}

/// A piece of an answer; counts as queued until it is dropped.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Bytes,
    _queued: Option<QueuedPiece>,
}

impl<B: Body<Data = Bytes>> Answer<B> {
    /// Charges an answer to the request's user. One that exceeds the user's limit is replaced by
    /// 429.
    pub(crate) fn new(answer: Response<B>, request: Arc<OpenRequest>) -> Response<Answer<B>> {
        let held = answer.extensions().get::<HeldBytes>().map_or(answer.body().size_hint().lower(), |held| held.0);
        if request.charge(held).is_err() {
            let mut refusal = Answer::refusal();
            refusal.body_mut().request = Some(request);
            return refusal;
        }
        answer.map(|body| Answer { content: Content::Service(body), rest: Bytes::new(), request: Some(request) })
    }

    /// Returns 429 for a client that has too many answers or requests under way.
    pub(crate) fn refusal() -> Response<Answer<B>> {
        let failure = in_flight::too_many(1);
        let content = Content::Refusal(Bytes::from(failure.status().to_string()));
        let mut answer = Response::new(Answer { content, rest: Bytes::new(), request: None });
        *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        answer
    }
}

impl<B> Answer<B> {
    fn piece(&mut self, mut bytes: Bytes) -> Frame<Piece> {
        self.rest = if bytes.len() > PIECE { bytes.split_off(PIECE) } else { Bytes::new() };
        Frame::data(Piece { bytes, _queued: self.request.as_ref().map(OpenRequest::queue) })
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answer<B> {
    type Data = Piece;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Piece>, B::Error>>> {
        let this = self.get_mut();
        if !this.rest.is_empty() {
            let rest = std::mem::take(&mut this.rest);
            return Poll::Ready(Some(Ok(this.piece(rest))));
        }
        let frame = match &mut this.content {
            Content::Service(body) => match Pin::new(body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            },
            Content::Refusal(text) if text.is_empty() => return Poll::Ready(None),
            Content::Refusal(text) => Frame::data(std::mem::take(text)),
        };
        Poll::Ready(Some(Ok(match frame.into_data() {
            Ok(bytes) => this.piece(bytes),
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => Frame::trailers(trailers),
                Err(_) => this.piece(Bytes::new()),
            },
        })))
    }

    fn is_end_stream(&self) -> bool {
        let ended = match &self.content {
            Content::Service(body) => body.is_end_stream(),
            Content::Refusal(text) => text.is_empty(),
        };
        ended && self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let of_content = match &self.content {
            Content::Service(body) => body.size_hint(),
            Content::Refusal(text) => SizeHint::with_exact(text.len() as u64),
        };
        let mut whole = SizeHint::new();
        if let Some(upper) = of_content.upper() {
            whole.set_upper(upper + rest);
        }
        whole.set_lower(of_content.lower() + rest);
        whole
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}
