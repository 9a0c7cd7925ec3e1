//! `log`, `exec`, `attach` and `portforward` of a Pod: checked here, then passed on to the Pod's Node. What flows afterwards is
//! between the client and the Node.

use std::time::Duration;

use bytes::Bytes;
use fairlead_api::field::{FieldErrors, Path};
use fairlead_api::status::Subject;
use fairlead_api::value::Value;
use fairlead_api::{Failure, FieldError, Look, kinds};
use fairlead_runtime::Permit;
use http::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_util::sync::CancellationToken;

use crate::auth::rbac::{Attributes, Target as About};
use crate::auth::{User, web_socket};
use crate::options::Query;
use crate::proxy::{self, Wanted};
use crate::reply::{self, Body};
use crate::route::Target;
use crate::{Inner, nodes, object, read};

mod location;
mod log_socket;

use log_socket::LogSocket;

/// How long a Node may take to begin its answer.
const ANSWER: Duration = Duration::from_secs(30);
/// How much of a Node's complaint is read.
const COMPLAINT: usize = 16 << 10;
/// The headers that agree on a stream; no others are passed on.
const AGREEMENT: [HeaderName; 7] = [
    CONNECTION,
    UPGRADE,
    HeaderName::from_static("sec-websocket-key"),
    HeaderName::from_static("sec-websocket-version"),
    HeaderName::from_static("sec-websocket-accept"),
    SEC_WEBSOCKET_PROTOCOL,
    HeaderName::from_static("x-stream-protocol-version"),
];

/// GET `pods/NAME/log`, also over a WebSocket.
pub(crate) async fn log(
    server: &Inner,
    user: &User,
    target: &Target,
    parts: &Parts,
    query: &Query,
) -> Result<Response<Body>, Failure> {
    let socket = LogSocket::of(&parts.headers, parts.extensions.get::<OnUpgrade>())?;
    let options = location::log_options(query, &target.name)?;
    let pod = find(server, target).await?;
    let container = location::container(query.text("container"), &pod)?;
    let Some(node) = node_of(server, &pod).await? else {
        // What runs nowhere has written nothing.
        let mut nothing = reply::plain(204, "");
        nothing.headers_mut().remove(http::header::CONTENT_TYPE);
        return Ok(nothing);
    };
    let permit = server.shares().stream(user)?;
    let path = format!("/containerLogs/{}/{}/{container}?{options}", target.namespace, target.name);
    let answer = ask(server, &node, &Method::GET, &path, HeaderMap::new()).await?;
    if answer.status() != StatusCode::OK {
        return Err(complaint(answer).await);
    }
    match socket {
        Some(socket) => Ok(socket.send(answer, permit, server.stop.clone())),
        None => Ok(streamed(answer, permit)),
    }
}

/// `pods/NAME/exec`, `attach`, `portforward`.
pub(crate) async fn stream(
    server: &Inner,
    user: &User,
    target: &Target,
    parts: &Parts,
    query: &Query,
) -> Result<Response<Body>, Failure> {
    may_create(server, user, target)?;
    let pod = find(server, target).await?;
    let path = location::of_stream(&target.subresource, query, &pod)?;
    let why = || Failure::bad_request(format!("pod {} does not have a host assigned", target.name));
    let node = node_of(server, &pod).await?.ok_or_else(why)?;
    let (Some(client), true) = (parts.extensions.get::<OnUpgrade>(), parts.headers.contains_key(UPGRADE)) else {
        return Err(Failure::bad_request("Upgrade request required"));
    };
    let permit = server.shares().stream(user)?;
    let mut answer = ask(server, &node, &parts.method, &path, agreement(&parts.headers)).await?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(complaint(answer).await);
    }
    let far = hyper::upgrade::on(&mut answer);
    tokio::spawn(join(client.clone(), far, permit, server.stop.clone()));
    let mut response = reply::plain(101, "");
    *response.headers_mut() = agreement(answer.headers());
    Ok(response)
}

/// GET `nodes/[SCHEME:]NAME[:PORT]/proxy/PATH`: what a Node says of itself. Streams are not to be
/// had this way: who may see a Node may not therefore run commands in its Pods.
pub(crate) async fn node(
    server: &Inner,
    user: &User,
    target: &Target,
    parts: &Parts,
) -> Result<Response<Body>, Failure> {
    let wanted = Wanted::parse(target)?;
    let refuse = |why: &str| Err(Failure::forbidden(Subject { group: "", kind: "nodes", name: &target.name }, why));
    let first = target.rest.split('/').nth(1).unwrap_or_default();
    if parts.method != Method::GET || !matches!(first, "healthz" | "metrics" | "pods" | "containerLogs") {
        return refuse("of a node, only GET of healthz, metrics, pods and containerLogs is passed on");
    }
    let whole = Target { name: wanted.name.to_owned(), subresource: String::new(), ..target.clone() };
    let node = object::load(&kinds::NODE, &*read::find(&*server.store, &whole).await?)?;
    // The scheme does not matter: the agent is always asked over TLS, or within this process.
    let port = nodes::agent_port(&node);
    if !wanted.port.is_empty() && wanted.port.parse() != Ok(port) {
        return refuse(&format!("of a node, only port {port} of its agent is reached"));
    }
    let permit = server.shares().stream(user)?;
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    // As it was checked, not as it was sent: the two may differ in what is escaped.
    let path = format!("{}{query}", target.rest);
    let answer = ask(server, &node, &Method::GET, &path, HeaderMap::new()).await?;
    if answer.status() != StatusCode::OK {
        return Err(complaint(answer).await);
    }
    let mut response = streamed(answer, permit);
    proxy::isolate(response.headers_mut());
    Ok(response)
}

