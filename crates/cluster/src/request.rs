//! Writes and single reads: what is asked of the API, as HTTP requests with JSON bodies.

use std::time::Duration;

use bytes::Bytes;
use fairlead_api::kinds::Subresource;
use fairlead_api::view::{self, Meta, View};
use fairlead_api::{Kind, Look, head};
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::request::Builder;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::error::failure;
use crate::{AnswerBody, Cluster, Error, Requests};

#[cfg(test)]
mod tests;

/// How long an answer may take. The API server's own bound is 60 s; who waits longer has better things to do.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A list as a table.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// The largest answer that is read; an object has at most 3 MiB.
pub(crate) const ANSWER_LIMIT: usize = 64 << 20;

/// A change of a part of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Patch {
    /// RFC 7386: what is there is replaced, null removes.
    Merge(Value),
    /// RFC 6902: a list of operations.
    Json(Value),
    /// Kubernetes' own: lists are merged by key.
    Strategic(Value),
    /// Server-side apply.
    Apply {
        /// The fields we want.
        object: Value,
        /// Take fields from other managers.
        force: bool,
    },
}

impl Patch {
    fn media(&self) -> &'static str {
        match self {
            Patch::Merge(_) => "application/merge-patch+json",
            Patch::Json(_) => "application/json-patch+json",
            Patch::Strategic(_) => "application/strategic-merge-patch+json",
            Patch::Apply { .. } => "application/apply-patch+yaml",
        }
    }

    fn body(&self) -> &Value {
        match self {
            Patch::Merge(body) | Patch::Json(body) | Patch::Strategic(body) => body,
            Patch::Apply { object, .. } => object,
        }
    }
}

/// How to delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delete {
    /// Only the object with this uid.
    pub uid: Option<String>,
    /// Only the object as it was at this resourceVersion.
    pub resource_version: Option<String>,
    /// What becomes of objects it owns; the kind's own way if `None`.
    pub propagation: Option<Propagation>,
    /// Seconds it may take to go; the kind's own if `None`.
    pub grace_seconds: Option<u64>,
}

/// What becomes of owned objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They stay.
    Orphan,
    /// They go afterwards.
    Background,
    /// They go first.
    Foreground,
}

impl Delete {
    /// The same as an object of the API.
    pub fn body(&self) -> Value {
        let mut body = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        if let Some(uid) = &self.uid {
            body["preconditions"]["uid"] = uid.as_str().into();
        }
        if let Some(version) = &self.resource_version {
            body["preconditions"]["resourceVersion"] = version.as_str().into();
        }
        if let Some(propagation) = self.propagation {
            body["propagationPolicy"] = format!("{propagation:?}").into();
        }
        if let Some(seconds) = self.grace_seconds {
            body["gracePeriodSeconds"] = seconds.into();
        }
        body
    }
}

impl Cluster {
    /// One object.
    pub async fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Value, Error> {
        self.send(Method::GET, &path(kind, namespace, name, None), JSON, None).await
    }

    /// The objects of a namespace, or of all (""), as the table people are shown.
    pub async fn table(&self, kind: &Kind, namespace: &str) -> Result<Value, Error> {
        let request = Request::builder().method(Method::GET).uri(path(kind, namespace, "", None)).header(ACCEPT, TABLE);
        read(&self.answer(request, Bytes::new()).await?)
    }

    /// Makes an object; its namespace is the one in its metadata. The answer is the object as it is now.
    pub async fn create(&self, kind: &Kind, object: &Value) -> Result<Value, Error> {
        let path = path(kind, object.at("metadata").text("namespace"), "", None);
        self.send(Method::POST, &self.with_manager(path), JSON, Some(object)).await
    }

    /// Replaces an object.
    pub async fn update(&self, kind: &Kind, object: &Value) -> Result<Value, Error> {
        self.put(kind, object, None).await
    }

    /// Replaces the status of an object.
    pub async fn update_status(&self, kind: &Kind, object: &Value) -> Result<Value, Error> {
        self.put(kind, object, Some(Subresource::Status)).await
    }

    /// Replaces what `finalize` of a Namespace may: its finalizers.
    pub async fn finalize(&self, kind: &Kind, object: &Value) -> Result<Value, Error> {
        self.put(kind, object, Some(Subresource::Finalize)).await
    }

    /// Makes the object a view stands for. The answer is what the server says of it, without reading the rest.
    pub async fn create_view<T: View + Serialize>(&self, view: &T) -> Result<Meta, Error> {
        let path = path(T::KIND, &view.meta().namespace, "", None);
        self.write(Method::POST, &self.with_manager(path), view).await
    }

    /// Replaces the object a view stands for.
    pub async fn update_view<T: View + Serialize>(&self, view: &T) -> Result<Meta, Error> {
        let Meta { namespace, name, .. } = view.meta();
        let path = path(T::KIND, namespace, name, None);
        self.write(Method::PUT, &self.with_manager(path), view).await
    }

    async fn write<T: View + Serialize>(&self, method: Method, path: &str, view: &T) -> Result<Meta, Error> {
        let body = Bytes::from(view::to_bytes(view));
        let answer = self.exchange(method, path, JSON, body).await?;
        head::read(&answer).ok_or_else(|| Error::unavailable("the server's answer has no metadata"))
    }

    /// Changes a part of an object.
    pub async fn patch(&self, kind: &Kind, namespace: &str, name: &str, patch: &Patch) -> Result<Value, Error> {
        self.send_patch(path(kind, namespace, name, None), patch).await
    }

