//! Reading fields out of a JSON object the way the rules are written: what is absent reads as zero.

use serde_json::{Map, Value};

/// Field access by name; absent, null and wrongly typed all read as the zero value.
pub trait Look {
    /// The value itself, null when absent.
    fn at(&self, name: &str) -> &Value;
    /// A string, `""` when absent.
    fn text(&self, name: &str) -> &str;
    /// A string if it is there.
    fn text_opt(&self, name: &str) -> Option<&str>;
    /// An integer, 0 when absent.
    fn int(&self, name: &str) -> i64;
    /// An integer if it is there.
    fn int_opt(&self, name: &str) -> Option<i64>;
    /// A boolean, false when absent.
    fn flag(&self, name: &str) -> bool;
    /// A boolean if it is there.
    fn flag_opt(&self, name: &str) -> Option<bool>;
    /// A list, empty when absent.
    fn list(&self, name: &str) -> &[Value];
    /// The strings of a list, empty when absent.
    fn texts(&self, name: &str) -> Vec<&str>;
    /// An object, `None` when absent.
    fn map(&self, name: &str) -> Option<&Map<String, Value>>;
    /// The object of that name, made if need be. Anything else in its place is overwritten.
    fn map_mut(&mut self, name: &str) -> &mut Map<String, Value>;
    /// Sets a field.
    fn set(&mut self, name: &str, value: impl Into<Value>);
    /// Removes a field.
    fn unset(&mut self, name: &str) -> Option<Value>;
}

static NULL: Value = Value::Null;

impl Look for Value {
    fn at(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&NULL)
    }
    fn text(&self, name: &str) -> &str {
        self.text_opt(name).unwrap_or_default()
    }
    fn text_opt(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }
    fn int(&self, name: &str) -> i64 {
        self.int_opt(name).unwrap_or_default()
    }
    fn int_opt(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }
    fn flag(&self, name: &str) -> bool {
        self.flag_opt(name).unwrap_or_default()
    }
    fn flag_opt(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(Value::as_bool)
    }
    fn list(&self, name: &str) -> &[Value] {
        self.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
    fn texts(&self, name: &str) -> Vec<&str> {
        self.list(name).iter().filter_map(Value::as_str).collect()
    }
    fn map(&self, name: &str) -> Option<&Map<String, Value>> {
        self.get(name).and_then(Value::as_object)
    }
    fn map_mut(&mut self, name: &str) -> &mut Map<String, Value> {
        let inner = object(self).entry(name).or_insert_with(|| Value::Object(Map::new()));
        object(inner)
    }
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        object(self).insert(name.to_owned(), value.into());
    }
    fn unset(&mut self, name: &str) -> Option<Value> {
        self.as_object_mut().and_then(|map| map.shift_remove(name))
    }
}

/// The object a value is, made if it is something else.
fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object above")
}
