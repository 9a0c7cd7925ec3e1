//! Lists as answers: small ones whole, others piece by piece from the entries that the store
//! shares, as the client takes them. A list of 60 MB that waits for its client then holds a few
//! kilobytes, and a client that has gone causes no work.

use std::convert::Infallible;
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairlead_api::value::{Value, json};
use fairlead_api::{Failure, Kind, Look, proto};
use fairlead_store::Entry;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Response;
use http::header::{CONTENT_ENCODING, HeaderValue, VARY};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;

use super::{Body, GZIP_FROM, List, parse, respond, set_paging};
use crate::negotiate::{Form, Media, Shape};
use crate::serve::{HeldBytes, PIECE};
use crate::{object, table};

/// Lists whose objects are together not larger are made whole, with their length in the head of the
/// answer.
const SMALL: usize = 64 << 10;
/// Largest list in YAML, in bytes of JSON: a YAML document is made of the whole list at once.
const YAML: usize = 8 << 20;
/// Bytes of JSON whose length in protobuf is found out before others have their turn.
const MEASURED_AT_ONCE: usize = 1 << 20;
/// Memory of an encoder for gzip, in bytes.
const ENCODER_BYTES: u64 = 384 << 10;
/// Time for a client to take any list, kube-apiserver's request timeout, and the rate that is
/// enough beyond it. Slower clients would keep old versions of many objects in memory.
const LEAST_TIME: Duration = Duration::from_secs(60);
const LEAST_RATE: u64 = 64 << 10;

