//! Watching: a stream of changes, from a version on or beginning with what is there.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Kind, Look};
use fairlead_runtime::Permit;
use fairlead_store::{Backend, Entry, Error as StoreError, Event, Range, Revision, Watch};
use futures_util::stream;
use http::header::{CONTENT_TYPE, HeaderValue, TRANSFER_ENCODING};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::metrics::Watching;
use crate::negotiate::{Form, Media, Shape};
use crate::options::{ListOptions, revision};
use crate::read::{Filter, too_old_or_unavailable, unavailable, wait_for};
use crate::reply::{self, Body};
use crate::route::Target;
use crate::{Inner, object, table};
use frames::{FrameForm, FrameKey};

pub(crate) mod frames;
#[cfg(test)]
mod tests;

/// How often a quiet watch says how far it has got.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// A watch that names no end gets one between this and twice this.
const MIN_DURATION_SECONDS: u64 = 1800;
/// No watch is longer, whatever it asks for: a year, which no clock overflows at.
const MAX_DURATION_SECONDS: u64 = 365 * 24 * 3600;

/// Bytes after which objects that are there at the beginning are sent, before more of them are
/// written.
const INITIAL_PIECE: usize = 4 << 10;
/// Objects from this size on are sent as they are stored, between a beginning and an end of their
/// own: copies of them, one a watch, would add up.
const SHARED_FROM: usize = 2 << 10;

/// Opens a watch. Mistakes are answered at once; the stream itself never fails, it ends.
pub(crate) async fn watch(
    server: &Arc<Inner>,
    target: &Target,
    options: &ListOptions,
    form: Form,
    include: table::Include,
    permit: Permit,
) -> Result<Response<Body>, Failure> {
    let filter = Filter::new(target, options)?;
    let prefix = object::prefix(target.kind, &target.namespace);
    let encoder = Encoder { kind: target.kind, form, include, columns_sent: false };
    let seconds = match options.timeout_seconds {
        None | Some(0) => MIN_DURATION_SECONDS + fastrand::u64(..MIN_DURATION_SECONDS),
        Some(seconds) => u64::try_from(seconds).unwrap_or(0).min(MAX_DURATION_SECONDS),
    };
    let mut stream = Stream {
        watch: None,
        filter,
        encoder,
        bookmarks: options.bookmarks,
        deadline: Instant::now() + Duration::from_secs(seconds),
        next_bookmark: Instant::now() + BOOKMARK_EVERY,
        ready: VecDeque::new(),
        initial: Vec::new().into_iter(),
        initial_end: None,
        events: VecDeque::new(),
        server: server.clone(),
        stop: server.stop.clone(),
        ended: false,
        _open: server.metrics.watching(),
        _permit: permit,
    };
    stream.open(&*server.store, &prefix, options).await?;
    Ok(stream.respond())
}

/// Where a watch begins.
enum From {
    /// With everything that is there, not older than this.
    Everything(Revision),
    /// With the first change after now.
    Now,
    /// With the first change after this.
    After(Revision),
}

fn from(options: &ListOptions) -> Result<From, Failure> {
    let version = match options.resource_version.as_str() {
        "" => Revision(0),
        text => Revision(revision(text).map_err(|why| Failure::new(500, "", why))?),
    };
    Ok(match (options.send_initial_events, version) {
        (Some(true), version) => From::Everything(version),
        (None, Revision(0)) => From::Everything(Revision(0)),
        (Some(false), Revision(0)) => From::Now,
        (_, version) => From::After(version),
    })
}

struct Stream {
    /// `None` when nothing can come any more, or not yet.
    watch: Option<Watch>,
    filter: Filter,
    encoder: Encoder,
    bookmarks: bool,
    deadline: Instant,
    next_bookmark: Instant,
    ready: VecDeque<Bytes>,
    /// Objects that were there at the beginning and are not written yet. Everything is written when
    /// it is about to be sent, so that a watch that is not read costs little.
    initial: std::vec::IntoIter<Arc<Entry>>,
    /// The bookmark after them.
    initial_end: Option<Revision>,
    /// Changes that are not written yet.
    events: VecDeque<Event>,
    server: Arc<Inner>,
    stop: CancellationToken,
    ended: bool,
    _open: Watching,
    _permit: Permit,
}

