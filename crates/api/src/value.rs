//! JSON in memory, made for objects of a few named fields: the fields stand in a list, in the order in which they were
//! written; names that a type knows are not copied; nothing is hashed until an object has many fields.

use std::fmt;

pub use serde_json::Number;

mod convert;
mod map;
#[cfg(test)]
mod tests;
mod text;

pub use crate::json;
pub use map::{Entry, Key, Map};

/// Any JSON value. Objects are equal whatever the order of their fields.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// An object.
    Object(Map),
}

/// A [`Value`] written as JSON, as `serde_json::json!` reads it. For what is not written often: it takes a detour.
#[macro_export]
macro_rules! json {
    ($($tokens:tt)*) => { $crate::value::Value::from(::serde_json::json!($($tokens)*)) };
}

impl Value {
    /// A field of an object.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object().and_then(|map| map.get(name))
    }

    /// A field of an object, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.as_object_mut().and_then(|map| map.get_mut(name))
    }

    /// What a JSON pointer (`/spec/ports/0`) points at.
    pub fn pointer(&self, pointer: &str) -> Option<&Value> {
        steps(pointer)?.try_fold(self, |value, step| match value {
            Value::Object(map) => map.get(&step),
            Value::Array(list) => list.get(index(&step)?),
            _ => None,
        })
    }

    /// The same, to be changed.
    pub fn pointer_mut(&mut self, pointer: &str) -> Option<&mut Value> {
        steps(pointer)?.try_fold(self, |value, step| match value {
            Value::Object(map) => map.get_mut(&step),
            Value::Array(list) => list.get_mut(index(&step)?),
            _ => None,
        })
    }

    /// Takes the value out and leaves null.
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Whether it is a boolean.
    pub fn is_boolean(&self) -> bool {
        matches!(self, Value::Bool(_))
    }

    /// Whether it is a number.
    pub fn is_number(&self) -> bool {
        matches!(self, Value::Number(_))
    }

    /// Whether it is a string.
    pub fn is_string(&self) -> bool {
        matches!(self, Value::String(_))
    }

    /// Whether it is a list.
    pub fn is_array(&self) -> bool {
        matches!(self, Value::Array(_))
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        matches!(self, Value::Object(_))
    }

    /// The boolean it is.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The number it is.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Value::Number(value) => Some(value),
            _ => None,
        }
    }

    /// The integer it is.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(Number::as_i64)
    }

    /// The integer it is, if it is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number().and_then(Number::as_u64)
    }

    /// The number it is, as a fraction.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number().and_then(Number::as_f64)
    }

    /// The string it is.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The list it is.
    pub fn as_array(&self) -> Option<&Vec<Value>> {
        match self {
            Value::Array(list) => Some(list),
            _ => None,
        }
    }

    /// The list it is, to be changed.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        match self {
            Value::Array(list) => Some(list),
            _ => None,
        }
    }

    /// The object it is.
    pub fn as_object(&self) -> Option<&Map> {
        match self {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }

    /// The object it is, to be changed.
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        match self {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }
}

/// The steps of a JSON pointer; `None` if it is not one.
fn steps(pointer: &str) -> Option<impl Iterator<Item = String>> {
    if !(pointer.is_empty() || pointer.starts_with('/')) {
        return None;
    }
    Some(pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")))
}

/// A place in a list, without signs and leading zeros.
fn index(step: &str) -> Option<usize> {
    let plain = !step.starts_with('+') && (step == "0" || !step.starts_with('0'));
    step.parse().ok().filter(|_| plain)
}

/// Compact JSON.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
