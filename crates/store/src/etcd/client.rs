//! Requests to etcd: which member receives them, how long an answer may take, and when a request
//! may be repeated.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use http::uri::PathAndQuery;
use prost::Message;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, ConnectError, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::messages::{WatchRequest, WatchResponse};
use super::{EtcdOptions, EtcdTls};
use crate::Error;

/// Time without a frame after which a connection is checked with an HTTP/2 PING, and time the
/// answer to it may take. etcd ends connections whose clients send a PING more often than every 5 s
/// (`--grpc-keepalive-min-time`), so a silent member is found sooner by [`super::monitor`], with a
/// request.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Time that a write may go on waiting for its answer after its member was left because of silence.
const ABANDON_AFTER: Duration = Duration::from_secs(2);

/// Watch requests under way on one stream: its creation and now and then a question for progress.
const WATCH_REQUESTS: usize = 4;

/// Sends requests to the members of one etcd cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Client {
    channels: Arc<[Channel]>,
    selected: Arc<watch::Sender<Selected>>,
    timeout: Duration,
}

/// The member that receives requests and watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Selected {
    /// Index of the member's endpoint.
    pub(super) member: usize,
    /// Number of times that the selected member was left because it was silent. Unlike after
    /// [`Client::leave`], requests under way at that member have no answer to expect.
    pub(super) silences: u64,
}

/// When a request may be sent a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Always: the request changes nothing, or cannot be applied twice.
    Always,
    /// If it never left this machine: the request changes something.
    IfUnsent,
}

/// An answer of etcd.
#[derive(Debug)]
pub(super) struct Answer<A> {
    pub(super) message: A,
    /// True if the request was sent before, and nothing is known of what became of it.
    pub(super) repeated: bool,
}

impl Client {
    /// Connects when first used, and again whenever needed. Begins at a member drawn at random, so
    /// that the servers of a cluster do not all depend on the same one.
    pub(super) fn new(options: &EtcdOptions) -> Result<Client, Error> {
        if options.endpoints.is_empty() {
            return Err(Error::Unusable("no etcd endpoint is given".into()));
        }
        let channels: Arc<[Channel]> =
            options.endpoints.iter().map(|url| channel(url, options)).collect::<Result<_, _>>()?;
        let first = Selected { member: fastrand::usize(..channels.len()), silences: 0 };
        let selected = Arc::new(watch::Sender::new(first));
        Ok(Client { channels, selected, timeout: options.request_timeout })
    }

    /// Number of endpoints.
    pub(super) fn members(&self) -> usize {
        self.channels.len()
    }

    /// The member that receives requests now.
    pub(super) fn selected(&self) -> Selected {
        *self.selected.borrow()
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn call<Q, A>(&self, path: &'static str, request: &Q, repeat: Repeat) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.call_counted(path, request, repeat).await.map(|answer| answer.message)
    }

    /// Sends a request and waits for its answer. As long as that is safe, the request is sent to
    /// each member that fails once, and again whenever another member was selected because this
    /// one was silent. A member that is only slow gets the request once: the second one would be
    /// no faster, and adds to the load.
    pub(super) async fn call_counted<Q, A>(
        &self,
        path: &'static str,
        request: &Q,
        repeat: Repeat,
    ) -> Result<Answer<A>, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let deadline = self.deadline();
        let mut repeated = false;
        let mut failures = 0;
        loop {
            let at = self.selected();
            let answer = tokio::select! {
                answer = self.call_member(at.member, path, request, deadline) => answer,
                () = self.lost(at, repeat) => match repeat {
                    Repeat::Always if Instant::now() < deadline => {
                        repeated = true;
                        continue;
                    }
                    _ => Err(silent()),
                },
            };
            let status = match answer {
                Ok(message) => return Ok(Answer { message, repeated }),
                Err(status) => status,
            };
            failures += 1;
            let sent = !unsent(&status);
            let again = self.leave(at.member, &status) && failures < self.members() && Instant::now() < deadline;
            if !again || repeat == Repeat::IfUnsent && sent {
                return Err(status);
            }
            repeated |= sent;
        }
    }

