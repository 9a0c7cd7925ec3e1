//! Reading over HTTP: lists in pages, then a watch with bookmarks, taken up again where it ended.

use std::time::Duration;

use bytes::Bytes;
use fairlead_api::source::{Event, Key, Later, List, Object, Selection, Source, Watch};
use fairlead_api::{Failure, head};
use http::Request;
use http::header::ACCEPT;
use http_body_util::{BodyExt, Full};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use crate::error::from_status;
use crate::request::{JSON, encode, fetch, path, send, whole, within};
use crate::{AnswerBody, Error, Requests};
pub(crate) use lines::Lines;

mod lines;

/// Objects a page: what client-go asks for.
const PAGE: usize = 500;
/// The largest page that is read; five hundred objects of half a megabyte.
const PAGE_LIMIT: usize = 256 << 20;
/// How long a page, or the beginning of a watch, may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Watches are asked to end after this and up to as much again, so that those of many clients do not end together.
const WATCH_SECONDS: u64 = 300;
/// Servers send a bookmark a minute; after silence that long the connection is believed dead.
const SILENCE: Duration = Duration::from_secs(150);
/// A watch that ends sooner than this without a word will not do better at once.
const TOO_SHORT: Duration = Duration::from_secs(1);

/// Reads through requests.
#[derive(Clone)]
pub(crate) struct Remote {
    requests: Requests,
}

impl Remote {
    pub(crate) fn new(requests: Requests) -> Remote {
        Remote { requests }
    }

    async fn page(&self, selection: &Selection, more: &str) -> Result<List, Error> {
        let query = format!("{}&limit={PAGE}&continue={}", selectors(selection), encode(more));
        let answer = fetch(self.requests.clone(), get(selection, &query)?, PAGE_LIMIT);
        read_page(&within(TIMEOUT, "the list did not come in time", answer).await?)
    }

    async fn open(&self, selection: &Selection, after: u64) -> Result<AnswerBody, Error> {
        let seconds = WATCH_SECONDS + fastrand::u64(..WATCH_SECONDS);
        let query = format!(
            "{}&watch=true&allowWatchBookmarks=true&resourceVersion={after}&timeoutSeconds={seconds}",
            selectors(selection)
        );
        let opened = send(self.requests.clone(), get(selection, &query)?);
        Ok(within(TIMEOUT, "the watch did not begin in time", opened).await?.into_body())
    }
}

impl Source for Remote {
    fn list<'a>(&'a self, selection: &'a Selection, more: Option<&'a str>) -> Later<'a, Result<List, Failure>> {
        Box::pin(async move { Ok(self.page(selection, more.unwrap_or_default()).await?) })
    }

    fn watch<'a>(&'a self, selection: &'a Selection, after: u64) -> Later<'a, Result<Box<dyn Watch>, Failure>> {
        Box::pin(async move {
            let body = self.open(selection, after).await?;
            let (remote, selection) = (self.clone(), selection.clone());
            let stream = Stream { body, lines: Lines::default(), since: Instant::now(), heard: false };
            Ok(Box::new(Following { remote, selection, stream: Some(stream), progress: after }) as Box<dyn Watch>)
        })
    }
}

fn get(selection: &Selection, query: &str) -> Result<Request<Full<Bytes>>, Error> {
    let uri = format!("{}?{query}", path(selection.kind, &selection.namespace, "", None));
    let request = Request::get(&uri).header(ACCEPT, JSON).body(Full::default());
    request.map_err(|error| Error::unavailable(format!("no request can be made for {uri}: {error}")))
}

fn selectors(selection: &Selection) -> String {
    format!("labelSelector={}&fieldSelector={}", encode(&selection.labels), encode(&selection.fields))
}

/// A page of a list.
#[derive(Deserialize)]
struct PageView<'a> {
    metadata: PageMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageMeta {
    resource_version: String,
    r#continue: String,
}

/// What must be known of every object.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Head {
    name: Box<str>,
    namespace: Box<str>,
    resource_version: String,
}

