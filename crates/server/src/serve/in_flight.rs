//! Requests at a time: what is too much gets 429 at once instead of waiting. Watches last long by nature and do not count.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use fairlead_api::Failure;
use fairlead_api::value::json;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;

#[cfg(test)]
mod tests;

/// How many requests at a time.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// That read (`--max-requests-inflight`).
    pub reading: usize,
    /// That write (`--max-mutating-requests-inflight`).
    pub writing: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { reading: 400, writing: 200 }
    }
}

/// Keeps the number of requests at a time within bounds; 0 means no bound.
#[derive(Debug, Clone)]
pub struct InFlight<S> {
    inner: S,
    places: Arc<Places>,
}

#[derive(Debug)]
struct Places {
    reading: Option<Arc<Semaphore>>,
    writing: Option<Arc<Semaphore>>,
    refused: AtomicU64,
}

impl<S> InFlight<S> {
    /// Wraps a service.
    pub fn new(inner: S, bounds: Bounds) -> InFlight<S> {
        let places = |count| (count > 0).then(|| Arc::new(Semaphore::new(count)));
        let (reading, writing) = (places(bounds.reading), places(bounds.writing));
        InFlight { inner, places: Arc::new(Places { reading, writing, refused: AtomicU64::new(0) }) }
    }

    /// How many requests were refused so far.
    pub fn refused(&self) -> u64 {
        self.places.refused.load(Ordering::Relaxed)
    }

    /// A place for a request: none needed, got one, or there is none.
    fn place<B>(&self, request: &Request<B>) -> Result<Option<OwnedSemaphorePermit>, ()> {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let places = if reads { &self.places.reading } else { &self.places.writing };
        match places {
            Some(places) if !lasts_long(request) => places.clone().try_acquire_owned().map(Some).map_err(|_| ()),
            _ => Ok(None),
        }
    }
}

/// Whether a request is a watch, which only GET begins, or a stream of a Pod, which has a bound of its own. Every value but `0`
/// and `false` means yes, as the server reads it.
fn lasts_long<B>(request: &Request<B>) -> bool {
    let parts: Vec<&str> = request.uri().path().split('/').collect();
    if let [.., "pods", _, "log" | "exec" | "attach" | "portforward"] = parts[..] {
        return true;
    }
    if *request.method() != Method::GET {
        return false;
    }
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|pair| match pair.split_once('=').unwrap_or((pair, "")) {
        ("watch", value) => !matches!(value, "0" | "false" | "False" | "FALSE" | "f" | "F"),
        _ => false,
    })
}

impl<S, B, R> Service<Request<B>> for InFlight<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Counted<R>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Ok(place) = self.place(&request) else {
            self.places.refused.fetch_add(1, Ordering::Relaxed);
            return Box::pin(async { Ok(too_many()) });
        };
        let answer = self.inner.call(request);
        Box::pin(async move { answer.await.map(|answer| answer.map(|body| Counted::Answer(body, place))) })
    }
}

fn too_many<R>() -> Response<Counted<R>> {
    let mut failure = Failure::new(429, "TooManyRequests", "Too many requests, please try again later.");
    failure.details = Some(json!({"retryAfterSeconds": 1}));
    let mut answer = Response::new(Counted::Refusal(Full::new(Bytes::from(failure.status().to_string()))));
    *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// The body of an answer; its request counts until the last byte is sent.
#[derive(Debug)]
pub enum Counted<R> {
    /// The service's own.
    Answer(R, Option<OwnedSemaphorePermit>),
    /// Too many requests.
    Refusal(Full<Bytes>),
}

impl<R: Body<Data = Bytes> + Unpin> Body for Counted<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Counted::Answer(body, _) => Pin::new(body).poll_frame(context),
            Counted::Refusal(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
        }
    }
    fn is_end_stream(&self) -> bool {
        match self {
            Counted::Answer(body, _) => body.is_end_stream(),
            Counted::Refusal(body) => body.is_end_stream(),
        }
    }
    fn size_hint(&self) -> SizeHint {
        match self {
            Counted::Answer(body, _) => body.size_hint(),
            Counted::Refusal(body) => body.size_hint(),
        }
    }
}
