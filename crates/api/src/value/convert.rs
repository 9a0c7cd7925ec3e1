//! Values made of what Rust has, compared with it, and reached into by name.

use std::ops::{Index, IndexMut};

use super::{Key, Map, Number, Value};

static NULL: Value = Value::Null;

macro_rules! from_numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for Value {
            fn from(number: $number) -> Value {
                Value::Number(number.into())
            }
        }
        impl PartialEq<$number> for Value {
            fn eq(&self, other: &$number) -> bool {
                self.as_number().is_some_and(|number| *number == Number::from(*other))
            }
        }
    )*};
}

from_numbers!(i32, i64, u8, u16, u32, u64, usize);

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Number::from_f64(number).map_or(Value::Null, Value::Number)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(text)
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Value {
        Value::String(text.clone())
    }
}

impl From<std::borrow::Cow<'_, str>> for Value {
    fn from(text: std::borrow::Cow<'_, str>) -> Value {
        Value::String(text.into_owned())
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Value {
        Value::Object(map)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(list: Vec<T>) -> Value {
        list.into_iter().collect()
    }
}

impl<T: Into<Value> + Clone> From<&[T]> for Value {
    fn from(list: &[T]) -> Value {
        list.iter().cloned().collect()
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Value {
        Value::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<K: Into<Key>> FromIterator<(K, Value)> for Value {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(fields: I) -> Value {
        Value::Object(fields.into_iter().collect())
    }
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Value {
        match value {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(value),
            serde_json::Value::Number(number) => Value::Number(number),
            serde_json::Value::String(text) => Value::String(text),
            serde_json::Value::Array(list) => list.into_iter().collect(),
            serde_json::Value::Object(map) => map.into_iter().map(|(name, value)| (name, value.into())).collect(),
        }
    }
}

impl From<Value> for serde_json::Value {
    fn from(value: Value) -> serde_json::Value {
        match value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => serde_json::Value::Bool(value),
            Value::Number(number) => serde_json::Value::Number(number),
            Value::String(text) => serde_json::Value::String(text),
            Value::Array(list) => list.into_iter().map(serde_json::Value::from).collect(),
            Value::Object(map) => map.into_iter().map(|(name, value)| (name, serde_json::Value::from(value))).collect(),
        }
    }
}

impl PartialEq<str> for Value {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<&str> for Value {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(*other)
    }
}

impl PartialEq<String> for Value {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == Some(other)
    }
}

impl PartialEq<bool> for Value {
    fn eq(&self, other: &bool) -> bool {
        self.as_bool() == Some(*other)
    }
}

/// A field; null when there is none.
impl Index<&str> for Value {
    type Output = Value;
    fn index(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&NULL)
    }
}

/// A field, made if need be, of an object, which null becomes. Panics on any other value, as a list does on a bad place.
impl IndexMut<&'static str> for Value {
    fn index_mut(&mut self, name: &'static str) -> &mut Value {
        if self.is_null() {
            *self = Value::Object(Map::new());
        }
        self.as_object_mut().expect("only objects have fields").entry(name).or_insert(Value::Null)
    }
}

/// An element; null when there is none.
impl Index<usize> for Value {
    type Output = Value;
    fn index(&self, at: usize) -> &Value {
        self.as_array().and_then(|list| list.get(at)).unwrap_or(&NULL)
    }
}

/// An element. Panics if there is none.
impl IndexMut<usize> for Value {
    fn index_mut(&mut self, at: usize) -> &mut Value {
        &mut self.as_array_mut().expect("only lists have elements")[at]
    }
}
