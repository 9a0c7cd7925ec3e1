//! JSON bodies from outside: parsed once, with repeated keys found, and errors in the reference server's words.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use crate::value::{Map, Number, Value};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::golang;

/// Maximum number of values in a body. Each takes about 40 bytes, however short it is written:
/// `[0,0,0...]` of the largest body would take 60 MB.
const MAX_VALUES: usize = 400_000;
/// Maximum number of repeated keys that are named, as sigs.k8s.io/json has it (maxStrictErrors).
const MAX_DUPLICATES: usize = 100;
/// Maximum length in bytes of the path of a repeated key.
const MAX_PATH: usize = 1 << 10;

/// A parsed body.
#[derive(Debug, PartialEq)]
pub struct Parsed {
    /// The value; of a repeated key the last one counts.
    pub value: Value,
    /// Paths of repeated keys, such as `spec.type`.
    pub duplicates: Vec<String>,
}

/// Parses a body. The error is the text Go's decoder gives for the same bytes.
pub fn parse(body: &[u8]) -> Result<Parsed, String> {
    let seen = BodyFacts { repeated: Cell::new(false), values: Cell::new(0) };
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = Tree(&seen).deserialize(&mut reader).and_then(|v| reader.end().map(|()| v));
    match value {
        Ok(value) if !seen.repeated.get() => Ok(Parsed { value, duplicates: Vec::new() }),
        Ok(value) => Ok(Parsed { value, duplicates: duplicates(body) }),
        Err(_) if seen.values.get() > MAX_VALUES => Err(format!("the body has more than {MAX_VALUES} values")),
        Err(error) => Err(syntax(body).unwrap_or_else(|| error.to_string())),
    }
}

/// Observations of a [`Tree`] about a body.
struct BodyFacts {
    /// True if any key came twice.
    repeated: Cell<bool>,
    /// The number of values so far.
    values: Cell<usize>,
}

/// Builds a [`Value`].
struct Tree<'a>(&'a BodyFacts);

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Value, D::Error> {
        let values = self.0.values.get() + 1;
        self.0.values.set(values);
        if values > MAX_VALUES {
            return Err(D::Error::custom("too many values"));
        }
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Number::from_f64(v).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(v.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Tree(self.0))? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(Tree(self.0))?;
            if map.insert(key, value).is_some() {
                self.0.repeated.set(true);
            }
        }
        Ok(Value::Object(map))
    }
}

/// The paths of repeated keys in a body known to parse.
fn duplicates(body: &[u8]) -> Vec<String> {
    let mut walk = Walk::default();
    let mut reader = serde_json::Deserializer::from_slice(body);
    // The body parsed once already, so this cannot fail; if it did, no duplicate would be reported.
    let _ = Paths(&mut walk).deserialize(&mut reader);
    walk.found
}

/// The way to the present key, and the paths of repeated keys so far.
#[derive(Default)]
struct Walk {
    steps: Vec<Step>,
    found: Vec<String>,
}

enum Step {
    Key(String),
    Index(usize),
}

impl Walk {
    /// Records the present key as repeated. A path is only formatted here: a long key with many
    /// fields inside is sent once but would be formatted for each of them.
    fn record(&mut self) {
        if self.found.len() >= MAX_DUPLICATES {
            return;
        }
        let mut path = String::new();
        for step in &self.steps {
            match step {
                Step::Key(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(&golang::shorten(key, MAX_PATH));
                }
                Step::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        let path = golang::shorten(&path, MAX_PATH).into_owned();
        if !self.found.contains(&path) {
            self.found.push(path);
        }
    }
}

/// Walks a body again, with the path of each key at hand.
struct Paths<'a>(&'a mut Walk);

impl<'de> DeserializeSeed<'de> for Paths<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Paths<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        for index in 0.. {
            self.0.steps.push(Step::Index(index));
            let item = seq.next_element_seed(Paths(&mut *self.0))?;
            self.0.steps.pop();
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut seen: HashSet<String> = HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            let repeated = !seen.insert(key.clone());
            self.0.steps.push(Step::Key(key));
            if repeated {
                self.0.record();
            }
            entries.next_value_seed(Paths(&mut *self.0))?;
            self.0.steps.pop();
        }
        Ok(())
    }
}

