//! From protobuf to JSON, by the schema. Recursion is as deep as the schema is, which has no cycles.

use crate::value::{Map, Number, Value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::Error;
use super::wire::{Reader, Wire};
use crate::schema::{Shape, Struct};

/// Maximum number of list elements and map entries of a message. An empty element is two bytes on
/// the wire and forty in memory.
const MAX_ELEMENTS: usize = 400_000;

/// The first second of the year 1, which stands for no time at all.
const NO_TIME: i64 = -62_135_596_800;

/// Reads a message of type `of`.
pub(super) fn object(of: &'static Struct, raw: &[u8]) -> Result<Value, Error> {
    message(of, raw, &mut Count(0))
}

/// The number of list elements and map entries so far.
struct Count(usize);

impl Count {
    fn add(&mut self) -> Result<(), Error> {
        self.0 += 1;
        if self.0 > MAX_ELEMENTS {
            let why = format!("the message has more than {MAX_ELEMENTS} list elements and map entries");
            return Err(Error::Malformed(why));
        }
        Ok(())
    }
}

fn message(of: &'static Struct, raw: &[u8], count: &mut Count) -> Result<Value, Error> {
    let mut out = Map::new();
    object_into(of, raw, &mut out, count)?;
    Ok(Value::Object(out))
}

/// A message that comes in several pieces is the union of them, hence the map that is passed in.
fn object_into(of: &'static Struct, raw: &[u8], out: &mut Map, count: &mut Count) -> Result<(), Error> {
    let mut reader = Reader::new(raw);
    while let Some((number, wire)) = reader.next()? {
        let Some(field) = of.fields.iter().find(|field| field.number == number) else { continue };
        match (&field.shape, field.name) {
            // Protobuf nests what JSON writes flat.
            (Shape::Struct(inner), "") => object_into(inner, wire.bytes(inner.name)?, out, count)?,
            (Shape::Struct(inner), name) => {
                let slot = out.entry(name).or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(slot) = slot {
                    object_into(inner, wire.bytes(name)?, slot, count)?;
                }
            }
            (Shape::List(item), name) => {
                let slot = out.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(items) = slot {
                    list_item(item, wire, name, items, count)?;
                }
            }
            (Shape::Map(item), name) => {
                count.add()?;
                let (key, value) = entry(item, wire.bytes(name)?, name, count)?;
                let slot = out.entry(name).or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(slot) = slot {
                    slot.insert(key, value);
                }
            }
            (shape, name) => {
                out.insert(name, value(shape, wire, name, count)?);
            }
        }
    }
    Ok(())
}

/// Numbers may come one by one or packed together.
fn list_item(
    item: &'static Shape,
    wire: Wire<'_>,
    field: &str,
    items: &mut Vec<Value>,
    count: &mut Count,
) -> Result<(), Error> {
    match (item, wire) {
        (Shape::Int32 | Shape::Int64 | Shape::Bool, Wire::Bytes(packed)) => {
            let mut reader = Reader::new(packed);
            while !reader.is_empty() {
                count.add()?;
                items.push(scalar(item, reader.varint()?));
            }
        }
        _ => {
            count.add()?;
            items.push(value(item, wire, field, count)?);
        }
    }
    Ok(())
}

/// One entry of a map: `{1: key, 2: value}`, either of which may be left out.
fn entry(item: &'static Shape, raw: &[u8], field: &str, count: &mut Count) -> Result<(String, Value), Error> {
    let mut key = String::new();
    let mut value = zero(item);
    let mut reader = Reader::new(raw);
    while let Some((number, wire)) = reader.next()? {
        match number {
            1 => key = wire.text(field)?,
            2 => value = self::value(item, wire, field, count)?,
            _ => {}
        }
    }
    Ok((key, value))
}

fn value(shape: &'static Shape, wire: Wire<'_>, field: &str, count: &mut Count) -> Result<Value, Error> {
    Ok(match shape {
        Shape::Text(_) => wire.text(field)?.into(),
        Shape::Int32 | Shape::Int64 | Shape::Bool => scalar(shape, wire.varint(field)?),
        Shape::Float64 => match wire {
            Wire::Fixed64(bits) => Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number),
            other => return Err(super::mismatch(&other, field)),
        },
        Shape::Bytes => STANDARD.encode(wire.bytes(field)?).into(),
        Shape::Time | Shape::MicroTime => time(shape, wire.bytes(field)?)?,
        Shape::Quantity => quantity(wire.bytes(field)?)?,
        Shape::IntOrString => int_or_string(wire.bytes(field)?)?,
        Shape::Any | Shape::Fields => embedded(wire.bytes(field)?)?,
        Shape::Struct(inner) => message(inner, wire.bytes(field)?, count)?,
        Shape::List(item) => wrapped_list(item, wire.bytes(field)?, field, count)?,
        Shape::Map(item) => {
            let (key, value) = entry(item, wire.bytes(field)?, field, count)?;
            Value::Object(Map::from_iter([(key, value)]))
        }
    })
}

