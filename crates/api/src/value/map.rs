//! The fields of an object, in order.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use super::Value;

/// The name of a field: one that a type knows, or any other.
#[derive(Clone)]
pub enum Key {
    /// A name that is part of the program.
    Known(&'static str),
    /// A name from outside.
    Given(Box<str>),
}

/// The fields of an object, in the order in which they were written.
#[derive(Clone, Default)]
pub struct Map {
    fields: Vec<(Key, Value)>,
    /// Where each field is, once there are many: strangers choose how many there are.
    #[expect(clippy::box_collection, reason = "rarely there, and every value would be as large as it")]
    places: Option<Box<HashMap<Key, usize>>>,
}

/// From this many fields on they are looked up by hash. Comparing a few names is faster than hashing one.
const MANY: usize = 32;

impl Map {
    /// No fields.
    pub fn new() -> Map {
        Map::default()
    }

    /// No fields, but room for some.
    pub fn with_capacity(fields: usize) -> Map {
        Map { fields: Vec::with_capacity(fields), places: None }
    }

    /// How many fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether there is a field of that name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// The field of that name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.place(name).map(|at| &self.fields[at].1)
    }

    /// The field of that name, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.place(name).map(|at| &mut self.fields[at].1)
    }

    /// Sets a field, in its old place or as the last; returns what it was.
    pub fn insert(&mut self, name: impl Into<Key>, value: Value) -> Option<Value> {
        let name = name.into();
        match self.place(&name) {
            Some(at) => Some(std::mem::replace(&mut self.fields[at].1, value)),
            None => {
                self.push(name, value);
                None
            }
        }
    }

    /// Sets a field so that it stands at this place.
    pub fn shift_insert(&mut self, at: usize, name: impl Into<Key>, value: Value) {
        let name = name.into();
        self.shift_remove(&name);
        self.fields.insert(at.min(self.fields.len()), (name, value));
        self.find_places();
    }

    /// Removes a field; those behind it move up.
    pub fn shift_remove(&mut self, name: &str) -> Option<Value> {
        let at = self.place(name)?;
        let (_, value) = self.fields.remove(at);
        self.find_places();
        Some(value)
    }

    /// A field to look at and perhaps to set.
    pub fn entry(&mut self, name: impl Into<Key>) -> Entry<'_> {
        Entry { map: self, name: name.into() }
    }

    /// Keeps some of the fields.
    pub fn retain(&mut self, mut keep: impl FnMut(&Key, &mut Value) -> bool) {
        self.fields.retain_mut(|(name, value)| keep(name, value));
        self.find_places();
    }

    /// Puts the fields into the order of their names.
    pub fn sort_keys(&mut self) {
        self.fields.sort_by(|a, b| a.0.cmp(&b.0));
        self.find_places();
    }

    /// The names.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Key> + DoubleEndedIterator {
        self.fields.iter().map(|(name, _)| name)
    }

    /// The values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> + DoubleEndedIterator {
        self.fields.iter().map(|(_, value)| value)
    }

    /// The values, to be changed.
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Value> {
        self.fields.iter_mut().map(|(_, value)| value)
    }

    /// Names and values.
    pub fn iter(&self) -> Iter<'_> {
        self.fields.iter().map(both)
    }

    /// Names and values, to be changed.
    pub fn iter_mut(&mut self) -> IterMut<'_> {
        self.fields.iter_mut().map(both_mut)
    }

    fn place(&self, name: &str) -> Option<usize> {
        match &self.places {
            None => self.fields.iter().position(|(known, _)| **known == *name),
            Some(places) => places.get(name).copied(),
        }
    }

    fn push(&mut self, name: Key, value: Value) {
        if let Some(places) = &mut self.places {
            places.insert(name.clone(), self.fields.len());
        }
        self.fields.push((name, value));
        if self.places.is_none() {
            self.find_places();
        }
    }

    fn find_places(&mut self) {
        self.places = None;
        if self.fields.len() > MANY {
            let places = self.fields.iter().enumerate().map(|(at, (name, _))| (name.clone(), at));
            self.places = Some(Box::new(places.collect()));
        }
    }
}

