//! The HTTP API of a node, in the shape of a kubelet's: logs, exec, attach, port-forward and metrics for the API server, and nobody
//! else.
//!
//! The API server passes its clients' requests on to here. On the same machine it does so in memory, by [`Api::connect`], and no
//! port is open at all; on another it comes over TLS with a client certificate of the cluster's authority, to [`serve`].

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use fairlead_monitor::Format;
use fairlead_runtime::{Account, SlotTable};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Metrics;
use crate::host::{Host, Refusal, Target};
use query::Query;
pub use tls::{Peers, TlsError, serve};

mod command;
mod forward;
mod logs;
mod query;
mod spdy;
mod tls;
mod upgrade;

/// So many logs are followed, commands run and ports forwarded at a time.
const STREAMS: usize = 1000;
/// How much an in-memory connection holds before its writer waits.
const PIPE: usize = 64 << 10;

/// The body of an answer.
type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The API of one node. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    host: Arc<dyn Host>,
    metrics: Metrics,
    others: Option<Others>,
    places: Arc<Semaphore>,
    /// Connections whose client is not known yet.
    handshakes: SlotTable,
}

/// What other parts of a Node count, as Prometheus reads it.
type Others = Arc<dyn Fn() -> String + Send + Sync>;

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Api {
    /// The API in front of these Pods.
    pub fn new(host: Arc<dyn Host>) -> Api {
        Api {
            host,
            metrics: Metrics::new(),
            others: None,
            places: Arc::new(Semaphore::new(STREAMS)),
            handshakes: tls::handshakes(&Account::default()),
        }
    }

    /// Counts connections whose client is not known yet in an account, as budget `pods handshakes`.
    pub fn with_account(self, account: &Account) -> Api {
        Api { handshakes: tls::handshakes(account), ..self }
    }

    /// With what is counted of them.
    pub fn with_metrics(self, metrics: Metrics) -> Api {
        Api { metrics, ..self }
    }

    /// With what other parts of the Node count, on the same page.
    pub fn with_others(self, others: impl Fn() -> String + Send + Sync + 'static) -> Api {
        Api { others: Some(Arc::new(others)), ..self }
    }

    /// A connection inside this process: the other end is served until it closes. Needs a tokio run time.
    pub fn connect(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(PIPE);
        let api = self.clone();
        tokio::spawn(async move { api.serve_connection(far).await });
        near
    }

    /// Serves one connection of a peer who is known to be the API server.
    pub async fn serve_connection<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service =
            service_fn(|request: Request<Incoming>| async { Ok::<_, Infallible>(self.answer(request).await) });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new());
        let serving = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
        if let Err(error) = serving.await {
            tracing::debug!(%error, "a connection of the API server ended");
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let parts: Vec<String> = path.split('/').skip(1).map(query::decode_path).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let reads = *request.method() == Method::GET;
        let streams = reads || *request.method() == Method::POST;
        let place = self.places.clone().try_acquire_owned().ok();
        match (parts.as_slice(), place) {
            (["healthz"], _) if reads => plain(StatusCode::OK, "ok"),
            (["pods"], _) if reads => self.pods(),
            (["metrics"], _) if reads => plain(StatusCode::OK, self.counted()),
            (["containerLogs" | "exec" | "attach" | "portForward", ..], None) => {
                plain(StatusCode::TOO_MANY_REQUESTS, "too many streams at a time on this node")
            }
            (["containerLogs", namespace, pod, container], Some(place)) if reads => {
                self.logs(&target(namespace, pod, container), &query, place)
            }
            (["exec", namespace, pod, container], Some(place)) if streams => {
                command::exec(&*self.host, &target(namespace, pod, container), &query, request, place).await
            }
            (["attach", namespace, pod, container], Some(place)) if streams => {
                command::attach(&*self.host, &target(namespace, pod, container), &query, request, place).await
            }
            (["portForward", namespace, pod], Some(place)) if streams => {
                forward::answer(self.host.clone(), target(namespace, pod, ""), &query, request, place)
            }
            _ => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
        }
    }

    fn counted(&self) -> String {
        self.metrics.text(Format::Prometheus) + &self.others.as_ref().map(|others| others()).unwrap_or_default()
    }

    fn pods(&self) -> Response<Body> {
        let pods = self.host.pods();
        let items: Vec<_> = pods.iter().map(|pod| &**pod).collect();
        let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items});
        let mut response = plain(StatusCode::OK, list.to_string());
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    fn logs(&self, target: &Target, query: &Query, place: OwnedSemaphorePermit) -> Response<Body> {
        let options = match logs::Options::parse(query, jiff::Timestamp::now()) {
            Ok(options) => options,
            Err(why) => return plain(StatusCode::BAD_REQUEST, why),
        };
        match self.host.logs(target, query.flag("previous")) {
            Ok(logs) => logs::answer(logs, options, place),
            Err(refusal) => refuse(&refusal),
        }
    }
}

fn target(namespace: &str, pod: &str, container: &str) -> Target {
    let container = Some(container.to_owned()).filter(|container| !container.is_empty());
    Target { namespace: namespace.to_owned(), pod: pod.to_owned(), container }
}

fn plain(code: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(text.into()).boxed_unsync());
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn refuse(refusal: &Refusal) -> Response<Body> {
    let code = match refusal {
        Refusal::NotFound(_) => StatusCode::NOT_FOUND,
        Refusal::NotRunning(_) | Refusal::BadRequest(_) => StatusCode::BAD_REQUEST,
        Refusal::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    plain(code, refusal.to_string())
}
