//! From canonical JSON to protobuf, by the schema, as the reference implementation writes it: fields in the order of
//! their numbers; what is no pointer is written even when zero; maps by sorted key.

use crate::value::{Key, Map, Value};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::wire::Writer;
use crate::schema::{Field, Presence, Shape, Struct};

/// Writes the fields of an object; anything that is not an object is an empty one.
pub(super) fn object(of: &'static Struct, object: &Value, out: &mut Writer) {
    static NONE: Value = Value::Null;
    // Kind and apiVersion of a nested object have no number: the wire does not carry them.
    let mut fields: Vec<&Field> = of.fields.iter().filter(|field| field.number != 0).collect();
    fields.sort_by_key(|field| field.number);
    for field in fields {
        match (&field.shape, field.name) {
            (Shape::Struct(inner), "") => out.message(field.number, |out| self::object(inner, object, out)),
            (_, name) => member(field, object.get(name).unwrap_or(&NONE), out),
        }
    }
}

fn member(field: &'static Field, value: &Value, out: &mut Writer) {
    if value.is_null() && !written_when_zero(field) {
        return;
    }
    match (&field.shape, value) {
        (Shape::List(item), value) => {
            for value in value.as_array().into_iter().flatten() {
                plain(item, field.number, value, out);
            }
        }
        (Shape::Map(item), Value::Object(entries)) => map(item, field.number, entries, out),
        (Shape::Map(_), _) => {}
        (shape, value) => plain(shape, field.number, value, out),
    }
}

/// Whether an absent field leaves a trace: structs, times and plain values do, pointers and bytes do not.
fn written_when_zero(field: &Field) -> bool {
    field.presence != Presence::Given && !matches!(field.shape, Shape::Bytes | Shape::Any | Shape::Fields)
}

fn map(item: &'static Shape, number: u32, entries: &Map, out: &mut Writer) {
    let mut entries: Vec<(&Key, &Value)> = entries.iter().collect();
    entries.sort_by_key(|(key, _)| key.as_str());
    for (key, value) in entries {
        out.message(number, |out| {
            out.text(1, key);
            plain(item, 2, value, out);
        });
    }
}

fn plain(shape: &'static Shape, number: u32, value: &Value, out: &mut Writer) {
    match shape {
        Shape::Text(_) => out.text(number, value.as_str().unwrap_or_default()),
        Shape::Int32 | Shape::Int64 => out.integer(number, value.as_i64().unwrap_or_default()),
        Shape::Bool => out.flag(number, value.as_bool().unwrap_or_default()),
        Shape::Float64 => out.double(number, value.as_f64().unwrap_or_default()),
        Shape::Bytes => out.bytes(number, &STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default()),
        Shape::Time | Shape::MicroTime => out.message(number, |out| time(shape, value, out)),
        Shape::Quantity => out.message(number, |out| out.text(1, value.as_str().unwrap_or("0"))),
        Shape::IntOrString => out.message(number, |out| int_or_string(value, out)),
        Shape::Any | Shape::Fields => out.message(number, |out| out.bytes(1, value.to_string().as_bytes())),
        Shape::Struct(inner) => out.message(number, |out| object(inner, value, out)),
        // A list or a map within a map stands in a message of its own.
        Shape::List(item) => out.message(number, |out| {
            for value in value.as_array().into_iter().flatten() {
                plain(item, 1, value, out);
            }
        }),
        Shape::Map(item) => out.message(number, |out| {
            if let Value::Object(entries) = value {
                map(item, 1, entries, out);
            }
        }),
    }
}

/// No time is an empty message.
fn time(shape: &Shape, value: &Value, out: &mut Writer) {
    let Some(time) = value.as_str().and_then(|text| text.parse::<Timestamp>().ok()) else { return };
    // jiff counts times before 1970 with a negative fraction, the wire wants the fraction to count forward.
    let nanos = time.subsec_nanosecond().rem_euclid(1_000_000_000);
    let seconds = time.as_second() - i64::from(time.subsec_nanosecond() < 0);
    out.integer(1, seconds);
    out.integer(2, if matches!(shape, Shape::MicroTime) { (nanos / 1000 * 1000).into() } else { 0 });
}

fn int_or_string(value: &Value, out: &mut Writer) {
    out.integer(1, value.is_string().into());
    out.integer(2, value.as_i64().unwrap_or_default());
    out.text(3, value.as_str().unwrap_or_default());
}