    /// Changes a part of an object's status.
    pub async fn patch_status(&self, kind: &Kind, namespace: &str, name: &str, patch: &Patch) -> Result<Value, Error> {
        self.send_patch(path(kind, namespace, name, Some(Subresource::Status)), patch).await
    }

    /// Deletes an object, or begins to.
    pub async fn delete(&self, kind: &Kind, namespace: &str, name: &str, how: &Delete) -> Result<Value, Error> {
        self.send(Method::DELETE, &path(kind, namespace, name, None), JSON, Some(&how.body())).await
    }

    /// Deletes all objects of a kind in a namespace.
    pub async fn delete_all(&self, kind: &Kind, namespace: &str, how: &Delete) -> Result<Value, Error> {
        self.send(Method::DELETE, &path(kind, namespace, "", None), JSON, Some(&how.body())).await
    }

    /// Any other request with a JSON body, or none.
    pub async fn request(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        self.send(method, path, JSON, body).await
    }

    async fn put(&self, kind: &Kind, object: &Value, part: Option<Subresource>) -> Result<Value, Error> {
        let metadata = object.at("metadata");
        let path = path(kind, metadata.text("namespace"), metadata.text("name"), part);
        self.send(Method::PUT, &self.with_manager(path), JSON, Some(object)).await
    }

    async fn send_patch(&self, path: String, patch: &Patch) -> Result<Value, Error> {
        let mut path = self.with_manager(path);
        if let Patch::Apply { force: true, .. } = patch {
            path.push_str("&force=true");
        }
        self.send(Method::PATCH, &path, patch.media(), Some(patch.body())).await
    }

    fn with_manager(&self, path: String) -> String {
        format!("{path}?fieldManager={}", encode(&self.manager))
    }

    async fn send(&self, method: Method, path: &str, media: &str, body: Option<&Value>) -> Result<Value, Error> {
        let body = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        read(&self.exchange(method, path, media, body).await?)
    }

    async fn exchange(&self, method: Method, path: &str, media: &str, body: Bytes) -> Result<Bytes, Error> {
        let request = Request::builder().method(method).uri(path).header(ACCEPT, JSON).header(CONTENT_TYPE, media);
        self.answer(request, body).await
    }

    /// Sends what is asked and reads the answer.
    pub(crate) async fn answer(&self, request: Builder, body: Bytes) -> Result<Bytes, Error> {
        let request = request
            .header(USER_AGENT, format!("{}/{}", self.manager, env!("CARGO_PKG_VERSION")))
            .body(Full::new(body))
            .map_err(|error| Error::unavailable(format!("no request can be made: {error}")))?;
        let answer = fetch(self.shared.requests.clone(), request, ANSWER_LIMIT);
        within(TIMEOUT, "the server did not answer in time", answer).await
    }
}

pub(crate) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(answer)
        .map_err(|error| Error::unavailable(format!("the server's answer is not what it should be: {error}")))
}

/// What we speak.
pub(crate) const JSON: &str = "application/json";

/// Sends a request; an answer that is a failure becomes one.
pub(crate) async fn send(requests: Requests, request: Request<Full<Bytes>>) -> Result<Response<AnswerBody>, Error> {
    let response = requests.oneshot(request).await.map_err(|error| Error::unavailable(whole(&*error)))?;
    if response.status().is_success() {
        return Ok(response);
    }
    let code = response.status();
    let retry_after = retry_after(&response);
    let body = collect(response, ANSWER_LIMIT).await.unwrap_or_default();
    let mut error = Error::from(failure(code.as_u16(), &body));
    if let (Error::Unavailable { retry_after: known, .. }, Some(told)) = (&mut error, retry_after) {
        *known = Some(told);
    }
    Err(error)
}

/// Sends a request and reads its whole answer.
pub(crate) async fn fetch(requests: Requests, request: Request<Full<Bytes>>, limit: usize) -> Result<Bytes, Error> {
    collect(send(requests, request).await?, limit).await
}

/// Waits for an answer, but not for ever.
pub(crate) async fn within<T>(
    time: Duration,
    otherwise: &str,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(time, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(Error::unavailable(otherwise)),
    }
}

fn retry_after(response: &Response<AnswerBody>) -> Option<Duration> {
    let useful = matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let header = response.headers().get(http::header::RETRY_AFTER).filter(|_| useful)?;
    header.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

pub(crate) async fn collect(response: Response<AnswerBody>, limit: usize) -> Result<Bytes, Error> {
    // In a box: without it the compiler does not see that the future may move between threads.
    let body: BoxFuture<'static, _> = Box::pin(Limited::new(response.into_body(), limit).collect());
    Ok(body.await.map_err(|error| Error::unavailable(format!("the answer broke off: {}", whole(&*error))))?.to_bytes())
}

/// An error with everything that led to it.
pub(crate) fn whole(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}

/// The path of an object, of a part of it, or, without a name, of all.
pub(crate) fn path(kind: &Kind, namespace: &str, name: &str, part: Option<Subresource>) -> String {
    let mut path = match kind.group {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    };
    if kind.namespaced && !namespace.is_empty() {
        path = format!("{path}/namespaces/{}", encode(namespace));
    }
    path = format!("{path}/{}", kind.resource);
    if !name.is_empty() {
        path = format!("{path}/{}", encode(name));
    }
    match part {
        Some(part) => format!("{path}/{}", format!("{part:?}").to_lowercase()),
        None => path,
    }
}

/// A text as it stands in a URL.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
