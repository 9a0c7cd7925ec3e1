//! Reading fields out of a JSON object the way the rules are written: what is absent reads as zero.

use crate::value::{Key, Map, Value};

/// Field access by name; absent, null and wrongly typed all read as the zero value.
pub trait Look: Sized {
    /// The fields of an object.
    type Map;

    /// The value itself, null when absent.
    fn at(&self, name: &str) -> &Self;
    /// A string if it is there.
    fn text_opt(&self, name: &str) -> Option<&str>;
    /// An integer if it is there.
    fn int_opt(&self, name: &str) -> Option<i64>;
    /// A boolean if it is there.
    fn flag_opt(&self, name: &str) -> Option<bool>;
    /// A list, empty when absent.
    fn list(&self, name: &str) -> &[Self];
    /// The strings of a list, empty when absent.
    fn texts(&self, name: &str) -> Vec<&str>;
    /// The numbers of a list, empty when absent.
    fn ints(&self, name: &str) -> Vec<i64>;
    /// An object, `None` when absent.
    fn map(&self, name: &str) -> Option<&Self::Map>;
    /// The object of that name, made if need be. Anything else in its place is overwritten.
    fn map_mut(&mut self, name: impl Into<Key>) -> &mut Self::Map;
    /// Sets a field.
    fn set(&mut self, name: impl Into<Key>, value: impl Into<Self>);
    /// Removes a field.
    fn unset(&mut self, name: &str) -> Option<Self>;

    /// A string, `""` when absent.
    fn text(&self, name: &str) -> &str {
        self.text_opt(name).unwrap_or_default()
    }
    /// An integer, 0 when absent.
    fn int(&self, name: &str) -> i64 {
        self.int_opt(name).unwrap_or_default()
    }
    /// A boolean, false when absent.
    fn flag(&self, name: &str) -> bool {
        self.flag_opt(name).unwrap_or_default()
    }
}

static NULL: Value = Value::Null;
static FOREIGN_NULL: serde_json::Value = serde_json::Value::Null;

/// The part that reads alike for both.
macro_rules! reading {
    ($value:ty, $null:ident) => {
        fn at(&self, name: &str) -> &$value {
            self.get(name).unwrap_or(&$null)
        }
        fn text_opt(&self, name: &str) -> Option<&str> {
            self.get(name).and_then(<$value>::as_str)
        }
        fn int_opt(&self, name: &str) -> Option<i64> {
            self.get(name).and_then(<$value>::as_i64)
        }
        fn flag_opt(&self, name: &str) -> Option<bool> {
            self.get(name).and_then(<$value>::as_bool)
        }
        fn list(&self, name: &str) -> &[$value] {
            self.get(name).and_then(<$value>::as_array).map_or(&[], Vec::as_slice)
        }
        fn texts(&self, name: &str) -> Vec<&str> {
            self.list(name).iter().filter_map(<$value>::as_str).collect()
        }
        fn ints(&self, name: &str) -> Vec<i64> {
            self.list(name).iter().filter_map(<$value>::as_i64).collect()
        }
        fn map(&self, name: &str) -> Option<&Self::Map> {
            self.get(name).and_then(<$value>::as_object)
        }
        fn unset(&mut self, name: &str) -> Option<$value> {
            self.as_object_mut().and_then(|map| map.shift_remove(name))
        }
    };
}

impl Look for Value {
    type Map = Map;
    reading!(Value, NULL);

    fn map_mut(&mut self, name: impl Into<Key>) -> &mut Map {
        let inner = object(self).entry(name).or_insert_with(|| Value::Object(Map::new()));
        object(inner)
    }
    fn set(&mut self, name: impl Into<Key>, value: impl Into<Value>) {
        object(self).insert(name, value.into());
    }
}

/// For the programs that read objects without the rules of this crate.
impl Look for serde_json::Value {
    type Map = serde_json::Map<String, serde_json::Value>;
    reading!(serde_json::Value, FOREIGN_NULL);

    fn map_mut(&mut self, name: impl Into<Key>) -> &mut Self::Map {
        let inner = foreign(self).entry(name.into()).or_insert_with(|| serde_json::Map::new().into());
        foreign(inner)
    }
    fn set(&mut self, name: impl Into<Key>, value: impl Into<serde_json::Value>) {
        foreign(self).insert(name.into().into(), value.into());
    }
}

/// The object a value is, made if it is something else.
fn object(value: &mut Value) -> &mut Map {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object above")
}

/// The same for the values of serde_json.
fn foreign(value: &mut serde_json::Value) -> &mut serde_json::Map<String, serde_json::Value> {
    if !value.is_object() {
        *value = serde_json::Map::new().into();
    }
    value.as_object_mut().expect("made an object above")
}
