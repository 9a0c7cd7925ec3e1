//! Turns JSON from outside into the canonical form of a type: known fields only, in the type's order, zero values as
//! the type writes them. What does not fit the type is an error; what the type does not know is reported.

use crate::value::{Key, Map, Value};
use thiserror::Error;

use crate::golang;
use crate::quantity;
use crate::schema::{Field, Gate, Presence, Shape, Struct};

/// A body that is not of the type it should be. The text is the reference server's.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Mismatch(pub String);

/// A value in canonical form, and the paths of fields the type does not know (`spec.bogus`).
#[derive(Debug, PartialEq)]
pub struct Decoded {
    /// The canonical value.
    pub value: Value,
    /// Paths of unknown fields, in document order.
    pub unknown: Vec<String>,
}

/// Maximum number of elements of one list in an object from a client. Rules that compare elements
/// stay within a second. Kubernetes has no such bound; its store takes objects of 1.5 MiB, which is
/// about as many endpoints in one list.
pub const MAX_LIST: usize = 25_000;
/// Maximum number of list elements and map entries in an object from a client. Defaults make an
/// empty element of two bytes a few hundred bytes of memory.
pub const MAX_ELEMENTS: usize = 100_000;
/// Maximum number of unknown fields that are named, as sigs.k8s.io/json has it (maxStrictErrors).
const MAX_UNKNOWN: usize = 100;
/// Maximum length in bytes of a name in a message.
const MAX_NAME: usize = 1 << 10;

/// Decodes an object of type `of` that is ours or was stored before. `apiVersion` and `kind` are
/// kept if they are there. Fields behind a gate are unknown.
pub fn decode(of: &'static Struct, value: Value) -> Result<Decoded, Mismatch> {
    run(of, value, &|_| false, usize::MAX, usize::MAX)
}

/// Decodes an object from a client, with the fields that open gates bring. Its lists are bounded by
/// [`MAX_LIST`] and [`MAX_ELEMENTS`].
pub fn decode_gated(of: &'static Struct, value: Value, open: &dyn Fn(Gate) -> bool) -> Result<Decoded, Mismatch> {
    run(of, value, open, MAX_LIST, MAX_ELEMENTS)
}

fn run(
    of: &'static Struct,
    value: Value,
    open: &dyn Fn(Gate) -> bool,
    max_list: usize,
    elements: usize,
) -> Result<Decoded, Mismatch> {
    let mut decoder = Decoder { unknown: Vec::new(), error: None, path: Vec::new(), open, max_list, elements };
    let value = decoder.top(of, value);
    match decoder.error {
        Some(error) => Err(error),
        None => Ok(Decoded { value, unknown: decoder.unknown }),
    }
}

struct Decoder<'a> {
    unknown: Vec<String>,
    /// The first mismatch in document order; decoding goes on so that the order is the document's.
    error: Option<Mismatch>,
    path: Vec<Step>,
    open: &'a dyn Fn(Gate) -> bool,
    /// Maximum number of elements of one list.
    max_list: usize,
    /// The number of list elements and map entries that may still come.
    elements: usize,
}

enum Step {
    Field(Key),
    Index(usize),
}