/// A stream runs commands, so who may only `get` may not have one, though WebSockets begin with a GET.
fn may_create(server: &Inner, user: &User, target: &Target) -> Result<(), Failure> {
    let about = About::Resource {
        group: target.kind.group,
        resource: target.kind.resource,
        subresource: &target.subresource,
        namespace: &target.namespace,
        name: &target.name,
    };
    server.access.authorize(user, &Attributes { verb: "create", target: about })
}

async fn find(server: &Inner, target: &Target) -> Result<Value, Failure> {
    let pod = Target { subresource: String::new(), ..target.clone() };
    let entry = read::find(&*server.store, &pod).await?;
    object::load(&kinds::POD, &entry)
}

/// The Pod's Node; `None`: it is on none yet.
async fn node_of(server: &Inner, pod: &Value) -> Result<Option<Value>, Failure> {
    let name = pod.at("spec").text("nodeName");
    if name.is_empty() {
        return Ok(None);
    }
    let entry = server.store.get(&object::key(&kinds::NODE, "", name)).await.map_err(read::unavailable)?;
    let subject = Subject { group: "", kind: "nodes", name };
    let entry = entry.ok_or_else(|| Failure::not_found(subject))?;
    object::load(&kinds::NODE, &entry).map(Some)
}

/// Sends a request to a Node.
async fn ask(
    server: &Inner,
    node: &Value,
    method: &Method,
    path: &str,
    headers: HeaderMap,
) -> Result<Response<Incoming>, Failure> {
    let Some(dialer) = server.nodes.get() else {
        let name = node.at("metadata").text("name");
        return Err(Failure::bad_request(format!("this server does not reach nodes, and so not node {name}")));
    };
    let failed = |why: String| Failure::internal(format!("error dialing backend: {why}"));
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = method.clone();
    *request.uri_mut() =
        path.parse().map_err(|error: http::uri::InvalidUri| Failure::bad_request(error.to_string()))?;
    *request.headers_mut() = headers;
    request.headers_mut().insert(HOST, HeaderValue::from_static("node"));
    let answer = async {
        let stream = dialer.dial(node).await?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| failed(error.to_string()))?;
        tokio::spawn(connection.with_upgrades());
        sender.send_request(request).await.map_err(|error| failed(error.to_string()))
    };
    tokio::time::timeout(ANSWER, answer).await.unwrap_or_else(|_| Err(failed("it did not answer in time".to_owned())))
}

fn agreement(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in &AGREEMENT {
        for value in headers.get_all(name) {
            kept.append(name, value.clone());
        }
    }
    // A token among the protocols is for us alone.
    let protocols = web_socket::protocols(headers).join(", ");
    match HeaderValue::from_str(&protocols) {
        Ok(protocols) if !protocols.is_empty() => drop(kept.insert(SEC_WEBSOCKET_PROTOCOL, protocols)),
        _ => drop(kept.remove(SEC_WEBSOCKET_PROTOCOL)),
    }
    kept
}

/// What a Node complains of, as a failure of ours.
async fn complaint(answer: Response<Incoming>) -> Failure {
    let code = answer.status().as_u16();
    let text = Limited::new(answer.into_body(), COMPLAINT).collect().await.map(|body| body.to_bytes());
    let text = String::from_utf8_lossy(&text.unwrap_or_default()).trim().to_owned();
    match code {
        400 => Failure::bad_request(text),
        404 => Failure::new(404, "NotFound", text),
        429 => Failure::new(429, "TooManyRequests", text),
        _ => Failure::internal(text),
    }
}

/// Returns a Node's answer, passed on as it comes.
fn streamed(answer: Response<Incoming>, permit: Permit) -> Response<Body> {
    let media = answer.headers().get(http::header::CONTENT_TYPE).cloned();
    let mut response = reply::plain(200, "");
    let media = media.unwrap_or(HeaderValue::from_static("text/plain"));
    response.headers_mut().insert(http::header::CONTENT_TYPE, media);
    response.map(|_| reply::passed_on(answer.into_body(), permit))
}

/// Copies between the two ends of a stream until one is done or the server stops.
async fn join(client: OnUpgrade, node: OnUpgrade, permit: Permit, stop: CancellationToken) {
    let _permit = permit;
    let both = async {
        let (client, node) = futures_util::future::try_join(client, node).await?;
        let (mut client, mut node) = (TokioIo::new(client), TokioIo::new(node));
        let _ = tokio::io::copy_bidirectional(&mut client, &mut node).await;
        Ok::<_, hyper::Error>(())
    };
    tokio::select! {
        ended = both => if let Err(error) = ended {
            tracing::debug!(%error, "a stream was not taken up");
        },
        () = stop.cancelled() => {}
    }
}