fn read_page(bytes: &Bytes) -> Result<List, Error> {
    let view: PageView<'_> = serde_json::from_slice(bytes).map_err(|error| unreadable("list", &error))?;
    let items = view.items.unwrap_or_default();
    Ok(List {
        objects: items.into_iter().map(|item| object(bytes, item)).collect::<Result<_, _>>()?,
        revision: revision(&view.metadata.resource_version)?,
        more: Some(view.metadata.r#continue).filter(|more| !more.is_empty()),
    })
}

/// An object that shares the bytes it came in.
fn object(bytes: &Bytes, raw: &RawValue) -> Result<Object, Error> {
    let json = raw.get().as_bytes();
    let head: Head =
        head::read(json).ok_or_else(|| Error::unavailable("the server sent an object without metadata"))?;
    let key = Key { namespace: head.namespace, name: head.name };
    Ok(Object { key, revision: revision(&head.resource_version)?, json: bytes.slice_ref(json) })
}

/// Kubernetes promises that the versions of its own kinds are numbers that grow.
fn revision(text: &str) -> Result<u64, Error> {
    text.parse().map_err(|_| Error::unavailable(format!("the server's resourceVersion is not a number: {text:?}")))
}

fn unreadable(what: &str, error: &serde_json::Error) -> Error {
    Error::unavailable(format!("the server's {what} cannot be read: {error}"))
}

/// A watch that opens itself again when it ends as watches do.
struct Following {
    remote: Remote,
    selection: Selection,
    /// `None`: it has to be opened again.
    stream: Option<Stream>,
    progress: u64,
}

/// One answer to a watch.
struct Stream {
    body: AnswerBody,
    lines: Lines,
    since: Instant,
    /// Whether anything came.
    heard: bool,
}

#[derive(Deserialize)]
struct EventView<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl Watch for Following {
    fn next(&mut self) -> Later<'_, Result<Vec<Event>, Failure>> {
        Box::pin(async move {
            loop {
                let Some(stream) = &mut self.stream else {
                    let body = self.remote.open(&self.selection, self.progress).await?;
                    let (lines, since) = (Lines::default(), Instant::now());
                    self.stream = Some(Stream { body, lines, since, heard: false });
                    continue;
                };
                let Some(bytes) = stream.read().await? else {
                    let (early, heard) = (stream.since.elapsed() < TOO_SHORT, stream.heard);
                    self.stream = None;
                    if early && !heard {
                        return Err(Error::unavailable("the watch ended as soon as it began").into());
                    }
                    continue;
                };
                stream.heard = true;
                stream.lines.push(&bytes)?;
                let events = self.events()?;
                if !events.is_empty() {
                    return Ok(events);
                }
            }
        })
    }

    fn progress(&self) -> u64 {
        self.progress
    }
}

impl Following {
    /// The events of all lines that are whole.
    fn events(&mut self) -> Result<Vec<Event>, Failure> {
        let mut events = Vec::new();
        while let Some(line) = self.stream.as_mut().and_then(|stream| stream.lines.next()) {
            match self.event(&line) {
                Ok(event) => events.extend(event),
                // What came before it is not lost; the failure comes again when the watch is opened again.
                Err(_) if !events.is_empty() => {
                    self.stream = None;
                    break;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(events)
    }

    fn event(&mut self, line: &Bytes) -> Result<Option<Event>, Failure> {
        let view: EventView<'_> = serde_json::from_slice(line).map_err(|error| unreadable("event", &error))?;
        if view.r#type == "ERROR" {
            let status = serde_json::from_str(view.object.get()).unwrap_or_default();
            return Err(from_status(500, &status));
        }
        let object = object(line, view.object)?;
        self.progress = self.progress.max(object.revision);
        Ok(match view.r#type {
            "ADDED" | "MODIFIED" => Some(Event::Put(object)),
            "DELETED" => Some(Event::Delete(object.key, object.revision)),
            _ => None,
        })
    }
}

impl Stream {
    /// The next bytes; `None` when the watch has ended or nothing is heard of it any more.
    async fn read(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let Ok(frame) = timeout(SILENCE, self.body.frame()).await else { return Ok(None) };
            match frame {
                None => return Ok(None),
                Some(Err(error)) if self.heard => {
                    tracing::debug!(error = whole(&*error), "a watch broke off");
                    return Ok(None);
                }
                Some(Err(error)) => return Err(Error::unavailable(format!("the watch broke off: {}", whole(&*error)))),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }
}