/// A field that may be there.
#[derive(Debug)]
pub struct Entry<'a> {
    map: &'a mut Map,
    name: Key,
}

impl<'a> Entry<'a> {
    /// The field, made if need be.
    pub fn or_insert(self, value: impl Into<Value>) -> &'a mut Value {
        self.or_insert_with(|| value.into())
    }

    /// The field, made if need be.
    pub fn or_insert_with(self, make: impl FnOnce() -> Value) -> &'a mut Value {
        let at = self.map.place(&self.name).unwrap_or_else(|| {
            self.map.push(self.name, make());
            self.map.fields.len() - 1
        });
        &mut self.map.fields[at].1
    }
}

/// Names and values of a [`Map`].
pub(super) type Iter<'a> =
    std::iter::Map<std::slice::Iter<'a, (Key, Value)>, fn(&'a (Key, Value)) -> (&'a Key, &'a Value)>;
/// Names and values of a [`Map`], to be changed.
pub(super) type IterMut<'a> =
    std::iter::Map<std::slice::IterMut<'a, (Key, Value)>, fn(&'a mut (Key, Value)) -> (&'a Key, &'a mut Value)>;

fn both((name, value): &(Key, Value)) -> (&Key, &Value) {
    (name, value)
}

fn both_mut((name, value): &mut (Key, Value)) -> (&Key, &mut Value) {
    (name, value)
}

impl IntoIterator for Map {
    type Item = (Key, Value);
    type IntoIter = std::vec::IntoIter<(Key, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.fields.into_iter()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a Key, &'a Value);
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Map {
    type Item = (&'a Key, &'a mut Value);
    type IntoIter = IterMut<'a>;
    fn into_iter(self) -> IterMut<'a> {
        self.iter_mut()
    }
}

impl<K: Into<Key>> Extend<(K, Value)> for Map {
    fn extend<I: IntoIterator<Item = (K, Value)>>(&mut self, fields: I) {
        for (name, value) in fields {
            self.insert(name, value);
        }
    }
}

impl<K: Into<Key>> FromIterator<(K, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(fields: I) -> Map {
        let fields = fields.into_iter();
        let mut map = Map::with_capacity(fields.size_hint().0);
        map.extend(fields);
        map
    }
}

/// The order of fields does not count.
impl PartialEq for Map {
    fn eq(&self, other: &Map) -> bool {
        self.fields.len() == other.fields.len()
            && self.fields.iter().zip(&other.fields).all(|((name, value), (same, theirs))| {
                if name == same { value == theirs } else { other.get(name) == Some(value) }
            })
    }
}

impl Eq for Map {}

impl Hash for Map {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut fields: Vec<_> = self.fields.iter().collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        fields.hash(state);
    }
}

/// A field that is known to be there.
impl std::ops::Index<&str> for Map {
    type Output = Value;
    fn index(&self, name: &str) -> &Value {
        self.get(name).expect("the field is there")
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Key {
    /// The name.
    pub fn as_str(&self) -> &str {
        match self {
            Key::Known(name) => name,
            Key::Given(name) => name,
        }
    }
}

impl Deref for Key {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        self
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        self
    }
}

impl From<&'static str> for Key {
    fn from(name: &'static str) -> Key {
        Key::Known(name)
    }
}

impl From<&Key> for Key {
    fn from(name: &Key) -> Key {
        name.clone()
    }
}

impl From<&String> for Key {
    fn from(name: &String) -> Key {
        Key::Given(name.as_str().into())
    }
}

impl From<String> for Key {
    fn from(name: String) -> Key {
        Key::Given(name.into())
    }
}

impl From<Key> for String {
    fn from(name: Key) -> String {
        match name {
            Key::Known(name) => name.to_owned(),
            Key::Given(name) => name.into(),
        }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Eq for Key {}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        **self == **other
    }
}

impl PartialEq<str> for Key {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for Key {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> std::cmp::Ordering {
        self.as_str().cmp(other)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