fn scalar(shape: &Shape, value: u64) -> Value {
    match shape {
        Shape::Bool => (value != 0).into(),
        // The upper half of a 32-bit number is sign only.
        Shape::Int32 => (value as i32).into(),
        _ => value.cast_signed().into(),
    }
}

/// What a map holds for a key that came without a value.
fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Text(_) | Shape::Bytes => "".into(),
        Shape::Int32 | Shape::Int64 | Shape::Float64 | Shape::IntOrString => 0.into(),
        Shape::Bool => false.into(),
        Shape::Quantity => "0".into(),
        Shape::Struct(_) | Shape::Map(_) => Value::Object(Map::new()),
        Shape::List(_) => Value::Array(Vec::new()),
        Shape::Time | Shape::MicroTime | Shape::Any | Shape::Fields => Value::Null,
    }
}

/// A list as the value of a map stands in a message of its own.
fn wrapped_list(item: &'static Shape, raw: &[u8], field: &str, count: &mut Count) -> Result<Value, Error> {
    let mut items = Vec::new();
    let mut reader = Reader::new(raw);
    while let Some((number, wire)) = reader.next()? {
        if number == 1 {
            list_item(item, wire, field, &mut items, count)?;
        }
    }
    Ok(Value::Array(items))
}

/// `{1: seconds, 2: nanoseconds}`; an empty message is no time at all.
fn time(shape: &Shape, raw: &[u8]) -> Result<Value, Error> {
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(raw);
    while let Some((number, wire)) = reader.next()? {
        match number {
            1 => seconds = wire.varint("Seconds")?.cast_signed(),
            2 => nanos = wire.varint("Nanos")? as i32,
            _ => {}
        }
    }
    let micro = matches!(shape, Shape::MicroTime);
    let nanos = if micro { nanos } else { 0 };
    if (seconds, nanos) == (NO_TIME, 0) {
        return Ok(Value::Null);
    }
    let time = Timestamp::new(seconds, nanos).ok().filter(|time| time.as_second() >= NO_TIME);
    let time = time.ok_or_else(|| Error::Malformed(format!("time {seconds} is out of range")))?;
    let layout = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(time.strftime(layout).to_string().into())
}

/// `{1: text}`.
fn quantity(raw: &[u8]) -> Result<Value, Error> {
    let mut text = String::new();
    let mut reader = Reader::new(raw);
    while let Some((number, wire)) = reader.next()? {
        if number == 1 {
            text = wire.text("String")?;
        }
    }
    Ok(if text.is_empty() { "0".into() } else { text.into() })
}

/// `{1: 0 for a number or 1 for a string, 2: the number, 3: the string}`.
fn int_or_string(raw: &[u8]) -> Result<Value, Error> {
    let (mut kind, mut number_value, mut text) = (0, 0, String::new());
    let mut reader = Reader::new(raw);
    while let Some((number, wire)) = reader.next()? {
        match number {
            1 => kind = wire.varint("Type")?,
            2 => number_value = wire.varint("IntVal")? as i32,
            3 => text = wire.text("StrVal")?,
            _ => {}
        }
    }
    match kind {
        0 => Ok(number_value.into()),
        1 => Ok(text.into()),
        _ => Err(Error::Malformed("impossible IntOrString.Type".to_owned())),
    }
}

/// `{1: JSON}`.
fn embedded(raw: &[u8]) -> Result<Value, Error> {
    let mut value = Value::Null;
    let mut reader = Reader::new(raw);
    while let Some((number, wire)) = reader.next()? {
        let text = match number {
            1 => wire.bytes("Raw")?,
            _ => continue,
        };
        if !text.is_empty() {
            value = serde_json::from_slice(text).map_err(|error| Error::Malformed(error.to_string()))?;
        }
    }
    Ok(value)
}
