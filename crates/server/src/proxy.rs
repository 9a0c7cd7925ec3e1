//! `services/NAME/proxy` and `pods/NAME/proxy`: pass a request on to a Pod, for a Service to an
//! endpoint that is a Pod and has that Pod's own address. They must never become a way to reach an
//! arbitrary address through the API server.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use fairlead_api::value::Value;
use fairlead_api::{Failure, Look, golang, kinds};
use fairlead_runtime::Permit;
use fairlead_store::Range;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION,
    SEC_WEBSOCKET_PROTOCOL,
};
use http::request::Parts;
use http::{Method, Request, Response, Uri};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::auth::User;
use crate::pages::cookie;
use crate::reply::{self, Body};
use crate::route::Target;
use crate::{Inner, negotiate, object, read, route};

mod addresses;
mod links;
mod tls;

#[cfg(test)]
mod tests;

/// How long an endpoint may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an endpoint may take to begin its answer.
const ANSWER: Duration = Duration::from_secs(30);
/// Content-Security-Policy of proxied answers: a browser gives them an origin of their own, so that
/// their scripts cannot act as the page of this server (CSP Level 3, directive `sandbox`).
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox allow-scripts allow-forms");

/// Passes a request on to a Service or a Pod.
pub(crate) async fn proxy(
    server: &Inner,
    user: &User,
    target: &Target,
    parts: &Parts,
    body: Bytes,
) -> Result<Response<Body>, Failure> {
    let wanted = Wanted::parse(target)?;
    let named = Target { name: wanted.name.to_owned(), subresource: String::new(), ..target.clone() };
    let object = object::load(target.kind, &*read::find(&*server.store, &named).await?)?;
    let address = if *target.kind == kinds::POD {
        let ip = addresses::checked(server, &object, object.at("status").text("podIP")).await?;
        wanted.pod_address(&object, ip.ok_or_else(|| Failure::bad_request("address not allowed"))?)?
    } else {
        endpoint(server, &named, &wanted.port_name(&object)?).await?
    };
    if target.rest.is_empty() && matches!(parts.method, Method::GET | Method::HEAD) {
        return Ok(with_slash(parts));
    }
    let links = links::Links {
        prefix: format!("/api/v1/namespaces/{}/{}/{}/proxy", target.namespace, target.kind.resource, target.name),
        hosts: [address.to_string(), negotiate::text(&parts.headers, HOST).to_owned()],
    };
    let permit = server.shares().stream(user)?;
    let response = forward(&wanted, address, parts, body, permit).await?;
    Ok(links.rewrite_response(response))
}

/// The name of a Service, Pod or Node as it stands before `/proxy`: `[SCHEME:]NAME[:PORT]`.
pub(crate) struct Wanted<'a> {
    https: bool,
    pub(crate) name: &'a str,
    pub(crate) port: &'a str,
}

