//! The API servers of a cluster: which of them receives requests, and how others become known.
//!
//! Servers that share a store answer alike, so any of them will do. Those that the administrator
//! names are joined by those that are endpoints of the Service `kubernetes`. A server that does not
//! answer is left for one that does, and watches go along.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use fairlead_api::source::{Event, Key, Object, Selection, Source};
use fairlead_api::{Look, kinds};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use http::{Method, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tower::BoxError;

use crate::follow::{Step, follow};
use crate::request::whole;

#[cfg(test)]
mod tests;

/// Time between two checks of the server in use. A request that fails asks for a check at once.
const INTERVAL: Duration = Duration::from_secs(5);
/// Time without an answer to a check after which the other servers are asked as well.
const SILENCE: Duration = Duration::from_secs(3);
/// Time that an answer to a check may take in all.
const LONGEST: Duration = Duration::from_secs(10);
/// Least time between two checks: requests that fail one after another ask for many.
const PAUSE: Duration = Duration::from_millis(200);

/// Number of times that a request is sent, if that is safe.
const ATTEMPTS: u32 = 3;

/// Makes the client of the server at a URL, with the credentials of the kubeconfig.
pub(crate) type Dial = Box<dyn Fn(&str) -> Option<kube::Client> + Send + Sync>;

/// The API servers of one cluster.
pub(crate) struct Servers {
    dial: Dial,
    /// Servers that the administrator named.
    configured: Vec<ApiServer>,
    /// Servers that the Service `kubernetes` leads to.
    learned: Mutex<Vec<ApiServer>>,
    selected: watch::Sender<ApiServer>,
    /// The URLs of all of them, for those who keep them.
    urls: watch::Sender<Vec<String>>,
    check: Notify,
    /// Number of checks so far.
    checked: watch::Sender<u64>,
}

/// An API server.
#[derive(Clone)]
struct ApiServer {
    url: Arc<str>,
    client: kube::Client,
}

impl Servers {
    /// The servers at some URLs, at least one.
    pub(crate) fn new(urls: &[String], dial: Dial) -> Option<Arc<Servers>> {
        let server = |url: &String| {
            let url = url.trim_end_matches('/');
            Some(ApiServer { url: url.into(), client: dial(url)? })
        };
        let configured: Vec<ApiServer> = urls.iter().filter_map(server).collect();
        let selected = watch::Sender::new(configured.first()?.clone());
        let urls = watch::Sender::new(configured.iter().map(|server| server.url.to_string()).collect());
        let learned = Mutex::default();
        Some(Arc::new(Servers {
            dial,
            configured,
            learned,
            selected,
            urls,
            check: Notify::new(),
            checked: watch::Sender::new(0),
        }))
    }

    /// The URLs of all servers, as they become known.
    pub(crate) fn urls(&self) -> watch::Receiver<Vec<String>> {
        self.urls.subscribe()
    }

    fn all(&self) -> Vec<ApiServer> {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let new = learned.iter().filter(|server| !self.configured.iter().any(|known| known.url == server.url));
        self.configured.iter().chain(new).cloned().collect()
    }

    /// Sends a request to the server in use, and if that fails once more after a check, provided
    /// that nothing can be done twice.
    pub(crate) async fn send(
        self: Arc<Servers>,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<SwitchedBody>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let harmless = matches!(parts.method, Method::GET | Method::HEAD);
        let mut attempts = 0;
        loop {
            let mut selected = self.selected.subscribe();
            let server = selected.borrow_and_update().clone();
            let request = Request::from_parts(parts.clone(), Body::from(body.clone()));
            let answer = tokio::select! {
                answer = server.client.send(request) => answer.map_err(BoxError::from),
                () = left(&mut selected, server.url.clone()) => Err("another server is in use".into()),
            };
            let error = match answer {
                Ok(answer) => return Ok(answer.map(|body| SwitchedBody::new(body, selected, server.url))),
                Err(error) => error,
            };
            attempts += 1;
            // The connection could not even be made.
            let unsent = std::iter::successors(Some(&*error as &(dyn std::error::Error + 'static)), |e| e.source())
                .any(|cause| {
                    let http = cause.downcast_ref::<hyper_util::client::legacy::Error>();
                    let socket = cause.downcast_ref::<std::io::Error>();
                    http.is_some_and(|error| error.is_connect())
                        || socket.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
                });
            let mut checked = self.checked.subscribe();
            self.check.notify_one();
            if self.all().len() < 2 || attempts == ATTEMPTS || !(harmless || unsent) {
                // Whoever reads it has to know where to look.
                let why = whole(&*error).replacen("ServiceError: ", "", 1);
                return Err(format!("{} does not answer: {why}", server.url).into());
            }
            tokio::select! {
                () = left(&mut selected, server.url) => {}
                _ = checked.changed() => {}
                () = tokio::time::sleep(SILENCE) => {}
            }
        }
    }

    /// Checks the server in use in turns, and uses another one if it does not answer; never
    /// returns.
    pub(crate) async fn monitor(self: Arc<Servers>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                () = self.check.notified() => {}
            }
            let all = self.all();
            if all.len() > 1 {
                let in_use = self.selected.borrow().clone();
                if let Some(better) = better(&in_use, all).await {
                    tracing::warn!("{} does not answer; going on with {}", in_use.url, better.url);
                    self.selected.send_replace(better);
                }
            }
            self.checked.send_modify(|checks| *checks += 1);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Learns from the Service `kubernetes` which servers there are; never returns.
    pub(crate) async fn learn(self: Arc<Servers>, source: Arc<dyn Source>) {
        let selection = Selection::all(&kinds::ENDPOINT_SLICE)
            .in_namespace("default")
            .with_labels("kubernetes.io/service-name=kubernetes");
        let mut slices: HashMap<Key, Vec<String>> = HashMap::new();
        let mut steps = follow(source, selection, None);
        while let Some(step) = steps.next().await {
            match step {
                Step::Listing => slices.clear(),
                Step::Objects(objects) => slices.extend(objects.iter().map(entry)),
                Step::Listed(_) => self.learned(&slices),
                Step::Changed(events, _) => {
                    for event in events {
                        match event {
                            Event::Put(object) => drop(slices.insert(object.key.clone(), entry(&object).1)),
                            Event::Delete(key, _) => drop(slices.remove(&key)),
                        }
                    }
                    self.learned(&slices);
                }
                Step::Trouble(failure) => tracing::debug!(why = failure.message, "the API servers cannot be listed"),
            }
        }
    }

    fn learned(&self, slices: &HashMap<Key, Vec<String>>) {
        let mut urls: Vec<&String> = slices.values().flatten().collect();
        urls.sort_unstable();
        urls.dedup();
        // No endpoint at all does not mean that there is no server: one has just said so.
        if urls.is_empty() {
            return;
        }
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let server = |url: &String| {
            let known = learned.iter().find(|known| *known.url == **url).cloned();
            known.or_else(|| Some(ApiServer { url: url.as_str().into(), client: (self.dial)(url)? }))
        };
        let now: Vec<ApiServer> = urls.into_iter().filter_map(server).collect();
        *learned = now;
        drop(learned);
        let urls: Vec<String> = self.all().iter().map(|server| server.url.to_string()).collect();
        self.urls.send_if_modified(|known| {
            let other = *known != urls;
            *known = urls;
            other
        });
    }
}

fn entry(object: &Object) -> (Key, Vec<String>) {
    let slice: Value = serde_json::from_slice(&object.json).unwrap_or_default();
    (object.key.clone(), urls(&slice))
}

/// The URLs of the servers that an EndpointSlice names.
fn urls(slice: &Value) -> Vec<String> {
    let https = |port: &&Value| port.text("name") == "https";
    let port = slice.list("ports").iter().find(https).and_then(|port| port.at("port").as_u64());
    let Some(port) = port else { return Vec::new() };
    let ready = |endpoint: &&Value| endpoint.at("conditions").at("ready").as_bool() != Some(false);
    let addresses = slice.list("endpoints").iter().filter(ready).flat_map(|endpoint| endpoint.texts("addresses"));
    addresses
        .map(|ip| match ip.contains(':') {
            true => format!("https://[{ip}]:{port}"),
            false => format!("https://{ip}:{port}"),
        })
        .collect()
}

/// Returns another server if the one in use does not answer and that one does.
async fn better(in_use: &ApiServer, all: Vec<ApiServer>) -> Option<ApiServer> {
    let ask = async |server: ApiServer| {
        let request = Request::get("/readyz").body(Body::empty()).ok()?;
        let answer = tokio::time::timeout(LONGEST, server.client.send(request)).await;
        // A refusal, for want of permissions say, is an answer.
        let usable = matches!(answer, Ok(Ok(answer)) if !answer.status().is_server_error());
        usable.then_some(server)
    };
    let first = ask(in_use.clone());
    tokio::pin!(first);
    let mut first_ended = false;
    match tokio::time::timeout(SILENCE, &mut first).await {
        Ok(Some(_)) => return None,
        Ok(None) => first_ended = true,
        Err(_) => {}
    }
    let others = all.into_iter().filter(|server| server.url != in_use.url);
    let mut others: FuturesUnordered<_> = others.map(&ask).collect();
    loop {
        tokio::select! {
            answer = &mut first, if !first_ended => match answer {
                Some(_) => return None,
                None => first_ended = true,
            },
            Some(answer) = others.next() => if answer.is_some() {
                return answer;
            },
            else => return None,
        }
    }
}

/// Waits until another server is in use.
async fn left(selected: &mut watch::Receiver<ApiServer>, url: Arc<str>) {
    if selected.wait_for(|now| now.url != url).await.is_err() {
        std::future::pending().await
    }
}

/// The body of an answer, which fails when requests go to another server: its own may have fallen
/// silent, which a watch does not show.
pub(crate) struct SwitchedBody {
    body: Pin<Box<Body>>,
    left: BoxFuture<'static, ()>,
}

impl SwitchedBody {
    fn new(body: Body, mut selected: watch::Receiver<ApiServer>, url: Arc<str>) -> SwitchedBody {
        SwitchedBody { body: Box::pin(body), left: Box::pin(async move { left(&mut selected, url).await }) }
    }
}

impl HttpBody for SwitchedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.body.as_mut().poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from))),
            Poll::Pending => self.left.as_mut().poll(context).map(|()| Some(Err("another server is in use".into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
