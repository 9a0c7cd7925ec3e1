//! Calls to etcd: which endpoint is asked, how long an answer may take, and when asking again is safe.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use http::uri::PathAndQuery;
use prost::Message;
use tokio::sync::mpsc;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, ConnectError, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::messages::{WatchRequest, WatchResponse};
use super::{EtcdOptions, EtcdTls};
use crate::Error;

/// A peer that is silent this long is asked whether it lives, and given up when it does not answer in the same time:
/// a watch on a dead connection would otherwise wait for ever.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Watch requests under way on one stream: its creation and now and then a question for progress.
const WATCH_REQUESTS: usize = 4;

/// Speaks to the members of one etcd cluster.
#[derive(Debug)]
pub(super) struct Client {
    channels: Vec<Channel>,
    /// The endpoint that answered last; all calls go there until it fails.
    current: AtomicUsize,
    timeout: Duration,
}

/// Whether a call may be made twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// It changes nothing.
    Harmless,
    /// It changes something: only if it never left this machine.
    IfUnsent,
}

impl Client {
    /// Connects when first used, and again whenever needed.
    pub(super) fn new(options: &EtcdOptions) -> Result<Client, Error> {
        if options.endpoints.is_empty() {
            return Err(Error::Unusable("no etcd endpoint is given".into()));
        }
        let channels = options.endpoints.iter().map(|url| channel(url, options)).collect::<Result<_, _>>()?;
        Ok(Client { channels, current: AtomicUsize::new(0), timeout: options.request_timeout })
    }

    /// One request, one answer. Endpoints are tried in turn, each once, as long as that is safe.
    pub(super) async fn call<Q, A>(&self, path: &'static str, request: &Q, again: Again) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut last = Status::unavailable("no endpoint");
        for _ in &self.channels {
            let at = self.current.load(Ordering::Relaxed);
            match self.call_one(at, path, request).await {
                Ok(answer) => return Ok(answer),
                Err(status) if !self.leave(at, &status) => return Err(status),
                Err(status) if again == Again::IfUnsent && !unsent(&status) => return Err(status),
                Err(status) => last = status,
            }
        }
        Err(last)
    }

    /// Opens a watch stream and sends its first request.
    pub(super) async fn stream(
        &self,
        first: WatchRequest,
    ) -> Result<(mpsc::Sender<WatchRequest>, Streaming<WatchResponse>), Status> {
        let (requests, queue) = mpsc::channel(WATCH_REQUESTS);
        let queue = futures_util::stream::unfold(queue, async |mut queue| Some((queue.recv().await?, queue)));
        let mut request = Request::new(futures_util::stream::iter([first]).chain(queue));
        // A member that has lost its leader ends the stream instead of falling silent.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        let at = self.current.load(Ordering::Relaxed);
        let mut grpc = self.grpc(at);
        let open = async {
            grpc.ready().await.map_err(not_ready)?;
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            grpc.streaming(request, path, ProstCodec::<WatchRequest, WatchResponse>::default()).await
        };
        match self.in_time(open).await {
            Ok(answer) => Ok((requests, answer.into_inner())),
            Err(status) => {
                self.leave(at, &status);
                Err(status)
            }
        }
    }

    async fn call_one<Q, A>(&self, at: usize, path: &'static str, request: &Q) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.grpc(at);
        let mut request = Request::new(request.clone());
        request.set_timeout(self.timeout);
        let call = async {
            grpc.ready().await.map_err(not_ready)?;
            grpc.unary(request, PathAndQuery::from_static(path), ProstCodec::<Q, A>::default()).await
        };
        Ok(self.in_time(call).await?.into_inner())
    }

    /// Lists are as large as their objects, and etcd bounds what it stores: no further bound on messages is needed.
    fn grpc(&self, at: usize) -> Grpc<Channel> {
        let channel = self.channels[at % self.channels.len()].clone();
        Grpc::new(channel).max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX)
    }

    async fn in_time<T>(&self, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        let late = |_| Status::deadline_exceeded(format!("no answer within {} s", self.timeout.as_secs_f32()));
        tokio::time::timeout(self.timeout, call).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
    }

    /// Whether an answer says that another endpoint may do better; if so, the next call goes there.
    fn leave(&self, at: usize, status: &Status) -> bool {
        let bad = matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown);
        if bad {
            let next = (at + 1) % self.channels.len();
            let _ = self.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
        }
        bad
    }
}

fn channel(url: &str, options: &EtcdOptions) -> Result<Channel, Error> {
    let unusable = |error: tonic::transport::Error| Error::Unusable(format!("etcd endpoint {url}: {}", causes(&error)));
    let mut endpoint = Endpoint::from_shared(url.to_owned())
        .map_err(unusable)?
        .connect_timeout(options.connect_timeout)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true);
    if url.starts_with("https://") {
        endpoint = endpoint.tls_config(tls(&options.tls)).map_err(unusable)?;
    }
    Ok(endpoint.connect_lazy())
}

fn tls(options: &EtcdTls) -> ClientTlsConfig {
    let mut config = ClientTlsConfig::new();
    if let Some(ca) = &options.ca {
        config = config.ca_certificate(Certificate::from_pem(ca));
    }
    if let Some((certificate, key)) = &options.client {
        config = config.identity(Identity::from_pem(certificate, key));
    }
    config
}

fn not_ready(error: tonic::transport::Error) -> Status {
    Status::from_error(Box::new(error))
}

/// Whether the connection could not even be made.
fn unsent(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// An error and what caused it, in one line.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