impl<'a> Wanted<'a> {
    /// Reads the name of a target.
    pub(crate) fn parse(target: &'a Target) -> Result<Wanted<'a>, Failure> {
        let text = target.name.as_str();
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts[..] {
            [name] => ("", name, ""),
            [name, port] => ("", name, port),
            [scheme, name, port] => (scheme, name, port),
            _ => ("?", "", ""),
        };
        if !matches!(scheme, "" | "http" | "https") || name.is_empty() {
            let kind = target.kind.singular();
            return Err(Failure::bad_request(format!("invalid {kind} request {}", golang::quote(text))));
        }
        Ok(Wanted { https: scheme == "https", name, port })
    }

    /// Returns the address of a Pod with the port that is meant: without one, the first that the
    /// Pod declares, else that of the scheme.
    fn pod_address(&self, pod: &Value, ip: IpAddr) -> Result<SocketAddr, Failure> {
        if !self.port.is_empty() {
            let port = self.port.parse().ok().filter(|port: &u16| *port > 0);
            let why = || format!("invalid pod request: {} is no port number", golang::quote(self.port));
            return port.map(|port| SocketAddr::new(ip, port)).ok_or_else(|| Failure::bad_request(why()));
        }
        let ports = pod.at("spec").list("containers").iter().find_map(|container| container.list("ports").first());
        let declared = ports.and_then(|port| u16::try_from(port.int("containerPort")).ok());
        Ok(SocketAddr::new(ip, declared.unwrap_or(if self.https { 443 } else { 80 })))
    }

    /// The name of the Service's port that is meant; a number is looked up.
    fn port_name(&self, service: &Value) -> Result<String, Failure> {
        let Ok(number) = self.port.parse::<i64>() else { return Ok(self.port.to_owned()) };
        let ports = service.at("spec").list("ports");
        match ports.iter().find(|port| port.int("port") == number) {
            Some(port) => Ok(port.text("name").to_owned()),
            None => {
                Err(unavailable(format!("no service port {number} found for service {}", golang::quote(self.name))))
            }
        }
    }
}

fn unavailable(message: String) -> Failure {
    Failure::new(503, "ServiceUnavailable", message)
}

/// A relative link on a page works only if the page's address ends with a slash.
fn with_slash(parts: &Parts) -> Response<Body> {
    let mut response = reply::plain(301, "");
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(location) = HeaderValue::from_str(&format!("{}/{query}", parts.uri.path())) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// One of the ready endpoints that are Pods, by chance.
async fn endpoint(server: &Inner, service: &Target, port: &str) -> Result<SocketAddr, Failure> {
    let mut candidates = from_slices(server, service, port).await?;
    if candidates.is_empty() {
        candidates = from_endpoints(server, service, port).await?;
    }
    fastrand::shuffle(&mut candidates);
    for candidate in &candidates {
        if let Some(address) = candidate.checked(server, &service.namespace).await? {
            return Ok(address);
        }
    }
    Err(unavailable(format!("no endpoints available for service {}", golang::quote(&service.name))))
}

/// What an endpoint says of itself.
struct Candidate {
    address: String,
    port: i64,
    pod: Value,
}

impl Candidate {
    /// The address, if it is that of the Pod the endpoint names, and one that may be reached at all.
    async fn checked(&self, server: &Inner, namespace: &str) -> Result<Option<SocketAddr>, Failure> {
        if self.pod.text("kind") != "Pod" {
            return Ok(None);
        }
        let key = object::key(&kinds::POD, namespace, self.pod.text("name"));
        let Some(entry) = server.store.get(&key).await.map_err(read::unavailable)? else { return Ok(None) };
        let pod = object::load(&kinds::POD, &entry)?;
        let uid = self.pod.text("uid");
        let same = uid.is_empty() || uid == pod.at("metadata").text("uid");
        let status = pod.at("status");
        let own = status.text("podIP") == self.address
            || status.list("podIPs").iter().any(|ip| ip.text("ip") == self.address);
        let Ok(port) = u16::try_from(self.port) else { return Ok(None) };
        if !same || !own {
            return Ok(None);
        }
        let ip = addresses::checked(server, &pod, &self.address).await?;
        Ok(ip.map(|ip| SocketAddr::new(ip, port)))
    }
}

async fn from_slices(server: &Inner, service: &Target, port: &str) -> Result<Vec<Candidate>, Failure> {
    let prefix = object::prefix(&kinds::ENDPOINT_SLICE, &service.namespace);
    let page = server.store.range(Range { prefix: prefix.into(), ..Range::default() }).await;
    let page = page.map_err(read::unavailable)?;
    let mut found = Vec::new();
    for entry in &page.entries {
        let belongs = object::with_index(&kinds::ENDPOINT_SLICE, entry, |index| {
            index.labels.iter().any(|(key, value)| &**key == "kubernetes.io/service-name" && **value == *service.name)
        });
        if belongs {
            found.extend(of_slice(&object::load(&kinds::ENDPOINT_SLICE, entry)?, port));
        }
    }
    Ok(found)
}

fn of_slice(slice: &Value, port: &str) -> Vec<Candidate> {
    let Some(port) = slice.list("ports").iter().find(|p| p.text("name") == port).map(|p| p.int("port")) else {
        return Vec::new();
    };
    let ready = slice.list("endpoints").iter().filter(|e| e.at("conditions").flag_opt("ready").unwrap_or(true));
    ready
        .filter_map(|e| {
            let address = e.texts("addresses").first()?.to_string();
            Some(Candidate { address, port, pod: e.at("targetRef").clone() })
        })
        .collect()
}

async fn from_endpoints(server: &Inner, service: &Target, port: &str) -> Result<Vec<Candidate>, Failure> {
    let key = object::key(&kinds::ENDPOINTS, &service.namespace, &service.name);
    let Some(entry) = server.store.get(&key).await.map_err(read::unavailable)? else { return Ok(Vec::new()) };
    let endpoints = object::load(&kinds::ENDPOINTS, &entry)?;
    let mut found = Vec::new();
    for subset in endpoints.list("subsets") {
        let Some(port) = subset.list("ports").iter().find(|p| p.text("name") == port) else { continue };
        found.extend(subset.list("addresses").iter().map(|address| Candidate {
            address: address.text("ip").to_owned(),
            port: port.int("port"),
            pod: address.at("targetRef").clone(),
        }));
    }
    Ok(found)
}

/// Keeps browsers from treating an answer of a Pod or a Node as one of this server: the answer
/// cannot set the cookie of the page, and runs in a sandbox. A policy of its own holds as well.
pub(crate) fn isolate(headers: &mut HeaderMap) {
    cookie::remove_set(headers);
    headers.append(CONTENT_SECURITY_POLICY, SANDBOX);
}

/// Sends the request to an address. The permit is held until the body of the answer ends.
async fn forward(
    wanted: &Wanted<'_>,
    address: SocketAddr,
    parts: &Parts,
    body: Bytes,
    permit: Permit,
) -> Result<Response<Body>, Failure> {
    let failed = |why: String| unavailable(format!("error trying to reach service: {why}"));
    let request = outgoing(address, parts, body).map_err(|error| failed(error.to_string()))?;
    let stream = tokio::time::timeout(CONNECT, TcpStream::connect(address))
        .await
        .map_err(|_| failed(format!("dial tcp {address}: i/o timeout")))?
        .map_err(|error| failed(format!("dial tcp {address}: {error}")))?;
    let answer = async {
        if wanted.https {
            let stream = tls::connect(stream, address.ip()).await.map_err(|error| error.to_string())?;
            send(stream, request, permit).await
        } else {
            send(stream, request, permit).await
        }
    };
    match tokio::time::timeout(ANSWER, answer).await {
        Ok(answer) => answer.map_err(failed),
        Err(_) => Err(failed(format!("{address} did not answer in time"))),
    }
}

async fn send<S>(stream: S, request: Request<Full<Bytes>>, permit: Permit) -> Result<Response<Body>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| error.to_string())?;
    tokio::spawn(connection);
    let mut response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    drop_hop_by_hop(response.headers_mut());
    isolate(response.headers_mut());
    Ok(response.map(|body| reply::passed_on(body, permit)))
}

