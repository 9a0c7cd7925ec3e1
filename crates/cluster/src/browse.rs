//! Any resource of the server, as somebody looks at it who does not know it: single objects and lists, whole or as the table the
//! server makes of them, what changes afterwards, and what the server remarks on a request.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, USER_AGENT, WARNING};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use fairlead_api::Look;

use crate::error::failure;
use crate::remote::Lines;
use crate::request::{ANSWER_LIMIT, JSON, collect, encode, read, send, whole, within};
use crate::{AnswerBody, Cluster, Error, Resource};

#[cfg(test)]
mod tests;

/// Objects a page: what kubectl asks for.
const PAGE: usize = 500;
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A table, where the server can make one.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// What of an object is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// All of it.
    Whole,
    /// A row of a table. Servers that make none send the whole object.
    Table,
}

/// Which objects of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Empty: all namespaces, or a resource without them.
    pub namespace: String,
    /// Empty: all objects.
    pub name: String,
    /// A label selector; empty selects everything.
    pub labels: String,
    /// A field selector; empty selects everything.
    pub fields: String,
}

/// An answer, and what was said beside it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Whether something was made that was not there.
    pub created: bool,
    /// What the server warns of.
    pub warnings: Vec<String>,
    /// The answer itself.
    pub body: Value,
}

/// Sends what is asked.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// What to do.
    pub method: &'a Method,
    /// With what, and how.
    pub path: &'a str,
    /// The form of the answer.
    pub form: Form,
    /// The body, and its media type.
    pub body: Option<(&'a str, &'a Value)>,
}

impl Cluster {
    /// One object, or the pages of a list.
    pub async fn look(&self, resource: &Resource, query: &Query, form: Form) -> Result<Vec<Answer>, Error> {
        let path = format!("{}{}", resource.path(&query.namespace), query.name_path());
        if !query.name.is_empty() {
            return Ok(vec![self.ask(Ask { method: &Method::GET, path: &path, form, body: None }).await?]);
        }
        let (mut pages, mut more) = (Vec::new(), String::new());
        loop {
            let path = format!("{path}?{}&limit={PAGE}&continue={}", query.selectors(), encode(&more));
            let page = self.ask(Ask { method: &Method::GET, path: &path, form, body: None }).await?;
            more = page.body.at("metadata").text("continue").to_owned();
            pages.push(page);
            if more.is_empty() {
                return Ok(pages);
            }
        }
    }

    /// What changes after a resourceVersion, until the server ends it.
    pub async fn watch(&self, resource: &Resource, query: &Query, form: Form, after: &str) -> Result<Watching, Error> {
        let path = format!(
            "{}?{}&watch=true&resourceVersion={}",
            resource.path(&query.namespace),
            query.selectors(),
            encode(after)
        );
        let request = self.asking(Ask { method: &Method::GET, path: &path, form, body: None })?;
        let opened = send(self.shared.requests.clone(), request);
        let response = within(TIMEOUT, "the watch did not begin in time", opened).await?;
        Ok(Watching { warnings: warnings(response.headers()), body: response.into_body(), lines: Lines::default() })
    }

    /// Any request.
    pub async fn ask(&self, ask: Ask<'_>) -> Result<Answer, Error> {
        let request = self.asking(ask)?;
        let requests = self.shared.requests.clone();
        let answer = async {
            let response = send(requests, request).await?;
            let created = response.status() == StatusCode::CREATED;
            let warnings = warnings(response.headers());
            Ok(Answer { created, warnings, body: read(&collect(response, ANSWER_LIMIT).await?)? })
        };
        within(TIMEOUT, "the server did not answer in time", answer).await
    }

    fn asking(&self, ask: Ask<'_>) -> Result<Request<Full<Bytes>>, Error> {
        let accept = if ask.form == Form::Table { TABLE } else { JSON };
        let agent = format!("{}/{}", self.manager, env!("CARGO_PKG_VERSION"));
        let mut request = Request::builder().method(ask.method).uri(ask.path).header(ACCEPT, accept);
        request = request.header(USER_AGENT, agent);
        let body = ask.body.map(|(media, body)| (media, Bytes::from(body.to_string())));
        if let Some((media, _)) = &body {
            request = request.header(CONTENT_TYPE, *media);
        }
        let request = request.body(Full::new(body.map(|(_, body)| body).unwrap_or_default()));
        request.map_err(|error| Error::unavailable(format!("no request can be made: {error}")))
    }
}

impl Query {
    fn name_path(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!("/{}", encode(&self.name)) }
    }

    fn selectors(&self) -> String {
        let named = (!self.name.is_empty()).then(|| format!("metadata.name={}", self.name));
        let said = Some(self.fields.clone()).filter(|fields| !fields.is_empty());
        let fields: Vec<String> = said.into_iter().chain(named).collect();
        format!("labelSelector={}&fieldSelector={}", encode(&self.labels), encode(&fields.join(",")))
    }
}

/// A watch that is going on.
pub struct Watching {
    /// What the server warned of as it began.
    pub warnings: Vec<String>,
    body: AnswerBody,
    lines: Lines,
}

impl Watching {
    /// The next change: `ADDED`, `MODIFIED` or `DELETED`, and the object or its row. `None` once the server has ended the watch.
    /// A call that is dropped before it is ready has taken nothing.
    pub async fn next(&mut self) -> Result<Option<(String, Value)>, Error> {
        loop {
            if let Some(line) = self.lines.next() {
                let mut event: Value = read(&line)?;
                let object = event.unset("object").unwrap_or_default();
                return match event.text("type") {
                    "BOOKMARK" => continue,
                    "ERROR" => Err(Error::from(failure(500, object.to_string().as_bytes()))),
                    other => Ok(Some((other.to_owned(), object))),
                };
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame =
                frame.map_err(|error| Error::unavailable(format!("the watch broke off: {}", whole(&*error))))?;
            if let Ok(bytes) = frame.into_data() {
                self.lines.push(&bytes)?;
            }
        }
    }
}

/// The texts of `Warning: 299 - "text"`, as RFC 7234 has them.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let all = headers.get_all(WARNING).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(texts).collect()
}

/// The quoted texts of one header, which may have several.
fn texts(header: &str) -> Vec<String> {
    let (mut found, mut text, mut inside, mut escaped) = (Vec::new(), String::new(), false, false);
    for c in header.chars() {
        match c {
            _ if escaped => {
                text.push(c);
                escaped = false;
            }
            '\\' if inside => escaped = true,
            '"' => {
                if inside {
                    found.push(std::mem::take(&mut text));
                }
                inside = !inside;
            }
            c if inside => text.push(c),
            _ => {}
        }
    }
    found
}