impl Stream {
    async fn open(&mut self, store: &dyn Backend, prefix: &str, options: &ListOptions) -> Result<(), Failure> {
        let after = match from(options)? {
            From::Everything(at_least) => {
                wait_for(store, at_least).await?;
                self.initial(store, prefix).await?
            }
            From::Now => store.revision().await.map_err(unavailable)?,
            From::After(revision) => revision,
        };
        match store.watch(prefix, after).await {
            Ok(watch) => self.watch = Some(watch),
            Err(StoreError::Compacted { requested, oldest }) => self.expired(requested, oldest),
            Err(other) => return Err(unavailable(other)),
        }
        Ok(())
    }

    /// Remembers what is there and, if asked for, the bookmark that says that this was all.
    async fn initial(&mut self, store: &dyn Backend, prefix: &str) -> Result<Revision, Failure> {
        let range = Range { prefix: prefix.into(), ..Range::default() };
        let mut page = store.range(range).await.map_err(too_old_or_unavailable)?;
        page.entries.retain(|entry| self.filter.matches(entry));
        self.initial = page.entries.into_iter();
        self.initial_end = self.bookmarks.then_some(page.revision);
        Ok(page.revision)
    }

    fn respond(self) -> Response<Body> {
        let media = match self.encoder.form.media {
            Media::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            _ => "application/json",
        };
        let frames = stream::unfold(self, |mut stream| async move {
            let bytes = stream.next().await?;
            Some((Ok(Frame::data(bytes)), stream))
        });
        let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
        *response.status_mut() = StatusCode::OK;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
        response.headers_mut().remove(TRANSFER_ENCODING);
        response
    }

    /// The next bytes to send, `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            if self.write_initial() {
                continue;
            }
            if let Some(event) = self.events.pop_front() {
                self.event(&event);
                continue;
            }
            if self.ended {
                return None;
            }
            self.wait().await;
        }
    }

    async fn wait(&mut self) {
        let Some(watch) = &mut self.watch else {
            self.ended = true;
            return;
        };
        let mut out = BytesMut::new();
        tokio::select! {
            events = watch.next() => match events {
                Ok(events) => self.events = events.into(),
                Err(StoreError::Compacted { requested, oldest }) => self.expired(requested, oldest),
                Err(_) => self.ended = true,
            },
            () = tokio::time::sleep_until(self.next_bookmark), if self.bookmarks => {
                self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                self.encoder.bookmark(&mut out, watch.progress(), false);
            }
            () = tokio::time::sleep_until(self.deadline) => self.ended = true,
            () = self.stop.cancelled() => self.ended = true,
        }
        if !out.is_empty() {
            self.ready.push_back(out.freeze());
        }
    }

    /// Writes some of the objects that were there at the beginning. False if there are none left.
    fn write_initial(&mut self) -> bool {
        let mut out = BytesMut::new();
        while out.len() < INITIAL_PIECE {
            let Some(entry) = self.initial.next() else {
                if let Some(revision) = self.initial_end.take() {
                    self.encoder.bookmark(&mut out, revision, true);
                }
                break;
            };
            if self.encoder.sends_stored(&entry) {
                if !out.is_empty() {
                    self.ready.push_back(out.split().freeze());
                }
                self.ready.extend(stored("ADDED", &entry));
                break;
            }
            self.encoder.event(&mut out, "ADDED", &entry);
        }
        if !out.is_empty() {
            self.ready.push_back(out.freeze());
        }
        !self.ready.is_empty()
    }

    fn event(&mut self, event: &Event) {
        let before = event.previous.as_ref().filter(|entry| self.filter.matches(entry));
        let after = (!event.deleted && self.filter.matches(&event.entry)).then_some(&event.entry);
        let (kind, entry) = match (before, after) {
            (None, None) => return,
            (None, Some(entry)) => ("ADDED", entry),
            (Some(_), Some(entry)) => ("MODIFIED", entry),
            (Some(_), None) if event.deleted => ("DELETED", &event.entry),
            (Some(before), None) => ("DELETED", before),
        };
        // What left the selection is gone as it was, at the version of the change.
        let leaves = kind == "DELETED" && !event.deleted;
        if !leaves && self.encoder.sends_stored(entry) {
            self.ready.extend(stored(kind, entry));
            return;
        }
        let key =
            FrameKey { object: &entry.key, revision: event.revision, event: kind, form: self.encoder.frame_form() };
        let encoder = &mut self.encoder;
        let frame = self.server.frames.get(&key, || {
            let mut out = BytesMut::new();
            match leaves {
                true => encoder.event(&mut out, kind, &Arc::new(entry.at(event.revision))),
                false => encoder.event(&mut out, kind, entry),
            }
            out.freeze()
        });
        encoder.columns_sent = true;
        if !frame.is_empty() {
            self.ready.push_back(frame);
        }
    }

    /// The versions asked for are gone: the last event says so.
    fn expired(&mut self, requested: Revision, oldest: Revision) {
        let message = format!("too old resource version: {requested} ({oldest})");
        let mut out = BytesMut::new();
        self.encoder.failure(&mut out, &Failure::new(410, "Expired", message));
        self.ready.push_back(out.freeze());
        self.watch = None;
    }
}