/// What Go's scanner says about malformed bytes: the first character that cannot stand where it does.
fn syntax(body: &[u8]) -> Option<String> {
    let mut scanner = Scanner { body, at: 0, depth: 0 };
    match scanner.value("looking for beginning of value") {
        Err(text) => Some(text),
        Ok(()) => {
            scanner.space();
            scanner.peek().map(|c| invalid(c, "after top-level value"))
        }
    }
}

fn invalid(c: u8, context: &str) -> String {
    let shown = match c {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        c => {
            let quoted = crate::golang::quote(&(c as char).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    };
    format!("invalid character {shown} {context}")
}

struct Scanner<'a> {
    body: &'a [u8],
    at: usize,
    depth: usize,
}

/// Deeper than any object of ours; the same limit serde_json has.
const MAX_DEPTH: usize = 128;

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }
    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }
    fn next(&mut self) -> Result<u8, String> {
        self.space();
        self.peek().ok_or_else(|| "unexpected end of JSON input".to_owned())
    }
    fn value(&mut self, context: &str) -> Result<(), String> {
        match self.next()? {
            b'{' => self.nested(Self::object),
            b'[' => self.nested(Self::array),
            b'"' => self.string(),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            b'-' | b'0'..=b'9' => self.number(),
            c => Err(invalid(c, context)),
        }
    }
    fn nested(&mut self, inner: fn(&mut Self) -> Result<(), String>) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        self.at += 1;
        let done = inner(self);
        self.depth -= 1;
        done
    }
    fn object(&mut self) -> Result<(), String> {
        let mut first = true;
        loop {
            match self.next()? {
                b'}' if first => break,
                b'"' => self.string()?,
                c => return Err(invalid(c, "looking for beginning of object key string")),
            }
            first = false;
            match self.next()? {
                b':' => self.at += 1,
                c => return Err(invalid(c, "after object key")),
            }
            self.value("looking for beginning of value")?;
            match self.next()? {
                b',' => self.at += 1,
                b'}' => break,
                c => return Err(invalid(c, "after object key:value pair")),
            }
        }
        self.at += 1;
        Ok(())
    }
    fn array(&mut self) -> Result<(), String> {
        if self.next()? == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value("looking for beginning of value")?;
            match self.next()? {
                b',' => self.at += 1,
                b']' => break,
                c => return Err(invalid(c, "after array element")),
            }
        }
        self.at += 1;
        Ok(())
    }
    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.peek().ok_or_else(|| "unexpected end of JSON input".to_owned())? {
                b'"' => break,
                b'\\' => self.escape()?,
                c if c < 0x20 => return Err(invalid(c, "in string literal")),
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }
    fn escape(&mut self) -> Result<(), String> {
        self.at += 1;
        match self.peek().ok_or_else(|| "unexpected end of JSON input".to_owned())? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    match self.peek() {
                        Some(c) if c.is_ascii_hexdigit() => self.at += 1,
                        Some(c) => return Err(invalid(c, "in \\u hexadecimal character escape")),
                        None => return Err("unexpected end of JSON input".to_owned()),
                    }
                }
            }
            c => return Err(invalid(c, "in string escape code")),
        }
        Ok(())
    }
    fn word(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes() {
            match self.peek() {
                Some(c) if c == expected => self.at += 1,
                Some(c) => {
                    let context = format!("in literal {word} (expecting '{}')", expected as char);
                    return Err(invalid(c, &context));
                }
                None => return Err("unexpected end of JSON input".to_owned()),
            }
        }
        Ok(())
    }
    fn number(&mut self) -> Result<(), String> {
        if self.peek() == Some(b'-') {
            self.at += 1;
            match self.peek() {
                Some(b'0'..=b'9') => {}
                Some(c) => return Err(invalid(c, "in numeric literal")),
                None => return Err("unexpected end of JSON input".to_owned()),
            }
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(())
    }
    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }
    fn some_digits(&mut self, context: &str) -> Result<(), String> {
        match self.peek() {
            Some(b'0'..=b'9') => {
                self.digits();
                Ok(())
            }
            Some(c) => Err(invalid(c, context)),
            None => Err("unexpected end of JSON input".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