/// The request as the endpoint gets it: without the client's credentials, which are for us.
fn outgoing(address: SocketAddr, parts: &Parts, body: Bytes) -> Result<Request<Full<Bytes>>, http::Error> {
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    // The path as it was sent, escapes and all, from behind the subresource on.
    let sent = Some(route::after(parts.uri.path(), route::PROXY_PARTS)).filter(|path| !path.is_empty()).unwrap_or("/");
    let uri: Uri = format!("{sent}{query}").parse()?;
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = uri;
    let mut headers = parts.headers.clone();
    drop_hop_by_hop(&mut headers);
    headers.remove(AUTHORIZATION);
    cookie::remove_secrets(&mut headers);
    // A token may be among them, and no WebSocket is passed on.
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    let private: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("impersonate-")).cloned().collect();
    for name in private {
        headers.remove(name);
    }
    if let Some(host) = headers.insert(HOST, HeaderValue::from_str(&address.to_string())?) {
        headers.insert(HeaderName::from_static("x-forwarded-host"), host);
    }
    headers.insert(HeaderName::from_static("x-forwarded-uri"), HeaderValue::from_str(parts.uri.path())?);
    if let Some(connection) = parts.extensions.get::<crate::serve::Connection>() {
        let peer = HeaderValue::from_str(&connection.peer.ip().to_string())?;
        headers.append(HeaderName::from_static("x-forwarded-for"), peer);
    }
    *request.headers_mut() = headers;
    Ok(request)
}

/// Headers that are about one connection only.
fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<String> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(|name| name.trim().to_lowercase()))
        .collect();
    let fixed = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "content-length",
    ];
    for name in named.iter().map(String::as_str).chain(fixed) {
        headers.remove(name);
    }
}