/// Writes events in the form the client asked for.
struct Encoder {
    kind: &'static Kind,
    form: Form,
    include: table::Include,
    /// A table watch names its columns in the first event only.
    columns_sent: bool,
}

impl Encoder {
    /// True if an object is sent as it is stored, shared with the store.
    fn sends_stored(&self, entry: &Entry) -> bool {
        self.sends_text() && entry.json.len() >= SHARED_FROM
    }

    fn sends_text(&self) -> bool {
        matches!((self.form.shape, self.form.media, &self.kind.conversion), (Shape::Object, Media::Json, None))
    }

    fn frame_form(&self) -> FrameForm {
        FrameForm::of(self.kind, self.form.media, self.form.shape, self.include, self.columns_sent)
    }

    fn event(&mut self, out: &mut BytesMut, kind: &str, entry: &Arc<Entry>) {
        if self.sends_text() {
            frame(out, kind, &entry.json);
            return;
        }
        let Ok(object) = object::load(self.kind, entry) else { return };
        self.value(out, kind, object);
    }

    fn value(&mut self, out: &mut BytesMut, kind: &str, object: Value) {
        let now = crate::clock::seconds();
        let view = match self.form.shape {
            Shape::Object => object,
            Shape::Metadata(version) | Shape::MetadataList(version) => table::metadata(&object, version),
            Shape::Table(version) => {
                let revision = object.at("metadata").text("resourceVersion").to_owned();
                let mut view =
                    table::table(self.kind, version, &revision, std::slice::from_ref(&object), self.include, now);
                if std::mem::replace(&mut self.columns_sent, true) {
                    view.set("columnDefinitions", Value::Null);
                }
                view
            }
        };
        match self.form.media {
            Media::Protobuf => frame_protobuf(out, kind, &reply::object_protobuf(self.kind, &view)),
            _ => frame(out, kind, view.to_string().as_bytes()),
        }
    }

    /// A bookmark: an object with nothing but its type and version.
    fn bookmark(&mut self, out: &mut BytesMut, revision: Revision, initial_end: bool) {
        let empty = fairlead_api::decode::decode(self.kind.schema, json!({})).map(|d| d.value).unwrap_or_default();
        let mut object = json!({"kind": self.kind.kind, "apiVersion": self.kind.api_version()});
        if let (Some(object), Value::Object(empty)) = (object.as_object_mut(), empty) {
            object.extend(empty);
        }
        object["metadata"] = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        self.value(out, "BOOKMARK", object);
    }

    fn failure(&self, out: &mut BytesMut, failure: &Failure) {
        let status = failure.status();
        match self.form.media {
            Media::Protobuf => {
                let raw = fairlead_api::proto::write(&fairlead_api::schema::meta::STATUS, &status);
                frame_protobuf(out, "ERROR", &fairlead_api::proto::wrap("v1", "Status", &raw));
            }
            _ => frame(out, "ERROR", status.to_string().as_bytes()),
        }
    }
}

/// Returns an event in three parts, of which the object is shared with the store.
fn stored(kind: &'static str, entry: &Entry) -> [Bytes; 3] {
    let head: &'static [u8] = match kind {
        "ADDED" => b"{\"type\":\"ADDED\",\"object\":",
        "MODIFIED" => b"{\"type\":\"MODIFIED\",\"object\":",
        _ => b"{\"type\":\"DELETED\",\"object\":",
    };
    [Bytes::from_static(head), entry.json.clone(), Bytes::from_static(b"}\n")]
}

fn frame(out: &mut BytesMut, kind: &str, object: &[u8]) {
    out.reserve(object.len() + 32);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
}

/// A length, then the event.
fn frame_protobuf(out: &mut BytesMut, kind: &str, object: &[u8]) {
    let event = fairlead_api::proto::write_watch_event(kind, object);
    out.put_u32(u32::try_from(event.len()).unwrap_or(u32::MAX));
    out.put_slice(&event);
}