    /// Sends a request to one member and waits for its answer until a deadline.
    pub(super) async fn call_member<Q, A>(
        &self,
        member: usize,
        path: &'static str,
        request: &Q,
        deadline: Instant,
    ) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.grpc(member);
        let mut request = Request::new(request.clone());
        request.set_timeout(self.timeout);
        let call = async {
            grpc.ready().await.map_err(not_ready)?;
            grpc.unary(request, PathAndQuery::from_static(path), ProstCodec::<Q, A>::default()).await
        };
        Ok(self.in_time(deadline, call).await?.into_inner())
    }

    /// The time until which a request that is sent now is answered.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Opens a watch stream and sends its first request.
    pub(super) async fn stream(&self, first: WatchRequest) -> Result<WatchStream, Status> {
        let (requests, queue) = mpsc::channel(WATCH_REQUESTS);
        let queue = futures_util::stream::unfold(queue, async |mut queue| Some((queue.recv().await?, queue)));
        let mut request = Request::new(futures_util::stream::iter([first]).chain(queue));
        // A member that has lost its leader ends the stream instead of falling silent.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        let mut selected = self.selected.subscribe();
        let member = selected.borrow_and_update().member;
        let mut grpc = self.grpc(member);
        let open = async {
            grpc.ready().await.map_err(not_ready)?;
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            grpc.streaming(request, path, ProstCodec::<WatchRequest, WatchResponse>::default()).await
        };
        let opened = tokio::select! {
            opened = self.in_time(self.deadline(), open) => opened,
            () = other_selected(&mut selected, member) => Err(silent()),
        };
        match opened {
            Ok(answer) => Ok(WatchStream { requests, answers: answer.into_inner(), member, selected }),
            Err(status) => {
                self.leave(member, &status);
                Err(status)
            }
        }
    }

    /// Selects the next member if an answer says that another one may do better, and returns
    /// whether it does.
    pub(super) fn leave(&self, member: usize, status: &Status) -> bool {
        let failed = is_failure(status);
        if failed {
            let next = (member + 1) % self.members();
            self.selected.send_if_modified(|selected| {
                let move_on = selected.member == member && next != member;
                if move_on {
                    selected.member = next;
                }
                move_on
            });
        }
        failed
    }

    /// Selects another member, which has answered while the selected one was silent.
    pub(super) fn select(&self, member: usize) {
        self.selected.send_modify(|selected| {
            selected.member = member;
            selected.silences += 1;
        });
    }

    /// Waits until the answer to a request is not worth waiting for: its member was left because of
    /// silence.
    pub(super) async fn lost(&self, sent: Selected, repeat: Repeat) {
        let mut selected = self.selected.subscribe();
        let lost = |now: &Selected| now.silences != sent.silences && now.member != sent.member;
        if selected.wait_for(lost).await.is_err() {
            return std::future::pending().await;
        }
        if repeat == Repeat::IfUnsent {
            tokio::time::sleep(ABANDON_AFTER).await;
        }
    }

    /// Lists are as large as their objects, and etcd bounds what it stores: no further bound on messages is needed.
    fn grpc(&self, member: usize) -> Grpc<Channel> {
        let channel = self.channels[member].clone();
        Grpc::new(channel).max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX)
    }

    async fn in_time<T>(&self, deadline: Instant, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        let late = |_| Status::deadline_exceeded(format!("no answer within {} s", self.timeout.as_secs_f32()));
        tokio::time::timeout_at(deadline, call).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
    }
}

/// A watch stream of one member.
#[derive(Debug)]
pub(super) struct WatchStream {
    pub(super) requests: mpsc::Sender<WatchRequest>,
    answers: Streaming<WatchResponse>,
    member: usize,
    selected: watch::Receiver<Selected>,
}

impl WatchStream {
    /// Returns the next answer. Fails when requests go to another member: this one may have fallen
    /// silent, which a stream does not show. Dropping the future loses nothing.
    pub(super) async fn message(&mut self) -> Result<Option<WatchResponse>, Status> {
        tokio::select! {
            answer = self.answers.message() => answer,
            () = other_selected(&mut self.selected, self.member) => {
                Err(Status::unavailable("requests go to another member"))
            }
        }
    }
}

async fn other_selected(selected: &mut watch::Receiver<Selected>, member: usize) {
    if selected.wait_for(|now| now.member != member).await.is_err() {
        std::future::pending().await
    }
}

/// Returns whether an answer is the failure of one member, so that another one may do better.
pub(super) fn is_failure(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown)
}

fn silent() -> Status {
    Status::unavailable("the member does not answer")
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