impl Decoder<'_> {
    fn top(&mut self, of: &'static Struct, mut value: Value) -> Value {
        let mut out = Map::new();
        if let Value::Object(map) = &mut value {
            for name in ["kind", "apiVersion"] {
                match map.shift_remove(name) {
                    Some(Value::String(text)) if !text.is_empty() => {
                        out.insert(name, text.into());
                    }
                    None | Some(Value::Null | Value::String(_)) => {}
                    Some(other) => {
                        self.path.push(Step::Field(name.into()));
                        self.mismatch(&other, of, "string");
                        self.path.pop();
                    }
                }
            }
        }
        self.object_into(of, value, &mut out, of);
        Value::Object(out)
    }

    fn object_into(&mut self, of: &'static Struct, value: Value, out: &mut Map, outer: &'static Struct) {
        let map = match value {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            other => {
                self.mismatch(&other, outer, &format!("v1.{}", of.name));
                return;
            }
        };
        let mut given: Vec<(*const Field, Value)> = Vec::with_capacity(map.len());
        for (name, value) in map {
            let Some(field) = of.field(&name).filter(|field| field.gate.is_none_or(self.open)) else {
                if self.unknown.len() < MAX_UNKNOWN {
                    self.path.push(Step::Field(name));
                    self.unknown.push(self.strict_path());
                    self.path.pop();
                }
                continue;
            };
            self.path.push(Step::Field(field.name.into()));
            let value = self.value(&field.shape, value, of);
            self.path.pop();
            given.push((field, value));
        }
        self.write(of, &mut given, out);
    }

    /// Writes the fields in the type's order.
    fn write(&mut self, of: &'static Struct, given: &mut Vec<(*const Field, Value)>, out: &mut Map) {
        for field in of.fields {
            if let ("", Shape::Struct(inner)) = (field.name, &field.shape) {
                self.write(inner, given, out);
                continue;
            }
            let at = given.iter().position(|(known, _)| std::ptr::eq(*known, field));
            let value = at.map_or(Value::Null, |at| given.swap_remove(at).1);
            if let Some(value) = self.presented(field, value) {
                out.insert(field.name, value);
            }
        }
    }

    fn presented(&mut self, field: &'static Field, value: Value) -> Option<Value> {
        match field.presence {
            Presence::Given => (!value.is_null()).then_some(value),
            Presence::NonZero => match (&field.shape, value) {
                (Shape::Struct(inner), Value::Null) => {
                    let mut out = Map::new();
                    self.object_into(inner, Value::Null, &mut out, inner);
                    Some(Value::Object(out))
                }
                (Shape::Struct(_), value) => Some(value),
                (_, value) => (!is_zero(&value)).then_some(value),
            },
            // An empty list is stored as none at all, and read back as null.
            Presence::Always if value.is_null() || is_empty(&value) => Some(self.zero(&field.shape)),
            Presence::Always => Some(value),
        }
    }

    fn zero(&mut self, shape: &'static Shape) -> Value {
        match shape {
            Shape::Text(_) => "".into(),
            Shape::Int32 | Shape::Int64 | Shape::Float64 | Shape::IntOrString => 0.into(),
            Shape::Bool => false.into(),
            Shape::Quantity => "0".into(),
            Shape::Struct(inner) => {
                let mut out = Map::new();
                self.object_into(inner, Value::Null, &mut out, inner);
                Value::Object(out)
            }
            _ => Value::Null,
        }
    }

    fn value(&mut self, shape: &'static Shape, value: Value, of: &'static Struct) -> Value {
        if value.is_null() {
            return Value::Null;
        }
        match (shape, value) {
            (Shape::Text(_), value @ Value::String(_)) | (Shape::Bool, value @ Value::Bool(_)) => value,
            (Shape::Int32 | Shape::IntOrString, Value::Number(n)) if fits(&n, i32::MIN.into(), i32::MAX.into()) => {
                n.as_i64().into()
            }
            (Shape::Int64, Value::Number(n)) if n.is_i64() => Value::Number(n),
            (Shape::Float64, value @ Value::Number(_)) => value,
            (Shape::IntOrString, value @ Value::String(_)) => value,
            (Shape::Bytes, Value::String(text)) => self.bytes(text),
            (Shape::Time | Shape::MicroTime, Value::String(text)) => self.time(shape, text),
            (Shape::Quantity, value @ (Value::String(_) | Value::Number(_))) => self.quantity(&value),
            (Shape::Any | Shape::Fields, value) => value,
            (Shape::Struct(inner), value) => {
                let mut out = Map::new();
                self.object_into(inner, value, &mut out, of);
                Value::Object(out)
            }
            (Shape::List(item), Value::Array(items)) => self.list(item, items, of),
            (Shape::Map(item), Value::Object(map)) => self.map(item, map, of),
            (shape, other) => {
                self.mismatch(&other, of, &go_type(shape));
                Value::Null
            }
        }
    }

    fn list(&mut self, item: &'static Shape, items: Vec<Value>, of: &'static Struct) -> Value {
        if items.len() > self.max_list {
            let why = format!("a list may have at most {} elements, this one has {}", self.max_list, items.len());
            self.fail(format!("{}: {why}", self.strict_path()));
            return Value::Null;
        }
        if !self.take_elements(items.len()) {
            return Value::Null;
        }
        let mut out = Vec::with_capacity(items.len());
        for (index, value) in items.into_iter().enumerate() {
            self.path.push(Step::Index(index));
            let value = if value.is_null() { self.zero(item) } else { self.value(item, value, of) };
            self.path.pop();
            out.push(value);
        }
        Value::Array(out)
    }

    /// Counts elements before they are decoded. Returns false if there are too many.
    fn take_elements(&mut self, count: usize) -> bool {
        match self.elements.checked_sub(count) {
            Some(left) => {
                self.elements = left;
                true
            }
            None => {
                let why = format!("an object may have at most {MAX_ELEMENTS} list elements and map entries");
                self.fail(format!("{}: {why}", self.strict_path()));
                false
            }
        }
    }

    /// Maps are written with sorted keys.
    fn map(&mut self, item: &'static Shape, map: Map, of: &'static Struct) -> Value {
        if !self.take_elements(map.len()) {
            return Value::Null;
        }
        let mut entries: Vec<(Key, Value)> = map.into_iter().collect();
        for (_, value) in &mut entries {
            let taken = value.take();
            *value = if taken.is_null() { self.zero(item) } else { self.value(item, taken, of) };
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Value::Object(entries.into_iter().collect())
    }

    fn bytes(&mut self, text: String) -> Value {
        use base64::Engine;
        let compact: String = text.chars().filter(|c| *c != '\r' && *c != '\n').collect();
        match base64::engine::general_purpose::STANDARD.decode(&compact) {
            Ok(_) => compact.into(),
            Err(error) => {
                let at = match error {
                    base64::DecodeError::InvalidByte(at, _)
                    | base64::DecodeError::InvalidLastSymbol(at, _)
                    | base64::DecodeError::InvalidLength(at) => at,
                    base64::DecodeError::InvalidPadding => compact.len(),
                };
                self.fail(format!("illegal base64 data at input byte {at}"));
                Value::Null
            }
        }
    }

    fn time(&mut self, shape: &Shape, text: String) -> Value {
        match text.parse::<jiff::Timestamp>() {
            Ok(time) if matches!(shape, Shape::MicroTime) => time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into(),
            Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into(),
            Err(_) => {
                let layout = if matches!(shape, Shape::MicroTime) {
                    "2006-01-02T15:04:05.000000Z07:00"
                } else {
                    "2006-01-02T15:04:05Z07:00"
                };
                let quoted = golang::quote_short(&text, MAX_NAME);
                self.fail(format!("parsing time {quoted} as \"{layout}\": cannot parse {quoted} as \"2006\""));
                Value::Null
            }
        }
    }

    fn quantity(&mut self, value: &Value) -> Value {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match quantity::canonical(&text) {
            Ok(text) => text.into(),
            Err(error) => {
                self.fail(error.to_string());
                Value::Null
            }
        }
    }

    fn mismatch(&mut self, found: &Value, of: &Struct, wanted: &str) {
        let number;
        let found = match found {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            // A number of the wrong size or with a fraction is named; a number where none belongs is not.
            Value::Number(n) if wanted.starts_with("int") => {
                number = format!("number {n}");
                &number
            }
            Value::Number(_) => "number",
        };
        let path: Vec<&str> = self
            .path
            .iter()
            .filter_map(|step| match step {
                Step::Field(name) => Some(name.as_str()),
                Step::Index(_) => None,
            })
            .collect();
        let place = if path.is_empty() {
            format!("Go value of type {wanted}")
        } else {
            format!("Go struct field {}.{} of type {wanted}", of.name, path.join("."))
        };
        self.fail(format!("json: cannot unmarshal {found} into {place}"));
    }

    fn fail(&mut self, message: String) {
        self.error.get_or_insert(Mismatch(message));
    }

    fn strict_path(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Field(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(&golang::shorten(name, MAX_NAME));
                }
                Step::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    }
}

fn fits(n: &crate::value::Number, min: i64, max: i64) -> bool {
    n.as_i64().is_some_and(|n| (min..=max).contains(&n))
}

fn is_empty(value: &Value) -> bool {
    matches!(value, Value::Array(items) if items.is_empty())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(m) => m.is_empty(),
    }
}

/// The Go name of a shape, as decoding errors print it.
fn go_type(shape: &Shape) -> String {
    match shape {
        Shape::Text(name) => (*name).to_owned(),
        Shape::Int32 | Shape::IntOrString => "int32".to_owned(),
        Shape::Int64 => "int64".to_owned(),
        Shape::Float64 => "float64".to_owned(),
        Shape::Bool => "bool".to_owned(),
        Shape::Bytes => "[]uint8".to_owned(),
        Shape::Time | Shape::MicroTime => "string".to_owned(),
        Shape::Quantity => "resource.Quantity".to_owned(),
        Shape::Any | Shape::Fields => "object".to_owned(),
        Shape::Struct(of) => format!("v1.{}", of.name),
        Shape::List(item) => format!("[]{}", go_type(item)),
        Shape::Map(item) => format!("map[string]{}", go_type(item)),
    }
}