/// The form of one object in a list.
#[derive(Debug, Clone, Copy)]
enum Item {
    Text,
    Pretty,
    Protobuf,
    Row { version: &'static str, include: table::Include, now: i64, pretty: bool },
    Metadata { version: &'static str, pretty: bool },
}

/// A list on its way.
struct Stream {
    kind: &'static Kind,
    item: Item,
    entries: std::vec::IntoIter<Arc<Entry>>,
    /// Beginning of every entry of the kind; objects in lists have no `kind` and `apiVersion`.
    item_head: String,
    head: Vec<u8>,
    /// In protobuf: the metadata, which stands between the length of the list and its objects.
    metadata: Vec<u8>,
    tail: Vec<u8>,
    first: bool,
    ended: bool,
    /// A large object that is sent as it is stored.
    large: Option<Bytes>,
    gzip: Option<GzEncoder<Vec<u8>>>,
    measure: Option<Measure>,
    /// Bytes that are still to come, if that is known.
    left: Option<u64>,
    due: Instant,
}

/// A list in protobuf, whose length stands before it.
struct Measure {
    rest: std::vec::IntoIter<Arc<Entry>>,
    length: u64,
}

/// Renders a list.
pub(super) fn render(
    code: u16,
    list: List,
    form: Form,
    include: table::Include,
    now: i64,
) -> Result<Response<Body>, Failure> {
    let size: usize = list.entries.iter().map(|entry| entry.json.len() + 1).sum();
    let item = match (form.shape, form.media) {
        (Shape::Object, Media::Protobuf) => Item::Protobuf,
        (Shape::Table(version), _) => Item::Row { version, include, now, pretty: form.pretty },
        (Shape::Metadata(version) | Shape::MetadataList(version), _) => Item::Metadata { version, pretty: form.pretty },
        (Shape::Object, _) if form.pretty => Item::Pretty,
        (Shape::Object, _) => Item::Text,
    };
    let media = match form.media {
        Media::Protobuf => "application/vnd.kubernetes.protobuf",
        Media::Json | Media::Yaml => "application/json",
    };
    let number = list.entries.len();
    let mut stream = Stream::new(list, item, size);
    if form.media == Media::Yaml {
        if size > YAML {
            let why = "a list of this size is not written as YAML; ask for JSON, or for pages with limit=";
            return Err(Failure::new(406, "NotAcceptable", why));
        }
        return Ok(super::encode(code, &parse(&stream.whole()?)?, form));
    }
    let gzip = form.gzip && !matches!(item, Item::Protobuf);
    if size <= SMALL {
        return Ok(respond(code, media, stream.whole()?.into(), gzip));
    }
    let compress = gzip && size >= GZIP_FROM;
    // Its entries, and what the protocols buffer: HTTP/1 most.
    let mut held = (number * size_of::<Arc<Entry>>() + 4 * PIECE) as u64;
    match item {
        _ if compress => {
            stream.gzip = Some(GzEncoder::new(Vec::with_capacity(PIECE), Compression::fast()));
            held += ENCODER_BYTES;
        }
        Item::Text => stream.left = stream.text_length(),
        _ => {}
    }
    if matches!(item, Item::Protobuf) {
        stream.measure = Some(Measure { rest: stream.entries.as_slice().to_vec().into_iter(), length: 0 });
        held *= 2;
    }
    let mut response = respond(code, media, Bytes::new(), false).map(|_| stream.boxed_unsync());
    response.extensions_mut().insert(HeldBytes(held));
    if compress {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    Ok(response)
}

impl Stream {
    fn new(list: List, item: Item, size: usize) -> Stream {
        let Envelope { head, metadata, tail } = envelope(&list, item);
        Stream {
            kind: list.kind,
            item,
            item_head: object::head(list.kind),
            entries: list.entries.into_iter(),
            head,
            metadata,
            tail,
            first: true,
            ended: false,
            large: None,
            gzip: None,
            measure: None,
            left: None,
            due: Instant::now() + LEAST_TIME + Duration::from_secs(size as u64 / LEAST_RATE),
        }
    }

    /// Returns the whole list. In protobuf its length is put before it.
    fn whole(&mut self) -> Result<Vec<u8>, Failure> {
        if let Item::Protobuf = self.item {
            let mut length = 0;
            for entry in self.entries.as_slice() {
                length += proto_item(self.kind, entry)?.len() as u64;
            }
            self.set_length(length);
        }
        let mut out = Vec::new();
        while let Some(piece) = self.produce(usize::MAX)? {
            out.extend_from_slice(&piece);
        }
        Ok(out)
    }

    /// Returns the next piece of the text: about `most` bytes, or one large object. `None` at the
    /// end.
    fn produce(&mut self, most: usize) -> Result<Option<Bytes>, Failure> {
        if let Some(large) = self.large.take() {
            return Ok(Some(large));
        }
        if self.ended {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(most.min(PIECE) + 1024);
        out.append(&mut self.head);
        while out.len() < most {
            let Some(entry) = self.entries.next() else {
                if self.pretty() && !self.first {
                    out.extend_from_slice(b"\n  ");
                }
                out.append(&mut self.tail);
                self.ended = true;
                break;
            };
            self.item(&mut out, &entry)?;
            if self.large.is_some() {
                break;
            }
        }
        Ok(Some(out.into()))
    }

    fn item(&mut self, out: &mut Vec<u8>, entry: &Arc<Entry>) -> Result<(), Failure> {
        let separator: &[u8] = match (self.item, self.pretty(), self.first) {
            (Item::Protobuf, ..) => b"",
            (_, true, true) => b"\n    ",
            (_, true, false) => b",\n    ",
            (_, false, true) => b"",
            (_, false, false) => b",",
        };
        self.first = false;
        out.extend_from_slice(separator);
        match self.item {
            Item::Text => {
                let text = object::text(self.kind, entry)?;
                let text = match text.strip_prefix(self.item_head.as_bytes()) {
                    Some(_) => {
                        out.push(b'{');
                        text.slice(self.item_head.len()..)
                    }
                    None => text,
                };
                if text.len() > PIECE { self.large = Some(text) } else { out.extend_from_slice(&text) }
            }
            Item::Pretty => {
                let text = object::text(self.kind, entry)?;
                let value = match text.strip_prefix(self.item_head.as_bytes()) {
                    Some(rest) => parse(&[b"{", rest].concat())?,
                    None => parse(&text)?,
                };
                write_pretty(out, &value);
            }
            Item::Protobuf => out.extend_from_slice(&proto_item(self.kind, entry)?),
            Item::Row { version, include, now, pretty } => {
                let row = table::row(self.kind, version, &object::load(self.kind, entry)?, include, now);
                write_value(out, &row, pretty);
            }
            Item::Metadata { version, pretty } => {
                let metadata = table::metadata(&object::load(self.kind, entry)?, version);
                write_value(out, &metadata, pretty);
            }
        }
        Ok(())
    }

    fn pretty(&self) -> bool {
        match self.item {
            Item::Text | Item::Protobuf => false,
            Item::Pretty => true,
            Item::Row { pretty, .. } | Item::Metadata { pretty, .. } => pretty,
        }
    }

    /// Returns the length of a list of texts; `None` where texts have to be made first.
    fn text_length(&self) -> Option<u64> {
        if self.kind.conversion.is_some() {
            return None;
        }
        let head = self.item_head.as_bytes();
        let item = |entry: &Arc<Entry>| match entry.json.starts_with(head) {
            true => entry.json.len() - head.len() + 1,
            false => entry.json.len(),
        };
        let items: usize = self.entries.as_slice().iter().map(item).sum();
        let commas = self.entries.len().saturating_sub(1);
        Some((self.head.len() + items + commas + self.tail.len()) as u64)
    }

    /// Completes the head of a list in protobuf with the length of its content.
    fn set_length(&mut self, items: u64) {
        write_varint(&mut self.head, items + self.metadata.len() as u64);
        self.head.append(&mut self.metadata);
    }

    /// Finds out the length of some objects in protobuf. True once all are measured.
    fn measure(&mut self) -> Result<bool, Failure> {
        let Some(measure) = &mut self.measure else { return Ok(true) };
        let mut done = 0;
        for entry in measure.rest.by_ref() {
            measure.length += proto_item(self.kind, &entry)?.len() as u64;
            done += entry.json.len();
            if done >= MEASURED_AT_ONCE {
                return Ok(false);
            }
        }
        let length = measure.length;
        self.measure = None;
        self.set_length(length);
        Ok(true)
    }

    /// Returns the next bytes to send.
    fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        if self.gzip.is_none() {
            return self.produce(PIECE);
        }
        loop {
            let piece = self.produce(PIECE)?;
            let Some(encoder) = &mut self.gzip else { return Ok(piece) };
            let failed = |error: std::io::Error| Failure::internal(format!("compressing failed: {error}"));
            match piece {
                Some(piece) => {
                    encoder.write_all(&piece).map_err(failed)?;
                    if encoder.get_ref().len() >= PIECE / 2 {
                        let full = std::mem::replace(encoder.get_mut(), Vec::with_capacity(PIECE));
                        return Ok(Some(full.into()));
                    }
                }
                None => {
                    let rest = self.gzip.take().map(GzEncoder::finish).transpose().map_err(failed)?;
                    return Ok(rest.map(Bytes::from));
                }
            }
        }
    }
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    /// An answer that cannot be made to its end ends early: its length, or its syntax, tells the
    /// client so.
    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if Instant::now() > this.due {
            tracing::debug!("a list was not taken in time");
            return Poll::Ready(None);
        }
        match this.measure() {
            Ok(true) => {}
            Ok(false) => {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Err(failure) => {
                tracing::error!("a list cannot be written: {}", failure.message);
                return Poll::Ready(None);
            }
        }
        match this.next() {
            Ok(Some(bytes)) => {
                if let Some(left) = &mut this.left {
                    *left = left.saturating_sub(bytes.len() as u64);
                }
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Ok(None) => Poll::Ready(None),
            Err(failure) => {
                tracing::error!("a list breaks off: {}", failure.message);
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended && self.large.is_none() && self.gzip.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// The parts of a list around its objects.
struct Envelope {
    head: Vec<u8>,
    metadata: Vec<u8>,
    tail: Vec<u8>,
}

fn envelope(list: &List, item: Item) -> Envelope {
    let kind = list.kind;
    let of_objects = || {
        let name = format!("{}List", kind.kind);
        json!({"kind": name, "apiVersion": kind.api_version(), "metadata": {"resourceVersion": list.revision}, "items": []})
    };
    let (mut value, pretty) = match item {
        Item::Text => (of_objects(), false),
        Item::Pretty => (of_objects(), true),
        Item::Row { version, include, now, pretty } => {
            (table::table(kind, version, &list.revision, &[], include, now), pretty)
        }
        Item::Metadata { version, pretty } => (table::metadata_list(&[], version, &list.revision), pretty),
        Item::Protobuf => {
            let mut value = json!({"metadata": {"resourceVersion": list.revision}, "items": []});
            set_paging(value.map_mut("metadata"), list);
            return proto_envelope(kind, &value);
        }
    };
    set_paging(value.map_mut("metadata"), list);
    let mut text =
        if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap_or_default();
    if !matches!(item, Item::Text) {
        text.push(b'\n');
    }
    // The array of objects is the last thing in every form.
    let at = text.windows(2).rposition(|two| two == b"[]").map_or(text.len(), |at| at + 1);
    let tail = text.split_off(at);
    Envelope { head: text, metadata: Vec::new(), tail }
}

fn proto_envelope(kind: &'static Kind, list: &Value) -> Envelope {
    let mut head = proto::wrap(&kind.api_version(), &format!("{}List", kind.kind), &[]);
    // The envelope ends with an empty content, an empty encoding and an empty type: 12 00 1a 00 22
    // 00. The length of the content is put in place of its 00.
    let tail = head.split_off(head.len() - 4);
    head.pop();
    Envelope { head, metadata: proto::write_list(kind.schema, list), tail }
}

/// Returns one object of a list in protobuf, as field 2 of the list.
fn proto_item(kind: &'static Kind, entry: &Arc<Entry>) -> Result<Vec<u8>, Failure> {
    let object = proto::write(kind.schema, &object::load(kind, entry)?);
    let mut out = Vec::with_capacity(object.len() + 6);
    out.push(0x12);
    write_varint(&mut out, object.len() as u64);
    out.extend_from_slice(&object);
    Ok(out)
}

fn write_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn write_value(out: &mut Vec<u8>, value: &Value, pretty: bool) {
    if pretty {
        write_pretty(out, value);
    } else if let Ok(text) = serde_json::to_vec(value) {
        out.extend_from_slice(&text);
    }
}

/// Writes an object of a list, indented as it stands in the list.
fn write_pretty(out: &mut Vec<u8>, value: &Value) {
    for (at, line) in serde_json::to_vec_pretty(value).unwrap_or_default().split(|byte| *byte == b'\n').enumerate() {
        if at > 0 {
            out.extend_from_slice(b"\n    ");
        }
        out.extend_from_slice(line);
    }
}
