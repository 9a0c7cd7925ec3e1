//! Kubernetes' protobuf encoding, driven by the schema tables: what client-go sends and what kube-apiserver stores.
//! `wire` knows the bytes, `reading` and `writing` how each shape of the schema is laid out in them.

use crate::value::{Value, json};
use thiserror::Error;

use crate::schema::{Struct, meta};
use wire::{Reader, Wire, Writer};

mod reading;
pub(crate) mod wire;
mod writing;

#[cfg(test)]
mod tests;

/// The first bytes of every body.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// Bytes that are not what they should be. The texts are the reference server's.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// No bytes at all.
    #[error("empty data")]
    Empty,
    /// No `k8s\0` at the beginning.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoMagic,
    /// Nothing after `k8s\0`.
    #[error("empty body")]
    NoBody,
    /// Cut off or malformed.
    #[error("{0}")]
    Malformed(String),
}

/// The wrapper around every object: what it is, and its bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// The object itself.
    pub raw: &'a [u8],
}

/// Opens the wrapper.
///
/// | field | of `runtime.Unknown` |
/// |---|---|
/// | 1 | type: {1: apiVersion, 2: kind} |
/// | 2 | the object's bytes |
/// | 3, 4 | content encoding and type, unused |
pub fn unwrap(body: &[u8]) -> Result<Envelope<'_>, Error> {
    let inner = match body.strip_prefix(&MAGIC) {
        _ if body.is_empty() => return Err(Error::Empty),
        None => return Err(Error::NoMagic),
        Some([]) => return Err(Error::NoBody),
        Some(inner) => inner,
    };
    let mut envelope = Envelope { api_version: String::new(), kind: String::new(), raw: &[] };
    let mut reader = Reader::new(inner);
    while let Some((number, wire)) = reader.next()? {
        match number {
            1 => read_type(wire.bytes("TypeMeta")?, &mut envelope)?,
            2 => envelope.raw = wire.bytes("Raw")?,
            _ => {}
        }
    }
    Ok(envelope)
}

fn read_type(raw: &[u8], envelope: &mut Envelope<'_>) -> Result<(), Error> {
    let mut reader = Reader::new(raw);
    while let Some((number, wire)) = reader.next()? {
        match number {
            1 => envelope.api_version = wire.text("APIVersion")?,
            2 => envelope.kind = wire.text("Kind")?,
            _ => {}
        }
    }
    Ok(())
}

/// Puts an object into the wrapper.
pub fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut out = Writer::after(&MAGIC);
    out.message(1, |of| {
        of.text(1, api_version);
        of.text(2, kind);
    });
    out.bytes(2, raw);
    out.text(3, "");
    out.text(4, "");
    out.finish()
}

/// Reads an object of type `of` into JSON (not yet canonical: pass it through [`crate::decode`]). Unknown fields are skipped.
pub fn read(of: &'static Struct, raw: &[u8]) -> Result<Value, Error> {
    reading::object(of, raw)
}

/// Writes a canonical object of type `of`, byte for byte as the reference implementation does.
pub fn write(of: &'static Struct, object: &Value) -> Vec<u8> {
    let mut out = Writer::default();
    writing::object(of, object, &mut out);
    out.finish()
}

/// Reads a list of objects of type `of` into `{"metadata": …, "items": […]}`.
pub fn read_list(of: &'static Struct, raw: &[u8]) -> Result<Value, Error> {
    let mut metadata = json!({});
    let mut items = Vec::new();
    let mut reader = Reader::new(raw);
    while let Some((number, wire)) = reader.next()? {
        match number {
            1 => metadata = read(&meta::LIST_META, wire.bytes("ListMeta")?)?,
            2 => items.push(read(of, wire.bytes("Items")?)?),
            _ => {}
        }
    }
    Ok(json!({"metadata": metadata, "items": items}))
}

/// Writes a list (`metadata` and `items`) of canonical objects of type `of`.
pub fn write_list(of: &'static Struct, list: &Value) -> Vec<u8> {
    let mut out = Writer::default();
    out.message(1, |of| writing::object(&meta::LIST_META, &list["metadata"], of));
    for item in list["items"].as_array().into_iter().flatten() {
        out.message(2, |out| writing::object(of, item, out));
    }
    out.finish()
}

/// Writes one event of a watch; `object` is a whole wrapped object. The stream puts a 4-byte big-endian length before each.
pub fn write_watch_event(event: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Writer::default();
    out.text(1, event);
    out.message(2, |of| of.bytes(1, object));
    out.finish()
}

/// A field that came in a form it cannot have.
fn mismatch(wire: &Wire<'_>, field: &str) -> Error {
    let mut name = field.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Error::Malformed(format!("proto: wrong wireType = {} for field {name}", wire.kind()))
}
